//! Things that agents share: the files of a folder, and the budgets of the agents above them.

use std::path::PathBuf;

use codex_wire::agent::AgentId;
use codex_wire::budget::Used;

use super::TreeTask;
use crate::writers::Place;

impl TreeTask {
    /// Warns about files that another agent writes at the same time.
    pub(super) fn wrote(&mut self, agent: AgentId, files: &[PathBuf]) {
        for file in files {
            let tree = &self.tree;
            let place = |other: AgentId| {
                let is_at_work = !tree.agent(other)?.is_over();
                Some(if tree.is_below(agent, other) {
                    Place::Above
                } else if tree.is_below(other, agent) {
                    Place::Below { is_at_work }
                } else {
                    Place::Beside { is_at_work }
                })
            };
            for other in self.writers.wrote(agent, file, place) {
                let (one, two) = (self.named(agent), self.named(other));
                let file = file.display();
                let hint = "agents with isolation `worktree` have files of their own";
                self.warn(Some(format!("{one} and {two} both write {file}; {hint}")));
            }
        }
    }

    /// An agent as people know it.
    fn named(&self, agent: AgentId) -> String {
        let label = self.tree.agent(agent).and_then(|agent| agent.summary.label.as_deref());
        match (agent, label) {
            (AgentId::ROOT, _) => "the root agent".to_owned(),
            (agent, Some(label)) => format!("agent {agent} ({label})"),
            (agent, None) => format!("agent {agent}"),
        }
    }

    /// Charges all agents above.
    pub(super) fn used(&mut self, agent: AgentId, used: Used) {
        let mut at = agent;
        while let Some(parent) = self.tree.agent(at).and_then(|agent| agent.summary.parent_agent_id) {
            if let Some(mailbox) = self.mailboxes.get(&parent) {
                mailbox.charge(used);
            }
            at = parent;
        }
    }
}
