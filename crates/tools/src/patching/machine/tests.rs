use codex_log::ItemId;
use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::super::request::ReportFormat;
use super::*;

fn call(policy: &str) -> PatchCall {
    let request =
        PatchRequest { call: ItemId::new("c"), text: String::new(), cwd: "/w".into(), voice: ReportFormat::Tool };
    PatchCall::new(request, policy.parse().unwrap(), None, None)
}

fn input(line: &str) -> Input {
    let planned = |permission| Input::Planned(Ok(Planned { changes: BTreeMap::new(), permission }));
    match line {
        "inside" => planned(Permission::Policy),
        "outside" => planned(Permission::Missing { root: Some("/root".into()) }),
        "protected" => planned(Permission::Missing { root: None }),
        "granted" => planned(Permission::Grant),
        "misfit" => Input::Planned(Err("no such line".to_owned())),
        "yes" => Input::Answered(ReviewDecision::Approved.into()),
        "always" => Input::Answered(ReviewDecision::ApprovedForSession.into()),
        "unclear" => Input::Answered(Answer::Declined),
        "no" => Input::Answered(ReviewDecision::Denied.into()),
        "abort" => Input::Answered(ReviewDecision::Abort.into()),
        "done" => Input::Applied(Ok("Success.\n".to_owned()), Duration::from_millis(100)),
        "failed" => Input::Applied(Err("disk full".to_owned()), Duration::from_millis(100)),
        other => panic!("no such input: {other}"),
    }
}

fn show(effect: &Effect) -> String {
    match effect {
        Effect::Emit(Body::ItemStarted(Item::Patch(patch))) => format!("start {:?}", patch.status),
        Effect::Emit(Body::ItemCompleted(Item::Patch(patch))) => format!("complete {:?}", patch.status),
        Effect::Ask(question) => {
            let QuestionKind::Patch { grant_root, .. } = &question.kind else { panic!("asked about something else") };
            format!("asked {:?} grant={grant_root:?}", question.reason)
        }
        Effect::Emit(Body::Answered { answer, .. }) => format!("answered {:?}", answer.decision()),
        Effect::Emit(other) => format!("{other:?}"),
        Effect::Apply(permission) => format!("APPLY {permission:?}"),
        Effect::Grant(root) => format!("GRANT {}", root.display()),
        Effect::TellDiff => "DIFF".to_owned(),
        Effect::End(output) => format!("END {output:?}"),
        Effect::AbortTurn => "ABORT".to_owned(),
        Effect::TellOfNobody => "NOBODY".to_owned(),
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
                APPLY Policy
            done
                complete Completed
                DIFF
                END Text("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nSuccess.\n")
            done
        "#]],
    );
}

#[test]
fn a_patch_outside_is_approved_and_applied() {
    check(
        "on-request\noutside\nyes\ndone",
        expect![[r#"
            outside
                start AwaitingApproval
                asked Some("the patch writes outside of what the sandbox lets it write") grant=Some("/root")
            yes
                answered Approved
                APPLY Person
            done
                complete Completed
                DIFF
                END Text("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nSuccess.\n")
        "#]],
    );
}

#[test]
fn an_approval_for_the_session_grants_the_root_that_was_shown() {
    check(
        "on-request\noutside\nalways\ndone",
        expect![[r#"
        outside
            start AwaitingApproval
            asked Some("the patch writes outside of what the sandbox lets it write") grant=Some("/root")
        always
            answered ApprovedForSession
            GRANT /root
            APPLY Person
        done
            complete Completed
            DIFF
            END Text("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nSuccess.\n")
    "#]],
    );
    check(
        "on-request\noutside\nyes",
        expect![[r#"
        outside
            start AwaitingApproval
            asked Some("the patch writes outside of what the sandbox lets it write") grant=Some("/root")
        yes
            answered Approved
            APPLY Person
    "#]],
    );
    check(
        "on-request\nprotected\nalways",
        expect![[r#"
        protected
            start AwaitingApproval
            asked Some("the patch writes outside of what the sandbox lets it write") grant=None
        always
            answered ApprovedForSession
            APPLY Person
    "#]],
    );
}

#[test]
fn granted_permissions_are_not_asked_again() {
    for policy in ["untrusted", "on-failure", "on-request", "never"] {
        check(
            &format!("{policy}\ngranted"),
            expect![[r#"
                granted
                    start Running
                    APPLY Grant
            "#]],
        );
    }
}

#[test]
fn a_patch_outside_is_refused_if_nobody_may_be_asked() {
    check(
        "never\noutside\nyes",
        expect![[r#"
            outside
                start AwaitingApproval
                complete Declined
                END Text("patch rejected: the patch writes outside of what the sandbox lets it write, and the approval policy is `never`")
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
                asked None grant=None
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
                asked None grant=None
            abort
                answered Abort
                complete Declined
                ABORT
        "#]],
    );
}

#[test]
fn an_unknown_answer_is_a_denial() {
    check(
        "untrusted\ninside\nunclear",
        expect![[r#"
            inside
                start AwaitingApproval
                asked None grant=None
            unclear
                answered Denied
                complete Declined
                END Text("patch rejected by user")
        "#]],
    );
}

#[test]
fn a_patch_that_does_not_fit_is_reported_to_the_model_alone() {
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
                APPLY Policy
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
                APPLY Policy
            stop
                complete Failed
            done
        "#]],
    );
}

const WORDS: [&str; 12] = [
    "inside",
    "outside",
    "protected",
    "granted",
    "misfit",
    "yes",
    "always",
    "no",
    "abort",
    "unclear",
    "done",
    "failed",
];

proptest! {
    #[test]
    fn a_patch_ends_once_and_is_applied_only_after_a_yes(
        policy in 0usize..4,
        lines in prop::collection::vec(0usize..12, 0..20),
    ) {
        let policy = ["untrusted", "on-failure", "on-request", "never"][policy];
        let mut call = call(policy);
        let mut effects = Vec::new();
        for line in lines {
            effects.extend(call.step(input(WORDS[line])));
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
            |effect| matches!(effect, Effect::Emit(Body::Answered { answer, .. }) if answer.allows()),
        );
        let was_asked = effects.iter().any(|effect| matches!(effect, Effect::Ask(_)));
        if let Some(applied) = applied.filter(|_| was_asked) {
            prop_assert!(said_yes.is_some_and(|yes| yes < applied));
        }
        let granted = count(&|effect| matches!(effect, Effect::Grant(_)));
        let told = |effect: &&Effect| matches!(effect, Effect::Ask(_));
        prop_assert!(granted <= effects.iter().filter(told).count());
    }
}
