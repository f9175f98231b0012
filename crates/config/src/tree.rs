//! A tree of values in which every value and every table has an origin.
//!
//! Layers are whole trees. Merging one over another keeps the values of the higher and adds the rest of the lower:
//! tables merge key by key, everything else replaces.

use std::{collections::BTreeMap, fmt, path::Path, sync::Arc};

use crate::KeyPath;

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A line of a file.
    File {
        path: Arc<Path>,
        /// The line number, starting at 1.
        line: usize,
    },
    /// A `-c key=value` override. Only its key is kept, because the value may be a secret.
    Override(Arc<str>),
    /// Another argument of the command line, such as `--profile`.
    Flag(&'static str),
    /// The `config` object in a client's request.
    Request,
    /// A default.
    Default,
}

impl Origin {
    /// The location and the key as the start of an error; a key that is part of the location is not repeated.
    #[must_use]
    pub fn of(&self, key: &str) -> String {
        let named = match self {
            Self::Override(given) => **given == *key,
            Self::Flag(flag) => flag.strip_prefix("--") == Some(key),
            Self::File { .. } | Self::Request | Self::Default => false,
        };
        if named { self.to_string() } else { format!("{self}: {key}") }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Override(key) => write!(f, "-c {key}"),
            Self::Flag(flag) => f.write_str(flag),
            Self::Request => f.write_str("config in the request"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// The members of a table, ordered by name.
pub type Table = BTreeMap<String, Node>;

/// A value and its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub value: Value,
    /// Its origin; for a table, where it was last opened.
    pub origin: Origin,
}

/// A TOML value.
#[derive(Clone, PartialEq)]
pub enum Value {
    String(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    /// A date, a time or both, as written.
    Datetime(String),
    Array(Vec<Node>),
    /// A table in any notation: with a header, inline or with dotted keys.
    Table(Table),
}

impl Value {
    /// The type of the value, with its article.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::String(_) => "a string",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Boolean(_) => "a boolean",
            Self::Datetime(_) => "a date-time",
            Self::Array(_) => "an array",
            Self::Table(_) => "a table",
        }
    }

    /// The members of a table.
    pub(crate) fn as_table(&self) -> Option<&Table> {
        match self {
            Self::Table(table) => Some(table),
            _ => None,
        }
    }

    /// A description of the value for errors: its type and, if it is short, its text.
    #[must_use]
    pub fn describe(&self) -> String {
        const SHOWN: usize = 60;
        match self {
            Self::String(text) if text.chars().nth(SHOWN).is_some() => {
                format!("the string {:?}…", text.chars().take(SHOWN).collect::<String>())
            }
            Self::String(text) => format!("the string {text:?}"),
            Self::Integer(number) => format!("the integer {number}"),
            Self::Float(number) => format!("the float {number}"),
            Self::Boolean(flag) => format!("the boolean {flag}"),
            Self::Datetime(text) => format!("the date-time {text}"),
            Self::Array(_) | Self::Table(_) => self.kind().to_owned(),
        }
    }
}

impl fmt::Debug for Value {
    /// Shows only the shape: any string may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Array(nodes) => f.debug_list().entries(nodes).finish(),
            Self::Table(table) => f.debug_map().entries(table).finish(),
            _ => f.write_str(self.kind()),
        }
    }
}

/// One layer of configuration, or several merged into one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tree {
    root: Table,
}

impl Tree {
    /// An empty tree.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A tree with one value; the tables around it have the same origin.
    #[must_use]
    pub fn leaf(path: &KeyPath, node: Node) -> Self {
        let origin = node.origin.clone();
        let wrap = |inner: Node, name: &String| Node {
            value: Value::Table(Table::from([(name.clone(), inner)])),
            origin: origin.clone(),
        };
        match path.segments().iter().rev().fold(node, wrap).value {
            Value::Table(root) => Self { root },
            _ => Self::new(),
        }
    }

    /// The outermost table.
    #[must_use]
    pub fn root(&self) -> &Table {
        &self.root
    }

    /// The value at the end of a path.
    #[must_use]
    pub fn get<S: AsRef<str>>(&self, path: &[S]) -> Option<&Node> {
        let (last, tables) = path.split_last()?;
        let mut table = &self.root;
        for name in tables {
            match &table.get(name.as_ref())?.value {
                Value::Table(inner) => table = inner,
                _ => return None,
            }
        }
        table.get(last.as_ref())
    }

    /// A copy of the table at the end of a path as a tree; `None` if there is no table.
    #[must_use]
    pub fn subtree<S: AsRef<str>>(&self, path: &[S]) -> Option<Self> {
        match &self.get(path)?.value {
            Value::Table(table) => Some(Self { root: table.clone() }),
            _ => None,
        }
    }

    /// Removes a member of the outermost table.
    pub fn remove(&mut self, name: &str) -> Option<Node> {
        self.root.remove(name)
    }

    /// Merges another tree over this one: its tables are merged, everything else replaces.
    pub fn merge(&mut self, higher: Self) {
        merge_tables(&mut self.root, higher.root);
    }

    /// Every value that is not a table, with its path.
    #[must_use]
    pub fn leaves(&self) -> Vec<(KeyPath, &Node)> {
        let mut found = Vec::new();
        collect_leaves(&self.root, &KeyPath::default(), &mut found);
        found
    }
}

impl From<Table> for Tree {
    fn from(root: Table) -> Self {
        Self { root }
    }
}

fn merge_tables(lower: &mut Table, higher: Table) {
    for (name, node) in higher {
        match (lower.get_mut(&name), node) {
            (Some(Node { value: Value::Table(below), origin: old }), Node { value: Value::Table(above), origin }) => {
                merge_tables(below, above);
                *old = origin;
            }
            (_, node) => {
                lower.insert(name, node);
            }
        }
    }
}

fn collect_leaves<'a>(table: &'a Table, at: &KeyPath, found: &mut Vec<(KeyPath, &'a Node)>) {
    for (name, node) in table {
        let path = at.join(name);
        match &node.value {
            Value::Table(inner) => collect_leaves(inner, &path, found),
            _ => found.push((path, node)),
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    /// Merges overrides from left to right and prints each leaf with its origin.
    #[track_caller]
    fn check(layers: &[&str], expected: Expect) {
        let mut tree = Tree::new();
        for layer in layers {
            tree.merge(Tree::from_override(layer).unwrap());
        }
        let shown: Vec<_> = tree
            .leaves()
            .into_iter()
            .map(|(path, node)| format!("{path}: {} ({})\n", node.value.describe(), node.origin))
            .collect();
        expected.assert_eq(&shown.concat());
    }

    #[test]
    fn tables_merge_and_values_replace() {
        check(
            &["a={x=1,y=[1,2]}", "a.y=[3]", "a.z=4"],
            expect![[r#"
                a.x: the integer 1 (-c a)
                a.y: an array (-c a.y)
                a.z: the integer 4 (-c a.z)
            "#]],
        );
    }

    #[test]
    fn a_value_replaces_a_table_and_a_table_a_value() {
        check(
            &["a.x=1", "a=2"],
            expect![[r#"
                a: the integer 2 (-c a)
            "#]],
        );
        check(
            &["a.x=1", "a=2", "a.y=3"],
            expect![[r#"
                a.y: the integer 3 (-c a.y)
            "#]],
        );
    }

    #[test]
    fn lookups_end_where_the_tree_does() {
        let tree = Tree::from_override("a.b=1").unwrap();
        assert_eq!(tree.get(&["a", "b"]).map(|node| node.value.describe()), Some("the integer 1".to_owned()));
        assert_eq!(tree.get(&["a"]).map(|node| node.value.kind()), Some("a table"));
        assert_eq!(tree.get(&["a", "b", "c"]), None);
        assert_eq!(tree.get::<&str>(&[]), None);
        assert!(tree.subtree(&["a"]).is_some());
        assert!(tree.subtree(&["a", "b"]).is_none());
    }

    #[test]
    fn debug_output_hides_values() {
        let tree = Tree::from_override(r#"a.token=["sk-1"]"#).unwrap();
        expect![[r#"Tree { root: {"a": Node { value: {"token": Node { value: [Node { value: a string, origin: Override("a.token") }], origin: Override("a.token") }}, origin: Override("a.token") }} }"#]].assert_eq(&format!("{tree:?}"));
    }

    #[test]
    fn long_strings_are_cut_in_errors() {
        let text = Value::String("ü".repeat(61)).describe();
        assert_eq!(text, format!("the string \"{}\"…", "ü".repeat(60)));
    }

    /// Overrides in which the name tells whether it is a table (`t…`) or a value (`v…`).
    ///
    /// If a value is between two tables, merging from the right would lose that the value had cleared the lower table,
    /// so only layers that agree on this can be grouped freely.
    fn any_layer() -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec("(t[0-2]\\.){0,3}v[0-2]=[0-9]", 0..6)
    }

    fn layer(overrides: &[String]) -> Tree {
        overrides.iter().fold(Tree::new(), |lower, text| merged(lower, Tree::from_override(text).unwrap()))
    }

    fn merged(mut lower: Tree, higher: Tree) -> Tree {
        lower.merge(higher);
        lower
    }

    proptest! {
        #[test]
        fn merging_is_associative(a in any_layer(), b in any_layer(), c in any_layer()) {
            let [a, b, c] = [a, b, c].map(|texts| layer(&texts));
            let left = merged(merged(a.clone(), b.clone()), c.clone());
            prop_assert_eq!(left, merged(a, merged(b, c)));
        }

        #[test]
        fn merging_twice_changes_nothing(a in any_layer(), b in any_layer()) {
            let [a, b] = [a, b].map(|texts| layer(&texts));
            let once = merged(a, b.clone());
            prop_assert_eq!(merged(once.clone(), b), once);
        }

        #[test]
        fn an_override_of_a_leaf_always_wins(
            lower in prop::collection::vec("([ab]\\.){0,3}[ab]=[0-9]", 0..8),
            path in "([ab]\\.){0,3}[ab]",
        ) {
            let tree = merged(layer(&lower), Tree::from_override(&format!("{path}=\"won\"")).unwrap());
            let segments: Vec<_> = path.split('.').collect();
            prop_assert_eq!(tree.get(&segments).map(|node| &node.value), Some(&Value::String("won".to_owned())));
        }

        #[test]
        fn keys_that_a_layer_does_not_mention_stay(lower in any_layer(), higher in any_layer()) {
            let [lower, higher] = [lower, higher].map(|texts| layer(&texts));
            let both = merged(lower.clone(), higher.clone());
            for (path, node) in both.leaves() {
                let expected = higher.get(path.segments()).or_else(|| lower.get(path.segments()));
                prop_assert_eq!(Some(node), expected);
            }
        }
    }
}
