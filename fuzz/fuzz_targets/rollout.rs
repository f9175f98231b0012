//! No lines make the decoder of rollouts panic, and a file that is cut gives no more events than the whole.
#![no_main]

use codex_log::decode::{Decoder, Wanted};
use codex_log::line::Line;

fn events(bytes: &[u8]) -> usize {
    let (mut decoder, mut events) = (Decoder::new(Wanted::ALL), Vec::new());
    for line in bytes.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok()) {
        if let Ok(line) = Line::parse(line) {
            decoder.line(&line, &mut events);
        }
    }
    decoder.end(&mut events);
    events.len()
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let cut = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    assert!(events(&bytes[..cut]) <= events(bytes));
});
