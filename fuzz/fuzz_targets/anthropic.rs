#![no_main]

libfuzzer_sys::fuzz_target!(|input: (&[u8], u8)| codex_fuzz::anthropic(input.0, input.1));
