//! The keys of client messages that a thread has accepted, so that a repeated message is not accepted twice.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::TurnId;

/// The number of keys that are remembered. A client repeats a recent message, not an old one.
const KEPT: usize = 256;

/// The latest keys, each with the turn that accepted it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdempotencyKeys(VecDeque<(Arc<str>, TurnId)>);

impl IdempotencyKeys {
    /// Remembers a key.
    pub fn note(&mut self, key: Arc<str>, turn: TurnId) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back((key, turn));
    }

    /// The turn that accepted the message with this key.
    #[must_use]
    pub fn turn_of(&self, key: &str) -> Option<&TurnId> {
        self.0.iter().rev().find(|(heard, _)| **heard == *key).map(|(_, turn)| turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_keys_are_forgotten_first() {
        let mut keys = IdempotencyKeys::default();
        for number in 0..=KEPT {
            keys.note(number.to_string().into(), TurnId::new(format!("turn {number}")));
        }
        assert_eq!(keys.turn_of("0"), None);
        assert_eq!(keys.turn_of("1"), Some(&TurnId::new("turn 1")));
        assert_eq!(keys.0.len(), KEPT);
    }
}
