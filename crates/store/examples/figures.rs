//! Measures the cost of reading rollouts: `cargo run --release -p codex-store --example figures`.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use codex_log::history::ForkPoint;
use codex_log::state::Interrupted;
use codex_log::store::Entry;
use codex_store::{RolloutLines, count_turns, fork, read_history};
use codex_wire::ids::ThreadId;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The best of some runs, and the additional peak memory of the process while they ran.
fn measure<T>(name: &str, runs: u32, mut work: impl FnMut() -> Outcome<T>) -> Outcome<()> {
    std::fs::write("/proc/self/clear_refs", "5")?;
    let before = memory("VmRSS:")?;
    let mut best = Duration::MAX;
    for _ in 0..runs {
        let start = Instant::now();
        let done = work()?;
        best = best.min(start.elapsed());
        drop(done);
    }
    let grown = memory("VmHWM:")?.saturating_sub(before) / 1024;
    writeln!(std::io::stdout(), "{name:<52} {:>10.2} ms {grown:>6} MB", best.as_secs_f64() * 1e3)?;
    Ok(())
}

/// A memory figure of this process, in KB.
fn memory(name: &str) -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("no such figure")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// One turn: user input, a call, its output, the answer, and the events between, about 850 bytes per item.
fn turn(number: usize) -> String {
    let time = "\"timestamp\":\"2026-11-15T07:38:28.860Z\"";
    let output = "src/main.rs:12:    let value = \\\"quoted\\\";\\n".repeat(38);
    let word = "The model thinks about it and says what it found. ".repeat(6);
    [
        format!(r#"{{{time},"type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"question {number} {word}"}}]}}}}"#),
        format!(r#"{{{time},"type":"event_msg","payload":{{"type":"user_message","message":"question {number} {word}","images":[]}}}}"#),
        format!(r#"{{{time},"type":"turn_context","payload":{{"cwd":"/w","approval_policy":"never","sandbox_policy":{{"type":"read-only"}},"model":"m","summary":"auto"}}}}"#),
        format!(r#"{{{time},"type":"response_item","payload":{{"type":"function_call","name":"shell","arguments":"{{\"command\":[\"ls\"]}}","call_id":"call_{number}"}}}}"#),
        format!(r#"{{{time},"type":"response_item","payload":{{"type":"function_call_output","call_id":"call_{number}","output":"{output}"}}}}"#),
        format!(r#"{{{time},"type":"event_msg","payload":{{"type":"agent_message","message":"{word}"}}}}"#),
        format!(r#"{{{time},"type":"response_item","payload":{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"{word}"}}]}}}}"#),
        format!(r#"{{{time},"type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"total_tokens":{number}}},"last_token_usage":{{}}}}}}}}"#),
        String::new(),
    ]
    .join("\n")
}

/// Writes a rollout with `items` items and a compaction after every `compact` turns.
fn write_rollout(path: &Path, items: usize, compact: usize) -> Outcome<u64> {
    let mut file = BufWriter::new(File::create(path)?);
    let id = ThreadId::fresh();
    writeln!(
        file,
        r#"{{"timestamp":"t","type":"session_meta","payload":{{"id":"{id}","timestamp":"t","cwd":"/w","originator":"o","cli_version":"0.77.0","instructions":null}}}}"#
    )?;
    for number in 0..items / 4 {
        file.write_all(turn(number).as_bytes())?;
        if (number + 1) % compact == 0 {
            writeln!(
                file,
                r#"{{"timestamp":"t","type":"compacted","payload":{{"message":"s","replacement_history":[]}}}}"#
            )?;
        }
    }
    Ok(file.into_inner()?.metadata()?.len())
}

fn read_all(path: &Path) -> Outcome<usize> {
    let mut lines = RolloutLines::open(path)?;
    let mut count = 0;
    while let Some(entry) = lines.next_entry()? {
        count += usize::from(matches!(entry, Entry::Line(_)));
    }
    Ok(count)
}

fn main() -> Outcome<()> {
    let folder = match std::env::args_os().nth(1) {
        Some(folder) => PathBuf::from(folder),
        None => std::env::temp_dir(),
    };
    let folder = tempfile::tempdir_in(folder)?;
    for (items, compact) in [(10_000, usize::MAX), (100_000, usize::MAX), (1_200_000, 7_001)] {
        let path = folder.path().join(format!("{items}.jsonl"));
        let size = write_rollout(&path, items, compact)? / 1_000_000;
        measure(&format!("resume, {items} items, {size} MB"), 3, || Ok(read_history(&path, Interrupted::Kept)?))?;
        measure(&format!("count turns, {size} MB"), 3, || Ok(count_turns(&path)?))?;
        measure(&format!("all lines, {size} MB"), 1, || read_all(&path))?;
        if items == 100_000 {
            let meta = read_history(&path, Interrupted::Kept)?.state.meta;
            let into = folder.path().join("fork.jsonl");
            measure(&format!("fork, {size} MB"), 1, || Ok(fork(folder.path(), &path, ForkPoint::End, &meta, &into)?))?;
        }
        std::fs::remove_file(&path)?;
    }
    Ok(())
}
