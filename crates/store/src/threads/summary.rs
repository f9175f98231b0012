//! Reads the summary of a thread from the start of its file.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use chrono::{DateTime, Utc};
use codex_log::decode::{Decoder, Wanted};
use codex_log::line::{ItemHead, Line};
use codex_log::store::{Entry, ThreadSummary};
use codex_log::{Body, Event};
use codex_wire::rollout::SessionMeta;

use super::message_text::{beginning, is_generated, message_text};
use super::places::RolloutName;
use crate::rollout::{LostMeta, ReadError, RolloutLines};

/// The number of lines that are searched for the first user message.
const HEAD_LINES: u64 = 100;
const HEAD_LENGTH: u64 = 4 << 20;

/// The maximum size of the stored first user message.
const PREVIEW_BYTES: usize = 4096;

/// Editors put context before this mark, and the user's message after it.
const REQUEST_MARK: &str = "## My request for Codex:";

/// The state of a file, for detecting changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileState {
    pub(crate) size: i64,
    /// The time of the last write, in nanoseconds.
    pub(crate) mtime: i64,
}

impl FileState {
    pub(crate) fn of(about: &Metadata) -> Self {
        let mtime = about.mtime().saturating_mul(1_000_000_000).saturating_add(about.mtime_nsec());
        Self { size: i64::try_from(about.size()).unwrap_or(i64::MAX), mtime }
    }

    pub(crate) fn written(self) -> DateTime<Utc> {
        DateTime::from_timestamp_nanos(self.mtime)
    }
}

/// Reads the summary of a thread. The caller fills in its name and whether it is archived.
pub(crate) fn read_summary(path: &Path, state: FileState) -> Result<ThreadSummary, ReadError> {
    let mut lines = RolloutLines::open_head(path)?;
    let mut reader = SummaryReader::default();
    let mut lost = LostMeta::default();
    while let Some(entry) = lines.next_entry()? {
        let Entry::Line(line) = entry else { continue };
        lost.see(&line);
        if reader.line(&line) {
            break;
        }
    }
    reader.meta = reader.meta.or_else(|| lost.guess(path));
    let named = path.file_name().and_then(|name| name.to_str()).and_then(RolloutName::parse);
    let began = named.and_then(|name| name.began()).unwrap_or_else(|| state.written());
    let summary = reader.summary(path, began, state.written());
    summary.ok_or_else(|| ReadError::NoMeta { path: path.to_owned() })
}

/// Makes the summary of a thread from its first lines.
#[derive(Debug)]
pub struct SummaryReader {
    meta: Option<SessionMeta>,
    preview: Option<String>,
    /// The preview if no event has one.
    fallback: Option<String>,
    decoder: Decoder,
    events: Vec<Event>,
}

impl Default for SummaryReader {
    fn default() -> Self {
        let decoder = Decoder::new(Wanted::META | Wanted::SHOWN | Wanted::GOALS);
        Self { meta: None, preview: None, fallback: None, decoder, events: Vec::new() }
    }
}

impl SummaryReader {
    /// Takes the next line, and returns whether later ones change nothing.
    pub fn line(&mut self, line: &Line<'_>) -> bool {
        // Most items of a conversation are not user messages, which their head shows without parsing them.
        if self.fallback.is_none() && line.kind == "response_item" {
            self.fallback = said_in_item(line);
        }
        self.decoder.line(line, &mut self.events);
        for event in self.events.drain(..) {
            match event.body {
                Body::ThreadStarted(started) => self.meta = Some(started.meta),
                body if self.preview.is_none() => self.preview = said_in_event(&body),
                _ => {}
            }
        }
        let is_complete = self.meta.is_some() && self.preview.is_some();
        is_complete || line.number >= HEAD_LINES || line.range.end >= HEAD_LENGTH
    }

    /// The summary so far; `None` if no line has identified the thread. If its first line does not say when it began, it
    /// began at `began`.
    #[must_use]
    pub fn summary(&self, place: &Path, began: DateTime<Utc>, updated_at: DateTime<Utc>) -> Option<ThreadSummary> {
        let meta = self.meta.clone()?;
        let created_at = DateTime::parse_from_rfc3339(&meta.timestamp).map_or(began, |time| time.to_utc());
        let preview = self.preview.as_deref().or(self.fallback.as_deref());
        Some(ThreadSummary {
            id: meta.id,
            path: place.to_owned(),
            preview: preview.map(shorten).unwrap_or_default(),
            created_at,
            updated_at,
            cwd: meta.cwd,
            provider: meta.model_provider,
            source: meta.source,
            originator: meta.originator,
            cli_version: meta.cli_version,
            git: meta.git,
            name: None,
            archived: false,
            parent: meta.lineage.parent_thread_id,
            forked_from: meta.lineage.forked_from_id,
            thread_source: meta.lineage.thread_source,
            section: None,
        })
    }
}

fn said_in_event(body: &Body) -> Option<String> {
    let text = match body {
        Body::ReviewEntered(review) if review.hint.is_empty() => return None,
        Body::ReviewEntered(review) => return Some(format!("Review: {}", review.hint)),
        Body::GoalChanged(goal) => goal.objective.clone(),
        Body::ItemCompleted(item) => item.said()?.texts().join("\n"),
        _ => return None,
    };
    is_said(&text).then_some(text)
}

fn said_in_item(line: &Line<'_>) -> Option<String> {
    if !ItemHead::of(line.payload)?.is_message_of("user") {
        return None;
    }
    message_text(line.payload.get()).filter(|text| is_said(text))
}

fn is_said(text: &str) -> bool {
    !text.trim().is_empty() && !is_generated(text)
}

fn shorten(text: &str) -> String {
    let text = text.split_once(REQUEST_MARK).map_or(text, |(_, request)| request).trim();
    beginning(text, PREVIEW_BYTES).to_owned()
}
