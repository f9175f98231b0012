//! Laws that hold for any input.

use codex_shell::{
    Answer, Checkout, Decision, Question, Rules, SandboxState, Understood, danger, is_known_safe, judge,
    parsed_commands, propose_amendment, understand,
};
use codex_wire::command_line::{display, join};
use codex_wire::policy::AskForApproval;
use proptest::prelude::*;

use crate::{argv, script};

fn any_word() -> impl Strategy<Value = String> {
    prop_oneof![".*", "[a-c]{1,3}", "[ -~]{0,8}", "[\\n\\t'\"$`\\\\!^~#{}*?]{0,6}", "-[a-z]{1,3}", "\\PC{0,5}"]
}

fn any_script() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just(" "),
        Just("; "),
        Just(" && "),
        Just(" | "),
        Just("\n"),
        Just("$("),
        Just(")"),
        Just("`"),
        Just("'"),
        Just("\""),
        Just("<<E\n"),
        Just("\nE\n"),
        Just("if "),
        Just("then "),
        Just("fi "),
        Just("{ "),
        Just("}"),
        Just("ls "),
        Just("rm -rf x "),
        Just("bash -c "),
        Just("env "),
        Just("xargs "),
        Just("git "),
        Just("\\"),
        Just("> x "),
        Just("<("),
        Just("${"),
        Just("case x in "),
        Just(";;"),
        Just("function f "),
        Just("eval "),
    ];
    let pieces = proptest::collection::vec(piece.prop_map(str::to_owned), 0..20).prop_map(|pieces| pieces.concat());
    prop_oneof![pieces, any_word(), "[a-z \"'|&;$()<>{}\\\\\n=-]{0,40}"]
}

fn any_rule() -> impl Strategy<Value = (Vec<&'static str>, Decision)> {
    let word = proptest::sample::select(vec!["ls", "rm", "git", "status", "push", "x", "-rf", "env", "bash"]);
    let decision = proptest::sample::select(vec![Decision::Allow, Decision::Prompt, Decision::Forbidden]);
    (proptest::collection::vec(word, 1..3), decision)
}

fn any_command() -> impl Strategy<Value = Vec<String>> {
    let command = proptest::sample::select(vec![
        "ls",
        "ls -la",
        "rm x",
        "rm -rf x",
        "git status",
        "git push",
        "git -C . push",
        "env rm x",
        "timeout 5 ls",
        "ls && rm x",
        "rm $X",
        "$X y",
        "echo $(rm x)",
        "bash -c 'rm x'",
        "sudo git push",
        "x",
        "cd .. && x",
        "ls > x",
        "env -u A ls",
        "for x in y; do ls; done",
        "if",
        "xargs rm",
        "find . -exec rm {} ';'",
        "X=1 ls",
        "ls | x",
    ]);
    prop_oneof![command.prop_map(script), proptest::collection::vec(any_word(), 0..4)]
}

fn rules_of(rules: &[(Vec<&'static str>, Decision)]) -> Rules {
    let lines = rules
        .iter()
        .map(|(words, decision)| format!("prefix_rule(pattern={words:?}, decision=\"{}\")\n", decision.word()));
    Rules::parse("r", &lines.collect::<String>()).unwrap()
}

/// Every policy with every state of the sandbox.
fn every_question() -> Vec<(AskForApproval, SandboxState, bool, bool)> {
    let policies =
        [AskForApproval::UnlessTrusted, AskForApproval::OnFailure, AskForApproval::OnRequest, AskForApproval::Never];
    let states = [SandboxState::Confined, SandboxState::Unconfined, SandboxState::CannotConfine];
    let mut questions = Vec::new();
    for policy in policies {
        for state in states {
            questions.extend(
                [(false, false), (false, true), (true, false), (true, true)].map(|(e, a)| (policy, state, e, a)),
            );
        }
    }
    questions
}

/// The freedom of a command: none, after asking, in the sandbox, or outside.
fn freedom(answer: &Answer) -> u8 {
    match answer {
        Answer::Refuse { .. } => 0,
        Answer::Ask { .. } => 1,
        Answer::Run { sandboxed: true, .. } => 2,
        Answer::Run { sandboxed: false, .. } => 3,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_panics(text in any_script(), words in proptest::collection::vec(any_word(), 0..6)) {
        let rules = rules_of(&[(vec!["rm"], Decision::Forbidden), (vec!["ls"], Decision::Allow)]);
        for argv in [script(&text), words] {
            let safe = is_known_safe(&argv, Checkout::Own);
            prop_assert!(!safe || danger(&argv).is_none(), "harmless and dangerous: {argv:?}");
            _ = (understand(&argv), parsed_commands(&argv), propose_amendment(&argv), rules.check(&argv));
            prop_assert!(!display(&argv).contains(|c: char| c.is_control()));
        }
        _ = Rules::parse("r", &text);
    }

    #[test]
    fn stricter_rules_never_widen(
        rules in proptest::collection::vec(any_rule(), 0..4),
        added in any_rule(),
        argv in any_command(),
    ) {
        let stricter = (added.0, added.1.max(Decision::Prompt));
        let before = rules_of(&rules);
        let after = rules_of(&[rules, vec![stricter]].concat());
        prop_assert!(before.check(&argv).decision <= after.check(&argv).decision || before.check(&argv).decision == Some(Decision::Allow));
        for (approval, sandbox, escalated, approved_before) in every_question() {
            let ask = |rules| judge(&Question { argv: &argv, approval, sandbox, checkout: Checkout::Own, moves_over: None, escalated, rules, approved_before });
            prop_assert!(freedom(&ask(&after)) <= freedom(&ask(&before)));
        }
    }

    #[test]
    fn the_policy_never_asks_nothing_and_never_leaves_the_sandbox(argv in any_command(), rules in proptest::collection::vec(any_rule(), 0..3)) {
        let rules = rules_of(&rules);
        for (approval, sandbox, escalated, approved_before) in every_question() {
            let answer = judge(&Question { argv: &argv, approval, sandbox, checkout: Checkout::Own, moves_over: None, escalated, rules: &rules, approved_before });
            prop_assert!(approval != AskForApproval::Never || freedom(&answer) != 1);
            if sandbox == SandboxState::Confined && !escalated {
                prop_assert!(freedom(&answer) != 3);
            }
        }
    }

    #[test]
    fn joined_words_parse_to_the_same_words(words in proptest::collection::vec("[^\\x00-\\x1f\\x7f-\\u{9f}]{0,12}", 0..5)) {
        let words = [argv(&["a"]), words].concat();
        let understood = understand(&argv(&["bash", "-c", &join(&words)]));
        prop_assert_eq!(understood, Understood::Commands(vec![words]));
    }

    #[test]
    fn harmless_commands_stay_harmless_together(at in 0..100_usize, other in 0..100_usize) {
        let harmless: Vec<_> = include_str!("../data/harmless.txt").lines().filter(|line| !line.contains(['␤', ';']) && !line.contains("cd ")).collect();
        let (one, two) = (harmless[at % harmless.len()], harmless[other % harmless.len()]);
        for operator in [" && ", " || ", " | ", "; ", "\n"] {
            let text = format!("{one}{operator}{two}");
            prop_assert!(is_known_safe(&script(&text), Checkout::Own), "{}", text);
            let spoiled = format!("{one}{operator}touch x");
            prop_assert!(!is_known_safe(&script(&spoiled), Checkout::Own), "{}", spoiled);
        }
    }
}

/// The scanner of the grammar once read out of bounds for characters outside ASCII.
#[test]
fn no_bytes_crash_the_grammar() {
    let mut rng = fastrand::Rng::with_seed(7);
    let common: Vec<char> = "abcxyz0 \"'|&;$()<>{}\\\n=-#!*?[]~@%^+.E".chars().collect();
    for _ in 0..4000 {
        let any = |_| if rng.usize(0..8) == 0 { rng.char(..) } else { common[rng.usize(..common.len())] };
        let text: String = (0..40).map(any).collect();
        _ = danger(&script(&text));
    }
    for text in [format!("cat <<{0}\nx\n{0}", "E".repeat(5000)), "cat <<E\n".repeat(500), "${".repeat(5000)] {
        _ = danger(&script(&text));
    }
}

/// A random script that contains the given command, anywhere a command can be.
fn script_around(rng: &mut fastrand::Rng, command: &str, depth: usize) -> String {
    const WORDS: &[&str] = &[
        "x", "3", "-n", "--a=b", "'q r'", "\"s $t\"", "$u", "${v:-w}", "*.rs", "{a,b}", "~", "$(z)", "\\;", "2>&1",
        "> o", "< i", "a=b", "`y`", "''",
    ];
    const PLAIN: &[&str] =
        &["a", "b", "ls", "X=1 c", "cd", "true", "echo", "[ -f x ]", "[[ -n $x ]]", "export A=1", "y=$(z)"];
    let some_command = |rng: &mut fastrand::Rng| {
        let words: Vec<_> = (0..rng.usize(0..4)).map(|_| *rng.choice(WORDS).unwrap()).collect();
        format!("{} {}", rng.choice(PLAIN).unwrap(), words.join(" "))
    };
    let core = match (depth, rng.usize(0..14)) {
        (0, _) | (_, 0..=2) => command.to_owned(),
        (_, kind) => {
            let inner = script_around(rng, command, depth - 1);
            match kind {
                3 => format!("({inner}\n)"),
                4 => format!("{{ {inner}\n}}"),
                5 => format!("if true; then {inner}\nfi"),
                6 => format!("for i in 1 2; do {inner}\ndone"),
                7 => format!("while {inner}\ndo x; done"),
                8 => format!("f() {{ {inner}\n}}"),
                9 => format!("case $x in a) {inner}\n;; esac"),
                10 => format!("x=$({inner}\n)"),
                11 => format!("echo \"a $({inner}\n) b\""),
                12 => format!("! {inner}"),
                _ => format!("if a; then b; else {inner}\nfi"),
            }
        }
    };
    let mut parts = vec![core];
    for _ in 0..rng.usize(0..4) {
        let other = some_command(rng);
        let at = rng.usize(0..=parts.len());
        parts.insert(at, other);
    }
    let mut text = String::new();
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            text.push_str(rng.choice(["\n", "; ", " && ", " || ", " | ", " & ", "\n\n", " |\n", " &&\n"]).unwrap());
        }
        text.push_str(part);
    }
    text
}

#[test]
fn danger_is_found_in_any_script_around_it() {
    let mut rng = fastrand::Rng::with_seed(11);
    let missed = (0..3000).filter_map(|_| {
        let text = script_around(&mut rng, "rm -rf v", 3);
        danger(&script(&text)).is_none().then_some(text)
    });
    let mut missed: Vec<_> = missed.collect();
    missed.sort_by_key(String::len);
    missed.truncate(10);
    assert_eq!(missed, Vec::<String>::new());
}
