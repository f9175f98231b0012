//! A thread as seen from outside: the handle that drives it, the requests to its task, the feeds of its log, and the
//! trait of its host.
//!
//! The server, which serves threads to clients, and the engine, which runs them, both build on this crate and need not
//! know each other.
//!
//! Invariant: no task is spawned, no file is read and no clock is used here. A feed never blocks the thread.

mod children;
pub mod encodings;
mod feed;
pub mod goal;
mod handle;
mod host;
mod permissions;
mod profile;
pub mod queue;
mod request;
mod start_error;
mod subscription;
mod terminals;

pub use children::{Children, LoadedThreads};
pub use feed::{Feed, FeedWriter, Published, feed};
pub use handle::Thread;
pub use host::{
    BoxFuture, ClientAdditions, ExplicitOverrides, InitialHistory, OpeningTurn, StartThread, StartedThread, ThreadHost,
};
pub use permissions::PermissionsRequest;
pub use profile::{ClientProfile, HistoryMode};
pub use request::{
    Closed, OpenQuestions, QuestionName, RewindOutcome, ServersRequest, ThreadRequest, TurnInput, TurnStart,
};
pub use start_error::{Fault, StartError};
pub use subscription::{Cursor, FeedStart, Subscription};
pub use terminals::TerminalsRequest;
