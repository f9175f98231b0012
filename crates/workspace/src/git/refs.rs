//! The checked-out commit and the commits of the remotes, read from the files of the git folder.

use std::{
    collections::BTreeMap,
    fs,
    path::{Component, Path},
};

use super::{
    file::{read, read_up_to},
    repository::Repository,
};

/// The maximum length of a chain of symbolic refs.
const MAX_LINKS: usize = 5;
/// The maximum nesting depth of folders of refs.
const MAX_DEPTH: usize = 16;
/// The maximum number of remote refs; the rest is ignored.
const MAX_REFS: usize = 50_000;
/// The maximum number of entries in folders of refs.
const MAX_ENTRIES: usize = 200_000;

/// The maximum size of `packed-refs`.
const MAX_PACKED: u64 = 64 * 1024 * 1024;
/// The branch that `HEAD` seems to name if refs are stored in a format that is not supported here.
const ELSEWHERE: &str = "refs/heads/.invalid";

/// The checked-out commit and branch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// The commit, unless there is none yet.
    pub(crate) commit: Option<String>,
    /// The branch, unless `HEAD` is detached.
    pub(crate) branch: Option<String>,
}

/// Reads `HEAD`.
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
pub(crate) fn resolve(repository: &Repository, name: &str) -> Option<String> {
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

/// The commits of the remotes as of the last fetch.
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

/// Collects the refs in separate files, which take precedence over `packed-refs`.
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

pub(crate) fn packed_text(repository: &Repository) -> Option<String> {
    read_up_to(&repository.common.join("packed-refs"), MAX_PACKED)
}

fn packed_refs(text: &str) -> impl Iterator<Item = (String, &str)> {
    text.lines().filter_map(|line| {
        let (id, name) = line.split_once(' ')?;
        Some((commit_id(id)?, name.trim()))
    })
}

/// A complete commit id, in either of git's hash formats.
fn commit_id(text: &str) -> Option<String> {
    let text = text.trim();
    let whole = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    whole.then(|| text.to_ascii_lowercase())
}

/// Whether a ref's name stays below `refs`.
fn is_plain(name: &str) -> bool {
    name.starts_with("refs/") && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}
