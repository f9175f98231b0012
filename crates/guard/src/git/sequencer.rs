//! Git operations in progress: the commands that a rebase would execute next.

/// The todo lists below a git folder.
pub const LISTS: [(&str, &str); 2] = [("rebase-merge", "git-rebase-todo"), ("sequencer", "todo")];

/// Git's built-in strategies. For any other name git runs a program with that name.
const STRATEGIES: [&str; 7] = ["ort", "recursive", "resolve", "octopus", "ours", "subtree", ""];

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

/// Whether git would run a line in a shell.
fn executes(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    let word = line.split(|byte| byte.is_ascii_whitespace() || *byte == 0).next().unwrap_or_default();
    matches!(word, b"exec" | b"x")
}

/// The lines of a list that execute something.
pub fn executed(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines(text).filter(|line| executes(line)).map(<[u8]>::trim_ascii)
}

/// The list with the given lines commented out.
#[must_use]
pub fn without(text: &[u8], unwanted: &[&[u8]]) -> Vec<u8> {
    let mut safe = Vec::with_capacity(text.len() + 16);
    for line in lines(text) {
        if executes(line) && unwanted.contains(&line.trim_ascii()) {
            safe.extend_from_slice(b"# ");
        }
        safe.extend_from_slice(line);
    }
    safe
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
    fn lines_that_execute_are_found_and_commented_out() {
        let list = b"pick 1 exec\nexec make\n\tx touch c\nexecute\n# exec c\nexec\ttouch c";
        let found: Vec<&[u8]> = executed(list).collect();
        assert_eq!(found, [b"exec make".as_slice(), b"x touch c", b"exec\ttouch c"]);
        let safe = without(list, &[b"x touch c", b"exec\ttouch c"]);
        let expected = "pick 1 exec\nexec make\n# \tx touch c\nexecute\n# exec c\n# exec\ttouch c";
        assert_eq!(String::from_utf8_lossy(&safe), expected);
        assert!(is_known_strategy(b"ort\n") && !is_known_strategy(b"../x\n"));
    }
}
