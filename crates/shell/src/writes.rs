//! The files that a command line is known to write, for people who want to know who writes what.
//!
//! It sees only what is written in the command: redirections and the arguments of common programs. A program may write
//! other files, so nothing may be allowed because of it.

use crate::reach::{Reached, reach};
use crate::script::Word;

/// The maximum number of files that are returned.
const MOST: usize = 100;

/// The files that a command line writes or removes, as they are named in it, sorted. Relative names are left out if the command
/// changes its folder.
#[must_use]
pub fn written_files(argv: &[String]) -> Vec<String> {
    let reach = reach(argv);
    let moves = reach.commands.iter().any(|command| matches!(command.program(), Some("cd" | "pushd" | "popd")));
    let is_file = |name: &&str| {
        let is_descriptor = name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        !is_descriptor && !name.starts_with("/dev/") && (!moves || name.starts_with('/'))
    };
    let targets = reach.targets.iter().filter_map(Word::literal);
    let arguments = reach.commands.iter().flat_map(written);
    let mut files: Vec<String> = Vec::new();
    for name in targets.chain(arguments).filter(is_file) {
        if files.len() < MOST && !files.iter().any(|known| known == name) {
            files.push(name.to_owned());
        }
    }
    files.sort_unstable();
    files
}

/// The files that one command writes or removes.
fn written(command: &Reached) -> Vec<&str> {
    let words: Vec<&str> = command.arguments().iter().filter_map(Word::literal).collect();
    let names = names(&words);
    match command.program() {
        Some("tee" | "touch" | "truncate" | "rm" | "unlink" | "shred") => names,
        Some("mv" | "gmv") if names.len() == 2 => names,
        Some("cp" | "install" | "ln") if names.len() == 2 => names.into_iter().skip(1).collect(),
        Some("sed" | "gsed" | "perl") => in_place(&words),
        _ => Vec::new(),
    }
}

fn names<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    let (before, after) = words.split_at(end);
    let before = before.iter().filter(|word| !word.starts_with('-'));
    before.chain(after.iter().skip(1)).copied().collect()
}

/// The files that `sed -i` or `perl -pi` changes.
fn in_place<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let is_letters = |word: &str| word.starts_with('-') && !word.starts_with("--");
    let is_in_place = |word: &&str| word.starts_with("--in-place") || (is_letters(word) && word.contains('i'));
    if !words.iter().any(is_in_place) {
        return Vec::new();
    }
    let (mut files, mut has_script) = (Vec::new(), false);
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        if is_letters(word) && word.ends_with(['e', 'f', 'E']) {
            has_script = true;
            words.next();
        } else if !word.starts_with('-') {
            files.push(word);
        }
    }
    files.into_iter().skip(usize::from(!has_script)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(script: &str, expected: &[&str]) {
        let argv = ["bash", "-lc", script].map(str::to_owned);
        assert_eq!(written_files(&argv), expected, "{script}");
    }

    #[test]
    fn files_named_in_a_command_are_found() {
        check("echo x > a.txt; cat b >> c", &["a.txt", "c"]);
        check("make 2>/dev/null >&2 | tee -a log", &["log"]);
        check("sed -i 's/a/b/' x.rs y.rs", &["x.rs", "y.rs"]);
        check("sed -i.bak -e s/a/b/ x.rs && perl -pi -e 's/a/b/' z", &["x.rs", "z"]);
        check("mv a b; cp c d; rm -f -- -e; touch f", &["-e", "a", "b", "d", "f"]);
        check("cat <<'EOF' > src/new.rs\ntext\nEOF", &["src/new.rs"]);
    }

    #[test]
    fn nothing_is_guessed() {
        check("cat a.txt | sed 's/a/b/' | grep x", &[]);
        check("echo x > \"$FILE\"", &[]);
        check("cd sub && echo x > a.txt && echo y > /tmp/b", &["/tmp/b"]);
        assert_eq!(written_files(&["touch".to_owned(), "a".to_owned()]), ["a"]);
    }
}
