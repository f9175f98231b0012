//! Notifications from the server to a client, one variant for each method.

use codex_wire::ids::RequestId;
use codex_wire::name::Name;
use codex_wire::plan::StepStatus;
use codex_wire::response::ResponseItem;
use codex_wire::text::Text;
use serde::{Deserialize, Serialize};

use super::account::{
    AccountLoginCompletedNotification, AccountRateLimitsUpdatedNotification, AccountUpdatedNotification,
};
use super::attachment::ThreadAttachmentUpdatedNotification;
use super::command_exec::CommandExecOutputDeltaNotification;
use super::created::{CreatedItemDelta, ItemCreated};
use super::empty::Empty;
use super::fs::FsChangedNotification;
use super::goal::ThreadGoalUpdated;
use super::item::{FileUpdateChange, TimedItem};
use super::mcp_status::{
    McpServerOauthLoginCompletedNotification, McpServerStatusUpdatedNotification, McpToolCallProgressNotification,
};
use super::moved::ServerMovedNotification;
use super::read_state::ThreadReadStateChangedNotification;
use super::search::{FuzzyFileSearchSessionCompletedNotification, FuzzyFileSearchSessionUpdatedNotification};
use super::subscribe::ThreadCaughtUp;
use super::thread::{Thread, ThreadStatus};
use super::turn::{Turn, TurnError, TurnStatus};
use super::usage::ThreadTokenUsage;
use super::warning::{ConfigWarning, DeprecationNotice, Warning, WindowsWorldWritableWarningNotification};
use crate::v1::auth::{AuthStatusChangeNotification, LoginChatGptCompleteNotification};
use crate::v1::conversation::SessionConfiguredNotification;

/// The table of notifications: method and payload.
macro_rules! notifications {
    ($($(#[doc = $about:literal])* $method:literal => $name:ident($params:ty),)*) => {
        /// A notification from the server.
        #[derive(Debug, Clone, Serialize)]
        #[serde(untagged)]
        pub enum ServerNotification {
            $($(#[doc = $about])* $name($params),)*
        }

        impl ServerNotification {
            /// Every method, in the order of the table.
            pub const METHODS: &'static [&'static str] = &[$($method),*];

            /// The method.
            #[must_use]
            pub fn method(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => $method,)*
                }
            }

            /// Reads the parameters of a method; `None` if the table does not have it.
            ///
            /// # Errors
            /// If the parameters are not those of the method.
            pub fn read(method: &str, params: &str) -> Option<Result<Self, serde_json::Error>> {
                match method {
                    $($method => Some(serde_json::from_str(params).map(Self::$name)),)*
                    _ => None,
                }
            }
        }

        #[cfg(feature = "schema")]
        pub(crate) fn describe(tables: &mut impl crate::schema::Tables) {
            $(tables.notification::<$params>(stringify!($name), $method, concat!($($about),*));)*
        }
    };
}

notifications! {
    /// An error in a turn.
    "error" => Error(ErrorNotification),
    /// A thread is ready.
    "thread/started" => ThreadStarted(Box<ThreadStarted>),
    /// The status of a thread has changed.
    "thread/status/changed" => ThreadStatusChanged(ThreadStatusChanged),
    /// A thread was archived.
    "thread/archived" => ThreadArchived(ThreadNamed),
    /// A thread was restored from the archive.
    "thread/unarchived" => ThreadUnarchived(ThreadNamed),
    /// A thread was deleted.
    "thread/deleted" => ThreadDeleted(ThreadNamed),
    /// A thread is no longer loaded.
    "thread/closed" => ThreadClosed(ThreadNamed),
    /// The last turns of a thread were rolled back.
    "thread/reverted" => ThreadReverted(ThreadNamed),
    /// The name of a thread has changed.
    "thread/name/updated" => ThreadNameUpdated(ThreadNameUpdated),
    /// The read state of a thread has changed.
    "thread/readState/changed" => ThreadReadStateChanged(ThreadReadStateChangedNotification),
    /// An attachment of a thread was added or removed.
    "thread/attachment/updated" => ThreadAttachmentUpdated(ThreadAttachmentUpdatedNotification),
    /// The goal of a thread has changed.
    "thread/goal/updated" => ThreadGoalUpdated(Box<ThreadGoalUpdated>),
    /// The goal of a thread was removed.
    "thread/goal/cleared" => ThreadGoalCleared(ThreadNamed),
    /// The queue of a thread has changed.
    "thread/queue/changed" => ThreadQueueChanged(ThreadNamed),
    /// Tokens were used.
    "thread/tokenUsage/updated" => ThreadTokenUsageUpdated(ThreadTokenUsageUpdated),
    /// A conversation was compacted.
    "thread/compacted" => ThreadCompacted(TurnNamed),
    /// A client that reconnected has caught up.
    "thread/caughtUp" => ThreadCaughtUp(ThreadCaughtUp),
    /// A turn has started.
    "turn/started" => TurnStarted(TurnStarted),
    /// A turn is over.
    "turn/completed" => TurnCompleted(TurnCompleted),
    /// The turn has changed files.
    "turn/diff/updated" => TurnDiffUpdated(TurnDiffUpdated),
    /// The model has changed its plan.
    "turn/plan/updated" => TurnPlanUpdated(TurnPlanUpdated),
    /// An item has started.
    "item/started" => ItemStarted(Box<ItemStarted>),
    /// An item is complete.
    "item/completed" => ItemCompleted(Box<ItemCompleted>),
    /// An item of the conversation with the model.
    "rawResponseItem/completed" => RawResponseItemCompleted(Box<RawResponseItemCompleted>),
    /// An item of the dialect `items`.
    "item/created" => ItemCreated(Box<ItemCreated>),
    /// More of an item of the dialect `items`.
    "item/delta" => CreatedItemDelta(Box<CreatedItemDelta>),
    /// More of a message.
    "item/agentMessage/delta" => AgentMessageDelta(ItemDelta),
    /// More output of a command.
    "item/commandExecution/outputDelta" => CommandOutputDelta(ItemDelta),
    /// Input was typed into a terminal.
    "item/commandExecution/terminalInteraction" => TerminalInteraction(TerminalInteraction),
    /// Output of a patch.
    "item/fileChange/outputDelta" => FileChangeOutputDelta(ItemDelta),
    /// The changes of a patch, each time they change.
    "item/fileChange/patchUpdated" => FileChangePatchUpdated(FileChangePatchUpdated),
    /// More of a reasoning summary.
    "item/reasoning/summaryTextDelta" => ReasoningSummaryTextDelta(ReasoningSummaryTextDelta),
    /// A new part of a reasoning summary.
    "item/reasoning/summaryPartAdded" => ReasoningSummaryPartAdded(ReasoningSummaryPartAdded),
    /// More raw reasoning.
    "item/reasoning/textDelta" => ReasoningTextDelta(ReasoningTextDelta),
    /// A server request was resolved.
    "serverRequest/resolved" => ServerRequestResolved(ServerRequestResolved),
    /// The account's limits.
    "account/rateLimits/updated" => AccountRateLimitsUpdated(AccountRateLimitsUpdatedNotification),
    /// A warning for the user.
    "warning" => Warning(Warning),
    /// The startup status of an MCP server has changed.
    "mcpServer/startupStatus/updated" => McpServerStartupStatusUpdated(McpServerStatusUpdatedNotification),
    /// A tool of an MCP server reports progress.
    "item/mcpToolCall/progress" => McpToolCallProgress(McpToolCallProgressNotification),
    /// A warning about the configuration.
    "configWarning" => ConfigWarning(ConfigWarning),
    /// A deprecated feature that the client uses.
    "deprecationNotice" => DeprecationNotice(DeprecationNotice),

    // Methods that are not about threads.

    /// The server ends, and others serve its threads.
    "server/moved" => ServerMoved(ServerMovedNotification),
    /// A login is complete or has failed.
    "account/login/completed" => AccountLoginCompleted(AccountLoginCompletedNotification),
    /// A login to an MCP server is complete or has failed.
    "mcpServer/oauthLogin/completed" => McpServerOauthLoginCompleted(McpServerOauthLoginCompletedNotification),
    /// The login has changed.
    "account/updated" => AccountUpdated(AccountUpdatedNotification),
    /// The same for older clients.
    "authStatusChange" => AuthStatusChange(AuthStatusChangeNotification),
    /// A login is complete or has failed, for older clients.
    "loginChatGptComplete" => LoginChatGptComplete(LoginChatGptCompleteNotification),
    /// An existing conversation is ready.
    "sessionConfigured" => SessionConfigured(Box<SessionConfiguredNotification>),
    /// More output of a command that belongs to no thread.
    "command/exec/outputDelta" => CommandExecOutputDelta(CommandExecOutputDeltaNotification),
    /// The results of a search so far.
    "fuzzyFileSearch/sessionUpdated" => FuzzyFileSearchSessionUpdated(FuzzyFileSearchSessionUpdatedNotification),
    /// A search is complete.
    "fuzzyFileSearch/sessionCompleted" => FuzzyFileSearchSessionCompleted(FuzzyFileSearchSessionCompletedNotification),
    /// The available skills have changed.
    "skills/changed" => SkillsChanged(Empty),
    /// A watched path has changed.
    "fs/changed" => FsChanged(FsChangedNotification),
    /// A warning about world-writable folders; only sent on Windows.
    "windows/worldWritableWarning" => WindowsWorldWritableWarning(WindowsWorldWritableWarningNotification),
}

/// See [`ServerNotification::Error`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ErrorNotification {
    pub error: TurnError,
    /// Whether it is tried again.
    pub will_retry: bool,
    /// The thread.
    pub thread_id: String,
    /// The turn.
    pub turn_id: String,
}

/// See [`ServerNotification::ThreadStarted`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadStarted {
    /// The thread.
    pub thread: Thread,
}

/// See [`ServerNotification::ThreadStatusChanged`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadStatusChanged {
    /// The thread.
    pub thread_id: String,
    pub status: ThreadStatus,
}

/// Notifications that only name a thread.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadNamed {
    /// The thread.
    pub thread_id: String,
}

/// See [`ServerNotification::ThreadNameUpdated`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadNameUpdated {
    /// The thread.
    pub thread_id: String,
    pub thread_name: Option<String>,
}

/// Notifications that only name a turn.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TurnNamed {
    /// The thread.
    pub thread_id: String,
    /// The turn.
    pub turn_id: String,
}

/// See [`ServerNotification::ThreadTokenUsageUpdated`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadTokenUsageUpdated {
    /// The thread.
    pub thread_id: String,
    /// The turn.
    pub turn_id: String,
    pub token_usage: ThreadTokenUsage,
}

/// See [`ServerNotification::TurnStarted`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TurnStarted {
    /// The thread.
    pub thread_id: String,
    /// The turn.
    pub turn: Turn,
}

/// See [`ServerNotification::TurnCompleted`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TurnCompleted {
    /// The thread.
    pub thread_id: String,
    /// The turn.
    pub turn: Turn,
    /// Its id again, for clients that expect it here.
    pub turn_id: String,
    /// Its result again, for the same clients.
    pub status: TurnStatus,
}

/// See [`ServerNotification::TurnDiffUpdated`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TurnDiffUpdated {
    /// The thread.
    pub thread_id: String,
    /// The turn.
    pub turn_id: String,
    /// All changes of the turn so far.
    pub diff: String,
}

/// See [`ServerNotification::TurnPlanUpdated`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TurnPlanUpdated {
    /// The thread.
    pub thread_id: String,
    /// The turn.
    pub turn_id: String,
    /// The reason for the change.
    pub explanation: Option<String>,
    /// The steps, in order.
    pub plan: Vec<TurnPlanStep>,
}

/// One step of a plan.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnPlanStep {
    pub step: String,
    /// Its status.
    pub status: TurnPlanStepStatus,
}

/// The status of a step of a plan.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum TurnPlanStepStatus {
    Pending,
    InProgress,
    Completed,
}

impl TurnPlanStep {
    /// A step.
    #[must_use]
    pub fn new(step: String, status: StepStatus) -> Self {
        let status = match status {
            StepStatus::Pending => TurnPlanStepStatus::Pending,
            StepStatus::InProgress => TurnPlanStepStatus::InProgress,
            StepStatus::Completed => TurnPlanStepStatus::Completed,
        };
        Self { step, status }
    }
}

/// See [`ServerNotification::ItemStarted`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ItemStarted {
    /// The item.
    pub item: TimedItem,
    /// The thread.
    pub thread_id: String,
    /// The turn.
    pub turn_id: String,
    pub started_at_ms: i64,
}

/// See [`ServerNotification::ItemCompleted`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ItemCompleted {
    /// The item.
    pub item: TimedItem,
    /// The thread.
    pub thread_id: String,
    /// The turn.
    pub turn_id: String,
    pub completed_at_ms: i64,
}

/// See [`ServerNotification::RawResponseItemCompleted`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RawResponseItemCompleted {
    /// The thread.
    pub thread_id: String,
    /// The turn.
    pub turn_id: String,
    /// The item.
    pub item: ResponseItem,
}

/// More text of an item.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ItemDelta {
    /// The thread.
    pub thread_id: Name,
    /// The turn.
    pub turn_id: Name,
    /// The item.
    pub item_id: Name,
    /// The text.
    pub delta: Text,
}

/// See [`ServerNotification::TerminalInteraction`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TerminalInteraction {
    /// The thread.
    pub thread_id: String,
    /// The turn.
    pub turn_id: String,
    /// The command.
    pub item_id: String,
    /// The number of the terminal.
    pub process_id: String,
    /// The input that was typed.
    pub stdin: String,
}

/// See [`ServerNotification::FileChangePatchUpdated`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FileChangePatchUpdated {
    /// The thread.
    pub thread_id: String,
    /// The turn.
    pub turn_id: String,
    /// The patch.
    pub item_id: String,
    pub changes: Vec<FileUpdateChange>,
}

/// See [`ServerNotification::ReasoningSummaryTextDelta`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReasoningSummaryTextDelta {
    /// The thread.
    pub thread_id: Name,
    /// The turn.
    pub turn_id: Name,
    /// The item.
    pub item_id: Name,
    /// The text.
    pub delta: Text,
    /// The index of the part, starting at 0.
    pub summary_index: i64,
}

/// See [`ServerNotification::ReasoningSummaryPartAdded`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReasoningSummaryPartAdded {
    /// The thread.
    pub thread_id: Name,
    /// The turn.
    pub turn_id: Name,
    /// The item.
    pub item_id: Name,
    /// The index of the part, starting at 0.
    pub summary_index: i64,
}

/// See [`ServerNotification::ReasoningTextDelta`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReasoningTextDelta {
    /// The thread.
    pub thread_id: Name,
    /// The turn.
    pub turn_id: Name,
    /// The item.
    pub item_id: Name,
    /// The text.
    pub delta: Text,
    /// The index of the part, starting at 0.
    pub content_index: i64,
}

/// See [`ServerNotification::ServerRequestResolved`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerRequestResolved {
    /// The thread.
    pub thread_id: String,
    /// The request.
    pub request_id: RequestId,
}
