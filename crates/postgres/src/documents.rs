//! Documents of metadata, each in a row with a version.
//!
//! Invariant: a document is replaced only if it has the version that was read.

use codex_log::store::StoreError;
use codex_store::{Document, Documents, MetadataError};
use codex_wire::ids::ThreadId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::connection::column;
use crate::database::Database;
use crate::errors::PostgresError;
use crate::summary_row::without_nul;

const READ: &str = "SELECT version, value FROM @.metadata WHERE kind = $1 AND thread = $2";

const INSERT: &str = "INSERT INTO @.metadata (kind, thread, version, value) VALUES ($1, $2, 1, $3) \
     ON CONFLICT (kind, thread) DO NOTHING";

const UPDATE: &str = "UPDATE @.metadata SET version = version + 1, value = $3 \
     WHERE kind = $1 AND thread = $2 AND version = $4";

const REMOVE: &str = "DELETE FROM @.metadata WHERE kind = $1 AND thread = $2";

const CONTAINING: &str = "SELECT thread FROM @.metadata WHERE kind = $1 AND position($2 IN value) > 0";

/// The kind of the corrections to repositories.
pub(crate) const REPOSITORY: &str = "git";
const ATTACHMENTS: &str = "attachments";

/// The number of attempts to change a document that others change too.
const ATTEMPTS: usize = 100;

/// The rows of the documents.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    pub(crate) database: Database,
}

/// The kind and the thread of a document. Those of all threads have the id nil.
fn key(document: Document) -> (&'static str, Uuid) {
    match document {
        Document::Sections => ("sections", Uuid::nil()),
        Document::ReadState(thread) => ("read", thread.into()),
        Document::Attachments(thread) => (ATTACHMENTS, thread.into()),
        Document::Repository(thread) => (REPOSITORY, thread.into()),
    }
}

fn failed(error: PostgresError) -> MetadataError {
    StoreError::from(error).into()
}

impl Rows {
    /// The text of a document and its version; version 0 if there is none.
    fn fetch(&self, document: Document) -> Result<(i64, Option<String>), MetadataError> {
        let (kind, thread) = key(document);
        let fetched = self.database.wait(move |pool| async move {
            let row = pool.run(async |connection| connection.row(READ, &[&kind, &thread]).await).await?;
            let Some(row) = row else { return Ok((0, None)) };
            Ok((column(&row, "version", &pool.place)?, Some(column(&row, "value", &pool.place)?)))
        });
        fetched.map_err(failed)
    }

    /// Replaces the text of a document that has this version. False if it has another.
    fn replace(&self, document: Document, version: i64, text: String) -> Result<bool, MetadataError> {
        let (kind, thread) = key(document);
        let replaced = self.database.wait(move |pool| async move {
            pool.run(async |connection| match version {
                0 => connection.execute(INSERT, &[&kind, &thread, &text]).await,
                _ => connection.execute(UPDATE, &[&kind, &thread, &text, &version]).await,
            })
            .await
        });
        Ok(replaced.map_err(failed)? > 0)
    }

    fn parse<T: DeserializeOwned + Default>(&self, document: Document, text: Option<&str>) -> Result<T, MetadataError> {
        let Some(text) = text else { return Ok(T::default()) };
        match (serde_json::from_str(text), document) {
            // It may be lost, so it may be replaced as well.
            (Err(_), Document::ReadState(_)) => Ok(T::default()),
            (Err(source), _) => {
                let (kind, thread) = key(document);
                let path = format!("{}/metadata/{kind}/{thread}", self.database.place()).into();
                Err(MetadataError::Broken { path, source })
            }
            (Ok(value), _) => Ok(value),
        }
    }
}

impl Documents for Rows {
    fn read<T: DeserializeOwned + Default>(&self, document: Document) -> Result<T, MetadataError> {
        let (_, text) = self.fetch(document)?;
        self.parse(document, text.as_deref())
    }

    fn change<T, R>(
        &self,
        document: Document,
        mut change: impl FnMut(&mut T) -> Result<R, MetadataError>,
    ) -> Result<R, MetadataError>
    where
        T: Serialize + DeserializeOwned + Default + Clone + PartialEq,
    {
        let (mut version, mut text) = self.fetch(document)?;
        for _ in 0..ATTEMPTS {
            let before: T = self.parse(document, text.as_deref())?;
            let mut after = before.clone();
            let result = change(&mut after)?;
            if after == before {
                return Ok(result);
            }
            let broken = |source| MetadataError::Broken { path: self.database.place().into(), source };
            let new = without_nul(&serde_json::to_string(&after).map_err(broken)?);
            if self.replace(document, version, new.clone())? {
                return Ok(result);
            }
            let found = self.fetch(document)?;
            // The answer to a replacement that has succeeded may have been lost.
            if found == (version + 1, Some(new)) {
                return Ok(result);
            }
            (version, text) = found;
        }
        Err(MetadataError::Busy { path: self.database.place().into() })
    }

    fn remove(&self, document: Document) -> Result<(), MetadataError> {
        let (kind, thread) = key(document);
        let removed = self.database.wait(move |pool| async move {
            pool.run(async |connection| connection.execute(REMOVE, &[&kind, &thread]).await).await
        });
        removed.map(drop).map_err(failed)
    }

    fn maybe_attached(&self, attachment: &str) -> Result<Vec<ThreadId>, MetadataError> {
        let part = without_nul(&serde_json::to_string(attachment).unwrap_or_default());
        let found = self.database.wait(move |pool| async move {
            let rows = pool.run(async |connection| connection.query(CONTAINING, &[&ATTACHMENTS, &part]).await).await?;
            rows.iter().map(|row| Ok(ThreadId::from(column::<Uuid>(row, "thread", &pool.place)?))).collect()
        });
        found.map_err(failed)
    }
}
