//! Typed reads from a tree. A value of the wrong type is an error that says where it was written.
//!
//! Keys that nobody reads are ignored here, so one `config.toml` serves programs of different ages; the audit reports
//! them to the user.

use std::{
    collections::BTreeMap,
    fmt,
    ops::{Bound, RangeBounds},
    path::{Path, PathBuf},
    str::FromStr,
};

use crate::{KeyPath, Node, Origin, Secret, Table, Tree, Value};

/// A value that does not match its key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}", .origin.of(.key))]
pub struct ValueError {
    pub origin: Origin,
    /// The full dotted key.
    pub key: String,
    /// The expected and the found value.
    pub problem: String,
    hint: Option<&'static str>,
}

impl ValueError {
    /// An error about a value, or about a missing one.
    pub(crate) fn new(origin: Origin, key: String, problem: String) -> Self {
        Self { origin, key, problem, hint: None }
    }

    /// A hint, shown on its own line.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        self.hint.map(str::to_owned)
    }
}

/// One table of a tree, or the place where it could be.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    table: Option<&'a Table>,
    at: KeyPath,
    user_dir: Option<&'a Path>,
    /// Every key that was requested.
    #[cfg(test)]
    pub(crate) asked: std::rc::Rc<std::cell::RefCell<std::collections::BTreeSet<KeyPath>>>,
}

impl<'a> Reader<'a> {
    /// Reads from the root of a tree; `user_dir` replaces `~` in paths.
    #[must_use]
    pub fn new(tree: &'a Tree, user_dir: Option<&'a Path>) -> Self {
        Self {
            table: Some(tree.root()),
            at: KeyPath::default(),
            user_dir,
            #[cfg(test)]
            asked: std::rc::Rc::default(),
        }
    }

    /// The value of a key as written.
    #[must_use]
    pub fn node(&self, key: &str) -> Option<&'a Node> {
        #[cfg(test)]
        self.asked.borrow_mut().insert(self.at.join(key));
        self.table?.get(key)
    }

    /// The full dotted name of a key in this table.
    #[must_use]
    pub fn path_of(&self, key: &str) -> KeyPath {
        self.at.join(key)
    }

    /// The table itself; `None` if there is none.
    #[must_use]
    pub fn table(&self) -> Option<&'a Table> {
        self.table
    }

    /// The names in this table.
    pub fn keys(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.table.into_iter().flat_map(|table| table.keys().map(String::as_str))
    }

    /// The table below a key; a missing one reads as empty.
    pub fn section(&self, key: &str) -> Result<Self, ValueError> {
        let table = self.typed(key, "a table", |value| match value {
            Value::Table(table) => Some(table),
            _ => None,
        })?;
        Ok(Self { table, at: self.at.join(key), ..self.clone() })
    }

    pub fn str(&self, key: &str) -> Result<Option<String>, ValueError> {
        self.typed(key, "a string", as_string)
    }

    /// A string that errors must not show.
    pub fn secret(&self, key: &str) -> Result<Option<Secret>, ValueError> {
        let Some(node) = self.node(key) else { return Ok(None) };
        match as_string(&node.value) {
            Some(text) => Ok(Some(Secret::new(text))),
            None => Err(self.error(key, node, format!("expected a string, found {}", node.value.kind()))),
        }
    }

    pub fn bool(&self, key: &str) -> Result<Option<bool>, ValueError> {
        self.typed(key, "a boolean", |value| match value {
            Value::Boolean(flag) => Some(*flag),
            _ => None,
        })
    }

    /// An integer within a range.
    pub fn integer<T: TryFrom<i64>>(&self, key: &str, range: impl RangeBounds<i64>) -> Result<Option<T>, ValueError> {
        let number = self.typed(key, "an integer", |value| match value {
            Value::Integer(number) => Some(*number),
            _ => None,
        })?;
        let Some(number) = number else { return Ok(None) };
        let within = Some(number).filter(|number| range.contains(number)).and_then(|number| T::try_from(number).ok());
        match (within, self.node(key)) {
            (None, Some(node)) => Err(self.mismatch(key, node, &format!("an integer{}", limits(&range)))),
            (within, _) => Ok(within),
        }
    }

    /// A non-negative number, with or without a fraction.
    pub fn amount(&self, key: &str) -> Result<Option<f64>, ValueError> {
        self.typed(key, "a number of at least 0", |value| {
            #[expect(clippy::cast_precision_loss, reason = "an amount that large is no more exact with a fraction")]
            let amount = match value {
                Value::Integer(number) => *number as f64,
                Value::Float(number) => *number,
                _ => return None,
            };
            Some(amount).filter(|amount| amount.is_finite() && *amount >= 0.0)
        })
    }

    /// A number of bytes of at least `least`: an integer, or a string with a unit such as `"4GiB"`.
    pub fn bytes(&self, key: &str, least: u64) -> Result<Option<u64>, ValueError> {
        let expected = format!("a number of bytes such as \"4GiB\", of at least {}MiB", least >> 20);
        self.typed(key, &expected, |value| {
            let bytes = match value {
                Value::Integer(number) => u64::try_from(*number).ok(),
                Value::String(text) => bytes_in(text),
                _ => None,
            };
            bytes.filter(|bytes| *bytes >= least)
        })
    }

    /// One of the words of a type.
    pub fn word<T: FromStr<Err: fmt::Display>>(&self, key: &str) -> Result<Option<T>, ValueError> {
        let (Some(text), Some(node)) = (self.str(key)?, self.node(key)) else { return Ok(None) };
        text.parse().map(Some).map_err(|problem: T::Err| self.error(key, node, problem.to_string()))
    }

    /// A path. `~` is the user's home; a relative path in a file is relative to the file's folder, and one from
    /// elsewhere stays relative.
    pub fn path(&self, key: &str) -> Result<Option<PathBuf>, ValueError> {
        let Some(node) = self.node(key) else { return Ok(None) };
        Ok(self.str(key)?.map(|text| self.resolve(&text, &node.origin)))
    }

    pub fn strings(&self, key: &str) -> Result<Option<Vec<String>>, ValueError> {
        self.list(key, |text, _| text)
    }

    /// A list of paths, each as [`Reader::path`] reads it.
    pub fn paths(&self, key: &str) -> Result<Option<Vec<PathBuf>>, ValueError> {
        self.list(key, |text, origin| self.resolve(&text, origin))
    }

    /// A table whose members are all read in the same way; a missing one reads as empty.
    pub fn map<T>(
        &self,
        key: &str,
        read: impl Fn(&Self, &str) -> Result<Option<T>, ValueError>,
    ) -> Result<BTreeMap<String, T>, ValueError> {
        let section = self.section(key)?;
        let member = |name: &str| Some(read(&section, name).transpose()?.map(|value| (name.to_owned(), value)));
        section.keys().filter_map(member).collect()
    }

    pub fn string_map(&self, key: &str) -> Result<BTreeMap<String, String>, ValueError> {
        self.map(key, Self::str)
    }

    /// A table of strings that errors must not show.
    pub fn secret_map(&self, key: &str) -> Result<BTreeMap<String, Secret>, ValueError> {
        if let Some(node) = self.node(key).filter(|node| !matches!(node.value, Value::Table(_))) {
            return Err(self.error(key, node, format!("expected a table, found {}", node.value.kind())));
        }
        self.map(key, Self::secret)
    }

    /// An error about the value of a key in this table.
    #[must_use]
    pub fn error(&self, key: &str, node: &Node, problem: String) -> ValueError {
        ValueError::new(node.origin.clone(), self.at.join(key).to_string(), problem)
    }

    fn typed<T>(
        &self,
        key: &str,
        expected: &str,
        convert: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, ValueError> {
        let Some(node) = self.node(key) else { return Ok(None) };
        convert(&node.value).map(Some).ok_or_else(|| self.mismatch(key, node, expected))
    }

    fn mismatch(&self, key: &str, node: &Node, expected: &str) -> ValueError {
        let error = self.error(key, node, format!("expected {expected}, found {}", node.value.describe()));
        let typed_bare = matches!(node.origin, Origin::Override(_)) && expected == "a string";
        ValueError {
            hint: typed_bare.then_some("put the value into quotes to pass it as a string: -c 'key=\"…\"'"),
            ..error
        }
    }

    fn list<T>(&self, key: &str, convert: impl Fn(String, &Origin) -> T) -> Result<Option<Vec<T>>, ValueError> {
        let nodes = self.typed(key, "an array of strings", |value| match value {
            Value::Array(nodes) => Some(nodes),
            _ => None,
        })?;
        let Some(nodes) = nodes else { return Ok(None) };
        let wrong = |index: usize, node: &Node| {
            let error = self.mismatch(key, node, "a string");
            ValueError { key: format!("{}[{index}]", error.key), ..error }
        };
        let item = |(index, node): (usize, &Node)| {
            let text = as_string(&node.value).ok_or_else(|| wrong(index, node))?;
            Ok(convert(text, &node.origin))
        };
        nodes.iter().enumerate().map(item).collect::<Result<_, _>>().map(Some)
    }

    fn resolve(&self, text: &str, origin: &Origin) -> PathBuf {
        let path = Path::new(text);
        if let (Ok(rest), Some(user)) = (path.strip_prefix("~"), self.user_dir) {
            return if rest.as_os_str().is_empty() { user.to_owned() } else { user.join(rest) };
        }
        match origin {
            Origin::File { path: file, .. } => file.parent().unwrap_or(Path::new("")).join(path),
            Origin::Override(_) | Origin::Flag(_) | Origin::Request | Origin::Default => path.to_owned(),
        }
    }
}

/// Parses a number with a unit.
fn bytes_in(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let shift = match unit.trim_start() {
        "" | "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        "TiB" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn as_string(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        _ => None,
    }
}

/// The range as text, to follow "an integer".
fn limits(range: &impl RangeBounds<i64>) -> String {
    let low = match range.start_bound() {
        Bound::Included(low) => Some(*low),
        Bound::Excluded(low) => Some(low.saturating_add(1)),
        Bound::Unbounded => None,
    };
    let high = match range.end_bound() {
        Bound::Included(high) => Some(*high),
        Bound::Excluded(high) => Some(high.saturating_sub(1)),
        Bound::Unbounded => None,
    };
    match (low, high) {
        (Some(low), Some(high)) => format!(" from {low} to {high}"),
        (Some(low), None) => format!(" of at least {low}"),
        (None, Some(high)) => format!(" of at most {high}"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use codex_wire::policy::AskForApproval;
    use expect_test::{Expect, expect};

    use super::*;

    const FILE: &str = r#"
        text = "x"
        number = 3
        large = 300
        switch = true
        word = "never"
        list = ["a", "b"]
        mixed = [
            "a",
            4,
        ]
        files = ["a", "/b", "~/c", "~", "~d"]
        [table]
        a = "1"
        "b.c" = 2
    "#;

    /// Reads from [`FILE`] with `-c over=5` and `-c over_path=p` over it and prints the result.
    #[track_caller]
    fn check<T: fmt::Debug>(read: impl FnOnce(&Reader<'_>) -> Result<T, ValueError>, expected: Expect) {
        let mut tree = Tree::parse(Path::new("/h/c.toml"), FILE).unwrap();
        tree.merge(Tree::from_override("over=5").unwrap());
        tree.merge(Tree::from_override("over_path=p").unwrap());
        let shown = match read(&Reader::new(&tree, Some(Path::new("/u")))) {
            Ok(value) => format!("{value:?}"),
            Err(error) => {
                let hint = error.hint().map(|hint| format!("\nhint: {hint}"));
                format!("{error}{}", hint.unwrap_or_default())
            }
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn values_of_the_right_kind_are_read() {
        check(|r| r.str("text"), expect![[r#"Some("x")"#]]);
        check(|r| r.bool("switch"), expect!["Some(true)"]);
        check(|r| r.integer::<u8>("number", 0..), expect!["Some(3)"]);
        check(|r| r.strings("list"), expect![[r#"Some(["a", "b"])"#]]);
        check(|r| r.word::<AskForApproval>("word"), expect!["Some(Never)"]);
        check(|r| r.secret("text"), expect!["Some(***)"]);
    }

    #[test]
    fn absent_keys_are_none_or_empty() {
        check(|r| r.str("none"), expect!["None"]);
        check(|r| r.word::<AskForApproval>("none"), expect!["None"]);
        check(|r| r.strings("none"), expect!["None"]);
        check(|r| r.string_map("none"), expect!["{}"]);
        check(|r| r.section("none")?.section("below")?.bool("x"), expect!["None"]);
    }

    #[test]
    fn a_wrong_type_is_an_error_with_its_location() {
        check(|r| r.str("number"), expect!["/h/c.toml:3: number: expected a string, found the integer 3"]);
        check(
            |r| r.str("over"),
            expect![[r#"
                -c over: expected a string, found the integer 5
                hint: put the value into quotes to pass it as a string: -c 'key="…"'"#]],
        );
        check(|r| r.bool("text"), expect![[r#"/h/c.toml:2: text: expected a boolean, found the string "x""#]]);
        check(
            |r| r.integer::<u8>("text", ..),
            expect![[r#"/h/c.toml:2: text: expected an integer, found the string "x""#]],
        );
        check(
            |r| r.strings("text"),
            expect![[r#"/h/c.toml:2: text: expected an array of strings, found the string "x""#]],
        );
        check(|r| r.strings("mixed"), expect!["/h/c.toml:10: mixed[1]: expected a string, found the integer 4"]);
        check(
            |r| r.string_map("table"),
            expect![[r#"/h/c.toml:15: table."b.c": expected a string, found the integer 2"#]],
        );
        check(|r| r.string_map("list"), expect!["/h/c.toml:7: list: expected a table, found an array"]);
        check(
            |r| r.section("text").map(|_| ()),
            expect![[r#"/h/c.toml:2: text: expected a table, found the string "x""#]],
        );
        check(
            |r| r.word::<AskForApproval>("text"),
            expect!["/h/c.toml:2: text: unknown value `x`, expected one of untrusted, on-failure, on-request, never"],
        );
    }

    #[test]
    fn integers_stay_within_their_range_and_type() {
        check(
            |r| r.integer::<u8>("number", 4..),
            expect!["/h/c.toml:3: number: expected an integer of at least 4, found the integer 3"],
        );
        check(
            |r| r.integer::<u8>("number", 0..=2),
            expect!["/h/c.toml:3: number: expected an integer from 0 to 2, found the integer 3"],
        );
        check(
            |r| r.integer::<u8>("number", 0..3),
            expect!["/h/c.toml:3: number: expected an integer from 0 to 2, found the integer 3"],
        );
        check(
            |r| r.integer::<u8>("number", ..=2),
            expect!["/h/c.toml:3: number: expected an integer of at most 2, found the integer 3"],
        );
        check(
            |r| r.integer::<u8>("large", 0..=255),
            expect!["/h/c.toml:4: large: expected an integer from 0 to 255, found the integer 300"],
        );
    }

    #[test]
    fn secrets_are_not_shown() {
        check(|r| r.secret("number"), expect!["/h/c.toml:3: number: expected a string, found an integer"]);
        check(
            |r| r.secret_map("table"),
            expect![[r#"/h/c.toml:15: table."b.c": expected a string, found an integer"#]],
        );
        check(|r| r.secret_map("text"), expect!["/h/c.toml:2: text: expected a table, found a string"]);
    }

    #[test]
    fn paths_start_from_the_folder_of_their_file() {
        check(|r| r.path("text"), expect![[r#"Some("/h/x")"#]]);
        check(|r| r.paths("files"), expect![[r#"Some(["/h/a", "/b", "/u/c", "/u", "/h/~d"])"#]]);
        check(|r| r.path("over_path"), expect![[r#"Some("p")"#]]);
        check(|r| r.path("number"), expect!["/h/c.toml:3: number: expected a string, found the integer 3"]);
    }
}
