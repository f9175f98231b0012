//! Why a thread could not start.

use std::error::Error;
use std::fmt;

/// Why a thread could not start: whatever went wrong, in its own words and with its own causes.
#[derive(Debug)]
pub struct StartError {
    fault: Fault,
    error: Box<dyn Error + Send + Sync>,
}

/// Where the fault lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// In what was asked for.
    Request,
    /// With whoever runs the thread: it could not be saved, for one.
    Host,
}

impl StartError {
    /// What went wrong.
    #[must_use]
    pub fn new(fault: Fault, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { fault, error: error.into() }
    }

    /// Where the fault lies.
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
