#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| codex_fuzz::command_line(text));
