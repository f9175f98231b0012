//! What the user has set: `CODEX_HOME`, `config.toml` with profiles and overrides, providers, and `auth.json`.
//!
//! Values come from layers, each over the one before it: the file, the selected profile, `-c key=value`
//! overrides, and the `config` object of a client's request. Every value remembers where it came from, so a
//! bad one is reported with file, line and key.
//!
//! Clients read and change the configuration through [`UserConfig`] and the login through [`Auth`].
//!
//! What runs outside of every sandbox finds its programs with [`Programs`] and works in a [`TemporaryFolder`].
//!
//! Invariants: only files below `CODEX_HOME` are read, only `config.toml` and `auth.json` are written, each as a whole
//! and only with what can be read again, and variables are seen only through [`Env`]. A `.env` file is
//! never loaded, and nothing in a project folder can set an endpoint, a header or a key. A secret is never
//! part of an error or of debug output.

#![cfg_attr(test, allow(clippy::needless_raw_string_hashes, reason = "expect-test writes its snapshots with them"))]

mod account;
mod auth;
mod catalogue;
mod config;
mod edit;
mod effective;
mod env;
mod features;
mod home;
mod json;
mod key;
mod layers;
mod mcp_servers;
pub mod models;
mod page;
mod position;
mod price;
mod programs;
pub mod project_doc;
mod provider;
mod reader;
mod replace;
mod secret;
mod settings;
mod shell_environment;
mod skills;
mod source;
mod temporary;
mod tree;
mod user_agent;
mod user_config;
mod words;

pub use auth::{Auth, AuthError, Bearer, TokenSource, Tokens};
pub use catalogue::list_models;
pub use config::{Config, ConfigError, DEFAULT_PROVIDER};
pub use edit::EditError;
pub use env::Env;
pub use features::{collaboration_modes, list_features, mode_instructions};
pub use home::{Home, HomeError};
pub use key::{KeyError, KeyPath};
pub use layers::Overrides;
pub use mcp_servers::list_mcp_servers;
pub use page::{CursorError, page};
pub use price::Price;
pub use programs::Programs;
pub use provider::{ProviderConfig, WireApi};
pub use reader::{Reader, ValueError};
pub use secret::Secret;
pub use settings::{
    DEFAULT_MODEL, HistoryConfig, HistoryPersistence, InstructionsConfig, ModelConfig, ReasoningDisplay, SandboxConfig,
    TrustLevel,
};
pub use shell_environment::{Inherit, Runner, SERVER_TOKEN_VARIABLE, ShellEnvironmentPolicy};
pub use skills::{SkillSelector, SkillsConfig};
pub use source::LayerError;
pub use temporary::TemporaryFolder;
pub use tree::{Node, Origin, Table, Tree, Value};
pub use user_agent::user_agent;
pub use user_config::{ConfigWriteError, UserConfig};
pub use words::UnknownWord;
