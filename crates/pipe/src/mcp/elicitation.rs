//! Approvals as elicitations: in the form of 0.77, which also follows the standard.

use codex_log::{Answer, ElicitationForm, Question, QuestionKind};
use codex_wire::command_line::display;
use codex_wire::decision::{ElicitationDecision, ReviewDecision};
use codex_wire::ids::{RequestId, ThreadId};
use codex_wire::mcp::McpInvocation;
use serde_json::{Map, Value, json};

/// The kinds of questions that a client can be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Elicits {
    pub(super) form: bool,
    pub(super) url: bool,
}

impl Elicits {
    /// Reads the capabilities of a client. In older versions, forms are the only kind and have no name.
    pub(super) fn of(capabilities: &Value) -> Self {
        match capabilities.get("elicitation") {
            Some(Value::Object(kinds)) => {
                Self { form: kinds.is_empty() || kinds.contains_key("form"), url: kinds.contains_key("url") }
            }
            _ => Self::default(),
        }
    }

    /// Whether the client can be asked this question.
    pub(super) fn takes(self, question: &Question) -> bool {
        match &question.kind {
            QuestionKind::Elicitation(asked) if matches!(asked.form, ElicitationForm::Url { .. }) => self.url,
            _ => self.form,
        }
    }
}

/// The origin of a question.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin<'a> {
    pub(super) thread: ThreadId,
    pub(super) turn: &'a str,
    /// The tool call.
    pub(super) call: &'a RequestId,
}

/// The parameters of `elicitation/create`. A client that knows only the standard sees the message and a form without
/// fields, which is accepted or declined; the members with a prefix tell clients of Codex what it is about.
pub(super) fn params(origin: Origin<'_>, question: &Question) -> Value {
    let mut params = Map::new();
    let mut put = |key: &str, value: Value| drop(params.insert(key.to_owned(), value));
    put("requestedSchema", json!({"type": "object", "properties": {}}));
    put("_meta", json!({"threadId": origin.thread}));
    put("codex_mcp_tool_call_id", origin.call.to_string().into());
    put("codex_event_id", origin.turn.into());
    put("codex_call_id", question.item().as_str().into());
    if let Some(reason) = &question.reason {
        put("codex_reason", reason.as_str().into());
    }
    match &question.kind {
        QuestionKind::Command { argv, cwd, parsed, amendment: _ } => {
            put("message", format!("Allow Codex to run `{}` in `{}`?", display(argv), cwd.display()).into());
            put("codex_elicitation", "exec-approval".into());
            put("codex_command", json!(argv));
            put("codex_cwd", cwd.to_string_lossy().into());
            put("codex_parsed_cmd", json!(parsed));
        }
        QuestionKind::Patch { changes, grant_root } => {
            put("message", "Allow Codex to apply proposed code changes?".into());
            put("codex_elicitation", "patch-approval".into());
            // A path that is not UTF-8 cannot be written as JSON.
            put("codex_changes", serde_json::to_value(&**changes).unwrap_or_default());
            if let Some(root) = grant_root {
                put("codex_grant_root", root.to_string_lossy().into());
            }
        }
        QuestionKind::Permissions { asked, cwd } => {
            put("message", format!("Allow commands more than the sandbox does: {}?", display(&asked.argv())).into());
            put("codex_elicitation", "exec-approval".into());
            put("codex_command", json!(asked.argv()));
            put("codex_cwd", cwd.to_string_lossy().into());
        }
        QuestionKind::Tool { invocation, description } => {
            let McpInvocation { server, tool, arguments } = invocation;
            put("message", format!("Allow Codex to call the tool `{tool}` of the MCP server `{server}`?").into());
            put("codex_elicitation", "mcp-tool-approval".into());
            put("codex_mcp_server", server.as_str().into());
            put("codex_mcp_tool", tool.as_str().into());
            put("codex_mcp_tool_description", json!(description));
            put("codex_mcp_arguments", json!(arguments));
        }
        QuestionKind::Elicitation(asked) => {
            put("message", format!("{}: {}", asked.server, asked.message).into());
            put("codex_elicitation", "mcp-server-question".into());
            match &asked.form {
                ElicitationForm::Schema(schema) => put("requestedSchema", schema.clone()),
                ElicitationForm::Url { url, id } => {
                    put("mode", "url".into());
                    put("url", url.as_str().into());
                    put("elicitationId", id.as_str().into());
                }
            }
        }
    }
    Value::Object(params)
}

/// Decodes an answer: a decision, as clients of 0.77 send it, or an action of the standard, whose content may be a
/// decision. An answer that cannot be decoded is a no.
pub(super) fn read_answer(result: Option<&Value>) -> Answer {
    let decision = |value: &Value| serde_json::from_value::<ReviewDecision>(value.clone()).ok();
    let Some(result) = result else { return Answer::Declined };
    if let Some(decided) = result.get("decision") {
        return decision(decided).map_or(Answer::Declined, Answer::Decision);
    }
    match result.get("action").and_then(Value::as_str) {
        Some("accept") => match result.pointer("/content/decision") {
            Some(decided) => decision(decided).map_or(Answer::Declined, Answer::Decision),
            // The answer to a question of another server, which asks for more than a decision.
            None if result["content"].as_object().is_some_and(|content| !content.is_empty()) => {
                Answer::Given { action: ElicitationDecision::Accept, content: Some(result["content"].clone()) }
            }
            None => Answer::Decision(ReviewDecision::Approved),
        },
        Some("decline") => Answer::Decision(ReviewDecision::Denied),
        Some("cancel") => Answer::Decision(ReviewDecision::Abort),
        _ => Answer::Declined,
    }
}

#[cfg(test)]
mod tests {
    use codex_log::{Elicitation, ItemId, QuestionId};

    use super::*;

    #[test]
    fn kinds_of_questions_are_read_from_capabilities() {
        let of = |capabilities: Value| {
            let Elicits { form, url } = Elicits::of(&capabilities);
            (form, url)
        };
        assert_eq!(of(json!({})), (false, false));
        assert_eq!(of(json!({"elicitation": null})), (false, false));
        assert_eq!(of(json!({"elicitation": {}})), (true, false));
        assert_eq!(of(json!({"elicitation": {"url": {}}})), (false, true));
        assert_eq!(of(json!({"elicitation": {"form": {}, "url": {}}})), (true, true));
    }

    #[test]
    fn an_address_is_shown_only_to_clients_that_can_open_one() {
        let asked = |form| Question {
            id: QuestionId::first(ItemId::new("call")),
            reason: None,
            kind: QuestionKind::Elicitation(Elicitation {
                server: "docs".to_owned(),
                id: RequestId::Integer(1),
                message: "Who are you?".to_owned(),
                form,
            }),
            deadline: None,
        };
        let form = asked(ElicitationForm::Schema(json!({"type": "object"})));
        let url = asked(ElicitationForm::Url { url: "https://docs.example".to_owned(), id: "1".to_owned() });
        let (forms, urls) = (Elicits { form: true, url: false }, Elicits { form: false, url: true });
        assert_eq!([forms.takes(&form), forms.takes(&url)], [true, false]);
        assert_eq!([urls.takes(&form), urls.takes(&url)], [false, true]);
    }

    #[test]
    fn answers_are_read_in_both_forms() {
        let read = |answer: Value| read_answer(Some(&answer));
        let decided = |decision: ReviewDecision| Answer::Decision(decision);
        assert_eq!(read(json!({"decision": "approved"})), decided(ReviewDecision::Approved));
        assert_eq!(read(json!({"decision": "abort"})), decided(ReviewDecision::Abort));
        assert_eq!(read(json!({"action": "accept", "content": {}})), decided(ReviewDecision::Approved));
        assert_eq!(read(json!({"action": "accept"})), decided(ReviewDecision::Approved));
        let for_session = json!({"action": "accept", "content": {"decision": "approved_for_session"}});
        assert_eq!(read(for_session), decided(ReviewDecision::ApprovedForSession));
        assert_eq!(read(json!({"action": "decline"})), decided(ReviewDecision::Denied));
        assert_eq!(read(json!({"action": "cancel"})), decided(ReviewDecision::Abort));
        // A decision is more specific than an action.
        assert_eq!(read(json!({"action": "accept", "decision": "denied"})), decided(ReviewDecision::Denied));
    }

    #[test]
    fn nonsense_is_a_no() {
        for answer in [json!(null), json!(true), json!({}), json!({"action": "yes"}), json!({"decision": "maybe"})] {
            assert_eq!(read_answer(Some(&answer)), Answer::Declined, "{answer}");
        }
        let odd = json!({"action": "accept", "content": {"decision": "maybe"}});
        assert_eq!(read_answer(Some(&odd)), Answer::Declined);
        assert_eq!(read_answer(None), Answer::Declined);
    }
}
