//! Git operations in progress: the commands that a rebase would execute next.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::disarm;
use crate::walk::{Root, Stamp};

/// The todo lists below a git folder.
pub const LISTS: [(&str, &str); 2] = [("rebase-merge", "git-rebase-todo"), ("sequencer", "todo")];

/// Git's built-in strategies. For any other name git runs a program with that name.
const STRATEGIES: [&str; 7] = ["ort", "recursive", "resolve", "octopus", "ours", "subtree", ""];

/// The lines of each list that execute something, as they were before a command.
pub type Executed = HashMap<PathBuf, Vec<Vec<u8>>>;

/// Records what the lists of some git folders execute, if they were written before `earliest`.
pub fn executed(git_folders: &[PathBuf], earliest: i128) -> Executed {
    let mut executed = Executed::new();
    for git in git_folders {
        for (folder, list) in LISTS {
            let Some(open) = Root::open(&git.join(folder)).and_then(|root| root.folder(Path::new(""))) else {
                continue;
            };
            let is_older = |stamp: Option<Stamp>| stamp.is_some_and(|stamp| stamp.changed < earliest);
            if let Some(text) = disarm::read(&open, list).filter(|_| is_older(open.stamp_of(list))) {
                let lines = lines(&text).filter(|line| executes(line)).map(<[u8]>::to_vec).collect();
                executed.insert(git.join(folder).join(list), lines);
            }
        }
    }
    executed
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

/// Whether git would run a line in a shell.
fn executes(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    let word = line.split(|byte| byte.is_ascii_whitespace() || *byte == 0).next().unwrap_or_default();
    matches!(word, b"exec" | b"x")
}

/// The list without newly added commands; `None` if there is nothing to change.
#[must_use]
pub fn without_execution(text: &[u8], before: &[Vec<u8>]) -> Option<Vec<u8>> {
    let is_new = |line: &&[u8]| executes(line) && !before.iter().any(|known| known.trim_ascii() == line.trim_ascii());
    lines(text).any(|line| is_new(&line)).then(|| {
        let mut safe = Vec::with_capacity(text.len() + 16);
        for line in lines(text) {
            if is_new(&line) {
                safe.extend_from_slice(b"# ");
            }
            safe.extend_from_slice(line);
        }
        safe
    })
}

/// Whether a merge strategy is built into git.
#[must_use]
pub fn is_known_strategy(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| STRATEGIES.contains(&text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_lines_that_execute_are_commented_out() {
        let before = vec![b"exec make\n".to_vec()];
        let list = b"pick 1 exec\nexec make\n\tx touch c\nexecute\n# exec c\nexec\ttouch c";
        let safe = without_execution(list, &before).unwrap();
        let expected = "pick 1 exec\nexec make\n# \tx touch c\nexecute\n# exec c\n# exec\ttouch c";
        assert_eq!(String::from_utf8_lossy(&safe), expected);
        assert_eq!(without_execution(b"pick 1\nexec make\n", &before), None);
        assert!(is_known_strategy(b"ort\n") && !is_known_strategy(b"../x\n"));
    }
}
