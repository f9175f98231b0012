//! What is to be run, and how it ended.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::profile::Profile;

/// A command to run.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program and its arguments. A program without a slash is looked up on the `PATH` in `env`.
    pub argv: Vec<OsString>,
    /// Where it starts.
    pub cwd: PathBuf,
    /// Its whole environment; nothing is added.
    pub env: Vec<(OsString, OsString)>,
    /// What it may do.
    pub confinement: Confinement,
    /// What its standard streams are.
    pub stdio: Stdio,
    /// How many processes and threads it may have beside all that run now, under the user's own limit; none for that alone.
    pub most_processes: Option<u32>,
    /// How many bytes of memory all of its processes together may use, where that can be enforced; see
    /// [`crate::unenforced_memory_limit`].
    pub most_memory: Option<u64>,
}

/// What a command may do.
#[derive(Debug, Clone)]
pub enum Confinement {
    /// Whatever this process may do. Its processes still end with it.
    None,
    /// What the profile says, enforced by the best that this host offers; see [`crate::level`].
    Policy(Box<Profile>),
}

impl From<Option<Profile>> for Confinement {
    fn from(profile: Option<Profile>) -> Self {
        profile.map_or(Self::None, |profile| Self::Policy(Box::new(profile)))
    }
}

/// What the standard streams of a command are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdio {
    /// Nothing to read, and a pipe each for output and errors.
    Pipes,
    /// A pipe for each of the three.
    PipesWithInput,
    /// A new terminal for all three.
    Pty {
        /// Its height in characters.
        rows: u16,
        /// Its width in characters.
        cols: u16,
        /// Whether output passes as it is, without a carriage return before each line end.
        is_verbatim: bool,
    },
    /// Those of this process.
    Inherit,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Exit {
    /// The code that a shell would show: 128 and the signal's number for a signal.
    #[must_use]
    pub fn shell_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

/// What this host offers to confine commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxLevel {
    /// Namespaces and a system call filter, with Landlock behind them where the kernel has it (`landlock_abi` > 0).
    Namespaces {
        /// The version of Landlock; 0 for none.
        landlock_abi: u32,
    },
    /// Landlock and a system call filter. Less can be written than the policy says; see [`crate::explain`].
    Landlock {
        /// The version of Landlock.
        abi: u32,
    },
    /// Nothing: commands with a policy are refused, and the caller must ask.
    Nothing {
        /// What is missing.
        why: String,
    },
}
