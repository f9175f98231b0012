//! Why a thread could not start.

use std::error::Error;
use std::fmt;

/// Why a thread could not start: whatever went wrong, in its own words and with its own causes.
#[derive(Debug)]
pub struct StartError {
    fault: Fault,
    hint: Option<String>,
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
        Self { fault, hint: None, error: error.into() }
    }

    /// The same, with a next step for a person.
    #[must_use]
    pub fn with_hint(self, hint: Option<impl Into<String>>) -> Self {
        Self { hint: hint.map(Into::into), ..self }
    }

    /// Where the fault lies.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.fault
    }

    /// A next step, shown on a line of its own.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
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
