//! A registry after breaks, with a server that a test plays.

#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use codex_client::approvals::Approvals;
use codex_client::registry::Registry;
use codex_client::{CallError, Client, Options, connect};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex,
};

struct Peer {
    input: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
}

impl Peer {
    /// Connects a program that has a registry.
    async fn connected(registry: &Registry) -> (Client, Self) {
        let (near, far) = duplex(64 * 1024);
        let (input, output) = tokio::io::split(far);
        let mut peer = Self { input: BufReader::new(input).lines(), output };
        let (input, output) = tokio::io::split(near);
        let options = Options { numbers: registry.numbers(), ..Options::new("test", "1.0") };
        let greeting = async {
            peer.answer("initialize", json!({"result": {}})).await;
            peer.read().await;
        };
        let (connected, ()) = tokio::join!(connect(input, output, options, Approvals::deny_all()), greeting);
        (connected.unwrap().0, peer)
    }

    async fn read(&mut self) -> Value {
        serde_json::from_str(&self.input.next_line().await.unwrap().unwrap()).unwrap()
    }

    /// Answers the next request, which must be of this method, and returns its parameters.
    async fn answer(&mut self, method: &str, mut answer: Value) -> Value {
        let mut request = self.read().await;
        assert_eq!(request["method"], method);
        answer["id"] = request["id"].take();
        self.output.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
        request["params"].take()
    }
}

fn subscribed(seq: u64, is_reset: bool) -> Value {
    let thread = json!({"id": "t", "turns": [], "status": {"type": "idle"}});
    json!({"result": {"thread": thread, "logId": "one", "seq": seq, "reset": is_reset}})
}

#[tokio::test]
async fn turns_that_were_not_answered_are_sent_again_in_their_order_however_often_it_breaks() {
    let mut registry = Registry::default();
    for name in ["zebra", "apple", "mango"] {
        registry.sending("t", &mut json!({"threadId": "t", "clientUserMessageId": name}));
    }
    let (client, mut peer) = Peer::connected(&registry).await;
    let breaking = async {
        assert_eq!(peer.answer("thread/subscribe", subscribed(5, true)).await["after"], Value::Null);
        assert_eq!(peer.answer("turn/start", json!({"result": {}})).await["clientUserMessageId"], "zebra");
        assert_eq!(peer.read().await["params"]["clientUserMessageId"], "apple");
        drop(peer);
    };
    let (recovered, ()) = tokio::join!(registry.recover(&client), breaking);
    assert_eq!(recovered, Err(CallError::Closed { method: "turn/start".to_owned() }));

    let (client, mut peer) = Peer::connected(&registry).await;
    let refusing = async {
        let params = peer.answer("thread/subscribe", subscribed(5, false)).await;
        assert_eq!(params, json!({"threadId": "t", "after": 5, "logId": "one"}));
        let refused = json!({"error": {"code": -32600, "message": "no"}});
        assert_eq!(peer.answer("turn/start", refused).await["clientUserMessageId"], "apple");
        assert_eq!(peer.answer("turn/start", json!({"result": {}})).await["clientUserMessageId"], "mango");
    };
    let (recovered, ()) = tokio::join!(registry.recover(&client), refusing);
    assert_eq!(recovered, Ok([].into()));
    let (recovered, _) = tokio::join!(registry.recover(&client), peer.answer("thread/subscribe", subscribed(5, false)));
    assert_eq!(recovered, Ok([].into()), "nothing is left to be sent");
}

#[tokio::test]
async fn a_server_of_another_release_sends_the_whole_thread_and_one_that_is_gone_is_named() {
    let mut registry = Registry::default();
    registry.follow("gone");
    registry.follow("t");
    let (client, mut peer) = Peer::connected(&registry).await;
    let refused = |code: i64, message: &str| json!({"error": {"code": code, "message": message}});
    let serving = async {
        peer.answer("thread/subscribe", refused(-32600, "unknown variant")).await;
        peer.answer("thread/resume", refused(-32600, "no rollout found")).await;
        peer.answer("thread/subscribe", refused(-32601, "no such method")).await;
        assert_eq!(peer.answer("thread/resume", subscribed(0, false)).await, json!({"threadId": "t"}));
    };
    let (recovered, ()) = tokio::join!(registry.recover(&client), serving);
    assert_eq!(recovered, Ok([("gone".to_owned(), "no rollout found".to_owned())].into()));
}
