//! Selects the entry of a script that answers a request.

use std::io;

use regex_lite::{Captures, Regex};
use serde::Serialize;
use serde_json::{Map, Value, ser::Formatter};

use super::entry::{Entry, Row, Script};

/// A script being played.
#[derive(Debug)]
pub struct Player {
    script: Script,
    used: Vec<bool>,
}

/// The entry that answers a request.
#[derive(Debug)]
pub struct Taken {
    /// The number of the entry, from 1; `None` when the script is exhausted.
    pub number: Option<usize>,
    /// The entry, in which `find` was replaced.
    pub entry: Entry,
}

impl Player {
    #[must_use]
    pub fn new(script: Script) -> Self {
        Self { used: vec![false; script.rows.len()], script }
    }

    /// Takes the entry for a request. The body is built only if the script matches requests.
    pub fn take(&mut self, body: impl FnOnce() -> Vec<u8>) -> Taken {
        let looks_at_requests = self.script.rows.iter().any(|row| !row.when.is_empty() || !row.find.is_empty());
        let text = if looks_at_requests { request_text(&body()) } else { String::new() };
        let Some((place, row)) = self.choose(&text) else {
            return Taken { number: None, entry: Entry::refusal(500, "script exhausted") };
        };
        let number = place + 1;
        let entry = if row.find.is_empty() {
            row.entry.clone()
        } else {
            Entry::read(number, fill_row(row, &text)).unwrap_or_else(|error| Entry::refusal(500, &error.to_string()))
        };
        if let Some(used) = self.used.get_mut(place) {
            *used = true;
        }
        Taken { number: Some(number), entry }
    }

    fn choose(&self, text: &str) -> Option<(usize, &Row)> {
        let usable = || {
            let rows = self.script.rows.iter().zip(&self.used).enumerate();
            rows.filter(|(_, (row, used))| row.repeat || !**used).map(|(place, (row, _))| (place, row))
        };
        let fits = |row: &Row| !row.when.is_empty() && row.when.iter().all(|part| text.contains(part));
        let mut wanted = usable().filter(|(_, row)| fits(row));
        let mut others = usable().filter(|(_, row)| row.when.is_empty());
        wanted.next().or_else(|| others.next())
    }
}

/// The text that `when` and `find` search: the body in the spacing that scripts are written for.
fn request_text(body: &[u8]) -> String {
    let body = serde_json::from_slice::<Value>(body).unwrap_or_else(|_| serde_json::json!({"unparsable": body.len()}));
    spaced_json(&body)
}

/// Encodes with a space after each comma and colon.
pub(super) fn spaced_json(value: &Value) -> String {
    let mut text = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, Spaced);
    // Writing a value into memory cannot fail.
    let _ = value.serialize(&mut serializer);
    String::from_utf8(text).unwrap_or_default()
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

fn fill_row(row: &Row, text: &str) -> Value {
    let found = row.find.iter().filter_map(|(name, regex)| Some((name.clone(), Value::from(last_hit(regex, text)?))));
    let found = found.collect::<Map<_, _>>();
    match Regex::new(r"\$\{(\w+)\}") {
        Ok(place) => fill(&row.written, &place, &found),
        Err(_) => row.written.clone(),
    }
}

/// The last match of a pattern: its first group, or the whole match if it has none.
fn last_hit<'t>(regex: &Regex, text: &'t str) -> Option<&'t str> {
    let hit = regex.captures_iter(text).last()?;
    hit.get(1).or_else(|| hit.get(0)).map(|hit| hit.as_str())
}

/// Replaces `${name}` in all strings; a string that then consists of digits becomes a number.
fn fill(value: &Value, place: &Regex, found: &Map<String, Value>) -> Value {
    match value {
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), fill(value, place, found))).collect()
        }
        Value::Array(values) => values.iter().map(|value| fill(value, place, found)).collect(),
        Value::String(text) if text.contains("${") => {
            let filled = place.replace_all(text, |hit: &Captures<'_>| {
                found.get(&hit[1]).and_then(Value::as_str).unwrap_or(&hit[0]).to_owned()
            });
            let is_number = filled.bytes().all(|byte| byte.is_ascii_digit());
            match filled.parse::<u64>() {
                Ok(number) if is_number => Value::from(number),
                _ => Value::from(filled.into_owned()),
            }
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
