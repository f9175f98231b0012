//! Recorded sessions of several releases: the state that their messages leave, however the bytes are cut, and that no
//! message of them is unknown. `clients/vectors/record.py` builds the file; the libraries of other languages read it too.
//!
//! After the reducer has changed, `UPDATE_EXPECT=1 cargo test -p codex-client --test recorded` updates the states.

#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use codex_client::transcript::Transcript;
use codex_client::{Event, State, router};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Deserialize, Serialize)]
struct Recorded {
    /// The distinct messages.
    lines: Vec<String>,
    /// The messages of each session, by their places.
    sessions: BTreeMap<String, Vec<usize>>,
    states: BTreeMap<String, Value>,
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/vectors/recorded.json.gz")
}

impl Recorded {
    fn load() -> Self {
        let (bytes, mut text) = (std::fs::read(path()).unwrap(), String::new());
        GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    fn save(&self) {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&serde_json::to_vec(self).unwrap()).unwrap();
        std::fs::write(path(), encoder.finish().unwrap()).unwrap();
    }

    /// The bytes of a session.
    fn bytes(&self, places: &[usize]) -> Vec<u8> {
        places.iter().flat_map(|place| format!("{}\n", self.lines[*place]).into_bytes()).collect()
    }
}

/// The state after bytes that arrive in pieces.
fn state<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Value {
    let (mut transcript, mut state) = (Transcript::default(), State::default());
    let mut take = |event: Option<Event>| {
        if let Some(event) = event {
            state.apply(&event);
        }
    };
    for piece in pieces {
        transcript.push(piece, |message| take(message.event()));
    }
    transcript.finish(|message| take(message.event()));
    state.to_value()
}

/// Pieces of the given sizes, again and again.
fn pieces<'a>(mut rest: &'a [u8], sizes: &[usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut sizes = sizes.iter().cycle();
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at((*sizes.next()?).min(rest.len()));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

#[test]
fn each_session_leaves_its_state() {
    let mut recorded = Recorded::load();
    assert!(recorded.sessions.len() > 100, "there are sessions");
    let left: BTreeMap<String, Value> = recorded
        .sessions
        .iter()
        .map(|(name, places)| (name.clone(), state(std::iter::once(recorded.bytes(places).as_slice()))))
        .collect();
    for (name, state) in &left {
        assert_eq!((&state["unknown"], &state["notes"]), (&json!([]), &json!(0)), "{name}");
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        recorded.states = left;
        recorded.save();
    } else {
        for (name, state) in &left {
            assert_eq!(Some(state), recorded.states.get(name), "{name}");
        }
    }
}

#[test]
fn a_session_may_be_cut_within_every_character() {
    let recorded = Recorded::load();
    let name = "0.77.0/v2-unicode";
    let bytes = recorded.bytes(&recorded.sessions[name]);
    let inside: Vec<usize> = (0..bytes.len()).filter(|place| bytes[*place] & 0b1100_0000 == 0b1000_0000).collect();
    assert!(inside.len() > 50, "it has characters of several bytes");
    for cut in inside {
        let (before, after) = bytes.split_at(cut);
        assert_eq!(state([before, after].into_iter()), recorded.states[name], "cut at {cut}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_state_does_not_depend_on_the_cuts(sizes in prop::collection::vec(1usize..2000, 1..64)) {
        let recorded = Recorded::load();
        for (name, places) in &recorded.sessions {
            let bytes = recorded.bytes(places);
            prop_assert_eq!(&state(pieces(&bytes, &sizes)), &recorded.states[name], "{}", name);
        }
    }
}

/// Everything that descriptions of the protocol say a server sends, in any release.
const NOTIFICATIONS: &[&str] = &[
    "error",
    "warning",
    "sessionConfigured",
    "thread/started",
    "thread/tokenUsage/updated",
    "thread/compacted",
    "turn/started",
    "turn/completed",
    "turn/diff/updated",
    "turn/plan/updated",
    "item/created",
    "item/delta",
    "item/started",
    "item/completed",
    "item/agentMessage/delta",
    "item/reasoning/textDelta",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/summaryPartAdded",
    "item/commandExecution/outputDelta",
    "item/commandExecution/terminalInteraction",
    "item/fileChange/outputDelta",
    "item/mcpToolCall/progress",
    "mcpServer/oauthLogin/completed",
    "account/updated",
    "account/rateLimits/updated",
    "account/login/completed",
    "windows/worldWritableWarning",
    "codex/event/session_configured",
    "codex/event/task_started",
    "codex/event/task_complete",
    "codex/event/turn_aborted",
    "codex/event/agent_message",
    "codex/event/agent_message_delta",
    "codex/event/agent_reasoning",
    "codex/event/agent_reasoning_delta",
    "codex/event/plan_update",
    "codex/event/exec_command_begin",
    "codex/event/exec_command_output_delta",
    "codex/event/exec_command_end",
    "codex/event/mcp_tool_call_begin",
    "codex/event/mcp_tool_call_end",
    "codex/event/web_search_begin",
    "codex/event/web_search_end",
    "codex/event/apply_patch_approval_request",
    "codex/event/patch_apply_begin",
    "codex/event/patch_apply_end",
    "codex/event/token_count",
    "codex/event/error",
    "codex/event/warning",
];

#[test]
fn no_described_notification_is_unknown() {
    for method in NOTIFICATIONS {
        for params in [json!({}), json!({"threadId": "t", "msg": {"type": "x"}}), Value::Null] {
            let event = router::notification(method, params);
            assert!(!matches!(event, Event::Unknown { .. }), "{method}: {event:?}");
        }
    }
}
