//! The ids of imported threads.

use std::borrow::Cow;
use std::collections::HashMap;

use codex_wire::ids::ThreadId;

/// The length of an id, and the place of its first hyphen.
const ID_BYTES: usize = 36;
const FIRST_HYPHEN: usize = 8;

/// The ids of the threads of a bundle: the previous ones and those here.
#[derive(Debug)]
pub struct NewIds {
    all: Vec<(ThreadId, ThreadId)>,
    /// Those that differ, as texts.
    changed: HashMap<String, String>,
}

impl NewIds {
    pub(super) fn new(all: Vec<(ThreadId, ThreadId)>) -> Self {
        let changed = all.iter().filter(|(old, new)| old != new).map(|(old, new)| (old.to_string(), new.to_string()));
        Self { changed: changed.collect(), all }
    }

    /// The ids of the first thread: the previous one, and the one here.
    pub(super) fn first(&self) -> (ThreadId, ThreadId) {
        self.all.first().copied().unwrap_or((ThreadId::unknown(), ThreadId::unknown()))
    }

    /// The id of a thread here; `None` if it is not part of the bundle.
    #[must_use]
    pub fn new_of(&self, old: ThreadId) -> Option<ThreadId> {
        self.all.iter().find(|(known, _)| *known == old).map(|(_, new)| *new)
    }

    /// A text with the ids here. Threads name each other in events, and models in their calls.
    pub(super) fn replace<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.changed.is_empty() {
            return text.into();
        }
        let (mut replaced, mut done) = (String::new(), 0);
        for hyphen in memchr::memchr_iter(b'-', text.as_bytes()) {
            let Some(start) = hyphen.checked_sub(FIRST_HYPHEN).filter(|start| *start >= done) else { continue };
            let Some(new) = text.get(start..start + ID_BYTES).and_then(|id| self.changed.get(id)) else { continue };
            replaced.push_str(&text[done..start]);
            replaced.push_str(new);
            done = start + ID_BYTES;
        }
        if done == 0 {
            return text.into();
        }
        replaced.push_str(&text[done..]);
        replaced.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_of_the_bundle_are_replaced() {
        let [one, two, other] = [(); 3].map(|()| ThreadId::fresh());
        let (new_one, new_two) = (ThreadId::fresh(), ThreadId::fresh());
        let ids = NewIds::new(vec![(one, new_one), (two, new_two)]);
        let text = format!("{one}, \u{fc}-{two}{two} a-b {other} - {}", &one.to_string()[..20]);
        let expected = format!("{new_one}, \u{fc}-{new_two}{new_two} a-b {other} - {}", &one.to_string()[..20]);
        assert_eq!(ids.replace(&text), expected);
        let same = NewIds::new(vec![(one, one)]);
        assert!(matches!(same.replace(&text), Cow::Borrowed(_)));
    }
}
