//! Writes frames to the terminal, on a thread of its own.
//!
//! Invariant: a terminal that takes no bytes blocks only that thread. A frame that was not written yet is replaced by the
//! next one, so frames are dropped and never queued; each is one synchronized update. The terminal obeys only control
//! sequences that are added here.

use std::io::{self, Write};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use codex_terminal::theme::Theme;

use crate::{Row, Style, printable};

/// The time limit for the last frame when the screen is left.
const LAST_FRAME: Duration = Duration::from_secs(1);

/// The most bytes of a frame that are written at once.
const PIECE_BYTES: usize = 4096;

/// The contents of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub rows: Vec<Row>,
    /// The row and column of the cursor, if there is one.
    pub cursor: Option<(usize, usize)>,
    pub theme: Theme,
    /// Whether everything is drawn again.
    pub is_whole: bool,
}

/// A number that a frame is known by.
pub type FrameNumber = u64;

#[derive(Debug, Default)]
struct Slot {
    frame: Option<(FrameNumber, Frame)>,
    /// Sequences that are not part of a frame, such as the clipboard or a title.
    sequences: Vec<u8>,
    is_writing: bool,
    is_over: bool,
    /// Whether the rest of what is being written is left out.
    is_abandoned: bool,
}

type Shared = Arc<(Mutex<Slot>, Condvar)>;

/// The thread that writes.
#[derive(Debug)]
pub struct Painter {
    shared: Shared,
    /// The frames that were written, with the time right before the end of each; 0 for anything else.
    written: mpsc::Receiver<(FrameNumber, Instant)>,
    next: FrameNumber,
}

fn lock(shared: &Shared) -> MutexGuard<'_, Slot> {
    shared.0.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Painter {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system has no room for a thread.
    pub fn start(out: impl Write + Send + 'static) -> io::Result<Self> {
        let shared = Shared::default();
        let (sender, written) = mpsc::channel(64);
        let theirs = Arc::clone(&shared);
        std::thread::Builder::new().name("paint".to_owned()).spawn(move || paint(out, &theirs, &sender))?;
        Ok(Self { shared, written, next: 0 })
    }

    /// Shows a frame as soon as the terminal takes it, instead of one that was not written yet.
    pub fn show(&mut self, mut frame: Frame) -> FrameNumber {
        self.next += 1;
        let mut slot = lock(&self.shared);
        if slot.is_over {
            return self.next;
        }
        frame.is_whole |= slot.frame.take().is_some_and(|(_, missed)| missed.is_whole);
        slot.frame = Some((self.next, frame));
        self.shared.1.notify_all();
        self.next
    }

    /// Whether the last frame is still to be written.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        let slot = lock(&self.shared);
        slot.is_writing || slot.frame.is_some()
    }

    /// Sends a sequence that is not part of a frame.
    pub fn send(&mut self, sequence: &[u8]) {
        let mut slot = lock(&self.shared);
        // A terminal that takes nothing gets no more of them.
        if !slot.is_over && slot.sequences.len() < 4 * 1024 * 1024 {
            slot.sequences.extend_from_slice(sequence);
        }
        self.shared.1.notify_all();
    }

    /// Waits until a frame was written. Cancel safe.
    pub async fn written(&mut self) -> Option<(FrameNumber, Instant)> {
        self.written.recv().await
    }

    /// Waits until everything is written; `false` if the terminal takes nothing.
    #[must_use]
    pub fn finish(&self) -> bool {
        let (slot, is_finished) = wait(&self.shared, lock(&self.shared));
        is_finished && !slot.is_abandoned
    }

    /// The switch that ends the frames.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.shared))
    }
}

/// Ends the frames of a painter for good, from any thread.
#[derive(Debug, Clone)]
pub struct Stopper(Shared);

impl Stopper {
    /// Waits for the end of the frame that is being written, so that no part of it comes later; `false` if the terminal
    /// takes nothing, and the rest of the frame is left out.
    #[must_use]
    pub fn stop(&self) -> bool {
        let mut slot = lock(&self.0);
        slot.is_over = true;
        slot.frame = None;
        slot.sequences.clear();
        let (mut slot, is_finished) = wait(&self.0, slot);
        slot.is_abandoned = !is_finished;
        is_finished
    }
}

/// Waits until everything is written. If the terminal does not take it in time, the rest is dropped.
fn wait<'a>(shared: &'a Shared, mut slot: MutexGuard<'a, Slot>) -> (MutexGuard<'a, Slot>, bool) {
    let deadline = Instant::now() + LAST_FRAME;
    while slot.is_writing || slot.frame.is_some() || !slot.sequences.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            slot.frame = None;
            slot.sequences.clear();
            return (slot, false);
        }
        slot = shared.1.wait_timeout(slot, left).unwrap_or_else(PoisonError::into_inner).0;
    }
    (slot, true)
}

impl Drop for Painter {
    fn drop(&mut self) {
        lock(&self.shared).is_over = true;
        self.shared.1.notify_all();
    }
}

/// Writes what there is until it is over or the terminal is gone.
fn paint(mut out: impl Write, shared: &Shared, written: &mpsc::Sender<(FrameNumber, Instant)>) {
    let mut shown = Shown::default();
    loop {
        let (frame, sequences) = {
            let mut slot = lock(shared);
            while slot.frame.is_none() && slot.sequences.is_empty() {
                if slot.is_over {
                    return;
                }
                slot = shared.1.wait(slot).unwrap_or_else(PoisonError::into_inner);
            }
            slot.is_writing = true;
            (slot.frame.take(), std::mem::take(&mut slot.sequences))
        };
        let (number, mut bytes) = frame.map_or((0, Vec::new()), |(number, frame)| (number, shown.update(frame)));
        bytes.extend(sequences);
        let last = write(&mut out, &bytes, || lock(shared).is_abandoned);
        lock(shared).is_writing = false;
        shared.1.notify_all();
        let Ok(last) = last else { return };
        // A reader that is behind needs only later ones.
        let _: Result<(), _> = written.try_send((number, last));
    }
}

/// Writes bytes until they are abandoned; returns the time before the last of them.
fn write(out: &mut impl Write, bytes: &[u8], is_abandoned: impl Fn() -> bool) -> io::Result<Instant> {
    let mut before = Instant::now();
    for piece in bytes.chunks(PIECE_BYTES) {
        if is_abandoned() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        before = Instant::now();
        out.write_all(piece)?;
        out.flush()?;
    }
    Ok(before)
}

/// Prints text for as long as the terminal takes it; `false` if it takes nothing any more, and the rest is left out.
#[must_use]
pub fn print(mut out: impl Write + Send + 'static, bytes: Vec<u8>) -> bool {
    let (progress, pieces) = std::sync::mpsc::channel();
    let writing = move || write(&mut out, &bytes, || progress.send(()).is_err());
    if std::thread::Builder::new().name("print".to_owned()).spawn(writing).is_err() {
        return false;
    }
    loop {
        match pieces.recv_timeout(LAST_FRAME) {
            Ok(()) => {}
            Err(RecvTimeoutError::Disconnected) => return true,
            Err(RecvTimeoutError::Timeout) => return false,
        }
    }
}

/// The screen as it was written last.
#[derive(Debug, Default)]
pub struct Shown {
    rows: Vec<Row>,
    cursor: Option<(usize, usize)>,
    theme: Option<Theme>,
}

impl Shown {
    /// The bytes that turn the screen into a frame.
    #[must_use]
    pub fn update(&mut self, frame: Frame) -> Vec<u8> {
        let is_whole = frame.is_whole || self.rows.len() != frame.rows.len() || self.theme != Some(frame.theme);
        let changed: Vec<usize> =
            (0..frame.rows.len()).filter(|at| is_whole || self.rows.get(*at) != frame.rows.get(*at)).collect();
        if changed.is_empty() && self.cursor == frame.cursor {
            return Vec::new();
        }
        let mut bytes = b"\x1b[?2026h\x1b[?25l".to_vec();
        for at in changed {
            place(&mut bytes, at, 0);
            row(&mut bytes, &frame.rows[at], frame.theme);
        }
        if let Some((at, column)) = frame.cursor {
            place(&mut bytes, at, column);
            bytes.extend(b"\x1b[?25h");
        }
        bytes.extend(b"\x1b[?2026l");
        *self = Self { rows: frame.rows, cursor: frame.cursor, theme: Some(frame.theme) };
        bytes
    }
}

fn place(bytes: &mut Vec<u8>, row: usize, column: usize) {
    bytes.extend(format!("\x1b[{};{}H", row + 1, column + 1).into_bytes());
}

/// The bytes of a row, which clear what was behind it.
fn row(bytes: &mut Vec<u8>, row: &[crate::Span], theme: Theme) {
    bytes.extend(b"\x1b[0m");
    spans(bytes, row, theme);
    bytes.extend(b"\x1b[K");
}

/// A sequence that tmux passes on to the terminal around it.
#[must_use]
pub fn through_tmux(sequence: &str) -> String {
    format!("\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b"))
}

/// The bytes of styled text.
pub fn spans(bytes: &mut Vec<u8>, row: &[crate::Span], theme: Theme) {
    for span in row {
        let text = printable(&span.text);
        let link = (span.style == Style::Link && is_address(&text)).then_some(&*text);
        if let Some(link) = link {
            bytes.extend(format!("\x1b]8;;{link}\x1b\\").into_bytes());
        }
        match theme.code(span.style) {
            Some(code) => bytes.extend(format!("\x1b[{code}m{text}\x1b[0m").into_bytes()),
            None => bytes.extend(text.as_bytes()),
        }
        if link.is_some() {
            bytes.extend(b"\x1b]8;;\x1b\\");
        }
    }
}

/// Whether a text is an address that it links to itself. Nothing links to an address that is not shown.
fn is_address(text: &str) -> bool {
    let is_web = text.starts_with("https://") || text.starts_with("http://");
    is_web && text.chars().all(|c| c.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;
    use codex_terminal::theme::ThemeName;

    fn frame(rows: &[&str]) -> Frame {
        let rows = rows.iter().map(|text| vec![Span::new(Style::Plain, *text)]).collect();
        Frame { rows, cursor: None, theme: Theme::new(ThemeName::Plain, false, false), is_whole: false }
    }

    #[test]
    fn only_rows_that_changed_are_written() {
        let mut shown = Shown::default();
        assert!(!shown.update(frame(&["one", "two"])).is_empty());
        assert!(shown.update(frame(&["one", "two"])).is_empty(), "nothing has changed");
        let bytes = String::from_utf8(shown.update(frame(&["one", "TWO"]))).expect("it is text");
        assert_eq!(bytes, "\x1b[?2026h\x1b[?25l\x1b[2;1H\x1b[0mTWO\x1b[K\x1b[?2026l");
    }

    /// A terminal that takes bytes only when it is told to.
    struct Stuck(std::sync::mpsc::Receiver<()>, Arc<Mutex<Vec<u8>>>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
            self.1.lock().expect("no panic").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn frames_that_a_terminal_does_not_take_are_dropped() {
        let (allow, allowed) = std::sync::mpsc::channel();
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let mut painter = Painter::start(Stuck(allowed, Arc::clone(&bytes))).expect("a thread");
        painter.show(frame(&["first"]));
        for number in 0..1000 {
            painter.show(frame(&[&format!("frame {number}")]));
        }
        let last = painter.show(frame(&["last"]));
        for _ in 0..8 {
            allow.send(()).expect("it writes");
        }
        while painter.written().await.map(|(number, _)| number) != Some(last) {}
        let text = String::from_utf8(bytes.lock().expect("no panic").clone()).expect("it is text");
        assert!(text.contains("last") && text.len() < 500, "{text:?}");
    }

    #[test]
    fn text_is_printed_while_the_terminal_takes_it() {
        let (allow, allowed) = std::sync::mpsc::channel();
        let bytes = Arc::new(Mutex::new(Vec::new()));
        for _ in 0..3 {
            allow.send(()).expect("it writes");
        }
        assert!(print(Stuck(allowed, Arc::clone(&bytes)), vec![b'x'; 3 * PIECE_BYTES]));
        assert_eq!(bytes.lock().expect("no panic").len(), 3 * PIECE_BYTES);
        let (allow, allowed) = std::sync::mpsc::channel();
        allow.send(()).expect("it writes");
        assert!(!print(Stuck(allowed, bytes), vec![b'x'; 3 * PIECE_BYTES]), "the rest is left out");
    }

    #[test]
    fn a_sequence_through_tmux_has_its_escapes_doubled() {
        assert_eq!(through_tmux("\x1b]9;hi\x07"), "\x1bPtmux;\x1b\x1b]9;hi\x07\x1b\\");
    }

    #[test]
    fn text_is_no_sequence_and_only_visible_addresses_are_links() {
        let mut bytes = Vec::new();
        let row = [Span::new(Style::Plain, "\x1b[2Ja\u{202e}"), Span::new(Style::Link, "https://example.org/a")];
        spans(&mut bytes, &row, Theme::new(ThemeName::Plain, false, false));
        let text = String::from_utf8(bytes).expect("it is text");
        assert!(text.starts_with("\u{fffd}[2Ja\u{fffd}\x1b]8;;https://example.org/a\x1b\\"), "{text:?}");
        assert!(!is_address("https://example.org/\x07") && !is_address("javascript:1"));
    }
}
