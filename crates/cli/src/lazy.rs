//! Builds the options of a command only when that command is used.
//!
//! Every start of the program parses its command line, and most options belong to other commands.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

use clap::builder::{Resettable, StyledStr};
use clap::{ArgMatches, Args, Command, FromArgMatches};

use crate::args::RepeatableArgs;

thread_local! {
    static AT_ONCE: Cell<bool> = const { Cell::new(false) };
}

/// Builds all commands at once, for code that needs all of them: clap copies what it completes after `help` before it
/// builds anything.
pub(crate) fn at_once(describe: impl FnOnce() -> Command) -> Command {
    AT_ONCE.set(true);
    let described = describe();
    AT_ONCE.set(false);
    described
}

/// The options of a command.
#[derive(Debug)]
pub(crate) struct Lazy<T>(Box<T>);

impl<T> Lazy<T> {
    pub(crate) fn into_inner(self) -> T {
        *self.0
    }
}

impl<T> Deref for Lazy<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Lazy<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Args> Args for Lazy<T> {
    fn augment_args(command: Command) -> Command {
        let describe = |command| with_repeated(keeping_about(command, T::augment_args));
        if AT_ONCE.get() { describe(command) } else { command.defer(describe) }
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<T: FromArgMatches> FromArgMatches for Lazy<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Box::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// Adds the global options to a command, and to all its subcommands that are built.
fn with_repeated(command: Command) -> Command {
    with_own_repeated(command.mut_subcommands(with_repeated))
}

/// Adds the global options to a command.
pub(crate) fn with_own_repeated(command: Command) -> Command {
    keeping_about(command, RepeatableArgs::augment_args)
}

/// Adds options. The description of a command comes from where it is listed, not from its options.
fn keeping_about(command: Command, add: impl Fn(Command) -> Command) -> Command {
    let (about, long_about) = (command.get_about().cloned(), command.get_long_about().cloned());
    let keep = Resettable::<StyledStr>::from;
    add(command).about(keep(about)).long_about(keep(long_about))
}
