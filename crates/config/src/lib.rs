//! The user's settings: `CODEX_HOME`, `config.toml` with profiles and overrides, providers, and `auth.json`.
//!
//! Values come from layers, each over the previous one: the machine's file, the user's, those of a trusted project, the
//! selected profile, `-c key=value` overrides with the `config` object of a client's request, and an administrator's
//! file. Every value remembers its origin, so a bad one is reported with file, line and key. One table lists all keys
//! (`known`): the effect of each, and whether a project may set it.
//!
//! Clients read and change the configuration through [`UserConfig`] and the login through [`Auth`].
//!
//! Code that runs outside of every sandbox finds its programs with [`Programs`] and works in a [`TemporaryFolder`].
//!
//! Invariants: only files below `CODEX_HOME`, two machine-wide ones, and those of a project that the user trusts are
//! read. Only `config.toml` and the two files of logins are written, atomically and only with contents that can be read again, and
//! variables are read only through [`Env`]. A `.env` file is never loaded, and nothing in a project folder can set a
//! provider, an endpoint, a header, a key, a program or a looser policy. A secret never appears in an error or in debug
//! output.

#![cfg_attr(test, allow(clippy::needless_raw_string_hashes, reason = "expect-test writes its snapshots with them"))]

mod account;
mod account_host;
mod agent_roles;
mod agents;
mod approval_policy;
mod audit;
mod auth;
mod budget;
mod claims;
mod config;
mod config_source;
mod custom_prompts;
mod edit;
mod env;
mod external_tokens;
mod features;
mod front_matter;
mod home;
mod json;
mod key;
mod key_command;
mod known;
mod layers;
mod login_config;
mod mcp_login;
mod mcp_servers;
mod models;
mod named_files;
mod position;
mod price;
mod programs;
pub mod project_doc;
mod project_files;
mod project_servers;
mod provider;
mod reader;
mod replace;
mod secret;
mod settings;
mod shell_environment;
mod skill_files;
pub mod skill_list;
mod skills;
mod source;
mod store_config;
mod temporary;
mod tree;
mod typed;
mod user_agent;
mod user_config;
mod view;
mod words;

pub use account::Account;
pub use account_host::{AccountError, AccountHost, BegunLogin, LoginKind};
pub use agent_roles::{AgentIsolation, AgentRole, RoleError, RoleSettings};
pub use agents::AgentsConfig;
pub use audit::{AuditedKey, ConfigWarning, Verdict};
pub use auth::{Auth, AuthError, Bearer, TokenSource, Tokens};
pub use budget::BudgetConfig;
pub use claims::Claims;
pub use config::{Config, ConfigError, DEFAULT_PROVIDER, WebSearchMode};
pub use config_source::ConfigSource;
pub use custom_prompts::custom_prompts;
pub use edit::{EditError, Merge};
pub use env::Env;
pub use external_tokens::{ExternalTokens, Pending, TokenRefresher};
pub use features::{Feature, OfferedMode, collaboration_modes, list_features, mode_instructions};
pub use home::{Home, HomeError};
pub use json::{table_json, value_json};
pub use key::{KeyError, KeyPath};
pub use key_command::KeyCommand;
pub use layers::{ConfigFindings, LayerSource, Layers, Overrides, config_files};
pub use login_config::{CredentialsStore, LoginConfig};
pub use mcp_login::{McpLoginConfig, read_mcp_credentials, write_mcp_credentials};
pub use mcp_servers::{McpAddress, McpApprovalMode, McpOauth, McpProgram, McpServer, McpTransport};
pub use models::{ModelCorrection, ModelInfo, ModelTable, OfferedModel, describe_effort};
pub use price::Price;
pub use programs::Programs;
pub use project_files::ProjectFiles;
pub use project_servers::{ProjectServer, ProjectServerState};
pub use provider::{ProviderConfig, WireApi, default_model, local_providers, start_command};
pub use reader::{Reader, ValueError};
pub use secret::Secret;
pub use settings::{
    ChatConfig, ChatDisplay, ChatScreen, DEFAULT_MODEL, HistoryConfig, HistoryPersistence, InstructionsConfig,
    KeyBinding, ModelConfig, ReasoningDisplay, SandboxConfig, TrustLevel,
};
pub use shell_environment::{Inherit, Runner, SERVER_TOKEN_VARIABLE, ShellEnvironmentPolicy};
pub use skill_files::{MOST_SKILL_BYTES, Skills, find_skills};
pub use skills::{SkillSelector, SkillsConfig};
pub use source::LayerError;
pub use store_config::StoreConfig;
pub use temporary::TemporaryFolder;
pub use tree::{Node, Origin, Table, Tree, Value};
pub use user_agent::user_agent;
pub use user_config::{ConfigEdit, ConfigWriteError, Overridden, UserConfig, WriteFault, WriteRequest, Written};
pub use view::{ConfigView, LayerVersion, ListedLayer};
pub use words::UnknownWord;
