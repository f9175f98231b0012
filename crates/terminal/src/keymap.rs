//! The keys of every action, and how a person changes them.
//!
//! The rest of the program knows an action by the first of its default keys. A keymap turns the key that was pressed into
//! that one, so that a changed key means the same everywhere.

mod actions;
mod name;

use std::collections::{BTreeMap, HashMap};

pub use self::actions::{ACTIONS, Action, Context};
pub use self::name::{label, name, parse};
use crate::key::Key;

/// Keys for an action, as written in the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    pub action: String,
    pub keys: Vec<String>,
    /// The place where it is written, for messages.
    pub at: String,
}

/// A binding that is not as it seems to be meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyProblem {
    #[error("{at}: there is no action `{action}`; /keys lists them")]
    UnknownAction { at: String, action: String },
    #[error("{at}: `{key}` is not the name of a key; examples are ctrl-x, alt-enter, pageup, f2")]
    UnknownKey { at: String, key: String },
    #[error("{at}: `{action}` cannot have the key {key}, because it types a character")]
    Typing { at: String, action: String, key: String },
    #[error("{at}: `{action}` cannot have the key {key}: it is too easily pressed for something else")]
    TooEasy { at: String, action: String, key: String },
    #[error("{at}: `{action}` needs a key")]
    NeedsKey { at: String, action: String },
    #[error("{at}: {key} is already the key of `{other}` ({other_at})")]
    Conflict { at: String, key: String, other: String, other_at: String },
    #[error("{at}: {key} was the only key of `{other}`, which has none now; give it another, or `[]`")]
    Taken { at: String, key: String, other: &'static str },
}

/// The keys of all actions.
#[derive(Debug, Clone)]
pub struct Keymap {
    /// The keys of each action, in the order of [`ACTIONS`].
    keys: Vec<Vec<Key>>,
    by_key: HashMap<(Context, Key), usize>,
    problems: Vec<KeyProblem>,
}

impl Default for Keymap {
    fn default() -> Self {
        Self::new(&[])
    }
}

impl Keymap {
    /// The default keys with the changes of a person. A binding that cannot be used is told, and the default stays.
    #[must_use]
    pub fn new(bindings: &[Binding]) -> Self {
        let keys = ACTIONS.iter().map(Action::default_keys).collect();
        let mut map = Self { keys, by_key: HashMap::new(), problems: Vec::new() };
        let mut chosen: BTreeMap<usize, &Binding> = BTreeMap::new();
        for binding in bindings {
            let Some(at) = ACTIONS.iter().position(|action| action.name == binding.action) else {
                let (at, action) = (binding.at.clone(), binding.action.clone());
                map.problems.push(KeyProblem::UnknownAction { at, action });
                continue;
            };
            if let Some(keys) = map.read(at, binding) {
                map.keys[at] = keys;
                chosen.insert(at, binding);
            }
        }
        map.settle(&chosen);
        map
    }

    /// The keys of a binding, if all of them can be used.
    fn read(&mut self, action: usize, binding: &Binding) -> Option<Vec<Key>> {
        let Action { context, is_needed, is_consent, .. } = ACTIONS[action];
        let (at, name) = (|| binding.at.clone(), || binding.action.clone());
        let mut keys = Vec::new();
        for key in &binding.keys {
            let problem = match parse(key) {
                None => KeyProblem::UnknownKey { at: at(), key: key.clone() },
                Some(Key::Char(c)) if context == Context::Chat && c != '\t' => {
                    KeyProblem::Typing { at: at(), action: name(), key: key.clone() }
                }
                Some(Key::Enter | Key::NewLine | Key::Char(' ' | '\t')) if is_consent => {
                    KeyProblem::TooEasy { at: at(), action: name(), key: key.clone() }
                }
                Some(parsed) => {
                    keys.push(parsed);
                    continue;
                }
            };
            self.problems.push(problem);
            return None;
        }
        if keys.is_empty() && is_needed {
            self.problems.push(KeyProblem::NeedsKey { at: at(), action: name() });
            return None;
        }
        Some(keys)
    }

    /// Gives each key to one action: those of a person first, in the order of the actions, then the defaults.
    fn settle(&mut self, chosen: &BTreeMap<usize, &Binding>) {
        for (at, binding) in chosen {
            let context = ACTIONS[*at].context;
            for key in std::mem::take(&mut self.keys[*at]) {
                match self.by_key.get(&(context, key.clone())) {
                    Some(other) if other != at => self.problems.push(KeyProblem::Conflict {
                        at: binding.at.clone(),
                        key: name(&key),
                        other: ACTIONS[*other].name.to_owned(),
                        other_at: chosen.get(other).map(|other| other.at.clone()).unwrap_or_default(),
                    }),
                    _ => {
                        self.by_key.insert((context, key.clone()), *at);
                        self.keys[*at].push(key);
                    }
                }
            }
        }
        for at in (0..ACTIONS.len()).filter(|at| !chosen.contains_key(at)) {
            let context = ACTIONS[at].context;
            let keys = std::mem::take(&mut self.keys[at]);
            let taken = keys.iter().find_map(|key| Some((key, *self.by_key.get(&(context, key.clone()))?)));
            let free: Vec<Key> =
                keys.iter().filter(|key| !self.by_key.contains_key(&(context, (*key).clone()))).cloned().collect();
            if let (Some((key, by)), true) = (taken, free.is_empty()) {
                let where_written = chosen.get(&by).map(|binding| binding.at.clone()).unwrap_or_default();
                let (key, other) = (name(key), ACTIONS[at].name);
                self.problems.push(KeyProblem::Taken { at: where_written, key, other });
            }
            self.by_key.extend(free.iter().map(|key| ((context, key.clone()), at)));
            self.keys[at] = free;
        }
    }

    /// The default key of the action that a key stands for; the key itself if it stands for none. `None` if it is a
    /// default key that was given up.
    #[must_use]
    pub fn translate(&self, context: Context, key: &Key) -> Option<Key> {
        let key = match key {
            // Terminals report the same key in several ways.
            Key::Ctrl('/' | '_') => &Key::Ctrl('7'),
            key => key,
        };
        if matches!(key, Key::Paste(_)) {
            return Some(key.clone());
        }
        if let Some(at) = self.by_key.get(&(context, key.clone())) {
            let canonical = ACTIONS[*at].canonical();
            return Some(canonical.unwrap_or_else(|| key.clone()));
        }
        let was_default = ACTIONS.iter().any(|action| action.context == context && action.default_keys().contains(key));
        (!was_default).then(|| key.clone())
    }

    /// Every action with its keys and its meaning.
    pub fn lines(&self) -> impl Iterator<Item = (&'static Action, String)> {
        ACTIONS
            .iter()
            .zip(&self.keys)
            .map(|(action, keys)| (action, keys.iter().map(name).collect::<Vec<_>>().join(", ")))
    }

    /// The first key of an action, for hints; empty if it has none.
    #[must_use]
    pub fn key_of(&self, action: &str) -> String {
        let at = ACTIONS.iter().position(|known| known.name == action);
        at.and_then(|at| self.keys[at].first()).map(label).unwrap_or_default()
    }

    #[must_use]
    pub fn problems(&self) -> &[KeyProblem] {
        &self.problems
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn bind(bindings: &[(&str, &[&str])]) -> Keymap {
        let binding = |(line, (action, keys)): (usize, &(&str, &[&str]))| Binding {
            action: (*action).to_owned(),
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            at: format!("config.toml:{}", line + 1),
        };
        Keymap::new(&bindings.iter().enumerate().map(binding).collect::<Vec<_>>())
    }

    fn problems(bindings: &[(&str, &[&str])]) -> Vec<String> {
        bind(bindings).problems().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_defaults_have_no_conflicts_and_every_key_a_name() {
        assert_eq!(Keymap::default().problems(), []);
        let (mut names, mut keys) = (HashSet::new(), HashSet::new());
        for action in ACTIONS {
            assert!(names.insert(action.name), "{} is there twice", action.name);
            for key in action.default_keys() {
                assert_eq!(parse(&name(&key)), Some(key.clone()), "{}", name(&key));
                assert!(keys.insert((action.context, key.clone())), "{}: {key:?}", action.name);
                assert_eq!(Keymap::default().translate(action.context, &key), action.canonical(), "{}", action.name);
            }
            assert!(!action.default_keys().is_empty(), "{}", action.name);
        }
    }

    #[test]
    fn a_changed_key_means_the_same_and_the_old_one_nothing() {
        let map = bind(&[("search", &["f2", "alt-/"]), ("fold", &[])]);
        assert_eq!(map.problems(), []);
        assert_eq!(map.translate(Context::Chat, &Key::F(2)), Some(Key::Ctrl('s')));
        assert_eq!(map.translate(Context::Chat, &Key::Alt('/')), Some(Key::Ctrl('s')));
        assert_eq!(map.translate(Context::Chat, &Key::Ctrl('s')), None);
        assert_eq!(map.translate(Context::Chat, &Key::Ctrl('o')), None);
        assert_eq!(map.translate(Context::Chat, &Key::Char('x')), Some(Key::Char('x')));
        assert_eq!(map.translate(Context::Page, &Key::F(2)), Some(Key::F(2)), "elsewhere it is what it was");
        assert_eq!(map.key_of("search"), "F2");
        assert_eq!(map.key_of("fold"), "", "it has none");
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        assert_eq!(
            problems(&[("serch", &["f2"]), ("search", &["hyper-x"]), ("fold", &["x"]), ("approve", &["enter"])]),
            [
                "config.toml:1: there is no action `serch`; /keys lists them",
                "config.toml:2: `hyper-x` is not the name of a key; examples are ctrl-x, alt-enter, pageup, f2",
                "config.toml:3: `fold` cannot have the key x, because it types a character",
                "config.toml:4: `approve` cannot have the key enter: it is too easily pressed for something else",
            ]
        );
        assert_eq!(problems(&[("interrupt", &[])]), ["config.toml:1: `interrupt` needs a key"]);
        assert_eq!(
            problems(&[("fold", &["f2"]), ("search", &["f2", "f3"])]),
            ["config.toml:1: f2 is already the key of `search` (config.toml:2)"]
        );
        assert_eq!(
            problems(&[("search", &["ctrl-o"])]),
            ["config.toml:1: ctrl-o was the only key of `fold`, which has none now; give it another, or `[]`"]
        );
        assert_eq!(problems(&[("search", &["ctrl-o"]), ("fold", &["f2"])]), [""; 0]);
        let map = bind(&[("search", &["hyper-x"])]);
        assert_eq!(map.translate(Context::Chat, &Key::Ctrl('s')), Some(Key::Ctrl('s')), "the default stays");
    }
}
