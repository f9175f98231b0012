//! Threads that come from elsewhere or go there: forks, bundles, and the files of a home.

use std::io::{BufRead, Write};

use chrono::{DateTime, Utc};
use codex_log::encode::LineSink;
use codex_log::history::ForkPoint;
use codex_log::store::{Entry, Imported, LineSource, LogWriter, ReadFrom, StoreError, ThreadStore, store_place};
use codex_store::{BundleReader, BundleThread, BundleWriter, ImportError, NewIds, fork_end};
use codex_wire::ids::ThreadId;
use codex_wire::rollout::SessionMeta;
use uuid::Uuid;

use crate::connection::column;
use crate::errors::PostgresError;
use crate::listing;
use crate::reader::Reader;
use crate::store::{Parts, PostgresStore};
use crate::threads;
use crate::writer::Writer;

/// The number of bytes after which copied lines are written.
const WRITE_BYTES: u64 = 1 << 20;

const BEGAN: &str = "SELECT began FROM @.threads WHERE id = $1 AND NOT deleted";

/// Copies a thread up to a point into a new one with its own first line.
pub(crate) fn fork(parts: &Parts, of: ThreadId, point: ForkPoint, meta: &SessionMeta) -> Result<Writer, StoreError> {
    let end = match point {
        ForkPoint::End => u64::MAX,
        ForkPoint::Position(position) => position,
        ForkPoint::Turns(turns) => fork_end(&mut Reader::open(parts, of, ReadFrom::Start)?, turns)?,
    };
    let mut lines = Reader::open(parts, of, ReadFrom::Start)?;
    let mut copy = threads::create(parts, meta.id, threads::now_as_began())?;
    match copy_lines(&mut lines, end, meta, &mut copy) {
        Ok(()) => Ok(copy),
        Err(error) => {
            // A partial copy would look like a thread.
            Box::new(copy).discard();
            Err(error)
        }
    }
}

fn copy_lines(lines: &mut Reader, end: u64, meta: &SessionMeta, copy: &mut Writer) -> Result<(), StoreError> {
    let writer: &mut dyn LogWriter = copy;
    writer.line(DateTime::<Utc>::from(codex_wire::time::now()).timestamp_millis(), codex_store::FIRST_LINE, meta)?;
    while let Some(entry) = lines.next_entry()? {
        let Entry::Line(line) = entry else { continue };
        if line.range.start >= end {
            break;
        }
        if line.kind != codex_store::FIRST_LINE {
            copy.append_text(line.text.as_bytes());
        }
        if copy.waiting_bytes() >= WRITE_BYTES {
            copy.flush()?;
        }
    }
    Ok(copy.flush()?)
}

/// Imports a bundle. If one of its threads exists already, all get new ids, and the first one is a fork.
pub(crate) fn import(store: &PostgresStore, bundle: &mut dyn BufRead) -> Result<Imported, StoreError> {
    let mut reader = BundleReader::open(bundle)?;
    let mut is_known = false;
    for thread in reader.threads() {
        is_known |= listing::find(store.parts(), thread)?.is_some();
    }
    let (ids, old) = (reader.ids(is_known), reader.thread());
    let mut taken: Vec<(ThreadId, Option<String>, Writer)> = Vec::new();
    if let Err(error) = import_all(store, &mut reader, bundle, &ids, &mut taken) {
        for (_, _, writer) in taken {
            Box::new(writer).discard();
        }
        return Err(error.into());
    }
    let mut imported = Vec::new();
    for (id, name, writer) in taken {
        drop(writer);
        if let Some(name) = name {
            store.rename(id, &name)?;
        }
        imported.push(id);
    }
    let agents = imported.split_off(1);
    let id = imported[0];
    Ok(Imported { id, path: store_place(id), renamed_from: is_known.then_some(old), agents })
}

/// Writes all threads of a bundle.
fn import_all(
    store: &PostgresStore,
    reader: &mut BundleReader,
    bundle: &mut dyn BufRead,
    ids: &NewIds,
    taken: &mut Vec<(ThreadId, Option<String>, Writer)>,
) -> Result<(), PostgresError> {
    loop {
        let id = ids.new_of(reader.thread()).ok_or(ImportError::OtherThread)?;
        let mut writer = threads::create(store.parts(), id, reader.file_time().to_owned())?;
        let copied = reader.read_lines(bundle, ids, |line| -> Result<(), PostgresError> {
            writer.append_text(line.as_bytes());
            if writer.waiting_bytes() >= WRITE_BYTES { writer.flush() } else { Ok(()) }
        });
        let copied = copied.and_then(|()| writer.flush());
        taken.push((id, reader.name().map(str::to_owned), writer));
        copied?;
        if !reader.next(bundle)? {
            return Ok(());
        }
    }
}

/// Writes a thread as a bundle.
pub(crate) fn export(
    parts: &Parts,
    thread: ThreadId,
    name: Option<&str>,
    agents: &[ThreadId],
    out: &mut dyn Write,
) -> Result<(), StoreError> {
    let began: Option<String> = parts.database.wait(move |pool| async move {
        let row = pool.run(async |connection| connection.row(BEGAN, &[&Uuid::from(thread)]).await).await?;
        row.map(|row| column(&row, "began", &pool.place)).transpose()
    })?;
    let began = began.ok_or(PostgresError::Missing { thread })?;
    let mut bundle = BundleWriter::default();
    let mut lines = Reader::open(parts, thread, ReadFrom::Start)?;
    while let Some(entry) = lines.next_entry()? {
        bundle.count(&entry);
    }
    let about = BundleThread { id: thread, file_time: &began, name, agents };
    bundle.begin(about, out).map_err(PostgresError::from)?;
    let mut lines = Reader::open(parts, thread, ReadFrom::Start)?;
    while let Some(entry) = lines.next_entry()? {
        if !bundle.write(&entry, out).map_err(PostgresError::from)? {
            break;
        }
    }
    Ok(out.flush().map_err(PostgresError::from)?)
}
