//! Branches below `codex/`, created, moved and deleted in the files of a repository.
//!
//! `git` itself is not asked: it would read the repository's configuration and run its hooks.

use std::io;

use super::{
    folder::{Folder, Missing},
    refs,
    repository::Repository,
    worktree::WorktreeError,
};

/// The folder of our branches.
const PREFIX: &str = "codex";
const HEADS: &str = "refs/heads/codex";
/// The number of branches of one name.
const MAX_SAME: usize = 1000;
/// The longest name after the prefix.
const MAX_NAME: usize = 40;

/// A name for a new branch that no other has. If the wish is taken, it gets a number.
pub(crate) fn free_name(repository: &Repository, wish: &str) -> Result<String, WorktreeError> {
    let name = slug(wish);
    if refs::resolve(repository, &format!("refs/heads/{PREFIX}")).is_some() {
        return Err(WorktreeError::BranchInTheWay(PREFIX));
    }
    let numbered = (2..=MAX_SAME).map(|number| format!("{PREFIX}/{name}-{number}"));
    let is_free = |branch: &String| tip(repository, branch).is_none() && !is_listed(repository, branch);
    let found = std::iter::once(format!("{PREFIX}/{name}")).chain(numbered).find(is_free);
    found.ok_or(WorktreeError::NoBranch(name))
}

/// The wish that a name was chosen for.
pub(crate) fn wish(branch: &str) -> &str {
    let name = own_name(branch).unwrap_or(branch);
    let (wish, number) = name.rsplit_once('-').unwrap_or((name, ""));
    if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) { wish } else { name }
}

/// Whether there is a file or a folder for a branch, whatever is in it.
fn is_listed(repository: &Repository, branch: &str) -> bool {
    let folder = Folder::open(&repository.common).and_then(|common| common.below(HEADS, Missing::Refused));
    own_name(branch).is_ok_and(|name| folder.is_ok_and(|folder| folder.has(name)))
}

/// Creates a branch at a commit; false if there is one of that name.
pub(crate) fn create(repository: &Repository, branch: &str, commit: &str) -> io::Result<bool> {
    let name = own_name(branch)?;
    let (heads, lock) = locked(repository, name, commit)?;
    if heads.has(name) || tip(repository, branch).is_some() {
        return heads.remove(lock).map(|()| false);
    }
    heads.rename(&lock, name).map(|()| true)
}

/// The commit of a branch.
pub(crate) fn tip(repository: &Repository, branch: &str) -> Option<String> {
    refs::resolve(repository, &format!("refs/heads/{branch}"))
}

/// Moves a branch of ours to a commit.
pub(crate) fn set(repository: &Repository, branch: &str, commit: &str) -> io::Result<()> {
    let name = own_name(branch)?;
    let (heads, lock) = locked(repository, name, commit)?;
    heads.rename(&lock, name)
}

/// Deletes a branch of ours.
pub(crate) fn delete(repository: &Repository, branch: &str) -> io::Result<()> {
    let name = own_name(branch)?;
    let common = Folder::open(&repository.common)?;
    let packed = refs::packed_text(repository).filter(|text| text.contains(branch));
    if let Some(rest) = packed.and_then(|text| without(&text, &format!("refs/heads/{branch}"))) {
        common.replace("packed-refs", rest.as_bytes())?;
    }
    if let Ok(heads) = common.below(HEADS, Missing::Refused) {
        match heads.lock(name, b"") {
            Ok(lock) => {
                let removed = heads.remove(name);
                heads.remove(lock).and(removed)?;
            }
            // Another process has just removed the folder, because it was empty.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    if let Ok(logs) = common.below(&format!("logs/{HEADS}"), Missing::Refused) {
        logs.remove(name)?;
    }
    for folder in ["refs/heads", "logs/refs/heads"] {
        if let Ok(folder) = common.below(folder, Missing::Refused) {
            folder.remove_empty(PREFIX);
        }
    }
    Ok(())
}

/// The folder of our branches, and the lock of one of them with its new commit.
fn locked(repository: &Repository, name: &str, commit: &str) -> io::Result<(Folder, String)> {
    let bytes = format!("{commit}\n");
    Folder::open(&repository.common)?.create_below(HEADS, |heads| {
        let lock = heads.lock(name, bytes.as_bytes())?;
        Ok((heads.again()?, lock))
    })
}

/// The name of one of our branches after the prefix.
fn own_name(branch: &str) -> io::Result<&str> {
    let name = branch.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix('/'));
    let is_plain = |name: &&str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    name.filter(is_plain).ok_or_else(|| io::Error::other("not a branch of this program"))
}

/// The text of `packed-refs` without a ref and the line about the object of its tag; `None` if it is not there.
fn without(text: &str, name: &str) -> Option<String> {
    let mut kept = String::with_capacity(text.len());
    let (mut is_found, mut is_skipping) = (false, false);
    for line in text.split_inclusive('\n') {
        let is_named = line.split_once(' ').is_some_and(|(_, named)| named.trim_end() == name);
        is_skipping = is_named || is_skipping && line.starts_with('^');
        is_found |= is_named;
        if !is_skipping {
            kept.push_str(line);
        }
    }
    is_found.then_some(kept)
}

/// A name for a branch: letters, digits and single hyphens.
pub(crate) fn slug(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars() {
        match c {
            c if c.is_ascii_alphanumeric() => name.push(c.to_ascii_lowercase()),
            _ if !name.is_empty() && !name.ends_with('-') => name.push('-'),
            _ => {}
        }
        if name.len() >= MAX_NAME {
            break;
        }
    }
    let name = name.trim_end_matches('-');
    if name.is_empty() { "agent".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_label_makes_a_plain_name() {
        for (label, name) in [
            ("Fix the parser!", "fix-the-parser"),
            ("../../etc/passwd", "etc-passwd"),
            ("-q --upload-pack=x", "q-upload-pack-x"),
            ("\u{202e}\n", "agent"),
            ("a.lock", "a-lock"),
            ("", "agent"),
        ] {
            assert_eq!(slug(label), name);
        }
        assert_eq!(slug(&"x-".repeat(500)).len(), 39);
    }

    #[test]
    fn a_packed_branch_is_taken_out_with_the_line_about_it() {
        let text = "# pack-refs with: peeled\n1 refs/heads/codex/a\n^2\n3 refs/heads/codex/ab\n^4\n";
        let kept = "# pack-refs with: peeled\n3 refs/heads/codex/ab\n^4\n";
        assert_eq!(without(text, "refs/heads/codex/a").as_deref(), Some(kept));
        assert_eq!(without(text, "refs/heads/codex/c"), None);
    }
}
