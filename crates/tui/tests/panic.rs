//! A mistake of the chat itself: after a panic the shell's screen is back, and the conversation is printed once.
//!
//! This program is the test and, with an argument, the chat that panics in a terminal of its own.

#![expect(clippy::expect_used, reason = "a test may fail where it stands")]

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use codex_dialogue::History;
use codex_dialogue::keys::{Keys, Raw};
use codex_terminal::keymap::Keymap;
use codex_tui::chat::{ChatContext, ChatParts, Connection, ThreadToOpen};
use codex_tui::full::{DisplaySettings, FullChat, FullParts, Theme, ThemeName};
use codex_wire::policy::{SandboxMode, SandboxPolicy};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};

/// The argument of the chat.
const CHAT: &str = "chat-that-panics";
/// The time to wait for output before the test fails.
const PATIENCE: Duration = Duration::from_secs(30);
const SHOW: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";
/// The beginning of a frame.
const FRAME: &str = "\u{1b}[?2026";
/// The line that the chat writes before it panics.
const TOLD: [u8; 5] = *b"now!\n";
/// The end of the answer.
const ANSWER: &str = "It rains in Bergen.";
/// The number of lines in the answer, which fill a large screen.
const LINES: usize = 150;

fn main() {
    if std::env::args().nth(1).as_deref() == Some(CHAT) {
        return chat();
    }
    the_screen_is_back_and_the_conversation_is_printed_once();
    a_frame_on_its_way_ends_before_the_screen_is_left();
    a_terminal_that_takes_nothing_does_not_hold_the_panic();
}

/// A chat in a terminal, which takes bytes only while the test reads them.
struct Terminal {
    master: File,
    /// The end of the program.
    end: File,
    child: Child,
    raw: Vec<u8>,
}

impl Terminal {
    fn start(columns: u16, rows: u16) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).expect("there is a terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("it can be used");
        let name = ptsname(&master, Vec::new()).expect("it has a name");
        let end = File::options().read(true).write(true).open(name.to_str().expect("it is text")).expect("it opens");
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&end, size).expect("it has a size");
        let copy = || Stdio::from(end.try_clone().expect("it can be shared"));
        let mut command = Command::new(std::env::current_exe().expect("it has a file"));
        command.arg(CHAT).stdin(copy()).stdout(copy()).stderr(Stdio::piped());
        let child = command.spawn().expect("it starts");
        let mut terminal = Self { master: File::from(master), end, child, raw: Vec::new() };
        terminal.until(ANSWER);
        let modes = tcgetattr(&terminal.end).expect("it has modes").local_modes;
        assert!(!modes.contains(LocalModes::ICANON), "keys are read one by one");
        terminal
    }

    /// Reads until a text has come.
    fn until(&mut self, wanted: &str) {
        self.until_so(wanted, |text| text.contains(wanted));
    }

    /// Reads until the screen was left and the conversation has come.
    fn until_printed(&mut self) {
        let is_printed = |text: &str| text.rsplit_once(LEAVE).is_some_and(|(_, after)| after.contains(ANSWER));
        self.until_so(ANSWER, is_printed);
    }

    fn until_so(&mut self, wanted: &str, is_so: impl Fn(&str) -> bool) {
        let patience = PATIENCE.try_into().expect("it is short");
        while !is_so(&String::from_utf8_lossy(&self.raw)) {
            let mut waiting = [PollFd::new(&self.master, PollFlags::IN)];
            let ready = poll(&mut waiting, Some(&patience)).expect("it can be waited for");
            assert!(ready > 0, "waited for {wanted:?} in {}", String::from_utf8_lossy(&self.raw));
            let mut piece = [0; 4096];
            let count = self.master.read(&mut piece).expect("it is open");
            self.raw.extend(&piece[..count]);
        }
    }

    fn press(&mut self, keys: &[u8]) {
        self.master.write_all(keys).expect("it takes keys");
    }

    /// Waits until the chat is about to panic.
    fn until_mistake(&mut self) {
        let mut told = [0; TOLD.len()];
        self.child.stderr.as_mut().expect("it is ours").read_exact(&mut told).expect("it tells");
        assert_eq!(told, TOLD);
    }

    /// Waits for the end, and returns what came after the screen was left.
    fn finish(mut self) -> String {
        let mut told = String::new();
        self.child.stderr.as_mut().expect("it is ours").read_to_string(&mut told).expect("it is text");
        assert!(told.contains("nobody expected this"), "{told:?}");
        assert_eq!(self.child.wait().expect("it ends").code(), Some(101), "a panic is the end");
        let modes = tcgetattr(&self.end).expect("it has modes").local_modes;
        assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG), "lines are edited again");
        (&self.end).write_all(b"\x04END").expect("it writes");
        self.until("\x04END");
        let text = String::from_utf8_lossy(&self.raw).into_owned();
        assert_eq!((text.matches(SHOW).count(), text.matches(LEAVE).count()), (1, 1), "{text:?}");
        text.rsplit_once(LEAVE).expect("the screen is left").1.to_owned()
    }
}

fn the_screen_is_back_and_the_conversation_is_printed_once() {
    let mut terminal = Terminal::start(80, 24);
    terminal.press(b"/status\r");
    terminal.until_mistake();
    terminal.until_printed();
    check_printed(&terminal.finish());
}

fn check_printed(after: &str) {
    assert_eq!(after.matches(ANSWER).count(), 1, "{after:?}");
    assert_eq!(after.matches("What is the weather?").count(), 1, "{after:?}");
    assert!(!after.contains(FRAME), "a frame is on the shell's screen: {after:?}");
}

fn a_frame_on_its_way_ends_before_the_screen_is_left() {
    let mut terminal = Terminal::start(300, 100);
    // The whole screen is drawn again, which is more than the terminal takes before somebody reads.
    terminal.press(b"\x0c/status\r");
    terminal.until_mistake();
    terminal.until_printed();
    check_printed(&terminal.finish());
}

fn a_terminal_that_takes_nothing_does_not_hold_the_panic() {
    let mut terminal = Terminal::start(300, 100);
    terminal.press(b"\x0c/status\r");
    terminal.until_mistake();
    let after = terminal.finish();
    assert!(!after.contains(FRAME), "a frame is on the shell's screen: {after:?}");
}

/// The surroundings of the chat, with a mistake that `/status` hits.
struct Broken;

impl ChatContext for Broken {
    fn find_thread(&self, word: &str) -> Result<String, String> {
        Ok(word.to_owned())
    }

    fn sandbox_policy(&self, _mode: SandboxMode) -> SandboxPolicy {
        SandboxPolicy::DangerFullAccess
    }

    fn project(&self) -> PathBuf {
        "/".into()
    }

    fn trust(&self) -> Option<&'static str> {
        io::stderr().write_all(&TOLD).expect("somebody reads it");
        panic!("nobody expected this")
    }

    fn config_file(&self) -> PathBuf {
        "/nowhere/config.toml".into()
    }

    fn export(&self, _name: Option<&str>, _text: &str) -> Result<PathBuf, String> {
        Err("nothing is written".to_owned())
    }

    fn server_socket(&self) -> Option<PathBuf> {
        Some("/nowhere/socket".into())
    }
}

fn chat() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let raw = Raw::enter(false, io::stdout).expect("there is a terminal");
    runtime.block_on(async {
        let connection = Connection::in_process(serve).await.expect("the server answers");
        let parts = ChatParts {
            history: History::default(),
            context: Arc::new(Broken),
            named: Map::new(),
            cwd: "/".into(),
            first: None,
            pictures: Vec::new(),
            is_verbose: false,
        };
        let keys = Keys::read(&raw).expect("keys are read");
        keys.show_full_screen(false).expect("there is a terminal");
        let full = FullParts {
            parts,
            theme: Theme::new(ThemeName::Plain, false, false),
            out: io::stdout,
            is_in_tmux: false,
            keymap: Keymap::default(),
            has_vim: false,
            display: DisplaySettings::default(),
        };
        let stop = Box::pin(std::future::pending());
        let chat = FullChat::new(connection, (keys, stop), full).expect("there is room for a thread");
        chat.converse(ThreadToOpen::New).await.expect("it does not end this way");
    });
}

/// A server with one thread.
async fn serve(stream: DuplexStream) -> io::Result<()> {
    let (reader, mut writer) = tokio::io::split(stream);
    let mut lines = BufReader::new(reader).lines();
    while let Some(line) = lines.next_line().await? {
        let request: Value = serde_json::from_str(&line)?;
        let Some(id) = request.get("id") else { continue };
        let answer = match request["method"].as_str() {
            Some("initialize") => json!({"id": id, "result": {"userAgent": "test/1"}}),
            Some("thread/start") => json!({"id": id, "result": opened()}),
            _ => json!({"id": id, "error": {"code": -32601, "message": "there is no such method"}}),
        };
        writer.write_all(format!("{answer}\n").as_bytes()).await?;
    }
    Ok(())
}

fn opened() -> Value {
    let question = json!([{"type": "text", "text": "What is the weather?"}]);
    let answer = "a long line of an answer ".repeat(11) + "\n\n";
    let items = json!([{"type": "userMessage", "id": "q", "content": question},
        {"type": "agentMessage", "id": "a", "text": answer.repeat(LINES) + ANSWER}]);
    json!({"thread": {"id": "t", "turns": [{"id": "u", "status": "completed", "items": items}]}, "model": "m",
        "modelProvider": "p", "cwd": "/", "approvalPolicy": "on-request", "sandbox": {"type": "workspaceWrite"}})
}
