//! A home, a project and a model that records its requests.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use codex_config::{BudgetConfig, Config, Env, Home, Overrides};
use codex_engine::Setup;
use codex_log::agents::AgentsState;
use codex_log::settings::{Settings, SettingsChange};
use codex_log::{Body, Event, Outcome, TurnId};
use codex_model::{Answer, Model, Prompt, ScriptedModel};
use codex_store::FileStore;
use codex_thread::{
    ClientAdditions, ClientProfile, ExplicitOverrides, Feed, InitialHistory, StartError, Thread, TurnStart,
};
use codex_tools::agents::{AgentOrder, MailTime, ThreadAgents, Unread, UnreadForm};
use codex_tools::registry::{Tool, ToolSource};
use codex_wire::agent::MultiAgentVersion;
use codex_wire::budget::Used;
use codex_wire::ids::ThreadId;
use codex_wire::input::UserInput;
use codex_wire::rollout::SessionSource;
use expect_test::Expect;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::{Mutex as AsyncMutex, mpsc};

use crate::{law, shown};

/// A folder with a `home` and a `project` in it.
pub(crate) struct World {
    folder: TempDir,
    overrides: Vec<String>,
    pub(crate) store: FileStore,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        for name in ["home", "project"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder can be made");
        }
        let store = FileStore::of(&folder.path().join("home"));
        Self { folder, store, overrides: vec!["model_provider=scripted".to_owned()] }
    }

    /// Sets a value of the configuration, as `-c` does.
    pub(crate) fn set(mut self, value: &str) -> Self {
        self.overrides.push(value.to_owned());
        self
    }

    /// Writes a file, relative to the folder of `home` and `project`.
    pub(crate) fn file(self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        std::fs::write(self.path(name), bytes).expect("a file can be written");
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A text in which the folder's path is replaced by `TEMP`.
    pub(crate) fn without_path(&self, text: &str) -> String {
        text.replace(&self.folder.path().display().to_string(), "TEMP")
    }

    /// The setup of a thread in this world, and the requests to its model.
    pub(crate) fn setup(&self, script: &str) -> (Setup, Prompts) {
        let home = Home::at(self.path("home"));
        let env = Env::from_iter::<[(&str, &str); 0]>([]);
        let overrides = Overrides { values: self.overrides.clone(), ..Overrides::default() };
        let config = Config::load(&home, &env, &overrides).expect("the test's configuration is right");
        let model = ScriptedModel::from_json(script).expect("the test's script is right");
        let prompts = Prompts::default();
        let setup = Setup {
            config: Arc::new(config),
            home,
            store: Arc::new(self.store.clone()),
            cwd: self.path("project"),
            model: Arc::new(Recorder { model, prompts: prompts.clone() }),
            originator: "tests".to_owned(),
            source: SessionSource::Exec,
            shell: Some("/bin/zsh".to_owned()),
            programs: None,
            profile: ClientProfile { follows_goals: true, ..ClientProfile::EXEC },
            base_instructions: None,
            initial_history: InitialHistory::New,
            additions: ClientAdditions::default(),
            recent_bytes: 0,
            servers: None,
            agents: None,
            run_budget: BudgetConfig::default(),
            requests: None,
            child: None,
        };
        (setup, prompts)
    }

    /// Tries to start a thread, and returns its error.
    pub(crate) async fn start_error(&self) -> StartError {
        let (setup, _) = self.setup("[]");
        setup.start().await.expect_err("the thread must not start")
    }

    /// Starts a thread with a scripted model.
    pub(crate) async fn start(self, script: &str) -> Client {
        self.start_as(script, |setup| setup).await
    }

    /// Starts a thread with a scripted model and these agents.
    pub(crate) async fn start_with_agents(self, script: &str, agents: &Arc<FakeAgents>) -> Client {
        let agents: Arc<dyn ThreadAgents> = Arc::clone(agents) as _;
        self.start_as(script, |setup| Setup { agents: Some(agents), ..setup }).await
    }

    async fn start_as(self, script: &str, change: impl FnOnce(Setup) -> Setup) -> Client {
        let (setup, prompts) = self.setup(script);
        let (thread, feed) = change(setup).start().await.expect("the thread starts");
        Client { world: self, thread, feed, prompts }
    }
}

/// Agents of a thread that use and send what a test tells them to.
#[derive(Debug)]
pub(crate) struct FakeAgents {
    /// Orders for the thread.
    orders: mpsc::UnboundedSender<AgentOrder>,
    ordered: AsyncMutex<mpsc::UnboundedReceiver<AgentOrder>>,
    mail: Mutex<Option<Unread>>,
    /// The text of a message that arrives, with the order to wake, when the thread's turn of this name has ended.
    mail_after: Option<(TurnId, &'static str)>,
    canceled: Mutex<Vec<String>>,
}

impl FakeAgents {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self::with_mail_after(None))
    }

    /// Agents that send one message.
    pub(crate) fn with_mail(turn: &str, text: &'static str) -> Arc<Self> {
        Arc::new(Self::with_mail_after(Some((TurnId::new(turn), text))))
    }

    fn with_mail_after(mail_after: Option<(TurnId, &'static str)>) -> Self {
        let (orders, ordered) = mpsc::unbounded_channel();
        let ordered = AsyncMutex::new(ordered);
        Self { orders, ordered, mail: Mutex::default(), mail_after, canceled: Mutex::default() }
    }

    /// Charges the thread for the use of agents below.
    pub(crate) fn use_up(&self, used: Used) {
        self.orders.send(AgentOrder::Charge(used)).expect("the receiver is kept");
    }

    /// The reasons for which they were canceled since the last call.
    pub(crate) fn canceled(&self) -> Vec<String> {
        std::mem::take(&mut *self.canceled.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn mail(&self) -> std::sync::MutexGuard<'_, Option<Unread>> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ToolSource for FakeAgents {
    fn version(&self) -> u64 {
        0
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }
}

impl ThreadAgents for FakeAgents {
    fn attach(&self, _: ThreadId, _: &AgentsState, _: &Arc<Settings>) {}

    fn role(&self) -> (&'static str, &'static str) {
        ("root.md", "")
    }

    fn next_order(&self) -> BoxFuture<'_, AgentOrder> {
        Box::pin(async { self.ordered.lock().await.recv().await.expect("the sender is kept") })
    }

    fn has_mail(&self) -> bool {
        self.mail().is_some()
    }

    fn goes_on(&self) -> bool {
        false
    }

    fn settle_version(&self, _: Option<MultiAgentVersion>, _: Option<MultiAgentVersion>) -> Option<MultiAgentVersion> {
        None
    }

    fn heard(&self) {}

    fn take_mail(&self, _: &AgentsState, _: MailTime) -> Vec<Unread> {
        self.mail().take().into_iter().collect()
    }

    fn rested(&self) {}

    fn observe(&self, event: &Event) {
        let Some((turn, text)) = &self.mail_after else { return };
        if matches!(event.body, Body::TurnEnded(_)) && event.turn.as_ref() == Some(turn) {
            *self.mail() = Some(Unread { mail: vec![1], form: UnreadForm::Note((*text).to_owned()) });
            self.orders.send(AgentOrder::Wake).expect("the receiver is kept");
        }
    }

    fn charge(&self, _: Used) {}

    fn settings_changed(&self, _: &Arc<Settings>) {}

    fn cancel_below(&self, reason: &str) {
        self.canceled.lock().unwrap_or_else(PoisonError::into_inner).push(reason.to_owned());
    }

    fn has_tree(&self) -> bool {
        true
    }

    fn is_busy(&self) -> bool {
        false
    }

    fn close(&self) -> BoxFuture<'static, Vec<Body>> {
        Box::pin(async { Vec::new() })
    }
}

/// Starts a thread in a default world.
pub(crate) async fn start(script: &str) -> Client {
    World::new().start(script).await
}

/// Starts a thread and runs a turn.
pub(crate) async fn one_turn(script: &str) -> Client {
    let mut client = start(script).await;
    client.turn("1", "hi").await;
    client
}

/// The requests to a model, in order.
#[derive(Clone, Default)]
pub(crate) struct Prompts(Arc<Mutex<Vec<Prompt>>>);

impl Prompts {
    /// The prompts so far.
    pub(crate) fn all(&self) -> Vec<Prompt> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A scripted model that records its requests.
struct Recorder {
    model: ScriptedModel,
    prompts: Prompts,
}

impl Model for Recorder {
    fn ask(&self, prompt: Prompt) -> Answer {
        self.prompts.0.lock().unwrap_or_else(PoisonError::into_inner).push(prompt.clone());
        self.model.ask(prompt)
    }
}

/// A thread and everything around it.
pub(crate) struct Client {
    pub(crate) world: World,
    pub(crate) thread: Thread,
    pub(crate) feed: Feed,
    pub(crate) prompts: Prompts,
}

impl Client {
    /// Sends a text with the current settings.
    pub(crate) async fn say(&self, turn: &str, text: &str) -> TurnStart {
        self.say_with(turn, vec![said(text)], SettingsChange::default()).await
    }

    pub(crate) async fn say_with(&self, turn: &str, content: Vec<UserInput>, change: SettingsChange) -> TurnStart {
        self.thread.say(TurnId::new(turn), content, change).await.expect("the thread is open")
    }

    /// Runs a turn with this text.
    pub(crate) async fn turn(&mut self, turn: &str, text: &str) -> Vec<Arc<Event>> {
        assert_eq!(self.say(turn, text).await, TurnStart::Started);
        self.until_ended().await
    }

    /// The next event. At the end of a turn, the state of the thread must equal that of its file.
    pub(crate) async fn next(&mut self) -> Arc<Event> {
        let event = self.feed.next().await.expect("the thread says something more");
        if matches!(event.body, Body::TurnEnded(_)) {
            law::memory_equals_file(&self.thread, &self.world.store).await;
        }
        event
    }

    /// Reads up to and including the first event of a kind.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&Body) -> bool) -> Vec<Arc<Event>> {
        let mut events = Vec::new();
        loop {
            let event = self.next().await;
            let found = wanted(&event.body);
            events.push(event);
            if found {
                return events;
            }
        }
    }

    /// Reads up to and including the end of a turn.
    pub(crate) async fn until_ended(&mut self) -> Vec<Arc<Event>> {
        self.until(|body| matches!(body, Body::TurnEnded(_))).await
    }

    /// Closes the thread and starts one that resumes it, in the same world.
    pub(crate) async fn start_again(mut self, script: &str, change: impl FnOnce(ThreadId, Setup) -> Setup) -> Self {
        self.close().await;
        let id = self.thread.id();
        let (setup, prompts) = self.world.setup(script);
        let (thread, feed) = change(id, setup).start().await.expect("the thread starts");
        Self { world: self.world, thread, feed, prompts }
    }

    /// Closes the thread and reads the remaining events.
    pub(crate) async fn close(&mut self) -> Vec<Arc<Event>> {
        self.thread.close().await;
        self.rest().await
    }

    /// Reads until the thread ends.
    pub(crate) async fn rest(&mut self) -> Vec<Arc<Event>> {
        let mut events = Vec::new();
        while let Some(event) = self.feed.next().await {
            events.push(event);
        }
        events
    }

    /// The texts of the last request, without the environment context.
    pub(crate) fn last_input(&self) -> Vec<String> {
        let last = self.prompts.all().pop().expect("the model was asked");
        let items = last.input.iter().map(|item| serde_json::from_str::<Value>(&item.json()).expect("an item is JSON"));
        items.skip(1).map(|item| item["content"][0]["text"].as_str().unwrap_or("?").to_owned()).collect()
    }

    pub(crate) fn rollout(&self) -> &Path {
        &self.thread.started().rollout
    }

    /// The lines of the thread's file.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.rollout()).expect("the thread has a file");
        assert!(text.ends_with('\n'), "the last line is not whole: {text}");
        text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
    }

    /// The types of the lines of the thread's file; for events, the type of the event.
    pub(crate) fn line_kinds(&self) -> Vec<String> {
        let kind = |line: &Value| match line["type"].as_str() {
            Some("event_msg") => format!("event_msg {}", line["payload"]["type"].as_str().unwrap_or_default()),
            kind => kind.unwrap_or_default().to_owned(),
        };
        self.lines().iter().map(kind).collect()
    }
}

/// The setup of a thread that continues another, with the settings of that one.
pub(crate) fn resumed(thread: ThreadId, setup: Setup) -> Setup {
    let initial_history = InitialHistory::Resumed { thread, explicit: ExplicitOverrides::default() };
    Setup { initial_history, ..setup }
}

/// A text as input.
pub(crate) fn said(text: &str) -> UserInput {
    UserInput::text(text)
}

/// The end of the turn that these events belong to. There must be exactly one, and it must come last.
#[track_caller]
pub(crate) fn outcome(events: &[Arc<Event>]) -> Outcome {
    let mut ends = events.iter().filter_map(|event| match &event.body {
        Body::TurnEnded(outcome) => Some(outcome.clone()),
        _ => None,
    });
    let end = ends.next().expect("the turn has ended");
    assert_eq!(ends.next(), None, "the turn has ended twice");
    assert!(matches!(events.last().map(|event| &event.body), Some(Body::TurnEnded(_))), "something came after the end");
    end
}

/// Compares events with a snapshot, one per line.
#[track_caller]
pub(crate) fn check(events: &[Arc<Event>], expected: Expect) {
    check_lines(&events.iter().map(|event| shown::event(event)).collect::<Vec<_>>(), expected);
}

/// Compares lines with a snapshot.
#[track_caller]
pub(crate) fn check_lines(lines: &[String], expected: Expect) {
    expected.assert_eq(&lines.iter().flat_map(|line| [line, "\n"]).collect::<String>());
}
