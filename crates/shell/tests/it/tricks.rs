//! Options that make a harmless program write or run something, and other ways to look harmless.

use codex_shell::{Checkout, Understood, is_known_safe, understand};

use crate::{argv, script, scripts};

/// One trick per line; none of them may count as harmless.
const TRICKS: &str = include_str!("../data/tricks.txt");

/// One harmless command per line; all of them should count as harmless.
const HARMLESS: &str = include_str!("../data/harmless.txt");

#[test]
fn no_trick_counts_as_harmless() {
    let passed: Vec<_> = scripts(TRICKS).filter(|text| is_known_safe(&script(text), Checkout::Own)).collect();
    assert_eq!(passed, Vec::<String>::new());
    assert!(scripts(TRICKS).count() > 200);
}

#[test]
fn no_trick_counts_as_harmless_without_a_shell_either() {
    for text in scripts(TRICKS) {
        if let Understood::Commands(commands) = understand(&script(&text)) {
            let shell = commands[0][0].ends_with("sh");
            assert!(commands.len() > 1 || shell || !is_known_safe(&commands[0], Checkout::Own), "{text}");
        }
    }
}

#[test]
fn harmless_commands_count_as_harmless() {
    let refused: Vec<_> = scripts(HARMLESS).filter(|text| !is_known_safe(&script(text), Checkout::Own)).collect();
    assert_eq!(refused, Vec::<String>::new());
}

#[test]
fn a_shell_counts_only_where_its_name_can_be_trusted() {
    for shell in ["bash", "sh", "zsh", "dash", "/bin/bash", "/usr/bin/zsh"] {
        assert!(is_known_safe(&argv(&[shell, "-c", "ls"]), Checkout::Own), "{shell}");
        assert!(is_known_safe(&argv(&[shell, "-lc", "ls"]), Checkout::Own), "{shell}");
    }
    for shell in
        ["./bash", "/tmp/bash", "bin/sh", "../bash", "/usr/local/bin/bash", "/bin//bash", "fish", "ksh", "Bash"]
    {
        assert!(!is_known_safe(&argv(&[shell, "-c", "ls"]), Checkout::Own), "{shell}");
    }
    for options in
        [&["-ic", "ls"][..], &["-c"], &["-c", "ls", "x"], &["-l", "-c", "ls"], &["-x", "ls"], &["+c", "ls"], &["ls"]]
    {
        assert!(!is_known_safe(&argv(&[&["bash"], options].concat()), Checkout::Own), "{options:?}");
    }
    assert!(!is_known_safe(&[], Checkout::Own));
    assert!(!is_known_safe(&argv(&[""]), Checkout::Own));
    assert!(is_known_safe(&argv(&["ls", "-la", "a b; c"]), Checkout::Own));
}
