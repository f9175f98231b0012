//! A client of `codex proto` with a scripted model.

use std::sync::Arc;
use std::time::{Duration, Instant};

use codex_config::{BudgetConfig, Config, Env, Home, Overrides};
use codex_dialects::eq::Vocabulary;
use codex_engine::Setup;
use codex_model::ScriptedModel;
use codex_pipe::proto::{Prompts, Served, User, serve};
use codex_store::FileStore;
use codex_thread::{ClientAdditions, ClientProfile, InitialHistory, LoadedThreads, Thread};
use codex_wire::ids::ThreadId;
use codex_wire::rollout::SessionSource;
use expect_test::Expect;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, duplex};
use tokio::task::JoinHandle;

/// The number of bytes that a pipe holds.
const PIPE_BYTES: usize = 64 * 1024;

/// A text that does not fit a pipe. In transcripts it is `LONG`.
pub(crate) fn long_text() -> String {
    "x".repeat(4 * PIPE_BYTES)
}

/// A connection, and everything that arrived over it so far.
pub(crate) struct Client {
    folder: TempDir,
    thread: Thread,
    input: DuplexStream,
    output: Lines<BufReader<DuplexStream>>,
    served: JoinHandle<std::io::Result<()>>,
    transcript: String,
    /// Whether long messages are shown in full.
    in_full: bool,
}

/// The non-default options of a client.
pub(crate) struct Options {
    pub(crate) vocabulary: Vocabulary,
    /// The number of bytes that the pipes hold.
    pub(crate) pipe: usize,
    pub(crate) in_full: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { vocabulary: Vocabulary::default(), pipe: PIPE_BYTES, in_full: false }
    }
}

/// The place of child agents, which these threads cannot start.
#[derive(Debug)]
struct NoThreads;

impl LoadedThreads for NoThreads {
    fn get(&self, _: ThreadId) -> Option<Thread> {
        None
    }

    fn loaded(&self) -> Vec<Thread> {
        Vec::new()
    }
}

/// A submission with a text.
pub(crate) fn say(id: &str, text: &str) -> String {
    format!(r#"{{"id":"{id}","op":{{"type":"user_input","items":[{{"type":"text","text":"{text}"}}]}}}}"#)
}

/// A submission with nothing but its type.
pub(crate) fn op(id: &str, kind: &str) -> String {
    format!(r#"{{"id":"{id}","op":{{"type":"{kind}"}}}}"#)
}

/// Sends lines to a thread whose model never answers, and compares all output after the greeting.
pub(crate) async fn check_answers(lines: &[&str], expected: Expect) {
    let mut client = Client::start("[]").await;
    client.forget_greeting().await;
    for line in lines {
        client.send(line).await;
    }
    client.send(&op("last", "get_path")).await;
    client.end_and_check(expected).await;
}

impl Client {
    /// Connects to a thread with a scripted model.
    pub(crate) async fn start(script: &str) -> Self {
        Self::start_with(script, Options::default()).await
    }

    pub(crate) async fn start_with(script: &str, options: Options) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let [home, project] = ["home", "project"].map(|name| folder.path().join(name));
        std::fs::create_dir(&home).and_then(|()| std::fs::create_dir(&project)).expect("folders can be made");
        let home = Home::at(home);
        let env = Env::from_iter::<[(&str, &str); 0]>([]);
        let overrides = Overrides { values: vec!["model_provider=scripted".to_owned()], ..Overrides::default() };
        let setup = Setup {
            agents: None,
            run_budget: BudgetConfig::default(),
            requests: None,
            child: None,
            config: Arc::new(Config::load(&home, &env, &overrides).expect("the test's configuration is right")),
            home: home.clone(),
            store: Arc::new(FileStore::of(home.path())),
            cwd: project,
            model: Arc::new(ScriptedModel::from_json(script).expect("the test's script is right")),
            originator: "tests".to_owned(),
            source: SessionSource::Cli,
            shell: None,
            programs: None,
            profile: ClientProfile::QUEUE,
            base_instructions: None,
            initial_history: InitialHistory::New,
            additions: ClientAdditions::default(),
            recent_bytes: 0,
            servers: None,
        };
        let config = Arc::clone(&setup.config);
        let (thread, feed) = setup.start().await.expect("the thread starts");
        let (input, server_input) = duplex(options.pipe);
        let (server_output, output) = duplex(options.pipe);
        let prompts = Prompts::new(None, None, home.prompts());
        let user = User { config, home, prompts };
        let children = Arc::new(NoThreads);
        let served = Served { thread: thread.clone(), feed, children, vocabulary: options.vocabulary, user };
        let served = tokio::spawn(serve(served, server_input, server_output));
        let output = BufReader::new(output).lines();
        Self { folder, thread, input, output, served, transcript: String::new(), in_full: options.in_full }
    }

    /// The file of the thread.
    pub(crate) fn rollout(&self) -> String {
        std::fs::read_to_string(&self.thread.started().rollout).expect("the thread has a file")
    }

    /// Waits until the file of the thread contains a text, without reading messages of the server.
    pub(crate) async fn until_saved(&self, text: &str) {
        let patience = Instant::now() + Duration::from_secs(10);
        while !self.rollout().contains(text) {
            assert!(Instant::now() < patience, "waited in vain for {text}");
            tokio::task::yield_now().await;
        }
    }

    /// A path in the client's folder.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Sends a line.
    pub(crate) async fn send(&mut self, line: &str) {
        self.send_bytes(format!("{line}\n").as_bytes()).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.input.write_all(bytes).await.expect("the server reads");
    }

    /// Reads up to and including the first message of a kind.
    pub(crate) async fn until(&mut self, kind: &str) {
        while self.read().await.expect("the server says something more") != kind {}
    }

    /// Reads the first message, and checks its kind, without keeping it.
    pub(crate) async fn forget_greeting(&mut self) {
        assert_eq!(self.read().await.as_deref(), Some("session_configured"));
        self.transcript.clear();
    }

    /// Ends the input and compares all output.
    pub(crate) async fn end_and_check(mut self, expected: Expect) {
        self.input.shutdown().await.expect("the pipe can be closed");
        self.check(expected).await;
    }

    /// Reads to the end and compares all output. The server must end without an error, and its thread with it.
    pub(crate) async fn check(mut self, expected: Expect) {
        while self.read().await.is_some() {}
        self.served.await.expect("the server does not panic").expect("the connection ends well");
        assert!(self.thread.interrupt().await.is_err(), "the thread is still open");
        expected.assert_eq(&if self.in_full { self.transcript } else { folded(&self.transcript) });
    }

    /// Stops reading.
    pub(crate) fn stop_reading(self) -> Muted {
        let Self { folder, thread, input, served, .. } = self;
        Muted { _folder: folder, thread, input, served }
    }

    /// Reads a message and returns its kind.
    async fn read(&mut self) -> Option<String> {
        let line = self.output.next_line().await.expect("lines can be read")?;
        let message: Value = serde_json::from_str(&line).expect("every line is JSON");
        crate::shapes::check_event(&message);
        let kind = message["msg"]["type"].as_str().expect("every message has a type").to_owned();
        let shown = match kind.as_str() {
            "token_count" | "session_configured" if !self.in_full => {
                format!(r#"{{"id":{},"msg":{{"type":"{kind}",…}}}}"#, message["id"])
            }
            _ => self.filter(&line),
        };
        self.transcript.push_str(&shown);
        self.transcript.push('\n');
        Some(kind)
    }

    /// A line without values that differ from run to run.
    fn filter(&self, line: &str) -> String {
        let line = line
            .replace(&self.thread.started().rollout.display().to_string(), "ROLLOUT")
            .replace(&self.thread.id().to_string(), "THREAD")
            .replace(&self.folder.path().display().to_string(), "TEMP")
            .replace(&long_text(), "LONG");
        match line.split_once(" in ") {
            Some((before, after)) if before.contains("retrying") => match after.split_once("ms") {
                Some((_, rest)) => format!("{before} in MS{rest}"),
                None => line,
            },
            _ => line,
        }
    }
}

/// A transcript with one line for each turn that is nothing but a prompt and its answer.
fn folded(transcript: &str) -> String {
    let lines: Vec<&str> = transcript.lines().collect();
    let (mut at, mut folded) = (0, String::new());
    while at < lines.len() {
        let (shown, taken) = match plain_turn(&lines[at..]) {
            Some(turn) => (turn, PLAIN_TURN.len()),
            None => (lines[at].to_owned(), 1),
        };
        folded.extend([shown.as_str(), "\n"]);
        at += taken;
    }
    folded
}

/// The messages of such a turn.
const PLAIN_TURN: [&str; 7] = [
    "task_started",
    "user_message",
    "token_count",
    "agent_message_delta",
    "agent_message",
    "token_count",
    "task_complete",
];

/// The turn that these lines begin with, if it is such a turn.
fn plain_turn(lines: &[&str]) -> Option<String> {
    let turn = lines.get(..PLAIN_TURN.len())?;
    let beginning = turn[0].split_once(r#""msg":"#)?.0;
    let is_plain = |(line, kind): (&&str, &str)| line.starts_with(&format!(r#"{beginning}"msg":{{"type":"{kind}""#));
    if !turn.iter().zip(PLAIN_TURN).all(is_plain) {
        return None;
    }
    let message = |at: usize| serde_json::from_str::<Value>(turn[at]).ok().map(|line| line["msg"].clone());
    let (started, said, answer, complete) = (message(0)?, message(1)?, message(4)?, message(6)?);
    let is_same = said["images"] == json!([])
        && message(3)?["delta"] == answer["message"]
        && complete["last_agent_message"] == answer["message"];
    let response = complete.get("response_id").map(|id| format!(" as {id}")).unwrap_or_default();
    let (prompt, window) = (&said["message"], &started["model_context_window"]);
    is_same.then(|| format!("{beginning}turn of {window} tokens: {prompt} → {}{response}}}", answer["message"]))
}

/// A client that no longer reads.
pub(crate) struct Muted {
    _folder: TempDir,
    pub(crate) thread: Thread,
    pub(crate) input: DuplexStream,
    pub(crate) served: JoinHandle<std::io::Result<()>>,
}
