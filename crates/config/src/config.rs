//! The settings of the engine, read from the layers once and checked.
//!
//! Each key is one row, here or in a group of `settings.rs`. Keys that are not read yet stay accessible through
//! [`Config::tree`].

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use codex_wire::policy::{ApprovalsReviewer, AskForApproval, SandboxPolicy};
use codex_wire::tool_spec::WebAccess;

use crate::{
    AgentsConfig, BudgetConfig, ChatConfig, Env, Home, InstructionsConfig, KeyPath, LayerError, LoginConfig,
    McpLoginConfig, ModelConfig, Origin, Overrides, Price, ProviderConfig, Reader, ReasoningDisplay, SandboxConfig,
    ShellEnvironmentPolicy, SkillsConfig, StoreConfig, Tree, TrustLevel, Value, ValueError, WireApi,
    agent_roles::read_roles, audit::ConfigWarning, layers::Layers, mcp_servers::read_mcp_servers,
    provider::read_providers, words::words,
};

/// The default provider.
pub const DEFAULT_PROVIDER: &str = "openai";

/// The reason why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("could not read {}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    /// A layer is malformed.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// A value does not match its key.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// Keys have no effect, and the user wants to reject such keys.
    #[error("{}", strictly(.mistakes))]
    Strict { mistakes: Vec<ConfigWarning> },
    /// `profile` names none of `[profiles]`.
    #[error("{}: no profile named {name:?}; {}", .origin.of("profile"), list("profiles", .known))]
    UnknownProfile {
        origin: Origin,
        name: String,
        known: Vec<String>,
        /// The file that defines profiles.
        file: PathBuf,
    },
    /// `model_provider` names neither a built-in provider nor one of `[model_providers]`.
    #[error("{}: no provider named {id:?}; {}", .origin.of("model_provider"), list("providers", .known))]
    UnknownProvider { origin: Origin, id: String, known: Vec<String> },
    #[error("{}: base_url is missing", .origin.of(&table("model_providers", .id)))]
    NoBaseUrl { origin: Origin, id: String },
}

/// Lists the valid names.
fn list(what: &str, known: &[String]) -> String {
    if known.is_empty() { format!("there are no {what}") } else { format!("known {what}: {}", known.join(", ")) }
}

/// The first of several mistakes, and the number of others.
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
    /// A hint, shown on its own line.
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

words! {
    /// `web_search`: whether the provider may search the web, and whether it may open pages for that.
    pub enum WebSearchMode {
        "disabled" => Disabled,
        "cached" => Cached,
        "live" => Live,
    }
}

/// The complete configuration of one run or thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub model: ModelConfig,
    pub provider: ProviderConfig,
    /// All providers by id: the built-in ones and those of `[model_providers]`.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// `approval_policy`, if it is set.
    pub approval_policy: Option<AskForApproval>,
    /// `approvals_reviewer`: the reviewer of approval requests.
    pub approvals_reviewer: ApprovalsReviewer,
    pub sandbox: SandboxConfig,
    /// `tool_output_token_limit`: the number of tokens of a tool's output that the model receives.
    pub tool_output_token_limit: Option<u64>,
    pub instructions: InstructionsConfig,
    /// The displayed parts of the model's reasoning.
    pub reasoning: ReasoningDisplay,
    /// The settings of the chat.
    pub chat: ChatConfig,
    /// The variables of commands.
    pub shell_environment: ShellEnvironmentPolicy,
    /// `approval_timeout_sec`: the time after which an approval request counts as denied; never if unset.
    pub approval_timeout: Option<Duration>,
    /// `notify`: the program, with its arguments, that runs when a turn has ended.
    pub notify: Vec<String>,
    /// The reach of the provider's searches of the web, if it may search at all.
    pub web_search: Option<WebAccess>,
    /// `[features]`: features by name.
    pub features: BTreeMap<String, bool>,
    /// `[projects.<path>].trust_level`: the user's trust in folders.
    pub projects: BTreeMap<PathBuf, TrustLevel>,
    /// `[prices.<model>]`: the prices of models, if the user has set them.
    pub prices: BTreeMap<String, Price>,
    /// `[[skills.config]]`: the enabled and disabled skills.
    pub skills: SkillsConfig,
    pub profile: Option<String>,
    /// All layers merged, with the origin of every value.
    pub tree: Tree,
}

impl Config {
    /// Reads all layers: the files, the selected profile and the overrides, each over the previous one.
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

    /// Everything except the tree.
    pub(crate) fn read(root: &Reader<'_>, profile: Option<String>, env: &Env) -> Result<Self, ConfigError> {
        let providers = read_providers(root, env)?;
        // Errors in them are reported now; the code that uses them reads them again.
        LoginConfig::read(root)?;
        McpLoginConfig::read(root)?;
        StoreConfig::read(root, env)?;
        AgentsConfig::read(root)?;
        BudgetConfig::read(root)?;
        read_roles(root, None)?;
        read_mcp_servers(root)?;
        let features = root.map("features", switch)?;
        Ok(Self {
            model: ModelConfig::read(root)?,
            provider: select_provider(root, &providers)?,
            providers,
            approval_policy: root.approval_policy()?,
            approvals_reviewer: root.word("approvals_reviewer")?.unwrap_or_default(),
            sandbox: SandboxConfig::read(root)?,
            tool_output_token_limit: root.integer("tool_output_token_limit", 0..)?,
            instructions: InstructionsConfig::read(root)?,
            reasoning: ReasoningDisplay::read(root)?,
            chat: ChatConfig::read(root)?,
            shell_environment: ShellEnvironmentPolicy::read(root)?,
            approval_timeout: root.integer("approval_timeout_sec", 1..)?.map(Duration::from_secs),
            notify: root.strings("notify")?.unwrap_or_default(),
            web_search: web_access(root, &features)?,
            features,
            projects: read_projects(root)?,
            prices: root.map("prices", Price::read)?,
            skills: SkillsConfig::read(root)?,
            profile,
            tree: Tree::new(),
        })
    }

    /// The only allowed way to log in, `chatgpt` or `api`, if the user has restricted it.
    #[must_use]
    pub fn forced_login(&self) -> Option<&str> {
        match &self.tree.get(&["forced_login_method"])?.value {
            Value::String(way) => Some(way),
            _ => None,
        }
    }

    /// The settings of the `ChatGPT` login.
    #[must_use]
    pub fn login(&self) -> LoginConfig {
        // It was read without an error before.
        LoginConfig::read(&Reader::new(&self.tree, None)).unwrap_or_default()
    }

    /// The place of the threads.
    #[must_use]
    pub fn store(&self, env: &Env) -> StoreConfig {
        StoreConfig::read(&Reader::new(&self.tree, None), env).unwrap_or_default()
    }

    /// The limits of child agents.
    #[must_use]
    pub fn agents(&self) -> AgentsConfig {
        AgentsConfig::read(&Reader::new(&self.tree, None)).unwrap_or_default()
    }

    /// The budget of threads.
    #[must_use]
    pub fn budget(&self) -> BudgetConfig {
        BudgetConfig::read(&Reader::new(&self.tree, None)).unwrap_or_default()
    }

    /// The approval policy; `on-request` by default.
    #[must_use]
    pub fn approval_policy(&self) -> AskForApproval {
        self.approval_policy.unwrap_or(AskForApproval::OnRequest)
    }

    /// The sandbox policy.
    #[must_use]
    pub fn sandbox_policy(&self) -> SandboxPolicy {
        self.sandbox.policy()
    }
}

impl Config {
    /// The provider and the name of a model: `PROVIDER:NAME` names both, and any other name belongs to the configured
    /// provider.
    #[must_use]
    pub fn model_of<'a>(&'a self, model: &'a str) -> (&'a ProviderConfig, &'a str) {
        let named = model.split_once(':').and_then(|(id, name)| Some((self.providers.get(id)?, name)));
        named.unwrap_or((&self.provider, model))
    }

    /// The price of a model, if the user has set one: for this name with its provider, or for the name alone.
    #[must_use]
    pub fn price_of(&self, model: &str) -> Option<Price> {
        self.prices.get(model).or_else(|| self.prices.get(self.model_of(model).1)).copied()
    }
}

/// The provider under `model_provider`, which must exist and have an address.
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

/// The reach of searches of the web: `web_search`, or else the switches of older releases, which do not say how.
fn web_access(root: &Reader<'_>, features: &BTreeMap<String, bool>) -> Result<Option<WebAccess>, ValueError> {
    let tools = root.section("tools")?;
    let switched = switch(&tools, "web_search")?.or(tools.bool("web_search_request")?);
    let is_on = switched.or(features.get("web_search_request").copied()).unwrap_or(false);
    Ok(match root.word("web_search")? {
        Some(WebSearchMode::Disabled) => None,
        Some(WebSearchMode::Cached) => Some(WebAccess::Cached),
        Some(WebSearchMode::Live) => Some(WebAccess::Live),
        None => is_on.then_some(WebAccess::Usual),
    })
}

/// A feature. Other releases have some as tables, in which `enabled` switches it.
fn switch(section: &Reader<'_>, key: &str) -> Result<Option<bool>, ValueError> {
    match section.node(key).map(|node| &node.value) {
        Some(Value::Table(_)) => section.section(key)?.bool("enabled"),
        Some(_) | None => section.bool(key),
    }
}

fn read_projects(root: &Reader<'_>) -> Result<BTreeMap<PathBuf, TrustLevel>, ValueError> {
    let projects = root.map("projects", |projects, path| {
        let project = projects.section(path)?;
        // Compared when the files of the project are read; here its form is checked.
        project.string_map("approved_mcp_servers")?;
        project.word("trust_level")
    })?;
    Ok(projects.into_iter().map(|(path, level)| (PathBuf::from(path), level)).collect())
}

#[cfg(test)]
pub(crate) mod tests;
