//! Reasons why a command did not start.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// The reason why a command did not start. None of it has run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The argument list is empty.
    #[error("the command is empty")]
    Empty,
    /// An argument, a variable or a path contains a zero byte.
    #[error("{what} contains a zero byte")]
    ZeroByte { what: &'static str },
    /// The program does not exist, neither as a path nor on the command's own `PATH`.
    #[error("no such program: {}", program.display())]
    NoSuchProgram { program: OsString },
    /// The program exists but cannot be executed.
    #[error("cannot execute {}", program.display())]
    Execute { program: OsString, source: io::Error },
    /// The working directory cannot be entered.
    #[error("cannot enter the folder {}", cwd.display())]
    Cwd { cwd: PathBuf, source: io::Error },
    /// A workspace is a different folder than when the thread named it, so nothing may be written there.
    #[error("{} is a different folder than when the thread started", path.display())]
    Moved { path: PathBuf },
    /// Nothing on this host can sandbox commands, so the caller must ask before it runs one without a sandbox.
    #[error("commands cannot be confined here: {why}")]
    CannotConfine { why: String },
    /// One step of setting up the sandbox failed, so the command was not run.
    #[error("cannot confine the command: {step}{}", at(path.as_ref()))]
    Confine {
        step: Step,
        /// The path that the step concerned, if any.
        path: Option<PathBuf>,
        source: io::Error,
    },
    /// The process could not be created.
    #[error("cannot start the command: {step}")]
    Start { step: Step, source: io::Error },
}

fn at(path: Option<&PathBuf>) -> String {
    path.map(|path| format!(" at {}", path.display())).unwrap_or_default()
}

impl SpawnError {
    /// A hint for the user or the model, shown on its own line.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::CannotConfine { .. } => Some("ask for approval to run the command without a sandbox"),
            Self::NoSuchProgram { .. } => Some("check the spelling, or the PATH that the command is given"),
            Self::Moved { .. } => Some("put the folder back, or resume the thread to work in the new one"),
            Self::Empty
            | Self::ZeroByte { .. }
            | Self::Execute { .. }
            | Self::Cwd { .. }
            | Self::Confine { .. }
            | Self::Start { .. } => None,
        }
    }
}

macro_rules! steps {
    ($($variant:ident = $text:literal,)*) => {
        /// A step between the request and the running command.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Step {
            $(#[doc = concat!("Failed to ", $text, ".")] $variant,)*
        }

        impl Step {
            #[cfg(target_os = "linux")]
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant),*];
        }

        impl fmt::Display for Step {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(match self { $(Self::$variant => concat!("failed to ", $text)),* })
            }
        }
    };
}

steps! {
    Descriptors = "make pipes or a terminal",
    Placeholder = "hold a protected name",
    Rules = "make the Landlock rules",
    Clone = "make a process",
    Namespaces = "make namespaces",
    UserMap = "map the user",
    Private = "detach the mounts from the outside",
    OpenFolder = "find a writable folder",
    ReadOnly = "make everything read-only",
    Devices = "make a small /dev",
    Processes = "mount /proc",
    MountOpen = "open a writable folder",
    MountClosed = "close a protected place",
    HomeOverlay = "hide what is secret in the home",
    Privileges = "give up privileges",
    Landlock = "apply the Landlock rules",
    Filter = "apply the system call filter",
    Terminal = "take the terminal",
    Streams = "set up the standard streams",
    Enter = "enter the working directory",
    Execute = "execute the program",
    Group = "limit the memory of the command",
}
