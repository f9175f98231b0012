//! Reads the summary of a thread from the start of its file.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use chrono::{DateTime, Utc};
use codex_log::Body;
use codex_log::decode::{Decoder, Wanted};
use codex_log::line::{ItemHead, Line};
use codex_log::store::{Entry, ThreadSummary};
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
    let mut meta: Option<SessionMeta> = None;
    let (mut preview, mut fallback) = (None, None);
    let wanted = Wanted::META | Wanted::SHOWN | Wanted::GOALS;
    let (mut decoder, mut events) = (Decoder::new(wanted), Vec::new());
    let mut lost = LostMeta::default();
    while let Some(entry) = lines.next_entry()? {
        let Entry::Line(line) = entry else { continue };
        lost.see(&line);
        // Most items of a conversation are not user messages, which their head shows without parsing them.
        if fallback.is_none() && line.kind == "response_item" {
            fallback = said_in_item(&line);
        }
        decoder.line(&line, &mut events);
        for event in events.drain(..) {
            match event.body {
                Body::ThreadStarted(started) => meta = Some(started.meta),
                body if preview.is_none() => preview = said_in_event(&body),
                _ => {}
            }
        }
        if (meta.is_some() && preview.is_some()) || line.number >= HEAD_LINES || line.range.end >= HEAD_LENGTH {
            break;
        }
    }
    let meta = meta.or_else(|| lost.guess(path)).ok_or_else(|| ReadError::NoMeta { path: path.to_owned() })?;
    let began = DateTime::parse_from_rfc3339(&meta.timestamp).map(|time| time.to_utc()).ok();
    let named = || path.file_name()?.to_str().and_then(RolloutName::parse)?.began();
    Ok(ThreadSummary {
        id: meta.id,
        path: path.to_owned(),
        preview: preview.or(fallback).map(|text| shorten(&text)).unwrap_or_default(),
        created_at: began.or_else(named).unwrap_or_else(|| state.written()),
        updated_at: state.written(),
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
        section: None,
    })
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
