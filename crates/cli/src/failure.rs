//! Errors as people see them: one line of what and where, and a hint on a line of its own.

use std::process::ExitCode;

use codex_config::{AuthError, ConfigError, ConfigWriteError, HomeError};
use codex_engine::ConnectError;
use codex_transport::DialError;

use crate::console;
use crate::login;
use crate::output_file::OutputError;

/// An error with a next step for the person.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub(crate) struct Hinted {
    /// What is wrong, and where.
    pub(crate) what: String,
    /// The next step.
    pub(crate) hint: String,
}

/// Says what went wrong on stderr and gives the exit status.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        // Whoever read the output has seen enough.
        return ExitCode::SUCCESS;
    }
    say(error);
    ExitCode::FAILURE
}

/// Says what went wrong on stderr, for an exit status of its own.
pub(crate) fn say(error: &anyhow::Error) {
    console::note(format_args!("error: {error:#}"));
    if let Some(hint) = hint(error) {
        console::note(format_args!("hint: {hint}"));
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    causes.any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
}

fn hint(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        if let Some(error) = cause.downcast_ref::<ConfigError>() {
            error.hint()
        } else if let Some(error) = cause.downcast_ref::<HomeError>() {
            error.hint()
        } else if let Some(error) = cause.downcast_ref::<AuthError>() {
            login::hint(error)
        } else if let Some(error) = cause.downcast_ref::<ConfigWriteError>() {
            error.hint()
        } else if let Some(error) = cause.downcast_ref::<OutputError>() {
            error.hint()
        } else if let Some(Hinted { hint, .. }) = cause.downcast_ref() {
            Some(hint.clone())
        } else if let Some(DialError::Connect { .. }) = cause.downcast_ref() {
            Some("start a server there, or in the background with `codex app-server daemon start`".to_owned())
        } else {
            cause.downcast_ref::<ConnectError>()?.hint().map(str::to_owned)
        }
    })
}
