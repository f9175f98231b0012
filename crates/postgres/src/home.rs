//! Copies the threads of a home into the store, and those of the store into files that other releases read.
//!
//! Invariant: a copy is resumable. Lines are copied as they are, so a thread that was copied in part goes on behind its
//! last line, and one that differs is left alone and reported.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use codex_log::line::Line;
use codex_log::store::{ListQuery, ReadFrom, StoreError, ThreadStore, ThreadSummary};
use codex_store::{Document, Documents, FileStore, MetadataFolder, RolloutFile, StoredMetadata};
use serde_json::Value;
use uuid::Uuid;

use crate::connection::column;
use crate::errors::PostgresError;
use crate::inspect::Checked;
use crate::listing;
use crate::reader::Reader;
use crate::store::PostgresStore;
use crate::threads;
use crate::writer::Writer;

/// The number of bytes after which copied lines are written.
const WRITE_BYTES: u64 = 1 << 20;

/// The number of threads of a page.
const PAGE: usize = 200;

const BEGAN: &str = "SELECT began FROM @.threads WHERE id = $1";

/// The result of a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Copied {
    /// Threads that were copied, wholly or in part.
    pub copied: u64,
    /// Threads that were there already.
    pub unchanged: u64,
    /// Threads that could not be copied, with the reason.
    pub problems: Vec<String>,
}

impl fmt::Display for Copied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problems.iter().try_for_each(|problem| writeln!(f, "{problem}"))?;
        let Self { copied, unchanged, problems } = self;
        writeln!(f, "{copied} threads copied, {unchanged} were there already, {} have problems", problems.len())
    }
}

impl Copied {
    fn count(&mut self, thread: &ThreadSummary, done: Result<bool, StoreError>) {
        match done {
            Ok(true) => self.copied += 1,
            Ok(false) => self.unchanged += 1,
            Err(error) => self.problems.push(format!("thread {}: {error}", thread.id)),
        }
    }
}

/// All threads of a store, archived ones included.
fn all_threads(store: &dyn ThreadStore) -> Result<Vec<ThreadSummary>, StoreError> {
    let mut all = Vec::new();
    for archived in [false, true] {
        let mut query = ListQuery { archived, silent: true, limit: PAGE, ..ListQuery::default() };
        loop {
            let page = store.list(&query)?;
            all.extend(page.threads);
            match page.next_cursor {
                Some(cursor) => query.cursor = Some(cursor),
                None => break,
            }
        }
    }
    Ok(all)
}

impl PostgresStore {
    /// Copies the threads of a home, with their names and metadata. The home may be in use.
    ///
    /// # Errors
    /// When the home cannot be listed, or the database cannot be used.
    pub fn import_home(&self, home: &Path) -> Result<Copied, StoreError> {
        let files = FileStore::of(home);
        let metadata = StoredMetadata::of(home);
        let mut copied = Copied::default();
        for thread in all_threads(&files)? {
            let done = self.import_thread(&thread, metadata.documents());
            copied.count(&thread, done);
        }
        copy_document(metadata.documents(), self.metadata().documents(), Document::Sections)?;
        Ok(copied)
    }

    fn import_thread(&self, thread: &ThreadSummary, metadata: &MetadataFolder) -> Result<bool, StoreError> {
        let began = thread.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let began = began.get(8..27).unwrap_or_default().to_owned();
        let mut file = FileLines::open(&thread.path)?;
        let is_there = listing::find(self.parts(), thread.id)?;
        let mut there = match &is_there {
            Some(_) => Some(Reader::open(self.parts(), thread.id, ReadFrom::Start)?),
            None => None,
        };
        let mut copy = ThreadCopy { store: self, thread, began, exists: is_there.is_some(), writer: None };
        // The last line makes a copy complete, and is written at the end: an import that breaks off before has left
        // something to copy, which the next one notices.
        let mut last: Option<Vec<u8>> = None;
        while let Some(line) = file.next()? {
            let known = match &mut there {
                Some(reader) => reader.next_raw()?,
                None => None,
            };
            match known {
                Some(known) if known == line => {}
                Some(_) => return Err(PostgresError::Differs { thread: thread.id }.into()),
                None => last.replace(line).map_or(Ok(()), |line| copy.add(&line))?,
            }
        }
        let is_copied = last.is_some();
        if let Some(last) = last {
            copy.finish(&last, is_there.is_some_and(|there| there.name.is_some()))?;
        }
        for document in
            [Document::ReadState(thread.id), Document::Attachments(thread.id), Document::Repository(thread.id)]
        {
            copy_document(metadata, self.metadata().documents(), document)?;
        }
        Ok(is_copied)
    }

    /// Compares the threads of a home with those of the store, line by line. Lines that the store has in addition were
    /// written after the import.
    ///
    /// # Errors
    /// When the home cannot be listed, or the database cannot be used.
    pub fn compare_home(&self, home: &Path) -> Result<Checked, StoreError> {
        let mut checked = Checked::default();
        for thread in all_threads(&FileStore::of(home))? {
            checked.threads += 1;
            let problem = self.compare_thread(&thread, &mut checked.lines)?;
            checked.problems.extend(problem.map(|problem| format!("thread {}: {problem}", thread.id)));
        }
        Ok(checked)
    }

    fn compare_thread(&self, thread: &ThreadSummary, lines: &mut u64) -> Result<Option<String>, StoreError> {
        if listing::find(self.parts(), thread.id)?.is_none() {
            return Ok(Some("it is not in the store; run `codex store import` again".to_owned()));
        }
        let mut file = FileLines::open(&thread.path)?;
        let mut there = Reader::open(self.parts(), thread.id, ReadFrom::Start)?;
        let mut same = 0_u64;
        while let Some(line) = file.next()? {
            match there.next_raw()? {
                Some(known) if known == line => same += 1,
                Some(_) => return Ok(Some(format!("line {} differs from {}", same + 1, thread.path.display()))),
                None => {
                    let path = thread.path.display();
                    return Ok(Some(format!("{path} has more than {same} lines; run `codex store import` again")));
                }
            }
        }
        *lines += same;
        Ok(None)
    }

    /// Writes the threads of the store as files of a home, with their names. Files that are there already stay.
    ///
    /// # Errors
    /// When the folder cannot be written, or the database cannot be used.
    pub fn export_home(&self, home: &Path) -> Result<Copied, StoreError> {
        let files = FileStore::of(home);
        let mut copied = Copied::default();
        for thread in all_threads(self)? {
            let done = self.export_thread(&thread, home, &files);
            copied.count(&thread, done);
        }
        Ok(copied)
    }

    fn export_thread(&self, thread: &ThreadSummary, home: &Path, files: &FileStore) -> Result<bool, StoreError> {
        let id = Uuid::from(thread.id);
        let began: Option<String> = self.parts().database.wait(move |pool| async move {
            let row = pool.run(async |connection| connection.row(BEGAN, &[&id]).await).await?;
            row.map(|row| column(&row, "began", &pool.place)).transpose()
        })?;
        let began = began.ok_or(PostgresError::Missing { thread: thread.id })?;
        let name = format!("rollout-{began}-{}.jsonl", thread.id);
        let path = match (thread.archived, began.get(..4), began.get(5..7), began.get(8..10)) {
            (false, Some(year), Some(month), Some(day)) => home.join("sessions").join(year).join(month).join(day),
            _ => home.join("archived_sessions"),
        };
        let path = path.join(name);
        let mut lines = Reader::open(self.parts(), thread.id, ReadFrom::Start)?;
        let end = u64::try_from(lines.end()).unwrap_or_default();
        if path.metadata().is_ok_and(|about| about.len() >= end) {
            return Ok(false);
        }
        // Until it is complete, it has a name that no list shows.
        let part = path.with_extension("part");
        drop(std::fs::remove_file(&part));
        let mut file = RolloutFile::create(part.clone())?;
        while let Some(line) = lines.next_raw()? {
            file.append_text(&String::from_utf8_lossy(line));
            file.flush()?;
        }
        file.sync()()?;
        drop(file);
        std::fs::rename(&part, &path).map_err(PostgresError::from)?;
        files.index().record(&path)?;
        if let Some(name) = &thread.name {
            files.rename(thread.id, name)?;
        }
        Ok(true)
    }
}

/// The copy of a thread into the store.
struct ThreadCopy<'a> {
    store: &'a PostgresStore,
    thread: &'a ThreadSummary,
    /// The time of its start, as in file names.
    began: String,
    /// Whether the store has the thread.
    exists: bool,
    writer: Option<Writer>,
}

impl ThreadCopy<'_> {
    fn writer(&mut self) -> Result<&mut Writer, PostgresError> {
        let (parts, thread) = (self.store.parts(), self.thread.id);
        if self.writer.is_none() {
            let made = if self.exists {
                threads::open(parts, thread)?
            } else {
                threads::create(parts, thread, self.began.clone())?
            };
            self.writer = Some(made);
        }
        self.writer.as_mut().ok_or(PostgresError::Missing { thread })
    }

    /// Adds a line. It is written with others.
    fn add(&mut self, line: &[u8]) -> Result<(), PostgresError> {
        let writer = self.writer()?;
        writer.append_text(line);
        if writer.waiting_bytes() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), PostgresError> {
        if let Some(writer) = &mut self.writer {
            writer.flush()?;
            self.exists = true;
        }
        Ok(())
    }

    /// Copies the name, unless the store has one, and whether the thread is archived; and then the last line.
    fn finish(mut self, last: &[u8], has_name: bool) -> Result<(), StoreError> {
        let ThreadSummary { id, name, archived, .. } = self.thread;
        let name = name.as_deref().filter(|_| !has_name);
        if name.is_none() && !archived {
            self.add(last)?;
            return Ok(self.flush()?);
        }
        self.flush()?;
        // A thread of one line has to be there first.
        let is_alone = !self.exists;
        if is_alone {
            self.add(last)?;
            self.flush()?;
        }
        // Nobody may write a thread that is archived.
        self.writer = None;
        name.map_or(Ok(()), |name| self.store.rename(*id, name))?;
        if *archived {
            self.store.archive(*id)?;
        }
        if !is_alone {
            self.add(last)?;
            self.flush()?;
        }
        Ok(())
    }
}

/// Copies a document that is not there yet.
fn copy_document(from: &impl Documents, to: &impl Documents, document: Document) -> Result<(), StoreError> {
    let value: Value = from.read(document)?;
    if value.is_null() {
        return Ok(());
    }
    to.change(document, |there: &mut Value| {
        if there.is_null() {
            there.clone_from(&value);
        }
        Ok(())
    })?;
    Ok(())
}

/// The lines of a file as they are, up to the end that it had when it was opened.
struct FileLines {
    lines: std::io::Take<BufReader<File>>,
}

impl FileLines {
    fn open(path: &Path) -> Result<Self, PostgresError> {
        let file = codex_files::open(path).map_err(|error| PostgresError::Write(error.into()))?;
        let end = file.metadata()?.len();
        Ok(Self { lines: std::io::Read::take(BufReader::new(file), end) })
    }

    /// The next line. A last one that is not complete is left out.
    fn next(&mut self) -> Result<Option<Vec<u8>>, PostgresError> {
        let mut line = Vec::new();
        self.lines.read_until(b'\n', &mut line)?;
        if line.last() == Some(&b'\n') {
            line.pop();
            return Ok(Some(line));
        }
        let is_whole = std::str::from_utf8(&line).is_ok_and(|text| Line::parse(text).is_ok());
        Ok(is_whole.then_some(line))
    }
}
