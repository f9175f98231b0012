//! The second version as a projection of the log.

pub(crate) mod history;
pub(crate) mod item;
pub(crate) mod project;
pub(crate) mod request;
pub(crate) mod thread;
