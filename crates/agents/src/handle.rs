//! One agent as its thread holds it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use codex_config::{Config, Home};
use codex_log::agents::AgentsState;
use codex_log::settings::Settings;
use codex_log::{Body, Event, Outcome};
use codex_tools::agents::{AgentOrder, AgentTrees, ChildHost, MailTime, ThreadAgents, Unread};
use codex_tools::registry::{Tool, ToolSource};
use codex_wire::agent::{AgentId, MultiAgentVersion};
use codex_wire::budget::Used;
use codex_wire::ids::ThreadId;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::header::HeaderFinder;
use crate::mailbox::{InboxMessage, Mailbox};
use crate::options::{Options, ToolSet};
use crate::task::{CallReply, Details, Message, Root, Shared, TreeTask};
use crate::tree::{AgentError, CallNumber, Input, Request, TurnEnd};
use crate::{applying, namespace, path_tools, subagent_tools, unread_messages};

/// The time limit for the end of a tree.
const CLOSING_TIME: Duration = Duration::from_secs(10);

/// Runs trees of agents in this process.
#[derive(Debug, Default)]
pub struct LocalTrees;

impl AgentTrees for LocalTrees {
    fn open(
        &self,
        config: &Config,
        home: &Home,
        is_offered: bool,
        host: Arc<dyn ChildHost>,
    ) -> Option<Arc<dyn ThreadAgents>> {
        let options = Options::of(config, home, is_offered)?;
        let shared = Arc::new(Shared::new(options, host));
        let way = Way::Root { known: Box::default(), sender: OnceLock::new() };
        Some(Arc::new(AgentHandle::new(AgentId::ROOT, 0, Arc::default(), way, shared)))
    }
}

/// One agent as its thread holds it. The thread is gone when it is dropped.
pub(crate) struct AgentHandle {
    inner: Arc<Inner>,
}

/// One agent as its tools hold it.
pub(crate) struct Inner {
    pub(crate) agent: AgentId,
    depth: u32,
    mailbox: Arc<Mailbox>,
    way: Way,
    pub(crate) shared: Arc<Shared>,
    header: Mutex<HeaderFinder>,
    thread: OnceLock<ThreadId>,
}

/// The way to the task of the tree.
enum Way {
    Child(mpsc::UnboundedSender<Message>),
    /// The task of a root starts when it is first needed.
    Root {
        known: Box<Mutex<Known>>,
        sender: OnceLock<mpsc::UnboundedSender<Message>>,
    },
}

/// The state of a root before its task starts.
#[derive(Default)]
struct Known {
    agents: AgentsState,
    settings: Option<Arc<Settings>>,
    has_turn: bool,
}

impl AgentHandle {
    fn new(agent: AgentId, depth: u32, mailbox: Arc<Mailbox>, way: Way, shared: Arc<Shared>) -> Self {
        let (header, thread) = (Mutex::default(), OnceLock::new());
        Self { inner: Arc::new(Inner { agent, depth, mailbox, way, shared, header, thread }) }
    }

    pub(crate) fn child(
        agent: AgentId,
        thread: ThreadId,
        depth: u32,
        mailbox: Arc<Mailbox>,
        sender: mpsc::UnboundedSender<Message>,
        shared: Arc<Shared>,
    ) -> Self {
        let handle = Self::new(agent, depth, mailbox, Way::Child(sender), shared);
        let _: Result<(), ThreadId> = handle.inner.thread.set(thread);
        handle
    }
}

impl fmt::Debug for AgentHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AgentHandle").field("agent", &self.inner.agent).finish_non_exhaustive()
    }
}

impl Drop for AgentHandle {
    fn drop(&mut self) {
        let Some(sender) = self.inner.running() else { return };
        let gone = match &self.inner.way {
            Way::Child(_) => self.inner.message(Input::Lost { agent: self.inner.agent }),
            Way::Root { .. } => Message::Close(oneshot::channel().0),
        };
        let _: Result<(), _> = sender.send(gone);
    }
}

impl Inner {
    pub(crate) fn thread(&self) -> ThreadId {
        self.thread.get().copied().unwrap_or_else(ThreadId::unknown)
    }

    /// Calls the tree. The reply may take as long as the call says.
    pub(crate) fn call(&self, request: Request, details: Option<Details>) -> PendingCall {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = CallNumber(NEXT.fetch_add(1, Ordering::Relaxed));
        let (reply, answer) = oneshot::channel();
        let sender = self.sender().clone();
        let details = details.map(Box::new);
        let _: Result<(), _> = sender.send(Message::Call { caller: self.agent, request, details, reply, number });
        PendingCall { number, answer, sender, is_over: false }
    }

    /// The way to the task, if it runs.
    fn running(&self) -> Option<&mpsc::UnboundedSender<Message>> {
        match &self.way {
            Way::Child(sender) => Some(sender),
            Way::Root { sender, .. } => sender.get(),
        }
    }

    /// The way to the task, which is started if need be.
    fn sender(&self) -> &mpsc::UnboundedSender<Message> {
        match &self.way {
            Way::Child(sender) => sender,
            Way::Root { known, sender } => sender.get_or_init(|| {
                let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
                let thread = self.thread();
                let settings = known.settings.clone().unwrap_or_else(|| Arc::new(Settings::of_folder("/".into())));
                let root = Root {
                    thread,
                    agents: std::mem::take(&mut known.agents),
                    settings,
                    mailbox: Arc::clone(&self.mailbox),
                    has_turn: known.has_turn,
                };
                TreeTask::spawn(root, Arc::clone(&self.shared))
            }),
        }
    }

    fn message(&self, input: Input) -> Message {
        Message::FromThread { agent: self.agent, mailbox: Arc::clone(&self.mailbox), input }
    }

    fn tell(&self, input: Input) {
        if let Some(sender) = self.running() {
            let _: Result<(), _> = sender.send(self.message(input));
        }
    }

    /// Tells the tree about the files that a thread has written.
    fn note_files(&self, event: &Event) {
        let Some(sender) = self.running() else { return };
        let files = codex_tools::written_files(&event.body);
        if !files.is_empty() {
            let _: Result<(), _> = sender.send(Message::Wrote(self.agent, files));
        }
    }

    fn turn_changed(&self, has_turn: bool) {
        self.mailbox.turn_changed(has_turn);
        if let Way::Root { known, .. } = &self.way {
            known.lock().unwrap_or_else(PoisonError::into_inner).has_turn = has_turn;
        }
    }
}

/// A call of the tree that waits for its reply. Dropping it tells the tree.
pub(crate) struct PendingCall {
    number: CallNumber,
    answer: oneshot::Receiver<CallReply>,
    sender: mpsc::UnboundedSender<Message>,
    is_over: bool,
}

impl PendingCall {
    pub(crate) async fn reply(mut self) -> CallReply {
        let reply = (&mut self.answer).await;
        self.is_over = true;
        reply.unwrap_or(Err(AgentError::Closing))
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        if !self.is_over {
            let _: Result<(), _> = self.sender.send(Message::Input(Input::CallDropped(self.number)));
        }
    }
}

impl ToolSource for AgentHandle {
    fn version(&self) -> u64 {
        u64::from(self.inner.shared.chosen_tools.get().is_some())
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        // An agent at the bottom can start no others, but may answer those above.
        let tools = self.inner.shared.tool_set();
        let is_leaf = self.inner.depth >= self.inner.shared.options.limits(tools).depth;
        let offered = match tools {
            ToolSet::Off => Vec::new(),
            ToolSet::Subagents => subagent_tools::tools(&self.inner, is_leaf),
            ToolSet::Paths => path_tools::tools(&self.inner, is_leaf),
            ToolSet::Namespace if is_leaf => Vec::new(),
            ToolSet::Namespace => namespace::tools(&self.inner),
        };
        let applying = (!is_leaf && tools != ToolSet::Off).then(|| applying::tool(&self.inner));
        offered.into_iter().chain(applying).collect()
    }
}

impl ThreadAgents for AgentHandle {
    fn settle_version(
        &self,
        stored: Option<MultiAgentVersion>,
        of_model: Option<MultiAgentVersion>,
    ) -> Option<MultiAgentVersion> {
        let shared = &self.inner.shared;
        shared.chosen_tools.get_or_init(|| shared.options.choose(stored, of_model)).version()
    }

    fn attach(&self, thread: ThreadId, agents: &AgentsState, settings: &Arc<Settings>) {
        let _: Result<(), ThreadId> = self.inner.thread.set(thread);
        match &self.inner.way {
            Way::Root { known, .. } => {
                let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
                known.settings = Some(Arc::clone(settings));
                known.agents = agents.clone();
                drop(known);
                if !agents.is_empty() {
                    self.inner.sender();
                }
            }
            Way::Child(sender) => {
                let _: Result<(), _> = sender.send(Message::Settings(self.inner.agent, Arc::clone(settings)));
            }
        }
    }

    fn role(&self) -> (&'static str, &'static str) {
        let is_told = self.inner.shared.tool_set() == ToolSet::Subagents;
        match self.inner.agent {
            AgentId::ROOT => ("AGENTS.root.md", if is_told { subagent_tools::ROOT_INSTRUCTIONS } else { "" }),
            _ => ("AGENTS.subagent.md", if is_told { subagent_tools::CHILD_INSTRUCTIONS } else { "" }),
        }
    }

    fn next_order(&self) -> BoxFuture<'_, AgentOrder> {
        Box::pin(self.inner.mailbox.next_order())
    }

    fn has_mail(&self) -> bool {
        self.inner.mailbox.has_mail()
    }

    fn goes_on(&self) -> bool {
        let shared = &self.inner.shared;
        let wakes = self.inner.agent != AgentId::ROOT || shared.options.limits(shared.tool_set()).wakes_root;
        wakes && self.inner.mailbox.has_work()
    }

    fn take_mail(&self, agents: &AgentsState, when: MailTime) -> Vec<Unread> {
        let is_wanted = |message: &InboxMessage| {
            when == MailTime::BeforeRequest || unread_messages::is_call(message, self.inner.agent, &self.inner.shared)
        };
        let (known, new): (Vec<_>, Vec<_>) = self
            .inner
            .mailbox
            .take_mail(is_wanted)
            .into_iter()
            .partition(|message| agents.read.contains(&message.mail.id));
        let all = known.iter().chain(&new).map(|message| message.mail.id).collect::<Vec<_>>();
        if !all.is_empty() {
            self.inner.tell(Input::Read { agent: self.inner.agent, mail: all });
        }
        unread_messages::grouped(new, self.inner.agent, &self.inner.shared)
    }

    fn heard(&self) {
        self.inner.tell(Input::Heard { agent: self.inner.agent });
    }

    fn rested(&self) {
        self.inner.tell(Input::Rested { agent: self.inner.agent });
    }

    fn observe(&self, event: &Event) {
        let inner = &self.inner;
        let agent = inner.agent;
        match &event.body {
            Body::TurnStarted { .. } => {
                inner.turn_changed(true);
                inner.tell(Input::TurnStarted { agent });
            }
            Body::TurnEnded(outcome) => {
                inner.turn_changed(false);
                let end = match outcome {
                    Outcome::Completed { last_message, .. } => {
                        TurnEnd::Completed { last_message: last_message.as_ref().map(|text| text.as_str().to_owned()) }
                    }
                    Outcome::Aborted(_) => TurnEnd::Aborted,
                    Outcome::Failed(failure) => TurnEnd::Failed { message: failure.message.clone() },
                };
                inner.tell(Input::TurnEnded { agent, end });
            }
            _ => {}
        }
        inner.note_files(event);
        if agent == AgentId::ROOT {
            return;
        }
        inner.shared.ring(inner.thread()).push(event);
        let found = inner.header.lock().unwrap_or_else(PoisonError::into_inner).see(&event.body);
        if let Some(header) = found {
            inner.tell(Input::Header { agent, header });
        }
    }

    fn charge(&self, used: Used) {
        if let Some(sender) = self.inner.running() {
            let _: Result<(), _> = sender.send(Message::Used(self.inner.agent, used));
        }
    }

    fn settings_changed(&self, settings: &Arc<Settings>) {
        if let Way::Root { known, .. } = &self.inner.way {
            known.lock().unwrap_or_else(PoisonError::into_inner).settings = Some(Arc::clone(settings));
        }
        if let Some(sender) = self.inner.running() {
            let _: Result<(), _> = sender.send(Message::Settings(self.inner.agent, Arc::clone(settings)));
        }
    }

    fn has_tree(&self) -> bool {
        match &self.inner.way {
            Way::Root { sender, .. } => sender.get().is_some(),
            Way::Child(_) => true,
        }
    }

    fn is_busy(&self) -> bool {
        self.inner.shared.active.load(Ordering::Relaxed) > 0
    }

    fn cancel_below(&self, reason: &str) {
        self.inner.tell(Input::CancelBelow { agent: self.inner.agent, reason: reason.to_owned() });
    }

    fn close(&self) -> BoxFuture<'static, Vec<Body>> {
        let (mailbox, sender) = (Arc::clone(&self.inner.mailbox), self.inner.running().cloned());
        let is_root = matches!(self.inner.way, Way::Root { .. });
        let worktrees = Arc::clone(&self.inner.shared.worktrees);
        Box::pin(async move {
            let mut last = mailbox.take_log();
            if let Some(sender) = sender.filter(|_| is_root) {
                let (reply, answer) = oneshot::channel();
                let _: Result<(), _> = sender.send(Message::Close(reply));
                if let Ok(Ok(more)) = timeout(CLOSING_TIME, answer).await {
                    last.extend(more);
                }
            }
            if is_root {
                worktrees.swept().await;
            }
            last
        })
    }
}
