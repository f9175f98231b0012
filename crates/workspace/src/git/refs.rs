//! What is checked out and what the remotes have, read from the files of the git folder.

use std::{
    collections::BTreeMap,
    fs,
    path::{Component, Path},
};

use super::{
    file::{read, read_up_to},
    repository::Repository,
};

/// Names of names of commits, at most.
const MAX_LINKS: usize = 5;
/// Folders of refs in folders of refs, at most.
const MAX_DEPTH: usize = 16;
/// Refs of remotes, at most; the rest is not looked at.
const MAX_REFS: usize = 50_000;
/// Entries in folders of refs, at most, whatever they are.
const MAX_ENTRIES: usize = 200_000;

/// How long the list of packed refs may be.
const MAX_PACKED: u64 = 64 * 1024 * 1024;
/// The branch that `HEAD` seems to name where refs are kept in another way, which is not understood here.
const ELSEWHERE: &str = "refs/heads/.invalid";

/// What is checked out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// The commit, unless there is none yet.
    pub(crate) commit: Option<String>,
    /// The branch, unless a commit is checked out by itself.
    pub(crate) branch: Option<String>,
}

/// What is checked out.
pub(crate) fn head(repository: &Repository) -> Head {
    let Some(text) = read(&repository.own.join("HEAD")) else { return Head::default() };
    let Some(name) = text.strip_prefix("ref:").map(str::trim) else {
        return Head { commit: commit_id(&text), branch: None };
    };
    if name == ELSEWHERE {
        return Head::default();
    }
    let branch = name.strip_prefix("refs/heads/").filter(|_| is_plain(name)).map(str::to_owned);
    Head { commit: resolve(repository, name), branch }
}

/// The commit that a ref leads to.
fn resolve(repository: &Repository, name: &str) -> Option<String> {
    let mut name = name.to_owned();
    for _ in 0..MAX_LINKS {
        if !is_plain(&name) {
            return None;
        }
        let Some(text) = read(&repository.common.join(&name)) else {
            let packed = packed_text(repository)?;
            return packed_refs(&packed).find(|(_, packed)| *packed == name).map(|(id, _)| id);
        };
        match text.strip_prefix("ref:") {
            Some(next) => next.trim().clone_into(&mut name),
            None => return commit_id(&text),
        }
    }
    None
}

/// The commits that the remotes were at when they were last asked.
pub(crate) fn of_remotes(repository: &Repository) -> Vec<String> {
    let mut found = BTreeMap::new();
    let packed = packed_text(repository).unwrap_or_default();
    let packed = packed_refs(&packed).filter(|(_, name)| name.starts_with("refs/remotes/"));
    found.extend(packed.take(MAX_REFS).map(|(id, name)| (name.to_owned(), id)));
    let mut left = MAX_ENTRIES;
    collect(&repository.common.join("refs/remotes"), "refs/remotes", (0, &mut left), &mut found);
    let mut commits: Vec<_> = found.into_values().collect();
    commits.sort_unstable();
    commits.dedup();
    commits
}

/// Takes in the refs that have a file of their own, which counts more than a line in `packed-refs`.
fn collect(folder: &Path, name: &str, (depth, left): (usize, &mut usize), found: &mut BTreeMap<String, String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (Ok(kind), Ok(file)) = (entry.file_type(), entry.file_name().into_string()) else { continue };
        let name = format!("{name}/{file}");
        if found.len() >= MAX_REFS || *left == 0 {
            return;
        }
        *left -= 1;
        if kind.is_dir() && depth < MAX_DEPTH {
            collect(&entry.path(), &name, (depth + 1, left), found);
        } else if kind.is_file()
            && let Some(id) = read(&entry.path()).as_deref().and_then(commit_id)
        {
            found.insert(name, id);
        }
    }
}

fn packed_text(repository: &Repository) -> Option<String> {
    read_up_to(&repository.common.join("packed-refs"), MAX_PACKED)
}

fn packed_refs(text: &str) -> impl Iterator<Item = (String, &str)> {
    text.lines().filter_map(|line| {
        let (id, name) = line.split_once(' ')?;
        Some((commit_id(id)?, name.trim()))
    })
}

/// A whole name of a commit, by either of git's hashes.
fn commit_id(text: &str) -> Option<String> {
    let text = text.trim();
    let whole = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    whole.then(|| text.to_ascii_lowercase())
}

/// Whether a ref's name stays below `refs`.
fn is_plain(name: &str) -> bool {
    name.starts_with("refs/") && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}
