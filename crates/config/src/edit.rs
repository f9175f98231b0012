//! Edits TOML text while keeping its comments, its order and the notation of tables.

use serde_json::{Map, Value as Json};
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, RawString, Table, TableLike, Value as Toml};

use crate::{KeyPath, key::MAX_DEPTH};

/// The way in which an edit combines with an existing value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Merge {
    /// The new value replaces it.
    #[default]
    Replace,
    /// Tables are merged key by key, other values replaced.
    Upsert,
}

/// The reason why an edit cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The key leads through a value without members.
    #[error("{path} is {found}, which has no keys below it")]
    NotATable {
        /// The dotted key of that value.
        path: String,
        /// Its type, with its article.
        found: &'static str,
    },
    /// The nesting is too deep.
    #[error("{name} would be nested more than {MAX_DEPTH} levels deep")]
    TooDeep {
        /// The first name of the key; the whole would be too long to read.
        name: String,
    },
    /// TOML has no such number.
    #[error("{path}: the number is too large")]
    Number { path: String },
}

/// Sets, merges or (for `null`) removes the value of a key.
pub(crate) fn apply(
    document: &mut DocumentMut,
    path: &KeyPath,
    value: &Json,
    strategy: Merge,
) -> Result<(), EditError> {
    let Some((name, tables)) = path.segments().split_last() else { return Ok(()) };
    let mut parent = Parent { table: document.as_table_mut(), flat: false };
    let mut at = KeyPath::default();
    for table in tables {
        at = at.join(table);
        match parent.descend(table, &at, !value.is_null())? {
            Some(below) => parent = below,
            // A missing key need not be removed.
            None => return Ok(()),
        }
    }
    parent.set(name, value, strategy, &at.join(name))
}

/// A table to write to.
struct Parent<'a> {
    table: &'a mut dyn TableLike,
    /// Whether nested tables must be inline or dotted, because a header would end the line they are on.
    flat: bool,
}

impl Parent<'_> {
    /// The table below a name, created if it is missing and `wanted`.
    fn descend(self, name: &str, at: &KeyPath, wanted: bool) -> Result<Option<Self>, EditError> {
        if !self.table.contains_key(name) {
            if !wanted {
                return Ok(None);
            }
            let made = if self.flat { Item::Value(Toml::InlineTable(InlineTable::new())) } else { implicit_table() };
            self.table.insert(name, made);
        }
        let Some(item) = self.table.get_mut(name) else { return Ok(None) };
        let flat = self.flat || is_flat(item);
        let found = kind(item);
        match item.as_table_like_mut() {
            Some(table) => Ok(Some(Parent { table, flat })),
            None => Err(EditError::NotATable { path: at.to_string(), found }),
        }
    }

    fn set(&mut self, name: &str, value: &Json, strategy: Merge, at: &KeyPath) -> Result<(), EditError> {
        if at.segments().len() > MAX_DEPTH {
            return Err(too_deep(at));
        }
        let old = self.table.get_mut(name);
        match (value, old) {
            (Json::Null, _) => self.remove(name),
            (Json::Object(members), Some(old)) if old.is_table_like() => {
                return merge(old, members, strategy, self.flat, at);
            }
            (_, Some(old @ Item::Value(_))) => {
                let mut new = inline(value, at)?;
                if let Some(old) = old.as_value() {
                    // The comment after a value belongs to the line and stays.
                    *new.decor_mut() = old.decor().clone();
                }
                *old = Item::Value(new);
            }
            (_, old) => {
                let replaces = old.is_some();
                let new = match (value, old) {
                    (Json::Array(items), Some(Item::ArrayOfTables(_))) => tables_or_array(items, at)?,
                    _ => self.item(value, at)?,
                };
                if replaces {
                    self.table.remove(name);
                }
                self.table.insert(name, new);
            }
        }
        Ok(())
    }

    /// A value in the notation that suits the table.
    fn item(&self, value: &Json, at: &KeyPath) -> Result<Item, EditError> {
        match value {
            Json::Object(members) if !self.flat => Ok(Item::Table(block(members, at)?)),
            _ => Ok(Item::Value(inline(value, at)?)),
        }
    }

    /// Removes a key. Comments that are separated from it by an empty line move to the next key.
    fn remove(&mut self, name: &str) {
        let detached = self.table.key(name).and_then(|key| detached_comment(key.leaf_decor().prefix()?));
        let names: Vec<String> = self.table.iter().map(|(name, _)| name.to_owned()).collect();
        let after = names.iter().skip_while(|other| *other != name).nth(1);
        self.table.remove(name);
        let (Some(comment), Some(after)) = (detached, after) else { return };
        let decor = match self.table.get_mut(after) {
            Some(Item::Table(table)) if !table.is_implicit() && !table.is_dotted() => Some(table.decor_mut()),
            _ => None,
        };
        if let Some(decor) = decor {
            prepend(decor, &comment);
        } else if let Some(mut key) = self.table.key_mut(after) {
            prepend(key.leaf_decor_mut(), &comment);
        }
    }
}

/// The part of the text before a key that an empty line separates from it, if it contains a comment.
fn detached_comment(prefix: &RawString) -> Option<String> {
    let text = prefix.as_str()?;
    let end = text.rfind("\n\n")? + 2;
    text.get(..end).filter(|part| part.contains('#')).map(str::to_owned)
}

fn prepend(decor: &mut toml_edit::Decor, comment: &str) {
    let own = decor.prefix().and_then(RawString::as_str).unwrap_or_default().trim_start_matches('\n').to_owned();
    decor.set_prefix(format!("{comment}{own}"));
}

/// Merges an object into a table; a replaced table loses keys that the object does not name.
fn merge(
    old: &mut Item,
    members: &Map<String, Json>,
    strategy: Merge,
    flat: bool,
    at: &KeyPath,
) -> Result<(), EditError> {
    let flat = flat || is_flat(old);
    let Some(table) = old.as_table_like_mut() else { return Ok(()) };
    let mut parent = Parent { table, flat };
    if strategy == Merge::Replace {
        let names: Vec<String> = parent.table.iter().map(|(name, _)| name.to_owned()).collect();
        names.iter().filter(|name| !members.contains_key(*name)).for_each(|name| parent.remove(name));
    }
    members.iter().try_for_each(|(name, value)| parent.set(name, value, strategy, &at.join(name)))
}

/// Whether this table cannot contain headers: it is inline, or its keys are dotted.
fn is_flat(item: &Item) -> bool {
    match item {
        Item::Table(table) => table.is_dotted(),
        Item::None | Item::Value(_) | Item::ArrayOfTables(_) => true,
    }
}

/// A table that only contains others and has no header until it gets a value.
fn implicit_table() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

/// An object as a table with a header.
fn block(members: &Map<String, Json>, at: &KeyPath) -> Result<Table, EditError> {
    let mut table = Table::new();
    let mut parent = Parent { table: &mut table, flat: false };
    for (name, value) in members {
        parent.set(name, value, Merge::Replace, &at.join(name))?;
    }
    // A table of tables needs no header, but an empty one would be lost without it.
    table.set_implicit(!table.is_empty() && table.iter().all(|(_, item)| item.is_table()));
    Ok(table)
}

/// A list in place of `[[tables]]`: the same notation if it is still a list of objects.
fn tables_or_array(items: &[Json], at: &KeyPath) -> Result<Item, EditError> {
    let objects: Option<Vec<_>> = items.iter().map(Json::as_object).collect();
    match objects {
        Some(objects) if !objects.is_empty() => {
            let tables = objects.into_iter().map(|members| block(members, at)).collect::<Result<Vec<_>, _>>()?;
            let mut array = ArrayOfTables::new();
            for mut table in tables {
                table.set_implicit(false);
                array.push(table);
            }
            Ok(Item::ArrayOfTables(array))
        }
        _ => Ok(Item::Value(inline(&Json::Array(items.to_vec()), at)?)),
    }
}

/// A value on one line; `null` within it is left out.
fn inline(value: &Json, at: &KeyPath) -> Result<Toml, EditError> {
    if at.segments().len() > MAX_DEPTH {
        return Err(too_deep(at));
    }
    Ok(match value {
        // The callers leave it out or remove the key.
        Json::Null => Toml::InlineTable(InlineTable::new()),
        Json::Bool(flag) => Toml::from(*flag),
        Json::String(text) => Toml::from(text.as_str()),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => Toml::from(integer),
            (None, Some(float)) if number.is_f64() => Toml::from(float),
            _ => return Err(EditError::Number { path: at.to_string() }),
        },
        Json::Array(items) => {
            let items = items.iter().filter(|item| !item.is_null());
            let items = items.map(|item| inline(item, &at.join("0"))).collect::<Result<Vec<_>, _>>()?;
            Toml::Array(items.into_iter().collect::<Array>())
        }
        Json::Object(members) => {
            let mut table = InlineTable::new();
            for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
                table.insert(name, inline(value, &at.join(name))?);
            }
            Toml::InlineTable(table)
        }
    })
}

fn too_deep(at: &KeyPath) -> EditError {
    EditError::TooDeep { name: at.segments().first().cloned().unwrap_or_default() }
}

/// The type of an item, with its article.
fn kind(item: &Item) -> &'static str {
    match item {
        Item::None => "nothing",
        Item::Table(_) | Item::Value(Toml::InlineTable(_)) => "a table",
        Item::ArrayOfTables(_) | Item::Value(Toml::Array(_)) => "an array",
        Item::Value(Toml::String(_)) => "a string",
        Item::Value(Toml::Integer(_)) => "an integer",
        Item::Value(Toml::Float(_)) => "a float",
        Item::Value(Toml::Boolean(_)) => "a boolean",
        Item::Value(Toml::Datetime(_)) => "a date-time",
    }
}

#[cfg(test)]
mod tests;
