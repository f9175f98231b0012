//! A thread's view of its servers, without a thread.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use codex_config::{Config, Env, Home, Overrides};
use codex_log::item::McpCall;
use codex_log::settings::Settings;
use codex_log::{Answer, Body, Item, ItemId, Question};
use codex_mcp::McpServers;
use codex_tools::call::{ToolCall, ToolInput};
use codex_tools::context::{ToolContext, ToolSetup};
use codex_tools::grants::Grants;
use codex_tools::lifecycle::{CallEvent, Lifecycle, OpenGate, ToolOutput};
use codex_tools::registry::{BuiltIn, Offer, Registry, ToolSource};
use codex_tools::rules::Rules;
use codex_tools::sampling::{Sample, SampleRequest, Sampler};
use codex_tools::servers::{Reload, ServerScope, ServerStatus, ThreadServers, ToolServers};
use codex_wire::mcp::McpStartupStatus;
use codex_wire::policy::{AskForApproval, SandboxPolicy};
use codex_wire::provider_traits::{PatchForm, ShellForm};
use codex_wire::response::Message;
use codex_wire::tool_spec::ToolList;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::timeout;

/// A model that repeats the last message, and takes a token for each of its bytes.
#[derive(Debug)]
struct Echo;

impl Sampler for Echo {
    fn sample(&self, request: SampleRequest) -> BoxFuture<'static, Result<Sample, String>> {
        let said = request.messages.last().map(Message::text).unwrap_or_default();
        let text = format!("{} of {}: {said}", request.instructions, request.max_tokens);
        let output_tokens = text.len() as u64;
        Box::pin(std::future::ready(match &*said {
            "fail" => Err("it is busy".to_owned()),
            _ => Ok(Sample { model: "echo".to_owned(), text, input_tokens: 3, output_tokens, is_cut: false }),
        }))
    }
}

/// The longest that a test waits, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct World {
    folder: TempDir,
    pub(crate) all: Arc<McpServers>,
}

pub(crate) struct ThreadOf {
    pub(crate) servers: Arc<dyn ThreadServers>,
    lifecycle: Lifecycle,
    cx: Arc<ToolContext>,
}

/// The end of a call: all events before it, and the output for the model.
pub(crate) struct Ended {
    pub(crate) events: Vec<Body>,
    pub(crate) output: String,
}

impl Ended {
    /// The call as it was completed.
    pub(crate) fn call(&self) -> Arc<McpCall> {
        let completed = self.events.iter().find_map(|body| match body {
            Body::ItemCompleted(Item::McpCall(call)) => Some(Arc::clone(call)),
            _ => None,
        });
        completed.expect("the call was completed")
    }

    pub(crate) fn progress(&self) -> Vec<&str> {
        let told = |body: &'_ Body| matches!(body, Body::CallProgressed { .. });
        self.events
            .iter()
            .filter(|body| told(body))
            .filter_map(|body| match body {
                Body::CallProgressed { message, .. } => Some(message.as_str()),
                _ => None,
            })
            .collect()
    }
}

/// The next that happens to a call.
pub(crate) enum Next {
    Asked(Arc<Question>),
    Ended(Ended),
}

impl World {
    pub(crate) fn new(config: &str) -> Self {
        Self::with(config, Env::process())
    }

    pub(crate) fn with(config: &str, env: Env) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let world = Self { folder, all: Arc::new(McpServers::new(env)) };
        world.write(config);
        world
    }

    /// The same home for another run of the program.
    pub(crate) fn again(mut self) -> Self {
        self.all = Arc::new(McpServers::new(Env::process()));
        self
    }

    /// Waits until something is remembered of this many servers.
    pub(crate) async fn remembers(&self, servers: usize) {
        let folder = self.folder.path().join("cache/mcp");
        let count = || {
            std::fs::read_dir(&folder).map_or(0, |entries| {
                entries
                    .filter_map(Result::ok)
                    .filter(|entry| entry.path().extension().is_some_and(|end| end == "json"))
                    .count()
            })
        };
        soon(async {
            while count() < servers {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    pub(crate) fn write(&self, config: &str) {
        std::fs::write(self.home().config_file(), config).expect("the configuration can be written");
    }

    fn home(&self) -> Home {
        Home::at(self.folder.path())
    }

    pub(crate) fn thread(&self) -> ThreadOf {
        self.thread_under(AskForApproval::OnRequest, SandboxPolicy::ReadOnly)
    }

    pub(crate) fn thread_under(&self, approval_policy: AskForApproval, sandbox_policy: SandboxPolicy) -> ThreadOf {
        let home = self.home();
        let config = load(&home);
        let reload: Reload = Arc::new(move || Ok(load(&home)));
        let (home, cwd) = (self.home(), self.folder.path().to_owned());
        let scope =
            ServerScope { config: Arc::clone(&config), home: home.clone(), cwd: cwd.clone(), reload: Some(reload) };
        let servers = self.all.open(scope);
        let sources = vec![Arc::new(BuiltIn) as Arc<dyn ToolSource>, Arc::clone(&servers) as Arc<dyn ToolSource>];
        let lifecycle =
            Lifecycle::new(Arc::new(Registry::new(sources)), Arc::new(OpenGate), Grants::by(Rules::default()));
        let settings = Settings { approval_policy, sandbox_policy, ..Settings::of_folder(cwd) };
        let cx = Arc::new(ToolContext::new(ToolSetup {
            config: &config,
            home: &home,
            programs: None,
            shell: None,
            is_verbatim: false,
            answer_within: None,
            settings: Arc::new(settings),
            thread: Arc::clone(lifecycle.thread()),
            sampler: Some(Arc::new(Echo)),
        }));
        ThreadOf { servers, lifecycle, cx }
    }

    /// The servers as a client of the program sees them.
    pub(crate) fn scope(&self) -> ServerScope {
        let home = self.home();
        ServerScope { config: load(&home), home, cwd: self.folder.path().to_owned(), reload: None }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn load(home: &Home) -> Arc<Config> {
    Arc::new(Config::load(home, &Env::process(), &Overrides::default()).expect("the configuration is right"))
}

pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("it happens in time")
}

impl ThreadOf {
    /// Waits until all servers have started or failed to, and returns their state.
    pub(crate) async fn settled(&self) -> Vec<ServerStatus> {
        soon(self.servers.list()).await
    }

    /// The next change of a server.
    pub(crate) async fn next_event(&self) -> Body {
        soon(self.servers.next_event()).await
    }

    /// Waits until a server has this status, and returns the error if it has failed.
    pub(crate) async fn until(&self, wanted: &str) -> Option<String> {
        loop {
            if let Body::ServerChanged(changed) = self.next_event().await {
                let (word, error) = match &changed.status {
                    McpStartupStatus::Starting => ("starting", None),
                    McpStartupStatus::Ready => ("ready", None),
                    McpStartupStatus::Failed(failed) => ("failed", Some(failed.error.clone())),
                    McpStartupStatus::Cancelled | McpStartupStatus::Other(_) => ("other", None),
                };
                if word == wanted {
                    return error;
                }
            }
        }
    }

    /// The names of the tools that a model is offered, without the built-in ones.
    pub(crate) fn offered(&self) -> Vec<String> {
        let names = self.list(false).specs().iter().map(|spec| spec.name().to_owned()).collect::<Vec<_>>();
        names.into_iter().filter(|name| name.contains("mcp")).collect()
    }

    /// The tools that a model is offered, with the tools of each server in a namespace or not.
    pub(crate) fn list(&self, has_namespaces: bool) -> Arc<ToolList> {
        let (shell, patch) = (ShellForm::Shell, PatchForm::Function);
        let offer = Offer { shell, patch, web_search: None, has_goal: false, has_namespaces, asks_permissions: false };
        self.lifecycle.registry().snapshot().list(offer)
    }

    /// Begins a call, and returns what happens first.
    pub(crate) async fn begin(&mut self, tool: &str, arguments: &Value) -> Next {
        let input = ToolInput::Function(arguments.to_string());
        let call = ToolCall { id: ItemId::new("call"), tool: tool.to_owned(), input };
        let events = self.lifecycle.begin(call, &self.cx);
        self.follow(events).await
    }

    pub(crate) async fn answer(&mut self, question: &Question, answer: Answer) -> Next {
        let events = self.lifecycle.answer(&question.id, answer).expect("the question is open");
        self.follow(events).await
    }

    /// A call that asks nobody.
    pub(crate) async fn call(&mut self, tool: &str, arguments: &Value) -> Ended {
        match self.begin(tool, arguments).await {
            Next::Ended(ended) => ended,
            Next::Asked(question) => panic!("nobody should be asked: {question:?}"),
        }
    }

    /// A call that a person is asked about, and their question.
    pub(crate) async fn asked(&mut self, tool: &str, arguments: &Value) -> Arc<Question> {
        match self.begin(tool, arguments).await {
            Next::Asked(question) => question,
            Next::Ended(ended) => panic!("somebody should be asked: {}", ended.output),
        }
    }

    /// Interrupts all calls.
    pub(crate) fn stop(&mut self) -> Vec<Body> {
        let bodies = self.lifecycle.stop().into_iter().filter_map(|event| match event {
            CallEvent::Emit(body) => Some(body),
            CallEvent::Failed(_) | CallEvent::Ended(..) | CallEvent::TurnStopped | CallEvent::GoalReported(_) => None,
        });
        bodies.collect()
    }

    async fn follow(&mut self, first: Vec<CallEvent>) -> Next {
        let (mut pending, mut events) = (first, Vec::new());
        loop {
            for event in pending {
                match event {
                    CallEvent::Emit(Body::Asked(question)) => return Next::Asked(question),
                    CallEvent::Emit(body) => events.push(body),
                    CallEvent::Failed(_) => {}
                    CallEvent::Ended(_, output) => {
                        let output = match output {
                            ToolOutput::Text(text) => text,
                            ToolOutput::Parts(parts) => format!("{parts:?}"),
                        };
                        return Next::Ended(Ended { events, output });
                    }
                    CallEvent::TurnStopped | CallEvent::GoalReported(_) => panic!("the turn goes on"),
                }
            }
            pending = soon(self.lifecycle.next()).await;
        }
    }
}

impl Next {
    pub(crate) fn ended(self) -> Ended {
        match self {
            Self::Ended(ended) => ended,
            Self::Asked(question) => panic!("nobody should be asked: {question:?}"),
        }
    }
}
