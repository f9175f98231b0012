use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::request::Voice;
use super::*;
use crate::log::ItemId;

fn call(policy: &str) -> PatchCall {
    let request = PatchRequest { call: ItemId::new("c"), text: String::new(), cwd: "/w".into(), voice: Voice::Tool };
    PatchCall::new(request, policy.parse().unwrap())
}

fn input(line: &str) -> Input {
    let planned = |is_within| Input::Planned(Ok(Planned { changes: BTreeMap::new(), is_within }));
    match line {
        "inside" => planned(true),
        "outside" => planned(false),
        "misfit" => Input::Planned(Err("no such line".to_owned())),
        "yes" => Input::Answered(ReviewDecision::Approved),
        "no" => Input::Answered(ReviewDecision::Denied),
        "abort" => Input::Answered(ReviewDecision::Abort),
        "late" => Input::Unanswered(Duration::from_secs(5)),
        "done" => Input::Applied(Ok("Success.\n".to_owned()), Duration::from_millis(100)),
        "failed" => Input::Applied(Err("disk full".to_owned()), Duration::from_millis(100)),
        other => panic!("no such input: {other}"),
    }
}

fn show(effect: &Effect) -> String {
    match effect {
        Effect::Emit(Body::ItemStarted(Item::Patch(patch))) => format!("start {:?}", patch.status),
        Effect::Emit(Body::ItemCompleted(Item::Patch(patch))) => format!("complete {:?}", patch.status),
        Effect::Emit(Body::ApprovalAsked(approval)) => format!("asked {:?}", approval.reason),
        Effect::Emit(Body::ApprovalAnswered { decision, .. }) => format!("answered {decision:?}"),
        Effect::Emit(other) => format!("{other:?}"),
        Effect::AwaitAnswer => "WAIT".to_owned(),
        Effect::Apply { anywhere } => format!("APPLY anywhere={anywhere}"),
        Effect::TellDiff => "DIFF".to_owned(),
        Effect::End(output) => format!("END {output:?}"),
        Effect::AbortTurn => "ABORT".to_owned(),
    }
}

/// Plays a script: the first line is the policy, each other line an input.
#[track_caller]
fn check(script: &str, expected: Expect) {
    let mut lines = script.lines();
    let mut call = call(lines.next().unwrap());
    let mut shown = String::new();
    for line in lines {
        let effects = if line == "stop" { call.stop() } else { call.step(input(line)) };
        shown.extend([line, "\n"]);
        shown.extend(effects.iter().flat_map(|effect| ["    ".to_owned(), show(effect), "\n".to_owned()]));
    }
    expected.assert_eq(&shown);
}

#[test]
fn a_patch_inside_the_sandbox_is_applied_unasked() {
    check(
        "on-request\ninside\ndone\ndone",
        expect![[r#"
        inside
            start Running
            APPLY anywhere=false
        done
            complete Completed
            DIFF
            END Text("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nSuccess.\n")
        done
    "#]],
    );
}

#[test]
fn a_patch_outside_is_asked_about_and_applied_where_it_says() {
    check(
        "on-request\noutside\nyes\ndone",
        expect![[r#"
        outside
            start AwaitingApproval
            asked Some("the patch writes outside of what the sandbox lets it write")
            WAIT
        yes
            answered Approved
            APPLY anywhere=true
        done
            complete Completed
            DIFF
            END Text("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nSuccess.\n")
    "#]],
    );
}

#[test]
fn a_patch_outside_is_refused_where_nobody_may_be_asked() {
    check(
        "never\noutside\nyes",
        expect![[r#"
        outside
            start AwaitingApproval
            complete Declined
            END Text("patch rejected: the patch writes outside of what the sandbox lets it write, and the approval policy is Never")
        yes
    "#]],
    );
}

#[test]
fn a_denied_patch_changes_nothing() {
    check(
        "untrusted\ninside\nno\ndone",
        expect![[r#"
        inside
            start AwaitingApproval
            asked None
            WAIT
        no
            answered Denied
            complete Declined
            END Text("patch rejected by user")
        done
    "#]],
    );
}

#[test]
fn an_abort_stops_the_turn() {
    check(
        "untrusted\ninside\nabort",
        expect![[r#"
        inside
            start AwaitingApproval
            asked None
            WAIT
        abort
            answered Abort
            complete Declined
            ABORT
    "#]],
    );
}

#[test]
fn silence_is_a_denial() {
    check(
        "untrusted\ninside\nlate",
        expect![[r#"
        inside
            start AwaitingApproval
            asked None
            WAIT
        late
            Warning { message: "nobody answered within 5 s, so the patch was denied" }
            answered Denied
            complete Declined
            END Text("patch rejected by user")
    "#]],
    );
}

#[test]
fn a_patch_that_does_not_fit_is_told_to_the_model_alone() {
    check(
        "never\nmisfit",
        expect![[r#"
        misfit
            END Text("apply_patch verification failed: no such line")
    "#]],
    );
}

#[test]
fn a_patch_that_cannot_be_written_fails() {
    check(
        "never\ninside\nfailed",
        expect![[r#"
        inside
            start Running
            APPLY anywhere=false
        failed
            complete Failed
            END Text("Exit code: 1\nWall time: 0.1 seconds\nOutput:\ndisk full")
    "#]],
    );
}

#[test]
fn a_stop_completes_what_has_begun_and_nothing_else() {
    check(
        "never\nstop",
        expect![[r#"
        stop
    "#]],
    );
    check(
        "never\ninside\nstop\ndone",
        expect![[r#"
        inside
            start Running
            APPLY anywhere=false
        stop
            complete Failed
        done
    "#]],
    );
}

proptest! {
    #[test]
    fn a_patch_ends_once_and_is_applied_only_after_a_yes(
        policy in 0usize..4,
        lines in prop::collection::vec(0usize..9, 0..20),
    ) {
        let policy = ["untrusted", "on-failure", "on-request", "never"][policy];
        let mut call = call(policy);
        let mut effects = Vec::new();
        for line in lines {
            let words = ["inside", "outside", "misfit", "yes", "no", "abort", "late", "done", "failed"];
            effects.extend(call.step(input(words[line])));
        }
        effects.extend(call.stop());
        let count = |wanted: &dyn Fn(&Effect) -> bool| effects.iter().filter(|effect| wanted(effect)).count();
        let (started, completed) = (
            count(&|effect| matches!(effect, Effect::Emit(Body::ItemStarted(_)))),
            count(&|effect| matches!(effect, Effect::Emit(Body::ItemCompleted(_)))),
        );
        prop_assert_eq!(started, completed);
        prop_assert!(count(&|effect| matches!(effect, Effect::End(_) | Effect::AbortTurn)) <= 1);
        let applied = effects.iter().position(|effect| matches!(effect, Effect::Apply { .. }));
        let said_yes = effects.iter().position(
            |effect| matches!(effect, Effect::Emit(Body::ApprovalAnswered { decision, .. }) if decision.allows()),
        );
        if let Some(applied) = applied.filter(|_| policy == "untrusted") {
            prop_assert!(said_yes.is_some_and(|yes| yes < applied));
        }
    }
}
