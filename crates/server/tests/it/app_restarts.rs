//! Stable numbers: a client continues where it stopped after a restart of the server, at any point.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::app_client::AppClient;
use crate::app_threads::{scripted, start, turn};

/// The number of restarts of one thread.
const RESTARTS_OF_A_THREAD: usize = 20;
/// The number of restarts in all, unless `CODEX_RESTARTS` names another.
const RESTARTS: usize = 100;

/// Pseudorandom numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % limit
    }
}

/// A thread as a client sees it that subscribes by event numbers.
struct View {
    thread: String,
    path: PathBuf,
    log: Value,
    seq: u64,
    /// The number of times that each item was completed.
    whole: HashMap<String, usize>,
    /// Items since the last number.
    pending: Vec<String>,
}

impl View {
    async fn new(client: &mut AppClient) -> Self {
        let thread = start(client).await;
        let answer = client.ok("thread/subscribe", json!({"threadId": thread})).await;
        client.next_notification("thread/caughtUp").await;
        let path = answer["thread"]["path"].as_str().expect("a path").into();
        let (log, seq) = (answer["logId"].clone(), answer["seq"].as_u64().expect("a number"));
        Self { thread, path, log, seq, whole: HashMap::new(), pending: Vec::new() }
    }

    fn hear(&mut self, message: &Value) {
        if message["params"]["threadId"] != json!(self.thread) {
            return;
        }
        if message["method"] == "item/completed" {
            let params = &message["params"];
            self.pending.push(named(&params["turnId"], &params["item"]));
        }
        if let Some(seq) = message["seq"].as_u64() {
            assert!(seq >= self.seq, "numbers grow: {seq} after {}", self.seq);
            self.seq = seq;
            for item in self.pending.drain(..) {
                *self.whole.entry(item).or_default() += 1;
            }
        }
    }

    /// Reconnects to a server that does not know the client.
    async fn come_back(&mut self, client: &mut AppClient) {
        self.pending.clear();
        let params = json!({"threadId": self.thread, "after": self.seq, "logId": self.log});
        let answer = client.ok("thread/subscribe", params).await;
        assert_eq!(answer["reset"], false, "{answer}");
        // Under a new name of the log, numbers grow from the line that the client has reached.
        (self.log, self.seq) = (answer["logId"].clone(), self.seq >> 18 << 18);
        for message in client.messages_until("thread/caughtUp").await {
            self.hear(&message);
        }
    }

    /// Starts a turn and reads some of its messages, or all.
    async fn hear_some(&mut self, client: &mut AppClient, most: usize) {
        let input = json!([{"type": "text", "text": "go"}]);
        client.ask("turn/start", json!({"threadId": self.thread, "input": input})).await;
        for _ in 0..most {
            let message = client.next().await;
            self.hear(&message);
            if message["method"] == "turn/completed" {
                break;
            }
        }
    }

    /// Every item of the file was sent once.
    async fn check(&self, client: &mut AppClient) {
        let read = client.ok("thread/read", json!({"threadId": self.thread, "includeTurns": true})).await;
        let turns = read["thread"]["turns"].as_array().expect("turns");
        let items = |turn: &Value| {
            let items = turn["items"].as_array().expect("items").iter();
            items.map(|item| named(&turn["id"], item)).collect::<Vec<_>>()
        };
        let kept: BTreeSet<String> = turns.iter().flat_map(items).collect();
        let told: BTreeSet<String> = self.whole.keys().cloned().collect();
        assert_eq!(told, kept, "nothing is lost and nothing invented");
        assert!(self.whole.values().all(|count| *count == 1), "nothing is told twice: {:?}", self.whole);
    }
}

/// Scripts restart the item ids with every server, so items are identified together with their turn.
fn named(turn: &Value, item: &Value) -> String {
    format!("{turn} {} {}", item["id"], item["summary"])
}

/// Truncates a file after a line that the client has not received yet, as a crash does.
fn crash(path: &Path, seq: u64, dice: &mut Dice) {
    let bytes = std::fs::read(path).expect("it is there");
    let heard = usize::try_from(seq >> 18).expect("a small file");
    let ends: Vec<_> = (heard..=bytes.len()).filter(|end| *end == heard || bytes[end - 1] == b'\n').collect();
    let end = ends[dice.below(ends.len())];
    std::fs::write(path, &bytes[..end]).expect("it can be written");
}

fn script() -> Value {
    let command = json!({"call": "shell", "args": {"command": ["true"]}});
    json!([{"repeat": true, "items": [{"reasoning": ["one", "two"]}, {"text": "Well, well.", "deltas": ["Well, ", "well."]}]},
           {"items": [command, {"text": "a"}]}])
}

#[tokio::test]
async fn a_client_misses_nothing_however_often_the_server_restarts() {
    let mut dice = Dice(17);
    let mut client = scripted("sandbox_mode = 'danger-full-access'", &script()).await;
    let restarts = std::env::var("CODEX_RESTARTS").ok().and_then(|count| count.parse().ok()).unwrap_or(RESTARTS);
    for _ in 0..restarts / RESTARTS_OF_A_THREAD {
        let mut view = View::new(&mut client).await;
        for _ in 0..RESTARTS_OF_A_THREAD {
            let most = dice.below(40);
            view.hear_some(&mut client, most).await;
            client = client
                .start_again_after(|| {
                    if dice.below(2) == 0 {
                        crash(&view.path, view.seq, &mut dice);
                    }
                })
                .await;
            view.come_back(&mut client).await;
        }
        view.check(&mut client).await;
        client.ok("thread/unsubscribe", json!({"threadId": view.thread})).await;
    }
    client.end_unread().await;
}

#[tokio::test]
async fn numbers_of_a_file_with_ordinals_continue() {
    let mut client = scripted("", &json!([{"repeat": true, "items": [{"text": "a"}]}])).await;
    let mut view = View::new(&mut client).await;
    view.hear_some(&mut client, usize::MAX).await;
    // 0.166 continues the thread: one more turn, with ordinals.
    let lines = [
        r#"{"timestamp":"2026-01-01T00:00:00.000Z","ordinal":7,"type":"event_msg","payload":{"type":"task_started","turn_id":"peer","model_context_window":null}}"#,
        r#"{"timestamp":"2026-01-01T00:00:00.000Z","ordinal":8,"type":"event_msg","payload":{"type":"agent_message","message":"peer","turn_id":"peer","item_id":"peer-1"}}"#,
        r#"{"timestamp":"2026-01-01T00:00:00.000Z","ordinal":9,"type":"event_msg","payload":{"type":"task_complete","turn_id":"peer","last_agent_message":"peer"}}"#,
    ];
    let path = view.path.clone();
    client = client
        .start_again_after(move || {
            let mut text = std::fs::read_to_string(&path).expect("it is there");
            text.extend(lines.map(|line| format!("{line}\n")));
            std::fs::write(&path, text).expect("it can be written");
        })
        .await;
    let before = view.seq;
    view.come_back(&mut client).await;
    assert_eq!(
        view.whole.get("\"peer\" \"peer-1\" null"),
        Some(&1),
        "what the other release said is told: {:?}",
        view.whole
    );
    assert!(view.seq > before);
    turn(&mut client, &view.thread, "go on").await;
    client.end_unread().await;
}

#[tokio::test]
async fn a_place_that_is_no_end_of_a_line_is_not_gone_on_from() {
    let mut client = scripted("", &json!([{"repeat": true, "items": [{"text": "a"}]}])).await;
    let mut view = View::new(&mut client).await;
    view.hear_some(&mut client, usize::MAX).await;
    client = client.start_again_after(|| ()).await;
    for after in [view.seq - (3 << 18), view.seq + (1 << 40)] {
        let params = json!({"threadId": view.thread, "after": after, "logId": view.log});
        let answer = client.ok("thread/subscribe", params).await;
        assert_eq!((&answer["reset"], answer["thread"]["turns"].as_array().map(Vec::len)), (&json!(true), Some(1)));
    }
    client.end_unread().await;
}
