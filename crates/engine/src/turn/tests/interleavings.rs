//! Random orders of everything that can happen to a turn.

use proptest::prelude::*;

use super::*;

/// Follows the effects of a turn and checks its invariants.
#[derive(Default)]
struct Witness {
    most_at_once: usize,
    /// Calls without an output, in order.
    open_calls: Vec<String>,
    /// Calls that have run or are running.
    begun: Vec<String>,
    running: Vec<String>,
    open_items: Vec<String>,
    ended: bool,
}

impl Witness {
    fn see(&mut self, effects: &[Effect]) {
        for effect in effects {
            assert!(!self.ended, "{} after the end", show(effect));
            match effect {
                Effect::Emit(Body::Recorded(record)) => match &*record.item().unwrap() {
                    ResponseItem::FunctionCall(call) => self.open_calls.push(call.call_id.clone()),
                    ResponseItem::FunctionCallOutput(output) => {
                        assert_eq!(self.open_calls.first(), Some(&output.call_id), "outputs come in the calls' order");
                        self.open_calls.remove(0);
                    }
                    _ => {}
                },
                Effect::Emit(Body::ItemStarted(item)) => self.open_items.push(item.id().as_str().to_owned()),
                Effect::Emit(Body::ItemDelta { item, .. }) => {
                    assert!(self.open_items.iter().any(|id| id == item.as_str()), "{item:?} grows but has not started");
                }
                Effect::Emit(Body::ItemCompleted(item)) => {
                    let place = self.open_items.iter().rposition(|id| id == item.id().as_str());
                    self.open_items.remove(place.expect("an item that completes has started"));
                }
                Effect::Run(call) => self.see_run(call),
                Effect::Cancel => self.running.clear(),
                Effect::AskModel | Effect::AskAgain | Effect::AskForSummary { .. } => {
                    assert!(self.open_calls.is_empty(), "asked with open calls {:?}", self.open_calls);
                    assert!(self.running.is_empty(), "asked with running calls {:?}", self.running);
                }
                Effect::End(_) => {
                    assert!(self.open_calls.is_empty(), "ended with open calls {:?}", self.open_calls);
                    assert!(self.running.is_empty(), "ended with running calls {:?}", self.running);
                    self.ended = true;
                }
                _ => {}
            }
        }
    }

    fn see_run(&mut self, call: &ToolCall) {
        let id = call.id.as_str().to_owned();
        assert!(self.open_calls.contains(&id), "{id} runs although it has its output");
        assert!(!self.begun.contains(&id), "{id} runs twice");
        let earlier = self.open_calls.iter().take_while(|open| **open != id);
        assert!(earlier.clone().all(|open| self.begun.contains(open)), "{id} has overtaken another");
        let is_alone = |id: &String| id.starts_with('p');
        let runs_alone = self.running.is_empty() || !is_alone(&id) && !self.running.iter().any(is_alone);
        assert!(runs_alone, "{id} beside {:?}", self.running);
        self.begun.push(id.clone());
        self.running.push(id);
        assert!(self.running.len() <= self.most_at_once, "{:?}", self.running);
    }
}

/// The script line for a random word; `pick` chooses the call that ends.
fn random_line(word: usize, number: usize, pick: usize, witness: &mut Witness) -> String {
    match word {
        0 => format!("say {number}"),
        1 => "open".to_owned(),
        2 => "add m".to_owned(),
        3 => "delta m x".to_owned(),
        4 => "done m x".to_owned(),
        5 => "think r".to_owned(),
        6 => "sum r y".to_owned(),
        7 => "thought r y".to_owned(),
        8 | 9 => format!("call c{number} a"),
        10 => format!("call p{number} apply_patch"),
        11 => "completed".to_owned(),
        12 => "cut".to_owned(),
        13 => "due".to_owned(),
        14 => "used 150".to_owned(),
        15 => "overflow".to_owned(),
        16 => "ended nobody z".to_owned(),
        _ if witness.running.is_empty() => "ended c0 z".to_owned(),
        _ => {
            let place = pick % witness.running.len();
            format!("ended {} z", witness.running.remove(place))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100_000))]

    #[test]
    fn promises_hold_in_every_interleaving(
        words in prop::collection::vec((0usize..22, 0usize..8), 0..60),
        compact_at in prop::option::of(0i64..200),
        calls_at_once in 1usize..5,
    ) {
        let policy = TurnPolicy { calls_at_once, ..policy(compact_at) };
        let (mut turn, effects) =
            Turn::start(&TurnId::new("t"), said("hi"), Window { size: None, used: 50 }, policy);
        let mut witness = Witness { most_at_once: calls_at_once, ..Witness::default() };
        witness.see(&effects);
        for (number, (word, pick)) in words.into_iter().enumerate() {
            let line = random_line(word, number, pick, &mut witness);
            witness.see(&turn.step(input(&line)));
        }
        witness.see(&turn.step(input("stop")));
        prop_assert!(witness.ended);
        prop_assert!(turn.step(input("stop")).is_empty());
    }
}
