//! Runs the program that writes the status line.
//!
//! Invariant: it runs for a second at most, and only the start of its output is read.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncReadExt as _;

const MOST_TIME: Duration = Duration::from_secs(1);
const MOST_BYTES: u64 = 4096;

/// The first bytes that a program prints within a second.
pub(super) async fn output(words: &[String], about: &Value, cwd: &Path) -> Result<String, String> {
    let (name, arguments) = words.split_first().ok_or("it is empty")?;
    let mut command = tokio::process::Command::new(name);
    command.args(arguments).current_dir(cwd).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    for (name, value) in about.as_object().into_iter().flatten() {
        command.env(name, value.as_str().unwrap_or_default());
    }
    let mut child = command.spawn().map_err(|error| format!("{name}: {error}"))?;
    let Some(output) = child.stdout.take() else { return Err("it has no output".to_owned()) };
    let mut bytes = Vec::new();
    let reading = async {
        output.take(MOST_BYTES).read_to_end(&mut bytes).await?;
        child.wait().await
    };
    match tokio::time::timeout(MOST_TIME, reading).await {
        Ok(Ok(_)) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Ok(Err(error)) => Err(format!("{name}: {error}")),
        Err(_) => Err(format!("{name} takes longer than a second")),
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
