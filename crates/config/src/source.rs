//! Parses layers: a TOML file, a `-c` override, the `config` object of a request.

use std::{
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Map, Value as Json};
use toml_edit::{Document, Item, TableLike, TomlError, Value as Toml};

use crate::{KeyError, KeyPath, Node, Origin, Table, Tree, Value, key::MAX_DEPTH, position::Lines};

/// The reason why a layer could not be parsed.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// The file is not TOML.
    #[error("{}:{line}:{column}: {message}", .path.display())]
    Syntax {
        path: PathBuf,
        /// The line number, starting at 1.
        line: usize,
        /// The column in characters, starting at 1.
        column: usize,
        message: String,
    },
    #[error("-c {text}: expected KEY=VALUE, found no `=`")]
    NoEquals { text: String },
    #[error("-c {key}=…: bad key")]
    OverrideKey {
        /// The text before the `=`.
        key: String,
        source: KeyError,
    },
    /// A member of a request whose name is not a key.
    #[error("config in the request: bad key {key:?}")]
    RequestKey { key: String, source: KeyError },
    /// The nesting is too deep.
    #[error("{origin}: nested more than {MAX_DEPTH} levels deep")]
    TooDeep { origin: Origin },
}

impl LayerError {
    /// A hint, shown on its own line.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoEquals { .. } => Some("write the key, `=` and the value, as in -c model=gpt-5".to_owned()),
            Self::OverrideKey { .. } | Self::RequestKey { .. } => Some(
                "separate segments with dots, and quote one that contains a dot: projects.\"/a.b\".trust_level".into(),
            ),
            Self::Syntax { .. } | Self::TooDeep { .. } => None,
        }
    }
}

impl Tree {
    /// Parses the text of a TOML file from `path`.
    pub fn parse(path: &Path, text: &str) -> Result<Self, LayerError> {
        let lines = Lines::new(text);
        let document = Document::parse(text).map_err(|error| syntax_error(path, text, &lines, &error))?;
        let place = Place::File { path: path.into(), lines };
        Ok(Self::from(place.table(document.as_table(), 0)?))
    }

    /// Parses an override `a.b.c=VALUE`. A value that is not TOML is taken as a string.
    pub fn from_override(text: &str) -> Result<Self, LayerError> {
        let equals = find_equals(text).ok_or_else(|| LayerError::NoEquals { text: text.to_owned() })?;
        let (key, value) = (&text[..equals], text[equals + 1..].trim());
        let path =
            KeyPath::parse(key).map_err(|source| LayerError::OverrideKey { key: key.trim().to_owned(), source })?;
        let origin = Origin::Override(path.to_string().into());
        let value = match value.parse::<Toml>() {
            Ok(value) => Place::Elsewhere(origin.clone()).value(&value, path.segments().len())?,
            Err(_) => Value::String(value.to_owned()),
        };
        Ok(Self::leaf(&path, Node { value, origin }))
    }

    /// Parses the `config` object of a request. Its own members may have dotted names; `null` is ignored.
    pub fn from_request(config: &Map<String, Json>) -> Result<Self, LayerError> {
        let mut tree = Self::new();
        for (key, json) in config {
            let path = KeyPath::parse(key).map_err(|source| LayerError::RequestKey { key: key.clone(), source })?;
            if let Some(value) = json_value(json, path.segments().len())? {
                tree.merge(Self::leaf(&path, Node { value, origin: Origin::Request }));
            }
        }
        Ok(tree)
    }
}

/// The parser's message without its excerpt: the line may contain a secret.
fn syntax_error(path: &Path, text: &str, lines: &Lines<'_>, error: &TomlError) -> LayerError {
    let at = error.span().map_or(0, |span| span.start);
    let (line, column) = lines.line_column(at);
    let named = error.message().starts_with("duplicate key").then(|| duplicate(text, lines, at)).flatten();
    let message = named.unwrap_or_else(|| error.message().to_owned());
    LayerError::Syntax { path: path.to_owned(), line, column, message }
}

/// The key that is set again here, and the line that has set it first.
fn duplicate(text: &str, lines: &Lines<'_>, at: usize) -> Option<String> {
    let start = text.get(..at)?.rfind('\n').map_or(0, |at| at + 1);
    let (before, line) = (text.get(..start)?, text.get(start..)?.lines().next()?);
    let (name, path) = if let Some(path) = header(line) {
        (path.join("."), path)
    } else {
        let own = names(line.split('=').next()?)?;
        let table = before.lines().rev().find_map(header).unwrap_or_default();
        (own.join("."), [table, own].concat())
    };
    let document = Document::parse(before).ok();
    let first = document.and_then(|document| place(document.as_table(), &path));
    let first = first.map(|at| format!(" (first set on line {})", lines.line(at)));
    Some(format!("duplicate key `{name}`{}", first.unwrap_or_default()))
}

/// The names in the header of a table.
fn header(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('[')?;
    names(inner.strip_prefix('[').unwrap_or(inner).split(']').next()?)
}

fn names(text: &str) -> Option<Vec<String>> {
    let keys = toml_edit::Key::parse(text.trim()).ok()?;
    Some(keys.iter().map(|key| key.get().to_owned()).collect())
}

/// The position of the key at the end of a path.
fn place(table: &dyn TableLike, path: &[String]) -> Option<usize> {
    let (name, below) = path.split_first()?;
    if below.is_empty() {
        return table.key(name)?.span().map(|span| span.start);
    }
    place(table.get(name)?.as_table_like()?, below)
}

/// Finds the `=` that ends the key: the first one outside quotes, else the first.
fn find_equals(text: &str) -> Option<usize> {
    let mut open = None;
    let mut escaped = false;
    for (at, found) in text.char_indices() {
        match (open, found) {
            _ if escaped => escaped = false,
            (None, '=') => return Some(at),
            (None, '"' | '\'') => open = Some(found),
            (Some('"'), '\\') => escaped = true,
            (Some(quote), _) if quote == found => open = None,
            _ => {}
        }
    }
    text.find('=')
}

/// The source of the TOML, which gives each of its values an origin.
enum Place<'a> {
    File { path: Arc<Path>, lines: Lines<'a> },
    Elsewhere(Origin),
}

impl Place<'_> {
    fn origin(&self, span: Option<Range<usize>>) -> Origin {
        match self {
            Self::File { path, lines } => {
                Origin::File { path: path.clone(), line: lines.line(span.map_or(0, |span| span.start)) }
            }
            Self::Elsewhere(origin) => origin.clone(),
        }
    }

    fn table(&self, table: &dyn TableLike, depth: usize) -> Result<Table, LayerError> {
        let mut members = Table::new();
        for (name, item) in table.iter() {
            let key = table.key(name).and_then(toml_edit::Key::span);
            let origin = self.origin(key.or_else(|| item.span()));
            if depth >= MAX_DEPTH {
                return Err(LayerError::TooDeep { origin });
            }
            let value = match item {
                Item::None => continue,
                Item::Value(value) => self.value(value, depth + 1)?,
                Item::Table(inner) => Value::Table(self.table(inner, depth + 1)?),
                Item::ArrayOfTables(tables) => {
                    let node = |table: &toml_edit::Table| {
                        let value = Value::Table(self.table(table, depth + 2)?);
                        Ok(Node { value, origin: self.origin(table.span()) })
                    };
                    Value::Array(tables.iter().map(node).collect::<Result<_, LayerError>>()?)
                }
            };
            members.insert(name.to_owned(), Node { value, origin });
        }
        Ok(members)
    }

    fn value(&self, value: &Toml, depth: usize) -> Result<Value, LayerError> {
        Ok(match value {
            Toml::String(text) => Value::String(text.value().clone()),
            Toml::Integer(number) => Value::Integer(*number.value()),
            Toml::Float(number) => Value::Float(*number.value()),
            Toml::Boolean(flag) => Value::Boolean(*flag.value()),
            Toml::Datetime(time) => Value::Datetime(time.value().to_string()),
            Toml::InlineTable(table) => Value::Table(self.table(table, depth)?),
            Toml::Array(values) => {
                let node = |value: &Toml| {
                    let origin = self.origin(value.span());
                    Ok(Node { value: self.value(value, depth + 1)?, origin })
                };
                Value::Array(values.iter().map(node).collect::<Result<_, LayerError>>()?)
            }
        })
    }
}

/// A JSON value as TOML; `None` for `null`. Integers beyond 64 bits become floats.
fn json_value(json: &Json, depth: usize) -> Result<Option<Value>, LayerError> {
    if depth > MAX_DEPTH {
        return Err(LayerError::TooDeep { origin: Origin::Request });
    }
    let node = |json: &Json| Ok(json_value(json, depth + 1)?.map(|value| Node { value, origin: Origin::Request }));
    Ok(Some(match json {
        Json::Null => return Ok(None),
        Json::Bool(flag) => Value::Boolean(*flag),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => Value::Integer(integer),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::String(text.clone()),
        Json::Array(items) => {
            Value::Array(items.iter().filter_map(|item| node(item).transpose()).collect::<Result<_, LayerError>>()?)
        }
        Json::Object(members) => {
            let member =
                |(name, json): (&String, &Json)| Some(node(json).transpose()?.map(|node| (name.clone(), node)));
            Value::Table(members.iter().filter_map(member).collect::<Result<_, LayerError>>()?)
        }
    }))
}

#[cfg(test)]
mod tests;
