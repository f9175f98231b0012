//! Key paths such as `model_providers.mock.base_url`, parsed and printed.

use std::fmt;

use toml_edit::Key;

/// Deeper trees are rejected, so that walking one never overflows the stack.
pub(crate) const MAX_DEPTH: usize = 100;

/// The names from the root to a value.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyPath(Vec<String>);

/// The reason why a text is not a key path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("the key is empty")]
    Empty,
    #[error("a segment between the dots of the key is empty")]
    EmptySegment,
    /// A quote that does not start or end a whole segment.
    #[error("the quotes in the key are not closed, or not around a whole segment")]
    Quotes,
    #[error("the key has more than {MAX_DEPTH} segments")]
    TooDeep,
}

impl KeyPath {
    /// Parses a dotted path; a quoted segment may contain dots: `projects."/a/b.c".trust_level`.
    ///
    /// Segments without quotes may contain more than TOML's bare keys, because people leave the quotes out.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(KeyError::Empty);
        }
        let segments: Vec<String> = match Key::parse(text) {
            Ok(keys) if !keys.is_empty() => keys.iter().map(|key| key.get().to_owned()).collect(),
            _ if text.contains(['"', '\'']) => return Err(KeyError::Quotes),
            _ => text.split('.').map(|segment| segment.trim().to_owned()).collect(),
        };
        if segments.len() > MAX_DEPTH {
            return Err(KeyError::TooDeep);
        }
        if !text.contains(['"', '\'']) && segments.iter().any(String::is_empty) {
            return Err(KeyError::EmptySegment);
        }
        Ok(Self(segments))
    }

    /// The path of a value below this one.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        let mut segments = self.0.clone();
        segments.push(name.to_owned());
        Self(segments)
    }

    /// The names, outermost first.
    #[must_use]
    pub fn segments(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for KeyPath {
    /// Formats the path so that [`KeyPath::parse`] parses it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, segment) in self.0.iter().enumerate() {
            let dot = if index == 0 { "" } else { "." };
            write!(f, "{dot}{}", Key::new(segment).display_repr())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Expect) {
        let shown = match KeyPath::parse(text) {
            Ok(path) => format!("{:?} {path}", path.segments()),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn paths_split_at_dots_outside_quotes() {
        check("model", expect![[r#"["model"] model"#]]);
        check(" a . b ", expect![[r#"["a", "b"] a.b"#]]);
        check(
            r#"projects."/a/b.c".trust_level"#,
            expect![[r#"["projects", "/a/b.c", "trust_level"] projects."/a/b.c".trust_level"#]],
        );
        check("a.'b.c'", expect![[r#"["a", "b.c"] a."b.c""#]]);
        check(r#"a.""#, expect!["the quotes in the key are not closed, or not around a whole segment"]);
        check(r#"a."".b"#, expect![[r#"["a", "", "b"] a."".b"#]]);
    }

    #[test]
    fn segments_without_quotes_may_hold_anything_but_dots() {
        check(
            "projects./a/b.trust_level",
            expect![[r#"["projects", "/a/b", "trust_level"] projects."/a/b".trust_level"#]],
        );
        check(
            "mcp_servers.my server.command",
            expect![[r#"["mcp_servers", "my server", "command"] mcp_servers."my server".command"#]],
        );
        check("größe", expect![[r#"["größe"] "größe""#]]);
    }

    #[test]
    fn broken_paths_are_refused() {
        check("", expect!["the key is empty"]);
        check("  ", expect!["the key is empty"]);
        check(".", expect!["a segment between the dots of the key is empty"]);
        check("a..b", expect!["a segment between the dots of the key is empty"]);
        check("a.", expect!["a segment between the dots of the key is empty"]);
        check(r#"a."b"#, expect!["the quotes in the key are not closed, or not around a whole segment"]);
        check(r#"a."b"c"#, expect!["the quotes in the key are not closed, or not around a whole segment"]);
        check(&"a.".repeat(100_000), expect!["the key has more than 100 segments"]);
        check(&"/.".repeat(100_000), expect!["the key has more than 100 segments"]);
    }

    proptest! {
        #[test]
        fn displayed_values_parse_back(segments in prop::collection::vec(".{0,6}", 1..5)) {
            let path = KeyPath(segments);
            prop_assert_eq!(KeyPath::parse(&path.to_string()), Ok(path));
        }

        #[test]
        fn any_text_is_a_path_or_an_error(text in ".*") {
            if let Ok(path) = KeyPath::parse(&text) {
                prop_assert!(!path.segments().is_empty());
            }
        }
    }
}
