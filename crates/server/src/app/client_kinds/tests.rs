use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use codex_dialects::event_filter::{EventFilter, Subscriptions};
use codex_log::permissions::Permissions;
use codex_log::{Elicitation, ElicitationForm, ItemId, Question, QuestionId, QuestionKind};
use codex_wire::ids::{RequestId, ThreadId};
use codex_wire::mcp::McpInvocation;
use serde_json::json;

use super::*;
use crate::app::questions;

const PAGE: &str = "docs/compatibility.md";
const BEGIN: &str = "<!-- kinds of clients: made by a test of crates/server -->\n";
const END: &str = "<!-- end -->\n";

const STRANGER: Signs<'_> = Signs {
    emulate: None,
    default: ProtocolRelease::V077,
    dialect: None,
    name: "x",
    has_capabilities: false,
    has_old_policy: false,
};

fn spelling(params: &str) -> Option<PolicySpelling> {
    let params = RawValue::from_string(params.to_owned()).unwrap();
    PolicySpelling::of(Some(&params))
}

#[test]
fn policies_tell_the_age_of_a_client() {
    use PolicySpelling::{CamelCase, KebabCase};
    for (params, expected) in [
        (r#"{"approvalPolicy":"onRequest"}"#, Some(CamelCase)),
        (r#"{"approvalPolicy":"unlessTrusted","sandbox":"read-only"}"#, Some(CamelCase)),
        (r#"{"sandbox":"workspaceWrite","approvalPolicy":"never"}"#, Some(CamelCase)),
        (r#"{"approvalPolicy":"on-request"}"#, Some(KebabCase)),
        (r#"{"approvalPolicy":"untrusted","sandbox":"danger-full-access"}"#, Some(KebabCase)),
        (r#"{"approvalPolicy":"never"}"#, None),
        (r#"{"approvalPolicy":{"granular":{"sandboxApproval":true}}}"#, None),
        (r#"{"sandboxPolicy":{"type":"workspaceWrite"}}"#, None),
        (r#"{"approvalPolicy":7,"sandbox":null}"#, None),
        ("{}", None),
        ("[]", None),
    ] {
        assert_eq!(spelling(params), expected, "{params}");
    }
    assert_eq!(PolicySpelling::of(None), None);
}

#[test]
fn the_flag_precedes_the_name_and_the_name_the_policies() {
    let plugin = Signs { name: "jetbrains-codex", has_old_policy: true, ..STRANGER };
    let items = plugin.traits();
    assert_eq!((items.dialect, items.approvals), (Some(Dialect::Items), Some(ApprovalForms::V1)));
    assert!(items.leaves_out_null);
    let emulated = Signs { emulate: Some(ProtocolRelease::V058), ..plugin }.traits();
    assert_eq!((emulated.dialect, emulated.release), (None, ProtocolRelease::V058));
    let both = Signs { name: "jetbrains-codex", dialect: Some(Dialect::Both), ..STRANGER }.traits();
    assert_eq!(both.dialect, Some(Dialect::Both));
    // Under any option it is asked in the form that it answers, and without the members at which it stops.
    assert_eq!((both.approvals, both.leaves_out_null), (Some(ApprovalForms::V1), true));
    let old = Signs { has_old_policy: true, ..STRANGER }.traits();
    assert_eq!((old.release, old.approvals), (ProtocolRelease::V058, Some(ApprovalForms::V1)));
    assert!(old.has_events);
    let mixed = Signs { has_old_policy: true, has_capabilities: true, ..STRANGER }.traits();
    assert_eq!((mixed.release, mixed.approvals), (ProtocolRelease::V0166, Some(ApprovalForms::Both)));
}

#[test]
fn a_client_without_a_sign_gets_what_the_server_gives_by_default() {
    assert_eq!(STRANGER.traits().release, ProtocolRelease::V077);
    let by_default = Signs { default: ProtocolRelease::V0166, ..STRANGER }.traits();
    assert_eq!((by_default.release, by_default.has_events), (ProtocolRelease::V0166, true));
    let told = Signs { emulate: Some(ProtocolRelease::V077), has_capabilities: true, ..STRANGER }.traits();
    assert_eq!((told.release, told.has_events), (ProtocolRelease::V077, true));
}

/// The requests that the clients of a kind answer: to any other they say nothing at all.
fn answered_by(kind: &ClientKind, is_conversation: bool) -> Vec<&'static str> {
    let of_v1 = ["execCommandApproval", "applyPatchApproval"];
    let of_v2 = ["item/commandExecution/requestApproval", "item/fileChange/requestApproval"];
    let of_0166 = ["mcpServer/elicitation/request", "item/permissions/requestApproval"];
    match (kind.sign, kind.release) {
        // Of a client of two ages nobody knows which form it answers: it may be this one.
        (Sign::Name(_) | Sign::OldPolicy | Sign::OldPolicyAndCapabilities, _) => of_v1.to_vec(),
        _ if is_conversation => of_v1.to_vec(),
        (_, ProtocolRelease::V0166) => [of_v2, of_0166].concat(),
        (_, ProtocolRelease::V058 | ProtocolRelease::V077) => of_v2.to_vec(),
    }
}

fn subjects() -> Vec<QuestionKind> {
    let invocation = McpInvocation { server: "s".to_owned(), tool: "t".to_owned(), arguments: None };
    let elicitation = |form| {
        let (server, message) = ("s".to_owned(), "Go on?".to_owned());
        QuestionKind::Elicitation(Elicitation { server, id: RequestId::Integer(1), message, form })
    };
    vec![
        QuestionKind::Command { argv: vec!["ls".to_owned()], cwd: "/".into(), parsed: Vec::new(), amendment: None },
        QuestionKind::Patch { changes: Arc::default(), grant_root: None },
        QuestionKind::Tool { invocation, description: None },
        QuestionKind::Permissions { asked: Permissions { write: vec!["/a".into()], network: true }, cwd: "/".into() },
        elicitation(ElicitationForm::Schema(json!({"type": "object", "properties": {}}))),
        elicitation(ElicitationForm::Schema(json!({"type": "object", "required": ["name"]}))),
        elicitation(ElicitationForm::Url { url: "https://example.com".to_owned(), id: "1".to_owned() }),
    ]
}

#[test]
fn every_kind_of_client_is_asked_in_a_form_that_it_answers() {
    let mut conversation = Subscriptions::default();
    conversation.add("listener".to_owned(), false);
    for (kind, is_conversation) in KINDS.iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        let (name, sign) = match kind.sign {
            Sign::Name(name) => (name, Sign::Nothing),
            sign => ("x", sign),
        };
        let signs = Signs {
            name,
            has_old_policy: matches!(sign, Sign::OldPolicy | Sign::OldPolicyAndCapabilities),
            has_capabilities: matches!(sign, Sign::Capabilities | Sign::OldPolicyAndCapabilities),
            ..STRANGER
        };
        let traits = signs.traits();
        let subscriptions = if is_conversation { conversation.clone() } else { Subscriptions::v2() };
        let forms = questions::dialects(EventFilter::of(Some(traits), &subscriptions).approvals);
        for subject in subjects() {
            let (id, reason, deadline) = (QuestionId::first(ItemId::new("i")), None, None);
            let needs_content = matches!(&subject, QuestionKind::Elicitation(asked) if asked.needs_content());
            let asked = Question { id, reason, kind: subject, deadline };
            let worded = |form: &_| questions::worded(Some(traits), ThreadId::fresh(), *form, "t", &asked, 0);
            let requests: Vec<_> = forms.iter().filter_map(worded).map(|request| request.method()).collect();
            let answered = answered_by(kind, is_conversation);
            let is_answered = requests.iter().any(|method| answered.contains(method));
            // A question that nobody could answer is declined at once; a client of two ages may be of the one that can.
            let is_declined = needs_content && (requests.is_empty() || kind.sign == Sign::OldPolicyAndCapabilities);
            assert!(is_answered || is_declined, "{:?}, {is_conversation}: {:?}: {requests:?}", kind.sign, asked.kind);
        }
    }
}

#[test]
fn the_page_has_the_table() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE);
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the page marks where the table begins");
    let (table, after) = rest.split_once(END).expect("the page marks where the table ends");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&page, [before, BEGIN, &written(), END, after].concat()).unwrap();
    } else {
        assert_eq!(table, written(), "{PAGE} is out of date; write it again with UPDATE_EXPECT=1");
    }
}

/// The table as the page has it.
fn written() -> String {
    let mut table =
        "| recognised by | written for | behaves as | messages | approval requests |\n|---|---|---|---|---|\n"
            .to_owned();
    for kind in KINDS {
        let sign = match kind.sign {
            Sign::Name(name) => format!("`clientInfo.name` `{name}`"),
            Sign::OldPolicy => "a policy in camelCase (`onRequest`, `workspaceWrite`)".to_owned(),
            Sign::OldPolicyAndCapabilities => "such a policy, and `capabilities`".to_owned(),
            Sign::Capabilities => "`capabilities` in `initialize`".to_owned(),
            Sign::Nothing => "no sign".to_owned(),
        };
        let release = match kind.release {
            ProtocolRelease::V058 => "0.58",
            ProtocolRelease::V077 => "0.77",
            ProtocolRelease::V0166 => "0.166",
        };
        let messages = match (kind.dialect, kind.has_events) {
            (Some(dialect), _) => format!("dialect `{}`", dialect.as_str()),
            (None, true) => "notifications and `codex/event/*`".to_owned(),
            (None, false) => "notifications".to_owned(),
        };
        let approvals = match kind.approvals {
            Some(ApprovalForms::V1) => "`execCommandApproval`, `applyPatchApproval`",
            Some(ApprovalForms::V2) => "`item/*/requestApproval`",
            Some(ApprovalForms::Both) => "both forms; the first answer settles both",
            None => {
                "`item/*/requestApproval` for threads, `execCommandApproval` and `applyPatchApproval` for conversations"
            }
        };
        writeln!(table, "| {sign} | {} | {release} | {messages} | {approvals} |", kind.age).unwrap();
    }
    table
}
