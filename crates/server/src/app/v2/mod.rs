//! The second version: threads as it describes them.

pub(crate) mod thread;
