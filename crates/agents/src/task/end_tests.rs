//! Every agent has an end, whatever happens to its thread, and the tree and its callers are told.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;

use codex_log::agents::AgentEvent;
use codex_tools::agents::{AgentOrder, StoredChild, ThreadAgents};
use codex_wire::agent::{SubagentCompletion, SubagentLifecycleEvent, SubagentStatus};
use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use super::*;
use crate::tree::SpawnRequest;

/// The number of agents that may be at work at once.
const SLOTS: usize = 8;

/// The result of the start of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    Works,
    Fails,
    Panics,
    /// It works once the test says so.
    Waits,
}

/// Threads that do nothing.
struct Threads {
    worktrees: Arc<Worktrees>,
    /// Those that run, by id, with the handle that a session would hold.
    running: Mutex<BTreeMap<ThreadId, Arc<dyn ThreadAgents>>>,
    begun: Notify,
    go_on: Notify,
}

impl Default for Threads {
    fn default() -> Self {
        // Nothing is written there, because no agent is isolated.
        let worktrees = Arc::new(Worktrees::new(&codex_config::Home::at("/nonexistent")));
        Self { worktrees, running: Mutex::default(), begun: Notify::new(), go_on: Notify::new() }
    }
}

struct Host {
    start: Start,
    threads: Arc<Threads>,
}

impl ChildHost for Host {
    fn start(&self, child: ChildStart) -> BoxFuture<'static, Result<ChildStarted, String>> {
        let (start, threads) = (self.start, Arc::clone(&self.threads));
        Box::pin(async move {
            threads.begun.notify_one();
            match start {
                Start::Works => {}
                Start::Fails => return Err("the disk is full".to_owned()),
                Start::Panics => panic!("a fault of the test"),
                Start::Waits => threads.go_on.notified().await,
            }
            threads.running.lock().unwrap().insert(child.thread, Arc::clone(&child.agents));
            Ok(ChildStarted::default())
        })
    }

    fn close(&self, thread: ThreadId) -> BoxFuture<'static, ()> {
        let gone = self.threads.running.lock().unwrap().remove(&thread);
        Box::pin(async move { drop(gone) })
    }

    fn worktrees(&self) -> Arc<Worktrees> {
        Arc::clone(&self.threads.worktrees)
    }

    fn stored(&self, _: ThreadId, _: ThreadId) -> Option<StoredChild> {
        None
    }

    fn stored_events(&self, _: ThreadId, _: i64, _: usize) -> Vec<codex_log::Event> {
        Vec::new()
    }
}

/// A tree whose root is the test.
struct Fixture {
    sender: mpsc::UnboundedSender<Message>,
    mailbox: Arc<Mailbox>,
    threads: Arc<Threads>,
    shared: Arc<Shared>,
}

impl Fixture {
    fn new(start: Start) -> Self {
        let options = Options::with_nine_tools();
        let threads = Arc::<Threads>::default();
        let host = Arc::new(Host { start, threads: Arc::clone(&threads) });
        let shared = Arc::new(Shared::new(options, host));
        let mailbox = Arc::<Mailbox>::default();
        let root = Root {
            thread: ThreadId::fresh(),
            agents: AgentsState::default(),
            settings: Arc::new(Settings::of_folder("/".into())),
            mailbox: Arc::clone(&mailbox),
            has_turn: true,
        };
        let sender = TreeTask::spawn(root, Arc::clone(&shared));
        Self { sender, mailbox, threads, shared }
    }

    fn call(&self) -> oneshot::Receiver<CallReply> {
        let (thread, origin, prompt) = (ThreadId::fresh(), SubagentOrigin::Spawn, Some("look".to_owned()));
        let new = SpawnRequest { thread, origin, prompt, label: None, task: None, role: None };
        self.ask(Request::Spawn(new), Some(details()))
    }

    fn ask(&self, request: Request, details: Option<Details>) -> oneshot::Receiver<CallReply> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = CallNumber(NEXT.fetch_add(1, Ordering::Relaxed));
        let (reply, answer) = oneshot::channel();
        let (caller, details) = (AgentId::ROOT, details.map(Box::new));
        self.sender.send(Message::Call { caller, request, details, reply, number }).expect("the tree runs");
        answer
    }

    /// Reads the log of the root up to the first event of a kind.
    async fn told(&self, is_it: impl Fn(&AgentEvent) -> bool) {
        loop {
            let AgentOrder::Log(bodies) = self.mailbox.next_order().await else { continue };
            let is_found = bodies.iter().any(|body| matches!(body, Body::Agent(event) if is_it(event)));
            if is_found {
                return;
            }
        }
    }

    async fn close(&self) {
        let (reply, closed) = oneshot::channel();
        self.sender.send(Message::Close(reply)).expect("the tree runs");
        closed.await.expect("the tree ends");
    }

    fn running(&self) -> BTreeSet<ThreadId> {
        self.threads.running.lock().unwrap().keys().copied().collect()
    }
}

fn is_deleted(event: &AgentEvent) -> bool {
    matches!(event, AgentEvent::Lifecycle(SubagentLifecycleEvent::Deleted(_)))
}

#[tokio::test]
async fn a_start_that_fails_is_reported_and_leaves_no_slot_taken() {
    let tree = Fixture::new(Start::Fails);
    for _ in 0..=SLOTS {
        let error = tree.call().await.expect("there is a reply").expect_err("it did not start");
        assert_eq!(error.to_string(), "subagent failed to start: the disk is full");
        tree.told(is_deleted).await;
    }
    tree.close().await;
}

#[tokio::test]
async fn a_start_that_panics_is_reported_and_leaves_no_slot_taken() {
    let tree = Fixture::new(Start::Panics);
    for _ in 0..=SLOTS {
        let error = tree.call().await.expect("there is a reply").expect_err("it did not start");
        assert_eq!(error.to_string(), "subagent failed to start: its start was cut off by a fault");
        tree.told(is_deleted).await;
    }
    tree.close().await;
}

#[tokio::test]
async fn an_agent_whose_thread_is_lost_has_failed_and_its_parent_is_told() {
    let tree = Fixture::new(Start::Works);
    for _ in 0..=SLOTS {
        tree.call().await.expect("there is a reply").expect("it starts");
        tree.told(|event| {
            matches!(event, AgentEvent::Lifecycle(SubagentLifecycleEvent::Status(change))
                if change.status == SubagentStatus::Running)
        })
        .await;
        // A session that panics drops its handle.
        tree.threads.running.lock().unwrap().clear();
        tree.told(|event| {
            let AgentEvent::Mail(mail) = event else { return false };
            matches!(&mail.completion, Some(SubagentCompletion::Failed { message }) if message == "its thread has ended")
        })
        .await;
    }
    tree.close().await;
    assert_eq!(tree.shared.active.load(Ordering::Relaxed), 0);
}

/// The thread that was closed tells of its end while it is started again.
#[tokio::test]
async fn an_agent_that_was_closed_can_be_opened_again_at_once() {
    let tree = Fixture::new(Start::Works);
    let Ok(Reply::Agent(agent)) = tree.call().await.expect("there is a reply") else { panic!("it starts") };
    let (id, thread) = (agent.summary.agent_id, agent.summary.session_id);
    let closed = tree.ask(Request::Close(id), None);
    let opened = tree.ask(Request::Reopen(id), None);
    closed.await.expect("there is a reply").expect("it closes");
    opened.await.expect("there is a reply").expect("it opens again");
    assert_eq!(tree.running(), BTreeSet::from([thread]));
    tree.close().await;
    assert_eq!(tree.running(), BTreeSet::new());
}

#[tokio::test]
async fn a_thread_that_starts_while_the_root_ends_is_ended_too() {
    let tree = Fixture::new(Start::Waits);
    let answer = tree.call();
    tree.threads.begun.notified().await;
    let (reply, closed) = oneshot::channel();
    tree.sender.send(Message::Close(reply)).expect("the tree runs");
    tree.threads.go_on.notify_one();
    closed.await.expect("the tree ends");
    assert_eq!(tree.running(), BTreeSet::new(), "no thread is left");
    // Either reply is right; none would leave the caller waiting.
    drop(answer.await);
    assert!(tree.call_after_close().await);
}

impl Fixture {
    /// Whether a call of a tree that has ended gets no reply but an end.
    async fn call_after_close(&self) -> bool {
        let (reply, answer) = oneshot::channel::<CallReply>();
        let request = Request::List { all: false };
        let call = Message::Call { caller: AgentId::ROOT, request, details: None, reply, number: CallNumber(0) };
        drop(self.sender.send(call));
        answer.await.is_err()
    }
}

fn details() -> Details {
    Details {
        settings: Arc::new(Settings::of_folder("/".into())),
        role: None,
        nickname: None,
        instructions: None,
        fork: None,
        isolation: None,
    }
}
