//! The vectors that hold the clients of all languages together: lines of a server, the state that they leave, and its
//! threads as Markdown; and the answers to questions.
//!
//! After the reducer or an answer has changed, `UPDATE_EXPECT=1 cargo test -p codex-client --test vectors` updates both.

#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::path::{Path, PathBuf};

use codex_client::approvals::{Ask, Decision, encode, is_readable};
use codex_client::transcript::Transcript;
use codex_client::{State, markdown};
use codex_wire::ids::RequestId;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

struct Vector {
    path: PathBuf,
    text: String,
    lines: Vec<u8>,
    state: Value,
    markdown: Value,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/vectors")
}

fn vectors() -> Vec<Vector> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        let vector: Value = serde_json::from_str(&text).unwrap();
        let lines = vector["lines"].as_array().unwrap().iter();
        let lines = lines.flat_map(|line| format!("{}\n", line.as_str().unwrap()).into_bytes()).collect();
        Vector { path, text, lines, state: vector["state"].clone(), markdown: vector["markdown"].clone() }
    };
    paths.into_iter().map(read).collect()
}

/// The state after bytes that arrive in pieces.
fn state(pieces: impl Iterator<Item = impl AsRef<[u8]>>) -> Value {
    folded(pieces).to_value()
}

fn folded(pieces: impl Iterator<Item = impl AsRef<[u8]>>) -> State {
    let (mut transcript, mut state) = (Transcript::default(), State::default());
    for piece in pieces {
        transcript.push(piece.as_ref(), |message| {
            if let Some(event) = message.event() {
                state.apply(&event);
            }
        });
    }
    state
}

#[test]
fn each_vector_leaves_its_state() {
    let vectors = vectors();
    assert!(vectors.len() > 20, "there are vectors");
    for vector in vectors {
        let left = folded(std::iter::once(&vector.lines));
        let shown: String = left.threads().map(|(_, thread)| markdown::thread(thread)).collect();
        let (left, shown) = (left.to_value(), Value::from(shown));
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            let (head, _) = vector.text.rsplit_once("\n\"state\": ").unwrap();
            let text = format!("{head}\n\"state\": {left},\n\"markdown\": {shown}}}\n");
            std::fs::write(&vector.path, text).unwrap();
        } else {
            assert_eq!(left, vector.state, "{}", vector.path.display());
            assert_eq!(shown, vector.markdown, "{}", vector.path.display());
        }
    }
}

/// The decisions of a program about a question, by name.
fn decisions(ask: &Ask) -> [(&'static str, Decision); 10] {
    [
        ("allow", Decision::Allow),
        ("allowForSession", Decision::AllowForSession),
        ("allowWithAmendment", Decision::AllowWithAmendment(vec!["npm".to_owned()])),
        ("emptyAmendment", Decision::AllowWithAmendment(Vec::new())),
        ("deny", Decision::deny("no")),
        ("cancel", Decision::Cancel),
        ("toolResult", Decision::tool_result("seven", true)),
        ("toolFailure", Decision::tool_result("there is no 8", false)),
        ("grant", Decision::grant(ask, false)),
        ("grantForSession", Decision::grant(ask, true)),
    ]
}

#[test]
fn each_decision_has_its_answer() {
    let path = folder().join("answers/decisions.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let vector: Value = serde_json::from_str(&text).unwrap();
    let mut answers = Map::new();
    for (method, params) in vector["questions"].as_object().unwrap() {
        let ask = Ask { id: RequestId::Integer(1), method: method.clone(), params: params.clone() };
        let encoded = decisions(&ask).map(|(name, decision)| {
            let answer = match encode(method, decision) {
                Ok(result) => json!({"result": result}),
                Err(error) => json!({"error": error}),
            };
            (name.to_owned(), answer)
        });
        answers.insert(method.clone(), Value::Object(encoded.into_iter().collect()));
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let (head, _) = text.rsplit_once("\n\"answers\": ").unwrap();
        std::fs::write(path, format!("{head}\n\"answers\": {}}}\n", Value::Object(answers))).unwrap();
    } else {
        assert_eq!(Value::Object(answers), vector["answers"]);
    }
}

#[test]
fn an_approval_that_can_be_read_names_its_thread() {
    let text = std::fs::read_to_string(folder().join("answers/readable.json")).unwrap();
    let vector: Value = serde_json::from_str(&text).unwrap();
    let questions = vector["questions"].as_array().unwrap();
    assert!(questions.len() > 5);
    for question in questions {
        let method = question["method"].as_str().unwrap().to_owned();
        let ask = Ask { id: RequestId::Integer(1), method, params: question["params"].clone() };
        assert_eq!(Value::from(is_readable(&ask)), question["readable"], "{question}");
    }
}

#[test]
fn recorded_sessions_have_no_unknown_methods() {
    for vector in vectors() {
        let name = vector.path.file_stem().unwrap().to_string_lossy().into_owned();
        if name.starts_with(|letter: char| letter.is_ascii_digit()) {
            assert_eq!(vector.state["unknown"], serde_json::json!([]), "{name}");
        }
    }
}

/// A session in both dialects is the same with either of them left out, but for what only one tells.
#[test]
fn what_two_dialects_tell_counts_once() {
    let messages = |state: &Value| -> Vec<Value> {
        let threads = state["threads"].as_object().unwrap().values();
        let turns = threads.flat_map(|thread| thread["turns"].as_array().unwrap().clone());
        let items = turns.flat_map(|turn| turn["items"].as_array().unwrap().clone());
        items.filter(|item| item["item"]["type"] == "agentMessage").map(|item| item["item"]["text"].clone()).collect()
    };
    for vector in vectors() {
        if !vector.path.to_string_lossy().contains("77-") {
            continue;
        }
        let lines: Vec<&[u8]> = vector.lines.split_inclusive(|byte| *byte == b'\n').collect();
        let is_queue = |line: &&&[u8]| line.windows(12).any(|part| part == b"codex/event/");
        let second = state(lines.iter().filter(|line| !is_queue(line)));
        let has_items = second.to_string().contains("agentMessage");
        if has_items {
            assert_eq!(messages(&second), messages(&vector.state), "{}", vector.path.display());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_state_does_not_depend_on_the_cuts(sizes in prop::collection::vec(1usize..700, 1..40)) {
        for vector in vectors() {
            let (mut rest, mut sizes) = (vector.lines.as_slice(), sizes.iter().cycle());
            let pieces = std::iter::from_fn(|| {
                let size = (*sizes.next()?).min(rest.len());
                let (piece, after) = rest.split_at(size);
                rest = after;
                (!piece.is_empty()).then_some(piece)
            });
            prop_assert_eq!(state(pieces), vector.state, "{}", vector.path.display());
        }
    }
}
