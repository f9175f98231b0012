//! The numbers of events, and the ids of the logs that they belong to.
//!
//! Invariants: within a log numbers only grow, and an event with lines has the same number after every load, because
//! the number is the position where its lines end.

use std::fmt;

use codex_wire::ids::ThreadId;

/// The number of bits that count events without lines.
const COUNT_BITS: u32 = 18;
/// The maximum number of events without lines after a line.
pub const MOST_WITHOUT_LINE: u64 = (1 << COUNT_BITS) - 1;

/// The number of an event: the length of the log in bytes after the last line, and the number of events without lines
/// since then. It has 53 bits for logs of up to 32 GiB, so JSON can represent it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seq(u64);

impl Seq {
    /// The number of the event whose last line ends at this position.
    #[must_use]
    pub const fn at(position: u64) -> Self {
        Self(position << COUNT_BITS)
    }

    /// The number that a client has sent.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number as clients receive it.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The length of the log after the last line.
    #[must_use]
    pub const fn position(self) -> u64 {
        self.0 >> COUNT_BITS
    }

    /// The number of events without lines since then.
    #[must_use]
    pub const fn count(self) -> u64 {
        self.0 & MOST_WITHOUT_LINE
    }

    /// The number of the next event without lines. After [`MOST_WITHOUT_LINE`] of them a line is required; if none can
    /// be written, numbers continue anyway.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The id of a log. Numbers of one load identify the same events for all subscribers; across loads of one incarnation,
/// only numbers of events with lines do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogId {
    incarnation: ThreadId,
    load: ThreadId,
}

impl LogId {
    /// The log of an incarnation as it is currently loaded. A saved thread has one incarnation, its own id.
    #[must_use]
    pub const fn new(incarnation: ThreadId, load: ThreadId) -> Self {
        Self { incarnation, load }
    }

    /// Whether a client refers to this load of the log.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.parts(name).is_some_and(|(_, load)| load == self.load.to_string())
    }

    /// Whether a client refers to this log, in this load or an earlier one.
    #[must_use]
    pub fn is_same_incarnation(&self, name: &str) -> bool {
        self.parts(name).is_some()
    }

    fn parts<'a>(&self, name: &'a str) -> Option<(&'a str, &'a str)> {
        name.split_once('.').filter(|(incarnation, _)| *incarnation == self.incarnation.to_string())
    }
}

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.incarnation, self.load)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_largest_log_has_numbers_that_json_holds() {
        let largest = Seq::at((32 << 30) - 1);
        assert!(largest.number() + MOST_WITHOUT_LINE < 1 << 53);
    }

    #[test]
    fn a_log_knows_its_names() {
        let thread = ThreadId::fresh();
        let [first, second] = [(); 2].map(|()| LogId::new(thread, ThreadId::fresh()));
        assert!(first.is(&first.to_string()) && !first.is(&second.to_string()));
        assert!(first.is_same_incarnation(&second.to_string()));
        let other = LogId::new(ThreadId::fresh(), thread).to_string();
        assert!(!first.is_same_incarnation(&other) && !first.is(&other));
        for nonsense in ["", ".", &thread.to_string()] {
            assert!(!first.is_same_incarnation(nonsense), "{nonsense}");
        }
    }

    proptest! {
        #[test]
        fn numbers_grow_with_every_event(lines in prop::collection::vec(0_u64..3_000, 1..200)) {
            let (mut position, mut last) = (0, Seq::default());
            for bytes in lines {
                position += bytes;
                let seq = if bytes > 0 { Seq::at(position) } else { last.next() };
                prop_assert!(seq > last);
                prop_assert_eq!(seq.position(), position);
                prop_assert_eq!(seq.count() == 0, bytes > 0);
                prop_assert_eq!(Seq::new(seq.number()), seq);
                last = seq;
            }
        }
    }
}
