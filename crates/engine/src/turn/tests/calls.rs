//! Calls of one answer: which run when, and in what order their outputs are recorded.

use super::*;

#[test]
fn calls_run_concurrently_after_the_answer_and_outputs_keep_its_order() {
    check(
        "call 1 a\ncall 2 b\ncompleted\nended 2 two\nended 1 one",
        expect![[r#"
            call 1 a
                record call 1
            call 2 b
                record call 2
            completed
                count
                RUN 1
                RUN 2
            ended 2 two
            ended 1 one
                record output 1 Text("one")
                record output 2 Text("two")
                settings
                ASK
        "#]],
    );
}

#[test]
fn no_more_calls_run_at_once_than_may() {
    check(
        "call 1 a\ncall 2 a\ncall 3 a\ncall 4 a\ncall 5 a\ncompleted\nended 3 x\nended 1 x\nended 9 x\nended 3 again",
        expect![[r#"
            call 1 a
                record call 1
            call 2 a
                record call 2
            call 3 a
                record call 3
            call 4 a
                record call 4
            call 5 a
                record call 5
            completed
                count
                RUN 1
                RUN 2
                RUN 3
            ended 3 x
                RUN 4
            ended 1 x
                record output 1 Text("x")
                RUN 5
            ended 9 x
            ended 3 again
        "#]],
    );
}

#[test]
fn where_one_call_runs_at_a_time_they_run_in_order() {
    let policy = TurnPolicy { calls_at_once: 1, ..policy(None) };
    let turn = Turn::start(&TurnId::new("t"), said("hi"), Window::default(), policy).0;
    play(
        turn,
        "call 1 a\ncall 2 b\ncompleted\nended 2 early\nended 1 one\nended 2 two",
        expect![[r#"
            call 1 a
                record call 1
            call 2 b
                record call 2
            completed
                count
                RUN 1
            ended 2 early
            ended 1 one
                record output 1 Text("one")
                RUN 2
            ended 2 two
                record output 2 Text("two")
                settings
                ASK
        "#]],
    );
}

#[test]
fn mail_can_come_before_the_first_output_and_between_no_two() {
    let policy = TurnPolicy { is_mail_first: true, ..policy(None) };
    let turn = Turn::start(&TurnId::new("t"), said("hi"), Window::default(), policy).0;
    play(
        turn,
        "call 1 a\ncall 2 b\ncompleted\nended 1 one\nended 2 two",
        expect![[r#"
        call 1 a
            record call 1
        call 2 b
            record call 2
        completed
            count
            RUN 1
            RUN 2
        ended 1 one
            MAIL BeforeOutputs
            record output 1 Text("one")
        ended 2 two
            record output 2 Text("two")
            settings
            ASK
    "#]],
    );
}

#[test]
fn a_patch_waits_for_what_runs_and_what_follows_waits_for_the_patch() {
    check(
        "call 1 a\ncall 2 apply_patch\ncall 3 b\ncall 4 update_plan\ncompleted\nended 1 x\nended 2 x\nended 3 x\nended 4 x",
        expect![[r#"
            call 1 a
                record call 1
            call 2 apply_patch
                record call 2
            call 3 b
                record call 3
            call 4 update_plan
                record call 4
            completed
                count
                RUN 1
            ended 1 x
                record output 1 Text("x")
                RUN 2
            ended 2 x
                record output 2 Text("x")
                RUN 3
            ended 3 x
                record output 3 Text("x")
                RUN 4
            ended 4 x
                record output 4 Text("x")
                settings
                ASK
        "#]],
    );
}

#[test]
fn two_calls_about_one_terminal_or_of_one_name_do_not_run_at_once() {
    check(
        "call 1 write_stdin 7\ncall 2 write_stdin 8\ncall 3 write_stdin 7\ncompleted\nended 1 x\nended 2 x\nended 3 x",
        expect![[r#"
            call 1 write_stdin 7
                record call 1
            call 2 write_stdin 8
                record call 2
            call 3 write_stdin 7
                record call 3
            completed
                count
                RUN 1
                RUN 2
            ended 1 x
                record output 1 Text("x")
                RUN 3
            ended 2 x
                record output 2 Text("x")
            ended 3 x
                record output 3 Text("x")
                settings
                ASK
        "#]],
    );
    check(
        "call 1 a\ncall 1 b\ncompleted\nended 1 x\nended 1 y",
        expect![[r#"
        call 1 a
            record call 1
        call 1 b
            record call 1
        completed
            count
            RUN 1
        ended 1 x
            record output 1 Text("x")
            RUN 1
        ended 1 y
            record output 1 Text("y")
            settings
            ASK
    "#]],
    );
}

#[test]
fn an_interrupt_keeps_outputs_and_reports_aborted_calls() {
    check(
        "call 1 a\ncall 2 a\ncall 3 a\ncall 4 a\ncompleted\nended 2 two\nstop 1 cut off",
        expect![[r#"
            call 1 a
                record call 1
            call 2 a
                record call 2
            call 3 a
                record call 3
            call 4 a
                record call 4
            completed
                count
                RUN 1
                RUN 2
                RUN 3
            ended 2 two
                RUN 4
            stop 1 cut off
                CANCEL
                BREAK OFF
                record output 1 Text("cut off")
                record output 2 Text("two")
                record output 3 Text("aborted")
                record output 4 Text("aborted")
                END Aborted(Interrupted)
        "#]],
    );
}
