//! An open connection and its statements.
//!
//! A pooler between this process and the database may give every transaction another session. Statements that were prepared
//! in one do not exist in the next, or worse: another process has prepared something else under the same name. So statements
//! have names only where the database confirms that the session is the one that this connection has begun.
//!
//! Invariant: nothing relies on the state of a session from one statement to the next, except prepared statements there.

use std::cell::RefCell;
use std::collections::HashMap;

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row, SimpleQueryMessage, Statement};
use uuid::Uuid;

use crate::errors::{Failure, PostgresError};

/// The setting by which a connection recognizes the session that it has begun. A pooler does not pass it on.
pub(crate) const SESSION_SETTING: &str = "codex.session";

/// The values of a statement's placeholders.
pub(crate) type Values<'a> = &'a [&'a dyn Value];

/// A value of a placeholder.
pub(crate) trait Value: Sync {
    /// Its type in the database.
    fn kind(&self) -> Type;

    fn sql(&self) -> &(dyn ToSql + Sync);
}

/// A Rust type with one type in the database.
pub(crate) trait Typed: ToSql + Sync {
    const KIND: Type;
}

macro_rules! typed {
    ($($rust:ty => $kind:ident),* $(,)?) => {
        $(impl Typed for $rust {
            const KIND: Type = Type::$kind;
        })*
    };
}

typed! {
    bool => BOOL,
    i16 => INT2,
    i32 => INT4,
    i64 => INT8,
    f64 => FLOAT8,
    &str => TEXT,
    String => TEXT,
    Uuid => UUID,
    Vec<u8> => BYTEA,
    Vec<i16> => INT2_ARRAY,
    Vec<i64> => INT8_ARRAY,
    Vec<String> => TEXT_ARRAY,
    Vec<Uuid> => UUID_ARRAY,
    Vec<Vec<u8>> => BYTEA_ARRAY,
}

impl<T: Typed> Typed for Option<T> {
    const KIND: Type = T::KIND;
}

impl<T: Typed> Value for T {
    fn kind(&self) -> Type {
        T::KIND
    }

    fn sql(&self) -> &(dyn ToSql + Sync) {
        self
    }
}

/// An open connection.
pub(crate) struct Connection {
    client: Client,
    schema: String,
    /// The prepared statements; `None` if its session may change from one statement to the next.
    statements: Option<RefCell<HashMap<&'static str, Statement>>>,
}

impl Connection {
    /// A connection whose session has this value of [`SESSION_SETTING`], unless a pooler is in between.
    pub(crate) async fn new(client: Client, schema: String, session: Option<&str>) -> Result<Self, Failure> {
        let is_own = match session {
            None => true,
            Some(session) => {
                let found = client.simple_query(&format!("SELECT current_setting('{SESSION_SETTING}', true)")).await?;
                found.iter().any(|message| match message {
                    SimpleQueryMessage::Row(row) => row.get(0) == Some(session),
                    _ => false,
                })
            }
        };
        Ok(Self { client, schema, statements: is_own.then(RefCell::default) })
    }

    /// Whether the database keeps what this connection sets, prepares and listens to.
    pub(crate) fn has_own_session(&self) -> bool {
        self.statements.is_some()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// The rows of a statement, in which `@.` stands for the schema.
    pub(crate) async fn query(&self, sql: &'static str, values: Values<'_>) -> Result<Vec<Row>, Failure> {
        Ok(match self.prepared(sql).await? {
            Some(statement) => self.client.query(&statement, &plain(values)).await?,
            None => self.client.query_typed(&self.named(sql), &typed(values)).await?,
        })
    }

    /// The first row of a statement.
    pub(crate) async fn row(&self, sql: &'static str, values: Values<'_>) -> Result<Option<Row>, Failure> {
        Ok(self.query(sql, values).await?.into_iter().next())
    }

    /// The number of rows that a statement has changed.
    pub(crate) async fn execute(&self, sql: &'static str, values: Values<'_>) -> Result<u64, Failure> {
        Ok(match self.prepared(sql).await? {
            Some(statement) => self.client.execute(&statement, &plain(values)).await?,
            None => self.client.execute_typed(&self.named(sql), &typed(values)).await?,
        })
    }

    /// Runs statements without values, in which `@.` stands for the schema.
    pub(crate) async fn batch(&self, sql: &str) -> Result<(), Failure> {
        Ok(self.client.batch_execute(&self.named(sql)).await?)
    }

    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    async fn prepared(&self, sql: &'static str) -> Result<Option<Statement>, Failure> {
        let Some(statements) = &self.statements else { return Ok(None) };
        let known = statements.borrow().get(sql).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let statement = self.client.prepare(&self.named(sql)).await?;
        statements.borrow_mut().insert(sql, statement.clone());
        Ok(Some(statement))
    }

    fn named(&self, sql: &str) -> String {
        sql.replace("@.", &format!("{}.", self.schema))
    }
}

fn plain(values: Values<'_>) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|value| value.sql()).collect()
}

fn typed(values: Values<'_>) -> Vec<(&(dyn ToSql + Sync), Type)> {
    values.iter().map(|value| (value.sql(), value.kind())).collect()
}

/// Reads a column of a row, which may have been changed by hand.
pub(crate) fn column<'a, T: tokio_postgres::types::FromSql<'a>>(
    row: &'a Row,
    name: &str,
    place: &str,
) -> Result<T, PostgresError> {
    row.try_get(name).map_err(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        PostgresError::Row { place: place.to_owned(), problem: format!("{name}{cause}") }
    })
}
