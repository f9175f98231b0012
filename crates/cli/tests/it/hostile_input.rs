//! Hostile input of every program and client that Codex listens to: each sends 64 MB in the worst forms, Codex grows by
//! less than that, and goes on.
//!
//! Lines of other servers that share the threads are the test of `codex_relay::link`, without a database.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::mcp::{ask, hello, post};
use crate::program::{Place, Running};
use crate::sockets::Server;

/// The memory by which the program may grow, in kilobytes.
const GROWTH: u64 = 64 << 10;

/// The length of each message. Six of them are 64 MB, and each is below the limits of its source.
const BYTES: usize = (64 << 20) / SHAPES.len();

/// Values that a careless reader makes much of, and one that is only long.
const SHAPES: [&str; 6] = ["0", "\"\"", "[]", "{\"a\":0}", "{\"\":{\"\":[]}}", "long"];

/// A value of about [`BYTES`].
fn hostile(shape: &str) -> String {
    if shape == "long" {
        return format!("\"{}\"", "x".repeat(BYTES));
    }
    format!("[{}{shape}]", format!("{shape},").repeat(BYTES / (shape.len() + 1)))
}

/// The resident memory of a process in kilobytes: now, or at most so far.
fn memory(pid: u32, which: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(which)).expect("Linux tells it");
    line.trim().trim_end_matches(" kB").parse().expect("it is a number")
}

/// Runs something, and fails if the program grows by too much meanwhile.
#[track_caller]
fn grows_little(source: &str, pid: u32, act: impl FnOnce()) {
    let before = memory(pid, "VmRSS:");
    act();
    let grown = memory(pid, "VmHWM:").saturating_sub(before);
    assert!(grown < GROWTH, "{source}: the program has grown by {grown} kB");
}

/// A request that somebody has sent to [`serve`].
struct Request {
    method: String,
    body: String,
}

/// Answers HTTP requests on connections of their own, with what `answer` writes.
fn serve(answer: impl Fn(&Request, &mut TcpStream) -> std::io::Result<()> + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it has one");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let (mut head, mut length) = (String::new(), 0);
            while reader.read_line(&mut head).is_ok_and(|read| read > 2) {
                let last = head.lines().next_back().unwrap_or_default().to_ascii_lowercase();
                if let Some(value) = last.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap_or(0);
                }
            }
            let mut body = vec![0; length];
            if reader.read_exact(&mut body).is_err() {
                continue;
            }
            let method = head.split(' ').next().unwrap_or_default().to_owned();
            let request = Request { method, body: String::from_utf8_lossy(&body).into_owned() };
            // The program may hang up in the middle.
            let _: std::io::Result<()> = answer(&request, reader.get_mut());
        }
    });
    format!("http://{address}")
}

fn write_head(stream: &mut TcpStream, status: &str, kind: &str) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n")
}

/// The events of an answer that says `hi`, in each API.
const ANSWERS: [(&str, &[&str]); 3] = [
    (
        "responses",
        &[
            r#"{"type":"response.output_item.done","item":{"type":"message","role":"assistant","id":"m","content":[{"type":"output_text","text":"hi"}]}}"#,
            r#"{"type":"response.completed","response":{"id":"r"}}"#,
        ],
    ),
    ("chat", &[r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}"#, "[DONE]"]),
    (
        "anthropic",
        &[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hi"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
            r#"{"type":"message_stop"}"#,
        ],
    ),
];

/// A model whose answers contain a hostile value in an unknown event, in a member of a known one, and between events.
fn hostile_model(wire: &'static str) -> String {
    let (_, events) = ANSWERS.iter().find(|(name, _)| *name == wire).expect("it is one of them");
    serve(move |_, stream| {
        write_head(stream, "200 OK", "text/event-stream")?;
        for (at, shape) in SHAPES.iter().enumerate() {
            let value = hostile(shape);
            match at % 3 {
                0 => write!(stream, "data: {{\"type\":\"weird\",\"x\":{value}}}\n\n")?,
                1 => write!(
                    stream,
                    "data: {{\"type\":\"response.output_item.done\",\"item\":{{\"type\":\"weird\",\"x\":{value}}}}}\n\n"
                )?,
                _ => write!(stream, "data: {value}\n\n")?,
            }
        }
        for event in *events {
            write!(stream, "data: {event}\n\n")?;
        }
        Ok(())
    })
}

/// An app-server on its standard streams.
struct AppServer {
    running: Running,
    last: u64,
    place: Place,
}

impl AppServer {
    fn start(config: &str) -> Self {
        let place = Place::new().file("home/config.toml", config).variable("KEY", "sk-test");
        let place = place.variable("PATH", &std::env::var("PATH").unwrap_or_default());
        let mut server = Self { running: place.start(&["app-server"]), last: 0, place };
        server.ask("initialize", &json!({"clientInfo": {"name": "test", "version": "1"}}));
        server
    }

    fn answer(&mut self) -> Value {
        loop {
            let message = self.running.message();
            if message["id"] == self.last && message.get("method").is_none() {
                return message;
            }
        }
    }

    fn ask(&mut self, method: &str, params: &impl std::fmt::Display) -> Value {
        self.last += 1;
        let id = self.last;
        self.running.send(&format!("{{\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n"));
        self.answer()
    }

    fn thread(&mut self) -> String {
        let started = self.ask("thread/start", &json!({}));
        started["result"]["thread"]["id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned()
    }

    /// Runs a turn to its end, and returns its status.
    fn turn(&mut self, thread: &str) -> String {
        let input = json!([{"type": "text", "text": "go"}]);
        self.ask("turn/start", &json!({"threadId": thread, "input": input}));
        let end = self.running.line_with("\"turn/completed\"");
        let end: Value = serde_json::from_str(&end).expect("it is JSON");
        end["params"]["turn"]["status"].as_str().unwrap_or_default().to_owned()
    }
}

#[test]
fn a_model_cannot_fill_the_memory_with_events() {
    for (wire, _) in ANSWERS {
        let url = hostile_model(wire);
        let mut server = AppServer::start(&format!(
            "model = 'm'\nmodel_provider = 'p'\n[model_providers.p]\nname = 'P'\nbase_url = '{url}/v1'\n\
             wire_api = '{wire}'\nenv_key = 'KEY'\n"
        ));
        let (thread, pid) = (server.thread(), server.running.pid());
        grows_little(wire, pid, || assert_eq!(server.turn(&thread), "completed", "{wire}"));
    }
}

const SCRIPTED: &str = "model_provider = 'scripted'\n[model_providers.scripted]\nscript = 'answers.json'\n";
const HI: &str = r#"[{"items": [{"text": "hi"}], "repeat": true}]"#;

/// Starts a thread with two MCP servers: one tells hostile things before it lists its tool, the other has a hostile list.
/// Both are asked for their tools, and a turn runs.
fn with_mcp_servers(source: &str, table: &str, files: &[(String, String)]) {
    let mut server = AppServer::start(&format!("{SCRIPTED}{table}"));
    std::fs::write(server.place.path("home/answers.json"), HI).expect("a file can be written");
    for (name, text) in files {
        std::fs::write(server.place.path(name), text).expect("a file can be written");
    }
    let pid = server.running.pid();
    grows_little(source, pid, || {
        let thread = server.thread();
        let listed = server.ask("mcpServerStatus/list", &json!({})).to_string();
        assert!(listed.contains("its_tool") && listed.contains("worse"), "{source}: {listed}");
        assert_eq!(server.turn(&thread), "completed", "{source}");
    });
}

/// A message that a server sends by itself.
fn notice(shape: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{{\"data\":{}}}}}", hostile(shape))
}

/// The members of a list with one tool that has a hostile member.
fn list(shape: &str) -> String {
    let value = hostile(shape);
    format!("\"tools\":[{{\"name\":\"its_tool\",\"inputSchema\":{{\"type\":\"object\"}},\"x\":{value}}}]")
}

const GREETING: &str =
    r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"e","version":"1"}}"#;

#[test]
fn an_mcp_server_cannot_fill_the_memory_over_stdio() {
    let script = r#"
        n=0
        while read -r line; do
            id=${line#*\"id\":}
            id=${id%%,*}
            case $line in
            *'"method":"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$(cat greeting)" ;;
            *'"method":"tools/list"'*)
                [ "$1" = worse ] || cat notices
                printf '{"jsonrpc":"2.0","id":%s,"result":{' "$id"
                [ "$1" = worse ] && printf '"nextCursor":"%s",' "$n"
                cat "$1"
                printf '}}\n'
                n=$((n + 1)) ;;
            *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id" ;;
            esac
        done"#;
    let notices = SHAPES.map(|shape| notice(shape) + "\n").concat();
    let texts = [
        ("serve", script.to_owned()),
        ("greeting", GREETING.to_owned()),
        ("notices", notices),
        ("evil", list("long")),
        ("worse", list("0")),
    ];
    let files = texts.map(|(name, text)| (format!("project/{name}"), text));
    let server = |name: &str| format!("[mcp_servers.{name}]\ncommand = 'sh'\nargs = ['serve', '{name}']\n");
    with_mcp_servers("MCP over stdio", &(server("evil") + &server("worse")), &files);
}

#[test]
fn an_mcp_server_cannot_fill_the_memory_over_http() {
    let url = |is_worse: bool| {
        serve(move |request, stream| {
            let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
            let id = &message["id"];
            match message["method"].as_str().filter(|_| request.method == "POST") {
                Some("initialize") => {
                    write_head(stream, "200 OK", "application/json")?;
                    write!(stream, "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{GREETING}}}")
                }
                Some("tools/list") if is_worse => {
                    write_head(stream, "200 OK", "application/json")?;
                    write!(stream, "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{{}}}}}", list("0"))
                }
                Some("tools/list") => {
                    write_head(stream, "200 OK", "text/event-stream")?;
                    for shape in SHAPES {
                        write!(stream, "data: {}\n\n", notice(shape))?;
                    }
                    let list = list("long");
                    write!(stream, "data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{{list}}}}}\n\n")
                }
                Some(_) => write_head(stream, "202 Accepted", "text/plain"),
                None => write_head(stream, "405 Method Not Allowed", "text/plain"),
            }
        })
    };
    let server = |name: &str| format!("[mcp_servers.{name}]\nurl = '{}/mcp'\n", url(name == "worse"));
    with_mcp_servers("MCP over HTTP", &(server("evil") + &server("worse")), &[]);
}

/// A request to an MCP server with a hostile value among its parameters, or next to them.
fn hostile_call(id: usize) -> String {
    let value = hostile(SHAPES[id]);
    let params = if id.is_multiple_of(2) { format!("{{\"x\":{value}}}") } else { format!("{{}},\"x\":{value}") };
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/list\",\"params\":{params}}}")
}

#[test]
fn clients_of_the_mcp_server_cannot_fill_its_memory_over_stdio() {
    let place = Place::new().file("home/config.toml", SCRIPTED).file("home/answers.json", HI);
    let mut codex = place.start(&["mcp-server"]);
    ask(&mut codex, 100, "initialize", &hello());
    let pid = codex.pid();
    grows_little("mcp-server", pid, || {
        for id in 0..SHAPES.len() {
            codex.send(&hostile_call(id));
            codex.send("\n");
            let answer = codex.message();
            assert_eq!(answer["id"], id, "it goes on");
        }
        codex.send(&"x".repeat(64 << 20));
        codex.send("\n");
        assert!(codex.message()["error"]["message"].as_str().is_some_and(|why| why.contains("67108864 bytes")));
        ask(&mut codex, 101, "ping", &json!({}));
    });
}

#[test]
fn clients_of_the_mcp_server_cannot_fill_its_memory_over_http() {
    let token = "a-token-for-tests-0123456789";
    let place = Place::new().variable("CODEX_APP_SERVER_TOKEN", token);
    let server = Server::start_as("mcp-server", &place, &["127.0.0.1:0"], &[]);
    let (url, bearer) = (server.urls[0].clone(), format!("Authorization: Bearer {token}\r\n"));
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello()});
    let opened = post(&url, &bearer, &initialize);
    let session = opened.lines().find(|line| line.to_ascii_lowercase().starts_with("mcp-session-id:"));
    let headers = format!("{bearer}{}\r\n", session.expect("there is a session"));
    grows_little("mcp-server over HTTP", server.pid(), || {
        std::thread::scope(|scope| {
            // Some at the same time: they share the room of one.
            for ids in [[0, 1, 2], [3, 4, 5]] {
                let (url, headers) = (&url, &headers);
                scope.spawn(move || {
                    for id in ids {
                        let answer = post(url, headers, &hostile_call(id));
                        assert!(answer.starts_with("HTTP/1.1 "), "{answer}");
                    }
                });
            }
        });
        let ping = post(&url, &headers, &json!({"jsonrpc": "2.0", "id": 9, "method": "ping"}));
        assert!(ping.starts_with("HTTP/1.1 200 "), "{ping}");
    });
}

#[test]
fn clients_cannot_fill_the_memory_of_the_app_server() {
    let mut server = AppServer::start("");
    let pid = server.running.pid();
    grows_little("app-server", pid, || {
        for shape in SHAPES {
            server.ask("thread/list", &format!("{{\"x\":{}}}", hostile(shape)));
        }
        server.running.send(&"x".repeat(64 << 20));
        server.running.send("\n");
        assert!(server.ask("thread/list", &json!({})).get("result").is_some());
    });
}
