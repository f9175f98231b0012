//! The task that owns a tree: it feeds the machine and performs its effects.

mod isolated;
mod launching;
mod policies;
mod sharing;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use codex_config::AgentIsolation;
use codex_log::agents::{AgentEvent, AgentsState};
use codex_log::item::AgentActivity;
use codex_log::settings::Settings;
use codex_log::{Body, ItemId};
use codex_tools::agents::{ChildHistory, ChildHost, ChildStart, ChildStarted};
use codex_tools::worktrees::{RecordFate, Report, Worktrees};
use codex_wire::agent::{AgentActivityKind, AgentId, SubagentCompletion, SubagentOrigin};
use codex_wire::budget::Used;
use codex_wire::ids::ThreadId;
use codex_wire::rollout::ThreadSpawn;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::launching::Launching;
use crate::call::activity_bodies;
use crate::clock::now_ms;
use crate::handle::AgentHandle;
use crate::mailbox::{InboxMessage, Mailbox};
use crate::options::{Options, ToolSet};
use crate::recent_events::RecentEvents;
use crate::tree::{AgentError, CallNumber, Effect, Input, Launch, Reply, Request, Tree};
use crate::writers::Writers;

/// The time limit for the threads of agents to end.
const CLOSING_TIME: Duration = Duration::from_secs(8);
/// The time limit for a thread to share its history. After that the history is read.
const SHARING_TIME: Duration = Duration::from_secs(5);
/// The longest sleep, so that a clock that was changed is noticed.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// The end of a thread, with what there is to tell about it.
type ThreadEnd = futures_util::future::Shared<BoxFuture<'static, Option<String>>>;

pub(crate) type CallReply = Result<Reply, AgentError>;

/// A message to the task.
pub(crate) enum Message {
    Input(Input),
    /// An input from the thread of an agent, with the mailbox that the thread was started with.
    FromThread {
        agent: AgentId,
        mailbox: Arc<Mailbox>,
        input: Input,
    },
    /// A call, with the details of the agent that it starts.
    Call {
        caller: AgentId,
        request: Request,
        details: Option<Box<Details>>,
        reply: oneshot::Sender<CallReply>,
        number: CallNumber,
    },
    /// The thread of an agent has started, or could not.
    Launched {
        agent: AgentId,
        thread: ThreadId,
        result: Result<ChildStarted, String>,
    },
    /// The settings of an agent have changed, or are known now.
    Settings(AgentId, Arc<Settings>),
    /// An agent has written files.
    Wrote(AgentId, Vec<PathBuf>),
    /// An agent has used this much more.
    Used(AgentId, Used),
    /// The changes of an isolated agent whose turn is over.
    Reported(AgentId, Option<Report>),
    /// End all agents below the root, and return the last events for its log.
    Close(oneshot::Sender<Vec<Body>>),
}

/// The details of a new agent that the machine need not know.
#[derive(Debug, Clone)]
pub(crate) struct Details {
    pub(crate) settings: Arc<Settings>,
    pub(crate) role: Option<String>,
    pub(crate) nickname: Option<String>,
    pub(crate) instructions: Option<String>,
    pub(crate) fork: Option<ForkDetails>,
    pub(crate) isolation: Option<AgentIsolation>,
}

/// The history of an agent that begins with a copy of its parent's.
#[derive(Debug, Clone)]
pub(crate) struct ForkDetails {
    /// The call that forks.
    pub(crate) call_id: String,
    /// The output of the call that the child sees.
    pub(crate) output: String,
    /// Only its last turns, if a number is given.
    pub(crate) turns: Option<usize>,
}

/// Everything that the agents of a tree share.
pub(crate) struct Shared {
    pub(crate) host: Arc<dyn ChildHost>,
    pub(crate) options: Options,
    /// The tools of the tree, once they are chosen.
    pub(crate) chosen_tools: OnceLock<ToolSet>,
    pub(crate) active: AtomicUsize,
    /// The newest events of agents, by thread.
    pub(crate) rings: Mutex<HashMap<ThreadId, Arc<RecentEvents>>>,
    /// The nicknames of agents, by thread.
    pub(crate) nicknames: Mutex<HashMap<ThreadId, String>>,
    pub(crate) worktrees: Arc<Worktrees>,
}

impl Shared {
    pub(crate) fn new(options: Options, host: Arc<dyn ChildHost>) -> Self {
        let (rings, nicknames, worktrees) = (Mutex::default(), Mutex::default(), host.worktrees());
        Self { host, options, chosen_tools: OnceLock::new(), active: AtomicUsize::new(0), rings, nicknames, worktrees }
    }

    pub(crate) fn tool_set(&self) -> ToolSet {
        self.chosen_tools.get().copied().unwrap_or_else(|| self.options.choose(None, None))
    }

    pub(crate) fn ring(&self, thread: ThreadId) -> Arc<RecentEvents> {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(rings.entry(thread).or_default())
    }

    pub(crate) fn nickname(&self, thread: ThreadId) -> Option<String> {
        self.nicknames.lock().unwrap_or_else(PoisonError::into_inner).get(&thread).cloned()
    }
}

/// The root as the task needs it.
pub(crate) struct Root {
    pub(crate) thread: ThreadId,
    pub(crate) agents: AgentsState,
    pub(crate) settings: Arc<Settings>,
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) has_turn: bool,
}

pub(crate) struct TreeTask {
    tree: Tree,
    root: ThreadId,
    shared: Arc<Shared>,
    sender: mpsc::UnboundedSender<Message>,
    inbox: mpsc::UnboundedReceiver<Message>,
    mailboxes: BTreeMap<AgentId, Arc<Mailbox>>,
    threads: BTreeMap<AgentId, ThreadId>,
    details: BTreeMap<AgentId, Details>,
    settings: BTreeMap<AgentId, Arc<Settings>>,
    calls: HashMap<CallNumber, oneshot::Sender<CallReply>>,
    /// The threads that are being started, and whether they are to be ended at once.
    starting: BTreeMap<AgentId, Arc<AtomicBool>>,
    /// The threads that start or end, with what there is to tell about it.
    closing: JoinSet<Option<String>>,
    /// The ends of turns whose changes are being looked at, and what has followed them.
    held: BTreeMap<AgentId, Vec<Input>>,
    writers: Writers,
    /// The ends of threads that may be opened again.
    closed: HashMap<ThreadId, ThreadEnd>,
}

impl TreeTask {
    /// Starts the task of a tree, and returns the way to it.
    pub(crate) fn spawn(root: Root, shared: Arc<Shared>) -> mpsc::UnboundedSender<Message> {
        let (sender, inbox) = mpsc::unbounded_channel();
        let own = sender.clone();
        tokio::spawn(async move {
            let task = Self::open(root, shared, own, inbox).await;
            Box::new(task).run().await;
        });
        sender
    }

    async fn open(
        root: Root,
        shared: Arc<Shared>,
        sender: mpsc::UnboundedSender<Message>,
        inbox: mpsc::UnboundedReceiver<Message>,
    ) -> Self {
        let Root { thread, agents, settings, mailbox, has_turn } = root;
        let limits = shared.options.limits(shared.tool_set());
        let (tree, effects) = if agents.is_empty() {
            (Tree::new(thread, limits), Vec::new())
        } else {
            let reader = Arc::clone(&shared.host);
            let resume = move || {
                let mut read = |thread, parent| reader.stored(thread, parent);
                Tree::resume(thread, limits, &agents, &mut read, now_ms())
            };
            let resumed = tokio::task::spawn_blocking(resume).await;
            resumed.unwrap_or_else(|_| (Tree::new(thread, limits), Vec::new()))
        };
        let threads = tree.agents().map(|agent| (agent.id(), agent.thread())).collect();
        let mut task = Self {
            tree,
            root: thread,
            shared,
            sender,
            inbox,
            mailboxes: BTreeMap::from([(AgentId::ROOT, mailbox)]),
            threads,
            details: BTreeMap::new(),
            settings: BTreeMap::from([(AgentId::ROOT, settings)]),
            calls: HashMap::new(),
            starting: BTreeMap::new(),
            closing: JoinSet::new(),
            held: BTreeMap::new(),
            writers: Writers::default(),
            closed: HashMap::new(),
        };
        task.perform(effects);
        if has_turn {
            task.step(Input::TurnStarted { agent: AgentId::ROOT });
        }
        task
    }

    async fn run(mut self: Box<Self>) {
        loop {
            let due = self.tree.due_ms().map(|due| Duration::from_millis(u64::try_from(due - now_ms()).unwrap_or(0)));
            tokio::select! {
                message = self.inbox.recv() => match message {
                    Some(Message::Close(reply)) => return self.close(reply).await,
                    Some(message) => self.take(message),
                    None => return,
                },
                Some(left) = self.closing.join_next() => self.warn(left.ok().flatten()),
                () = sleep(due.unwrap_or_default().min(LONGEST_SLEEP)), if due.is_some() => self.step(Input::Tick),
            }
            self.closed.retain(|_, closed| closed.peek().is_none());
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Input(input) => self.arrive(input),
            Message::FromThread { agent, mailbox, input } => {
                // A thread that was closed tells of its end, perhaps while it is being started again.
                if self.mailboxes.get(&agent).is_some_and(|current| Arc::ptr_eq(current, &mailbox)) {
                    self.arrive(input);
                }
            }
            Message::Reported(agent, report) => self.reported(agent, report),
            Message::Wrote(agent, files) => self.wrote(agent, &files),
            Message::Used(agent, used) => self.used(agent, used),
            // The caller was stopped before it could wait.
            Message::Call { request: Request::Await(_), reply, .. } if reply.is_closed() => {}
            Message::Call { caller, request, details, reply, number } => {
                self.calls.insert(number, reply);
                if let (Request::Spawn(_), Some(details)) = (&request, details) {
                    self.details.insert(AgentId(self.tree.numbers().next_agent_id), *details);
                }
                self.step(Input::Call { caller, call: number, request });
            }
            Message::Launched { agent, thread, result } => {
                let is_started = result.is_ok();
                self.step(Input::Launched { agent, result });
                // One that was closed, deleted or lost meanwhile is not needed.
                if is_started && self.tree.agent(agent).is_none_or(|agent| !agent.is_loaded()) {
                    self.closing.spawn(self.shared.host.close(thread).map(|()| None));
                }
            }
            Message::Settings(agent, settings) => self.settings_changed(agent, &settings),
            Message::Close(_) => {}
        }
    }

    fn step(&mut self, input: Input) {
        // The message that a caller was stopped may still be on its way. Nothing is told to it in the meantime.
        let stopped: Vec<CallNumber> =
            self.calls.iter().filter(|(_, reply)| reply.is_closed()).map(|(call, _)| *call).collect();
        for call in stopped {
            self.take_input(Input::CallDropped(call));
        }
        self.take_input(input);
    }

    fn take_input(&mut self, input: Input) {
        match &input {
            Input::CallDropped(call) => _ = self.calls.remove(call),
            Input::TurnStarted { agent } => self.writers.begin_turn(*agent),
            Input::Launched { agent, .. } => _ = self.starting.remove(agent),
            _ => {}
        }
        let effects = self.tree.step(now_ms(), input);
        self.perform(effects);
        self.shared.active.store(self.tree.active(), Ordering::Relaxed);
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Launch { agent, how } => self.launch(agent, how),
                Effect::Tell { log, events } => {
                    if let Some(mailbox) = self.mailboxes.get(&log) {
                        let activities: Vec<_> = events.iter().filter_map(|event| self.activity(event)).collect();
                        mailbox.log(events.into_iter().map(|event| Body::Agent(Arc::new(event))));
                        for activity in &activities {
                            mailbox.show(activity_bodies(activity));
                        }
                    }
                }
                Effect::Deliver { agent, mail } => {
                    let sender = self.tree.agent(mail.message.sender_agent_id).map(Into::into);
                    if let Some(mailbox) = self.mailboxes.get(&agent) {
                        mailbox.deliver(InboxMessage { mail, sender });
                    }
                }
                Effect::Withdraw { agent, mail } => {
                    if let Some(mailbox) = self.mailboxes.get(&agent) {
                        mailbox.withdraw(&mail);
                    }
                }
                Effect::Wake { agent } => self.mailbox(agent, Mailbox::wake),
                Effect::Stop { agent } => self.mailbox(agent, Mailbox::stop),
                Effect::Close { agent } => self.end_thread(agent),
                Effect::Reply { call, reply } => {
                    if let Some(waiting) = self.calls.remove(&call) {
                        // A caller that was stopped does not wait any more.
                        let _: Result<(), CallReply> = waiting.send(reply);
                    }
                }
            }
        }
    }

    /// The end of a task as an item, for clients of the tools with paths.
    fn activity(&self, event: &AgentEvent) -> Option<Arc<AgentActivity>> {
        let AgentEvent::Result(result) = event else { return None };
        let agent = self.tree.agent(result.agent_id).filter(|_| self.shared.tool_set() == ToolSet::Paths)?;
        let kind = match result.completion {
            SubagentCompletion::Completed { .. } | SubagentCompletion::Failed { .. } => AgentActivityKind::Completed,
            SubagentCompletion::Canceled { .. } => AgentActivityKind::Interrupted,
        };
        let id = ItemId::new(ThreadId::fresh().to_string());
        let (thread, path) = (agent.thread(), agent.path.clone());
        Some(Arc::new(AgentActivity { id, kind, thread, path, model: None, effort: None }))
    }

    fn mailbox(&self, agent: AgentId, order: impl FnOnce(&Mailbox)) {
        if let Some(mailbox) = self.mailboxes.get(&agent) {
            order(mailbox);
        }
    }

    fn launch(&mut self, agent: AgentId, how: Launch) {
        let Some(found) = self.tree.agent(agent) else { return };
        let (thread, depth, path) = (found.thread(), found.depth, found.summary.agent_path.clone());
        // A copy has the tools of its parent, because its requests begin with the same bytes.
        let tools_depth = if found.summary.origin == SubagentOrigin::Fork { depth.saturating_sub(1) } else { depth };
        let parent = found.summary.parent_agent_id.unwrap_or(AgentId::ROOT);
        let root = || self.settings.get(&AgentId::ROOT);
        let Some(above) = self.settings.get(&parent).or_else(root).cloned() else { return };
        let own = self.details.get(&agent).map(|details| &details.settings).or_else(|| self.settings.get(&agent));
        // The parent may have got narrower policies since the call.
        let settings = Arc::new(own.unwrap_or(&above).tightened_by(&above));
        let mailbox = Arc::new(Mailbox::default());
        self.mailboxes.insert(agent, Arc::clone(&mailbox));
        self.threads.insert(agent, thread);
        self.settings.insert(agent, Arc::clone(&settings));
        let details = self.details.remove(&agent);
        let (fork, role, nickname, instructions, isolation) = match details {
            Some(Details { fork, role, nickname, instructions, isolation, .. }) => {
                (fork, role, nickname, instructions, isolation)
            }
            None => (None, None, None, None, None),
        };
        if let Some(nickname) = &nickname {
            let mut known = self.shared.nicknames.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(thread, nickname.clone());
        }
        let history = match (how, fork) {
            (Launch::Fork, Some(ForkDetails { call_id, output, turns })) => {
                ChildHistory::Fork { call_id, output, turns, shared: None }
            }
            (Launch::Resume, _) => ChildHistory::Resume,
            (Launch::Empty | Launch::Fork, _) => ChildHistory::Empty,
        };
        let parent_thread = self.threads.get(&parent).copied().unwrap_or(self.root);
        let spawn = ThreadSpawn {
            parent_thread_id: parent_thread,
            depth: i64::from(depth),
            agent_path: path,
            agent_nickname: nickname,
            agent_role: role,
        };
        let folder = isolated::Folder::of(isolation, found, how, &above);
        let (sender, shared, root) = (self.sender.clone(), Arc::clone(&self.shared), self.root);
        let agents = Arc::new(AgentHandle::child(agent, thread, tools_depth, mailbox, sender, shared));
        let child = ChildStart { thread, history, settings, root, spawn, instructions, agents, isolated_from: None };
        self.start(agent, child, parent, folder);
    }

    /// Starts the thread of an agent. A copy of its parent's history is shared by the parent.
    fn start(&mut self, agent: AgentId, mut child: ChildStart, parent: AgentId, folder: isolated::Folder) {
        let (host, thread, worktrees) =
            (Arc::clone(&self.shared.host), child.thread, Arc::clone(&self.shared.worktrees));
        let is_fork = matches!(child.history, ChildHistory::Fork { .. });
        let sharing = self.mailboxes.get(&parent).filter(|_| is_fork).map(|mailbox| mailbox.share());
        let is_unwanted = Arc::new(AtomicBool::new(false));
        self.starting.insert(agent, Arc::clone(&is_unwanted));
        let launching = Launching { agent, thread, sender: self.sender.clone(), result: None };
        let closed = self.closed.remove(&thread);
        self.closing.spawn(async move {
            // A thread that is opened again has to have ended before.
            if let Some(closed) = closed {
                closed.await;
            }
            if let (Some(sharing), ChildHistory::Fork { shared, .. }) = (sharing, &mut child.history) {
                *shared = timeout(SHARING_TIME, sharing).await.ok().and_then(Result::ok).flatten();
            }
            let result = isolated::start(child, folder, Arc::clone(&worktrees), Arc::clone(&host)).await;
            let is_ended = result.is_ok() && is_unwanted.load(Ordering::SeqCst);
            launching.tell(result);
            if !is_ended {
                return None;
            }
            // Its tree has ended it while it was starting.
            host.close(thread).await;
            isolated::remove(thread, RecordFate::Removed, worktrees).await
        });
    }

    fn end_thread(&mut self, agent: AgentId) {
        if let Some(is_unwanted) = self.starting.remove(&agent) {
            is_unwanted.store(true, Ordering::SeqCst);
        }
        self.mailboxes.remove(&agent);
        self.settings.remove(&agent);
        if let Some(thread) = self.threads.remove(&agent) {
            self.shared.rings.lock().unwrap_or_else(PoisonError::into_inner).remove(&thread);
            self.shared.nicknames.lock().unwrap_or_else(PoisonError::into_inner).remove(&thread);
            let (closing, worktrees) = (self.shared.host.close(thread), Arc::clone(&self.shared.worktrees));
            // One that is still known may be opened again.
            let is_kept = self.tree.is_closing() || self.tree.agent(agent).is_some();
            let fate = if is_kept { RecordFate::Kept } else { RecordFate::Removed };
            let ended = async move {
                closing.await;
                isolated::remove(thread, fate, worktrees).await
            };
            let ended = ended.boxed().shared();
            self.closing.spawn(ended.clone());
            self.closed.insert(thread, ended);
        }
    }

    /// Warns the user.
    fn warn(&self, message: Option<String>) {
        if let (Some(message), Some(mailbox)) = (message, self.mailboxes.get(&AgentId::ROOT)) {
            mailbox.log(std::iter::once(Body::Warning { message }));
        }
    }

    async fn close(mut self: Box<Self>, reply: oneshot::Sender<Vec<Body>>) {
        self.release_held();
        self.step(Input::Close);
        let mut told = Vec::new();
        let ended = async {
            while let Some(left) = self.closing.join_next().await {
                told.extend(left.ok().flatten());
            }
            told.extend(isolated::remove_all(Arc::clone(&self.shared.worktrees)).await);
        };
        // A thread that does not end in time is abandoned, like any other.
        let _: Result<(), _> = timeout(CLOSING_TIME, ended).await;
        let mut last = self.mailboxes.get(&AgentId::ROOT).map(|mailbox| mailbox.take_log()).unwrap_or_default();
        last.extend(told.into_iter().map(|message| Body::Warning { message }));
        let _: Result<(), Vec<Body>> = reply.send(last);
    }
}

#[cfg(test)]
mod end_tests;
#[cfg(test)]
mod tests;
