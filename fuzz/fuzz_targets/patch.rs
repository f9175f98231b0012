//! No text makes the patch parser panic.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = codex_patch::parse(text);
});
