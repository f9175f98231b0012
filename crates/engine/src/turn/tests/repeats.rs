//! Turns that do not come to an end by themselves.

use super::*;

/// Plays one round: the model makes a call, and the call fails or succeeds.
fn round(turn: &mut Turn, id: &str, tool: &str, word: &str) -> Vec<String> {
    let lines = [format!("call {id} {tool}"), "completed".to_owned(), format!("{word} {id} x")];
    lines.iter().flat_map(|line| turn.step(input(line))).map(|effect| show(&effect)).collect()
}

fn has_note(effects: &[String]) -> bool {
    effects.iter().any(|effect| effect.contains("repeated_call"))
}

/// A model that repeats a failing call used to be paid for until somebody looked.
#[test]
fn the_third_identical_failure_is_pointed_out_and_the_tenth_ends_the_turn() {
    let (mut turn, _) = start("hi");
    for number in 1..10 {
        let effects = round(&mut turn, &format!("c{number}"), "shell", "failed");
        assert_eq!(has_note(&effects), number >= 3, "{number}: {effects:#?}");
        assert!(effects.last().is_some_and(|last| last == "ASK"), "{number}: {effects:#?}");
    }
    let effects = round(&mut turn, "c10", "shell", "failed");
    let end = effects.last().unwrap();
    assert!(end.contains("the model made the same failing call of shell 10 times"), "{end}");
    assert!(effects.iter().any(|effect| effect.contains("record output c10")), "{effects:#?}");
}

#[test]
fn a_note_follows_all_outputs_of_an_answer() {
    let (mut turn, _) = start("hi");
    round(&mut turn, "a", "shell", "failed");
    round(&mut turn, "b", "shell", "failed");
    let lines = ["call c shell", "call d other", "completed", "failed c x", "failed d y"];
    let effects: Vec<String> = lines.iter().flat_map(|line| turn.step(input(line))).map(|it| show(&it)).collect();
    let place = |text: &str| effects.iter().position(|effect| effect.contains(text)).unwrap();
    assert!(place("record output d") < place("repeated_call"), "{effects:#?}");
}

#[test]
fn other_calls_and_calls_that_succeed_are_no_loop() {
    let (mut turn, _) = start("hi");
    for number in 0..40 {
        // A test that fails between changes that succeed, and calls that differ.
        let (tool, word) = if number % 2 == 0 { ("test".to_owned(), "failed") } else { ("edit".to_owned(), "ended") };
        assert!(!has_note(&round(&mut turn, &format!("c{number}"), &tool, word)));
        assert!(!has_note(&round(&mut turn, &format!("d{number}"), &format!("tool{number}"), "failed")));
    }
}

#[test]
fn a_turn_makes_a_limited_number_of_requests() {
    let limited = TurnPolicy { request_limit: 5, ..policy(None) };
    let (mut turn, _) = Turn::start(&TurnId::new("t"), said("hi"), Window::default(), limited);
    for number in 1..5 {
        let effects = round(&mut turn, &format!("c{number}"), "shell", "ended");
        assert_eq!(effects.last().unwrap(), "ASK");
    }
    let effects = round(&mut turn, "c5", "shell", "ended");
    let end = effects.last().unwrap();
    assert!(end.contains("the turn has made 5 requests to the model, the maximum (max_turn_requests)"), "{end}");
    assert!(effects.iter().any(|effect| effect.contains("record output c5")), "no call is without an output");
    assert!(turn.step(input("say more")).is_empty());
}
