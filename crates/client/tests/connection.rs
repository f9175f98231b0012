//! A connection with a server that a test plays, line by line.

#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::time::Duration;

use codex_client::approvals::{Approvals, Decision};
use codex_client::event::Event;
use codex_client::registry::Registry;
use codex_client::{CallError, Client, Events, Options, connect};
use codex_protocol::methods::call::ThreadArchive;
use codex_protocol::v2::thread::ThreadParams;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex,
};

/// The server's side.
struct Server {
    input: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
}

impl Server {
    async fn read(&mut self) -> Value {
        serde_json::from_str(&self.input.next_line().await.unwrap().unwrap()).unwrap()
    }

    /// Answers the next request, which must be of this method, and returns its parameters.
    async fn answer(&mut self, method: &str, mut answer: Value) -> Value {
        let mut request = self.read().await;
        assert_eq!(request["method"], method);
        answer["id"] = request["id"].take();
        self.write(answer).await;
        request["params"].take()
    }

    async fn write(&mut self, message: Value) {
        self.write_line(&message.to_string()).await;
    }

    async fn write_line(&mut self, line: &str) {
        self.output.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }
}

async fn connected(approvals: Approvals) -> (Client, Events, Server) {
    connected_with(Options::new("test", "1.0"), approvals).await
}

async fn connected_with(options: Options, approvals: Approvals) -> (Client, Events, Server) {
    let (near, far) = duplex(1024 * 1024);
    let (input, output) = tokio::io::split(far);
    let mut server = Server { input: BufReader::new(input).lines(), output };
    let (near_input, near_output) = tokio::io::split(near);
    let connecting = tokio::spawn(connect(near_input, near_output, options, approvals));
    let hello = server.read().await;
    assert_eq!(hello["method"], "initialize");
    assert_eq!(hello["params"]["clientInfo"]["name"], "test");
    server.write(json!({"id": hello["id"], "result": {"userAgent": "codex/0.200.0"}})).await;
    assert_eq!(server.read().await, json!({"method": "initialized"}));
    let (client, events) = connecting.await.unwrap().unwrap();
    assert_eq!(client.server()["userAgent"], "codex/0.200.0");
    (client, events, server)
}

/// A program that has a registry.
async fn connected_to(registry: &Registry) -> (Client, Events, Server) {
    let options = Options { numbers: registry.numbers(), ..Options::new("test", "1.0") };
    connected_with(options, Approvals::deny_all()).await
}

#[tokio::test]
async fn calls_are_answered_in_any_order() {
    let (client, _events, mut server) = connected(Approvals::deny_all()).await;
    let calls = ["a", "b"].map(|method| {
        let client = client.clone();
        tokio::spawn(async move { client.raw(method, json!({"of": method})).await })
    });
    let requests = [server.read().await, server.read().await];
    for request in requests.iter().rev() {
        server.write(json!({"id": request["id"], "result": request["params"]})).await;
    }
    for (call, method) in calls.into_iter().zip(["a", "b"]) {
        assert_eq!(call.await.unwrap(), Ok(json!({"of": method})));
    }
}

#[tokio::test]
async fn a_typed_call_takes_and_gives_types() {
    let (client, _events, mut server) = connected(Approvals::deny_all()).await;
    let calling =
        tokio::spawn(async move { client.call::<ThreadArchive>(&ThreadParams { thread_id: "t".into() }).await });
    let request = server.read().await;
    assert_eq!((&request["method"], &request["params"]), (&json!("thread/archive"), &json!({"threadId": "t"})));
    server.write(json!({"id": request["id"], "result": {}})).await;
    assert!(calling.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_call_has_a_deadline_and_its_late_answer_is_one_to_nobody() {
    let (client, mut events, mut server) = connected(Approvals::deny_all()).await;
    let late = client.raw("slow", json!({})).await;
    assert!(matches!(late, Err(CallError::Late { .. })), "{late:?}");
    let request = server.read().await;
    server.write(json!({"id": request["id"], "result": 1})).await;
    assert!(matches!(events.next().await, Some(Event::Note { text }) if text.contains("nobody")));
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_server_is_asked_again() {
    let (client, _events, mut server) = connected(Approvals::deny_all()).await;
    let calling = tokio::spawn(async move { client.raw("busy", json!({})).await });
    for _ in 0..2 {
        let request = server.read().await;
        server.write(json!({"id": request["id"], "error": {"code": -32001, "message": "later"}})).await;
    }
    let request = server.read().await;
    server.write(json!({"id": request["id"], "result": "done"})).await;
    assert_eq!(calling.await.unwrap(), Ok(json!("done")));
}

#[tokio::test]
async fn an_error_of_the_server_is_told_once() {
    let (client, _events, mut server) = connected(Approvals::deny_all()).await;
    let calling = tokio::spawn(async move { client.raw("wrong", json!({})).await });
    let request = server.read().await;
    server.write(json!({"id": request["id"], "error": {"code": -32600, "message": "no"}})).await;
    let expected = CallError::Refused { method: "wrong".to_owned(), code: -32600, message: "no".to_owned() };
    assert_eq!(calling.await.unwrap(), Err(expected));
}

#[tokio::test]
async fn a_malformed_error_ends_its_call_too() {
    let (client, _events, mut server) = connected(Approvals::deny_all()).await;
    for (error, code, message) in [(json!({"code": "busy", "message": 7}), 0, "7"), (json!({}), 0, "")] {
        let (caller, method) = (client.clone(), "odd".to_owned());
        let call = tokio::spawn(async move { caller.raw("odd", json!({})).await });
        let id = server.read().await["id"].clone();
        server.write(json!({"id": id, "error": error})).await;
        assert_eq!(call.await.unwrap(), Err(CallError::Refused { method, code, message: message.to_owned() }));
    }
}

#[tokio::test]
async fn the_end_of_the_server_ends_all_calls_and_events() {
    let (client, mut events, server) = connected(Approvals::deny_all()).await;
    let calling = tokio::spawn({
        let client = client.clone();
        async move { client.raw("never", json!({})).await }
    });
    tokio::task::yield_now().await;
    drop(server);
    assert_eq!(calling.await.unwrap(), Err(CallError::Closed { method: "never".to_owned() }));
    assert_eq!(events.next().await, None);
    assert!(client.is_closed());
}

#[tokio::test]
async fn questions_wait_without_blocking_the_reader() {
    let (decide, decision) = tokio::sync::watch::channel(None);
    let approvals = Approvals::handler(move |_| {
        let mut decision = decision.clone();
        async move {
            let decided = decision.wait_for(Option::is_some).await;
            decided.ok().and_then(|decided| decided.clone()).unwrap_or_else(|| Decision::deny("nobody"))
        }
    });
    let (_client, mut events, mut server) = connected(approvals).await;
    let method = "item/commandExecution/requestApproval";
    server.write(json!({"id": "q", "method": method, "params": {"threadId": "t"}})).await;
    server.write(json!({"method": "warning", "params": {"message": "goes on"}})).await;
    assert!(matches!(events.next().await, Some(Event::Asked { thread, .. }) if thread == "t"));
    assert!(matches!(events.next().await, Some(Event::Warning { message, .. }) if message == "goes on"));
    decide.send_replace(Some(Decision::Allow));
    assert_eq!(server.read().await, json!({"id": "q", "result": {"decision": "accept"}}));
    assert!(matches!(events.next().await, Some(Event::Resolved { .. })));
}

#[tokio::test]
async fn a_question_that_nobody_knows_is_refused() {
    let (_client, _events, mut server) = connected(Approvals::allow_all()).await;
    server.write(json!({"id": 7, "method": "from/the/future", "params": null})).await;
    let answer = server.read().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32601)));
}

#[tokio::test]
async fn an_approval_that_cannot_be_read_is_denied_and_costs_a_note() {
    let (client, mut events, mut server) = connected(Approvals::allow_all()).await;
    server.write(json!({"id": 7, "method": "execCommandApproval", "params": "rm -r /"})).await;
    assert_eq!(server.read().await, json!({"id": 7, "result": {"decision": "denied"}}));
    assert!(matches!(events.next().await, Some(Event::Asked { .. })));
    assert!(matches!(events.next().await, Some(Event::Note { text }) if text.contains("cannot be read")));
    assert!(!client.is_closed());
}

#[tokio::test]
async fn a_call_may_have_no_deadline() {
    let options = Options { deadline: Duration::MAX, ..Options::new("test", "1.0") };
    let (client, _events, mut server) = connected_with(options, Approvals::deny_all()).await;
    let call = tokio::spawn(async move { client.raw("slow", json!({})).await });
    let id = server.read().await["id"].clone();
    server.write(json!({"id": id, "result": 7})).await;
    assert_eq!(call.await.unwrap(), Ok(json!(7)));
}

#[tokio::test]
async fn a_question_that_is_asked_again_while_it_is_open_has_one_answer() {
    let (decide, decided) = tokio::sync::watch::channel(None::<Decision>);
    let approvals = Approvals::handler(move |_| {
        let mut decided = decided.clone();
        async move { decided.wait_for(Option::is_some).await.unwrap().clone().unwrap() }
    });
    let (_client, mut events, mut server) = connected(approvals).await;
    let question = json!({"id": 7, "method": "execCommandApproval", "params": {"conversationId": "t"}});
    server.write(question.clone()).await;
    server.write(question).await;
    assert!(matches!(events.next().await, Some(Event::Asked { .. })));
    decide.send_replace(Some(Decision::Allow));
    assert_eq!(server.read().await, json!({"id": 7, "result": {"decision": "approved"}}));
    assert!(matches!(events.next().await, Some(Event::Resolved { .. })));
    // A later question is answered next, so nothing else was written before.
    server.write(json!({"id": 8, "method": "execCommandApproval", "params": {"conversationId": "t"}})).await;
    assert_eq!(server.read().await["id"], 8);
}

#[tokio::test]
async fn a_question_that_somebody_else_has_answered_is_left_alone() {
    let (decide, decided) = tokio::sync::watch::channel(false);
    let approvals = Approvals::handler(move |ask| {
        let mut decided = decided.clone();
        async move {
            if ask.id == codex_wire::ids::RequestId::Integer(7) {
                decided.wait_for(|is_decided| *is_decided).await.unwrap();
            }
            Decision::Allow
        }
    });
    let (_client, mut events, mut server) = connected(approvals).await;
    server.write(json!({"id": 7, "method": "execCommandApproval", "params": {"conversationId": "t"}})).await;
    server.write(json!({"method": "serverRequest/resolved", "params": {"threadId": "t", "requestId": 7}})).await;
    assert!(matches!(events.next().await, Some(Event::Asked { .. })));
    assert!(matches!(events.next().await, Some(Event::Resolved { .. })));
    decide.send_replace(true);
    server.write(json!({"id": 8, "method": "execCommandApproval", "params": {"conversationId": "t"}})).await;
    assert_eq!(server.read().await["id"], 8, "the first has no answer of ours");
}

#[tokio::test]
async fn a_second_answer_and_one_with_an_odd_id_are_to_nobody() {
    let (client, mut events, mut server) = connected(Approvals::deny_all()).await;
    let call = tokio::spawn(async move { client.raw("once", json!({})).await });
    let id = server.read().await["id"].clone();
    server.write(json!({"id": id, "result": {"first": true}})).await;
    server.write(json!({"id": id, "result": {"first": false}})).await;
    server.write(json!({"id": "never", "error": {"code": 1, "message": "odd"}})).await;
    assert_eq!(call.await.unwrap(), Ok(json!({"first": true})));
    for _ in 0..2 {
        let event = events.next().await;
        assert!(matches!(&event, Some(Event::Note { text }) if text.contains("to nobody")), "{event:?}");
    }
}

#[tokio::test]
async fn a_line_of_40_mb_is_one_note_and_the_rest_goes_on() {
    let (client, mut events, mut server) = connected(Approvals::deny_all()).await;
    server.write_line(&"x".repeat(40 * 1024 * 1024)).await;
    server.write(json!({"method": "warning", "params": {"threadId": "t", "message": "goes on"}})).await;
    assert!(matches!(events.next().await, Some(Event::Note { text }) if text.contains("too long")));
    assert!(matches!(events.next().await, Some(Event::Warning { .. })));
    assert!(!client.is_closed());
}

#[tokio::test]
async fn noise_is_tolerated_up_to_a_bound() {
    let (client, mut events, mut server) = connected(Approvals::deny_all()).await;
    server.write_line("npm warn something is old").await;
    assert!(matches!(events.next().await, Some(Event::Note { .. })));
    assert!(!client.is_closed());
    for _ in 0..70 {
        server.write_line(&"x".repeat(1024)).await;
    }
    while events.next().await.is_some() {}
    assert!(client.is_closed());
}

#[tokio::test]
async fn a_number_that_goes_back_is_one_note() {
    let registry = Registry::default();
    let numbers = registry.numbers();
    numbers.subscribed("t", &json!({"logId": "log", "seq": 3, "reset": true}));
    let options = Options { numbers, ..Options::new("test", "1.0") };
    let (_client, mut events, mut server) = connected_with(options, Approvals::deny_all()).await;
    for seq in [4, 4, 2, 5] {
        let params = json!({"threadId": "t", "turn": {"id": seq.to_string()}});
        server.write(json!({"method": "turn/started", "params": params, "seq": seq})).await;
    }
    let mut told = Vec::new();
    for _ in 0..4 {
        told.push(matches!(events.next().await, Some(Event::TurnStarted { .. })));
    }
    assert_eq!(told, [true, false, false, true]);
    assert_eq!(registry.numbers().last("t"), (Some("log".to_owned()), Some(5)));
}

#[tokio::test]
async fn closing_ends_the_input_of_the_server() {
    let (client, _events, mut server) = connected(Approvals::deny_all()).await;
    client.close();
    assert_eq!(server.input.next_line().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_greet_is_given_up() {
    let (near, _far) = duplex(1024);
    let (input, output) = tokio::io::split(near);
    let options = Options { deadline: Duration::from_secs(5), ..Options::new("test", "1.0") };
    let error = connect(input, output, options, Approvals::deny_all()).await.unwrap_err();
    assert_eq!(error.to_string(), "the handshake has failed: initialize: no answer within 5s");
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
    let (client, _events, mut server) = connected_to(&registry).await;
    let breaking = async {
        assert_eq!(server.answer("thread/subscribe", subscribed(5, true)).await["after"], Value::Null);
        assert_eq!(server.answer("turn/start", json!({"result": {}})).await["clientUserMessageId"], "zebra");
        assert_eq!(server.read().await["params"]["clientUserMessageId"], "apple");
        drop(server);
    };
    let (recovered, ()) = tokio::join!(registry.recover(&client), breaking);
    assert_eq!(recovered, Err(CallError::Closed { method: "turn/start".to_owned() }));

    let (client, _events, mut server) = connected_to(&registry).await;
    let refusing = async {
        let params = server.answer("thread/subscribe", subscribed(5, false)).await;
        assert_eq!(params, json!({"threadId": "t", "after": 5, "logId": "one"}));
        let refused = json!({"error": {"code": -32600, "message": "no"}});
        assert_eq!(server.answer("turn/start", refused).await["clientUserMessageId"], "apple");
        assert_eq!(server.answer("turn/start", json!({"result": {}})).await["clientUserMessageId"], "mango");
    };
    let (recovered, ()) = tokio::join!(registry.recover(&client), refusing);
    assert_eq!(recovered, Ok([].into()));
    let (recovered, _) =
        tokio::join!(registry.recover(&client), server.answer("thread/subscribe", subscribed(5, false)));
    assert_eq!(recovered, Ok([].into()), "nothing is left to be sent");
}

#[tokio::test]
async fn a_server_of_another_release_sends_the_whole_thread_and_one_that_is_gone_is_named() {
    let mut registry = Registry::default();
    registry.follow("gone");
    registry.follow("t");
    let (client, _events, mut server) = connected_to(&registry).await;
    let refused = |code: i64, message: &str| json!({"error": {"code": code, "message": message}});
    let serving = async {
        server.answer("thread/subscribe", refused(-32600, "unknown variant")).await;
        server.answer("thread/resume", refused(-32600, "no rollout found")).await;
        server.answer("thread/subscribe", refused(-32601, "no such method")).await;
        assert_eq!(server.answer("thread/resume", subscribed(0, false)).await, json!({"threadId": "t"}));
    };
    let (recovered, ()) = tokio::join!(registry.recover(&client), serving);
    assert_eq!(recovered, Ok([("gone".to_owned(), "no rollout found".to_owned())].into()));
}
