//! The text of a file as lines of bytes, each with its own ending.
//!
//! Invariant: a byte-order mark belongs to the file and not to its first line, and joining the parts gives the original
//! bytes. Bytes that are not UTF-8 are treated like any others; a zero byte means that the file is not text.

use std::ops::Range;

pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// The ending of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// None: the last line of a file without a final newline.
    None,
    Lf,
    CrLf,
}

impl Ending {
    pub(crate) fn bytes(self) -> &'static [u8] {
        match self {
            Self::None => b"",
            Self::Lf => b"\n",
            Self::CrLf => b"\r\n",
        }
    }
}

/// The text of a file, split into lines.
#[derive(Debug, Clone)]
pub(crate) struct Text<'a> {
    bytes: &'a [u8],
    /// The start of each line, and the end of the last one.
    bounds: Vec<usize>,
}

impl<'a> Text<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self::cut(bytes, if bytes.starts_with(BOM) { BOM.len() } else { 0 })
    }

    /// The same, but with a byte-order mark as part of the first line.
    pub(crate) fn with_bom_inside(bytes: &'a [u8]) -> Self {
        Self::cut(bytes, 0)
    }

    fn cut(bytes: &'a [u8], start: usize) -> Self {
        let mut bounds = vec![start];
        bounds.extend((start..bytes.len()).filter(|&at| bytes[at] == b'\n').map(|at| at + 1));
        if bounds.last() != Some(&bytes.len()) {
            bounds.push(bytes.len());
        }
        Self { bytes, bounds }
    }

    /// The number of lines.
    pub(crate) fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    pub(crate) fn has_bom(&self) -> bool {
        self.bounds[0] > 0
    }

    /// The bytes before the first line.
    pub(crate) fn prefix(&self) -> &'a [u8] {
        &self.bytes[..self.bounds[0]]
    }

    /// A range of lines with their endings.
    pub(crate) fn piece(&self, lines: Range<usize>) -> &'a [u8] {
        &self.bytes[self.bounds[lines.start]..self.bounds[lines.end]]
    }

    /// A line with its ending.
    pub(crate) fn whole(&self, line: usize) -> &'a [u8] {
        self.piece(line..line + 1)
    }

    /// A line without its ending.
    pub(crate) fn body(&self, line: usize) -> &'a [u8] {
        let whole = self.whole(line);
        &whole[..whole.len() - self.ending(line).bytes().len()]
    }

    pub(crate) fn ending(&self, line: usize) -> Ending {
        let whole = self.whole(line);
        if whole.ends_with(b"\r\n") {
            Ending::CrLf
        } else if whole.ends_with(b"\n") {
            Ending::Lf
        } else {
            Ending::None
        }
    }

    /// Whether the last line has an ending; true for an empty text.
    pub(crate) fn ends_with_newline(&self) -> bool {
        self.len().checked_sub(1).is_none_or(|last| self.ending(last) != Ending::None)
    }

    /// The line ending near `line`: that of the line itself, or of the nearest one before it, or of the first.
    pub(crate) fn ending_near(&self, line: usize) -> Ending {
        let real = |at: &usize| self.ending(*at) != Ending::None;
        let below = line.min(self.len().saturating_sub(1));
        // Only the last line can lack an ending, so the search is short.
        let near = (0..=below).rev().take(2).filter(|at| *at < self.len()).find(real);
        near.map_or(Ending::Lf, |at| self.ending(at))
    }
}

/// Describes bytes that are not text.
pub(crate) fn not_text(bytes: &[u8]) -> Option<&'static str> {
    const KNOWN: &[(&[u8], &str)] = &[
        (b"\x7fELF", "a program"),
        (b"\x89PNG", "a PNG picture"),
        (b"\xff\xd8\xff", "a JPEG picture"),
        (b"GIF8", "a GIF picture"),
        (b"%PDF-", "a PDF document"),
        (b"PK\x03\x04", "a ZIP archive"),
        (b"\x1f\x8b", "gzip data"),
        (b"\xff\xfe", "UTF-16 text"),
        (b"\xfe\xff", "UTF-16 text"),
    ];
    if !bytes.contains(&0) {
        return None;
    }
    let known = KNOWN.iter().find(|(magic, _)| bytes.starts_with(magic));
    Some(known.map_or("binary data", |(_, name)| *name))
}
