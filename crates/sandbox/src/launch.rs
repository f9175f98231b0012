//! The description of a command to run, and its outcome.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::profile::Profile;

/// A command to run.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program and its arguments. A program without a slash is looked up on the `PATH` in `env`.
    pub argv: Vec<OsString>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The complete environment; nothing is added.
    pub env: Vec<(OsString, OsString)>,
    pub confinement: Confinement,
    pub stdio: Stdio,
    /// The maximum number of processes and threads that it may add to all that run now; `None` for the user's own limit
    /// only.
    pub most_processes: Option<u32>,
    /// The memory limit in bytes for all of its processes together, where it can be enforced; see
    /// [`crate::unenforced_memory_limit`].
    pub most_memory: Option<u64>,
}

/// The restrictions on a command.
#[derive(Debug, Clone)]
pub enum Confinement {
    /// None beyond those of this process. Its processes still end with it.
    None,
    /// Those of the profile, enforced by the best mechanism on this host; see [`crate::level`].
    Policy(Box<Profile>),
}

impl From<Option<Profile>> for Confinement {
    fn from(profile: Option<Profile>) -> Self {
        profile.map_or(Self::None, |profile| Self::Policy(Box::new(profile)))
    }
}

/// The standard streams of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdio {
    /// No stdin, and pipes for stdout and stderr.
    Pipes,
    /// A pipe for each of the three.
    PipesWithInput,
    /// A new terminal for all three.
    Pty {
        /// The height in characters.
        rows: u16,
        /// The width in characters.
        cols: u16,
        /// Whether output is passed on unchanged, without a carriage return before each line feed.
        is_verbatim: bool,
    },
    /// The streams of this process.
    Inherit,
}

/// The outcome of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// It was killed by this signal.
    Signal(i32),
}

impl Exit {
    /// The code that a shell would report: 128 plus the signal number for a signal.
    #[must_use]
    pub fn shell_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

/// The sandboxing mechanisms of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxLevel {
    /// Namespaces and a system call filter, backed by Landlock where the kernel has it (`landlock_abi` > 0).
    Namespaces {
        /// The version of Landlock; 0 for none.
        landlock_abi: u32,
    },
    /// Landlock and a system call filter. Less is writable than the policy allows; see [`crate::explain`].
    Landlock {
        /// The version of Landlock.
        abi: u32,
    },
    /// None: commands with a policy are refused, and the caller must ask.
    Nothing { why: String },
}
