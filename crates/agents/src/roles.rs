//! The roles that a model can give to new agents: those of the configuration, and our own.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use codex_config::{AgentRole, Config, Home, RoleSettings};

/// The number of roles that a model is told of, and the length of what it is told.
const MOST_ROLES: usize = 64;
const SHOWN_CHARS: usize = 500;

/// The role for questions about the code, which other releases have too.
const EXPLORER: &str = "explorer";
const EXPLORER_DESCRIPTION: &str = "Answers one question about the code, fast and without changes to it.";
const EXPLORER_INSTRUCTIONS: &str = "Your role is explorer: answer the question about the code that you were given. Read what you need, and change nothing. \
     Name the files and lines that your answer rests on, and say plainly what you did not find.";

/// The roles of a tree, by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Roles(Arc<BTreeMap<String, Role>>);

#[derive(Debug, Clone)]
enum Role {
    BuiltIn { description: &'static str, instructions: &'static str },
    Configured(AgentRole),
}

impl Roles {
    pub(crate) fn of(config: &Config, home: &Home) -> Self {
        let explorer = Role::BuiltIn { description: EXPLORER_DESCRIPTION, instructions: EXPLORER_INSTRUCTIONS };
        let mut roles = BTreeMap::from([(EXPLORER.to_owned(), explorer)]);
        roles.extend(config.agent_roles(home).into_iter().map(|(name, role)| (name, Role::Configured(role))));
        Self(Arc::new(roles))
    }

    /// The roles as a model is told of them.
    pub(crate) fn description(&self) -> String {
        let about = |role: &Role| match role {
            Role::BuiltIn { description, .. } => (*description).to_owned(),
            Role::Configured(role) => shortened(role.description.as_deref().unwrap_or("no description")),
        };
        let roles: Vec<_> =
            self.0.iter().take(MOST_ROLES).map(|(name, role)| format!("\n- `{name}`: {}", about(role))).collect();
        format!("The role of the agent, if it should have one:{}", roles.concat())
    }

    /// The settings of a role. It reads files.
    pub(crate) async fn settings(&self, name: &str) -> Result<RoleSettings, String> {
        match self.get(name)?.clone() {
            Role::BuiltIn { instructions, .. } => {
                Ok(RoleSettings { instructions: Some(instructions.to_owned()), ..RoleSettings::default() })
            }
            Role::Configured(role) => {
                let reading = tokio::task::spawn_blocking(move || role.settings());
                let settings = reading.await.map_err(|_| "the file of the role could not be read".to_owned())?;
                settings.map_err(|error| match error.source() {
                    Some(source) => format!("the role `{name}` cannot be used: {error}: {source}"),
                    None => format!("the role `{name}` cannot be used: {error}"),
                })
            }
        }
    }

    /// The nicknames of the agents of a role, if it has its own.
    pub(crate) fn nicknames(&self, name: &str) -> &[String] {
        match self.0.get(name) {
            Some(Role::Configured(role)) => &role.nicknames,
            Some(Role::BuiltIn { .. }) | None => &[],
        }
    }

    fn get(&self, name: &str) -> Result<&Role, String> {
        self.0.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.0.keys().take(MOST_ROLES).map(String::as_str).collect();
            format!("unknown agent_type `{}`; the roles are: {}", shortened(name), known.join(", "))
        })
    }
}

/// The beginning of a text, on one line.
fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
