//! Lines with a text, as the tests of breaks and of poolers write and read them.

use codex_log::store::{Entry, LogWriter, ReadFrom, ThreadStore};
use codex_postgres::PostgresStore;
use codex_wire::ids::ThreadId;
use serde_json::{Value, json};

pub(crate) fn append(writer: &mut dyn LogWriter, text: &str) {
    let line = json!({"text": text});
    writer.append(0, "event_msg", &mut |out| serde_json::to_writer(out, &line)).expect("it is JSON");
}

pub(crate) fn texts(store: &PostgresStore, thread: ThreadId) -> Vec<String> {
    let mut lines = store.read(thread, ReadFrom::Start).expect("it is there");
    let mut texts = Vec::new();
    while let Some(entry) = lines.next_entry().expect("lines can be read") {
        let Entry::Line(line) = entry else { panic!("a line is broken") };
        texts.push(line.payload_as::<Value>().expect("it is JSON")["text"].as_str().expect("a text").to_owned());
    }
    texts
}
