//! No line makes the decoder of submissions or rollout lines panic, and what was decoded can be encoded.
#![no_main]

use codex_wire::op::Submission;
use codex_wire::rollout::RolloutLine;

libfuzzer_sys::fuzz_target!(|line: &[u8]| {
    if let Ok(submission) = serde_json::from_slice::<Submission>(line) {
        serde_json::to_vec(&submission).expect("what was decoded can be encoded");
    }
    if let Ok(line) = serde_json::from_slice::<RolloutLine>(line) {
        serde_json::to_vec(&line).expect("what was decoded can be encoded");
    }
});
