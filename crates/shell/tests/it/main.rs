//! The crate tested from outside: what needs an approval, what is displayed, what rules do, and what a real shell runs.
#![allow(clippy::needless_raw_string_hashes, reason = "expect-test writes its snapshots with them")]
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod actions;
mod approval;
mod bash;
mod limits;
mod properties;
mod rules;
mod tricks;

use serde_json::Value;

/// The words of a command line.
fn argv(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// A script as the engine runs it.
fn script(text: &str) -> Vec<String> {
    argv(&["bash", "-lc", text])
}

/// Scripts of test data, one per line; `␤` stands for a line break and `##` starts a heading.
fn scripts(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with("##")).map(|line| line.replace("␤", "\n"))
}

/// The lines of a file of test data.
fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A list of strings in test data.
fn strings(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}
