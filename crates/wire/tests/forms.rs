//! The forms that clients and older releases write, and the one form that we write.

#![expect(clippy::unwrap_used, reason = "the lint takes only the tests themselves for tests, not what they call")]

use std::fmt::Debug;

use codex_wire::change::FileChange;
use codex_wire::command::ParsedCommand;
use codex_wire::decision::{ElicitationDecision, ReviewDecision};
use codex_wire::error_info::CodexErrorInfo;
use codex_wire::event::{EventMsg, McpToolCallEndEvent, TurnItem};
use codex_wire::history::{HistoryEntry, HistoryLine};
use codex_wire::input::UserInput;
use codex_wire::op::{Op, Submission};
use codex_wire::policy::{AskForApproval, SandboxPolicy};
use codex_wire::response::{FunctionCallOutputPayload, ResponseItem};
use codex_wire::review::ReviewRequest;
use codex_wire::rollout::{RolloutItem, RolloutLine, SessionSource};
use expect_test::{Expect, expect};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Decodes every form and checks that all are encoded the same way.
#[track_caller]
fn check<T: Serialize + DeserializeOwned>(forms: &[&str], written: &str) {
    for form in forms {
        let value: T = serde_json::from_str(form).unwrap_or_else(|error| panic!("{error}: {form}"));
        assert_eq!(serde_json::to_string(&value).unwrap(), written, "read from {form}");
    }
}

/// Decodes an invalid value and compares the error.
#[track_caller]
fn check_refused<T: DeserializeOwned + Debug>(form: &str, expected: Expect) {
    expected.assert_eq(&serde_json::from_str::<T>(form).unwrap_err().to_string());
}

#[test]
fn effort_is_absent_or_cleared_or_set() {
    for (form, effort) in [
        (r#"{"type":"override_turn_context"}"#, None),
        (r#"{"type":"override_turn_context","effort":null}"#, Some(None)),
        (r#"{"type":"override_turn_context","effort":"high"}"#, Some(Some("high"))),
    ] {
        check::<Op>(&[form], form);
        let Op::OverrideTurnContext(change) = serde_json::from_str(form).unwrap() else { panic!("{form}") };
        let effort = effort.map(|word: Option<&str>| word.map(|word| word.parse().unwrap()));
        assert_eq!(change.effort, effort, "{form}");
    }
}

#[test]
fn sandbox_policy_is_read_by_either_tag_in_any_case() {
    check::<SandboxPolicy>(
        &[
            r#"{"type":"read-only"}"#,
            r#"{"mode":"read-only"}"#,
            r#"{"type":"readOnly"}"#,
            r#"{"mode":"read_only"}"#,
            r#"{"type":"read-only","mode":"read-only"}"#,
            r#""read-only""#,
            r#""readOnly""#,
        ],
        r#"{"type":"read-only"}"#,
    );
    check::<SandboxPolicy>(
        &[r#"{"mode":"danger-full-access"}"#, r#"{"type":"dangerFullAccess"}"#],
        r#"{"type":"danger-full-access"}"#,
    );
    check::<SandboxPolicy>(
        &[
            r#"{"type":"workspace-write","writable_roots":["/a"],"network_access":true,"exclude_slash_tmp":true}"#,
            r#"{"type":"workspaceWrite","writableRoots":["/a"],"networkAccess":true,"excludeSlashTmp":true}"#,
            r#"{"mode":"workspace_write","writable_roots":["/a"],"networkAccess":true,"exclude_slash_tmp":true}"#,
        ],
        r#"{"type":"workspace-write","writable_roots":["/a"],"network_access":true,"exclude_tmpdir_env_var":false,"exclude_slash_tmp":true}"#,
    );
    check::<SandboxPolicy>(
        &[r#""workspace-write""#, r#"{"mode":"workspace-write"}"#],
        r#"{"type":"workspace-write","network_access":false,"exclude_tmpdir_env_var":false,"exclude_slash_tmp":false}"#,
    );
    check::<SandboxPolicy>(
        &[r#"{"type":"external-sandbox"}"#, r#"{"type":"externalSandbox","networkAccess":"restricted"}"#],
        r#"{"type":"external-sandbox","network_access":"restricted"}"#,
    );
}

#[test]
fn approval_policy_is_read_in_any_case() {
    check::<AskForApproval>(&[r#""untrusted""#, r#""unlessTrusted""#, r#""unless-trusted""#], r#""untrusted""#);
    check::<AskForApproval>(&[r#""on-request""#, r#""onRequest""#, r#""on_request""#], r#""on-request""#);
    check::<AskForApproval>(&[r#""on-failure""#, r#""onFailure""#], r#""on-failure""#);
}

#[test]
fn unknown_policies_are_refused() {
    check_refused::<AskForApproval>(
        r#""sometimes""#,
        expect!["unknown value `sometimes`, expected one of untrusted, on-failure, on-request, never"],
    );
    check_refused::<SandboxPolicy>(
        r#"{"type":"tight"}"#,
        expect!["unknown value `tight`, expected one of read-only, workspace-write, danger-full-access"],
    );
    check_refused::<SandboxPolicy>("{}", expect!["missing field `type`"]);
}

#[test]
fn input_items_are_read_flat_or_with_data() {
    check::<UserInput>(
        &[
            r#"{"type":"text","text":"hi"}"#,
            r#"{"type":"text","data":{"text":"hi"}}"#,
            r#"{"type":"text","text":"hi","text_elements":[]}"#,
        ],
        r#"{"type":"text","text":"hi"}"#,
    );
    check::<UserInput>(
        &[
            r#"{"type":"text","text":"hi","text_elements":[{"byte_range":{"start":0,"end":2},"placeholder":null}]}"#,
            r#"{"type":"text","data":{"text":"hi","textElements":[{"byteRange":{"start":0,"end":2}}]}}"#,
        ],
        r#"{"type":"text","text":"hi","text_elements":[{"byte_range":{"start":0,"end":2},"placeholder":null}]}"#,
    );
    check::<UserInput>(
        &[
            r#"{"type":"image","image_url":"data:x"}"#,
            r#"{"type":"image","imageUrl":"data:x"}"#,
            r#"{"type":"image","url":"data:x"}"#,
            r#"{"type":"image","data":{"image_url":"data:x"}}"#,
            r#"{"type":"image","data":{"imageUrl":"data:x"}}"#,
        ],
        r#"{"type":"image","image_url":"data:x"}"#,
    );
    check::<UserInput>(
        &[
            r#"{"type":"local_image","path":"/x.png"}"#,
            r#"{"type":"localImage","path":"/x.png"}"#,
            r#"{"type":"localImage","data":{"path":"/x.png"}}"#,
        ],
        r#"{"type":"local_image","path":"/x.png"}"#,
    );
    let skill = r#"{"type":"skill","name":"s","path":"/s/SKILL.md"}"#;
    check::<UserInput>(&[skill], skill);
    let mention = r#"{"type":"mention","name":"m","path":"app://m"}"#;
    check::<UserInput>(&[mention], mention);
    check_refused::<UserInput>(r#"{"type":"image"}"#, expect!["missing field `image_url`"]);
    check_refused::<UserInput>(
        r#"{"type":"smell"}"#,
        expect!["unknown variant `smell`, expected one of `text`, `image`, `local_image`, `skill`, `mention`"],
    );
}

#[test]
fn decisions_are_read_in_every_dialect() {
    check::<ReviewDecision>(
        &[r#""approved""#, r#""accept""#, r#""allow""#, r#""Approved""#, r#"{"action":"accept"}"#],
        r#""approved""#,
    );
    check::<ReviewDecision>(
        &[
            r#""approved_for_session""#,
            r#""approvedForSession""#,
            r#""approved-for-session""#,
            r#""acceptForSession""#,
            r#""accept_for_session""#,
        ],
        r#""approved_for_session""#,
    );
    check::<ReviewDecision>(
        &[
            r#""denied""#,
            r#""decline""#,
            r#""deny""#,
            r#"{"action":"decline"}"#,
            r#"{"denied":{"rejection":"too risky"}}"#,
        ],
        r#""denied""#,
    );
    check::<ReviewDecision>(&[r#""abort""#, r#""cancel""#, r#"{"action":"cancel"}"#], r#""abort""#);
    check::<ReviewDecision>(&[r#""timed_out""#, r#""timedOut""#, r#""timed-out""#], r#""timed_out""#);
    check::<ReviewDecision>(
        &[
            r#"{"approved_execpolicy_amendment":{"proposed_execpolicy_amendment":["git","pull"]}}"#,
            r#"{"approvedExecpolicyAmendment":{"proposedExecpolicyAmendment":["git","pull"]}}"#,
            r#"{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["git","pull"]}}"#,
            r#"{"accept-with-execpolicy-amendment":{"execpolicyAmendment":["git","pull"]}}"#,
        ],
        r#"{"approved_execpolicy_amendment":{"proposed_execpolicy_amendment":["git","pull"]}}"#,
    );
    check::<ElicitationDecision>(&[r#""accept""#, r#""Accept""#, r#"{"action":"accept"}"#], r#""accept""#);
    check::<ElicitationDecision>(&[r#""decline""#, r#"{"action":"decline"}"#], r#""decline""#);
    check::<ElicitationDecision>(&[r#""cancel""#], r#""cancel""#);
}

#[test]
fn decisions_that_are_not_understood_are_never_approvals() {
    check_refused::<ReviewDecision>(r#""yes""#, expect![[r#"unknown decision "yes""#]]);
    check_refused::<ReviewDecision>("true", expect!["unknown decision true"]);
    check_refused::<ReviewDecision>("null", expect!["unknown decision null"]);
    check_refused::<ReviewDecision>("{}", expect!["unknown decision {}"]);
    check_refused::<ReviewDecision>(
        r#"{"approved":{},"denied":{}}"#,
        expect![[r#"unknown decision {"approved":{},"denied":{}}"#]],
    );
    check_refused::<ReviewDecision>(
        r#"{"network_policy_amendment":{"action":"allow"}}"#,
        expect![[r#"unknown decision {"network_policy_amendment":{"action":"allow"}}"#]],
    );
    check_refused::<ReviewDecision>(
        r#"{"approved_execpolicy_amendment":{}}"#,
        expect!["missing field `proposed_execpolicy_amendment`"],
    );
    check_refused::<ElicitationDecision>(
        r#""approved""#,
        expect![[r#"unknown decision "approved", expected accept, decline or cancel"#]],
    );
    assert_eq!(ReviewDecision::default(), ReviewDecision::Denied);
}

#[test]
fn only_approvals_allow() {
    let amendment = ReviewDecision::ApprovedExecpolicyAmendment { proposed_execpolicy_amendment: vec![] };
    assert!(
        [ReviewDecision::Approved, ReviewDecision::ApprovedForSession, amendment].iter().all(ReviewDecision::allows)
    );
    assert!(
        ![ReviewDecision::Denied, ReviewDecision::Abort, ReviewDecision::TimedOut].iter().any(ReviewDecision::allows)
    );
}

#[test]
fn unknown_op_is_kept() {
    let form = r#"{"id":"1","op":{"type":"teleport","to":"moon"}}"#;
    check::<Submission>(&[form], form);
    let submission: Submission = serde_json::from_str(form).unwrap();
    assert!(matches!(submission.op, Op::Other(_)));
    assert_eq!(submission.op.kind(), "teleport");
}

#[test]
fn known_op_with_a_missing_member_is_an_error() {
    check_refused::<Op>(r#"{"type":"user_input"}"#, expect!["missing field `items`"]);
    check_refused::<Op>(
        r#"{"type":"user_turn","items":[],"cwd":"/w","approval_policy":"never","sandbox_policy":"read-only","model":"m"}"#,
        expect!["missing field `summary`"],
    );
    check_refused::<Op>(r#"{"type":"exec_approval","id":"1"}"#, expect!["missing field `decision`"]);
    check_refused::<Op>(
        r#"{"type":"exec_approval","id":"1","decision":"perhaps"}"#,
        expect![[r#"unknown decision "perhaps""#]],
    );
    check_refused::<Op>(r#"{"items":[]}"#, expect!["missing field `type`"]);
    check_refused::<Submission>(r#"{"op":{"type":"compact"}}"#, expect!["missing field `id` at line 1 column 25"]);
}

#[test]
fn review_is_asked_for_by_prompt_or_by_target() {
    check::<ReviewRequest>(
        &[
            r#"{"prompt":"look","user_facing_hint":"h"}"#,
            r#"{"target":{"type":"custom","instructions":"look"},"user_facing_hint":"h"}"#,
        ],
        r#"{"target":{"type":"custom","instructions":"look"},"user_facing_hint":"h"}"#,
    );
    check::<ReviewRequest>(
        &[r#"{"target":{"type":"uncommittedChanges"}}"#, r#"{"target":{"type":"uncommitted_changes"}}"#],
        r#"{"target":{"type":"uncommittedChanges"}}"#,
    );
    let commit = r#"{"target":{"type":"commit","sha":"abc","title":null}}"#;
    check::<ReviewRequest>(&[commit, r#"{"target":{"type":"commit","sha":"abc"}}"#], commit);
    check_refused::<ReviewRequest>("{}", expect!["missing field `target`"]);
    check::<EventMsg>(
        &[r#"{"type":"entered_review_mode","prompt":"look","user_facing_hint":"h"}"#],
        r#"{"type":"entered_review_mode","target":{"type":"custom","instructions":"look"},"user_facing_hint":"h","prompt":"look"}"#,
    );
}

#[test]
fn events_of_the_earliest_protocol_are_aliases() {
    check::<EventMsg>(
        &[r#"{"type":"turn_complete","response_id":"resp_1"}"#],
        r#"{"type":"task_complete","last_agent_message":null,"response_id":"resp_1"}"#,
    );
    check::<EventMsg>(&[r#"{"type":"turn_started"}"#], r#"{"type":"task_started","model_context_window":null}"#);
    let configure = r#"{"type":"configure_session","approval_policy":"never","model":"m"}"#;
    check::<Op>(&[configure], configure);
}

#[test]
fn file_change_is_read_with_its_kind_inside_or_around() {
    check::<FileChange>(
        &[r#"{"type":"add","content":"x"}"#, r#"{"add":{"content":"x"}}"#, r#"{"Add":{"content":"x"}}"#],
        r#"{"type":"add","content":"x"}"#,
    );
    check::<FileChange>(
        &[r#"{"type":"delete","content":""}"#, r#"{"delete":{"content":""}}"#, r#"{"type":"delete"}"#],
        r#"{"type":"delete","content":""}"#,
    );
    check::<FileChange>(
        &[
            r#"{"type":"update","unified_diff":"@@","move_path":"/b"}"#,
            r#"{"type":"update","unifiedDiff":"@@","movePath":"/b"}"#,
            r#"{"update":{"unified_diff":"@@","move_path":"/b"}}"#,
        ],
        r#"{"type":"update","unified_diff":"@@","move_path":"/b"}"#,
    );
    check::<FileChange>(
        &[r#"{"update":{"unified_diff":"@@","move_path":null}}"#, r#"{"type":"update","unified_diff":"@@"}"#],
        r#"{"type":"update","unified_diff":"@@","move_path":null}"#,
    );
    check_refused::<FileChange>(r#"{"type":"add"}"#, expect!["missing field `content`"]);
    check_refused::<FileChange>(
        r#"{"chmod":{"to":"755"}}"#,
        expect!["unknown variant `chmod`, expected one of `add`, `delete`, `update`"],
    );
}

#[test]
fn turn_items_are_read_with_their_kind_inside_or_around() {
    check::<TurnItem>(
        &[
            r#"{"type":"AgentMessage","id":"1","content":[{"type":"Text","text":"hi"}]}"#,
            r#"{"AgentMessage":{"id":"1","content":[{"Text":{"text":"hi"}}]}}"#,
        ],
        r#"{"type":"AgentMessage","id":"1","content":[{"type":"Text","text":"hi"}]}"#,
    );
    let unknown = r#"{"type":"CommandExecution","id":"1","status":"completed"}"#;
    check::<TurnItem>(&[unknown], unknown);
}

#[test]
fn parsed_commands_may_lack_a_path() {
    let old = r#"{"type":"read","cmd":"cat x","name":"x"}"#;
    check::<ParsedCommand>(&[old], old);
    let new = r#"{"type":"read","cmd":"cat x","name":"x","path":"/w/x"}"#;
    check::<ParsedCommand>(&[new], new);
    let listing = r#"{"type":"list_files","cmd":"ls","path":null}"#;
    check::<ParsedCommand>(&[listing, r#"{"type":"list_files","cmd":"ls"}"#], listing);
}

#[test]
fn output_of_a_call_has_three_forms() {
    check::<FunctionCallOutputPayload>(
        &[r#""done""#, r#"{"content":"done"}"#, r#"{"content":"done","success":true}"#],
        r#""done""#,
    );
    let parts = r#"[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:x"}]"#;
    check::<FunctionCallOutputPayload>(&[parts], parts);
    check_refused::<FunctionCallOutputPayload>("{}", expect!["missing field `content`"]);
    check_refused::<FunctionCallOutputPayload>(
        "7",
        expect!["the output of a call is a string, a list of parts, or an object"],
    );
}

#[test]
fn absent_reasoning_is_written_as_null() {
    check::<ResponseItem>(
        &[r#"{"type":"reasoning","id":"rs_1","summary":[]}"#],
        r#"{"type":"reasoning","summary":[],"content":null,"encrypted_content":null}"#,
    );
}

#[test]
fn outcome_of_an_mcp_call_is_read_bare_too() {
    let call = |result: &str| {
        format!(
            r#"{{"call_id":"1","invocation":{{"server":"s","tool":"t","arguments":null}},"duration":{{"secs":1,"nanos":5}},"result":{result}}}"#
        )
    };
    let ok = call(r#"{"Ok":{"content":[]}}"#);
    check::<McpToolCallEndEvent>(&[&ok, &call(r#"{"content":[]}"#)], &ok);
    let err = call(r#"{"Err":"broke"}"#);
    check::<McpToolCallEndEvent>(&[&err, &call(r#""broke""#)], &err);
    for (form, success) in [(ok, true), (err, false), (call(r#"{"Ok":{"content":[],"isError":true}}"#), false)] {
        let event: McpToolCallEndEvent = serde_json::from_str(&form).unwrap();
        assert_eq!(event.is_success(), success, "{form}");
        assert_eq!(event.duration, std::time::Duration::new(1, 5));
    }
}

#[test]
fn output_travels_as_base64() {
    let form = r#"{"type":"exec_command_output_delta","call_id":"1","stream":"stdout","chunk":"aGkK/w=="}"#;
    check::<EventMsg>(&[form], form);
    let EventMsg::ExecCommandOutputDelta(delta) = serde_json::from_str(form).unwrap() else { panic!("{form}") };
    assert_eq!(delta.chunk, b"hi\n\xff");
    check_refused::<EventMsg>(&form.replace("aGkK/w==", "hi!"), expect!["Invalid symbol 33, offset 2."]);
}

#[test]
fn user_commands_of_058_have_an_origin() {
    let form = r#"{"type":"exec_command_begin","call_id":"1","command":["ls"],"cwd":"/w","parsed_cmd":[],"is_user_shell_command":true}"#;
    check::<EventMsg>(&[form], &form.replace(r#""is_user_shell_command":true"#, r#""source":"user_shell""#));
}

#[test]
fn agents_have_the_form_of_the_recordings() {
    let id = "0199a213-81c0-7800-8aa1-bbab2a035a53";
    for form in [
        r#"{"type":"subagent_lifecycle","event":"created","subagent":{"agent_id":3,"parent_agent_id":0,"session_id":"ID","parent_session_id":"ID","origin":"spawn","status":"queued","label":"reviewer","summary":"check the diff","reasoning_header":null,"started_at_ms":1763900000000,"pending_messages":0,"pending_interrupts":0}}"#,
        r#"{"type":"subagent_lifecycle","event":"status","agent_id":3,"session_id":"ID","status":"running"}"#,
        r#"{"type":"subagent_lifecycle","event":"reasoning_header","agent_id":3,"session_id":"ID","reasoning_header":"Reading"}"#,
        r#"{"type":"subagent_lifecycle","event":"deleted","agent_id":3,"session_id":"ID"}"#,
        r#"{"type":"subagent_lifecycle","event":"promoted","agent_id":3}"#,
        r#"{"type":"agent_inbox","agent_id":3,"session_id":"ID","pending_messages":0,"pending_interrupts":1}"#,
    ] {
        let form = form.replace("ID", id);
        check::<EventMsg>(&[&form], &form);
    }
}

#[test]
fn words_for_display_are_never_refused() {
    for form in [r#""other""#, r#""out_of_coffee""#, r#"{"out_of_coffee":{"cups":0}}"#] {
        check::<CodexErrorInfo>(&[form], form);
    }
    let aborted = r#"{"type":"turn_aborted","reason":"out_of_coffee"}"#;
    check::<EventMsg>(&[aborted], aborted);
    for form in [
        r#""cli""#,
        r#""vscode""#,
        r#""carrier-pigeon""#,
        r#"{"subagent":"review"}"#,
        r#"{"subagent":{"other":"subagent_orchestrator"}}"#,
        r#"{"subagent":{"telepathy":1}}"#,
    ] {
        check::<SessionSource>(&[form], form);
    }
}

#[test]
fn history_is_read_by_either_name_of_the_thread() {
    let (event, line) = (r#"{"conversation_id":"t","ts":7,"text":"hi"}"#, r#"{"session_id":"t","ts":7,"text":"hi"}"#);
    check::<HistoryEntry>(&[event, line], event);
    check::<HistoryLine>(&[event, line], line);
}

#[test]
fn rollout_line_of_another_form_is_kept() {
    for form in [
        r#"{"timestamp":"t","ordinal":4,"type":"turn_context","payload":{"approval_policy":{"granular":{"rules":true}}}}"#,
        r#"{"timestamp":"t","type":"session_meta","payload":{"id":"not a thread"}}"#,
        r#"{"timestamp":"t","type":"event_msg","payload":{"type":"agent_message"}}"#,
        r#"{"timestamp":"t","type":"response_item","payload":null}"#,
        r#"{"timestamp":"t","type":"world_state","payload":{"full":true}}"#,
    ] {
        check::<RolloutLine>(&[form], form);
        let line: RolloutLine = serde_json::from_str(form).unwrap();
        assert!(matches!(line.item, RolloutItem::Other(_)), "{form}");
    }
    check_refused::<RolloutLine>(
        r#"{"type":"compacted","payload":{"message":"m"}}"#,
        expect!["missing field `timestamp`"],
    );
    check_refused::<RolloutLine>(r#"{"timestamp":"t"}"#, expect!["missing field `type` at line 1 column 17"]);
}
