//! The policies of agents, which are never wider than those of the agents above them.

use std::sync::Arc;

use codex_log::settings::Settings;
use codex_wire::agent::AgentId;

use super::TreeTask;
use crate::tree::Agent;

impl TreeTask {
    /// Notes the settings of an agent, which must not be wider than its parent's.
    pub(super) fn settings_changed(&mut self, agent: AgentId, settings: &Arc<Settings>) {
        let parent = self.tree.agent(agent).and_then(|agent| agent.summary.parent_agent_id);
        let above = parent.and_then(|parent| self.settings.get(&parent));
        let allowed = above.map_or_else(|| (**settings).clone(), |above| settings.tightened_by(above));
        if allowed != **settings
            && let Some(mailbox) = self.mailboxes.get(&agent)
        {
            mailbox.tighten(Arc::new(allowed.clone()));
        }
        self.tighten(agent, &Arc::new(allowed));
    }

    /// Agents below get no wider policies than the ones above.
    fn tighten(&mut self, above: AgentId, settings: &Arc<Settings>) {
        self.settings.insert(above, Arc::clone(settings));
        let below: Vec<AgentId> =
            self.tree.agents().filter(|agent| agent.summary.parent_agent_id == Some(above)).map(Agent::id).collect();
        for agent in below {
            let Some(current) = self.settings.get(&agent) else { continue };
            let tightened = current.tightened_by(settings);
            if tightened == **current {
                continue;
            }
            let tightened = Arc::new(tightened);
            if let Some(mailbox) = self.mailboxes.get(&agent) {
                mailbox.tighten(Arc::clone(&tightened));
            }
            self.tighten(agent, &tightened);
        }
    }
}
