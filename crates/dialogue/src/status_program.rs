//! Runs the program that writes the status line.
//!
//! Invariant: it runs for a second at most, and only the start of its output is read.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::program;

const MOST_TIME: Duration = Duration::from_secs(1);
const MOST_BYTES: u64 = 4096;

/// The first bytes that a program prints within a second.
///
/// # Errors
/// If it cannot be started or takes longer. The error is for people.
pub async fn output(words: &[String], about: &Value, cwd: &Path) -> Result<String, String> {
    let (name, arguments) = words.split_first().ok_or("it is empty")?;
    let mut command = tokio::process::Command::new(name);
    command.args(arguments).current_dir(cwd);
    for (name, value) in about.as_object().into_iter().flatten() {
        command.env(name, value.as_str().unwrap_or_default());
    }
    match program::output(command, MOST_TIME, MOST_BYTES).await {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(format!("{name} takes longer than a second")),
        Err(error) => Err(format!("{name}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn shell(script: &str) -> Result<String, String> {
        let words = ["sh", "-c", script].map(str::to_owned);
        output(&words, &json!({"CODEX_MODEL": "m1"}), Path::new("/")).await
    }

    #[tokio::test]
    async fn a_program_sees_what_the_line_is_about() {
        assert_eq!(shell("echo \"$CODEX_MODEL in $PWD\"").await, Ok("m1 in /\n".to_owned()));
    }

    /// The clock stands still and goes on only while nothing happens, so this takes no second.
    #[tokio::test(start_paused = true)]
    async fn a_program_that_does_not_end_is_ended() {
        assert_eq!(shell("echo early; sleep 1000").await, Err("sh takes longer than a second".to_owned()));
    }

    #[tokio::test]
    async fn a_program_that_prints_without_end_is_cut() {
        assert_eq!(shell("yes").await.map(|text| text.len()), Ok(4096));
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_named() {
        let words = ["/nowhere/status".to_owned()];
        let failed = output(&words, &json!({}), Path::new("/")).await;
        assert!(failed.as_ref().is_err_and(|why| why.starts_with("/nowhere/status: ")), "{failed:?}");
    }
}
