//! The program is killed at any moment, and everything that its client had seen is there when it starts again.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::program::{Place, Running};

/// The number of kills. `CODEX_TEST_CRASHES` sets another number, for a long run.
const CRASHES: usize = 50;

const CONFIG: &str = "model_provider = 'mine'\napproval_policy = 'never'\nsandbox_mode = 'danger-full-access'\n\
                      [model_providers.mine]\nname = 'Mine'\nwire_api = 'scripted'\nscript = 'script.json'\n";

/// A turn with every kind of change: text, a command, a patch, text.
const SCRIPT: &str = r#"[
    {"items": [{"text": "I look."}, {"call": "shell", "args": {"command": ["sh", "-c", "echo here >> log; wc -l < log"]}}]},
    {"items": [{"custom": "apply_patch", "input": "*** Begin Patch\n*** Add File: made.txt\n+made\n*** End Patch"}]},
    {"items": [{"text": "I am done.", "deltas": ["I am ", "done."]}]},
    {"items": [{"text": "More.", "deltas": ["Mo", "re."]}], "repeat": true}
]"#;

/// The items that a client has seen completed, by turn and id.
type Seen = BTreeMap<(String, String), Value>;

struct Client<'a> {
    place: &'a Place,
    running: Running,
    next_id: i64,
}

impl<'a> Client<'a> {
    fn start(place: &'a Place) -> Self {
        let running = place.start(&["app-server", "--emulate", "0.166"]);
        let mut client = Self { place, running, next_id: 0 };
        client.ask("initialize", json!({"clientInfo": {"name": "test", "version": "1"}}));
        client
    }

    fn send(&mut self, method: &str, params: Value) -> i64 {
        self.next_id += 1;
        let request = json!({"id": self.next_id, "method": method, "params": params});
        self.running.send(&format!("{request}\n"));
        self.next_id
    }

    /// Sends a request and waits for its successful response.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        loop {
            let mut message = self.running.message();
            if message["id"] == id {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].take();
            }
        }
    }

    /// Reads until the turn is over or `messages` were read. Returns whether it is over.
    fn watch(&mut self, messages: usize, seen: &mut Seen) -> bool {
        for _ in 0..messages {
            let message = self.running.message();
            let params = &message["params"];
            if message["method"] == "item/completed" {
                let name = |key: &Value| key.as_str().expect("a name").to_owned();
                seen.insert((name(&params["turnId"]), name(&params["item"]["id"])), shown(&params["item"]));
            }
            if message["method"] == "turn/completed" {
                assert_eq!(params["turn"]["status"], "completed", "{message}");
                return true;
            }
        }
        false
    }

    fn kill(self) -> &'a Place {
        // Dropping it kills it with SIGKILL.
        self.place
    }
}

/// An item without the members that may differ between its two reports.
fn shown(item: &Value) -> Value {
    let mut item = item.clone();
    let members = item.as_object_mut().expect("an object");
    for time in ["startedAtMs", "completedAtMs", "durationMs"] {
        members.remove(time);
    }
    item
}

fn stored(thread: &Value) -> Seen {
    let mut stored = Seen::new();
    for turn in thread["turns"].as_array().expect("a list") {
        for item in turn["items"].as_array().expect("a list") {
            let name = |key: &Value| key.as_str().expect("a name").to_owned();
            let twice = stored.insert((name(&turn["id"]), name(&item["id"])), shown(item));
            assert!(twice.is_none(), "{item} is there twice");
        }
    }
    stored
}

/// Pseudo-random numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % limit).expect("it is small")
    }
}

#[test]
fn everything_that_a_client_has_seen_survives_every_kill() {
    let crashes = std::env::var("CODEX_TEST_CRASHES").ok().and_then(|text| text.parse().ok()).unwrap_or(CRASHES);
    let place = Place::new().file("home/config.toml", CONFIG).file("home/script.json", SCRIPT);
    let mut client = Client::start(&place);
    let started = client.ask("thread/start", json!({}));
    let thread = started["thread"]["id"].clone();
    let (mut seen, mut numbers) = (Seen::new(), Numbers(7));
    for crash in 0..crashes {
        let input = json!([{"type": "text", "text": format!("Turn {crash}")}]);
        client.send("turn/start", json!({"threadId": thread, "input": input}));
        client.watch(numbers.below(40), &mut seen);
        let place = client.kill();
        client = Client::start(place);
        let resumed = client.ask("thread/resume", json!({"threadId": thread}));
        let kept = stored(&resumed["thread"]);
        for (name, item) in &seen {
            assert_eq!(kept.get(name), Some(item), "after kill {crash}");
        }
    }
    let input = json!([{"type": "text", "text": "The last turn"}]);
    client.send("turn/start", json!({"threadId": thread, "input": input}));
    assert!(client.watch(1000, &mut seen), "the thread still works");
    assert!(seen.len() > crashes, "the kills came too early to show anything");
}
