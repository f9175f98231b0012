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
/// The number of branches of one name.
const MAX_SAME: usize = 1000;
/// The longest name after the prefix.
const MAX_NAME: usize = 40;

/// Creates a branch at a commit and returns its name. If the name is taken, it gets a number.
pub(crate) fn create(repository: &Repository, wish: &str, commit: &str) -> Result<String, WorktreeError> {
    let name = slug(wish);
    let failed = |source| WorktreeError::Write { path: repository.common.join("refs/heads"), source };
    if refs::resolve(repository, &format!("refs/heads/{PREFIX}")).is_some() {
        return Err(WorktreeError::BranchInTheWay(PREFIX));
    }
    let heads = open(repository).map_err(failed)?;
    for number in 1..=MAX_SAME {
        let name = if number == 1 { name.clone() } else { format!("{name}-{number}") };
        let branch = format!("{PREFIX}/{name}");
        if heads.has(&name) || refs::resolve(repository, &format!("refs/heads/{branch}")).is_some() {
            continue;
        }
        match heads.write_new(&name, format!("{commit}\n").as_bytes()) {
            // Another process has just taken this name.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            written => return written.map(|()| branch).map_err(failed),
        }
    }
    Err(WorktreeError::NoBranch(name))
}

/// The commit of a branch.
pub(crate) fn tip(repository: &Repository, branch: &str) -> Option<String> {
    refs::resolve(repository, &format!("refs/heads/{branch}"))
}

/// Moves a branch of ours to a commit.
pub(crate) fn set(repository: &Repository, branch: &str, commit: &str) -> io::Result<()> {
    let name = own_name(branch)?;
    open(repository)?.replace(name, format!("{commit}\n").as_bytes())
}

/// Deletes a branch of ours.
pub(crate) fn delete(repository: &Repository, branch: &str) -> io::Result<()> {
    let name = own_name(branch)?;
    let common = Folder::open(&repository.common)?;
    let packed = refs::packed_text(repository).filter(|text| text.contains(branch));
    if let Some(rest) = packed.and_then(|text| without(&text, &format!("refs/heads/{branch}"))) {
        common.replace("packed-refs", rest.as_bytes())?;
    }
    open(repository)?.remove(name)?;
    if let Ok(logs) = common.below(&format!("logs/refs/heads/{PREFIX}"), Missing::Refused) {
        logs.remove(name)?;
    }
    for folder in ["refs/heads", "logs/refs/heads"] {
        if let Ok(folder) = common.below(folder, Missing::Refused) {
            folder.remove_empty(PREFIX);
        }
    }
    Ok(())
}

fn open(repository: &Repository) -> io::Result<Folder> {
    Folder::open(&repository.common)?.below(&format!("refs/heads/{PREFIX}"), Missing::Created)
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
