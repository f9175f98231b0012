//! The reasons why a thread could not start.

use std::error::Error;
use std::fmt;

/// The reason why a thread could not start, with its own message and causes.
#[derive(Debug)]
pub struct StartError {
    fault: Fault,
    error: Box<dyn Error + Send + Sync>,
}

/// The origin of the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The request.
    Request,
    /// The host: for example, the thread could not be saved.
    Host,
}

impl StartError {
    #[must_use]
    pub fn new(fault: Fault, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { fault, error: error.into() }
    }

    #[must_use]
    pub fn fault(&self) -> Fault {
        self.fault
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for StartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}
