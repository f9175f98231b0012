//! Agents with a worktree of their own: where they start, and what their parents are told at the end of a turn.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codex_config::AgentIsolation;
use codex_log::settings::Settings;
use codex_tools::agents::{ChildHost, ChildStart, ChildStarted};
use codex_tools::worktrees::{RecordFate, Report, Worktrees};
use codex_wire::agent::AgentId;
use codex_wire::ids::ThreadId;
use codex_wire::policy::{SandboxPolicy, WorkspaceWrite};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::{Message, TreeTask};
use crate::applying;
use crate::tree::{Agent, Input, Launch, TurnEnd};

/// The time limit for looking at the changes of an agent, while its parent waits for the result.
const REPORT_TIME: Duration = Duration::from_secs(60);

/// The folder in which an agent starts.
pub(super) enum Folder {
    /// As its settings say.
    Parents,
    /// A new worktree of the folder of its parent, with a name for its branch.
    New { parent: PathBuf, branch: String },
    /// The worktree that it had, if it had one.
    Before { parent: PathBuf },
}

impl Folder {
    pub(super) fn of(isolation: Option<AgentIsolation>, agent: &Agent, how: Launch, above: &Settings) -> Self {
        let parent = || above.cwd.clone();
        match (how, isolation) {
            (Launch::Resume, _) => Self::Before { parent: parent() },
            (Launch::Empty | Launch::Fork, None) => Self::Parents,
            (Launch::Empty | Launch::Fork, Some(AgentIsolation::Worktree)) => {
                let branch = agent.summary.label.clone().unwrap_or_else(|| format!("agent-{}", agent.id()));
                Self::New { parent: parent(), branch }
            }
        }
    }
}

/// Starts the thread of an agent in its folder. A new worktree goes again if the thread cannot start.
pub(super) async fn start(
    mut child: ChildStart,
    folder: Folder,
    worktrees: Arc<Worktrees>,
    host: Arc<dyn ChildHost>,
) -> Result<ChildStarted, String> {
    let thread = child.thread;
    let is_new = matches!(folder, Folder::New { .. });
    let (parent, cwd) = match folder {
        Folder::Parents => return host.start(child).await,
        Folder::New { parent, branch } => {
            let (trees, from) = (Arc::clone(&worktrees), parent.clone());
            let made = spawn_blocking(move || trees.create(thread, &from, &branch)).await;
            let made = made.map_err(|error| error.to_string())?;
            (parent, Some(made.map_err(|error| format!("no worktree could be made: {error}"))?))
        }
        Folder::Before { parent } => {
            let (trees, from) = (Arc::clone(&worktrees), parent.clone());
            let opened = spawn_blocking(move || trees.reopen(thread, &from)).await;
            (parent, opened.map_err(|error| error.to_string())??)
        }
    };
    if let Some(cwd) = cwd {
        child.settings = Arc::new(confined(&child.settings, cwd));
        child.isolated_from = Some(parent);
        let told = [child.instructions.take(), Some(applying::CHILD_INSTRUCTIONS.to_owned())];
        child.instructions = Some(told.into_iter().flatten().collect::<Vec<_>>().join("\n\n"));
    }
    let started = host.start(child).await;
    if started.is_err() && is_new {
        // The thread has not begun, so there are no changes.
        let _ = spawn_blocking(move || worktrees.discard(thread)).await;
    }
    started
}

/// The settings of an agent that may write nothing but its own folder.
fn confined(settings: &Settings, cwd: PathBuf) -> Settings {
    let sandbox_policy = match &settings.sandbox_policy {
        SandboxPolicy::WorkspaceWrite(limits) => {
            SandboxPolicy::WorkspaceWrite(WorkspaceWrite { writable_roots: Vec::new(), ..limits.clone() })
        }
        other => other.clone(),
    };
    Settings { cwd, sandbox_policy, ..settings.clone() }
}

/// Removes the worktree of an agent that has ended, and returns what the user should know.
pub(super) async fn remove(thread: ThreadId, fate: RecordFate, worktrees: Arc<Worktrees>) -> Option<String> {
    match spawn_blocking(move || worktrees.remove(thread, fate)).await {
        Ok(Ok(None)) => None,
        Ok(Ok(Some(branch))) => Some(format!("changes of an agent were not applied; they are on the branch {branch}")),
        Ok(Err(error)) => Some(error),
        Err(error) => Some(error.to_string()),
    }
}

/// Removes all worktrees that are still open.
pub(super) async fn remove_all(worktrees: Arc<Worktrees>) -> Vec<String> {
    spawn_blocking(move || worktrees.remove_all()).await.unwrap_or_default()
}

impl TreeTask {
    /// Takes an input. The end of an isolated agent's turn waits for a report on its changes, and everything that
    /// happens to the agent after it waits with it.
    pub(super) fn arrive(&mut self, input: Input) {
        let agent = match &input {
            Input::TurnStarted { agent }
            | Input::TurnEnded { agent, .. }
            | Input::Rested { agent }
            | Input::Header { agent, .. }
            | Input::Heard { agent }
            | Input::Read { agent, .. }
            | Input::Lost { agent } => *agent,
            Input::Call { .. }
            | Input::CallDropped(_)
            | Input::Launched { .. }
            | Input::CancelBelow { .. }
            | Input::Tick
            | Input::Close => return self.step(input),
        };
        if let Some(held) = self.held.get_mut(&agent) {
            return held.push(input);
        }
        let is_reported =
            matches!(&input, Input::TurnEnded { end: TurnEnd::Completed { .. } | TurnEnd::Failed { .. }, .. });
        match self.threads.get(&agent).copied().filter(|thread| is_reported && self.shared.worktrees.has(*thread)) {
            Some(thread) => {
                self.held.insert(agent, vec![input]);
                self.look_at_changes(agent, thread);
            }
            None => self.step(input),
        }
    }

    fn look_at_changes(&self, agent: AgentId, thread: ThreadId) {
        let parent = self.tree.agent(agent).and_then(|agent| agent.summary.parent_agent_id);
        let settings = parent.and_then(|parent| self.settings.get(&parent));
        let cwd = settings.map_or_else(|| PathBuf::from("/"), |settings| settings.cwd.clone());
        let (worktrees, sender) = (Arc::clone(&self.shared.worktrees), self.sender.clone());
        tokio::spawn(async move {
            let report = timeout(REPORT_TIME, spawn_blocking(move || worktrees.report(thread, &cwd))).await;
            let report = report.ok().and_then(Result::ok).flatten();
            let _: Result<(), _> = sender.send(Message::Reported(agent, report));
        });
    }

    /// Completes the end of a turn.
    pub(super) fn reported(&mut self, agent: AgentId, report: Option<Report>) {
        let held = self.held.remove(&agent).unwrap_or_default();
        let thread = self.threads.get(&agent).copied().unwrap_or_else(ThreadId::unknown);
        let told = report.map(|report| applying::told(&report, agent, thread, self.shared.tool_set()));
        let mut held = held.into_iter();
        if let Some(mut input) = held.next() {
            if let (Input::TurnEnded { end, .. }, Some(told)) = (&mut input, &told) {
                add(end, told);
            }
            self.step(input);
        }
        for input in held {
            self.arrive(input);
        }
    }

    /// Completes all ends of turns without the reports that are not there yet.
    pub(super) fn release_held(&mut self) {
        for input in std::mem::take(&mut self.held).into_values().flatten() {
            self.step(input);
        }
    }
}

/// Adds a report to the result of a turn.
fn add(end: &mut TurnEnd, told: &str) {
    match end {
        TurnEnd::Completed { last_message } => {
            let said = last_message.take().unwrap_or_default();
            *last_message = Some(if said.is_empty() { told.to_owned() } else { format!("{said}\n\n{told}") });
        }
        TurnEnd::Failed { message } => *message = format!("{message}\n\n{told}"),
        TurnEnd::Aborted => {}
    }
}
