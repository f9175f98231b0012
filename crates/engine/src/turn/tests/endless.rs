//! Answers that do not end.

use super::*;
use crate::turn::answer::MOST_ITEMS;

/// Feeds a turn with events until it is over. Returns their number, the number of effects on the conversation and the
/// window, and the end of the turn.
fn flood(events: impl Iterator<Item = ModelEvent>) -> (usize, usize, Outcome) {
    let (mut turn, _) = start("hi");
    let mut records = 0;
    for (number, event) in events.enumerate() {
        let effects = turn.step(Input::Model(event));
        records += effects.iter().filter(|effect| matches!(effect, Effect::Emit(Body::Recorded(_)))).count();
        if let Some(Effect::End(outcome)) = effects.into_iter().next_back() {
            return (number + 1, records, outcome);
        }
    }
    panic!("the turn goes on");
}

#[track_caller]
fn assert_failed(outcome: &Outcome, message: &str) {
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert_eq!(failure.message, message);
}

const MOST: usize = 10_000_000;

#[test]
fn messages_without_end_fail_the_turn() {
    let endless = (0..MOST).map(|number| ModelEvent::ItemDone(message(&format!("m{number}"), "x"), None));
    let (taken, records, outcome) = flood(endless);
    assert_failed(&outcome, "the model's answer has more than 4096 items");
    assert_eq!((taken, records), (MOST_ITEMS + 1, MOST_ITEMS));
}

#[test]
fn calls_without_end_fail_the_turn_and_none_is_run() {
    let endless = (0..MOST).map(|number| ModelEvent::ItemDone(call(&format!("c{number}"), "shell"), None));
    let (taken, records, outcome) = flood(endless);
    assert_failed(&outcome, "the model's answer has more than 4096 items");
    assert_eq!((taken, records), (MOST_ITEMS + 1, 2 * MOST_ITEMS), "every call has an output");
}

#[test]
fn items_that_only_begin_fail_the_turn() {
    let endless = (0..MOST).map(|number| ModelEvent::ItemAdded(message(&format!("m{number}"), "")));
    assert_failed(&flood(endless).2, "the model's answer has more than 4096 items");
}

#[test]
fn large_items_without_end_fail_the_turn() {
    let text = "x".repeat(8 << 20);
    let endless = (0..MOST).map(|number| ModelEvent::ItemDone(message(&format!("m{number}"), &text), None));
    let (taken, _, outcome) = flood(endless);
    assert_failed(&outcome, "the model's answer has more than 134217728 bytes");
    assert!(taken <= 17, "{taken}");
}

#[test]
fn a_text_without_end_fails_the_turn() {
    for delta in ["x".repeat(1 << 20), String::new()] {
        let item_id = "m".to_owned();
        let endless = std::iter::repeat_n(ModelEvent::TextDelta { item_id, delta }, MOST);
        assert_failed(&flood(endless).2, "the model's answer has more than 134217728 bytes");
    }
}

#[test]
fn each_answer_is_counted_by_itself() {
    let (mut turn, _) = start("hi");
    for round in 0..3 {
        for number in 0..MOST_ITEMS - 1 {
            turn.step(Input::Model(ModelEvent::ItemDone(message(&format!("m{number}"), "x"), None)));
        }
        let id = format!("c{round}");
        turn.step(Input::Model(ModelEvent::ItemDone(call(&id, "update_plan"), None)));
        turn.step(input("completed"));
        let effects = turn.step(input(&format!("ended {id} ok")));
        assert!(matches!(effects.last(), Some(Effect::AskModel)), "{effects:?}");
    }
}
