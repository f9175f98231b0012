//! A thread as others see it: the handle that drives it, the requests that reach its task, the feeds of its log, and
//! the trait of whoever runs threads.
//!
//! Whoever serves threads to clients and whoever runs them both stand on this crate, and need not know each other.
//!
//! Invariant: no task is spawned, no file is read and nothing is timed here. A feed never makes the thread wait.

pub mod encodings;
mod feed;
pub mod goal;
mod handle;
mod host;
mod profile;
mod request;
mod start_error;
mod subscription;

pub use feed::{Feed, FeedWriter, Published, feed};
pub use handle::Thread;
pub use host::{Beginning, BoxFuture, ExplicitOverrides, OpeningTurn, StartThread, StartedThread, ThreadHost};
pub use profile::{ClientProfile, HistoryMode};
pub use request::{Closed, OpenQuestions, QuestionName, ThreadRequest, TurnInput, TurnStart, WayBack};
pub use start_error::{Fault, StartError};
pub use subscription::{Cursor, FeedStart, Subscription};
