//! Laws: a patch made from the difference of two texts turns one into the other, and so does the diff shown for it.

use codex_patch::{Guard, from_command, parse};
use proptest::prelude::*;

use crate::{Folder, diff_of, leftovers};

/// A text with few distinct lines, so that they repeat and are easily confused.
fn text(ending: &'static str) -> impl Strategy<Value = String> {
    let line =
        prop::sample::select(vec!["", "a", "b", " a", "a ", "  b", "}", "@@", "*** End Patch", "+", "-x", "é", "‘a’"]);
    (prop::collection::vec(line, 0..12), any::<bool>()).prop_map(move |(lines, newline)| {
        let text = lines.join(ending);
        if newline && !lines.is_empty() { text + ending } else { text }
    })
}

/// Formats the difference of two texts as a patch, with all lines as context.
fn write_patch(old: &str, new: &str) -> String {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let mut body = String::new();
    let mut write = |sign: char, lines: &[&str]| {
        for line in lines {
            let text = line.trim_end_matches('\n').trim_end_matches('\r');
            let remark = if line.ends_with('\n') { "" } else { "\\ No newline at end of file\n" };
            body += &format!("{sign}{text}\n{remark}");
        }
    };
    for op in similar::capture_diff_slices(similar::Algorithm::Myers, &old, &new) {
        if op.tag() == similar::DiffTag::Equal {
            write(' ', &old[op.old_range()]);
        } else {
            write('-', &old[op.old_range()]);
            write('+', &new[op.new_range()]);
        }
    }
    format!("*** Begin Patch\n*** Update File: f\n@@\n{body}*** End of File\n*** End Patch\n")
}

/// Applies a unified diff in the simplest way.
fn apply_diff(old: &str, diff: &str) -> String {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let (mut at, mut new) = (0, String::new());
    for line in diff.split_inclusive('\n') {
        let (sign, rest) = line.split_at(1);
        match sign {
            "@" => {
                let range = line[4..].split(' ').next().unwrap();
                let (start, count) = range.split_once(',').unwrap_or((range, "1"));
                let start = start.parse::<usize>().unwrap() - usize::from(count != "0");
                new.extend(old[at..start].iter().copied());
                at = start;
            }
            "\\" => assert_eq!(new.pop().into_iter().filter(|c| *c != '\n').count(), 0),
            "+" => new += rest,
            "-" => at += 1,
            _ => {
                new += old[at];
                if !old[at].ends_with('\n') {
                    new.push('\n'); // The remark that follows takes it away again.
                }
                at += 1;
            }
        }
    }
    new.extend(old[at..].iter().copied());
    new
}

/// A remark after a removed line does not concern the new text, so it has to be removed before a diff is applied in the
/// simplest way.
fn without_old_remarks(diff: &str) -> String {
    let mut out: Vec<&str> = Vec::new();
    for line in diff.split_inclusive('\n') {
        if !(line.starts_with('\\') && out.last().is_some_and(|last| last.starts_with('-'))) {
            out.push(line);
        }
    }
    out.concat()
}

#[track_caller]
fn turns_into(old: &str, new: &str) {
    let folder = Folder::with(&[("f", old)]);
    let text = write_patch(old, new);
    let plan = folder.plan(&text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    let diff = diff_of(&plan);
    assert_eq!(apply_diff(old, &without_old_remarks(&diff)), new, "{diff}");
    plan.apply(&folder.guard()).unwrap();
    assert_eq!(String::from_utf8(folder.read("f")).unwrap(), new, "{text}");
    assert_eq!(leftovers(&folder.path), Vec::<std::path::PathBuf>::new());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_patch_from_a_difference_makes_the_difference(old in text("\n"), new in text("\n")) {
        prop_assume!(!old.is_empty() || !new.is_empty());
        turns_into(&old, &new);
    }

    #[test]
    fn also_with_carriage_returns(old in text("\r\n"), new in text("\r\n")) {
        prop_assume!(old.contains("\r\n"));
        turns_into(&old, &new);
    }

    /// Unchanged lines keep their own endings.
    #[test]
    fn endings_of_lines_that_stay_are_kept(endings in prop::collection::vec(any::<bool>(), 3..10), at in any::<prop::sample::Index>()) {
        let ending = |crlf: &bool| if *crlf { "\r\n" } else { "\n" };
        let old: Vec<String> = endings.iter().enumerate().map(|(n, crlf)| format!("line {n}{}", ending(crlf))).collect();
        let at = at.index(old.len());
        let folder = Folder::with(&[("f", old.concat())]);
        folder.apply(&crate::patch(&format!("*** Update File: f\n@@\n-line {at}\n+new"))).unwrap();
        let mut new = old.clone();
        new[at] = format!("new{}", ending(&endings[at]));
        prop_assert_eq!(String::from_utf8(folder.read("f")).unwrap(), new.concat());
    }

    #[test]
    fn nothing_makes_the_parser_panic(text in "\\PC*") {
        let _ = parse(&text);
        let _ = parse(&format!("*** Begin Patch\n{text}\n*** End Patch"));
    }

    /// Texts that are almost patches; whatever can be planned is applied or refused, and leaves nothing behind.
    #[test]
    fn nothing_near_a_patch_makes_it_panic(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..20)) {
        let text = pieces.concat();
        let _ = from_command(&["bash".to_owned(), "-lc".to_owned(), text.clone()]);
        for text in [format!("*** Begin Patch\n*** Update File: f\n{text}\n*** End Patch"), text] {
            let Ok(patch) = parse(&text) else { continue };
            let folder = Folder::with(&[("f", "a\nb\r\na\n\nb"), ("g", "a\n")]);
            let before = folder.tree();
            let Ok(plan) = patch.plan(&folder.path) else { continue };
            if plan.apply(&Guard { roots: Some(vec![folder.path.clone()]), forbidden: vec![], names: vec![] }).is_err() {
                prop_assert_eq!(folder.tree(), before);
            }
            prop_assert!(leftovers(&folder.path).is_empty());
        }
    }
}

const PIECES: &[&str] = &[
    "\n",
    "\n",
    "\r",
    "@@",
    "@@ a",
    " a\n",
    "-a\n",
    "+a\n",
    " b\n",
    "-b\n",
    "+\n",
    " ",
    "-",
    "+",
    "x",
    "***",
    "*** End of File\n",
    "\n*** Begin Patch\n",
    "\n*** End Patch\n",
    "\n*** Add File: g\n",
    "\n*** Add File: h/i\n",
    "\n*** Delete File: f\n",
    "\n*** Update File: f\n",
    "\n*** Update File: g\n",
    "\n*** Move to: h\n",
    "\n*** Move to: ../o\n",
    "\n@@\n",
    "\\ No newline at end of file\n",
    "<<'EOF'\n",
    "EOF",
    "apply_patch ",
    "cd a && ",
    "\u{feff}",
    "é",
    "\0",
];
