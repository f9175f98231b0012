//! The thread files of a home: their paths, summaries and names.

mod names;
mod places;
mod said;
mod summary;

pub(crate) use names::{NAMES_FILE, append_name, read_names};
pub(crate) use places::{ARCHIVED, RolloutName, SESSIONS, day_folder, local_time};
pub use places::{PlaceError, ThreadFile, check_path};
pub(crate) use said::{beginning, call_text, is_said_by_the_harness, message_text};
pub(crate) use summary::{FileState, read_summary};
