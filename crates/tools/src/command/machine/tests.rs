use std::time::Duration;

use codex_log::ItemId;
use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::super::terminal::TerminalPoll;
use super::*;

const LIMITS: CallLimits = CallLimits { output_bytes: 1000, answer_within: None };

fn request(is_escalated: bool) -> CommandRequest {
    CommandRequest {
        call: ItemId::new("c"),
        argv: vec!["touch".to_owned(), "x".to_owned()],
        cwd: "/w".into(),
        timeout: Duration::from_secs(10),
        is_users_own: false,
        is_escalated,
        confinement: Confinement::Usual,
        justification: is_escalated.then(|| "it must be".to_owned()),
        terminal: None,
        typed: None,
    }
}

fn requested(words: &[&str]) -> CommandRequest {
    let look = TerminalPoll { process: 7, patience: Duration::from_secs(1), limit: 100, is_verbatim: false };
    let terminal = words.contains(&"terminal").then_some(look);
    CommandRequest { terminal, ..request(words.contains(&"escalated")) }
}

fn ran(exit_code: i32, text: &str) -> CommandOutcome {
    CommandOutcome {
        exit_code,
        is_timeout: false,
        duration: Duration::from_millis(1234),
        stdout: text.to_owned(),
        stderr: String::new(),
        aggregated: text.to_owned(),
        total_bytes: text.len() as u64,
        lines: 1,
    }
}

fn shown(exit_code: Option<i32>) -> PollOutput {
    PollOutput { bytes: b"hello".to_vec(), total_bytes: 5, exit_code, duration: Duration::from_millis(500) }
}

fn judged(word: &str) -> Judgement {
    match word {
        "run" => Judgement::Run { sandboxed: true, vouched: false, because: String::new() },
        "free" => Judgement::Run { sandboxed: false, vouched: false, because: String::new() },
        "ask" => Judgement::Ask { because: "it is unknown".to_owned() },
        "refuse" => Judgement::Refuse { because: "not here".to_owned() },
        other => panic!("no such judgement: {other}"),
    }
}

fn input(line: &str) -> Input {
    match line {
        "yes" => Input::Answered(ReviewDecision::Approved.into()),
        "always" => Input::Answered(ReviewDecision::ApprovedForSession.into()),
        "rule" => Input::Answered(Answer::Decision(ReviewDecision::ApprovedExecpolicyAmendment {
            proposed_execpolicy_amendment: vec!["touch".to_owned()],
        })),
        "unclear" => Input::Answered(Answer::Declined),
        "no" => Input::Answered(ReviewDecision::Denied.into()),
        "abort" => Input::Answered(ReviewDecision::Abort.into()),
        "print" => Input::Printed(OutputStream::Stdout, b"hi".to_vec()),
        "ok" => Input::Ended(ran(0, "done")),
        "fail" => Input::Ended(ran(1, "wrong")),
        "denied" => Input::Ended(ran(1, "x: Permission denied")),
        "shown" => Input::PollOutput(shown(None)),
        "shown-end" => Input::PollOutput(shown(Some(0))),
        other => panic!("no such input: {other}"),
    }
}

fn show(effect: &Effect) -> String {
    match effect {
        Effect::Emit(Body::ItemStarted(Item::Command(command))) => format!("start {:?}", command.status),
        Effect::Emit(Body::ItemCompleted(Item::Command(command))) => {
            format!("complete {:?} {:?}", command.status, command.end.as_ref().map(|end| end.exit_code))
        }
        Effect::Emit(Body::ItemDelta { .. }) => "output".to_owned(),
        Effect::Emit(Body::Answered { answer, item, .. }) => {
            format!("answered {:?} {}", answer.decision(), item.is_none())
        }
        Effect::Emit(other) => format!("{other:?}"),
        Effect::Run(permit) => format!("RUN sandboxed={}", permit.is_sandboxed()),
        Effect::Ask(question) => format!("asked {:?}", question.reason),
        Effect::Remember => "REMEMBER".to_owned(),
        Effect::Amend { prefix, leaves_sandbox } => format!("AMEND {prefix:?} outside={leaves_sandbox}"),
        Effect::Type(typed) => format!("TYPE {:?}", typed.write.chars()),
        Effect::KeepTerminal(..) => "KEEP".to_owned(),
        Effect::End(output) => format!("END {output:?}"),
        Effect::AbortTurn => "ABORT".to_owned(),
    }
}

/// Plays a script: the first line is the policy and the judgement, each other line an input.
#[track_caller]
fn check(script: &str, expected: Expect) {
    let mut lines = script.lines();
    let first = lines.next().unwrap();
    let words: Vec<&str> = first.split(' ').collect();
    let (mut call, effects) =
        CommandCall::start(requested(&words), words[0].parse().unwrap(), judged(words[1]), LIMITS);
    let mut shown = String::new();
    let mut add = |line: &str, effects: &[Effect]| {
        shown.extend([line, "\n"]);
        shown.extend(effects.iter().flat_map(|effect| ["    ".to_owned(), show(effect), "\n".to_owned()]));
    };
    add(first, &effects);
    for line in lines {
        let effects = if line == "stop" { call.stop(Duration::from_secs(2)) } else { call.step(input(line)) };
        add(line, &effects);
    }
    expected.assert_eq(&shown);
}

#[test]
fn an_allowed_command_runs_in_the_sandbox_and_ends_once() {
    check(
        "on-request run\nprint\nok\nok",
        expect![[r#"
        on-request run
            start Running
            RUN sandboxed=true
        print
            output
        ok
            complete Completed Some(0)
            END Text("{\"output\":\"done\",\"metadata\":{\"exit_code\":0,\"duration_seconds\":1.2}}")
        ok
    "#]],
    );
}

#[test]
fn a_denied_command_never_runs_and_the_model_is_reported() {
    check(
        "untrusted ask\nno\nyes\nok",
        expect![[r#"
        untrusted ask
            start AwaitingApproval
            asked None
        no
            answered Denied false
            complete Declined Some(-1)
            END Text("exec command rejected by user")
        yes
        ok
    "#]],
    );
}

#[test]
fn an_approved_command_runs_in_the_sandbox() {
    check(
        "untrusted ask\nyes\nok",
        expect![[r#"
        untrusted ask
            start AwaitingApproval
            asked None
        yes
            answered Approved false
            RUN sandboxed=true
        ok
            complete Completed Some(0)
            END Text("{\"output\":\"done\",\"metadata\":{\"exit_code\":0,\"duration_seconds\":1.2}}")
    "#]],
    );
}

#[test]
fn an_approved_escalation_runs_outside() {
    check(
        "on-request ask escalated\nalways\nok",
        expect![[r#"
        on-request ask escalated
            start AwaitingApproval
            asked Some("it must be")
        always
            answered ApprovedForSession false
            REMEMBER
            RUN sandboxed=false
        ok
            complete Completed Some(0)
            END Text("{\"output\":\"done\",\"metadata\":{\"exit_code\":0,\"duration_seconds\":1.2}}")
    "#]],
    );
}

#[test]
fn an_amendment_adds_a_rule_and_runs() {
    check(
        "untrusted ask\nrule\nfail",
        expect![[r#"
        untrusted ask
            start AwaitingApproval
            asked None
        rule
            answered ApprovedExecpolicyAmendment { proposed_execpolicy_amendment: ["touch"] } false
            AMEND ["touch"] outside=false
            RUN sandboxed=true
        fail
            complete Failed Some(1)
            END Text("{\"output\":\"wrong\",\"metadata\":{\"exit_code\":1,\"duration_seconds\":1.2}}")
    "#]],
    );
}

#[test]
fn an_abort_stops_the_turn() {
    check(
        "untrusted ask\nabort\nyes",
        expect![[r#"
        untrusted ask
            start AwaitingApproval
            asked None
        abort
            answered Abort false
            complete Declined Some(130)
            ABORT
        yes
    "#]],
    );
}

#[test]
fn an_unknown_answer_is_a_denial() {
    check(
        "untrusted ask\nunclear\nyes",
        expect![[r#"
        untrusted ask
            start AwaitingApproval
            asked None
        unclear
            answered Denied false
            complete Declined Some(-1)
            END Text("exec command rejected by user")
        yes
    "#]],
    );
}

#[test]
fn a_refused_command_is_not_asked_about() {
    check(
        "never refuse\nyes",
        expect![[r#"
        never refuse
            start AwaitingApproval
            complete Declined Some(-1)
            END Text("not here")
        yes
    "#]],
    );
}

#[test]
fn on_failure_asks_about_what_the_sandbox_denied_and_runs_it_outside() {
    check(
        "on-failure run\ndenied\nyes\nok",
        expect![[r#"
        on-failure run
            start Running
            RUN sandboxed=true
        denied
            asked Some("command failed; retry without sandbox?")
        yes
            answered Approved true
            RUN sandboxed=false
        ok
            complete Completed Some(0)
            END Text("{\"output\":\"done\",\"metadata\":{\"exit_code\":0,\"duration_seconds\":1.2}}")
    "#]],
    );
}

#[test]
fn on_failure_does_not_ask_about_what_failed_by_itself() {
    check(
        "on-failure run\nfail",
        expect![[r#"
        on-failure run
            start Running
            RUN sandboxed=true
        fail
            complete Failed Some(1)
            END Text("{\"output\":\"wrong\",\"metadata\":{\"exit_code\":1,\"duration_seconds\":1.2}}")
    "#]],
    );
}

#[test]
fn a_declined_retry_keeps_the_first_result() {
    check(
        "on-failure run\ndenied\nno",
        expect![[r#"
        on-failure run
            start Running
            RUN sandboxed=true
        denied
            asked Some("command failed; retry without sandbox?")
        no
            answered Denied true
            complete Failed Some(1)
            END Text("{\"output\":\"x: Permission denied\",\"metadata\":{\"exit_code\":1,\"duration_seconds\":1.2}}")
    "#]],
    );
}

#[test]
fn a_stop_completes_the_item_and_nothing_follows() {
    check(
        "never run\nprint\nstop\nok\nstop",
        expect![[r#"
        never run
            start Running
            RUN sandboxed=true
        print
            output
        stop
            complete Failed Some(130)
        ok
        stop
    "#]],
    );
}

#[test]
fn a_terminal_that_continues_is_kept_and_its_item_stays_open() {
    check(
        "never run terminal\nshown\nstop",
        expect![[r#"
        never run terminal
            start Running
            RUN sandboxed=true
        shown
            output
            KEEP
            END Text("Chunk ID: cd6500\nWall time: 0.5000 seconds\nProcess running with session ID 7\nOriginal token count: 2\nOutput:\nhello")
        stop
    "#]],
    );
}

#[test]
fn a_terminal_that_ends_at_once_is_an_ordinary_command() {
    check(
        "never run terminal\nshown-end",
        expect![[r#"
        never run terminal
            start Running
            RUN sandboxed=true
        shown-end
            output
            complete Completed Some(0)
            END Text("Chunk ID: cd6500\nWall time: 0.5000 seconds\nProcess exited with code 0\nOriginal token count: 2\nOutput:\nhello")
    "#]],
    );
}

proptest! {
    #[test]
    fn a_command_ends_once_and_runs_only_after_a_yes(
        policy in 0usize..4,
        judgement in 0usize..4,
        lines in prop::collection::vec(0usize..10, 0..30),
    ) {
        let policy = ["untrusted", "on-failure", "on-request", "never"][policy].parse().unwrap();
        let judgement = ["run", "free", "ask", "refuse"][judgement];
        let (mut call, mut effects) = CommandCall::start(request(false), policy, judged(judgement), LIMITS);
        for line in lines {
            let word = ["yes", "always", "rule", "no", "abort", "unclear", "print", "ok", "fail", "denied"][line];
            effects.extend(call.step(input(word)));
        }
        effects.extend(call.stop(Duration::ZERO));
        let count = |wanted: &dyn Fn(&Effect) -> bool| effects.iter().filter(|effect| wanted(effect)).count();
        prop_assert_eq!(count(&|effect| matches!(effect, Effect::Emit(Body::ItemCompleted(_)))), 1);
        prop_assert!(count(&|effect| matches!(effect, Effect::End(_) | Effect::AbortTurn)) <= 1);
        let first_run = effects.iter().position(|effect| matches!(effect, Effect::Run(_)));
        let first_yes = effects.iter().position(
            |effect| matches!(effect, Effect::Emit(Body::Answered { answer, .. }) if answer.allows()),
        );
        if let Some(run) = first_run.filter(|_| judgement == "ask") {
            prop_assert!(first_yes.is_some_and(|yes| yes < run));
        }
        prop_assert!(judgement != "refuse" || first_run.is_none());
    }
}
