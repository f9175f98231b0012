//! Sections: groups that the user sorts threads into, each thread into at most one, in the user's order.

use chrono::{DateTime, Utc};
use codex_log::store::{Appearance, InSection, Section};
use codex_wire::ids::ThreadId;
use serde::{Deserialize, Serialize};

use super::{Document, Documents, MetadataError, StoredMetadata, check_length, check_text};

/// The maximum number of sections, and of threads in all of them.
const MOST_SECTIONS: usize = 200;
const MOST_THREADS: usize = 10_000;

/// The maximum lengths of names, colours and icons, in bytes.
const MOST_NAME_BYTES: usize = 256;
const MOST_LOOK_BYTES: usize = 128;

fn check(appearance: &Appearance) -> Result<(), MetadataError> {
    check_length("color", appearance.color.as_ref().map_or(0, String::len), MOST_LOOK_BYTES)?;
    check_length("icon", appearance.icon.as_ref().map_or(0, String::len), MOST_LOOK_BYTES)
}

/// All sections with their threads, as stored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sections {
    sections: Vec<Sorted>,
}

/// A section with its threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Sorted {
    #[serde(flatten)]
    section: Section,
    #[serde(default)]
    threads: Vec<Member>,
}

/// A thread in a section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Member {
    id: ThreadId,
    since: i64,
}

impl Sections {
    /// The section of a thread.
    #[must_use]
    pub fn of(&self, thread: ThreadId) -> Option<InSection> {
        self.sections.iter().find_map(|sorted| {
            let member = sorted.threads.iter().find(|member| member.id == thread)?;
            Some(InSection { section: sorted.section.clone(), since: member.since })
        })
    }

    /// The threads of a section, in order.
    pub fn threads(&self, section: &str) -> Result<Vec<ThreadId>, MetadataError> {
        let sorted = self.sections.iter().find(|sorted| sorted.section.id == section);
        let sorted = sorted.ok_or_else(|| missing(section))?;
        Ok(sorted.threads.iter().map(|member| member.id).collect())
    }

    /// The threads of all sections.
    #[must_use]
    pub fn all_threads(&self) -> Vec<ThreadId> {
        self.sections.iter().flat_map(|sorted| &sorted.threads).map(|member| member.id).collect()
    }

    fn find(&mut self, section: &str) -> Result<&mut Sorted, MetadataError> {
        let sorted = self.sections.iter_mut().find(|sorted| sorted.section.id == section);
        sorted.ok_or_else(|| missing(section))
    }

    fn take_out(&mut self, thread: ThreadId) {
        for sorted in &mut self.sections {
            sorted.threads.retain(|member| member.id != thread);
        }
    }

    fn put(&mut self, thread: ThreadId, section: &str, before: Option<ThreadId>) -> Result<(), MetadataError> {
        let stays = self.of(thread).filter(|now| now.section.id == section);
        let since = stays.map_or_else(|| DateTime::<Utc>::from(codex_wire::time::now()).timestamp(), |now| now.since);
        self.take_out(thread);
        if self.all_threads().len() >= MOST_THREADS {
            return Err(MetadataError::TooMany { what: "threads in sections", most: MOST_THREADS });
        }
        let members = &mut self.find(section)?.threads;
        let place = match before {
            None => members.len(),
            Some(before) => {
                let place = members.iter().position(|member| member.id == before);
                place.ok_or_else(|| MetadataError::NotThere { thread: before, section: section.to_owned() })?
            }
        };
        members.insert(place, Member { id: thread, since });
        Ok(())
    }
}

fn missing(section: &str) -> MetadataError {
    MetadataError::NoSection { section: section.to_owned() }
}

impl<D: Documents> StoredMetadata<D> {
    /// The sections, oldest first.
    pub fn sections(&self) -> Result<Vec<Section>, MetadataError> {
        let Sections { sections } = self.sorted()?;
        let mut sections: Vec<Section> = sections.into_iter().map(|sorted| sorted.section).collect();
        sections.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(sections)
    }

    /// Creates a section.
    pub fn create_section(&self, name: String, appearance: Option<Appearance>) -> Result<Section, MetadataError> {
        check_text("name", &name, MOST_NAME_BYTES)?;
        appearance.iter().try_for_each(check)?;
        self.documents.change(Document::Sections, |sections: &mut Sections| {
            if sections.sections.len() >= MOST_SECTIONS {
                return Err(MetadataError::TooMany { what: "sections", most: MOST_SECTIONS });
            }
            let section =
                Section { id: ThreadId::fresh().to_string(), name: name.clone(), appearance: appearance.clone() };
            sections.sections.push(Sorted { section: section.clone(), threads: Vec::new() });
            Ok(section)
        })
    }

    /// Renames a section, and changes its appearance if given.
    pub fn update_section(
        &self,
        section: &str,
        name: String,
        appearance: Option<Option<Appearance>>,
    ) -> Result<Section, MetadataError> {
        check_text("name", &name, MOST_NAME_BYTES)?;
        appearance.iter().flatten().try_for_each(check)?;
        self.documents.change(Document::Sections, |sections: &mut Sections| {
            let updated = &mut sections.find(section)?.section;
            updated.name.clone_from(&name);
            if let Some(appearance) = &appearance {
                updated.appearance.clone_from(appearance);
            }
            Ok(updated.clone())
        })
    }

    /// Deletes a section. Its threads are then in none.
    pub fn delete_section(&self, section: &str) -> Result<(), MetadataError> {
        self.documents.change(Document::Sections, |sections: &mut Sections| {
            sections.find(section)?;
            sections.sections.retain(|sorted| sorted.section.id != section);
            Ok(())
        })
    }

    /// Moves a thread into a section before another one or to its end, or removes it from its section.
    pub fn move_thread(
        &self,
        thread: ThreadId,
        section: Option<&str>,
        before: Option<ThreadId>,
    ) -> Result<(), MetadataError> {
        self.documents.change(Document::Sections, |sections: &mut Sections| {
            if let Some(section) = section {
                sections.put(thread, section, before)
            } else {
                sections.take_out(thread);
                Ok(())
            }
        })
    }

    /// All sections with their threads.
    pub fn sorted(&self) -> Result<Sections, MetadataError> {
        self.documents.read(Document::Sections)
    }

    /// Removes a thread from its section, if it is in one.
    pub(super) fn leave_section(&self, thread: ThreadId) -> Result<(), MetadataError> {
        let is_in_one = self.sorted().is_ok_and(|sections| sections.of(thread).is_some());
        if is_in_one { self.move_thread(thread, None, None) } else { Ok(()) }
    }
}
