//! A thread as an append-only log of events: its vocabulary, and the lines that store it.
//!
//! Everything that clients see of a thread is a projection of its events. Files store them as lines in the form that
//! other releases read too; only this crate knows the contents of a line.
//!
//! Invariant: types and pure functions. No files, no clock, no async runtime.

pub mod agents;
pub mod client_tools;
pub mod decode;
mod delta;
pub mod draft;
pub mod encode;
mod event;
pub mod history;
pub mod item;
pub mod keys;
pub mod line;
pub mod messages;
pub mod open_items;
pub mod permissions;
mod plans;
mod question;
pub mod queue;
mod read_state;
pub mod replay_buffer;
mod request_item;
pub mod review;
mod seq;
pub mod settings;
mod shared_id;
pub mod state;
pub mod store;
pub mod turn_marks;
mod weight;

pub use delta::Delta;
pub use event::{
    Abort, Body, Class, Compacted, Event, Failure, Outcome, Record, ReviewEntered, RolledBack, ThreadStarted, TurnId,
    limit_words,
};
pub use item::{
    AgentMessage, CommandEnd, CommandItem, CommandStatus, Item, ItemId, PatchEnd, PatchItem, PatchStatus, Reasoning,
    Status, StoredItem, UserMessage, WebSearch,
};
pub use question::{Answer, Elicitation, ElicitationForm, Question, QuestionId, QuestionKind};
pub use read_state::{ReadState, Unread};
pub use seq::{LogId, MOST_WITHOUT_LINE, Seq};
