//! The event queue as a projection of the log: the messages that `codex proto` prints, `codex/event/*` carries and
//! rollouts store.
//!
//! A pure function: the same event always gives the same messages.

mod items;

use std::path::PathBuf;

use codex_log::messages;
use codex_wire::error_info::CodexErrorInfo;
use codex_wire::event::{
    AgentMessageContentDeltaEvent, AgentMessageDeltaEvent, AgentMessageEvent, AgentReasoningDeltaEvent,
    AgentReasoningRawContentDeltaEvent, AgentReasoningSectionBreakEvent, ApplyPatchApprovalRequestEvent,
    BackgroundEventEvent, ElicitationRequestEvent, ErrorEvent, EventMsg, ExecApprovalRequestEvent,
    ExecCommandOutputDeltaEvent, RawResponseItemEvent, ReasoningContentDeltaEvent, ReasoningRawContentDeltaEvent,
    SessionConfiguredEvent, StreamErrorEvent, TerminalInteractionEvent, TurnDiffEvent, ViewImageToolCallEvent,
    WarningEvent,
};
use codex_wire::ids::ThreadId;
use codex_wire::mcp::McpInvocation;

use codex_log::agents::AgentEvent;
use codex_log::{Body, Compacted, Delta, Event, ItemId, Question, QuestionKind, ThreadStarted, limit_words};

/// The optional messages, added by later releases, that a client wants.
#[derive(Debug, Clone, Copy, Default)]
pub struct Vocabulary {
    /// `item_started`, `item_completed` and the deltas that name their item, in addition to the older messages.
    pub items: bool,
    /// Raw reasoning, not only its summary.
    pub raw_reasoning: bool,
    /// Every item of the conversation with the model.
    pub raw_items: bool,
}

/// Appends the messages of an event.
pub fn project(event: &Event, vocabulary: Vocabulary, out: &mut Vec<EventMsg>) {
    let view = View { event, vocabulary };
    match &event.body {
        Body::ThreadStarted(started) => out.push(session_configured(event.thread, started)),
        Body::ModelAsked(_)
        | Body::ItemInterrupted(_)
        | Body::WentBack { .. }
        | Body::RolledBack(_)
        | Body::CallProgressed { .. }
        | Body::Budget(_)
        | Body::Unread(_)
        | Body::GoalChanged(_)
        | Body::GoalCleared
        | Body::Queue(_) => {}
        Body::Recorded(record) => {
            if vocabulary.raw_items
                && let Some(item) = record.item()
            {
                out.push(EventMsg::RawResponseItem(RawResponseItemEvent { item: (*item).clone() }));
            }
        }
        Body::ItemStarted(item) => view.item_started(item, out),
        Body::ItemDelta { item, delta } => view.item_delta(item, delta, out),
        Body::ItemCompleted(item) => view.item_completed(item, out),
        Body::Asked(question) => out.push(view.asked(question)),
        Body::Answered { answer, item, .. } => {
            if let Some(item) = item.as_ref().filter(|_| answer.allows()) {
                view.allowed(item, out);
            }
        }
        Body::Agent(told) => agent(told, out),
        Body::DiffChanged(diff) => {
            out.push(EventMsg::TurnDiff(TurnDiffEvent { unified_diff: diff.to_string() }));
        }
        Body::TerminalWritten { item, terminal, stdin } => out.push(terminal_interaction(item, *terminal, stdin)),
        Body::ImageViewed { item, path } => {
            let (call_id, path) = (item.as_str().to_owned(), path.clone());
            out.push(EventMsg::ViewImageToolCall(ViewImageToolCallEvent { call_id, path }));
        }
        Body::PlanUpdated(plan) => out.push(EventMsg::PlanUpdate(plan.clone())),
        Body::Compacted(compacted) => view.compacted(compacted, out),
        Body::AnswerRetried { failure, attempt, limit, delay } => {
            let message = format!("{}; retrying {attempt}/{limit} in {}ms", failure.message, delay.as_millis());
            let codex_error_info = Some(failure.info.clone());
            out.push(EventMsg::StreamError(StreamErrorEvent { message, codex_error_info }));
        }
        Body::ServerChanged(changed) => out.push(EventMsg::McpStartupUpdate((**changed).clone())),
        Body::ServersStarted(started) => out.push(EventMsg::McpStartupComplete((**started).clone())),
        Body::LimitReached { failure, until_ms, .. } => {
            let (message, codex_error_info) = (limit_words(failure, *until_ms), Some(failure.info.clone()));
            out.push(EventMsg::StreamError(StreamErrorEvent { message, codex_error_info }));
        }
        Body::Warning { message } => out.push(EventMsg::Warning(WarningEvent { message: message.clone() })),
        Body::TurnStarted { .. } | Body::TokensCounted { .. } | Body::ReviewEntered(_) | Body::ReviewExited(_) => {
            messages::kept(&event.body, out);
        }
        Body::TurnEnded(_) => turn_ended(&event.body, out),
    }
}

fn turn_ended(body: &Body, out: &mut Vec<EventMsg>) {
    messages::kept(body, out);
    out.iter_mut().for_each(use_known_kind);
}

/// Replaces a kind of error that is newer than the event queue.
fn use_known_kind(message: &mut EventMsg) {
    if let EventMsg::Error(ErrorEvent { codex_error_info: Some(info), .. }) = message
        && *info == CodexErrorInfo::SessionBudgetExceeded
    {
        *info = CodexErrorInfo::Other;
    }
}

/// Clients are told about children and the amount of mail; everything else is for the log.
fn agent(told: &AgentEvent, out: &mut Vec<EventMsg>) {
    match told {
        AgentEvent::Lifecycle(event) => out.push(EventMsg::SubagentLifecycle(event.clone())),
        AgentEvent::Inbox(change) => out.push(EventMsg::AgentInbox(change.inbox.clone())),
        AgentEvent::Mail(_)
        | AgentEvent::Read(_)
        | AgentEvent::Result(_)
        | AgentEvent::Watchdog(_)
        | AgentEvent::Inherited(_)
        | AgentEvent::Numbers(_)
        | AgentEvent::All(_) => {}
    }
}

fn terminal_interaction(item: &ItemId, terminal: u64, stdin: &str) -> EventMsg {
    EventMsg::TerminalInteraction(TerminalInteractionEvent {
        call_id: item.as_str().to_owned(),
        process_id: terminal.to_string(),
        stdin: stdin.to_owned(),
    })
}

/// The message with the settings of a thread.
#[must_use]
pub fn session_configured(thread: ThreadId, started: &ThreadStarted) -> EventMsg {
    let settings = &started.settings;
    EventMsg::SessionConfigured(SessionConfiguredEvent {
        session_id: thread,
        model: settings.model.clone(),
        model_provider_id: Some(started.provider.clone()),
        approval_policy: Some(settings.approval_policy),
        sandbox_policy: Some(settings.sandbox_policy.clone()),
        cwd: Some(settings.cwd.clone()),
        reasoning_effort: settings.effort.clone(),
        history_log_id: started.history_log,
        history_entry_count: started.history_entries,
        initial_messages: None,
        rollout_path: started.rollout.clone(),
    })
}

/// An event with the options of its client.
struct View<'a> {
    event: &'a Event,
    vocabulary: Vocabulary,
}

impl View<'_> {
    fn turn_id(&self) -> String {
        self.event.turn.as_ref().map(|turn| turn.as_str().to_owned()).unwrap_or_default()
    }

    fn compacted(&self, compacted: &Compacted, out: &mut Vec<EventMsg>) {
        let Compacted { before, after, .. } = compacted;
        let message = format!("the conversation was compacted: about {before} tokens before, about {after} now");
        out.push(EventMsg::BackgroundEvent(BackgroundEventEvent { message }));
        out.push(EventMsg::ContextCompacted);
        if !self.vocabulary.items {
            let message = "Compact task completed".into();
            out.push(EventMsg::AgentMessage(AgentMessageEvent { message }));
        }
    }

    fn asked(&self, question: &Question) -> EventMsg {
        let (call_id, turn_id) = (question.item().as_str().to_owned(), Some(self.turn_id()));
        let reason = question.reason.clone();
        match &question.kind {
            QuestionKind::Command { argv, cwd, parsed, amendment } => {
                EventMsg::ExecApprovalRequest(ExecApprovalRequestEvent {
                    call_id,
                    turn_id,
                    command: argv.clone(),
                    cwd: cwd.clone(),
                    reason,
                    proposed_execpolicy_amendment: amendment.clone(),
                    parsed_cmd: parsed.clone(),
                })
            }
            QuestionKind::Permissions { asked, cwd } => EventMsg::ExecApprovalRequest(ExecApprovalRequestEvent {
                call_id,
                turn_id,
                command: asked.argv(),
                cwd: cwd.clone(),
                reason,
                proposed_execpolicy_amendment: None,
                parsed_cmd: Vec::new(),
            }),
            QuestionKind::Patch { changes, grant_root } => {
                let (changes, grant_root) = ((**changes).clone(), grant_root.clone());
                EventMsg::ApplyPatchApprovalRequest(ApplyPatchApprovalRequestEvent {
                    call_id,
                    turn_id,
                    changes,
                    reason,
                    grant_root,
                })
            }
            QuestionKind::Tool { invocation, .. } => self.asked_about_tool(question, invocation),
            QuestionKind::Elicitation(asked) => EventMsg::ElicitationRequest(ElicitationRequestEvent {
                server_name: asked.server.clone(),
                id: asked.id.clone(),
                message: asked.message.clone(),
            }),
        }
    }

    /// A call of an MCP tool is approved like a command, because all clients of the queue can answer that.
    fn asked_about_tool(&self, question: &Question, invocation: &McpInvocation) -> EventMsg {
        EventMsg::ExecApprovalRequest(ExecApprovalRequestEvent {
            call_id: question.item().as_str().to_owned(),
            turn_id: Some(self.turn_id()),
            command: crate::mcp_tool::argv(invocation),
            cwd: PathBuf::new(),
            reason: question.reason.clone(),
            proposed_execpolicy_amendment: None,
            parsed_cmd: crate::mcp_tool::parsed(invocation),
        })
    }

    fn item_delta(&self, item: &ItemId, delta: &Delta, out: &mut Vec<EventMsg>) {
        let items = self.vocabulary.items;
        let (thread_id, item_id) = (self.event.thread, || item.as_str().to_owned());
        match delta {
            Delta::Text(text) => {
                if items {
                    out.push(EventMsg::AgentMessageContentDelta(AgentMessageContentDeltaEvent {
                        thread_id,
                        turn_id: self.turn_id(),
                        item_id: item_id(),
                        delta: text.clone(),
                    }));
                }
                out.push(EventMsg::AgentMessageDelta(AgentMessageDeltaEvent { delta: text.clone() }));
            }
            Delta::Output { stream, bytes } => {
                out.push(EventMsg::ExecCommandOutputDelta(ExecCommandOutputDeltaEvent {
                    call_id: item_id(),
                    stream: *stream,
                    chunk: bytes.clone(),
                }));
            }
            Delta::SummaryPart { index } => {
                out.push(EventMsg::AgentReasoningSectionBreak(AgentReasoningSectionBreakEvent {
                    item_id: item_id(),
                    summary_index: *index,
                }));
            }
            Delta::Summary { index, text } => {
                if items {
                    out.push(EventMsg::ReasoningContentDelta(ReasoningContentDeltaEvent {
                        thread_id,
                        turn_id: self.turn_id(),
                        item_id: item_id(),
                        delta: text.clone(),
                        summary_index: *index,
                    }));
                }
                out.push(EventMsg::AgentReasoningDelta(AgentReasoningDeltaEvent { delta: text.clone() }));
            }
            Delta::Raw { .. } if !self.vocabulary.raw_reasoning => {}
            Delta::Raw { index, text } => {
                if items {
                    out.push(EventMsg::ReasoningRawContentDelta(ReasoningRawContentDeltaEvent {
                        thread_id,
                        turn_id: self.turn_id(),
                        item_id: item_id(),
                        delta: text.clone(),
                        content_index: *index,
                    }));
                }
                out.push(EventMsg::AgentReasoningRawContentDelta(AgentReasoningRawContentDeltaEvent {
                    delta: text.clone(),
                }));
            }
        }
    }
}
