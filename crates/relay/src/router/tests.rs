use codex_protocol::v2::initialize::Release;

use super::*;

const VIEW: ClientView = ClientView { emulate: None, release: Release::V077, dialect: None };

fn router() -> Router {
    let mut router = Router::new(VIEW);
    let hello = r#"{"id":"a","method":"initialize","params":{"clientInfo":{"name":"me"}}}"#;
    assert_eq!(line(&mut router, hello, true), [to_local(hello)]);
    router
}

fn line(router: &mut Router, text: &str, is_here: bool) -> Vec<Effect> {
    router.client_line(text.into(), Message::read(text.as_bytes()), is_here, Some("me"))
}

fn to_local(text: &str) -> Effect {
    Effect::ToLocal(text.into())
}

fn to_link(link: LinkNumber, text: &str, request: Option<i64>) -> Effect {
    Effect::ToLink { link, line: text.into(), request: request.map(RequestId::Integer) }
}

fn peer(id: &str) -> Peer {
    Peer { id: id.to_owned(), name: format!("server-{id}"), address: "unix:///x".to_owned() }
}

fn read(id: i64, thread: ThreadId) -> String {
    format!(r#"{{"id":{id},"method":"thread/read","params":{{"threadId":"{thread}"}}}}"#)
}

fn told(effects: &[Effect]) -> Vec<Value> {
    let line = |effect: &Effect| match effect {
        Effect::ToClient(line) => Some(serde_json::from_slice(line).unwrap()),
        _ => None,
    };
    effects.iter().filter_map(line).collect()
}

/// A router with an open link to the owner of a thread.
fn linked(thread: ThreadId) -> Router {
    let mut router = router();
    assert_eq!(line(&mut router, &read(1, thread), false), [Effect::LookUp(thread)]);
    let opened = router.looked_up(thread, Some(peer("x")));
    assert!(matches!(&opened[..], [Effect::Open { link: 1, .. }]), "{opened:?}");
    assert_eq!(router.link_opened(1), [to_link(1, &read(1, thread), Some(1))]);
    router
}

#[test]
fn lines_about_threads_that_nobody_else_has_open_pass_through() {
    let (mut router, thread) = (router(), ThreadId::fresh());
    assert_eq!(line(&mut router, &read(1, thread), true), [to_local(&read(1, thread))]);
    assert_eq!(line(&mut router, &read(2, thread), false), [Effect::LookUp(thread)]);
    // Later requests do not overtake the one that waits.
    assert_eq!(line(&mut router, &read(3, thread), true), []);
    assert_eq!(router.looked_up(thread, None), [to_local(&read(2, thread)), to_local(&read(3, thread))]);
    let list = r#"{"id":1,"method":"thread/list","params":{}}"#;
    assert_eq!(line(&mut router, list, false), [to_local(list)]);
}

#[test]
fn requests_wait_for_the_link_and_then_follow_it() {
    let (thread, other) = (ThreadId::fresh(), ThreadId::fresh());
    let mut router = router();
    line(&mut router, &read(1, thread), false);
    let opened = router.looked_up(thread, Some(peer("x")));
    let Effect::Open { link: 1, initialize, .. } = &opened[0] else { panic!("{opened:?}") };
    let hello: Value = serde_json::from_slice(initialize).unwrap();
    let relay =
        json!({"serverId": "x", "firstRequestId": 1_i64 << 32, "emulate": null, "release": "0.77", "dialect": null});
    assert_eq!(hello["params"], json!({"clientInfo": {"name": "me"}, "relay": relay}));
    assert_eq!(line(&mut router, &read(2, thread), false), []);
    // Another thread of the same owner shares the link.
    assert_eq!(line(&mut router, &read(3, other), false), [Effect::LookUp(other)]);
    assert_eq!(router.looked_up(other, Some(peer("x"))), []);
    let sent = router.link_opened(1);
    let expected = [(1, thread), (2, thread), (3, other)].map(|(id, thread)| to_link(1, &read(id, thread), Some(id)));
    assert_eq!(sent, expected);
    assert_eq!(line(&mut router, &read(4, other), false), [to_link(1, &read(4, other), Some(4))]);
}

#[test]
fn a_client_hears_that_a_thread_was_taken_over_before_it_is_served_here() {
    let (thread, other) = (ThreadId::fresh(), ThreadId::fresh());
    let mut router = linked(thread);
    assert!(router.link_line(1, br#"{"id":1,"result":{}}"#));
    line(&mut router, &read(2, other), false);
    router.looked_up(other, Some(peer("x")));
    // Its owner is halted, and this server has taken one of its threads over for another client.
    let effects = line(&mut router, &read(3, thread), true);
    let told = told(&effects);
    assert_eq!(effects.first(), Some(&Effect::Close(1)));
    assert!(!router.link_line(1, br#"{"method":"turn/completed","params":{}}"#), "the old owner is not heard any more");
    assert_eq!(effects.last(), Some(&to_local(&read(3, thread))));
    assert_eq!(told[0]["id"], 2, "{told:?}");
    let mut closed = [thread, other];
    closed.sort_unstable();
    assert_eq!(told[1..], closed.map(|thread| json!({"method": "thread/closed", "params": {"threadId": thread}})));
    // From then on the thread is here, without further words.
    assert_eq!(line(&mut router, &read(4, thread), true), [to_local(&read(4, thread))]);
}

#[test]
fn an_answer_goes_to_the_server_that_asked() {
    let mut router = linked(ThreadId::fresh());
    let (here, there) =
        (r#"{"id":5,"result":{}}"#.to_owned(), format!(r#"{{"id":{},"result":{{}}}}"#, (1_i64 << 32) + 5));
    assert_eq!(line(&mut router, &here, false), [to_local(&here)]);
    assert_eq!(line(&mut router, &there, false), [to_link(1, &there, None)]);
    router.link_closed(1, "gone");
    assert_eq!(line(&mut router, &there, false), [], "nobody waits for it any more");
}

#[test]
fn a_broken_link_answers_its_requests_and_names_its_threads() {
    let thread = ThreadId::fresh();
    let mut router = linked(thread);
    assert!(router.has_unanswered());
    let told = told(&router.link_closed(1, "it has hung up"));
    assert!(!router.has_unanswered());
    assert_eq!(told.len(), 2);
    assert_eq!(told[0]["id"], 1);
    let text = format!(
        "thread {thread} is open on server server-x, which cannot be reached: it has hung up; resume the thread to continue"
    );
    assert_eq!(told[0]["error"]["message"], text);
    assert_eq!(told[1], json!({"method": "thread/closed", "params": {"threadId": thread}}));
    // The next request finds out again who has the thread open, and opens another link.
    assert_eq!(line(&mut router, &read(2, thread), false), [Effect::LookUp(thread)]);
    let opened = router.looked_up(thread, Some(peer("x")));
    assert!(matches!(&opened[..], [Effect::Open { link: 2, .. }]), "{opened:?}");
}

#[test]
fn a_thread_that_its_owner_unloads_is_looked_up_again() {
    let thread = ThreadId::fresh();
    let mut router = linked(thread);
    assert!(router.link_line(1, br#"{"id":1,"result":{}}"#));
    assert!(!router.has_unanswered());
    assert!(router.link_line(1, br#"{"method":"item/agentMessage/delta","params":{}}"#));
    assert!(!router.link_line(1, br#"{"method":"server/moved","params":{}}"#), "the client stays here");
    let closed = format!(r#"{{"method":"thread/closed","params":{{"threadId":"{thread}"}}}}"#);
    assert!(router.link_line(1, closed.as_bytes()));
    assert_eq!(line(&mut router, &read(2, thread), false), [Effect::LookUp(thread)]);
}

#[test]
fn listeners_of_the_first_version_follow_their_thread() {
    let thread = ThreadId::fresh();
    let mut router = linked(thread);
    let add = format!(r#"{{"id":2,"method":"addConversationListener","params":{{"conversationId":"{thread}"}}}}"#);
    assert_eq!(line(&mut router, &add, false), [to_link(1, &add, Some(2))]);
    assert!(router.link_line(1, br#"{"id":2,"result":{"subscriptionId":"s"}}"#));
    let remove = |name: &str| {
        format!(r#"{{"id":3,"method":"removeConversationListener","params":{{"subscriptionId":"{name}"}}}}"#)
    };
    assert_eq!(line(&mut router, &remove("s"), false), [to_link(1, &remove("s"), Some(3))]);
    assert_eq!(line(&mut router, &remove("t"), false), [to_local(&remove("t"))]);
}

#[test]
fn a_relayed_client_is_never_relayed_again_and_only_served_by_the_server_it_means() {
    let thread = ThreadId::fresh();
    let hello = |to: &str| {
        let relay = format!(r#"{{"serverId":"{to}","firstRequestId":4294967296,"release":"0.77"}}"#);
        format!(r#"{{"id":0,"method":"initialize","params":{{"clientInfo":{{"name":"me"}},"relay":{relay}}}}}"#)
    };
    let mut wrong = Router::new(VIEW);
    let refused = told(&line(&mut wrong, &hello("somebody"), false));
    assert_eq!(refused[0]["error"]["message"], "another server is at this address");
    let mut right = Router::new(VIEW);
    assert_eq!(line(&mut right, &hello("me"), false), [to_local(&hello("me"))]);
    assert_eq!(line(&mut right, &read(1, thread), false), [to_local(&read(1, thread))]);
    let answer = r#"{"id":4294967297,"result":{}}"#;
    assert_eq!(line(&mut right, answer, false), [to_local(answer)]);
}

#[test]
fn memory_is_bounded_while_an_owner_is_looked_up_or_does_not_read() {
    let (mut router, thread) = (router(), ThreadId::fresh());
    for id in 0..64 {
        line(&mut router, &read(id, thread), false);
    }
    let refused = told(&line(&mut router, &read(64, thread), false));
    assert_eq!(refused[0]["error"]["code"], OVERLOADED);
    let other = ThreadId::fresh();
    assert_eq!(told(&line(&mut router, &read(65, other), false))[0]["error"]["code"], OVERLOADED);

    let mut router = linked(thread);
    assert_eq!(told(&router.link_full(1, Some(RequestId::Integer(1))))[0]["error"]["code"], OVERLOADED);
    assert!(!router.has_unanswered());
    // An answer that cannot be delivered ends the link, so that the question is asked again.
    assert!(router.link_full(1, None).contains(&Effect::Close(1)));
}

#[test]
fn nobody_hears_of_a_closed_thread_who_does_not_want_to() {
    for capabilities in [r#"{"optOutNotificationMethods":["thread/*"]}"#, r#"{"dialect":"v1"}"#] {
        let (mut router, thread) = (Router::new(VIEW), ThreadId::fresh());
        let client = r#""clientInfo":{"name":"me"}"#;
        let hello = format!(r#"{{"id":0,"method":"initialize","params":{{{client},"capabilities":{capabilities}}}}}"#);
        line(&mut router, &hello, false);
        line(&mut router, &read(1, thread), false);
        router.looked_up(thread, Some(peer("x")));
        router.link_opened(1);
        assert!(router.link_line(1, br#"{"id":1,"result":{}}"#));
        assert_eq!(told(&router.link_closed(1, "gone")), Vec::<Value>::new());
    }
}
