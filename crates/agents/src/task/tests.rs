//! The task of a tree with a host that starts nothing.

use codex_tools::agents::{AgentOrder, StoredChild, ThreadAgents};
use codex_wire::agent::SubagentOrigin;
use codex_wire::policy::{AskForApproval, SandboxPolicy};
use futures_util::future::BoxFuture;

use super::*;
use crate::tree::{AwaitRequest, Awaited, SendRequest, SpawnRequest};

/// A host that keeps what it is to start, and starts it only when it is told so.
#[derive(Default)]
struct FakeHost {
    started: Mutex<Vec<ChildStart>>,
    is_held: Mutex<Option<oneshot::Receiver<()>>>,
}

impl ChildHost for FakeHost {
    fn start(&self, child: ChildStart) -> BoxFuture<'static, Result<ChildStarted, String>> {
        self.started.lock().unwrap().push(child);
        let held = self.is_held.lock().unwrap().take();
        Box::pin(async move {
            if let Some(held) = held {
                held.await.unwrap();
            }
            Ok(ChildStarted::default())
        })
    }

    fn close(&self, _: ThreadId) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }

    fn stored(&self, _: ThreadId, _: ThreadId) -> Option<StoredChild> {
        None
    }

    fn stored_events(&self, _: ThreadId, _: i64, _: usize) -> Vec<codex_log::Event> {
        Vec::new()
    }

    fn worktrees(&self) -> Arc<Worktrees> {
        Arc::new(Worktrees::new(&codex_config::Home::at("/nowhere")))
    }
}

struct Bench {
    host: Arc<FakeHost>,
    sender: mpsc::UnboundedSender<Message>,
    mailbox: Arc<Mailbox>,
    number: u64,
}

fn policies(approval_policy: AskForApproval, sandbox_policy: SandboxPolicy) -> Arc<Settings> {
    Arc::new(Settings { approval_policy, sandbox_policy, ..Settings::of_folder("/w".into()) })
}

fn wide() -> Arc<Settings> {
    policies(AskForApproval::Never, SandboxPolicy::DangerFullAccess)
}

fn narrow() -> Arc<Settings> {
    policies(AskForApproval::UnlessTrusted, SandboxPolicy::ReadOnly)
}

impl Bench {
    fn new() -> Self {
        let (host, mailbox) = (Arc::<FakeHost>::default(), Arc::<Mailbox>::default());
        let root = Root {
            thread: ThreadId::fresh(),
            agents: AgentsState::default(),
            settings: wide(),
            mailbox: Arc::clone(&mailbox),
            has_turn: true,
        };
        let known = Arc::clone(&host) as Arc<dyn ChildHost>;
        let sender = TreeTask::spawn(root, Arc::new(Shared::new(Options::with_nine_tools(), known)));
        Self { host, sender, mailbox, number: 0 }
    }

    fn send(&self, message: Message) {
        assert!(self.sender.send(message).is_ok());
    }

    fn call(&mut self, caller: AgentId, request: Request, details: Option<Details>) -> oneshot::Receiver<CallReply> {
        let (reply, answer) = oneshot::channel();
        self.number += 1;
        let details = details.map(Box::new);
        self.send(Message::Call { caller, request, details, reply, number: CallNumber(self.number) });
        answer
    }

    fn spawn(&mut self, caller: AgentId) -> oneshot::Receiver<CallReply> {
        let (thread, origin, prompt) = (ThreadId::fresh(), SubagentOrigin::Spawn, Some("work".to_owned()));
        let new = SpawnRequest { thread, origin, prompt, label: None, task: None, role: None };
        let request = Request::Spawn(new);
        let details =
            Details { settings: wide(), role: None, nickname: None, instructions: None, fork: None, isolation: None };
        self.call(caller, request, Some(details))
    }

    /// A child whose thread has started.
    async fn child(&mut self, caller: AgentId) -> Arc<dyn ThreadAgents> {
        self.spawn(caller).await.unwrap().unwrap();
        self.attached()
    }

    /// The agent that was started last, as its thread holds it.
    fn attached(&self) -> Arc<dyn ThreadAgents> {
        let child = self.host.started.lock().unwrap().pop().unwrap();
        child.agents.attach(child.thread, &AgentsState::default(), &child.settings);
        child.agents
    }
}

/// The policies that an agent is ordered to obey.
async fn tightened(agent: &dyn ThreadAgents) -> (AskForApproval, SandboxPolicy) {
    loop {
        if let AgentOrder::Tighten(settings) = agent.next_order().await {
            return (settings.approval_policy, settings.sandbox_policy.clone());
        }
    }
}

const STRICT: (AskForApproval, SandboxPolicy) = (AskForApproval::UnlessTrusted, SandboxPolicy::ReadOnly);

#[tokio::test]
async fn a_tightened_root_reaches_children_and_grandchildren() {
    let mut bench = Bench::new();
    let child = bench.child(AgentId::ROOT).await;
    let grandchild = bench.child(AgentId(1)).await;
    bench.send(Message::Settings(AgentId::ROOT, narrow()));
    assert_eq!(tightened(&*child).await, STRICT);
    assert_eq!(tightened(&*grandchild).await, STRICT);
}

#[tokio::test]
async fn a_tightened_root_reaches_a_child_that_is_starting_and_one_that_was_asked_for_before() {
    let mut bench = Bench::new();
    let (release, held) = oneshot::channel();
    *bench.host.is_held.lock().unwrap() = Some(held);
    let started = bench.spawn(AgentId::ROOT);
    bench.send(Message::Settings(AgentId::ROOT, narrow()));
    // The settings of this call are those of its turn, which are older.
    bench.spawn(AgentId::ROOT).await.unwrap().unwrap();
    let late = bench.host.started.lock().unwrap().pop().unwrap();
    assert_eq!((late.settings.approval_policy, late.settings.sandbox_policy.clone()), STRICT);
    release.send(()).unwrap();
    started.await.unwrap().unwrap();
    assert_eq!(tightened(&*bench.attached()).await, STRICT);
}

#[tokio::test]
async fn a_child_that_starts_again_has_the_policies_of_now() {
    let mut bench = Bench::new();
    let child = bench.child(AgentId::ROOT).await;
    drop(child);
    bench.send(Message::Settings(AgentId::ROOT, narrow()));
    let again = SendRequest {
        agent: AgentId(1),
        prompt: Some("again".to_owned()),
        label: None,
        interrupt: false,
        is_quiet: false,
    };
    bench.call(AgentId::ROOT, Request::Send(again), None).await.unwrap().unwrap();
    // The reply to another call shows that the launch was ordered.
    bench.call(AgentId::ROOT, Request::List { all: true }, None).await.unwrap().unwrap();
    while bench.host.started.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let child = bench.host.started.lock().unwrap().pop().unwrap();
    assert!(matches!(child.history, ChildHistory::Resume));
    assert_eq!((child.settings.approval_policy, child.settings.sandbox_policy.clone()), STRICT);
}

#[tokio::test]
async fn a_child_that_is_widened_is_tightened_again() {
    let mut bench = Bench::new();
    bench.send(Message::Settings(AgentId::ROOT, narrow()));
    let child = bench.child(AgentId::ROOT).await;
    child.settings_changed(&wide());
    assert_eq!(tightened(&*child).await, STRICT);
}

#[tokio::test(start_paused = true)]
async fn mail_is_not_given_to_a_wait_that_was_stopped() {
    let mut bench = Bench::new();
    let _child = bench.child(AgentId::ROOT).await;
    let wait = || Request::Await(AwaitRequest::seconds(vec![AgentId(1)], None).unwrap());
    let stopped = bench.call(AgentId::ROOT, wait(), None);
    // The tree waits for the child when it answers another call.
    bench.call(AgentId::ROOT, Request::List { all: true }, None).await.unwrap().unwrap();
    let mail = SendRequest {
        agent: AgentId::ROOT,
        prompt: Some("half of it".to_owned()),
        label: None,
        interrupt: false,
        is_quiet: false,
    };
    let sent = bench.call(AgentId(1), Request::Send(mail), None);
    drop(stopped);
    sent.await.unwrap().unwrap();
    let next = tokio::time::timeout(Duration::from_secs(60), bench.call(AgentId::ROOT, wait(), None));
    let Reply::Awaited(awaited) = next.await.expect("it finds the mail").unwrap().unwrap() else { panic!() };
    let Awaited { messages, .. } = *awaited;
    assert_eq!(messages.len(), 1);
}

/// The use that an agent is ordered to count next.
async fn charged(orders: impl AsyncFn() -> AgentOrder) -> Used {
    loop {
        if let AgentOrder::Charge(used) = orders().await {
            return used;
        }
    }
}

#[tokio::test]
async fn what_is_used_counts_against_all_agents_above() {
    let mut bench = Bench::new();
    let child = bench.child(AgentId::ROOT).await;
    bench.child(AgentId(1)).await;
    let (seventy, five) = (Used { tokens: 70, commands: 2, ..Used::default() }, Used { tokens: 5, ..Used::default() });
    bench.send(Message::Used(AgentId(2), seventy));
    bench.send(Message::Used(AgentId(1), five));
    let mut sum = Used::default();
    while sum.tokens < 75 {
        sum += charged(async || bench.mailbox.next_order().await).await;
    }
    assert_eq!(sum, seventy + five);
    assert_eq!(charged(async || child.next_order().await).await, seventy);
}

#[tokio::test]
async fn two_agents_that_write_one_file_are_named_once() {
    let mut bench = Bench::new();
    let agents = (bench.child(AgentId::ROOT).await, bench.child(AgentId::ROOT).await);
    for agent in [1, 2, 1, 2] {
        bench.send(Message::Wrote(AgentId(agent), vec!["/w/a.rs".into()]));
    }
    bench.send(Message::Wrote(AgentId::ROOT, vec!["/w/a.rs".into()]));
    let mut warnings = Vec::new();
    while warnings.len() < 3 {
        if let AgentOrder::Log(bodies) = bench.mailbox.next_order().await {
            warnings.extend(bodies.iter().filter_map(|body| match body {
                Body::Warning { message } => message.split_once(';').map(|(text, _)| text.to_owned()),
                _ => None,
            }));
        }
    }
    let pairs = ["agent 2 and agent 1", "the root agent and agent 1", "the root agent and agent 2"];
    assert_eq!(warnings, pairs.map(|pair| format!("{pair} both write /w/a.rs")));
    drop(agents);
}
