//! The event queue: messages from the engine to a client.

mod exec;
mod item;
mod mcp;
mod patch;
mod session;
mod text;
mod turn;

pub use exec::*;
pub use item::*;
pub use mcp::*;
pub use patch::*;
pub use session::*;
pub use text::*;
pub use turn::*;

use serde::{Deserialize, Serialize};

pub use crate::agent::{AgentInboxEvent, SubagentLifecycleEvent};
use crate::plan::UpdatePlanArgs;
pub use crate::review::{EnteredReviewModeEvent, ExitedReviewModeEvent, ReviewOutputEvent};

/// One line of the event queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct Event {
    /// The submission that caused it; empty while the session starts.
    pub id: String,
    pub msg: EventMsg,
}

tagged! {
    /// An event from the engine.
    pub enum EventMsg by "type" {
        /// The turn failed.
        "error" => Error(ErrorEvent),
        /// A warning after which the turn continues.
        "warning" => Warning(WarningEvent),
        /// The conversation was compacted to make room.
        "context_compacted" => ContextCompacted,
        /// A turn has started.
        "task_started" | "turn_started" => TaskStarted(TaskStartedEvent),
        /// A turn ended by itself.
        "task_complete" | "turn_complete" => TaskComplete(TaskCompleteEvent),
        /// The token usage so far, and the rate limits of the account.
        "token_count" => TokenCount(TokenCountEvent),
        /// A complete message of the model.
        "agent_message" => AgentMessage(AgentMessageEvent),
        /// A message of the user.
        "user_message" => UserMessage(UserMessageEvent),
        /// A delta of a message.
        "agent_message_delta" => AgentMessageDelta(AgentMessageDeltaEvent),
        /// A complete part of the reasoning summary.
        "agent_reasoning" => AgentReasoning(AgentReasoningEvent),
        /// A delta of the reasoning summary.
        "agent_reasoning_delta" => AgentReasoningDelta(AgentReasoningDeltaEvent),
        /// Raw reasoning.
        "agent_reasoning_raw_content" => AgentReasoningRawContent(AgentReasoningRawContentEvent),
        /// A delta of raw reasoning.
        "agent_reasoning_raw_content_delta" => AgentReasoningRawContentDelta(AgentReasoningRawContentDeltaEvent),
        /// A new part of the reasoning summary begins.
        "agent_reasoning_section_break" => AgentReasoningSectionBreak(AgentReasoningSectionBreakEvent),
        /// The session is ready; always the first event.
        "session_configured" => SessionConfigured(SessionConfiguredEvent),
        /// The startup status of an MCP server has changed.
        "mcp_startup_update" => McpStartupUpdate(McpStartupUpdateEvent),
        /// All MCP servers have started or failed.
        "mcp_startup_complete" => McpStartupComplete(McpStartupCompleteEvent),
        /// A tool of an MCP server is called.
        "mcp_tool_call_begin" => McpToolCallBegin(McpToolCallBeginEvent),
        /// A tool of an MCP server returned a result.
        "mcp_tool_call_end" => McpToolCallEnd(McpToolCallEndEvent),
        /// The provider searches the web.
        "web_search_begin" => WebSearchBegin(WebSearchBeginEvent),
        /// The provider has searched the web.
        "web_search_end" => WebSearchEnd(WebSearchEndEvent),
        /// A command starts.
        "exec_command_begin" => ExecCommandBegin(ExecCommandBeginEvent),
        /// Output of a command.
        "exec_command_output_delta" => ExecCommandOutputDelta(ExecCommandOutputDeltaEvent),
        /// Input was typed into a running command.
        "terminal_interaction" => TerminalInteraction(TerminalInteractionEvent),
        /// A command ended.
        "exec_command_end" => ExecCommandEnd(ExecCommandEndEvent),
        /// The model views an image file.
        "view_image_tool_call" => ViewImageToolCall(ViewImageToolCallEvent),
        /// Requests approval of a command.
        "exec_approval_request" => ExecApprovalRequest(ExecApprovalRequestEvent),
        /// An MCP server asks the user something.
        "elicitation_request" => ElicitationRequest(ElicitationRequestEvent),
        /// Requests approval of file changes.
        "apply_patch_approval_request" => ApplyPatchApprovalRequest(ApplyPatchApprovalRequestEvent),
        /// A setting in use is deprecated.
        "deprecation_notice" => DeprecationNotice(DeprecationNoticeEvent),
        /// Progress that belongs to no item.
        "background_event" => BackgroundEvent(BackgroundEventEvent),
        /// The work tree is being restored.
        "undo_started" => UndoStarted(UndoStartedEvent),
        /// The work tree was restored, or the restore failed.
        "undo_completed" => UndoCompleted(UndoCompletedEvent),
        /// The stream from the provider broke off and is retried.
        "stream_error" => StreamError(StreamErrorEvent),
        /// A patch is about to be applied.
        "patch_apply_begin" => PatchApplyBegin(PatchApplyBeginEvent),
        /// A patch was applied, or has failed.
        "patch_apply_end" => PatchApplyEnd(PatchApplyEndEvent),
        /// All changes of the turn so far.
        "turn_diff" => TurnDiff(TurnDiffEvent),
        /// An entry of the prompt history.
        "get_history_entry_response" => GetHistoryEntryResponse(GetHistoryEntryResponseEvent),
        /// The tools and resources of the MCP servers.
        "mcp_list_tools_response" => McpListToolsResponse(McpListToolsResponseEvent),
        /// The prompts of the user.
        "list_custom_prompts_response" => ListCustomPromptsResponse(ListCustomPromptsResponseEvent),
        /// The skills that apply to some folders.
        "list_skills_response" => ListSkillsResponse(ListSkillsResponseEvent),
        /// Skills changed on disk.
        "skills_update_available" => SkillsUpdateAvailable,
        /// The model changed its plan.
        "plan_update" => PlanUpdate(UpdatePlanArgs),
        /// A turn was interrupted.
        "turn_aborted" => TurnAborted(TurnAbortedEvent),
        /// The session has ended; always the last event.
        "shutdown_complete" => ShutdownComplete,
        /// The path of the rollout file.
        "conversation_path" => ConversationPath(ConversationPathEvent),
        /// A review begins.
        "entered_review_mode" => EnteredReviewMode(EnteredReviewModeEvent),
        /// A review ended.
        "exited_review_mode" => ExitedReviewMode(ExitedReviewModeEvent),
        /// An item as the provider sent it.
        "raw_response_item" => RawResponseItem(RawResponseItemEvent),
        /// An item of the turn has started.
        "item_started" => ItemStarted(ItemStartedEvent),
        /// An item of the turn is complete.
        "item_completed" => ItemCompleted(ItemCompletedEvent),
        /// A delta of a message, with its item.
        "agent_message_content_delta" => AgentMessageContentDelta(AgentMessageContentDeltaEvent),
        /// A delta of a reasoning summary, with its item.
        "reasoning_content_delta" => ReasoningContentDelta(ReasoningContentDeltaEvent),
        /// A delta of raw reasoning, with its item.
        "reasoning_raw_content_delta" => ReasoningRawContentDelta(ReasoningRawContentDeltaEvent),
        /// A subagent was created, changed or deleted.
        "subagent_lifecycle" => SubagentLifecycle(SubagentLifecycleEvent),
        /// The pending input of an agent has changed.
        "agent_inbox" => AgentInbox(AgentInboxEvent),
    }
}
