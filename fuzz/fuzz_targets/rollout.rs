#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| codex_fuzz::rollout(bytes));
