//! Every type of the tables is read and written: a client reads what the server writes, and the other way round.

use codex_protocol::methods::{METHODS, Row};
use codex_protocol::schema::{Definitions, Message, Tables, describe};
use codex_protocol::v2::notification::ServerNotification;
use codex_protocol::v2::request::ServerRequest;
use codex_wire::schema::{read_form, written_form};
use serde_json::Value;

use crate::shapes::Drawing;

/// The number of values generated for each type.
const DRAWN: u64 = 64;

/// Members that are not kept, on purpose: those of a resumed thread come together or not at all, which a schema cannot
/// say, and a read-only sandbox has no network whatever is asked for.
const NOT_KEPT: &[&str] =
    &["/turnsBackwardsCursor", "/itemsBackwardsCursor", "/initialTurnsPage", "/sandboxPolicy/networkAccess"];

/// Collects the faults of all rows, so that one run names them all.
#[derive(Default)]
struct RoundTrips {
    rows: usize,
    faults: Vec<String>,
}

impl RoundTrips {
    /// Draws values as a schema describes them, and passes them through the type and back twice.
    fn pass<T: Message>(&mut self, what: &str, form: &Value) {
        let definitions = Definitions::of(form);
        for seed in 0..DRAWN {
            let mut drawing = Drawing { definitions: &definitions, chance: fastrand::Rng::with_seed(seed) };
            let drawn = drawing.draw(form, 0);
            if let Err(fault) = passed::<T>(&drawn) {
                self.faults.push(format!("{what}: {fault}\n    {drawn}"));
                return;
            }
        }
    }
}

/// Reads a value and writes it, which keeps all its members, and reads and writes that, which changes nothing.
fn passed<T: Message>(drawn: &Value) -> Result<(), String> {
    let through = |value: &Value| -> Result<Value, String> {
        let read: T = serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
        serde_json::to_value(&read).map_err(|error| error.to_string())
    };
    let written = through(drawn)?;
    let lost = lost(&in_new_words(drawn.clone()), &written, "").filter(|place| !NOT_KEPT.contains(&place.as_str()));
    if let Some(lost) = lost {
        return Err(format!("{lost} was lost: {written}"));
    }
    let again = through(&written)?;
    if again == written { Ok(()) } else { Err(format!("not the same twice: {written}\n    {again}")) }
}

/// Changes of files in the form that is written; the schema has the older one too.
fn in_new_words(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let old = members.iter().next().filter(|(name, change)| {
                members.len() == 1 && change.is_object() && ["add", "delete", "update"].contains(&name.as_str())
            });
            if let Some((kind, Value::Object(change))) = old {
                let mut change = change.clone();
                change.insert("type".to_owned(), Value::from(kind.as_str()));
                return Value::Object(change);
            }
            Value::Object(members.into_iter().map(|(name, member)| (name, in_new_words(member))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(in_new_words).collect()),
        value => value,
    }
}

/// The first member that a value has, and its copy does not.
fn lost(value: &Value, copy: &Value, place: &str) -> Option<String> {
    match (value, copy) {
        (Value::Object(members), Value::Object(copies)) => members.iter().find_map(|(name, member)| {
            let place = format!("{place}/{name}");
            lost(member, copies.get(name).unwrap_or(&Value::Null), &place)
        }),
        (Value::Array(items), Value::Array(copies)) if items.len() == copies.len() => items
            .iter()
            .zip(copies)
            .enumerate()
            .find_map(|(index, (item, copy))| lost(item, copy, &format!("{place}/{index}"))),
        // An absent member stands for nothing and for none.
        (Value::Null, _) => None,
        (Value::Array(items), Value::Null) if items.is_empty() => None,
        (Value::Number(number), Value::Number(copy)) => (number.as_f64() != copy.as_f64()).then(|| place.to_owned()),
        (value, copy) => (value != copy).then(|| place.to_owned()),
    }
}

impl Tables for RoundTrips {
    fn method<P: Message, R: Message>(&mut self, name: &str, row: Option<&Row>) {
        self.rows += usize::from(row.is_some());
        self.pass::<P>(&format!("{name} params"), &read_form::<P>());
        self.pass::<R>(&format!("{name} response"), &written_form::<R>());
    }

    fn notification<P: Message>(&mut self, _: &str, method: &str, _: &str) {
        self.rows += 1;
        self.pass::<P>(method, &written_form::<P>());
        assert!(ServerNotification::read(method, "[").is_some_and(|read| read.is_err()), "{method} is not read");
    }

    fn request<P: Message, R: Message>(&mut self, _: &str, method: &str, _: &str) {
        self.rows += 1;
        self.pass::<P>(&format!("{method} params"), &written_form::<P>());
        self.pass::<R>(&format!("{method} response"), &read_form::<R>());
        assert!(ServerRequest::read(method, "[").is_some_and(|read| read.is_err()), "{method} is not read");
    }
}

#[test]
fn every_type_of_the_tables_is_read_and_written() {
    let mut trips = RoundTrips::default();
    describe(&mut trips);
    assert_eq!(trips.rows, METHODS.len() + ServerNotification::METHODS.len() + ServerRequest::METHODS.len());
    assert!(trips.faults.is_empty(), "{} types:\n{}", trips.faults.len(), trips.faults.join("\n"));
}

#[test]
fn a_lost_member_is_noticed() {
    let value = serde_json::json!({"a": {"b": [1, null]}});
    assert_eq!(lost(&value, &serde_json::json!({"a": {"b": [1, 2]}}), ""), None);
    assert_eq!(lost(&value, &serde_json::json!({"a": {"b": [2, null]}}), ""), Some("/a/b/0".to_owned()));
    assert_eq!(lost(&value, &serde_json::json!({"a": {}}), ""), Some("/a/b".to_owned()));
}
