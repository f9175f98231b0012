//! The thread files of a home: their paths, summaries and names.

mod message_text;
mod names;
mod places;
mod summary;

pub(crate) use message_text::{beginning, call_text, is_generated, message_text};
pub(crate) use names::{NAMES_FILE, append_name, read_names};
pub(crate) use places::{ARCHIVED, RolloutName, SESSIONS, day_folder, local_time};
pub use places::{PlaceError, ThreadFile, check_path};
pub use summary::SummaryReader;
pub(crate) use summary::{FileState, read_summary};
