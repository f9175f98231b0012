//! Two lists of commands that test approvals, and the order of decisions.

use codex_shell::{Answer, Checkout, Question, Rules, SandboxState, danger, is_known_safe, judge, judge_typed, moves};
use codex_wire::policy::AskForApproval;
use expect_test::{Expect, expect};
use serde_json::Value;

use crate::{argv, lines, script, scripts};

fn answer(argv: &[String], approval: AskForApproval, sandbox: SandboxState) -> Answer {
    let rules = Rules::empty();
    judge(&Question {
        argv,
        approval,
        sandbox,
        checkout: Checkout::Own,
        moves_over: None,
        escalated: false,
        rules: &rules,
        approved_before: false,
    })
}

/// The cases of a list with a wrong answer.
fn failed(cases: &[Value], approval: AskForApproval) -> Vec<String> {
    let mut failed = Vec::new();
    for case in cases {
        let text = case["script"].as_str().unwrap().replace("ABSWS", "/var/tmp/ws");
        let wanted = case["ask"].as_bool().unwrap();
        let answer = answer(&script(&text), approval, SandboxState::Unconfined);
        if wanted != !matches!(answer, Answer::Run { .. }) {
            failed.push(format!("{}: {answer:?}", case["name"]));
        }
    }
    failed
}

#[test]
fn under_untrusted_only_harmless_commands_are_not_asked_about() {
    let cases = lines(include_str!("../data/approval.jsonl"));
    assert_eq!(cases.len(), 124);
    assert_eq!(failed(&cases, AskForApproval::UnlessTrusted), Vec::<String>::new());
}

#[test]
fn destructive_commands_are_asked_about_without_a_sandbox() {
    let cases = lines(include_str!("../data/danger.jsonl"));
    assert_eq!(cases.len(), 42);
    assert_eq!(failed(&cases, AskForApproval::OnRequest), Vec::<String>::new());
}

#[test]
fn nothing_is_harmless_and_dangerous() {
    for case in lines(include_str!("../data/approval.jsonl")) {
        let argv = script(case["script"].as_str().unwrap());
        assert!(!is_known_safe(&argv, Checkout::Own) || danger(&argv).is_none(), "{argv:?}");
    }
}

#[test]
fn ordinary_work_does_not_look_dangerous() {
    let ordinary = scripts(include_str!("../data/ordinary.txt"));
    let look = |text: String| danger(&script(&text)).map(|danger| format!("{text}: {danger}"));
    let found: Vec<_> = ordinary.filter_map(look).collect();
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn danger_is_found_wherever_it_hides() {
    let hidden = scripts(include_str!("../data/hidden.txt"));
    let missed: Vec<_> = hidden.filter(|text| danger(&script(text)).is_none()).collect();
    assert_eq!(missed, Vec::<String>::new());
    let plain = [argv(&["rm", "-rf", "x"]), argv(&["sudo", "rm", "-rf", "x"]), argv(&["sh", "-c", "rm -rf x", "a"])];
    assert!(plain.iter().all(|argv| danger(argv).is_some()));
}

#[test]
fn moves_are_reported_with_what_they_may_replace() {
    let shown = |text: &str| {
        let moved = moves(&script(text)).into_iter().map(|found| format!("{} -> {}", found.from.join(" "), found.to));
        moved.collect::<Vec<_>>().join("; ")
    };
    for (text, expected) in [
        ("mv a b", "a -> b"),
        ("cd x && mv -v a b dir/ > log", "a b -> dir/"),
        ("mv -t dir a b", "a b -> dir"),
        ("mv --target-directory=dir a", "a -> dir"),
        ("mv -- -a b", "-a -> b"),
        ("env mv a b", "a -> b"),
        ("mv -n a b", ""),
        ("mv --no-clobber a b", ""),
        ("mv -b a b", ""),
        ("mv --backup=t a b", ""),
        ("mv $A b", ""),
        ("mv a", ""),
        ("git mv a b", ""),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

/// Prints the decision about a script under each policy.
#[track_caller]
fn check(text: &str, sandbox: SandboxState, escalated: bool, rules: &str, expected: Expect) {
    check_in(Checkout::Own, text, sandbox, escalated, rules, expected);
}

/// Prints the decision about a script that starts in a given checkout.
#[track_caller]
fn check_in(checkout: Checkout, text: &str, sandbox: SandboxState, escalated: bool, rules: &str, expected: Expect) {
    let rules = Rules::parse("r.rules", rules).unwrap();
    let policies = [
        ("untrusted", AskForApproval::UnlessTrusted),
        ("on-request", AskForApproval::OnRequest),
        ("on-failure", AskForApproval::OnFailure),
        ("never", AskForApproval::Never),
    ];
    let shown = policies.map(|(name, approval)| {
        let argv = script(text);
        let question = Question {
            argv: &argv,
            approval,
            sandbox,
            checkout,
            moves_over: None,
            escalated,
            rules: &rules,
            approved_before: false,
        };
        match judge(&question) {
            Answer::Run { sandboxed: true, because, .. } => format!("{name}: run inside: {because}\n"),
            Answer::Run { sandboxed: false, because, .. } => format!("{name}: run outside: {because}\n"),
            Answer::Ask { because } => format!("{name}: ask: {because}\n"),
            Answer::Refuse { because } => format!("{name}: refuse: {because}\n"),
        }
    });
    expected.assert_eq(&shown.concat());
}

#[test]
fn a_sandbox_lets_commands_run_until_they_ask_for_more() {
    check(
        "touch x",
        SandboxState::Confined,
        false,
        "",
        expect![[r#"
        untrusted: ask: it is not known to be harmless
        on-request: run inside: it runs in the sandbox
        on-failure: run inside: it runs in the sandbox
        never: run inside: it runs in the sandbox
    "#]],
    );
    check(
        "touch x",
        SandboxState::Confined,
        true,
        "",
        expect![[r#"
        untrusted: ask: the model asks to run it outside the sandbox
        on-request: ask: the model asks to run it outside the sandbox
        on-failure: ask: the model asks to run it outside the sandbox
        never: refuse: the approval policy is `never`, so nothing runs outside the sandbox; run it without asking for that
    "#]],
    );
    check(
        "ls > x",
        SandboxState::Confined,
        false,
        "",
        expect![[r#"
        untrusted: ask: it is not understood: a redirection at line 1, column 4
        on-request: run inside: it runs in the sandbox
        on-failure: run inside: it runs in the sandbox
        never: run inside: it runs in the sandbox
    "#]],
    );
    check(
        "rm -rf x",
        SandboxState::Confined,
        false,
        "",
        expect![[r#"
        untrusted: ask: it is not known to be harmless
        on-request: ask: it looks dangerous: `rm -rf x` deletes without asking
        on-failure: run inside: it runs in the sandbox
        never: run inside: it runs in the sandbox
    "#]],
    );
}

#[test]
fn without_a_sandbox_policies_differ() {
    check(
        "touch x",
        SandboxState::Unconfined,
        true,
        "",
        expect![[r#"
        untrusted: ask: it is not known to be harmless
        on-request: run outside: the sandbox policy sets no limits
        on-failure: run outside: the sandbox policy sets no limits
        never: run outside: the policies set no limits
    "#]],
    );
    check(
        "touch x",
        SandboxState::CannotConfine,
        false,
        "",
        expect![[r#"
        untrusted: ask: it is not known to be harmless
        on-request: ask: this machine cannot confine it as the sandbox policy says
        on-failure: ask: this machine cannot confine it as the sandbox policy says
        never: refuse: this machine cannot confine it as the sandbox policy says, and the approval policy is `never`
    "#]],
    );
    check(
        "rm -rf x",
        SandboxState::Unconfined,
        false,
        "",
        expect![[r#"
        untrusted: ask: it is not known to be harmless
        on-request: ask: it looks dangerous: `rm -rf x` deletes without asking
        on-failure: ask: it looks dangerous: `rm -rf x` deletes without asking
        never: run outside: the policies set no limits
    "#]],
    );
}

#[test]
fn safe_commands_run_in_the_sandbox_unless_they_request_escalation() {
    check(
        "ls",
        SandboxState::Confined,
        true,
        "",
        expect![[r#"
            untrusted: run inside: it is known to be harmless
            on-request: ask: the model asks to run it outside the sandbox
            on-failure: run inside: it is known to be harmless
            never: run inside: it is known to be harmless
        "#]],
    );
    check(
        "ls",
        SandboxState::CannotConfine,
        false,
        "",
        expect![[r#"
        untrusted: run outside: it is known to be harmless
        on-request: run outside: it is known to be harmless
        on-failure: run outside: it is known to be harmless
        never: run outside: it is known to be harmless
    "#]],
    );
}

#[test]
fn rules_come_before_policies() {
    let allow = "prefix_rule(pattern=['touch'])";
    check(
        "touch x",
        SandboxState::Confined,
        false,
        allow,
        expect![[r#"
        untrusted: run inside: it is allowed by the rule at r.rules:1
        on-request: run inside: it is allowed by the rule at r.rules:1
        on-failure: run inside: it is allowed by the rule at r.rules:1
        never: run inside: it is allowed by the rule at r.rules:1
    "#]],
    );
    check(
        "touch x",
        SandboxState::Confined,
        true,
        allow,
        expect![[r#"
        untrusted: run outside: it is allowed by the rule at r.rules:1, outside the sandbox too
        on-request: run outside: it is allowed by the rule at r.rules:1, outside the sandbox too
        on-failure: run outside: it is allowed by the rule at r.rules:1, outside the sandbox too
        never: run outside: it is allowed by the rule at r.rules:1, outside the sandbox too
    "#]],
    );
    let prompt = "\nprefix_rule(pattern=['ls'], decision='prompt', justification='look twice')";
    check(
        "ls",
        SandboxState::Unconfined,
        false,
        prompt,
        expect![[r#"
        untrusted: ask: the rule at r.rules:2 (look twice) wants it asked about
        on-request: ask: the rule at r.rules:2 (look twice) wants it asked about
        on-failure: ask: the rule at r.rules:2 (look twice) wants it asked about
        never: refuse: the rule at r.rules:2 (look twice) wants it asked about, and the approval policy is `never`
    "#]],
    );
    let forbidden = "prefix_rule(pattern=['ls'], decision='forbidden')";
    check(
        "ls",
        SandboxState::Unconfined,
        false,
        forbidden,
        expect![[r#"
        untrusted: refuse: it is forbidden by the rule at r.rules:1
        on-request: refuse: it is forbidden by the rule at r.rules:1
        on-failure: refuse: it is forbidden by the rule at r.rules:1
        never: refuse: it is forbidden by the rule at r.rules:1
    "#]],
    );
}

#[test]
fn a_rule_accepted_in_the_sandbox_lets_nothing_leave_it() {
    let accepted = "prefix_rule(pattern=['touch'], decision='allow')  # codex: in the sandbox only";
    check(
        "touch x",
        SandboxState::Confined,
        false,
        accepted,
        expect![[r#"
            untrusted: run inside: it is allowed by the rule at r.rules:1
            on-request: run inside: it is allowed by the rule at r.rules:1
            on-failure: run inside: it is allowed by the rule at r.rules:1
            never: run inside: it is allowed by the rule at r.rules:1
        "#]],
    );
    check(
        "touch x",
        SandboxState::Confined,
        true,
        accepted,
        expect![[r#"
            untrusted: ask: the model asks to run it outside the sandbox
            on-request: ask: the model asks to run it outside the sandbox
            on-failure: ask: the model asks to run it outside the sandbox
            never: refuse: the approval policy is `never`, so nothing runs outside the sandbox; run it without asking for that
        "#]],
    );
    check(
        "touch x",
        SandboxState::Unconfined,
        false,
        accepted,
        expect![[r#"
            untrusted: ask: it is not known to be harmless
            on-request: run outside: the sandbox policy sets no limits
            on-failure: run outside: the sandbox policy sets no limits
            never: run outside: the policies set no limits
        "#]],
    );
    check(
        "touch x",
        SandboxState::CannotConfine,
        false,
        accepted,
        expect![[r#"
            untrusted: ask: it is not known to be harmless
            on-request: ask: this machine cannot confine it as the sandbox policy says
            on-failure: ask: this machine cannot confine it as the sandbox policy says
            never: refuse: this machine cannot confine it as the sandbox policy says, and the approval policy is `never`
        "#]],
    );
}

#[test]
fn git_is_harmless_only_in_the_checkout_that_the_thread_works_in() {
    let foreign = Checkout::Foreign;
    check_in(
        foreign,
        "git status",
        SandboxState::Unconfined,
        false,
        "",
        expect![[r#"
            untrusted: ask: it would obey the settings of another checkout than the one worked in
            on-request: run outside: the sandbox policy sets no limits
            on-failure: run outside: the sandbox policy sets no limits
            never: run outside: the policies set no limits
        "#]],
    );
    check_in(
        foreign,
        "git log && ls",
        SandboxState::CannotConfine,
        false,
        "",
        expect![[r#"
            untrusted: ask: it would obey the settings of another checkout than the one worked in
            on-request: ask: this machine cannot confine it as the sandbox policy says
            on-failure: ask: this machine cannot confine it as the sandbox policy says
            never: refuse: this machine cannot confine it as the sandbox policy says, and the approval policy is `never`
        "#]],
    );
    // Next to an allowed command it no longer counts.
    let allow = "prefix_rule(pattern=['touch'])";
    let argv = script("git status && touch x");
    let rules = Rules::parse("r.rules", allow).unwrap();
    for (checkout, runs) in [(Checkout::Own, true), (Checkout::Foreign, false)] {
        let approval = AskForApproval::UnlessTrusted;
        let sandbox = SandboxState::Confined;
        let question = Question {
            argv: &argv,
            approval,
            sandbox,
            checkout,
            moves_over: None,
            escalated: false,
            rules: &rules,
            approved_before: false,
        };
        assert_eq!(matches!(judge(&question), Answer::Run { .. }), runs, "{checkout:?}");
    }
    // A command that reads no settings from its folder is harmless anywhere.
    assert!(is_known_safe(&script("ls -la | head -5"), Checkout::Foreign));
}

#[test]
fn input_to_a_command_is_never_harmless() {
    let policies =
        [AskForApproval::UnlessTrusted, AskForApproval::OnRequest, AskForApproval::OnFailure, AskForApproval::Never];
    let asked =
        |text: &str, sandbox| policies.map(|policy| matches!(judge_typed(text, policy, sandbox), Answer::Ask { .. }));
    for text in ["ls\n", "!touch x\n", "q", "\u{3}"] {
        assert_eq!(asked(text, SandboxState::Confined), [true, false, false, false], "{text}");
        assert_eq!(asked(text, SandboxState::Unconfined), [true, false, false, false], "{text}");
        assert_eq!(asked(text, SandboxState::CannotConfine), [true, true, true, false], "{text}");
    }
    assert_eq!(asked("rm -rf x\n", SandboxState::Confined), [true, true, false, false]);
    assert_eq!(asked("rm -rf x\n", SandboxState::Unconfined), [true, true, true, false]);
}

#[test]
fn an_approved_command_runs_as_it_was_approved() {
    let prompt = Rules::parse("r.rules", "prefix_rule(pattern=['touch'], decision='prompt')").unwrap();
    let forbidden = Rules::parse("r.rules", "prefix_rule(pattern=['touch'], decision='forbidden')").unwrap();
    let argv = script("touch x");
    for (escalated, rules) in [(false, &Rules::empty()), (true, &Rules::empty()), (false, &prompt), (true, &forbidden)]
    {
        let approval = AskForApproval::UnlessTrusted;
        let sandbox = SandboxState::Confined;
        let answer = judge(&Question {
            argv: &argv,
            approval,
            sandbox,
            checkout: Checkout::Own,
            moves_over: None,
            escalated,
            rules,
            approved_before: true,
        });
        match answer {
            Answer::Run { sandboxed, .. } => assert_eq!(sandboxed, !escalated),
            Answer::Refuse { .. } => assert_eq!(rules, &forbidden),
            Answer::Ask { .. } => panic!("asked again"),
        }
    }
}
