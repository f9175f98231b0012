//! Human-readable errors: one line with the problem and its place, and a hint on a separate line.

use std::process::ExitCode;

use codex_config::{AuthError, ConfigError, ConfigWriteError, HomeError};
use codex_files::OutputError;
use codex_login::LoginError;
use codex_store::locate::LocateError;
use codex_transport::DialError;

use crate::console;
use crate::login;

#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub(crate) struct ErrorWithHint {
    pub(crate) what: String,
    pub(crate) hint: String,
}

/// Prints an error to stderr and returns the exit status.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        // The reader of the output has seen enough.
        return ExitCode::SUCCESS;
    }
    say(error);
    ExitCode::FAILURE
}

/// Prints an error to stderr, for a caller with its own exit status.
pub(crate) fn say(error: &anyhow::Error) {
    console::note(format_args!("error: {error:#}"));
    if let Some(hint) = hint(error) {
        console::note(format_args!("hint: {hint}"));
    }
}

pub(crate) fn warn(what: &str) {
    console::note(format_args!("warning: {what}"));
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    causes.any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
}

/// A next step for the person, from the first cause that has one.
pub(crate) fn hint(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        if let Some(error) = cause.downcast_ref::<ConfigError>() {
            error.hint()
        } else if let Some(error) = cause.downcast_ref::<HomeError>() {
            error.hint()
        } else if let Some(error) = cause.downcast_ref::<AuthError>() {
            login::hint(error)
        } else if let Some(error) = cause.downcast_ref::<LoginError>() {
            error.hint()
        } else if let Some(error) = cause.downcast_ref::<ConfigWriteError>() {
            error.hint()
        } else if let Some(error) = cause.downcast_ref::<OutputError>() {
            error.hint()
        } else if let Some(ErrorWithHint { hint, .. }) = cause.downcast_ref() {
            Some(hint.clone())
        } else if let Some(LocateError::None { hint, .. }) = cause.downcast_ref() {
            Some(hint.clone())
        } else if let Some(DialError::Connect { .. }) = cause.downcast_ref() {
            Some("start a server there, or one in the background with `codex app-server daemon start`".to_owned())
        } else {
            None
        }
    })
}
