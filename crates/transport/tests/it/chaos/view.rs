//! A client's view of a thread, built only from the messages it received.
//!
//! Messages count once the number of their event has arrived; messages since the last number are dropped with the
//! connection. Anything that arrives twice, in the wrong order or not at all fails where it is noticed.

use serde_json::Value;

/// A thread as a client knows it.
#[derive(Debug, Default)]
pub(super) struct View {
    /// The log that the number belongs to.
    pub(super) log: Option<String>,
    /// The number of the last complete event.
    pub(super) seq: Option<u64>,
    /// Whether the response to `thread/subscribe` has arrived over this connection, and whether it has caught up since.
    pub(super) is_listening: bool,
    pub(super) has_caught_up: bool,
    /// The messages since the last number.
    pending: Vec<Value>,
    pub(super) turns: Vec<Turn>,
}

/// A turn as a client knows it.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) id: String,
    pub(super) status: String,
    /// Whether it came with a response: then the client may have received only parts of it.
    is_given: bool,
    told_began: usize,
    told_ended: usize,
    /// Complete items, in the order of completion.
    pub(super) items: Vec<Item>,
    open: Vec<Item>,
}

/// An item as a client knows it.
#[derive(Debug, Default)]
pub(super) struct Item {
    id: String,
    is_given: bool,
    told_began: usize,
    pub(super) whole: Value,
    /// The text of its deltas.
    text: String,
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl View {
    /// Drops the messages without a number, because the connection is gone.
    pub(super) fn cut(&mut self) {
        self.pending.clear();
        (self.is_listening, self.has_caught_up) = (false, false);
    }

    /// Handles the response to `thread/subscribe`.
    pub(super) fn subscribed(&mut self, answer: &Value) {
        self.pending.clear();
        self.is_listening = true;
        let log = word(&answer["logId"]);
        if answer["reset"] == false {
            let incarnation = |log: &str| log.split('.').next().map(str::to_owned);
            let known = self.log.replace(log.clone());
            assert_eq!(known.as_deref().and_then(incarnation), incarnation(&log), "an unbroken log is the same log");
            assert!(self.seq <= answer["seq"].as_u64(), "{answer}");
            return;
        }
        (self.log, self.seq) = (Some(log), answer["seq"].as_u64());
        let turns = answer["thread"]["turns"].as_array().expect("turns");
        self.turns = turns.iter().map(Turn::given).collect();
    }

    /// Handles a message about the thread.
    pub(super) fn hear(&mut self, message: &Value) {
        if !self.is_listening {
            // It is in the response, or comes after it.
            return;
        }
        if message["method"] == "thread/caughtUp" {
            assert!(!self.has_caught_up, "it was told before: {message}");
            self.has_caught_up = true;
            // The last event may have produced no message; it is complete by now anyway.
            self.seq = self.seq.max(message["params"]["seq"].as_u64());
            for message in std::mem::take(&mut self.pending) {
                self.take(&message);
            }
            return;
        }
        self.pending.push(message.clone());
        if let Some(seq) = message["seq"].as_u64() {
            assert!(self.seq.is_none_or(|last| last < seq), "{message} after {:?}", self.seq);
            self.seq = Some(seq);
            for message in std::mem::take(&mut self.pending) {
                self.take(&message);
            }
        }
    }

    fn take(&mut self, message: &Value) {
        let params = &message["params"];
        let turn = word(params.get("turnId").unwrap_or(&params["turn"]["id"]));
        match message["method"].as_str().unwrap_or_default() {
            "turn/started" => self.began(word(&params["turn"]["id"])),
            "turn/completed" => self.turn(&turn).ended(&params["turn"]),
            "item/started" => self.turn(&turn).item_began(&params["item"]),
            "item/completed" => self.turn(&turn).item_ended(&params["item"]),
            "item/agentMessage/delta" | "item/commandExecution/outputDelta" | "item/reasoning/summaryTextDelta" => {
                self.turn(&turn).delta(&word(&params["itemId"]), params["delta"].as_str().expect("text"));
            }
            _ => {}
        }
    }

    fn began(&mut self, id: String) {
        match self.turns.iter_mut().find(|turn| turn.id == id) {
            Some(turn) => {
                assert!(turn.is_given && turn.told_began == 0, "{id} begins twice");
                turn.told_began = 1;
            }
            None => self.turns.push(Turn {
                id,
                status: "inProgress".to_owned(),
                is_given: false,
                told_began: 1,
                told_ended: 0,
                items: Vec::new(),
                open: Vec::new(),
            }),
        }
    }

    fn turn(&mut self, id: &str) -> &mut Turn {
        self.turns.iter_mut().find(|turn| turn.id == id).unwrap_or_else(|| panic!("nobody told of {id}"))
    }

    /// Whether the thread is idle, as far as the client knows.
    pub(super) fn is_idle(&self) -> bool {
        self.turns.iter().all(|turn| turn.status != "inProgress")
    }

    /// Whether the client knows that these turns are over.
    pub(super) fn knows(&self, turns: &[String]) -> bool {
        let is_over = |id: &String| self.turns.iter().any(|turn| turn.id == *id && turn.status != "inProgress");
        turns.iter().all(is_over)
    }

    /// The items of each turn, as `thread/read` returns them.
    pub(super) fn shown(&self) -> Vec<(String, String, Vec<Value>)> {
        let items = |turn: &Turn| turn.items.iter().map(|item| item.whole.clone()).collect();
        self.turns.iter().map(|turn| (turn.id.clone(), turn.status.clone(), items(turn))).collect()
    }

    /// Fails unless every turn and every item was reported from start to end.
    pub(super) fn check(&self) {
        for turn in &self.turns {
            assert!(turn.is_given || (turn.told_began, turn.told_ended) == (1, 1), "{turn:?}");
            assert!(turn.open.is_empty(), "{turn:?}");
        }
    }
}

impl Turn {
    fn given(turn: &Value) -> Self {
        let item =
            |item: &Value| Item { id: word(&item["id"]), is_given: true, whole: timeless(item), ..Item::default() };
        Self {
            id: word(&turn["id"]),
            status: word(&turn["status"]),
            is_given: true,
            told_began: 0,
            told_ended: 0,
            items: turn["items"].as_array().expect("items").iter().map(item).collect(),
            open: Vec::new(),
        }
    }

    fn ended(&mut self, turn: &Value) {
        assert_eq!(self.told_ended, 0, "{turn} ends twice");
        (self.told_ended, self.status) = (1, word(&turn["status"]));
        // A clock that started in 1970 would show decades.
        let (began, took) = (turn["startedAt"].as_i64().expect("a time"), turn["durationMs"].as_i64().expect("a time"));
        let ended = turn["completedAt"].as_i64().expect("a time");
        assert!(began > 0 && took <= (ended - began + 1) * 1000, "{turn}");
        let said = self.items.iter().rev().find(|item| item.whole["type"] == "agentMessage");
        let told = turn["items"].as_array().expect("items").iter().map(timeless);
        assert!(
            told.eq(said.map(|item| item.whole.clone())),
            "the last message is told again: {turn} {:?}",
            self.items
        );
    }

    /// Whether a message about an item repeats the contents of a response.
    fn is_given(&self, id: &str) -> bool {
        let known = self.items.iter().find(|item| item.id == id);
        assert!(known.is_none_or(|item| item.is_given), "{id} is whole already");
        known.is_some()
    }

    fn item_began(&mut self, item: &Value) {
        let id = word(&item["id"]);
        if !self.is_given(&id) {
            assert!(!self.open.iter().any(|item| item.id == id), "{id} begins twice");
            self.open.push(Item { id, told_began: 1, ..Item::default() });
        }
    }

    fn delta(&mut self, id: &str, text: &str) {
        if self.is_given(id) {
            return;
        }
        if !self.open.iter().any(|item| item.id == id) {
            assert!(self.is_given, "nobody told of {id}");
            self.open.push(Item { id: id.to_owned(), ..Item::default() });
        }
        let open = self.open.iter_mut().find(|item| item.id == id);
        open.expect("it is there").text.push_str(text);
    }

    fn item_ended(&mut self, item: &Value) {
        let id = word(&item["id"]);
        if let Some(known) = self.items.iter_mut().find(|item| item.id == id) {
            assert!(std::mem::take(&mut known.is_given), "{item} ends twice");
            assert_eq!(known.whole, timeless(item));
            return;
        }
        let open = self.open.iter().position(|item| item.id == id).map(|place| self.open.remove(place));
        assert!(self.is_given || open.is_some(), "nobody told of {item}");
        let mut known = open.unwrap_or_default();
        if known.told_began == 1 {
            assert_eq!(known.text, said(item, &known.text), "{item}");
        }
        (known.id, known.whole) = (id, timeless(item));
        self.items.push(known);
    }
}

/// The expected text of the deltas of a complete item.
fn said(item: &Value, told: &str) -> String {
    match item["type"].as_str().unwrap_or_default() {
        "agentMessage" => word(&item["text"]),
        "commandExecution" if item["status"] == "completed" => word(&item["aggregatedOutput"]),
        "reasoning" => item["summary"].as_array().expect("texts").iter().map(word).collect(),
        // The other kinds do not contain their deltas.
        _ => told.to_owned(),
    }
}

/// An item without the members that may differ between its two reports.
pub(super) fn timeless(item: &Value) -> Value {
    let mut item = item.clone();
    let members = item.as_object_mut().expect("an object");
    for time in ["startedAtMs", "completedAtMs", "durationMs"] {
        members.remove(time);
    }
    item
}
