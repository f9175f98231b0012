//! The paths of agents: the names of the tasks from the root down.

use codex_wire::agent::AgentId;
use codex_wire::ids::ThreadId;

use super::agent::{Agent, ROOT_PATH};
use super::{AgentError, Tree};

/// The longest name of a task.
pub(super) const NAME_CHARS: usize = 64;
/// The longest path, and the length to which others are cut in errors.
const PATH_CHARS: usize = 1024;
const SHOWN_CHARS: usize = 80;

impl Tree {
    /// The path of a new agent.
    pub(super) fn path_below(&self, parent: AgentId, id: AgentId, task: Option<&str>) -> Result<String, AgentError> {
        let Some(task) = task else { return Ok(self.numbered_path(parent, id)) };
        if !is_name(task) || task == "root" {
            return Err(AgentError::BadName);
        }
        let path = format!("{}/{task}", self.path_of(parent));
        if self.agents.values().any(|agent| agent.path == path) {
            return Err(AgentError::NameTaken(path));
        }
        Ok(path)
    }

    /// The path of an agent whose task has no name.
    pub(super) fn numbered_path(&self, parent: AgentId, id: AgentId) -> String {
        format!("{}/agent_{id}", self.path_of(parent))
    }

    fn path_of(&self, agent: AgentId) -> &str {
        self.agents.get(&agent).map_or(ROOT_PATH, |agent| &agent.path)
    }

    /// The agent that a caller names: by its path, or by its thread.
    pub(super) fn find_for(&self, caller: AgentId, target: &str) -> Result<&Agent, AgentError> {
        let found = if let Ok(thread) = target.trim().parse::<ThreadId>() {
            self.agents.values().find(|agent| agent.thread() == thread)
        } else {
            let path = self.resolved_path(caller, target)?;
            self.agents.values().find(|agent| agent.path == path)
        };
        let found = found.ok_or_else(|| AgentError::NoSuchPath(shown(target)))?;
        let id = found.id();
        if id == caller || self.is_below(id, caller) || self.is_below(caller, id) {
            Ok(found)
        } else {
            Err(AgentError::ForeignPath(shown(target)))
        }
    }

    /// A whole path: one that does not begin with a slash begins at the caller.
    pub(super) fn resolved_path(&self, caller: AgentId, path: &str) -> Result<String, AgentError> {
        let trimmed = path.trim().trim_end_matches('/');
        let whole = match trimmed.strip_prefix('/') {
            Some(_) => trimmed.to_owned(),
            None => format!("{}/{trimmed}", self.path_of(caller)),
        };
        let below = whole.strip_prefix(ROOT_PATH).filter(|_| whole.len() <= PATH_CHARS && !trimmed.is_empty());
        let is_path = |below: &str| below.is_empty() || below.starts_with('/') && below[1..].split('/').all(is_name);
        if below.is_some_and(is_path) { Ok(whole) } else { Err(AgentError::BadPath(shown(path))) }
    }
}

fn is_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    (1..=NAME_CHARS).contains(&name.len()) && name.chars().all(is_allowed)
}

/// The beginning of a text of the model, for an error.
fn shown(text: &str) -> String {
    let cut: String = text.chars().take(SHOWN_CHARS).collect();
    format!("`{cut}{}`", if cut.len() < text.len() { "…" } else { "" })
}
