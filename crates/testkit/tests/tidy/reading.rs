//! Files are opened and read through `codex-files`, which never blocks and has limits.

use crate::{Source, no_complaints, sources};

/// Calls that open or read any kind of file, in halves so that this file does not contain them.
const UNGUARDED: &[(&str, &str)] =
    &[("fs::", "read("), ("fs::", "read_to_string("), ("File::", "open("), ("File::", "options("), ("fs::", "copy(")];

/// Exceptions, by file and by text in the line, each with its reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("crates/config/src/replace.rs", "folder.sync_all()", "a folder is synced, not read"),
    ("crates/config/src/replace.rs", "folder.lock()", "a folder is locked, not read"),
    ("crates/config/src/temporary.rs", "File::", "a folder is locked, not read"),
    ("crates/tools/src/worktrees.rs", "File::", "a folder is locked, not read"),
    ("crates/sandbox/src/linux/spawn.rs", "/proc/loadavg", "a file of the kernel"),
    ("crates/sandbox/src/linux/cgroup/place.rs", "read_to_string(path)", "a file of the kernel"),
    ("crates/transport/src/descriptors.rs", "/dev/null", "a descriptor is kept, not read"),
    ("crates/store/src/thread_metadata/file.rs", "sync_all()", "a folder is synced, not read"),
    ("crates/store/src/holder.rs", "/proc/locks", "a file of the kernel"),
    ("crates/store/examples/figures.rs", "/proc/self/status", "a file of the kernel"),
    ("crates/config/src/user_agent.rs", "/etc/os-release", "a file of the system, which only root writes"),
    ("crates/transport/src/token.rs", "/dev/urandom", "a device that is wanted"),
    (
        "crates/patch/src/snapshot.rs",
        "File::options().read(true).custom_flags",
        "opens as codex-files does, by its own flags",
    ),
    ("crates/workspace/src/git/", "", "reads repositories with limits of its own"),
];

fn is_excepted(source: &Source, line: &str) -> bool {
    EXCEPTIONS.iter().any(|(file, text, _)| source.name.starts_with(file) && line.contains(text))
}

/// Whether a line contains this call, and not one whose name only ends with it.
fn is_called(line: &str, call: &str) -> bool {
    let is_inside = |at: usize| line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    line.match_indices(call).any(|(at, _)| !is_inside(at))
}

fn complaints(source: &Source) -> Vec<String> {
    if source.is_test() || source.name.starts_with("crates/files/") {
        return Vec::new();
    }
    // Tests are at the end of a file.
    let product = source.text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let mut complaints = Vec::new();
    for (number, line) in product.lines().enumerate() {
        let is_unguarded = UNGUARDED.iter().any(|(first, second)| is_called(line, &format!("{first}{second}")));
        if is_unguarded && !is_excepted(source, line) {
            complaints.push(format!("{}:{}: read it with codex-files: {}", source.name, number + 1, line.trim()));
        }
    }
    complaints
}

#[test]
fn files_are_read_in_one_way() {
    no_complaints(sources().iter().flat_map(complaints).collect());
}

#[test]
fn exceptions_are_still_needed() {
    let sources = sources();
    let is_there = |file: &str, text: &str| {
        sources.iter().any(|source| source.name.starts_with(file) && source.text.contains(text))
    };
    let gone = EXCEPTIONS.iter().filter(|(file, text, _)| !is_there(file, text));
    no_complaints(gone.map(|(file, _, _)| format!("{file}: no longer an exception")).collect());
}

#[test]
fn an_unguarded_read_is_noticed() {
    let text = format!("fn a() {{ std::fs::{}x) }}\n#[cfg(test)]\nmod tests {{ std::fs::{}x) }}", "read(", "read(");
    let found = complaints(&Source { name: "crates/x/src/lib.rs".to_owned(), text });
    assert_eq!(found.len(), 1, "{found:?}");
}
