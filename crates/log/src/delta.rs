//! Deltas of items.

use codex_wire::event::ExecOutputStream;
use codex_wire::text::Text;

/// A delta of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// More text of a message.
    Text(Text),
    /// A new part of a reasoning summary begins.
    SummaryPart {
        /// The index of the part, from 0.
        index: i64,
    },
    /// More of a reasoning summary.
    Summary {
        /// The index of the part, from 0.
        index: i64,
        text: Text,
    },
    /// More raw reasoning.
    Raw {
        /// The index of the part, from 0.
        index: i64,
        text: Text,
    },
    /// More output of a command.
    Output {
        /// The stream that it was printed on.
        stream: ExecOutputStream,
        /// The bytes, which need not be UTF-8.
        bytes: Vec<u8>,
    },
}

impl Delta {
    /// Whether another delta can be appended to it: it has the same kind and part.
    #[must_use]
    pub fn continues(&self, next: &Self) -> bool {
        match (self, next) {
            (Self::Text(_), Self::Text(_)) => true,
            (Self::Summary { index: a, .. }, Self::Summary { index: b, .. })
            | (Self::Raw { index: a, .. }, Self::Raw { index: b, .. }) => a == b,
            (Self::Output { stream: a, .. }, Self::Output { stream: b, .. }) => a == b,
            _ => false,
        }
    }

    /// Releases unused capacity.
    pub fn shrink_to_fit(&mut self) {
        match self {
            Self::Text(text) | Self::Summary { text, .. } | Self::Raw { text, .. } => text.shrink_to_fit(),
            Self::Output { bytes, .. } => bytes.shrink_to_fit(),
            Self::SummaryPart { .. } => {}
        }
    }

    /// Appends a delta that continues it.
    pub fn append(&mut self, next: &Self) {
        match (self, next) {
            (Self::Text(text), Self::Text(more))
            | (Self::Summary { text, .. }, Self::Summary { text: more, .. })
            | (Self::Raw { text, .. }, Self::Raw { text: more, .. }) => text.push_str(more),
            (Self::Output { bytes, .. }, Self::Output { bytes: more, .. }) => bytes.extend_from_slice(more),
            _ => {}
        }
    }
}
