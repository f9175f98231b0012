//! The program in an empty environment, with its own folders for everything it may touch.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::shapes;

/// The time to wait for the program before a test fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// The folders of one run: `home` for `CODEX_HOME`, `user` for `HOME`, `tmp` for `TMPDIR`, `project` to work in.
pub(crate) struct Place {
    folder: PathBuf,
    /// Removes the folder, unless it belongs to another process.
    _kept: Option<TempDir>,
    variables: Vec<(String, String)>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        for name in ["home", "user", "tmp", "project"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder can be made");
        }
        Self { folder: folder.path().to_owned(), _kept: Some(folder), variables: Vec::new() }
    }

    /// The place of another process, which has made its folders.
    pub(crate) fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), _kept: None, variables: Vec::new() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file.
    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        std::fs::write(self.path(name), text).expect("a file can be written");
        self
    }

    /// Sets a variable.
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The entries of a folder.
    pub(crate) fn entries(&self, name: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path(name)).expect("the folder is there");
        entries.map(|entry| entry.expect("an entry can be read").path()).collect()
    }

    /// Replaces the folder's path in a text with `TEMP`.
    pub(crate) fn without_path(&self, text: &str) -> String {
        let real = self.folder.canonicalize().expect("the folder is there");
        let shown = |path: &Path| path.display().to_string();
        text.replace(&shown(&real), "TEMP").replace(&shown(&self.folder), "TEMP")
    }

    /// The program, not started yet.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_codex"));
        command
            .args(args)
            .env_clear()
            .env("CODEX_HOME", self.path("home"))
            .env("HOME", self.path("user"))
            .env("TMPDIR", self.path("tmp"))
            .envs(self.variables.iter().cloned())
            .current_dir(self.path("project"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Starts the program.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        let mut child = self.command(args).spawn().expect("the program starts");
        let input = child.stdin.take();
        let (sender, lines) = channel();
        let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        thread::spawn(move || {
            let mut line = Vec::new();
            while stdout.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                let text = String::from_utf8_lossy(&line).into_owned();
                if sender.send(text).is_err() {
                    return;
                }
                line.clear();
            }
        });
        let (sender, errors) = channel();
        let mut stderr = child.stderr.take().expect("it is piped");
        thread::spawn(move || {
            let mut bytes = Vec::new();
            // A partial message is still worth showing.
            let _: std::io::Result<usize> = stderr.read_to_end(&mut bytes);
            let _: Result<(), _> = sender.send(String::from_utf8_lossy(&bytes).into_owned());
        });
        Running { child, input, lines, read: String::new(), errors }
    }

    /// Runs the program with an input to its end.
    pub(crate) fn run(&self, args: &[&str], input: &str) -> Run {
        let mut running = self.start(args);
        running.send(input);
        running.finish()
    }
}

/// The running program. It is killed when dropped.
pub(crate) struct Running {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// The lines read so far.
    read: String,
    errors: Receiver<String>,
}

/// The result of a run.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Running {
    /// Writes to the program's standard input.
    pub(crate) fn send(&mut self, text: &str) {
        let input = self.input.as_mut().expect("the input is open");
        // A program that has failed already reads nothing, and the test checks how it failed.
        let _: std::io::Result<()> = input.write_all(text.as_bytes()).and_then(|()| input.flush());
    }

    /// Reads up to the first event of a kind, and returns it.
    pub(crate) fn until(&mut self, kind: &str) -> Value {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("waited in vain for {kind}"));
            self.read.push_str(&line);
            let event: Value = serde_json::from_str(&line).expect("every line is JSON");
            if event["msg"]["type"] == kind || event["type"] == kind {
                return event;
            }
        }
    }

    /// Reads the next line, which must be JSON.
    pub(crate) fn message(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("a line comes in time");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Reads up to the first line that contains a text, and returns it.
    pub(crate) fn line_with(&mut self, text: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("waited in vain for {text}"));
            self.read.push_str(&line);
            if line.contains(text) {
                return line.trim().to_owned();
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Closes the input and waits for the end.
    pub(crate) fn finish(mut self) -> Run {
        self.input = None;
        self.wait()
    }

    /// Waits for the end with the input still open.
    pub(crate) fn wait(mut self) -> Run {
        let stderr = self.errors.recv_timeout(PATIENCE).expect("the program ends");
        let mut stdout = std::mem::take(&mut self.read);
        stdout.extend(self.lines.iter());
        let code = self.child.wait().expect("the program has ended").code();
        Run { code, stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _: std::io::Result<()> = self.child.kill();
        let _: std::io::Result<std::process::ExitStatus> = self.child.wait();
    }
}

impl Run {
    /// The events on standard output, which must contain nothing else.
    pub(crate) fn events(&self) -> Vec<Value> {
        assert!(self.stdout.is_empty() || self.stdout.ends_with('\n'), "half a line: {}", self.stdout);
        let event = |line: &str| {
            let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            let members: Vec<_> = event.as_object().expect("an event is an object").keys().cloned().collect();
            assert_eq!(members, ["id", "msg"], "{line}");
            shapes::check("Event", &event);
            event
        };
        self.stdout.lines().map(event).collect()
    }

    /// The lines of `exec --json`.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let line = |line: &str| {
            let event = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            shapes::check("exec/ThreadEvent", &event);
            event
        };
        self.stdout.lines().map(line).collect()
    }

    /// The types of the lines of `exec --json`, with those of items.
    pub(crate) fn line_kinds(&self) -> String {
        let kind = |line: &Value| {
            let item = line["item"]["type"].as_str().map(|item| format!(" {item}")).unwrap_or_default();
            format!("{}{item}\n", line["type"].as_str().unwrap_or_default())
        };
        self.lines().iter().map(kind).collect()
    }

    /// The ids and types of the events.
    pub(crate) fn kinds(&self) -> String {
        let kind = |event: &Value| format!("{} {}\n", event["id"], event["msg"]["type"].as_str().unwrap_or_default());
        self.events().iter().map(kind).collect()
    }
}

/// A submission with a text, as a line.
pub(crate) fn say(id: &str, text: &str) -> String {
    format!(r#"{{"id":"{id}","op":{{"type":"user_input","items":[{{"type":"text","text":"{text}"}}]}}}}"#) + "\n"
}

/// Whether commands can be confined here so that git can commit.
pub(crate) fn has_sandbox() -> bool {
    matches!(codex_sandbox::level(), codex_sandbox::SandboxLevel::Namespaces { .. })
}

/// Waits for a condition that another process brings about, for half a minute at most.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !holds() {
        assert!(std::time::Instant::now() < until, "waited in vain: {what}");
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
}
