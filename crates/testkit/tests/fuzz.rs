//! The bodies of the fuzz targets, on examples and on variations of them. A change that breaks a target fails here, although
//! the targets are a workspace of their own.

#![expect(clippy::expect_used, reason = "the lint takes only the tests themselves for tests, not what they call")]

#[path = "../../../fuzz/src/lib.rs"]
#[expect(unreachable_pub, reason = "the targets use it as a library")]
mod fuzz_targets;

use std::fmt::Write as _;
use std::path::Path;

use codex_model::scripted::{Player, Script, Step, responses_events};

/// The number of variations of an example that are tried.
const VARIATIONS: usize = 300;

/// Pieces that variations insert.
const PIECES: [&str; 14] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    "\n",
    "\n\ndata: ",
    "null",
    "0",
    "-1e999",
    "\\ud800",
    "\u{1f980}",
    "data: [DONE]\n\n",
];

const CHAT: &str = r#"data: {"id":"a","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"}}]}

data: {"id":"a","created":2,"choices":[{"index":0,"delta":{"role":"assistant","content":" there"}}],"usage":{"prompt_tokens":1}}

data: {"id":"a","created":3,"choices":[{"index":0,"delta":{"reasoning_content":"Hm"}}]}

data: {"id":"a","choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"shell","arguments":"{\"a\""}}]}}]}

data: {"id":"a","choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]},"finish_reason":"tool_calls"}]}

data: [DONE]

"#;

const ANTHROPIC: &str = r#"data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":1}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c","name":"shell","input":{}}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}

data: {"type":"content_block_stop","index":1}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}

data: {"type":"message_stop"}

"#;

const PATCH: &str = "*** Begin Patch\n*** Add File: a\n+one\n*** Update File: b\n*** Move to: c\n@@ fn x\n a\n-b\n+c\n*** End of File\n*** Delete File: d\n*** End Patch\n";

/// A stream of the Responses API with an item of each kind.
fn responses_stream() -> String {
    let script = r#"[{"items": [{"reasoning": ["Hm."]}, {"text": "Hello"}, {"call": "shell", "args": {"command": ["ls"]}},
                     {"custom": "apply_patch", "input": "x"}]}]"#;
    let mut player = Player::new(Script::from_json(script).expect("the script is right"));
    let entry = player.take(Vec::new).entry;
    let mut stream = String::new();
    for step in responses_events(entry, 1) {
        if let Step::Event(event) = step {
            write!(stream, "data: {event}\n\n").expect("a string takes everything");
        }
    }
    stream
}

/// Runs a target on an example, on its beginnings, and on variations of it.
fn try_variations(example: &[u8], target: impl Fn(&[u8], u8)) {
    target(example, 255);
    target(example, 1);
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..VARIATIONS {
        let mut bytes = example.to_vec();
        for _ in 0..random.usize(1..4) {
            let place = random.usize(..=bytes.len());
            match random.u8(..5) {
                0 => bytes.truncate(place),
                1 => drop(bytes.splice(place..place, PIECES[random.usize(..PIECES.len())].bytes())),
                2 => drop(bytes.drain(place..(place + random.usize(..9)).min(bytes.len()))),
                3 => {
                    let end = (place + random.usize(..200)).min(bytes.len());
                    let repeated = bytes[place..end].to_vec();
                    drop(bytes.splice(place..place, repeated));
                }
                _ => bytes.iter_mut().skip(place).take(1).for_each(|byte| *byte ^= 1 << random.u8(..8)),
            }
        }
        target(&bytes, random.u8(..));
    }
}

/// As above, for a target that takes text.
fn try_texts(example: &str, target: impl Fn(&str)) {
    try_variations(example.as_bytes(), |bytes, _| target(&String::from_utf8_lossy(bytes)));
}

#[test]
fn streams() {
    let stream = responses_stream();
    try_variations(stream.as_bytes(), fuzz_targets::sse);
    try_variations(stream.as_bytes(), fuzz_targets::responses);
    try_variations(CHAT.as_bytes(), fuzz_targets::chat);
    try_variations(ANTHROPIC.as_bytes(), fuzz_targets::anthropic);
}

#[test]
fn patches_and_command_lines() {
    try_texts(PATCH, fuzz_targets::patch);
    for script in
        ["ls -la && git status | head -3", "rm -rf /", "find . -name 'x' -exec rm {} ;", "echo \"$(cat a)\" > b"]
    {
        try_texts(script, fuzz_targets::command_line);
    }
}

#[test]
fn rollouts_and_submissions() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/samples");
    for name in ["rollout-0.42.jsonl", "rollout-0.77.jsonl", "rollout-0.166.jsonl"] {
        let lines = std::fs::read(samples.join(name)).expect("the sample is there");
        // A part of it is enough for the time that a test may take.
        let part = &lines[..lines.len().min(16 * 1024)];
        try_variations(part, |bytes, _| fuzz_targets::rollout(bytes));
        for line in part.split(|byte| *byte == b'\n').take(20) {
            try_variations(line, |bytes, _| fuzz_targets::submission(bytes));
        }
    }
    let submission = br#"{"id":"1","op":{"type":"user_input","items":[{"type":"text","text":"hi"}]}}"#;
    try_variations(submission, |bytes, _| fuzz_targets::submission(bytes));
}
