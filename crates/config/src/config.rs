//! The settings of the engine, read from the layers once and checked.
//!
//! Each key is one row, here or in a group of `settings.rs`. What is not read yet stays reachable through
//! [`Config::tree`].

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use codex_wire::policy::{ApprovalsReviewer, AskForApproval, SandboxPolicy};

use crate::{
    Env, HistoryConfig, Home, InstructionsConfig, KeyPath, LayerError, LoginConfig, ModelConfig, Origin, Overrides,
    Price, ProviderConfig, Reader, ReasoningDisplay, SandboxConfig, ShellEnvironmentPolicy, SkillsConfig, Tree,
    TrustLevel, Value, ValueError, WireApi, audit::ConfigWarning, layers::Layers, provider::read_providers,
};

/// The provider when none is set.
pub const DEFAULT_PROVIDER: &str = "openai";

/// Why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is there but cannot be read.
    #[error("could not read {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A layer is not well-formed.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// A value is not what its key asks for.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// Keys have no effect, and the user wants none of these.
    #[error("{}", strictly(.mistakes))]
    Strict {
        /// What is wrong with them.
        mistakes: Vec<ConfigWarning>,
    },
    /// `profile` names none of `[profiles]`.
    #[error("{}: no profile named {name:?}; {}", .origin.of("profile"), list("profiles", .known))]
    UnknownProfile {
        /// Where the profile was asked for.
        origin: Origin,
        /// What was asked for.
        name: String,
        /// The profiles there are.
        known: Vec<String>,
        /// Where profiles are defined.
        file: PathBuf,
    },
    /// `model_provider` names neither a built-in provider nor one of `[model_providers]`.
    #[error("{}: no provider named {id:?}; {}", .origin.of("model_provider"), list("providers", .known))]
    UnknownProvider {
        /// Where the provider was asked for.
        origin: Origin,
        /// What was asked for.
        id: String,
        /// The providers there are.
        known: Vec<String>,
    },
    /// The selected provider has no address.
    #[error("{}: base_url is missing", .origin.of(&table("model_providers", .id)))]
    NoBaseUrl {
        /// Where the provider is defined.
        origin: Origin,
        /// The provider.
        id: String,
    },
}

/// The names that would have been right, in words.
fn list(what: &str, known: &[String]) -> String {
    if known.is_empty() { format!("there are no {what}") } else { format!("known {what}: {}", known.join(", ")) }
}

/// The first of several mistakes, and how many there are besides.
fn strictly(mistakes: &[ConfigWarning]) -> String {
    let first = mistakes.first().map(ToString::to_string).unwrap_or_default();
    match mistakes.len() {
        0 | 1 => first,
        all => format!("{first} (and {} more)", all - 1),
    }
}

/// The header of a table that users name themselves.
fn table(group: &str, name: &str) -> String {
    KeyPath::default().join(group).join(name).to_string()
}

impl ConfigError {
    /// A next step for the person, shown on a line of its own.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Layer(error) => error.hint(),
            Self::Value(error) => error.hint(),
            Self::UnknownProfile { name, file, .. } => {
                Some(format!("choose another, or add a table [{}] to {}", table("profiles", name), file.display()))
            }
            Self::UnknownProvider { id, .. } => {
                Some(format!("choose another, or add a table [{}] with a base_url", table("model_providers", id)))
            }
            Self::NoBaseUrl { id, .. } => {
                Some(format!("add base_url = \"https://…\" to the table [{}]", table("model_providers", id)))
            }
            Self::Strict { .. } => {
                Some("`codex doctor` lists every key; without --strict-config it is a warning".into())
            }
            Self::Read { .. } => None,
        }
    }
}

/// The whole configuration of one run or thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Which model to ask, and how.
    pub model: ModelConfig,
    /// The selected provider.
    pub provider: ProviderConfig,
    /// Every provider by id: the built-in ones and those of `[model_providers]`.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// `approval_policy`, if it is set.
    pub approval_policy: Option<AskForApproval>,
    /// `approvals_reviewer`: who is asked.
    pub approvals_reviewer: ApprovalsReviewer,
    /// Where commands may write.
    pub sandbox: SandboxConfig,
    /// `tool_output_token_limit`: how much of a tool's output the model sees.
    pub tool_output_token_limit: Option<u64>,
    /// What the model is told before anything else.
    pub instructions: InstructionsConfig,
    /// Which parts of the model's reasoning are shown.
    pub reasoning: ReasoningDisplay,
    /// The record of prompts.
    pub history: HistoryConfig,
    /// Which variables a command gets.
    pub shell_environment: ShellEnvironmentPolicy,
    /// `approval_timeout_sec`: how long an approval waits before it counts as denied; for ever if unset.
    pub approval_timeout: Option<Duration>,
    /// `notify`: the program, with its arguments, that is told when a turn is done.
    pub notify: Vec<String>,
    /// `tools.web_search` or `features.web_search_request`: whether a provider that can may search the web.
    pub web_search: bool,
    /// `[features]`: switches by name.
    pub features: BTreeMap<String, bool>,
    /// `[projects.<path>].trust_level`: what the user has said about folders.
    pub projects: BTreeMap<PathBuf, TrustLevel>,
    /// `[prices.<model>]`: what models cost, as far as the user has said so.
    pub prices: BTreeMap<String, Price>,
    /// `[[skills.config]]`: which skills the user wants.
    pub skills: SkillsConfig,
    /// The selected profile.
    pub profile: Option<String>,
    /// All layers merged, with the origin of every value.
    pub tree: Tree,
}

impl Config {
    /// Reads all layers: the files, the selected profile and the overrides, each over the one before it.
    pub fn load(home: &Home, env: &Env, overrides: &Overrides) -> Result<Self, ConfigError> {
        Layers::read(home, env, overrides)?.config(home, env)
    }

    pub(crate) fn from_tree(
        tree: Tree,
        profile: Option<String>,
        user_dir: Option<&Path>,
        env: &Env,
    ) -> Result<Self, ConfigError> {
        let root = Reader::new(&tree, user_dir);
        let config = Self::read(&root, profile, env)?;
        Ok(Self { tree, ..config })
    }

    /// Everything but the tree.
    pub(crate) fn read(root: &Reader<'_>, profile: Option<String>, env: &Env) -> Result<Self, ConfigError> {
        let providers = read_providers(root, env)?;
        // What is wrong with it is told now; who logs in reads it again.
        LoginConfig::read(root)?;
        let tools = root.section("tools")?;
        let features = root.map("features", switch)?;
        let web_search = switch(&tools, "web_search")?.or(tools.bool("web_search_request")?);
        Ok(Self {
            model: ModelConfig::read(root)?,
            provider: select_provider(root, &providers)?,
            providers,
            approval_policy: root.word("approval_policy")?,
            approvals_reviewer: root.word("approvals_reviewer")?.unwrap_or_default(),
            sandbox: SandboxConfig::read(root)?,
            tool_output_token_limit: root.integer("tool_output_token_limit", 0..)?,
            instructions: InstructionsConfig::read(root)?,
            reasoning: ReasoningDisplay::read(root)?,
            history: HistoryConfig::read(root)?,
            shell_environment: ShellEnvironmentPolicy::read(root)?,
            approval_timeout: root.integer("approval_timeout_sec", 1..)?.map(Duration::from_secs),
            notify: root.strings("notify")?.unwrap_or_default(),
            web_search: web_search.or(features.get("web_search_request").copied()).unwrap_or(false),
            features,
            projects: read_projects(root)?,
            prices: root.map("prices", Price::read)?,
            skills: SkillsConfig::read(root)?,
            profile,
            tree: Tree::new(),
        })
    }

    /// The only way to log in that the user allows, `chatgpt` or `api`, if there is one.
    #[must_use]
    pub fn forced_login(&self) -> Option<&str> {
        match &self.tree.get(&["forced_login_method"])?.value {
            Value::String(way) => Some(way),
            _ => None,
        }
    }

    /// How people log in with `ChatGPT`.
    #[must_use]
    pub fn login(&self) -> LoginConfig {
        // It was read without an error before.
        LoginConfig::read(&Reader::new(&self.tree, None)).unwrap_or_default()
    }

    /// When to ask; on request of the model unless it was set otherwise.
    #[must_use]
    pub fn approval_policy(&self) -> AskForApproval {
        self.approval_policy.unwrap_or(AskForApproval::OnRequest)
    }

    /// Where commands may write.
    #[must_use]
    pub fn sandbox_policy(&self) -> SandboxPolicy {
        self.sandbox.policy()
    }
}

impl Config {
    /// The provider and the name of a model: `PROVIDER:NAME` names both, and any other name is one of the provider that is
    /// set.
    #[must_use]
    pub fn model_of<'a>(&'a self, model: &'a str) -> (&'a ProviderConfig, &'a str) {
        let named = model.split_once(':').and_then(|(id, name)| Some((self.providers.get(id)?, name)));
        named.unwrap_or((&self.provider, model))
    }
}

/// The provider under `model_provider`, which must exist and be reachable.
fn select_provider(
    root: &Reader<'_>,
    providers: &BTreeMap<String, ProviderConfig>,
) -> Result<ProviderConfig, ConfigError> {
    let id = root.str("model_provider")?.unwrap_or_else(|| DEFAULT_PROVIDER.to_owned());
    let asked = root.node("model_provider").map_or(Origin::Default, |node| node.origin.clone());
    let Some(provider) = providers.get(&id) else {
        return Err(ConfigError::UnknownProvider { origin: asked, id, known: providers.keys().cloned().collect() });
    };
    if provider.base_url.is_none() && provider.wire_api != WireApi::Scripted {
        let entry = root.section("model_providers")?;
        let origin = entry.node(&id).map_or(asked, |node| node.origin.clone());
        return Err(ConfigError::NoBaseUrl { origin, id });
    }
    Ok(provider.clone())
}

/// A switch. Other releases have some as tables, which say how and not whether.
fn switch(section: &Reader<'_>, key: &str) -> Result<Option<bool>, ValueError> {
    match section.node(key).map(|node| &node.value) {
        Some(Value::Table(_)) => Ok(None),
        Some(_) | None => section.bool(key),
    }
}

fn read_projects(root: &Reader<'_>) -> Result<BTreeMap<PathBuf, TrustLevel>, ValueError> {
    let projects = root.map("projects", |projects, path| projects.section(path)?.word("trust_level"))?;
    Ok(projects.into_iter().map(|(path, level)| (PathBuf::from(path), level)).collect())
}

#[cfg(test)]
pub(crate) mod tests;
