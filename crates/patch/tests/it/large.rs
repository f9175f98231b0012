//! Large files and large patches take little time. The times are generous, for slow machines and debug builds.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use codex_patch::TurnDiff;

use crate::{Folder, diff_of, leftovers, patch};

/// Applies a patch and returns how long each part took.
fn timed(folder: &Folder, operations: &str) -> Duration {
    let text = patch(operations);
    let start = Instant::now();
    let plan = folder.planned(&text);
    let planned = start.elapsed();
    let applied = plan.apply(&folder.guard()).unwrap();
    let written = start.elapsed();
    let mut turn = TurnDiff::new(&folder.path);
    turn.note(&applied);
    eprintln!("planned after {planned:?}, applied after {written:?}, noted after {:?}", start.elapsed());
    start.elapsed()
}

fn many_lines(count: usize) -> String {
    (0..count).fold(String::new(), |mut text, n| {
        let _ = writeln!(text, "    let value_{n} = compute({n}, {});", n % 7);
        if n % 5 == 0 {
            text.push_str("}\n");
        }
        text
    })
}

/// A hundred hunks all over the file; every fourth matches only loosely.
fn many_hunks(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut operations = String::from("*** Update File: f");
    for hunk in 0..100 {
        let at = hunk * lines.len() / 100 + 10;
        let loose = if hunk % 4 == 0 { "  " } else { "" };
        let _ =
            write!(operations, "\n@@\n {}{loose}\n-{}\n+changed {hunk}\n {}", lines[at], lines[at + 1], lines[at + 2]);
    }
    operations
}

#[test]
fn a_hundred_hunks_in_fifty_thousand_lines() {
    let text = many_lines(50_000);
    let folder = Folder::with(&[("f", &text)]);
    let operations = many_hunks(&text);
    assert_eq!(diff_of(&folder.planned(&patch(&operations))).matches("\n+changed").count(), 100);
    let time = timed(&folder, &operations);
    assert!(time < Duration::from_secs(5), "{time:?}");
    let new = String::from_utf8(folder.read("f")).unwrap();
    let differ = new.lines().zip(text.lines()).filter(|(new, old)| new != old).count();
    assert_eq!((differ, new.lines().count()), (100, text.lines().count()));
}

#[test]
fn two_hundred_files_in_one_patch() {
    let folder = Folder::new();
    let mut operations = String::new();
    for n in 0..200 {
        let name = format!("folder{}/file{n}", n % 20);
        match n % 4 {
            0 => write!(operations, "*** Add File: {name}\n+new\n").unwrap(),
            1 => writeln!(operations, "*** Delete File: {name}").unwrap(),
            2 => write!(operations, "*** Update File: {name}\n@@\n-line 50\n+changed\n").unwrap(),
            _ => {
                write!(operations, "*** Update File: {name}\n*** Move to: moved/{n}\n@@\n-line 50\n+changed\n")
                    .unwrap();
            }
        }
        if n % 4 > 0 {
            folder.write(&name, (0..100).map(|n| format!("line {n}\n")).collect::<String>());
        }
    }
    let time = timed(&folder, &operations);
    assert!(time < Duration::from_secs(5), "{time:?}");
    assert_eq!(folder.tree().keys().filter(|name| !name.ends_with('/')).count(), 150);
    assert_eq!(leftovers(&folder.at("moved")), Vec::<std::path::PathBuf>::new());
}

#[test]
fn lines_that_repeat_do_not_slow_it_down() {
    let folder = Folder::with(&[("f", "x\n".repeat(200_000))]);
    let text = patch(&format!("*** Update File: f\n@@\n{}-y\n+z", " x\n".repeat(50_000)));
    let start = Instant::now();
    folder.plan(&text).unwrap_err();
    let text = patch(&format!("*** Update File: f\n@@\n{}-x\n+z\n*** End of File", " x\n".repeat(50_000)));
    assert_eq!(diff_of(&folder.planned(&text)), "@@ -199997,4 +199997,4 @@\n x\n x\n x\n-x\n+z\n");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn rewriting_a_whole_file_falls_back_to_a_large_diff() {
    let old: String = (0..20_000).map(|n| format!("{}\n", n * 7 % 1000)).collect();
    let folder = Folder::with(&[("f", &old)]);
    let mut operations = String::from("*** Update File: f\n@@");
    old.lines().for_each(|line| write!(operations, "\n-{line}").unwrap());
    (0..20_000).for_each(|n| write!(operations, "\n+{}", n * 11 % 997).unwrap());
    let time = timed(&folder, &operations);
    assert!(time < Duration::from_secs(5), "{time:?}");
}

#[test]
fn a_file_beyond_the_limit_is_refused() {
    let folder = Folder::new();
    std::fs::File::create(folder.at("f")).unwrap().set_len(codex_patch::MAX_FILE_BYTES + 1).unwrap();
    let error = folder.plan(&patch("*** Update File: f\n@@\n-1\n+2")).unwrap_err();
    assert_eq!(error, "could not read /w/f\n  because it has 67108865 bytes, and the limit is 67108864");
}
