//! The verdict on each written key: the warnings at startup, `--strict-config`, and the list of `doctor`.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::{
    KeyPath, Node, Origin, Table, Tree, Value,
    known::{Fit, KEYS, Known, Project, Use, is_one_of, nearest},
};

/// A warning about the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigWarning {
    pub path: Option<PathBuf>,
    /// The line number, starting at 1.
    pub line: Option<usize>,
    /// The location as text: a place in a file, or an argument.
    pub place: String,
    pub message: String,
    /// Whether it is a mistake, so that `--strict-config` rejects it.
    pub is_mistake: bool,
}

impl ConfigWarning {
    /// A warning about a file as a whole.
    pub(crate) fn of_file(path: &Path, message: String, is_mistake: bool) -> Self {
        Self { path: Some(path.to_owned()), line: None, place: path.display().to_string(), message, is_mistake }
    }
}

impl fmt::Display for ConfigWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// A written key, and its verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditedKey {
    /// The dotted path; for a table that is ignored as a whole, that of the table.
    pub key: String,
    pub origin: Origin,
    pub verdict: Verdict,
}

/// The effect of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It has an effect.
    Honoured,
    /// Its number is too high; this one counts.
    Lowered(i64),
    /// It is not used, which makes no difference, and why.
    Moot(&'static str),
    /// It has no effect, and why.
    Unused {
        why: &'static str,
        /// The key that may have been meant.
        nearest: Option<String>,
    },
    /// No release knows it.
    Unknown {
        /// The key that may have been meant.
        nearest: Option<String>,
    },
    /// A project may not set it, or not to this value.
    Refused,
}

impl AuditedKey {
    /// The warning about it, if any.
    #[must_use]
    pub fn warning(&self) -> Option<ConfigWarning> {
        let key = &self.key;
        let meant = |nearest: &Option<String>| match nearest {
            Some(nearest) => format!("; did you mean `{nearest}`?"),
            None => String::new(),
        };
        let message = match &self.verdict {
            Verdict::Honoured | Verdict::Moot(_) => return None,
            Verdict::Lowered(most) => format!("`{key}` is at most {most}; a higher number counts as {most}"),
            Verdict::Unused { why, nearest } => format!("`{key}` has no effect: {why}{}", meant(nearest)),
            Verdict::Unknown { nearest } => format!("unknown key `{key}`{}", meant(nearest)),
            Verdict::Refused => format!("`{key}` is ignored: a project cannot set it"),
        };
        let is_mistake = !matches!(self.verdict, Verdict::Lowered(_));
        let (path, line) = match &self.origin {
            Origin::File { path, line } => (Some(path.to_path_buf()), Some(*line)),
            Origin::Override(_) | Origin::Flag(_) | Origin::Request | Origin::Default => (None, None),
        };
        Some(ConfigWarning { path, line, place: self.origin.to_string(), message, is_mistake })
    }
}

/// Judges every key of a layer, of which not everything may be allowed.
pub(crate) fn audit(layer: &Tree, allowed: Option<&Tree>) -> Vec<AuditedKey> {
    let mut audit = Audit { allowed, is_profile: false, base: KeyPath::default(), found: Vec::new() };
    for (name, node) in layer.root() {
        match (name.as_str(), node.value.as_table()) {
            ("profiles", Some(profiles)) if allowed.is_none() => audit.profiles(profiles),
            _ => audit.member(&mut Vec::new(), name, node),
        }
    }
    audit.found
}

/// The allowed part of a project's layer over those of the user.
pub(crate) fn allowed(layer: &Tree, user: &Tree) -> Tree {
    Tree::from(allowed_members(layer.root(), user, &mut Vec::new()))
}

fn allowed_members<'a>(table: &'a Table, user: &Tree, at: &mut Vec<&'a str>) -> Table {
    let mut members = Table::new();
    for (name, node) in table {
        at.push(name);
        match (find(at, node), &node.value) {
            (Found::This(known), value) if may_set(known, value, user.get(at)) => {
                members.insert(name.clone(), node.clone());
            }
            (Found::Below, Value::Table(inner)) => {
                let inner = allowed_members(inner, user, at);
                // An empty table could still be an entry of a list, such as a provider.
                if !inner.is_empty() {
                    let node = Node { value: Value::Table(inner), origin: node.origin.clone() };
                    members.insert(name.clone(), node);
                }
            }
            _ => {}
        }
        at.pop();
    }
    members
}

fn may_set(known: &Known, value: &Value, users: Option<&Node>) -> bool {
    match known.project {
        Project::May => known.usage == Use::Honoured,
        Project::MayOnly(values) => is_one_of(value, values),
        Project::MayLower => users.is_none_or(|users| is_lower(value, &users.value)),
        Project::MayNot => false,
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers that are so large are no limits")]
fn is_lower(value: &Value, than: &Value) -> bool {
    let number = |value: &Value| match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    };
    number(value).zip(number(than)).is_some_and(|(value, than)| value <= than)
}

/// The result of looking up a key.
enum Found {
    This(&'static Known),
    Below,
    Nothing,
}

fn find<S: AsRef<str>>(path: &[S], node: &Node) -> Found {
    let is_table = node.value.as_table().is_some();
    let mut is_above = false;
    for known in KEYS {
        match known.fit(path, is_table) {
            // The reader of a scalar reports a table in its place. Rows about the members of a table go before one about
            // all tables like it.
            Fit::This if is_table && (is_above || !known.pattern.ends_with("**")) => {}
            Fit::This => return Found::This(known),
            Fit::Below => is_above = true,
            Fit::Other => {}
        }
    }
    if is_above && is_table { Found::Below } else { Found::Nothing }
}

struct Audit<'t> {
    /// The allowed part of the layer, if not everything is allowed.
    allowed: Option<&'t Tree>,
    is_profile: bool,
    /// The current profile.
    base: KeyPath,
    found: Vec<AuditedKey>,
}

impl Audit<'_> {
    /// A profile contains the same keys as the file itself.
    fn profiles(&mut self, profiles: &Table) {
        for (name, node) in profiles {
            self.base = KeyPath::default().join("profiles").join(name);
            self.is_profile = true;
            match node.value.as_table() {
                Some(members) => {
                    for (name, node) in members {
                        self.member(&mut Vec::new(), name, node);
                    }
                }
                None => self.judged(&[], node, Verdict::Unknown { nearest: None }),
            }
        }
        self.base = KeyPath::default();
        self.is_profile = false;
    }

    fn member<'a>(&mut self, at: &mut Vec<&'a str>, name: &'a str, node: &'a Node) {
        at.push(name);
        match (find(at, node), &node.value) {
            (_, _) if self.is_profile && at.len() == 1 && matches!(name, "profile" | "profiles") => {
                let why = "a profile cannot select another";
                self.judged(at, node, Verdict::Unused { why, nearest: None });
            }
            (Found::This(known), value) => {
                let verdict = self.verdict(known, at, value);
                self.judged(at, node, verdict);
            }
            (Found::Below, Value::Table(inner)) => {
                for (name, node) in inner {
                    self.member(at, name, node);
                }
            }
            _ => {
                let nearest = nearest(at);
                self.judged(at, node, Verdict::Unknown { nearest });
            }
        }
        at.pop();
    }

    fn verdict(&self, known: &Known, at: &[&str], value: &Value) -> Verdict {
        match known.usage {
            Use::Only(values, why) if !is_one_of(value, values) => {
                let is_feature = known.pattern == "features.*";
                Verdict::Unused { why, nearest: if is_feature { nearest(at) } else { None } }
            }
            Use::Moot(why) => Verdict::Moot(why),
            Use::Honoured | Use::AtMost(_) | Use::Only(..)
                if self.allowed.is_some_and(|allowed| allowed.get(at).is_none()) =>
            {
                Verdict::Refused
            }
            Use::AtMost(most) if matches!(value, Value::Integer(number) if *number > most) => Verdict::Lowered(most),
            Use::Honoured | Use::AtMost(_) | Use::Only(..) => Verdict::Honoured,
        }
    }

    fn judged(&mut self, at: &[&str], node: &Node, verdict: Verdict) {
        let key = at.iter().fold(self.base.clone(), |path, name| path.join(name)).to_string();
        self.found.push(AuditedKey { key, origin: node.origin.clone(), verdict });
    }
}

#[cfg(test)]
mod tests;
