//! The second version as a projection of the log.

pub(crate) mod item;
pub(crate) mod project;
pub(crate) mod thread;
