//! The errors of this crate, and what to do about those of the database.

use std::error::Error as _;

use codex_log::store::{StoreError, StoreErrorKind};
use codex_store::ImportError;
use codex_wire::ids::ThreadId;
use tokio_postgres::error::SqlState;

/// The reason why the database could not be used.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    #[error("no database is configured; set store.url in config.toml, or CODEX_STORE_URL")]
    NotConfigured,
    #[error("{problem}")]
    Password { problem: String },
    /// The URL cannot be used. It is never shown.
    #[error("store.url cannot be used: {problem}")]
    Address { problem: String },
    #[error("store.schema {name:?} is not a name of at most 63 letters, digits and `_`")]
    Schema { name: String },
    #[error("TLS cannot be set up: {problem}")]
    Tls { problem: String },
    #[error("the thread of the database connections could not be started")]
    Start(#[source] std::io::Error),
    /// It could not be reached, or broke off.
    #[error("the database {place} cannot be reached: {problem}; check that it runs, and store.url")]
    Away { place: String, problem: String },
    /// It does not accept what it was asked.
    #[error("the database {place} refused: {problem}")]
    Refused { place: String, problem: String },
    #[error(
        "the tables in {place} have version {found}, this release knows versions up to {known}; use a newer release"
    )]
    Newer { place: String, found: i32, known: i32 },
    #[error("there is no store in {place}; create it with `codex store migrate`")]
    NoTables { place: String },
    #[error("thread not found: {thread}")]
    Missing { thread: ThreadId },
    /// Another server writes it.
    #[error("thread {thread} is open on server {server}; close it there, or wait until that server has ended")]
    Owned { thread: ThreadId, server: String },
    /// Another server has taken it over.
    #[error("another server has taken over thread {thread}")]
    Fenced { thread: ThreadId },
    /// This server may no longer write it.
    #[error("thread {thread} was not written: {reason}")]
    Revoked { thread: ThreadId, reason: String },
    #[error("this server could not renew its lease in {place} for 10 s, so others may take over its threads")]
    LeaseLost { place: String },
    #[error("no line of thread {thread} ends at {position}")]
    NoLine { thread: ThreadId, position: u64 },
    #[error("invalid cursor: {cursor}")]
    Cursor { cursor: String },
    #[error("{place} is not the place of a thread")]
    NotAPlace { place: String },
    /// It has the id of another one.
    #[error("another thread with the id {thread} is in the store already")]
    Differs { thread: ThreadId },
    #[error("thread {thread} does not identify itself")]
    NoMeta { thread: ThreadId },
    #[error("could not encode a `{kind}` line")]
    Encode { kind: String, source: serde_json::Error },
    #[error("could not write the export")]
    Write(#[from] std::io::Error),
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A row does not contain what was written there.
    #[error("a row in {place} has unexpected content: {problem}; was a table changed by hand?")]
    Row { place: String, problem: String },
}

impl PostgresError {
    fn kind(&self) -> StoreErrorKind {
        match self {
            Self::Owned { .. } => StoreErrorKind::Locked,
            Self::Missing { .. } => StoreErrorKind::Missing,
            Self::Fenced { .. } | Self::Revoked { .. } | Self::LeaseLost { .. } => StoreErrorKind::Unwritable,
            Self::Differs { .. } | Self::NoLine { .. } | Self::Cursor { .. } | Self::NotAPlace { .. } => {
                StoreErrorKind::Refused
            }
            Self::NoMeta { .. } | Self::Row { .. } => StoreErrorKind::Unreadable,
            Self::Encode { .. } => StoreErrorKind::Unencodable,
            Self::Write(_) => StoreErrorKind::Unwritable,
            Self::NotConfigured
            | Self::Password { .. }
            | Self::Address { .. }
            | Self::Schema { .. }
            | Self::Tls { .. }
            | Self::Start(_)
            | Self::Away { .. }
            | Self::Refused { .. }
            | Self::Newer { .. }
            | Self::NoTables { .. }
            | Self::Import(_) => StoreErrorKind::Failed,
        }
    }
}

impl From<PostgresError> for StoreError {
    fn from(error: PostgresError) -> Self {
        match error {
            PostgresError::Import(error) => error.into(),
            error => Self::new(error.kind(), error),
        }
    }
}

/// An error of a connection, classified by what helps.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The connection is gone, or the server asks for another attempt. The outcome of the statement is unknown.
    Broken(String),
    /// The statement was refused, and would be refused again.
    Refused(String),
    /// An error of our own.
    Own(PostgresError),
}

impl From<PostgresError> for Failure {
    fn from(error: PostgresError) -> Self {
        Self::Own(error)
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(found) = error.as_db_error() else {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            let text = format!("{error}{cause}");
            // Another attempt would meet the same certificate.
            return if is_distrusted(&error) {
                Self::Refused(format!("{text}; check the host name in store.url, and SSL_CERT_FILE"))
            } else if text.contains(NO_TLS) {
                Self::Refused(format!("{text}; set `ssl = on` in its postgresql.conf"))
            } else {
                Self::Broken(text)
            };
        };
        let code = found.code();
        if found.message().contains(STARTUP_PARAMETER) {
            let advice = "remove it from store.url, or add it to ignore_startup_parameters of the pooler";
            return Self::Refused(format!("{} ({}); {advice}", found.message(), code.code()));
        }
        let text = match advice(code) {
            Some(advice) => format!("{} ({}); {advice}", found.message(), code.code()),
            None => format!("{} ({})", found.message(), code.code()),
        };
        if is_passing(code) { Self::Broken(text) } else { Self::Refused(text) }
    }
}

/// The part of the error of a pooler that does not know a setting of a connection.
const STARTUP_PARAMETER: &str = "startup parameter";

/// Whether a connection was refused because of the settings that it asked for.
pub(crate) fn is_about_parameters(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_some_and(|found| found.message().contains("parameter"))
}

/// The error of a server that does not offer TLS, which has no code.
const NO_TLS: &str = "server does not support TLS";

/// Whether the certificate of the server was refused.
fn is_distrusted(error: &tokio_postgres::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<std::io::Error>());
    let cause = cause.and_then(std::io::Error::get_ref).and_then(|cause| cause.downcast_ref::<rustls::Error>());
    matches!(cause, Some(rustls::Error::InvalidCertificate(_)))
}

/// Whether another attempt may succeed: serialization failures, deadlocks, restarts and full connection tables.
fn is_passing(code: &SqlState) -> bool {
    let class = code.code().get(..2).unwrap_or_default();
    matches!(class, "08" | "40" | "57" | "53") && *code != SqlState::DISK_FULL
        || *code == SqlState::FEATURE_NOT_SUPPORTED
        || *code == SqlState::LOCK_NOT_AVAILABLE
}

/// Advice for the person who can do something about an error.
fn advice(code: &SqlState) -> Option<&'static str> {
    let all = [
        (&SqlState::INVALID_PASSWORD, "check the password"),
        (&SqlState::INVALID_AUTHORIZATION_SPECIFICATION, "check the user and pg_hba.conf"),
        (&SqlState::INVALID_CATALOG_NAME, "create the database first"),
        (&SqlState::INSUFFICIENT_PRIVILEGE, "grant the user rights on the schema"),
        (&SqlState::READ_ONLY_SQL_TRANSACTION, "use the address of the primary, not of a replica"),
        (&SqlState::DISK_FULL, "free disk space on the database server"),
        (&SqlState::UNDEFINED_TABLE, "run `codex store migrate`"),
        (&SqlState::UNDEFINED_COLUMN, "a table was changed by hand; restore it from a backup"),
    ];
    all.iter().find(|(known, _)| *known == code).map(|(_, advice)| *advice)
}
