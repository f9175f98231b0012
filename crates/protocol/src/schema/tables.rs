//! The dispatch tables of messages, for descriptions of the whole protocol.
//!
//! Decoding is more lenient than the schemas: old names of members and other spellings of words are accepted as well.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::methods::{self, Row};
use crate::v2::{notification, request};

/// A type of the tables: described, and read and written by both sides.
pub trait Message: JsonSchema + Serialize + DeserializeOwned {}

impl<T: JsonSchema + Serialize + DeserializeOwned> Message for T {}

/// Visits each row of the tables.
pub trait Tables {
    /// Visits a method: its name as a type, its parameters, its response, and its row.
    fn method<P: Message, R: Message>(&mut self, name: &str, row: Option<&Row>);
    /// Visits a notification.
    fn notification<P: Message>(&mut self, name: &str, method: &str, about: &str);
    /// Visits a server request.
    fn request<P: Message, R: Message>(&mut self, name: &str, method: &str, about: &str);
}

/// Visits all tables.
pub fn describe(tables: &mut impl Tables) {
    methods::describe(tables);
    notification::describe(tables);
    request::describe(tables);
}
