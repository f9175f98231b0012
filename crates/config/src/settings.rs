//! The groups of settings in the configuration, one row per key.

use std::collections::BTreeMap;
use std::path::PathBuf;

use codex_wire::{
    policy::{SandboxMode, SandboxPolicy, WorkspaceWrite},
    reasoning::{ReasoningEffort, ReasoningSummary, Verbosity},
};

use crate::{ModelCorrection, Reader, ValueError, provider::default_model, words::words};

/// The default model.
pub const DEFAULT_MODEL: &str = "gpt-5.1-codex";

const PROJECT_DOC_MAX_BYTES: u64 = 32 * 1024;

words! {
    /// Whether prompts are written to `history.jsonl`.
    pub enum HistoryPersistence {
        /// All of them.
        "save-all" => SaveAll,
        /// None of them.
        "none" => None,
    }
}

words! {
    /// The user's trust in a project folder.
    pub enum TrustLevel {
        /// Its own configuration and instructions may be used.
        "trusted" => Trusted,
        /// Nothing in it is used.
        "untrusted" => Untrusted,
    }
}

/// The settings of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelConfig {
    /// `model`.
    pub name: String,
    /// `review_model`: the model for reviews, if it is another.
    pub review: Option<String>,
    /// `oss_provider`: the provider that `--oss` selects.
    pub local_server: Option<String>,
    /// `model_catalog_json`: a file that describes models.
    pub catalogue: Option<PathBuf>,
    /// `model_context_window`: the size of the context window in tokens.
    pub context_window: Option<u64>,
    /// `model_auto_compact_token_limit`: the number of tokens at which the history is compacted.
    pub auto_compact_token_limit: Option<u64>,
    /// `model_reasoning_effort`.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// `model_reasoning_summary`.
    pub reasoning_summary: ReasoningSummary,
    /// `model_verbosity`.
    pub verbosity: Option<Verbosity>,
    /// `[models."<name>"]`: the user's corrections.
    pub corrections: BTreeMap<String, ModelCorrection>,
    /// `wait_for_limits`: whether a turn waits until an exhausted allowance is restored.
    pub waits_for_limits: bool,
    /// `max_turn_requests`: the maximum number of requests to the model in one turn.
    pub turn_requests: u32,
}

/// The default of `max_turn_requests`: more than a day of work needs.
const DEFAULT_TURN_REQUESTS: u32 = 1000;

impl ModelConfig {
    pub(crate) fn read(root: &Reader<'_>) -> Result<Self, ValueError> {
        Ok(Self {
            name: match root.str("model")? {
                Some(name) => name,
                None => default_model(&root.str("model_provider")?.unwrap_or_default()).to_owned(),
            },
            review: root.str("review_model")?,
            local_server: root.str("oss_provider")?,
            catalogue: root.path("model_catalog_json")?,
            context_window: root.integer("model_context_window", 1..)?,
            auto_compact_token_limit: root.integer("model_auto_compact_token_limit", 1..)?,
            reasoning_effort: root.word("model_reasoning_effort")?,
            reasoning_summary: root.word("model_reasoning_summary")?.unwrap_or(ReasoningSummary::Auto),
            verbosity: root.word("model_verbosity")?,
            corrections: root.map("models", ModelCorrection::read)?,
            waits_for_limits: root.bool("wait_for_limits")?.unwrap_or(false),
            turn_requests: root.integer("max_turn_requests", 1..)?.unwrap_or(DEFAULT_TURN_REQUESTS),
        })
    }
}

/// The default of `limits.processes`: more than any build uses, and few enough that the machine stays usable.
const DEFAULT_PROCESSES: u32 = 4096;

/// The smallest `limits.memory`: with less, hardly any program starts.
const LEAST_MEMORY: u64 = 64 << 20;

/// The writable folders of commands, and their limits on processes and memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxConfig {
    /// `sandbox_mode`, if it is set.
    pub mode: Option<SandboxMode>,
    /// `[sandbox_workspace_write]`, which applies only in that mode.
    pub workspace_write: WorkspaceWrite,
    /// `limits.processes`: the maximum number of processes and threads of one command.
    pub most_processes: u32,
    /// `limits.memory`: the maximum number of bytes of memory of one command. There is no default: the needs of builds
    /// and tests differ by orders of magnitude, and a limit that nobody chose would kill commands that would have
    /// succeeded.
    pub most_memory: Option<u64>,
    /// `sandbox_workspace_write.protected_names`: additional names that commands may not create.
    pub protected_names: Vec<String>,
    /// `sandbox_workspace_write.unprotected_names`: names that they may create after all.
    pub unprotected_names: Vec<String>,
}

impl SandboxConfig {
    /// Reads the tables.
    pub fn read(root: &Reader<'_>) -> Result<Self, ValueError> {
        let limits = root.section("sandbox_workspace_write")?;
        let amounts = root.section("limits")?;
        let processes = amounts.integer("processes", 16..)?;
        Ok(Self {
            most_processes: processes.unwrap_or(DEFAULT_PROCESSES),
            most_memory: amounts.bytes("memory", LEAST_MEMORY)?,
            mode: root.word("sandbox_mode")?,
            workspace_write: WorkspaceWrite {
                writable_roots: limits.paths("writable_roots")?.unwrap_or_default(),
                network_access: limits.bool("network_access")?.unwrap_or(false),
                exclude_tmpdir_env_var: limits.bool("exclude_tmpdir_env_var")?.unwrap_or(false),
                exclude_slash_tmp: limits.bool("exclude_slash_tmp")?.unwrap_or(false),
            },
            protected_names: limits.strings("protected_names")?.unwrap_or_default(),
            unprotected_names: limits.strings("unprotected_names")?.unwrap_or_default(),
        })
    }

    /// The policy of a mode with these settings.
    #[must_use]
    pub fn policy_of(&self, mode: SandboxMode) -> SandboxPolicy {
        match mode {
            SandboxMode::WorkspaceWrite => SandboxPolicy::WorkspaceWrite(self.workspace_write.clone()),
            SandboxMode::ReadOnly => SandboxPolicy::ReadOnly,
            SandboxMode::DangerFullAccess => SandboxPolicy::DangerFullAccess,
        }
    }

    /// The configured policy; read-only by default.
    #[must_use]
    pub fn policy(&self) -> SandboxPolicy {
        self.policy_of(self.mode.unwrap_or(SandboxMode::ReadOnly))
    }
}

/// The instructions for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionsConfig {
    /// `instructions`.
    pub user: Option<String>,
    /// `developer_instructions`.
    pub developer: Option<String>,
    /// `model_instructions_file`, formerly `experimental_instructions_file`: replaces the base instructions.
    pub base_file: Option<PathBuf>,
    /// `project_doc_max_bytes`: the maximum total size of the project's `AGENTS.md` files.
    pub project_doc_max_bytes: u64,
    /// `project_doc_fallback_filenames`: names to try if there is no `AGENTS.md`.
    pub project_doc_fallback_filenames: Vec<String>,
}

impl InstructionsConfig {
    pub(crate) fn read(root: &Reader<'_>) -> Result<Self, ValueError> {
        Ok(Self {
            user: root.str("instructions")?,
            developer: root.str("developer_instructions")?,
            base_file: root.path("model_instructions_file")?.or(root.path("experimental_instructions_file")?),
            project_doc_max_bytes: root.integer("project_doc_max_bytes", 0..)?.unwrap_or(PROJECT_DOC_MAX_BYTES),
            project_doc_fallback_filenames: root.strings("project_doc_fallback_filenames")?.unwrap_or_default(),
        })
    }
}

/// The displayed parts of the model's reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReasoningDisplay {
    /// `hide_agent_reasoning`: show none of it.
    pub hide: bool,
    /// `show_raw_agent_reasoning`: show more than the summary.
    pub raw: bool,
}

impl ReasoningDisplay {
    pub(crate) fn read(root: &Reader<'_>) -> Result<Self, ValueError> {
        Ok(Self {
            hide: root.bool("hide_agent_reasoning")?.unwrap_or(false),
            raw: root.bool("show_raw_agent_reasoning")?.unwrap_or(false),
        })
    }
}

words! {
    /// The kind of chat in the terminal.
    pub enum ChatScreen {
        /// It uses the whole screen.
        "full" => Full,
        /// It appends lines.
        "lines" => Lines,
    }
}

/// `[tui]` and `[history]`: the settings of the chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatConfig {
    pub history: HistoryConfig,
    pub screen: Option<ChatScreen>,
    /// The name of a theme. Other releases have other names, so an unknown one is no error.
    pub theme: Option<String>,
    /// Whether the mouse scrolls and selects.
    pub mouse: bool,
    /// `vim`: whether the prompt has the keys of vi.
    pub has_vim: bool,
    /// `[tui.keys]`: the keys of actions. The chat knows what they mean.
    pub keys: Vec<KeyBinding>,
    pub display: ChatDisplay,
}

/// The keys of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyBinding {
    pub action: String,
    pub keys: Vec<String>,
    /// The place where they are written.
    pub at: String,
}

impl KeyBinding {
    /// One key or a list of them for each action.
    fn read(tui: &Reader<'_>) -> Result<Vec<Self>, ValueError> {
        let table = tui.section("keys")?;
        let mut all = Vec::new();
        for action in table.keys() {
            let one = table.str(action).ok().flatten();
            let keys = match one {
                Some(key) => vec![key],
                None => table.strings(action)?.unwrap_or_default(),
            };
            let at = table.node(action).map(|node| node.origin.to_string()).unwrap_or_default();
            all.push(Self { action: action.to_owned(), keys, at });
        }
        Ok(all)
    }
}

/// The display settings of the full-screen chat. Names in them are checked by the chat, which knows them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChatDisplay {
    /// The part of items that is shown at first.
    pub fold: Option<String>,
    /// The parts of the status line.
    pub status_line: Option<Vec<String>>,
    /// A program whose output is the status line.
    pub status_command: Option<Vec<String>>,
    /// Whether the terminal is told that somebody waits while its window is not in front.
    pub notifications: bool,
    /// The colours of themes by their names.
    pub themes: BTreeMap<String, BTreeMap<String, String>>,
}

impl ChatDisplay {
    fn read(tui: &Reader<'_>) -> Result<Self, ValueError> {
        Ok(Self {
            fold: tui.str("fold")?,
            status_line: tui.strings("status_line")?,
            status_command: tui.strings("status_command")?,
            // Other releases name the events here, which all mean the same.
            notifications: tui.bool("notifications").unwrap_or(Some(true)).unwrap_or(true),
            themes: tui.map("themes", |themes, name| themes.string_map(name).map(Some))?,
        })
    }
}

impl ChatConfig {
    pub(crate) fn read(root: &Reader<'_>) -> Result<Self, ValueError> {
        let tui = root.section("tui")?;
        Ok(Self {
            history: HistoryConfig::read(root)?,
            screen: tui.word("screen")?,
            theme: tui.str("theme")?,
            mouse: tui.bool("mouse")?.unwrap_or(true),
            has_vim: tui.bool("vim")?.unwrap_or(false),
            keys: KeyBinding::read(&tui)?,
            display: ChatDisplay::read(&tui)?,
        })
    }
}

/// `[history]`: the settings of the prompt history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryConfig {
    pub persistence: HistoryPersistence,
    /// The maximum size of the file.
    pub max_bytes: Option<u64>,
}

impl HistoryConfig {
    fn read(root: &Reader<'_>) -> Result<Self, ValueError> {
        let history = root.section("history")?;
        Ok(Self {
            persistence: history.word("persistence")?.unwrap_or(HistoryPersistence::SaveAll),
            max_bytes: history.integer("max_bytes", 0..)?,
        })
    }
}
