//! Requests from the server to a client.

use std::borrow::Cow;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(feature = "schema")]
use super::account::AuthTokensLogin;
use super::item::CommandAction;
use super::permission_request::PermissionsRequestApprovalParams;
#[cfg(feature = "schema")]
use crate::v1::request::ConversationApprovalResponse;
use crate::v1::request::{ApplyPatchApprovalParams, ExecCommandApprovalParams};
use codex_wire::decision::{ElicitationDecision, ReviewDecision};
use codex_wire::dynamic_tool::DynamicToolCallParams;

/// The table of requests: method, parameters, and response.
macro_rules! server_requests {
    ($($(#[doc = $about:literal])* $method:literal => $name:ident($params:ty) -> $response:ty,)*) => {
        /// Requests from the server to a client.
        #[derive(Debug, Clone, Serialize)]
        #[serde(untagged)]
        pub enum ServerRequest {
            $($(#[doc = $about])* $name($params),)*
        }

        impl ServerRequest {
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
            $(tables.request::<$params, $response>(stringify!($name), $method, concat!($($about),*));)*
        }
    };
}

server_requests! {
    /// Requests approval of a command.
    "item/commandExecution/requestApproval" => CommandExecutionRequestApproval(CommandApprovalParams) -> ApprovalResponse,
    /// Requests approval of file changes.
    "item/fileChange/requestApproval" => FileChangeRequestApproval(FileChangeApprovalParams) -> ApprovalResponse,
    /// Requests approval of a command from listeners of a conversation.
    "execCommandApproval" => ExecCommandApproval(ExecCommandApprovalParams) -> ConversationApprovalResponse,
    /// Requests approval of file changes from listeners of a conversation.
    "applyPatchApproval" => ApplyPatchApproval(ApplyPatchApprovalParams) -> ConversationApprovalResponse,
    /// A question of an MCP server, or the approval of a call of its tool.
    "mcpServer/elicitation/request" => McpServerElicitation(McpElicitationParams) -> McpElicitationResponse,
    /// Requests wider permissions for commands.
    "item/permissions/requestApproval" => PermissionsRequestApproval(PermissionsRequestApprovalParams) -> super::permission_request::PermissionsRequestApprovalResponse,
    /// Calls a tool that the client supplies.
    "item/tool/call" => DynamicToolCall(DynamicToolCallParams) -> codex_wire::dynamic_tool::DynamicToolCallResponse,
    /// Requests new tokens from the client, because its own were rejected.
    "account/chatgptAuthTokens/refresh" => ChatgptAuthTokensRefresh(ChatgptAuthTokensRefreshParams) -> AuthTokensLogin,
}

/// `account/chatgptAuthTokens/refresh`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ChatgptAuthTokensRefreshParams {
    /// The reason; always `unauthorized`.
    pub reason: Cow<'static, str>,
    /// The workspace that the refused ones are for.
    pub previous_account_id: Option<String>,
}

/// `item/commandExecution/requestApproval`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "CommandExecutionRequestApprovalParams")
)]
#[serde(rename_all = "camelCase")]
pub struct CommandApprovalParams {
    /// The subject, always a command here.
    pub kind: Cow<'static, str>,
    /// The thread.
    pub thread_id: String,
    /// The turn.
    pub turn_id: String,
    /// The item.
    pub item_id: String,
    /// The start of the item.
    pub started_at_ms: i64,
    /// The environment; always `local` here.
    pub environment_id: Cow<'static, str>,
    /// The reason for the request.
    pub reason: Option<String>,
    /// The command line.
    pub command: String,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Its parsed form, for display.
    pub command_actions: Vec<CommandAction>,
    /// A command prefix that a rule could allow from here on.
    pub proposed_execpolicy_amendment: Option<Vec<String>>,
    /// The answers that make sense.
    pub available_decisions: Vec<Value>,
}

/// `item/fileChange/requestApproval`. The changes are in the item.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FileChangeRequestApprovalParams"))]
#[serde(rename_all = "camelCase")]
pub struct FileChangeApprovalParams {
    /// The thread.
    pub thread_id: String,
    /// The turn.
    pub turn_id: String,
    /// The item.
    pub item_id: String,
    /// The start of the item.
    pub started_at_ms: i64,
    /// The reason for the request.
    pub reason: Option<String>,
    /// A folder that would be writable for the rest of the session.
    pub grant_root: Option<PathBuf>,
}

/// `mcpServer/elicitation/request`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "McpServerElicitationRequestParams"))]
#[serde(rename_all = "camelCase")]
pub struct McpElicitationParams {
    /// The thread.
    pub thread_id: String,
    /// The turn.
    pub turn_id: Option<String>,
    /// The server.
    pub server_name: String,
    /// The form of the answer.
    pub mode: ElicitationMode,
    /// Metadata of the question; `codex_approval_kind` is `mcp_tool_call` if it asks whether a tool may be called.
    #[serde(rename = "_meta")]
    pub meta: Option<Value>,
    /// The question.
    pub message: String,
    /// The JSON Schema of the answer, in the mode `form`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_schema: Option<Value>,
    /// The URL to open, in the mode `url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The server's id of the interaction at that URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
}

/// The form of an answer to an MCP server.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ElicitationMode {
    /// An object.
    Form,
    /// Consent to open a URL.
    Url,
}

/// The answer to `mcpServer/elicitation/request`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "McpServerElicitationRequestResponse"))]
pub struct McpElicitationResponse {
    /// Whether it is answered.
    pub action: ElicitationDecision,
    /// The answer itself.
    #[serde(default)]
    pub content: Option<Value>,
    /// Metadata of the answer; `persist: "session"` allows a tool for the rest of the session.
    #[serde(default, rename = "_meta")]
    pub meta: Option<Value>,
}

/// The answer to an approval request, in any dialect.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApprovalResponse {
    /// The answer.
    #[serde(serialize_with = "camel_decision")]
    #[cfg_attr(feature = "schema", schemars(with = "ApprovalDecision"))]
    pub decision: ReviewDecision,
}

/// Writes a decision in the spelling of this dialect.
fn camel_decision<S: serde::Serializer>(decision: &ReviewDecision, serializer: S) -> Result<S::Ok, S::Error> {
    let camel = match decision {
        ReviewDecision::Approved => ApprovalDecision::Accept,
        ReviewDecision::ApprovedForSession => ApprovalDecision::AcceptForSession,
        ReviewDecision::ApprovedExecpolicyAmendment { proposed_execpolicy_amendment } => {
            let execpolicy_amendment = proposed_execpolicy_amendment.clone();
            ApprovalDecision::AcceptWithExecpolicyAmendment { execpolicy_amendment }
        }
        ReviewDecision::Denied | ReviewDecision::TimedOut => ApprovalDecision::Decline,
        ReviewDecision::Abort => ApprovalDecision::Cancel,
    };
    camel.serialize(serializer)
}

/// A decision in the spelling of this dialect. It is read as [`ReviewDecision`].
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ApprovalDecision {
    /// Approved once.
    Accept,
    /// Approved, and so is the same request for the rest of this session.
    AcceptForSession,
    /// Approved, and commands with this prefix are approved from now on.
    AcceptWithExecpolicyAmendment {
        /// The words of the prefix.
        execpolicy_amendment: Vec<String>,
    },
    /// Denied; the model is informed and continues.
    Decline,
    /// Denied, and the turn ends.
    Cancel,
}
