//! Turns that wait for the account's allowance.

use super::*;

#[test]
fn an_exhausted_allowance_is_waited_for_and_the_request_repeated() {
    check(
        "limited 7200\ndue\ndone m Hey\ncompleted",
        expect![[r#"
        limited 7200
            CANCEL
            LIMIT 7200s, goes on later: true
        due
            settings
            ASK
        done m Hey
            start agent m ""
            complete agent m "Hey"
            record assistant "Hey"
        completed
            count
            END Completed { last_message: Some("Hey"), bookmark: None }
    "#]],
    );
}

#[test]
fn whoever_speaks_meanwhile_has_it_tried_at_once() {
    check(
        "limited 7200\nsay now\nlimited 7100\nstop\ndue",
        expect![[r#"
        limited 7200
            CANCEL
            LIMIT 7200s, goes on later: true
        say now
            CANCEL
            record user "now"
            start user u-now
            complete user u-now
            settings
            ASK
        limited 7100
            CANCEL
            LIMIT 7100s, goes on later: true
        stop
            CANCEL
            BREAK OFF
            END Aborted(Interrupted)
        due
    "#]],
    );
}

#[test]
fn a_time_that_has_passed_is_not_tried_over_and_over() {
    let (mut turn, _) = start("hi");
    let mut waits = 0;
    let end = loop {
        let effects: Vec<String> = turn.step(input("limited 0")).iter().map(show).collect();
        if effects[1] != "LIMIT 5s, goes on later: true" {
            break effects;
        }
        waits += 1;
        turn.step(input("due"));
    };
    assert_eq!((waits, end[1].as_str()), (10, "BREAK OFF"));
}

#[test]
fn a_wait_that_is_too_long_ends_the_turn() {
    check(
        "limited 700000",
        expect![[r#"
        limited 700000
            CANCEL
            BREAK OFF
            END Failed(Failure { message: "limit", hint: None, info: Other })
    "#]],
    );
}

#[test]
fn nobody_waits_who_does_not_want_to() {
    let policy = TurnPolicy { waits_for_limits: false, ..policy(None) };
    let (turn, _) = Turn::start(&TurnId::new("t"), said("hi"), Window::default(), policy);
    play(
        turn,
        "limited 60",
        expect![[r#"
        limited 60
            CANCEL
            BREAK OFF
            END Failed(Failure { message: "limit", hint: None, info: Other })
    "#]],
    );
}

#[test]
fn a_summary_is_waited_for_too() {
    // The log records neither input that waits for a summary, nor a request for one.
    let window = Window { size: None, used: 10 };
    let (turn, _) = Turn::start(&TurnId::new("t"), said("hi"), window, policy(Some(5)));
    play(
        turn,
        "limited 60\ndue\ndone m sum\ncompleted",
        expect![[r#"
        limited 60
            CANCEL
            LIMIT 60s, goes on later: false
        due
            settings
            ASK FOR SUMMARY without 0 halves
        done m sum
        completed
            count
            COMPACT "sum"
            record user "hi"
            start user u-hi
            complete user u-hi
            settings
            ASK
    "#]],
    );
    let (turn, _) = Turn::compact(&TurnId::new("t"), window, policy(None));
    play(
        turn,
        "limited 60\ndue",
        expect![[r#"
        limited 60
            CANCEL
            LIMIT 60s, goes on later: false
        due
            settings
            ASK FOR SUMMARY without 0 halves
    "#]],
    );
}

#[test]
fn a_turn_that_was_left_waiting_is_resumed() {
    let (turn, effects) =
        Turn::wait_again(&TurnId::new("t"), failure("limit"), Duration::from_secs(30), Window::default(), policy(None));
    assert_eq!(effects.iter().map(show).collect::<Vec<_>>(), ["LIMIT 30s, goes on later: true"]);
    assert!(turn.waits_for_limit());
    play(
        turn,
        "due",
        expect![[r#"
        due
            settings
            ASK
    "#]],
    );
}
