//! No script makes the judge of commands panic, and what looks destructive is never called harmless.
#![no_main]

libfuzzer_sys::fuzz_target!(|script: &str| {
    let argv = ["bash", "-lc", script].map(str::to_owned);
    let _ = codex_shell::parsed_commands(&argv);
    assert!(!(codex_shell::is_known_safe(&argv, codex_shell::Checkout::Own) && codex_shell::danger(&argv).is_some()), "{script:?}");
});
