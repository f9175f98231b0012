//! The first run, without a key and without a configuration.

use std::io::{Read, Write};
use std::net::TcpListener;

use crate::program::Place;
use crate::pty::Pty;

const MENU: &str = "[k] key  [l] local server  [o] offline  [esc] leave";
const TRUST: &str = "[y] yes  [n] no  [esc] leave";

/// An unused home, on a machine where local servers use this port.
fn place(port: u16) -> Place {
    let place = Place::new().variable("TERM", "xterm-256color").variable("PATH", "/usr/bin:/bin");
    place.variable("CODEX_OSS_PORT", &port.to_string())
}

/// A port that nobody listens on.
fn closed() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its number").port()
}

#[test]
fn it_can_be_tried_offline() {
    let place = place(closed());
    let mut chat = Pty::start(&place, &["hello"]);
    chat.until("There is no API key yet. How do you want to start?");
    chat.until("none answers now: start Ollama or LM Studio");
    chat.until("run `codex login` for a ChatGPT account");
    chat.until(MENU);
    chat.send("o");
    chat.until("The next run asks again.");
    chat.until(TRUST);
    chat.send("n");
    chat.until("(scripted)");
    chat.until("I am the built-in offline model");
    chat.send("\x04");
    assert_eq!(chat.wait().code, Some(0));
    let config = std::fs::read_to_string(place.path("home/config.toml")).expect("trust is kept");
    assert!(!config.contains("scripted"), "{config}");
}

#[test]
fn a_key_is_stored_and_never_shown() {
    let place = place(closed());
    let mut chat = Pty::start(&place, &[]);
    chat.until(MENU);
    chat.send("k");
    chat.until("API key (not shown, 0 characters)");
    chat.send("sk-two words\r");
    chat.until("error: the key is empty or contains invalid characters");
    chat.until(MENU);
    chat.send("k");
    chat.until("API key (not shown, 0 characters)");
    chat.send("\x1b[200~sk-secret-123\x1b[201~");
    chat.until("13 characters");
    chat.send("\r");
    chat.until("The key is stored in");
    chat.until(TRUST);
    chat.send("y");
    chat.until("(openai)");
    chat.send("\x04");
    let ended = chat.wait();
    assert_eq!(ended.code, Some(0), "{}", ended.text);
    assert!(!ended.text.contains("sk-"), "{}", ended.text);
    let auth = std::fs::read_to_string(place.path("home/auth.json")).expect("it is stored");
    assert!(auth.contains("sk-secret-123"), "{auth}");
    // The next run asks nothing.
    let mut chat = Pty::start(&place, &[]);
    assert!(!chat.until("(openai)").contains("How do you want to start?"));
    chat.send("\x04");
    chat.wait();
}

#[test]
fn a_local_server_is_found_and_saved() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let place = place(listener.local_addr().expect("its number").port());
    let server = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("somebody looks");
        let mut request = [0; 1024];
        let read = client.read(&mut request).expect("it asks");
        let body = r#"{"data":[{"id":"tiny:1b"},{"id":"other"}]}"#;
        write!(client, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).expect("it is answered");
        String::from_utf8_lossy(&request[..read]).into_owned()
    });
    let mut chat = Pty::start(&place, &[]);
    chat.until("[l] use Ollama on this machine (model tiny:1b)");
    chat.until(MENU);
    assert!(server.join().expect("it was asked").starts_with("GET /v1/models HTTP/1.1\r\n"));
    chat.send("l");
    chat.until(TRUST);
    chat.send("y");
    chat.until("tiny:1b (ollama)");
    chat.send("\x04");
    assert_eq!(chat.wait().code, Some(0));
    let config = std::fs::read_to_string(place.path("home/config.toml")).expect("it is kept");
    assert!(config.contains("model_provider = \"ollama\"") && config.contains("model = \"tiny:1b\""), "{config}");
    let mut chat = Pty::start(&place, &[]);
    chat.until("tiny:1b (ollama)");
    chat.send("\x04");
    assert_eq!(chat.wait().code, Some(0));
}

#[test]
fn the_first_run_can_be_left_without_saving() {
    let place = place(closed());
    let mut chat = Pty::start(&place, &["hello"]);
    chat.until(MENU);
    chat.send("\x1b");
    let ended = chat.wait();
    assert_eq!(ended.code, Some(0), "{}", ended.text);
    assert!(chat.is_restored());
    assert!(place.entries("home").is_empty(), "{:?}", place.entries("home"));
}
