//! Measures lists and searches over ten thousand threads: `cargo run --release -p codex-store --example list_figures`.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use codex_log::store::{ListQuery, SearchQuery, SortKey};
use codex_store::ThreadIndex;
use codex_wire::ids::ThreadId;

type Outcome<T> = Result<T, Box<dyn Error>>;

const THREADS: usize = 10_000;
const THREADS_A_DAY: usize = 50;

/// The best of some runs.
fn measure<T>(name: &str, runs: u32, mut work: impl FnMut() -> Outcome<T>) -> Outcome<T> {
    let mut best = (Duration::MAX, None);
    for _ in 0..runs {
        let start = Instant::now();
        let done = work()?;
        best = (best.0.min(start.elapsed()), Some(done));
    }
    writeln!(std::io::stdout(), "{name:<52} {:>10.2} ms", best.0.as_secs_f64() * 1e3)?;
    best.1.ok_or_else(|| "nothing ran".into())
}

/// Writes threads of past days, each with a few turns.
fn write_threads(home: &Path) -> Outcome<()> {
    let word = "The model thinks about it and says what it found. ".repeat(6);
    let instructions = "Follow the rules of the house. ".repeat(200);
    for number in 0..THREADS {
        let day = number / THREADS_A_DAY;
        let (month, day) = (day / 28, day % 28 + 1);
        let (year, month) = (2024 + month / 12, month % 12 + 1);
        let minute = number % THREADS_A_DAY;
        let folder = home.join(format!("sessions/{year}/{month:02}/{day:02}"));
        std::fs::create_dir_all(&folder)?;
        let (id, time) = (ThreadId::fresh(), format!("{year}-{month:02}-{day:02}T10:{minute:02}:00"));
        let mut text = format!(
            r#"{{"timestamp":"{time}.000Z","type":"session_meta","payload":{{"id":"{id}","timestamp":"{time}.000Z","cwd":"/w","originator":"o","cli_version":"0.77.0","instructions":"{instructions}","source":"cli","model_provider":"mock","git":{{"branch":"main"}}}}}}"#
        );
        text.push('\n');
        for turn in 0..4 {
            let said = format!("thread {number} turn {turn} fern{}", number % 500);
            writeln!(
                text,
                r#"{{"timestamp":"{time}.000Z","type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{said}"}}]}}}}"#
            )?;
            writeln!(
                text,
                r#"{{"timestamp":"{time}.000Z","type":"event_msg","payload":{{"type":"user_message","message":"{said}","images":[]}}}}"#
            )?;
            writeln!(
                text,
                r#"{{"timestamp":"{time}.000Z","type":"response_item","payload":{{"type":"function_call","name":"shell","arguments":"{{\"command\":[\"cargo\",\"test\"]}}","call_id":"c{turn}"}}}}"#
            )?;
            writeln!(
                text,
                r#"{{"timestamp":"{time}.000Z","type":"response_item","payload":{{"type":"function_call_output","call_id":"c{turn}","output":"{word}"}}}}"#
            )?;
            writeln!(
                text,
                r#"{{"timestamp":"{time}.000Z","type":"response_item","payload":{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"{word}"}}]}}}}"#
            )?;
        }
        let file = format!("rollout-{}-{id}.jsonl", time.replace(':', "-"));
        std::fs::write(folder.join(file), text)?;
    }
    Ok(())
}

fn list_all(index: &ThreadIndex) -> Outcome<usize> {
    let mut query = ListQuery { limit: 100, ..ListQuery::default() };
    let mut count = 0;
    loop {
        let page = index.list(&query)?;
        count += page.threads.len();
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            return Ok(count);
        }
    }
}

fn main() -> Outcome<()> {
    let home = tempfile::tempdir()?;
    write_threads(home.path())?;
    let index = ThreadIndex::open(home.path());
    let page = ListQuery { limit: 25, ..ListQuery::default() };
    measure("first page, no index yet", 1, || Ok(index.list(&page)?))?;
    let first = SearchQuery { words: "fern".to_owned(), limit: 1, ..SearchQuery::default() };
    measure("first search, which reads all texts", 1, || Ok(index.search(&first)?))?;
    // Every list rereads folders that have just changed.
    std::thread::park_timeout(Duration::from_secs(3));
    index.list(&page)?;
    measure("first page, opened anew", 10, || Ok(ThreadIndex::open(home.path()).list(&page)?))?;
    measure("first page", 50, || Ok(index.list(&page)?))?;
    measure(
        "first page by last change",
        10,
        || Ok(index.list(&ListQuery { sort: SortKey::Updated, ..page.clone() })?),
    )?;
    measure("first page with a text", 10, || {
        Ok(index.list(&ListQuery { text: Some("fern499".to_owned()), ..page.clone() })?)
    })?;
    let count = measure("all pages of 100", 3, || list_all(&index))?;
    assert_eq!(count, THREADS);
    let id = index.list(&page)?.threads.first().map(|thread| thread.id).ok_or("no thread")?;
    measure("find", 50, || Ok(index.find(id)?))?;
    for words in ["fern123", "cargo", "thread turn", "model thinks"] {
        let query = SearchQuery { words: words.to_owned(), limit: 25, ..SearchQuery::default() };
        measure(&format!("search `{words}`"), 5, || Ok(index.search(&query)?))?;
    }
    measure("refresh, nothing changed", 5, || Ok(index.refresh()?))?;
    let size = home.path().join("thread-index.sqlite").metadata()?.len();
    writeln!(std::io::stdout(), "index: {} MB", size / 1_000_000)?;
    Ok(())
}
