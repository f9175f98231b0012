//! A supervisor with servers that listen on sockets, and with the two halves of a pipe.

#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use codex_client::approvals::Approvals;
use codex_client::supervisor::Server;
use codex_client::{Address, CallError, Event, Options, ServerState, Supervisor, Token};
use codex_transport::{Limits, Listener, Reader, Shortage, Slots, Writer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::watch;

const TOKEN: &str = "0123456789abcdef";

/// Answers each request with the number of its connection, until it is told to leave.
async fn serve(input: Reader, mut output: Writer, number: u32) {
    let mut lines = BufReader::new(input).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["method"] == "leave" {
            return;
        }
        if let Some(id) = message.get("id") {
            let answer = format!("{}\n", json!({"id": id, "result": {"number": number}}));
            output.write_all(answer.as_bytes()).await.unwrap();
            output.flush().await.unwrap();
        }
    }
}

/// A server at an address, for as long as the sender is there; and the address with its port.
async fn listen(address: &str) -> (Address, watch::Sender<bool>) {
    let options = codex_transport::Options {
        token: Token::new(TOKEN).ok(),
        slots: Slots::new(8),
        limits: Limits::default(),
        shortage: Shortage::default(),
        allows_remote: false,
        takes_bearer: true,
    };
    let listener = Listener::bind(&address.parse().unwrap(), options).await.unwrap();
    let (address, (stop, stopping)) = (listener.address().clone(), watch::channel(false));
    let count = Arc::new(AtomicU32::new(0));
    let service = move |input, output| {
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        serve(input, output, number)
    };
    tokio::spawn(listener.serve(service, stopping));
    (address, stop)
}

fn start(server: impl Into<Server>) -> Supervisor {
    let options = Options { deadline: Duration::from_secs(20), ..Options::new("test", "1.0") };
    Supervisor::start(server, options, Approvals::deny_all(), |_| {})
}

/// Connects, has the server hang up, and is connected again.
async fn is_dialled_again(address: &str) {
    let (address, _stop) = listen(address).await;
    let mut supervisor = start(Server::At(address.clone(), Token::new(TOKEN).ok()));
    let mut states = supervisor.states();
    let (client, mut events) = supervisor.connection().await.unwrap();
    assert_eq!(client.raw("number", json!({})).await.unwrap()["number"], 1, "{address}");
    let left = client.raw("leave", json!({})).await;
    assert!(matches!(left, Err(CallError::Closed { .. })), "{address}: {left:?}");
    assert_eq!(events.next().await, None, "{address}");
    let is_first = |state: &ServerState| matches!(state, ServerState::Restarting { attempt: 1, .. });
    assert!(states.wait_for(is_first).await.is_ok(), "{address}");
    let (client, _events) = supervisor.connection().await.unwrap();
    assert_eq!(client.raw("number", json!({})).await.unwrap()["number"], 2, "{address}");
    supervisor.stop().await;
    assert_eq!(*states.borrow(), ServerState::Stopped, "{address}");
    assert!(client.is_closed(), "{address}");
}

#[tokio::test]
async fn a_server_at_any_address_is_dialled_again_when_it_hangs_up() {
    let folder = tempfile::tempdir().unwrap();
    let unix = format!("unix://{}", folder.path().canonicalize().unwrap().join("socket").display());
    tokio::join!(
        is_dialled_again(&unix),
        is_dialled_again("ws://127.0.0.1:0"),
        is_dialled_again("tcp://127.0.0.1:0"),
        is_dialled_again("grpc://127.0.0.1:0"),
    );
}

#[tokio::test]
async fn an_address_that_cannot_work_is_not_tried_again() {
    for (server, why) in [
        (Server::At(Address::Stdio, None), "stdio:// is not an address to connect to"),
        (Server::At("ws://127.0.0.1:1".parse().unwrap(), None), "could not connect to ws://127.0.0.1:1"),
    ] {
        let supervisor = start(server);
        let mut states = supervisor.states();
        let failed = states.wait_for(|state| matches!(state, ServerState::Failed { .. })).await.unwrap().clone();
        let ServerState::Failed { error, restart_in } = failed else { unreachable!("it was just seen") };
        assert!(error.starts_with(why), "{error}");
        assert_eq!(restart_in.is_some(), error.contains("could not connect"), "{error}");
    }
}

#[tokio::test]
async fn the_two_halves_of_a_pipe_are_used_once() {
    let (near, far) = tokio::io::duplex(1024);
    let (input, output) = tokio::io::split(far);
    tokio::spawn(serve(Box::new(input), Box::new(output), 7));
    let (input, output) = tokio::io::split(near);
    let mut supervisor = start(Server::Pipe(Box::new(input), Box::new(output)));
    let states = supervisor.states();
    let (client, _events) = supervisor.connection().await.unwrap();
    assert_eq!(client.raw("number", json!({})).await.unwrap()["number"], 7);
    assert!(client.raw("leave", json!({})).await.is_err());
    assert!(supervisor.connection().await.is_none(), "there is no other");
    let over = ServerState::Failed { error: "the other end of the pipe is gone".to_owned(), restart_in: None };
    assert_eq!(*states.borrow(), over);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_hang_up_is_left() {
    let (near, far) = tokio::io::duplex(1024);
    let (input, mut output) = tokio::io::split(far);
    let server = async {
        let mut lines = BufReader::new(input).lines();
        lines.next_line().await.unwrap();
        output.write_all(b"{\"id\":1,\"result\":{}}\n").await.unwrap();
        // It keeps its end open.
        std::future::pending::<()>().await;
    };
    let (near_input, near_output) = tokio::io::split(near);
    let client = async {
        let (client, mut events) =
            codex_client::connect(near_input, near_output, Options::new("test", "1.0"), Approvals::deny_all())
                .await
                .unwrap();
        let begun = tokio::time::Instant::now();
        client.close();
        client.closed().await;
        assert_eq!(begun.elapsed(), Duration::from_secs(5));
        assert!(events.next().await.is_none_or(|event| matches!(event, Event::Note { .. })));
    };
    tokio::select! {
        () = server => unreachable!("it never ends"),
        () = client => {}
    }
}
