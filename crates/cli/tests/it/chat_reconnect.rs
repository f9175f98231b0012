//! A chat whose connection to a server elsewhere breaks.

use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::chat;
use crate::program::Place;
use crate::pty::Pty;
use crate::sockets::Server;

/// Connects clients with a server, until it cuts all connections.
struct Gate {
    url: String,
    open: Arc<Mutex<Vec<UnixStream>>>,
}

impl Gate {
    fn before(server: PathBuf, path: &Path) -> Self {
        let listener = UnixListener::bind(path).expect("it can listen");
        let open = Arc::new(Mutex::new(Vec::new()));
        let streams = Arc::clone(&open);
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = UnixStream::connect(&server) else { return };
                let copy = |stream: &UnixStream| stream.try_clone().expect("a copy");
                streams.lock().expect("nobody panics").extend([copy(&near), copy(&far)]);
                for (mut from, mut to) in [(copy(&near), copy(&far)), (far, near)] {
                    std::thread::spawn(move || {
                        // A cut ends it.
                        let _: std::io::Result<u64> = std::io::copy(&mut from, &mut to);
                        let _: std::io::Result<()> = to.shutdown(std::net::Shutdown::Write);
                    });
                }
            }
        });
        Self { url: format!("unix://{}", path.display()), open }
    }

    fn cut(&self) {
        for stream in self.open.lock().expect("nobody panics").drain(..) {
            let _: std::io::Result<()> = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

fn said(text: &str) -> serde_json::Value {
    json!({"items": [{"text": text}]})
}

#[test]
fn a_chat_goes_on_after_its_connection_has_broken() {
    for screen in ["lines", "full"] {
        let script = json!([chat::asked_about("touch canary"), said("Done there."), said("Heard."), said("At last.")]);
        let place = chat::place("approval_policy = 'untrusted'", &script);
        let socket = place.path("server.sock");
        let server = Server::start_as("app-server", &place, &[&format!("unix://{}", socket.display())], &[]);
        let gate = Gate::before(socket, &place.path("gate.sock"));
        let client = Place::new().variable("TERM", "xterm-256color").variable("PATH", "/usr/bin:/bin");
        let mut chat = Pty::start(&client, &["--screen", screen, "--connect", &gate.url, "do it"]);
        chat.until("| sh -c 'touch canary'");
        chat.until("[y] yes");
        // The request is withdrawn with the connection, and asked again over the next one.
        gate.cut();
        chat.until("connecting again");
        chat.send("half a ");
        chat.until("half a ");
        chat.until("| sh -c 'touch canary'");
        chat.until("[y] yes");
        chat.send("y");
        chat.until("Done there.");
        assert!(place.path("project/canary").exists(), "{screen}");
        // The draft has outlasted it.
        chat.send("message\r");
        chat.until("Heard.");
        // A message without a connection is sent over the next one, once.
        gate.cut();
        chat.until("connecting again");
        chat.send("while away\r");
        chat.until("At last.");
        chat.send("\x04");
        let ended = chat.wait();
        assert_eq!(ended.code, Some(0), "{screen}: {}", ended.text);
        let id = ended.text.rsplit("codex resume ").next().expect("it says how to go on").trim().to_owned();
        drop(server);
        let shown = place.run(&["threads", "export", &id], "").stdout;
        for text in ["half a message", "while away"] {
            assert_eq!(shown.matches(text).count(), 1, "{screen}: {shown}");
        }
    }
}
