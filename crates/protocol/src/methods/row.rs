//! The rows of the table of methods.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A method of the table.
pub trait Method: Sized + 'static {
    const NAME: &'static str;
    /// Its parameters.
    type Params: Serialize + DeserializeOwned + Send;
    /// Its response.
    type Response: Serialize + DeserializeOwned + Send;
}

/// The order in which requests are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Immediately, before the next line is read.
    Connection,
    /// Concurrently with all others.
    Process,
    /// After earlier requests about the same thread, which its parameters name.
    Thread,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub name: &'static str,
    /// Names that other releases use.
    pub aliases: &'static [&'static str],
    /// The order in which its requests are served.
    pub scope: Scope,
    /// The first release that had it.
    pub since: &'static str,
    /// A summary in one sentence.
    pub about: &'static str,
}
