//! Lines from a subscriber to its client.
//!
//! A large message is encoded only when there is room for it, one at a time: until then it shares its text with the
//! thread.

use std::collections::VecDeque;

use codex_log::Seq;
use serde::Serialize;

use super::outbox::add_line;
use super::subscription::add_number;

/// Encodes a message as a line.
type Write = Box<dyn FnOnce(&mut Vec<u8>) + Send + Sync>;

/// Messages in order.
#[derive(Default)]
pub(crate) struct Outgoing {
    /// Whole lines.
    ready: Vec<u8>,
    /// Messages after them.
    later: VecDeque<Later>,
    /// The end of the last line about the thread that the current event produced.
    numbered: Option<Place>,
}

enum Later {
    /// Whole lines.
    Lines(Vec<u8>),
    /// A large message, its approximate size, and the number of its event.
    Large { write: Write, weight: usize, number: Option<Seq> },
}

/// The position after a line.
#[derive(Clone, Copy)]
enum Place {
    Ready(usize),
    /// The number of earlier entries of [`Outgoing::later`], and the offset in the entry if it consists of lines.
    Later(usize, usize),
}

impl Outgoing {
    pub(crate) fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.later.is_empty()
    }

    /// The approximate number of bytes that [`Self::take`] returns.
    pub(crate) fn next_bytes(&self) -> usize {
        match self.later.front() {
            Some(Later::Large { weight, .. }) if self.ready.is_empty() => *weight,
            Some(Later::Lines(lines)) if self.ready.is_empty() => lines.len(),
            _ => self.ready.len(),
        }
    }

    /// Whether further messages would have to wait behind these.
    pub(crate) fn is_full(&self, bytes: usize) -> bool {
        self.ready.len() >= bytes || !self.later.is_empty()
    }

    /// The next lines to send.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        if !self.ready.is_empty() {
            return std::mem::take(&mut self.ready);
        }
        match self.later.pop_front() {
            Some(Later::Lines(lines)) => lines,
            Some(Later::Large { write, weight, number }) => {
                let mut line = Vec::with_capacity(weight + weight / 8);
                write(&mut line);
                if let Some(number) = number {
                    let end = line.len();
                    add_number(&mut line, end, number);
                }
                line
            }
            None => Vec::new(),
        }
    }

    /// Adds a message.
    pub(crate) fn add(&mut self, message: &impl Serialize) {
        add_line(self.lines(), message);
    }

    /// Adds whole lines.
    pub(crate) fn add_lines(&mut self, lines: &[u8]) {
        self.lines().extend_from_slice(lines);
    }

    /// Adds a message of approximately this many bytes, to be encoded when there is room.
    pub(crate) fn add_large(&mut self, weight: usize, write: impl FnOnce(&mut Vec<u8>) + Send + Sync + 'static) {
        self.later.push_back(Later::Large { write: Box::new(write), weight, number: None });
    }

    /// Continues with the next event.
    pub(crate) fn begin(&mut self) {
        self.numbered = None;
    }

    /// Puts the number of the current event into the message that was added last, unless a later one gets it.
    pub(crate) fn number_here(&mut self) {
        self.numbered = Some(match self.later.back() {
            None => Place::Ready(self.ready.len()),
            Some(Later::Lines(lines)) => Place::Later(self.later.len() - 1, lines.len()),
            Some(Later::Large { .. }) => Place::Later(self.later.len() - 1, 0),
        });
    }

    /// Sets the number of the current event.
    pub(crate) fn number(&mut self, seq: Seq) {
        match self.numbered.take() {
            Some(Place::Ready(end)) => add_number(&mut self.ready, end, seq),
            Some(Place::Later(index, end)) => match self.later.get_mut(index) {
                Some(Later::Lines(lines)) => add_number(lines, end, seq),
                Some(Later::Large { number, .. }) => *number = Some(seq),
                None => {}
            },
            None => {}
        }
    }

    fn lines(&mut self) -> &mut Vec<u8> {
        if self.later.is_empty() {
            return &mut self.ready;
        }
        if !matches!(self.later.back(), Some(Later::Lines(_))) {
            self.later.push_back(Later::Lines(Vec::new()));
        }
        match self.later.back_mut() {
            Some(Later::Lines(lines)) => lines,
            _ => &mut self.ready,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn large(text: &'static str) -> impl FnOnce(&mut Vec<u8>) + Send + Sync + 'static {
        move |line| add_line(line, &serde_json::json!({"method": text}))
    }

    #[test]
    fn messages_come_in_order_and_large_ones_alone() {
        let mut outgoing = Outgoing::default();
        outgoing.add(&1);
        outgoing.add(&2);
        assert!(!outgoing.is_full(5) && outgoing.is_full(4));
        outgoing.add_large(1000, large("a"));
        outgoing.add_large(2000, large("b"));
        outgoing.add(&3);
        outgoing.add_lines(b"4\n");
        assert!(outgoing.is_full(usize::MAX));
        let mut taken = Vec::new();
        while !outgoing.is_empty() {
            let bytes = outgoing.next_bytes();
            taken.push((bytes, String::from_utf8(outgoing.take()).unwrap()));
        }
        let expected = [(4, "1\n2\n"), (1000, "{\"method\":\"a\"}\n"), (2000, "{\"method\":\"b\"}\n"), (4, "3\n4\n")];
        assert_eq!(taken, expected.map(|(bytes, lines)| (bytes, lines.to_owned())));
    }

    #[test]
    fn the_number_of_an_event_goes_into_its_last_message_about_the_thread() {
        let note = |text: &str| serde_json::json!({"method": text});
        let mut outgoing = Outgoing::default();
        let mut event = |seq, add: &dyn Fn(&mut Outgoing)| {
            outgoing.begin();
            add(&mut outgoing);
            outgoing.number(seq);
        };
        event(Seq::new(1), &|outgoing| {
            outgoing.add(&note("one"));
            outgoing.number_here();
            outgoing.add(&note("of no thread"));
        });
        event(Seq::new(2), &|outgoing| {
            outgoing.add_large(10, large("large"));
            outgoing.number_here();
        });
        event(Seq::new(3), &|outgoing| {
            outgoing.add(&note("three"));
            outgoing.number_here();
        });
        event(Seq::new(4), &|_| ());
        let mut lines = Vec::new();
        while !outgoing.is_empty() {
            lines.extend(outgoing.take());
        }
        let expected = "{\"method\":\"one\",\"seq\":1}\n{\"method\":\"of no thread\"}\n{\"method\":\"large\",\"seq\":2}\n{\"method\":\"three\",\"seq\":3}\n";
        assert_eq!(String::from_utf8(lines).unwrap(), expected);
    }
}
