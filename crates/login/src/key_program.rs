//! Keys that a program prints: `[model_providers.<id>.auth]`.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use codex_config::{Env, KeyCommand, Programs, Secret};
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::LoginError;

/// The maximum length of a key.
const MOST_BYTES: u64 = 64 * 1024;

/// A program that prints a key. Concurrent requests share one run.
pub(crate) struct KeyProgram {
    provider: String,
    command: KeyCommand,
    env: Env,
    /// The last key, and the time when it was printed.
    known: Mutex<Option<(Secret, Instant)>>,
}

impl KeyProgram {
    pub(crate) fn new(provider: &str, command: KeyCommand, env: &Env) -> Self {
        Self { provider: provider.to_owned(), command, env: env.clone(), known: Mutex::default() }
    }

    /// The key: the last one, unless it is too old or was rejected.
    pub(crate) async fn key(&self, refused: Option<&str>) -> Result<Secret, LoginError> {
        let mut known = self.known.lock().await;
        if let Some((key, at)) = &*known {
            let is_young = self.command.refresh_interval.is_none_or(|span| at.elapsed() < span);
            if is_young && refused != Some(key.reveal()) {
                return Ok(key.clone());
            }
        }
        let key = self.ask().await.map_err(|why| LoginError::KeyProgram { provider: self.provider.clone(), why })?;
        *known = Some((key.clone(), Instant::now()));
        Ok(key)
    }

    /// Runs the program. Its standard error is not shown, because it may contain the key.
    async fn ask(&self) -> Result<Secret, String> {
        let program = self.program().ok_or_else(|| "was not found".to_owned())?;
        let mut command = Command::new(program);
        command.args(&self.command.args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        if let Some(cwd) = &self.command.cwd {
            command.current_dir(cwd);
        }
        let mut child = command.kill_on_drop(true).spawn().map_err(|error| format!("could not be started: {error}"))?;
        let mut output = Vec::new();
        let ended = timeout(self.command.timeout, async {
            if let Some(stdout) = child.stdout.take() {
                stdout.take(MOST_BYTES + 1).read_to_end(&mut output).await?;
            }
            child.wait().await
        });
        let status = match ended.await {
            Ok(status) => status.map_err(|error| format!("its output could not be read: {error}"))?,
            Err(_) => return Err(format!("took longer than {} ms", self.command.timeout.as_millis())),
        };
        if !status.success() {
            return Err(format!("failed: {status}"));
        }
        let key = std::str::from_utf8(&output).unwrap_or_default().trim();
        // A key becomes a header, and other characters would end it or start another.
        if key.is_empty() || output.len() as u64 > MOST_BYTES || !key.chars().all(|c| c.is_ascii_graphic()) {
            return Err("did not say a key".to_owned());
        }
        Ok(Secret::new(key))
    }

    fn program(&self) -> Option<PathBuf> {
        let command = &self.command.command;
        if command.contains('/') {
            Some(Path::new(command).to_owned())
        } else {
            Programs::new(&self.env, &[]).find(command)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn program(script: &str, refresh_interval: Option<Duration>) -> KeyProgram {
        let command = KeyCommand {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
            timeout: Duration::from_secs(10),
            refresh_interval,
            cwd: None,
        };
        KeyProgram::new("mine", command, &Env::from_iter([("PATH", "/usr/bin:/bin")]))
    }

    #[tokio::test]
    async fn a_key_is_asked_for_once_until_it_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("count");
        let script = format!("echo x >> {0}; echo key-$(wc -l < {0})", count.display());
        let program = program(&script, None);
        let keys = futures_util::future::join_all((0..50).map(|_| program.key(None))).await;
        assert!(keys.iter().all(|key| key.as_ref().unwrap().reveal() == "key-1"));
        assert_eq!(program.key(Some("key-0")).await.unwrap().reveal(), "key-1");
        assert_eq!(program.key(Some("key-1")).await.unwrap().reveal(), "key-2");
    }

    #[tokio::test]
    async fn a_key_that_is_old_is_asked_for_again() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("count");
        let script = format!("echo x >> {0}; echo key-$(wc -l < {0})", count.display());
        let program = program(&script, Some(Duration::from_nanos(1)));
        assert_eq!(program.key(None).await.unwrap().reveal(), "key-1");
        assert_eq!(program.key(None).await.unwrap().reveal(), "key-2");
    }

    #[tokio::test]
    async fn errors_of_a_key_program_are_reported_without_its_output() {
        let failed =
            |script: &'static str| async move { program(script, None).key(None).await.unwrap_err().to_string() };
        let begin = "the program for the key of mine";
        assert_eq!(failed("echo canary; exit 3").await, format!("{begin} failed: exit status: 3"));
        assert_eq!(failed("echo canary key").await, format!("{begin} did not say a key"));
        assert_eq!(failed("true").await, format!("{begin} did not say a key"));
        let mut slow = program("exec sleep 600", None);
        slow.command.timeout = Duration::from_millis(20);
        assert_eq!(slow.key(None).await.unwrap_err().to_string(), format!("{begin} took longer than 20 ms"));
        let mut absent = program("", None);
        absent.command.command = "no-such-program".to_owned();
        assert_eq!(absent.key(None).await.unwrap_err().to_string(), format!("{begin} was not found"));
    }
}
