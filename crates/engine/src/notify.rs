//! The program that the user has configured to be notified when a turn has ended.
//!
//! It runs outside of every sandbox, so nothing in a workspace may choose it: it starts in `CODEX_HOME`, and a program
//! that is named without a folder is not looked up where commands can write.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use codex_config::{Env, Programs};
use codex_log::TurnId;
use codex_log::settings::Settings;
use codex_wire::ids::ThreadId;
use serde_json::json;
use tokio::process::Command;
use tokio::time::timeout;

use codex_tools::trusted_git::writable_folders;

/// The time limit of the program. Nothing waits for it, and it may outlive this process; the limit only keeps it from
/// running forever next to a server.
const PATIENCE: Duration = Duration::from_secs(60);

/// The message for the notification program.
pub(crate) struct Notice<'a> {
    pub(crate) home: &'a Path,
    pub(crate) thread: ThreadId,
    pub(crate) turn: &'a TurnId,
    pub(crate) settings: &'a Settings,
    pub(crate) said: Vec<String>,
    pub(crate) last_message: Option<&'a str>,
}

/// Starts the program with the event as an additional argument. Its result does not affect the thread.
pub(crate) fn notify(argv: &[String], notice: &Notice<'_>) {
    let [program, arguments @ ..] = argv else { return };
    let told = json!({
        "type": "agent-turn-complete",
        "thread-id": notice.thread,
        "turn-id": notice.turn.as_str(),
        "cwd": notice.settings.cwd,
        "input-messages": notice.said,
        "last-assistant-message": notice.last_message,
    });
    let writable = writable_folders(&notice.settings.cwd, Some(&notice.settings.sandbox_policy));
    let programs = Programs::new(&Env::process(), &writable);
    let Some(program) = locate(program, notice.home, &programs) else { return };
    let mut command = Command::new(program);
    command.args(arguments).arg(told.to_string()).current_dir(notice.home).env("PATH", programs.path());
    // Its output must not reach ours, which may be a protocol.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    codex_sandbox::with_first_descriptor_limit(command.as_std_mut());
    if let Ok(mut child) = command.spawn() {
        tokio::spawn(async move {
            if timeout(PATIENCE, child.wait()).await.is_err() {
                // A program that cannot be killed has ended.
                let _: std::io::Result<()> = child.kill().await;
            }
        });
    }
}

/// The path of the program: a relative path starts at the folder of the configuration that names it.
fn locate(program: &str, home: &Path, programs: &Programs) -> Option<PathBuf> {
    if program.contains('/') { Some(home.join(program)) } else { programs.find(program) }
}
