//! A mistake of the chat itself: after a panic the shell's screen is back, and the conversation is printed once.
//!
//! This program is the test and, with an argument, the chat that panics in a terminal of its own.

#![expect(clippy::expect_used, reason = "a test may fail where it stands")]

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use codex_dialogue::History;
use codex_dialogue::keys::{Keys, Raw};
use codex_terminal::keymap::Keymap;
use codex_tui::chat::{ChatContext, ChatParts, Connection, ThreadToOpen};
use codex_tui::full::{DisplaySettings, FullChat, FullParts, Theme, ThemeName};
use codex_wire::policy::{SandboxMode, SandboxPolicy};
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

fn main() {
    if std::env::args().nth(1).as_deref() == Some(CHAT) {
        return chat();
    }
    the_screen_is_back_and_the_conversation_is_printed_once();
}

fn the_screen_is_back_and_the_conversation_is_printed_once() {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("there is a terminal");
    grantpt(&master).and_then(|()| unlockpt(&master)).expect("it can be used");
    let name = ptsname(&master, Vec::new()).expect("it has a name");
    let end = File::options().read(true).write(true).open(name.to_str().expect("it is text")).expect("it opens");
    tcsetwinsize(&end, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).expect("it has a size");
    let copy = || Stdio::from(end.try_clone().expect("it can be shared"));
    let mut command = Command::new(std::env::current_exe().expect("it has a file"));
    let mut child = command.arg(CHAT).stdin(copy()).stdout(copy()).stderr(copy()).spawn().expect("it starts");
    let mut master = File::from(master);
    let mut reader = master.try_clone().expect("it can be shared");
    let (sender, pieces) = channel();
    // It ends with this program: the test holds the other end open.
    std::thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(count) = reader.read(&mut piece) {
            if sender.send(piece[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    let (mut raw, deadline) = (Vec::new(), Instant::now() + PATIENCE);
    let until = |wanted: &str, raw: &mut Vec<u8>| {
        while !String::from_utf8_lossy(raw).contains(wanted) {
            let left = deadline.saturating_duration_since(Instant::now());
            let piece = pieces.recv_timeout(left);
            raw.extend(piece.unwrap_or_else(|_| panic!("waited for {wanted:?} in {}", String::from_utf8_lossy(raw))));
        }
    };
    until("It rains in Bergen.", &mut raw);
    assert!(
        !tcgetattr(&end).expect("it has modes").local_modes.contains(LocalModes::ICANON),
        "keys are read one by one"
    );
    master.write_all(b"/status\r").expect("it takes keys");
    let status = child.wait().expect("it ends");
    (&end).write_all(b"\x04END").expect("it writes");
    until("\x04END", &mut raw);
    assert_eq!(status.code(), Some(101), "a panic is the end");
    let modes = tcgetattr(&end).expect("it has modes").local_modes;
    assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG), "lines are edited again");
    let text = String::from_utf8_lossy(&raw).into_owned();
    assert_eq!((text.matches(SHOW).count(), text.matches(LEAVE).count()), (1, 1), "{text:?}");
    let (_, after) = text.rsplit_once(LEAVE).expect("the screen is left");
    assert_eq!(after.matches("It rains in Bergen.").count(), 1, "{after:?}");
    assert_eq!(after.matches("What is the weather?").count(), 1, "{after:?}");
    assert!(after.contains("nobody expected this"), "{after:?}");
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
    let items = json!([{"type": "userMessage", "id": "q", "content": question},
        {"type": "agentMessage", "id": "a", "text": "It rains in Bergen."}]);
    json!({"thread": {"id": "t", "turns": [{"id": "u", "status": "completed", "items": items}]}, "model": "m",
        "modelProvider": "p", "cwd": "/", "approvalPolicy": "on-request", "sandbox": {"type": "workspaceWrite"}})
}
