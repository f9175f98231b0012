//! Dependencies point down only, there are few of them, and some crates never depend on others, even indirectly.

use std::collections::{BTreeMap, BTreeSet};

use toml_edit::DocumentMut;

use crate::{no_complaints, root};

/// The foundations of nearly every crate: the types of the agent, and the only way to read a file. They use no other
/// crate of ours, so depending on one couples nothing, and they do not count as dependencies.
const FOUNDATIONS: &[&str] = &["files", "wire"];

/// The crate that joins all others. It may depend on every one of them.
const ROOT: &str = "cli";

/// The crates from the bottom up. A crate may depend only on those on lower levels.
const LEVELS: &[&[&str]] = &[
    FOUNDATIONS,
    &["guard", "lines", "log", "protocol", "terminal", "transport"],
    &[
        "client",
        "config",
        "dialects",
        "dialogue",
        "model",
        "patch",
        "printer",
        "relay",
        "sandbox",
        "shell",
        "store",
        "thread",
        "views",
        "workspace",
    ],
    &["console", "login", "methods", "pipe", "postgres", "tools", "tui"],
    &["agents", "engine", "mcp", "server"],
    &[ROOT],
];

/// Crates for tests only: no crate may need them for its build.
const TEST_CRATES: &[&str] = &["testkit"];

/// The forbidden dependencies of a crate, direct or indirect: our crates, and third-party ones that are large or do
/// what the crate promises not to do.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("client", &["engine", "server", "reqwest", "rusqlite", "tree-sitter"]),
    ("terminal", &["protocol", "tokio", "crossterm", "files"]),
    ("dialogue", &["client", "protocol", "log", "config", "files"]),
    ("views", &["client", "protocol", "log", "config", "files", "tokio", "crossterm"]),
    ("tui", &["engine", "server", "store", "log", "config"]),
    ("engine", &["dialects", "protocol", "server", "store", "axum", "rusqlite"]),
    ("pipe", &["engine", "model", "server", "store", "rusqlite"]),
    ("methods", &["engine", "server", "thread", "tokio", "reqwest", "rusqlite"]),
    ("lines", &["protocol", "log", "reqwest", "rusqlite"]),
    ("server", &["engine", "model", "store", "rusqlite"]),
    ("thread", &["config", "engine", "model", "protocol", "server", "store", "reqwest", "rusqlite", "tree-sitter"]),
    ("log", &["protocol", "tokio", "reqwest", "rusqlite", "tree-sitter"]),
    ("dialects", &["engine", "tokio", "reqwest", "rusqlite", "tree-sitter"]),
    ("protocol", &["tokio", "reqwest", "rusqlite", "tree-sitter"]),
    ("files", &["tokio"]),
    ("wire", &["tokio"]),
    ("patch", &["tokio"]),
    ("shell", &["tokio"]),
    ("config", &["tokio", "protocol"]),
    ("store", &["tokio", "protocol"]),
    ("workspace", &["tokio", "protocol"]),
    ("login", &["engine", "server", "store", "protocol", "dialects", "rusqlite", "tree-sitter"]),
    ("postgres", &["engine", "server", "protocol", "dialects", "reqwest", "tree-sitter"]),
    ("tools", &["engine", "model", "store", "protocol", "dialects"]),
    ("agents", &["engine", "model", "server", "store", "reqwest", "rusqlite"]),
    ("mcp", &["engine", "server", "store", "protocol", "dialects", "rusqlite"]),
    ("transport", &["protocol", "engine"]),
    ("printer", &["config", "dialects", "tokio"]),
    ("relay", &["engine", "log", "server", "thread", "transport", "reqwest", "rusqlite"]),
];

/// Known offences that are still to be fixed. One that is gone has to be removed from the list.
const KNOWN: &[&str] = &[];

const MOST_INTERNAL: usize = 8;
/// The maximum number of crates on top of each other, including [`ROOT`].
const MOST_DEPTH: usize = 5;
const LOCKED_PACKAGES: usize = 550;

/// The crates of the workspace with their build dependencies.
fn crates() -> BTreeMap<String, BTreeSet<String>> {
    let folders = std::fs::read_dir(root().join("crates")).expect("the workspace has crates");
    let mut crates = BTreeMap::new();
    for folder in folders {
        let folder = folder.expect("an entry of a folder can be read").path();
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a crate has a manifest");
        let name = folder.file_name().expect("it has a name").to_string_lossy().into_owned();
        crates.insert(name, dependencies(&manifest));
    }
    crates
}

/// The names under `[dependencies]`, those of the workspace without their prefix.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let manifest: DocumentMut = manifest.parse().expect("a manifest is TOML");
    let table = manifest.get("dependencies").and_then(|item| item.as_table_like());
    let names = table.into_iter().flat_map(|table| table.iter());
    names.map(|(name, _)| name.strip_prefix("codex-").unwrap_or(name).to_owned()).collect()
}

fn level(name: &str) -> Option<usize> {
    LEVELS.iter().position(|level| level.contains(&name))
}

type Crates = BTreeMap<String, BTreeSet<String>>;

/// All direct and indirect dependencies of a crate.
fn closure<'a>(crates: &'a Crates, name: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&BTreeSet<String>> = crates.get(name).into_iter().collect();
    while let Some(needs) = open.pop() {
        for need in needs {
            if reached.insert(need.as_str()) {
                open.extend(crates.get(need));
            }
        }
    }
    reached
}

/// The longest path down from a crate through our crates, itself included.
fn longest_way<'a>(crates: &'a Crates, name: &'a str) -> Vec<&'a str> {
    let below = crates.get(name).into_iter().flatten().filter(|need| crates.contains_key(*need));
    let longest = below.map(|need| longest_way(crates, need)).max_by_key(Vec::len).unwrap_or_default();
    std::iter::once(name).chain(longest).collect()
}

fn complaints(crates: &Crates) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, needs) in crates {
        let own = level(name);
        if own.is_none() && !TEST_CRATES.contains(&name.as_str()) {
            complaints.push(format!("{name}: give it a level"));
        }
        let internal: Vec<&String> = needs.iter().filter(|need| crates.contains_key(*need)).collect();
        let counted = internal.iter().filter(|need| !FOUNDATIONS.contains(&need.as_str())).count();
        if counted > MOST_INTERNAL && name != ROOT {
            complaints.push(format!("{name}: uses {counted} crates, {MOST_INTERNAL} are allowed"));
        }
        for need in internal {
            if own.is_some() && level(need) >= own {
                complaints.push(format!("{name} -> {need}: the arrow does not point down"));
            }
            if own.is_some() && TEST_CRATES.contains(&need.as_str()) {
                complaints.push(format!("{name} -> {need}: only for tests"));
            }
        }
        let forbidden = FORBIDDEN.iter().filter(|(from, _)| name == from).flat_map(|(_, never)| *never);
        let reached = closure(crates, name);
        complaints
            .extend(forbidden.filter(|need| reached.contains(**need)).map(|need| format!("{name} -> {need}: never")));
    }
    let below = crates.get(ROOT).into_iter().flatten().filter(|need| crates.contains_key(*need));
    let way = below.map(|need| longest_way(crates, need)).max_by_key(Vec::len).unwrap_or_default();
    if way.len() + 1 > MOST_DEPTH {
        complaints.push(format!("depth {}: {}", way.len() + 1, way.join(" ")));
    }
    complaints
}

#[test]
fn arrows_point_down() {
    let found = complaints(&crates());
    let gone = KNOWN.iter().filter(|known| !found.iter().any(|found| found == *known));
    let gone: Vec<String> = gone.map(|known| format!("{known}: mended, so take it off the list")).collect();
    let new = found.into_iter().filter(|found| !KNOWN.contains(&found.as_str()));
    no_complaints(new.chain(gone).collect());
}

fn graph(arrows: &[(&str, &[&str])]) -> Crates {
    let needs = |needs: &[&str]| needs.iter().map(|need| (*need).to_owned()).collect();
    arrows.iter().map(|(name, below)| ((*name).to_owned(), needs(below))).collect()
}

#[test]
fn an_arrow_that_points_up_is_noticed() {
    let manifest = "[dependencies]\ncodex-engine.workspace = true\ntokio = \"1\"\n";
    let mut crates = graph(&[("engine", &[]), ("odd", &[])]);
    crates.insert("wire".to_owned(), dependencies(manifest));
    assert_eq!(
        complaints(&crates),
        ["odd: give it a level", "wire -> engine: the arrow does not point down", "wire -> tokio: never"]
    );
}

#[test]
fn a_forbidden_crate_is_noticed_however_long_the_way() {
    let crates = graph(&[
        ("engine", &["config"]),
        ("config", &["search"]),
        ("search", &["tokio", "protocol"]),
        ("protocol", &[]),
    ]);
    let complaints = complaints(&crates);
    for expected in ["engine -> protocol: never", "config -> tokio: never", "config -> protocol: never"] {
        assert!(complaints.iter().any(|complaint| complaint == expected), "{expected} in {complaints:?}");
    }
}

#[test]
fn depth_is_counted_along_the_longest_way() {
    let crates = graph(&[
        ("cli", &["server", "wire"]),
        ("server", &["engine"]),
        ("engine", &["config", "wire"]),
        ("config", &["protocol"]),
        ("protocol", &["wire"]),
        ("wire", &[]),
    ]);
    assert_eq!(longest_way(&crates, "engine"), ["engine", "config", "protocol", "wire"]);
    assert!(complaints(&crates).contains(&"depth 6: server engine config protocol wire".to_owned()));
}

#[test]
fn the_lock_file_stays_short() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).expect("the workspace has a lock file");
    let packages = lock.lines().filter(|line| *line == "[[package]]").count();
    assert!(packages > 10, "the lock file was not understood");
    assert!(packages <= LOCKED_PACKAGES, "{packages} packages are locked, {LOCKED_PACKAGES} are allowed");
}
