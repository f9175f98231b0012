//! The last known state of a server, kept on disk, so that a thread can offer its tools before it has started.
//!
//! Invariants: a file that is missing, broken or too long is the same as none. Nothing in it decides whether a tool may
//! run: a call waits for the server, and is judged by the description that the server then gives.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codex_wire::mcp::Tool;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{private_file, session};

/// The longest file.
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// The maximum number of servers that are remembered.
const MOST_FILES: usize = 64;

/// The state of a server when it last ran.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct State {
    /// Whether it spoke the version without a handshake.
    pub(crate) is_stateless: bool,
    /// Whether it started.
    pub(crate) was_ready: bool,
    pub(crate) tools: Vec<Tool>,
}

/// The form on disk.
#[derive(Serialize, Deserialize)]
struct Stored<T> {
    stateless: bool,
    ready: bool,
    tools: Vec<T>,
}

/// The last known state of one server.
pub(crate) struct Remembered {
    file: PathBuf,
    state: Mutex<Option<Arc<State>>>,
}

impl Remembered {
    /// Reads the state of a server from the folder with all of them, by a digest of its configuration.
    pub(crate) fn read(folder: &Path, digest: &str) -> Self {
        let file = folder.join(format!("{digest}.json"));
        let state = Mutex::new(read(&file).map(Arc::new));
        Self { file, state }
    }

    /// The state, if the server has ever run.
    pub(crate) fn state(&self) -> Option<Arc<State>> {
        self.lock().clone()
    }

    /// Keeps a state, and writes it in the background if it is another one. It needs a runtime.
    pub(crate) fn keep(&self, state: State) {
        let mut current = self.lock();
        if current.as_deref() == Some(&state) {
            return;
        }
        let state = Arc::new(state);
        *current = Some(Arc::clone(&state));
        let file = self.file.clone();
        tokio::task::spawn_blocking(move || write(&file, &state));
    }

    /// Notes that the server has not started.
    pub(crate) fn keep_failure(&self) {
        let before = self.state().unwrap_or_default();
        self.keep(State { was_ready: false, ..(*before).clone() });
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<State>>> {
        // Every change is one assignment, so a panic elsewhere cannot have left half of one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(file: &Path) -> Option<State> {
    let text = codex_files::read_text(file, MOST_BYTES as u64).ok()?;
    let stored: Stored<Value> = serde_json::from_str(&text).ok()?;
    let tools = stored.tools.into_iter().filter_map(|tool| session::usable(tool).ok()).collect();
    Some(State { is_stateless: stored.stateless, was_ready: stored.ready, tools })
}

fn write(file: &Path, state: &State) {
    let State { is_stateless, was_ready, tools } = state;
    let encode = |tools: Vec<&Tool>| {
        serde_json::to_vec(&Stored { stateless: *is_stateless, ready: *was_ready, tools }).unwrap_or_default()
    };
    let mut bytes = encode(tools.iter().collect());
    if bytes.len() > MOST_BYTES {
        // A part of the list would look as if the rest had been removed.
        bytes = encode(Vec::new());
    }
    // A state that cannot be kept costs the next start a moment, and nothing else.
    let _: std::io::Result<()> = private_file::replace(file, &bytes);
    if let Some(folder) = file.parent() {
        private_file::keep_newest(folder, MOST_FILES);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state() -> State {
        let tool = json!({"name": "t", "description": "d", "inputSchema": {"type": "object"}});
        State { is_stateless: true, was_ready: true, tools: vec![serde_json::from_value(tool).unwrap()] }
    }

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cache/x.json");
        write(&file, &state());
        assert_eq!(Remembered::read(&folder.path().join("cache"), "x").state().as_deref(), Some(&state()));
        assert_eq!(Remembered::read(folder.path(), "y").state(), None);
    }

    #[test]
    fn a_file_that_is_broken_or_too_long_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.json");
        let long = format!(r#"{{"stateless":false,"ready":true,"tools":[]{}}}"#, " ".repeat(MOST_BYTES));
        for text in ["", "{", "[]", r#"{"tools":7}"#, &long] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(read(&file), None);
        }
        std::fs::write(&file, r#"{"stateless":false,"ready":true,"tools":[7,{"name":"x"}]}"#).unwrap();
        assert_eq!(read(&file), Some(State { was_ready: true, ..State::default() }), "odd tools are left out");
    }

    #[test]
    fn a_list_that_is_too_long_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.json");
        let mut long = state();
        long.tools[0].output_schema = Some(json!({"description": "x".repeat(MOST_BYTES)}));
        write(&file, &long);
        assert_eq!(read(&file), Some(State { tools: Vec::new(), ..state() }));
    }

    #[tokio::test]
    async fn a_failure_keeps_the_tools_and_says_that_it_failed() {
        let folder = tempfile::tempdir().unwrap();
        let remembered = Remembered::read(folder.path(), "x");
        remembered.keep(state());
        remembered.keep_failure();
        assert_eq!(remembered.state().as_deref(), Some(&State { was_ready: false, ..state() }));
    }
}
