//! Lists of the threads in a section, or in none.

use codex_log::store::{ListQuery, SectionFilter};
use codex_wire::ids::ThreadId;

use super::IndexError;
use crate::thread_metadata::{MetadataError, Sections};

/// The threads that a section filter selects.
#[derive(Debug)]
pub enum Members {
    All,
    AllBut(Vec<ThreadId>),
    /// These, in the order of their section.
    Only(Vec<ThreadId>),
}

impl Members {
    /// The threads that a filter selects.
    ///
    /// # Errors
    /// When there is no such section.
    pub fn of(filter: &SectionFilter, sections: &Sections) -> Result<Self, MetadataError> {
        Ok(match filter {
            SectionFilter::Any => Self::All,
            SectionFilter::Outside => Self::AllBut(sections.all_threads()),
            SectionFilter::In(section) => Self::Only(sections.threads(section)?),
        })
    }

    /// The position of a thread in its section.
    #[must_use]
    pub fn place(&self, thread: ThreadId) -> Option<usize> {
        match self {
            Self::Only(threads) => threads.iter().position(|member| *member == thread),
            Self::All | Self::AllBut(_) => None,
        }
    }

    /// The page of a list in section order, and one more entry.
    pub fn sort<T>(
        &self,
        listed: Vec<T>,
        id: impl Fn(&T) -> ThreadId,
        query: &ListQuery,
    ) -> Result<Vec<T>, IndexError> {
        let after = query.cursor.as_deref().map(|cursor| self.read_cursor(cursor)).transpose()?;
        let is_wanted = |place: usize| match after {
            None => true,
            Some(Cursor { place: there, is_gone: false }) if query.ascending => place > there,
            // The successor of a removed thread has taken its place.
            Some(Cursor { place: there, is_gone: true }) if query.ascending => place >= there,
            Some(Cursor { place: there, .. }) => place < there,
        };
        let placed = listed.into_iter().filter_map(|listed| Some((self.place(id(&listed))?, listed)));
        let mut placed: Vec<(usize, T)> = placed.filter(|(place, _)| is_wanted(*place)).collect();
        placed.sort_by_key(|(place, _)| *place);
        if !query.ascending {
            placed.reverse();
        }
        placed.truncate(query.limit.saturating_add(1));
        Ok(placed.into_iter().map(|(_, listed)| listed).collect())
    }

    /// The cursor after a thread.
    #[must_use]
    pub fn cursor(&self, last: ThreadId) -> String {
        format!("{}|{last}", self.place(last).unwrap_or_default())
    }

    fn read_cursor(&self, cursor: &str) -> Result<Cursor, IndexError> {
        let wrong = || IndexError::Cursor { cursor: cursor.to_owned() };
        let (place, thread) = cursor.split_once('|').ok_or_else(wrong)?;
        let (Ok(place), Ok(thread)) = (place.parse(), thread.parse()) else { return Err(wrong()) };
        Ok(match self.place(thread) {
            Some(place) => Cursor { place, is_gone: false },
            None => Cursor { place, is_gone: true },
        })
    }
}

/// The end of a page.
struct Cursor {
    place: usize,
    /// Whether the thread at this position is no longer in the section.
    is_gone: bool,
}
