//! The roles of child agents: the tables `[agents.NAME]`, and the files that they name.
//!
//! A role can give an agent a model, an effort, instructions and a folder, and can narrow its policies. It can never widen them:
//! whoever applies it combines its policies with those of the parent. A file that is not the user's own names only
//! files in its own folder, so a project cannot have other files of the user read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use codex_wire::policy::{AskForApproval, SandboxMode};
use codex_wire::reasoning::ReasoningEffort;

use crate::{Config, Home, Node, Origin, Reader, Tree, Value, ValueError};

/// The largest file of a role.
const MOST_BYTES: u64 = 1024 * 1024;

/// The folder of an agent that does not share its parent's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentIsolation {
    /// A git worktree of its own.
    Worktree,
}

impl FromStr for AgentIsolation {
    type Err = &'static str;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "worktree" => Ok(Self::Worktree),
            _ => Err("expected `worktree`"),
        }
    }
}

/// A role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentRole {
    /// `description`: when a model should choose it.
    pub description: Option<String>,
    /// `nickname_candidates`: the names of its agents.
    pub nicknames: Vec<String>,
    /// `isolation`: the folder of its agents, if it is not their parent's.
    pub isolation: Option<AgentIsolation>,
    file: Option<RoleFile>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct RoleFile {
    path: PathBuf,
    /// The folder that it has to be in.
    within: Option<PathBuf>,
}

/// The settings of a role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoleSettings {
    pub model: Option<String>,
    pub effort: Option<ReasoningEffort>,
    pub instructions: Option<String>,
    pub approval_policy: Option<AskForApproval>,
    pub sandbox_mode: Option<SandboxMode>,
    pub isolation: Option<AgentIsolation>,
}

/// The reason why the file of a role cannot be used. No part of the file is repeated: it may be another one than its
/// name suggests.
#[derive(Debug, thiserror::Error)]
pub enum RoleError {
    #[error("could not read {}", .path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{} is not in {}, the folder of the configuration that names it", .path.display(), .folder.display())]
    Outside { path: PathBuf, folder: PathBuf },
    #[error("{} is not valid TOML", .path.display())]
    Syntax { path: PathBuf },
    #[error("{}: `{key}` has an invalid value", .path.display())]
    Value { path: PathBuf, key: &'static str },
}

impl Config {
    /// The roles of agents, by name.
    #[must_use]
    pub fn agent_roles(&self, home: &Home) -> BTreeMap<String, AgentRole> {
        // They were read without an error before.
        read_roles(&Reader::new(&self.tree, home.user_dir()), Some(home.path())).unwrap_or_default()
    }
}

/// Reads the tables of roles; those of the user are in files directly in the home folder.
pub(crate) fn read_roles(root: &Reader<'_>, home: Option<&Path>) -> Result<BTreeMap<String, AgentRole>, ValueError> {
    let agents = root.section("agents")?;
    let is_role = |name: &&str| agents.node(name).is_some_and(|node| matches!(node.value, Value::Table(_)));
    let role = |name: &str| Ok((name.to_owned(), AgentRole::read(&agents.section(name)?, home)?));
    agents.keys().filter(is_role).map(role).collect()
}

impl AgentRole {
    fn read(table: &Reader<'_>, home: Option<&Path>) -> Result<Self, ValueError> {
        let within = |node: &Node| folder_of(&node.origin, home);
        let path = table.path("config_file")?;
        let file = path.zip(table.node("config_file")).map(|(path, node)| RoleFile { path, within: within(node) });
        Ok(Self {
            description: table.str("description")?,
            nicknames: table.strings("nickname_candidates")?.unwrap_or_default(),
            isolation: table.word("isolation")?,
            file,
        })
    }

    /// Reads the settings of the role.
    ///
    /// # Errors
    /// If its file cannot be read, or has invalid values.
    pub fn settings(&self) -> Result<RoleSettings, RoleError> {
        let Some(RoleFile { path, within }) = &self.file else {
            return Ok(RoleSettings { isolation: self.isolation, ..RoleSettings::default() });
        };
        let unreadable = |source: std::io::Error| RoleError::Read { path: path.clone(), source };
        let real = path.canonicalize().map_err(unreadable)?;
        if let Some(folder) = within
            && !folder.canonicalize().is_ok_and(|folder| real.starts_with(folder))
        {
            return Err(RoleError::Outside { path: path.clone(), folder: folder.clone() });
        }
        let text = codex_files::read_text(&real, MOST_BYTES).map_err(|error| unreadable(error.into()))?;
        let tree = Tree::parse(path, &text).map_err(|_| RoleError::Syntax { path: path.clone() })?;
        let settings = RoleSettings::read(&Reader::new(&tree, None), path)?;
        Ok(RoleSettings { isolation: settings.isolation.or(self.isolation), ..settings })
    }
}

impl RoleSettings {
    fn read(root: &Reader<'_>, path: &Path) -> Result<Self, RoleError> {
        let bad = |key| move |_| RoleError::Value { path: path.to_owned(), key };
        let instructions = root.str("developer_instructions").map_err(bad("developer_instructions"))?;
        Ok(Self {
            model: root.str("model").map_err(bad("model"))?,
            effort: root.word("model_reasoning_effort").map_err(bad("model_reasoning_effort"))?,
            instructions: instructions.or(root.str("instructions").map_err(bad("instructions"))?),
            approval_policy: root.approval_policy().map_err(bad("approval_policy"))?,
            sandbox_mode: root.word("sandbox_mode").map_err(bad("sandbox_mode"))?,
            isolation: root.word("isolation").map_err(bad("isolation"))?,
        })
    }
}

/// The folder that a file has to be in if this names it: any for the user's own configuration.
fn folder_of(origin: &Origin, home: Option<&Path>) -> Option<PathBuf> {
    match origin {
        Origin::File { path, .. } if path.parent() == home => None,
        Origin::File { path, .. } => path.parent().map(Path::to_owned),
        Origin::Override(_) | Origin::Flag(_) | Origin::Request | Origin::Default => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{Overrides, config::tests::load};

    #[test]
    fn a_role_is_read_from_the_file_next_to_the_configuration() {
        let file = "[agents]\nmax_depth = 2\n[agents.reviewer]\ndescription = 'Reviews'\nconfig_file = 'roles/r.toml'\n\
                    nickname_candidates = ['Iris']\n[agents.plain]\n";
        let (temp, config) = load(file, &Overrides::default());
        let home = Home::at(temp.path());
        let roles = config.unwrap().agent_roles(&home);
        assert_eq!(roles.keys().collect::<Vec<_>>(), ["plain", "reviewer"]);
        let reviewer = &roles["reviewer"];
        assert_eq!(
            (reviewer.description.as_deref(), &*reviewer.nicknames),
            (Some("Reviews"), &["Iris".to_owned()][..])
        );
        assert!(matches!(reviewer.settings(), Err(RoleError::Read { .. })));
        fs::create_dir(temp.path().join("roles")).unwrap();
        let text = "model = 'm'\nmodel_reasoning_effort = 'low'\nsandbox_mode = 'read-only'\n\
                    approval_policy = 'untrusted'\ndeveloper_instructions = 'Only review.'\nisolation = 'worktree'\n\
                    other = 1\n";
        fs::write(temp.path().join("roles/r.toml"), text).unwrap();
        let expected = RoleSettings {
            model: Some("m".to_owned()),
            effort: Some(ReasoningEffort::Low),
            instructions: Some("Only review.".to_owned()),
            approval_policy: Some(AskForApproval::UnlessTrusted),
            sandbox_mode: Some(SandboxMode::ReadOnly),
            isolation: Some(AgentIsolation::Worktree),
        };
        assert_eq!(reviewer.settings().unwrap(), expected);
        assert_eq!(roles["plain"].settings().unwrap(), RoleSettings::default());
    }

    #[test]
    fn the_table_of_a_role_can_isolate_its_agents_too() {
        let (temp, config) = load("[agents.r]\nisolation = 'worktree'\n", &Overrides::default());
        let roles = config.unwrap().agent_roles(&Home::at(temp.path()));
        assert_eq!(roles["r"].settings().unwrap().isolation, Some(AgentIsolation::Worktree));
        let (_temp, config) = load("[agents.r]\nisolation = 'container'\n", &Overrides::default());
        let error = config.unwrap_err().to_string();
        assert!(error.contains("agents.r.isolation") && error.contains("expected `worktree`"), "{error}");
    }

    #[test]
    fn an_error_repeats_nothing_of_the_file() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("r.toml");
        let role = AgentRole { file: Some(RoleFile { path: path.clone(), within: None }), ..AgentRole::default() };
        for (text, expected) in [
            ("secret", "is not valid TOML"),
            ("model = 7", "`model` has an invalid value"),
            ("sandbox_mode = 'secret'", "`sandbox_mode` has an invalid value"),
            ("isolation = 'secret'", "`isolation` has an invalid value"),
        ] {
            fs::write(&path, text).unwrap();
            let error = role.settings().unwrap_err().to_string();
            assert!(error.ends_with(expected) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn only_the_users_own_files_name_files_elsewhere() {
        let temp = tempfile::tempdir().unwrap();
        let (project, home) = (temp.path().join("work/.codex"), temp.path().join("home"));
        for folder in [&project, &home] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(home.join("secret.toml"), "model = 'm'").unwrap();
        std::os::unix::fs::symlink(home.join("secret.toml"), project.join("link.toml")).unwrap();
        fs::write(project.join("own.toml"), "model = 'm'").unwrap();
        let named = |folder: &Path, file: &str| {
            let text = format!("[agents.r]\nconfig_file = '{file}'\n");
            let tree = Tree::parse(&folder.join("config.toml"), &text).unwrap();
            let roles = read_roles(&Reader::new(&tree, Some(temp.path())), Some(&home)).unwrap();
            roles["r"].settings().map(|settings| settings.model)
        };
        assert!(named(&project, "own.toml").is_ok());
        let elsewhere = home.join("secret.toml").display().to_string();
        for file in ["link.toml", "../../home/secret.toml", "~/home/secret.toml", &elsewhere] {
            assert!(matches!(named(&project, file), Err(RoleError::Outside { .. })), "{file}");
        }
        assert!(named(&home, "secret.toml").is_ok() && named(&home, "../work/.codex/own.toml").is_ok());
    }
}
