//! The dispatch tables of messages, for descriptions of the whole protocol.
//!
//! Reading is more lenient than what is described from them: old names of members and other spellings of words are
//! taken as well.

use schemars::JsonSchema;

use crate::methods::{self, Row};
use crate::v2::{notification, request};

/// Visits each row of the tables.
pub trait Tables {
    /// Takes a method: its name as a type, what it takes, what it gives, and its row.
    fn method<P: JsonSchema, R: JsonSchema>(&mut self, name: &str, row: Option<&Row>);
    /// Takes a notification.
    fn notification<P: JsonSchema>(&mut self, name: &str, method: &str, about: &str);
    /// Takes a request of the server's.
    fn request<P: JsonSchema, R: JsonSchema>(&mut self, name: &str, method: &str, about: &str);
}

/// Goes through all tables.
pub fn describe(tables: &mut impl Tables) {
    methods::describe(tables);
    notification::describe(tables);
    request::describe(tables);
}
