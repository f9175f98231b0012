//! Some crates never depend on others, however long the way.

use std::collections::{BTreeMap, BTreeSet};

use toml_edit::{DocumentMut, Item, TableLike};

use crate::packages::{manifests, toml};
use crate::{known, no_complaints, root};

/// Crates for tests only: no crate may need them for its build.
const TEST_CRATES: &[&str] = &["testkit"];

/// The forbidden dependencies of a crate, direct or indirect: our crates, and third-party ones that are large or do
/// what the crate promises not to do.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("agents", &["engine", "model", "server", "store", "reqwest", "rusqlite"]),
    ("client", &["engine", "server", "reqwest", "rusqlite", "tree-sitter"]),
    ("config", &["tokio", "protocol"]),
    ("dialects", &["engine", "tokio", "reqwest", "rusqlite", "tree-sitter"]),
    ("dialogue", &["client", "protocol", "log", "config", "files"]),
    ("engine", &["dialects", "protocol", "server", "store", "axum", "rusqlite"]),
    ("files", &["tokio"]),
    ("lines", &["engine", "protocol", "log", "reqwest", "rusqlite"]),
    ("log", &["protocol", "tokio", "reqwest", "rusqlite", "tree-sitter"]),
    ("login", &["engine", "server", "store", "protocol", "dialects", "rusqlite", "tree-sitter"]),
    ("mcp", &["engine", "server", "store", "protocol", "dialects", "rusqlite"]),
    ("methods", &["engine", "server", "thread", "tokio", "reqwest", "rusqlite"]),
    ("patch", &["tokio"]),
    ("pipe", &["engine", "model", "server", "store", "reqwest", "rusqlite"]),
    ("postgres", &["engine", "server", "store", "protocol", "dialects", "reqwest", "tree-sitter"]),
    ("printer", &["config", "dialects", "tokio"]),
    ("protocol", &["tokio", "reqwest", "rusqlite", "tree-sitter"]),
    ("relay", &["engine", "log", "model", "server", "store", "thread", "transport", "reqwest", "rusqlite"]),
    ("server", &["engine", "model", "store", "reqwest", "rusqlite"]),
    ("shell", &["tokio"]),
    ("store", &["tokio", "protocol"]),
    ("terminal", &["protocol", "tokio", "crossterm", "files"]),
    ("thread", &["config", "engine", "model", "protocol", "server", "store", "reqwest", "rusqlite", "tree-sitter"]),
    ("tools", &["engine", "model", "store", "protocol", "dialects"]),
    ("transport", &["engine", "log", "protocol"]),
    ("tui", &["engine", "server", "store", "log", "config", "reqwest", "rusqlite"]),
    ("views", &["client", "protocol", "log", "config", "files", "tokio", "crossterm"]),
    ("wire", &["tokio"]),
    ("workspace", &["tokio", "protocol"]),
];

const LOCKED_PACKAGES: usize = 550;

/// The name that each of our packages has before its crate's.
const PREFIX: &str = "codex-";

/// Packages with what they need.
type Packages = BTreeMap<String, BTreeSet<String>>;

/// The packages that a manifest needs for a build, on whatever system.
fn dependencies(manifest: &DocumentMut) -> BTreeSet<String> {
    let table = |item: Option<&Item>| -> BTreeSet<String> {
        let table = item.and_then(Item::as_table_like);
        table.into_iter().flat_map(TableLike::iter).map(|(name, _)| name.to_owned()).collect()
    };
    let systems = manifest.get("target").and_then(Item::as_table_like);
    let systems = systems.into_iter().flat_map(TableLike::iter);
    let mut found = table(manifest.get("dependencies"));
    found.extend(systems.flat_map(|(_, system)| table(system.get("dependencies"))));
    found
}

/// The packages of others in a lock file. It does not tell which dependencies are optional, so all count.
fn locked(lock: &DocumentMut) -> Packages {
    let packages = lock.get("package").and_then(Item::as_array_of_tables).expect("the lock file has packages");
    let mut found = Packages::new();
    for package in packages.iter().filter(|package| package.contains_key("source")) {
        let name = package.get("name").and_then(Item::as_str).expect("a package has a name");
        let needs = package.get("dependencies").and_then(Item::as_array);
        let needs = needs.into_iter().flatten().filter_map(|need| need.as_str()?.split(' ').next());
        found.entry(name.to_owned()).or_default().extend(needs.map(str::to_owned));
    }
    found
}

/// Our crates with their build dependencies, and everything below them.
fn packages() -> Packages {
    let mut packages = locked(&toml("Cargo.lock"));
    packages.extend(manifests().iter().map(|(name, manifest)| (format!("{PREFIX}{name}"), dependencies(manifest))));
    packages
}

/// All direct and indirect dependencies of a package.
fn closure<'a>(packages: &'a Packages, name: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&BTreeSet<String>> = packages.get(name).into_iter().collect();
    while let Some(needs) = open.pop() {
        for need in needs {
            if reached.insert(need.as_str()) {
                open.extend(packages.get(need));
            }
        }
    }
    reached
}

/// The forbidden dependencies that are there, and the rows of the table about crates that are not.
fn offences(packages: &Packages) -> Vec<String> {
    let mut found = Vec::new();
    for (crate_name, never) in FORBIDDEN {
        let name = format!("{PREFIX}{crate_name}");
        if !packages.contains_key(&name) {
            found.push(format!("{crate_name}: there is no such crate"));
        }
        let reached = closure(packages, &name);
        // A crate of ours may have the name of one of others, as `log` does.
        let ours = |need: &str| format!("{PREFIX}{need}");
        let is_ours = |need: &str| packages.contains_key(&ours(need));
        let is_reached =
            |need: &str| if is_ours(need) { reached.contains(&*ours(need)) } else { reached.contains(need) };
        let broken = never.iter().filter(|need| is_reached(need));
        found.extend(broken.map(|need| format!("{crate_name} -> {need}")));
    }
    let ours = packages.iter().filter_map(|(name, needs)| Some((name.strip_prefix(PREFIX)?, needs)));
    for (name, needs) in ours.filter(|(name, _)| !TEST_CRATES.contains(name)) {
        let tests = TEST_CRATES.iter().filter(|tests| needs.contains(&format!("{PREFIX}{tests}")));
        found.extend(tests.map(|tests| format!("{name} -> {tests}")));
    }
    found
}

#[test]
fn forbidden_crates_are_not_reached() {
    no_complaints(known::complaints("arrow", &known::counted(offences(&packages()))));
}

/// A graph that has all crates of the table, and these arrows.
fn graph(arrows: &[(&str, &[&str])]) -> Packages {
    let owned = |needs: &[&str]| needs.iter().map(|need| (*need).to_owned()).collect();
    let empty = FORBIDDEN.iter().map(|(name, _)| (format!("{PREFIX}{name}"), BTreeSet::new()));
    empty.chain(arrows.iter().map(|(name, needs)| ((*name).to_owned(), owned(needs)))).collect()
}

#[test]
fn a_forbidden_crate_is_noticed_however_long_the_way() {
    let graph = graph(&[
        ("codex-engine", &["codex-config"]),
        ("codex-config", &["search"]),
        ("search", &["spawn", "log"]),
        ("spawn", &["tokio"]),
        ("codex-log", &["search"]),
    ]);
    let found = offences(&graph);
    assert!(found.contains(&"config -> tokio".to_owned()), "{found:?}");
    assert!(found.contains(&"log -> tokio".to_owned()), "{found:?}");
    assert!(!found.iter().any(|arrow| arrow.ends_with("-> log")), "{found:?}");
}

#[test]
fn dependencies_of_one_system_count_and_those_of_tests_do_not() {
    let manifest =
        "[dependencies]\na = \"1\"\n[target.'cfg(unix)'.dependencies]\nb = \"1\"\n[dev-dependencies]\nc = \"1\"\n";
    let names: Vec<String> = dependencies(&manifest.parse().expect("it is TOML")).into_iter().collect();
    assert_eq!(names, ["a", "b"]);
    let lock = "[[package]]\nname = \"a\"\nsource = \"x\"\ndependencies = [\"b 1.0\"]\n[[package]]\nname = \"ours\"\n";
    let locked = locked(&lock.parse().expect("it is TOML"));
    assert_eq!(locked.len(), 1);
    assert!(locked["a"].contains("b"));
}

#[test]
fn crates_for_tests_are_only_for_tests() {
    let found = offences(&graph(&[("codex-engine", &["codex-testkit"]), ("codex-testkit", &[])]));
    assert_eq!(found, ["engine -> testkit"]);
}

#[test]
fn the_lock_file_stays_short() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).expect("the workspace has a lock file");
    let packages = lock.lines().filter(|line| *line == "[[package]]").count();
    assert!(packages > 10, "the lock file was not understood");
    assert!(packages <= LOCKED_PACKAGES, "{packages} packages are locked, {LOCKED_PACKAGES} are allowed");
}
