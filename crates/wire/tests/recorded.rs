//! Every message recorded from the binaries of 0.42 to 0.166 decodes, and our encoding equals that of 0.77.
//!
//! `samples/` contains the recordings, reduced to submissions, events and rollout lines, one of each form.

#![expect(clippy::needless_raw_string_hashes, reason = "expected lists are written by expect-test")]
#![expect(clippy::unwrap_used, reason = "the lint takes only the tests themselves for tests, not what they call")]

use std::collections::BTreeSet;

use codex_wire::event::{Event, EventMsg, TurnItem};
use codex_wire::op::{Op, Submission};
use codex_wire::rollout::{RolloutItem, RolloutLine};
use expect_test::{Expect, expect};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Recordings of the app-server and the MCP server.
const EVENTS_OF_OUR_FORM: &[&str] =
    &["v1-77.txt", "v2-77.txt", "misc-77.txt", "mcpserver-77.txt", "mcpserver-77-stdelicit.txt", "mcpclient-77.txt"];
const EVENTS_OF_OLD_FORMS: &[&str] = &["v1-42.txt", "mcpserver-42.txt", "v1-44.txt", "v1-58.txt", "v2-58.txt"];

/// Members that we write differently from the releases before 0.59, with the reason.
const RESPELLED: &[(&str, &str)] = &[
    ("mode", "the tag of a sandbox policy became `type`"),
    ("add", "the kind of a file change moved inside, as `type`"),
    ("update", "the kind of a file change moved inside, as `type`"),
    ("UserMessage", "the kind of a turn item moved inside, as `type`"),
    ("AgentMessage", "the kind of a turn item moved inside, as `type`"),
    ("Reasoning", "the kind of a turn item moved inside, as `type`"),
    ("WebSearch", "the kind of a turn item moved inside, as `type`"),
    ("kind", "what a user message is was said by 0.42 only, and nobody needs it"),
    ("is_user_shell_command", "0.58 said yes or no where `source` says who"),
    ("prompt", "a wish for a review is written with a `target`; the prompt is its custom instructions"),
];

/// Submissions that no release knows, recorded to see the reaction.
const UNKNOWN_OPS: &[&str] = &["nosuch"];

/// Variants that only 0.166 knows and that are kept verbatim.
const UNKNOWN_IN_0166: &[&str] = &[
    "event thread_settings_applied",
    "item CommandExecution",
    "item FileChange",
    "line token_usage_record",
    "line world_state",
];

fn lines(sample: &str) -> Vec<String> {
    let path = format!("{}/tests/samples/{sample}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    assert!(!text.is_empty(), "{sample} is empty");
    text.lines().map(str::to_owned).collect()
}

/// The `id` and `msg` of each event of a recording.
fn events(sample: &str) -> Vec<Value> {
    let sent = lines(sample).into_iter().filter_map(|line| line.strip_prefix("< ").map(str::to_owned));
    sent.map(|line| serde_json::from_str::<Value>(&line).unwrap())
        .map(|mut message| if message.get("params").is_some() { message["params"].take() } else { message })
        .collect()
}

fn rollout(sample: &str) -> Vec<Value> {
    lines(sample).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[track_caller]
fn decode<T: DeserializeOwned>(recorded: &Value) -> T {
    serde_json::from_str(&recorded.to_string()).unwrap_or_else(|error| panic!("{error}: {recorded}"))
}

/// Encodes and decodes a value, and checks that it is unchanged.
#[track_caller]
fn check_stable<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) -> Value {
    let text = serde_json::to_string(value).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), value, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// Checks that no nested value was decoded as unknown.
#[track_caller]
fn check_known(value: &impl std::fmt::Debug) {
    let shown = format!("{value:?}");
    assert!(!shown.contains("Other("), "{shown}");
}

/// Lists the members of the recording that the encoding lacks or has changed. An absent member stands for `null`.
fn lost(recorded: &Value, encoded: &Value, name: &str, found: &mut Vec<String>) {
    match (recorded, encoded) {
        (Value::Object(recorded), Value::Object(encoded)) => {
            for (name, member) in recorded {
                match encoded.get(name) {
                    Some(other) => lost(member, other, name, found),
                    None if member.is_null() => {}
                    None => found.push(name.clone()),
                }
            }
        }
        (Value::Array(recorded), Value::Array(encoded)) if recorded.len() == encoded.len() => {
            for (recorded, encoded) in recorded.iter().zip(encoded) {
                lost(recorded, encoded, name, found);
            }
        }
        _ if recorded == encoded => {}
        _ => found.push(name.to_owned()),
    }
}

/// Checks that the encoding contains the whole recording, except for members with another spelling.
#[track_caller]
fn check_contains(recorded: &Value, encoded: &Value, respelled: &mut BTreeSet<String>) {
    let mut found = Vec::new();
    lost(recorded, encoded, "", &mut found);
    for name in found {
        assert!(RESPELLED.iter().any(|(known, _)| *known == name), "lost `{name}`:\n{recorded}\n{encoded}");
        respelled.insert(name);
    }
}

#[test]
fn events_of_077_encode_as_recorded() {
    for sample in EVENTS_OF_OUR_FORM {
        for recorded in events(sample) {
            let event: Event = decode(&recorded);
            check_known(&event);
            let encoded = check_stable(&event);
            assert_eq!(encoded["msg"], recorded["msg"], "{sample}");
            assert_eq!(encoded["id"], recorded["id"], "{sample}");
            // Files are sorted by name in our maps and unsorted in those of 0.77; everything else has the same order.
            if recorded["msg"].get("changes").is_none() {
                assert_eq!(encoded["msg"].to_string(), recorded["msg"].to_string(), "{sample}");
            }
        }
    }
}

#[test]
fn rollout_lines_of_077_encode_as_recorded() {
    for recorded in rollout("rollout-0.77.jsonl") {
        let line: RolloutLine = decode(&recorded);
        check_known(&line);
        assert_eq!(check_stable(&line).to_string(), recorded.to_string());
    }
}

#[test]
fn older_messages_keep_their_content() {
    let mut respelled = BTreeSet::new();
    for recorded in EVENTS_OF_OLD_FORMS.iter().chain(&["proto-42.txt"]).flat_map(|sample| events(sample)) {
        let event: Event = decode(&recorded);
        check_known(&event);
        check_contains(&recorded["msg"], &check_stable(&event)["msg"], &mut respelled);
    }
    for recorded in ["rollout-0.42.jsonl", "rollout-0.58.jsonl"].into_iter().flat_map(rollout) {
        let line: RolloutLine = decode(&recorded);
        check_known(&line);
        check_contains(&recorded, &check_stable(&line), &mut respelled);
    }
    for recorded in submissions() {
        let submission: Submission = decode(&recorded);
        match &submission.op {
            Op::Other(_) => assert!(UNKNOWN_OPS.contains(&submission.op.kind()), "{recorded}"),
            _ => check_known(&submission),
        }
        check_contains(&recorded, &check_stable(&submission), &mut respelled);
    }
    let listed: BTreeSet<_> = RESPELLED.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(respelled, listed, "the list of respelled members is out of date");
}

/// The submissions of a client of 0.42's `proto`.
fn submissions() -> Vec<Value> {
    let lines = lines("proto-42.txt");
    lines.iter().filter_map(|line| line.strip_prefix("> ")).map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn rollout_lines_of_0166_decode() {
    let mut unknown = BTreeSet::new();
    let mut dropped = Vec::new();
    for recorded in ["rollout-0.166.jsonl", "rollout-0.166-child-agent.jsonl"].into_iter().flat_map(rollout) {
        let line: RolloutLine = decode(&recorded);
        // Ids of items are read but not written, so only the second encoding equals the first.
        let encoded = serde_json::to_value(&line).unwrap();
        assert_eq!(check_stable(&decode::<RolloutLine>(&encoded)), encoded);
        lost(&recorded, &encoded, "", &mut dropped);
        match &line.item {
            RolloutItem::Other(other) => {
                assert_eq!(encoded["payload"], recorded["payload"]);
                unknown.insert(format!("line {}", other.kind));
            }
            RolloutItem::EventMsg(msg @ EventMsg::Other(_)) => {
                assert_eq!(encoded["payload"], recorded["payload"]);
                unknown.insert(format!("event {}", msg.kind()));
            }
            RolloutItem::EventMsg(EventMsg::ItemCompleted(event)) if matches!(event.item, TurnItem::Other(_)) => {
                assert_eq!(encoded["payload"]["item"], recorded["payload"]["item"]);
                unknown.insert(format!("item {}", event.item.kind()));
            }
            item => check_known(item),
        }
    }
    assert_eq!(unknown, UNKNOWN_IN_0166.iter().map(|kind| (*kind).to_owned()).collect());
    // Members of known kinds that we ignore.
    dropped.sort();
    dropped.dedup();
    expect![[r#"
        action
        approvals_reviewer
        cache_write_input_tokens
        collaboration_mode_kind
        completed_at
        completed_at_ms
        disabled_plugin_ids
        duration_ms
        error
        id
        internal_chat_message_metadata_passthrough
        last_usage_includes_reasoning
        limit_id
        metadata
        permission_profile
        realtime_active
        root_turn_id
        started_at
        started_at_ms
        text_elements
        time_to_first_token_ms
        turn_attribution
        turn_id"#]]
    .assert_eq(&dropped.join("\n"));
}

#[track_caller]
fn check_never_recorded(known: &[&str], recorded: BTreeSet<String>, expected: Expect) {
    let rest: Vec<_> = known.iter().filter(|kind| !recorded.contains(**kind)).copied().collect();
    expected.assert_eq(&rest.join("\n"));
}

/// These kinds are pinned only by the published schemas.
#[test]
fn kinds_that_no_recording_shows() {
    let live = EVENTS_OF_OUR_FORM.iter().chain(EVENTS_OF_OLD_FORMS).chain(&["proto-42.txt"]);
    let live = live.flat_map(|sample| events(sample)).map(|event| event["msg"]["type"].clone());
    let kept = ["rollout-0.42.jsonl", "rollout-0.58.jsonl", "rollout-0.77.jsonl"].into_iter().flat_map(rollout);
    let kept = kept.filter(|line| line["type"] == "event_msg").map(|line| line["payload"]["type"].clone());
    let recorded = live.chain(kept).filter_map(|kind| kind.as_str().map(str::to_owned)).collect();
    check_never_recorded(
        EventMsg::KINDS,
        recorded,
        expect![[r#"
        context_compacted
        agent_reasoning_raw_content
        web_search_begin
        terminal_interaction
        view_image_tool_call
        deprecation_notice
        background_event
        undo_started
        undo_completed
        stream_error
        list_skills_response
        skills_update_available
        subagent_lifecycle
        agent_inbox"#]],
    );

    let recorded = submissions().iter().filter_map(|line| line["op"]["type"].as_str().map(str::to_owned)).collect();
    check_never_recorded(
        Op::KINDS,
        recorded,
        expect![[r#"
        configure_session
        resolve_elicitation
        list_skills
        undo
        run_user_shell_command
        list_models"#]],
    );
}
