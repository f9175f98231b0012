//! The words that are judged are the words that run: compares parsed words with those that real shells pass to
//! programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use codex_shell::{Understood, understand};
use codex_wire::command_line::display;
use fastrand::Rng;

use crate::argv;

/// Ends the words of one command in a log; no understood word contains a control character.
const END: &str = "\x01";

/// A random script: plain words in all their quotings, and sometimes something that shells expand.
fn random_script(rng: &mut Rng) -> String {
    let mut text = String::new();
    for at in 0..rng.usize(1..4) {
        if at > 0 {
            text.push_str(rng.choice([" && ", "&&", " || ", ";", "; ", " | ", "|", "\n", " &&\n", "|\n\n"]).unwrap());
        }
        text.push_str(&random_spelling(rng, ["a", "b", "ab"]));
        for _ in 0..rng.usize(0..4) {
            text.push_str(rng.choice([" ", " ", "\t", "  "]).unwrap());
            text.push_str(&random_word(rng));
        }
    }
    if rng.usize(0..12) == 0 {
        let at = rng.usize(0..=text.len());
        let odd =
            ["\\\n", "#", "$x", "*", "~", "&", "\r", "\u{a0}", "é", "{a,b}", "!", ">f", "(", "`", "$'a'", "=", "^"];
        if text.is_char_boundary(at) {
            text.insert_str(at, rng.choice(odd).unwrap());
        }
    }
    if rng.usize(0..6) == 0 {
        text.push_str(rng.choice([";", "\n", " ", "; ", "\n\n", " #", "&", "|"]).unwrap());
    }
    text
}

/// One of some names, with each letter quoted in a random way.
fn random_spelling<const N: usize>(rng: &mut Rng, names: [&str; N]) -> String {
    let name = rng.choice(names).unwrap();
    if rng.usize(0..3) > 0 {
        return name.to_owned();
    }
    let spelled = name.chars().map(|c| match rng.usize(0..4) {
        0 => format!("'{c}'"),
        1 => format!("\"{c}\""),
        2 => format!("''{c}\"\""),
        _ => c.to_string(),
    });
    spelled.collect()
}

fn random_word(rng: &mut Rng) -> String {
    const INSIDE: &[char] = &[
        'x', 'y', '-', ' ', '\t', '\n', '$', '`', '"', '\'', '\\', '!', '*', '?', '[', ']', '{', '}', '~', '#', ';',
        '&', '|', '<', '>', '(', ')', '=', '^', '%', '@', ',', 'é', '\u{200b}', '0', '.', '/', ':',
    ];
    const BARE: &[char] = &['x', 'y', '-', '.', '/', ':', ',', '+', '@', '%', '=', '_', '0', '9', '~', 'e', 'c'];
    let mut word = String::new();
    for _ in 0..rng.usize(1..4) {
        let some = |rng: &mut Rng, from: &[char]| {
            (0..rng.usize(0..5)).filter_map(|_| rng.choice(from).copied()).collect::<String>()
        };
        let piece = match rng.usize(0..8) {
            0..=2 => some(rng, BARE),
            3 => format!("'{}'", some(rng, INSIDE).replace('\'', "")),
            4 => format!("\"{}\"", some(rng, INSIDE).replace(['"', '$', '`'], "")),
            5 => format!("\"{}\"", some(rng, INSIDE)),
            6 => format!("\"{}$\"", some(rng, BARE)),
            _ => format!("\\{}", rng.choice(INSIDE.iter().copied()).unwrap()),
        };
        word.push_str(&piece);
    }
    word
}

/// A script and the commands that it is expected to run.
type Case = (String, Vec<Vec<String>>);

/// Understood scripts with their expected commands, and the total number of generated scripts.
fn understood(seed: u64, count: usize) -> (Vec<Case>, usize) {
    let mut rng = Rng::with_seed(seed);
    let (mut cases, mut made) = (Vec::new(), 0);
    while cases.len() < count {
        let text = random_script(&mut rng);
        made += 1;
        if let Understood::Commands(commands) = understand(&argv(&["bash", "-c", &text])) {
            cases.push((text, commands));
        }
    }
    (cases, made)
}

/// The commands of a log.
fn read_log(bytes: &[u8]) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    for word in bytes.split(|byte| *byte == 0) {
        let word = String::from_utf8(word.to_vec()).unwrap();
        if word == END {
            commands.push(Vec::new());
        } else {
            commands.last_mut().unwrap().push(word);
        }
    }
    commands.pop();
    commands
}

/// Compares the commands that ran with the expected ones; the sides of a pipe run in any order.
#[track_caller]
fn compare(text: &str, judged: &[Vec<String>], mut ran: Vec<Vec<String>>, all: bool) {
    let mut left = judged.to_vec();
    for command in &ran {
        let at = left.iter().position(|judged| judged == command);
        left.remove(at.unwrap_or_else(|| panic!("{text:?} ran {command:?}, judged as {judged:?}")));
    }
    ran.sort();
    assert!(!all || left.is_empty(), "{text:?} ran only {ran:?} of {judged:?}");
}

/// A folder with programs that record their arguments and exit with the status in `END`.
fn recorders(folder: &Path) {
    for name in ["a", "b", "ab"] {
        let path = folder.join(name);
        let text = "#!/bin/sh\nprintf '%s\\0' \"${0##*/}\" \"$@\" '\x01' >>\"$LOG\"\nexit $END\n";
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Runs scripts one by one with a shell that finds only recorders.
fn run_each(shell: &str, seed: u64, count: usize) {
    let folder = tempfile::tempdir().unwrap();
    let (bin, empty, log) = (folder.path().join("bin"), folder.path().join("empty"), folder.path().join("log"));
    fs::create_dir(&bin).unwrap();
    fs::create_dir(&empty).unwrap();
    recorders(&bin);
    for (at, (text, judged)) in understood(seed, count).0.into_iter().enumerate() {
        fs::write(&log, "").unwrap();
        let end = (at % 2).to_string();
        let status = Command::new(shell)
            .args(["-c", &text])
            .env_clear()
            .envs([("PATH", bin.as_os_str()), ("LOG", log.as_os_str()), ("END", end.as_ref())])
            .current_dir(&empty)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&status.stderr), "", "{text:?}");
        let skipped = if end == "0" { "||" } else { "&&" };
        compare(&text, &judged, read_log(&fs::read(&log).unwrap()), !text.contains(skipped));
    }
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0, "nothing is written");
}

#[test]
fn bash_runs_what_was_judged() {
    run_each("/bin/bash", 1, 300);
}

#[test]
fn sh_runs_what_was_judged() {
    run_each("/bin/sh", 2, 300);
}

/// Thousands of scripts in one process, with functions that record their arguments in place of programs.
#[test]
fn bash_reads_thousands_of_scripts_as_they_were_judged() {
    let (mut cases, made) = understood(3, 6000);
    assert!(made < 4 * cases.len(), "too much is refused: {} of {made} understood", cases.len());
    // Bash writes line by line, so the output of the sides of a pipe would be interleaved.
    cases.retain(|(text, commands)| !text.contains('|') || !commands.concat().concat().contains('\n'));
    let mut driver =
        "for f in a b ab; do eval \"$f() { printf '%s\\0' $f \\\"\\$@\\\" '\x01'; }\"; done >&2\n".to_owned();
    driver = driver.replace("printf", "exec 3>>$LOG; printf").replace("'\x01'", "'\x01' >&3");
    let run = |(text, _): &Case| format!("eval {}\nprintf '%s\\0' '\x02' '\x01' >&3\n", display(&argv(&[text])));
    driver += &cases.iter().map(run).collect::<Vec<_>>().concat();
    let folder = tempfile::tempdir().unwrap();
    let (log, file) = (folder.path().join("log"), folder.path().join("driver"));
    fs::write(&log, "").unwrap();
    fs::write(&file, format!("exec 3>>\"$LOG\"\n{driver}")).unwrap();
    let output = Command::new("/bin/bash")
        .arg(&file)
        .env_clear()
        .env("LOG", &log)
        .env("LC_ALL", "C.UTF-8")
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let ran = read_log(&fs::read(&log).unwrap());
    let ran: Vec<_> = ran.split(|command| command.first().is_some_and(|word| word == "\x02")).collect();
    assert_eq!(ran.len(), cases.len() + 1);
    for ((text, judged), ran) in cases.iter().zip(ran) {
        compare(text, judged, ran.to_vec(), !text.contains("||"));
    }
}

#[test]
fn bash_reads_back_what_is_displayed() {
    let mut rng = Rng::with_seed(4);
    let mut words = Vec::new();
    for _ in 0..5000 {
        let word = (0..rng.usize(0..8)).map(|_| match rng.usize(0..5) {
            0 => rng.char('\u{1}'..='\u{ff}'),
            1 => rng.char('\u{100}'..),
            2 => {
                *rng.choice(&['\u{202e}', '\u{200b}', '\u{feff}', '\u{2028}', '\n', '\x1b', '\x7f', '\u{85}']).unwrap()
            }
            _ => rng.char(' '..='~'),
        });
        words.push(word.collect::<String>());
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    let printed = words.chunks(50).map(|words| format!("printf '%s\\0' {}\n", display(words)));
    let text = printed.collect::<Vec<_>>().concat();
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
    fs::write(file.path(), text).unwrap();
    let output = Command::new("/bin/bash").arg(file.path()).env_clear().env("LC_ALL", "C.UTF-8").output().unwrap();
    let read = String::from_utf8(output.stdout).unwrap();
    assert_eq!(read.split_terminator('\0').collect::<Vec<_>>(), words);
}
