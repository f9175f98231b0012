//! A summary of a command line, for clients that show "read main.rs" instead of the command.
//!
//! This is for display only: it is lenient where the approval of a command is strict, and decides nothing.

use std::path::{Path, PathBuf};

use codex_wire::command::{ListFilesCommand, ParsedCommand, ReadCommand, SearchCommand, UnknownCommand};
use codex_wire::command_line::join;

use crate::safe::is_line_range;
use crate::script::{self, Word};
use crate::understand::script;

/// The steps of a command line, for display.
///
/// Steps that only format the output of others, such as `| head`, are left out, and so is a change of folder, which is
/// added to the paths that are read after it.
#[must_use]
pub fn parsed_commands(argv: &[String]) -> Vec<ParsedCommand> {
    let Some(script) = script(argv) else {
        return shown_steps(vec![argv.to_vec()], None).unwrap_or_else(|| vec![unknown(join(argv))]);
    };
    let steps = script::steps(script).filter(|steps| !steps.is_empty());
    let words =
        |seen: script::ScriptCommand| seen.words.iter().filter_map(Word::text).map(str::to_owned).collect::<Vec<_>>();
    let steps = steps.map(|steps| steps.into_iter().map(words).collect());
    steps.and_then(|steps| shown_steps(steps, Some(script))).unwrap_or_else(|| vec![unknown(script.to_owned())])
}

/// The steps of a command line, where one unknown step makes the whole line unknown, as newer clients expect.
#[must_use]
pub fn parsed_commands_or_whole(argv: &[String]) -> Vec<ParsedCommand> {
    let steps = parsed_commands(argv);
    if steps.iter().any(|step| matches!(step, ParsedCommand::Unknown(_))) {
        return vec![unknown(script(argv).map_or_else(|| join(argv), str::to_owned))];
    }
    steps
}

/// Drops steps that need not be shown; `None` if nothing would be left although something runs.
fn shown_steps(mut steps: Vec<Vec<String>>, script: Option<&str>) -> Option<Vec<ParsedCommand>> {
    let alone = steps.len() == 1;
    let mut folder: Option<PathBuf> = None;
    let mut shown = Vec::new();
    let cut_lines = steps.iter().any(|step| is_line_cut(step));
    // An `echo` before everything else is an announcement.
    let spoken = steps.iter().take_while(|step| program(step) == "echo").count();
    steps.drain(..spoken.min(steps.len().saturating_sub(1)));
    for step in &steps {
        if program(step) == "cd" {
            let target = step.iter().skip(1).find(|word| !word.starts_with('-'));
            folder = target.map(|target| folder.unwrap_or_default().join(target));
        } else if alone || !is_shaping(step) {
            let action = action(step, folder.as_deref());
            // On its own it is shown as written.
            if matches!(action, ParsedCommand::Unknown(_)) && (is_shaping(step) || program(step) == "sed") && alone {
                return None;
            }
            shown.push(action);
        }
    }
    shown.dedup();
    if let ([ParsedCommand::Read(read)], true, Some(script)) = (shown.as_mut_slice(), cut_lines, script) {
        script.clone_into(&mut read.cmd);
    }
    let only_moves = steps.iter().all(|step| program(step) == "cd");
    (!shown.is_empty() || only_moves).then_some(shown)
}

fn program(step: &[String]) -> &str {
    step.first().map_or("", String::as_str)
}

/// Whether a step only formats the output of the others, or does nothing.
fn is_shaping(step: &[String]) -> bool {
    let arguments = step.get(1..).unwrap_or_default();
    match program(step) {
        "true" | "wc" | "tr" | "cut" | "sort" | "uniq" | "column" | "yes" | "printf" => true,
        "awk" => file_after(arguments, "Fvf").len() < 2,
        "nl" => file_after(arguments, "bdfhilnsvw").is_empty(),
        "head" | "tail" => file_after(arguments, "nc").is_empty(),
        "sed" => is_line_cut(step),
        _ => false,
    }
}

/// Whether a step is `sed -n 1,5p` without a file.
fn is_line_cut(step: &[String]) -> bool {
    matches!(step, [sed, quiet, range] if sed == "sed" && quiet == "-n" && is_line_range(range))
}

/// The arguments that are neither options nor their values.
fn file_after<'a>(arguments: &'a [String], valued: &str) -> Vec<&'a str> {
    let mut operands = Vec::new();
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if word == "--" {
            operands.extend(words.by_ref());
        } else if word.starts_with("--") {
        } else if let Some(short) = word.strip_prefix('-').filter(|short| !short.is_empty()) {
            if short.len() == 1 && valued.contains(short) {
                words.next();
            }
        } else {
            operands.push(word);
        }
    }
    operands
}

fn action(step: &[String], folder: Option<&Path>) -> ParsedCommand {
    let arguments = step.get(1..).unwrap_or_default();
    let cmd = || join(step);
    let found = match program(step) {
        "ls" | "eza" | "exa" | "tree" => {
            let path = file_after(arguments, "IwTL").first().map(|path| short_path(path));
            Some(ParsedCommand::ListFiles(ListFilesCommand { cmd: cmd(), path }))
        }
        "rg" | "grep" | "egrep" | "fgrep" | "ag" | "ack" => Some(search(step)),
        "fd" | "fdfind" => {
            let operands = file_after(arguments, "eEtdgHx");
            let (query, path) = match operands.as_slice() {
                [only] if only.contains('/') => (None, Some(*only)),
                [query, path, ..] => (Some(*query), Some(*path)),
                rest => (rest.first().copied(), None),
            };
            Some(found_by(cmd(), query, path))
        }
        "find" => Some(find(step)),
        _ => file_read(step).map(|path| read(cmd(), path, folder)),
    };
    found.unwrap_or_else(|| unknown(cmd()))
}

fn search(step: &[String]) -> ParsedCommand {
    let arguments = step.get(1..).unwrap_or_default();
    let given = arguments.iter().position(|word| matches!(word.as_str(), "-e" | "--regexp"));
    let long_valued = [
        "--type",
        "--glob",
        "--context",
        "--after-context",
        "--before-context",
        "--max-count",
        "--regexp",
        "--iglob",
        "--type-not",
        "--max-depth",
    ];
    let mut plain = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if long_valued.contains(&word.as_str()) {
            words.next();
        } else {
            plain.push(word.clone());
        }
    }
    let valued = if program(step) == "rg" { "ABCefgjmMtTrEd" } else { "ABCefmdD" };
    let operands = file_after(&plain, valued);
    let listing = arguments.iter().any(|word| word == "--files");
    let query = given.and_then(|at| arguments.get(at + 1)).map(String::as_str);
    let (query, path) = match (query, listing) {
        (Some(query), _) => (Some(query), operands.first()),
        (None, true) => (None, operands.first()),
        (None, false) => (operands.first().copied(), operands.get(1)),
    };
    found_by(join(step), query, path.copied())
}

fn find(step: &[String]) -> ParsedCommand {
    let arguments = step.get(1..).unwrap_or_default();
    let path = arguments.iter().find(|word| !word.starts_with(['-', '!', '('])).map(String::as_str);
    let tests = ["-name", "-iname", "-path", "-ipath", "-regex", "-iregex"];
    let test = arguments.iter().position(|word| tests.contains(&word.as_str()));
    let query = test.and_then(|at| arguments.get(at + 1)).map(String::as_str);
    found_by(join(step), query, path)
}

fn found_by(cmd: String, query: Option<&str>, path: Option<&str>) -> ParsedCommand {
    let (query, path) = (query.map(str::to_owned), path.map(short_path));
    ParsedCommand::Search(SearchCommand { cmd, query, path })
}

/// The single file that a step shows.
fn file_read(step: &[String]) -> Option<&str> {
    let arguments = step.get(1..).unwrap_or_default();
    let counts_bytes = arguments.iter().any(|word| word.starts_with("-c") || word.starts_with("--bytes"));
    let operands = match program(step) {
        "cat" | "bat" | "batcat" | "less" | "more" => file_after(arguments, ""),
        "nl" => file_after(arguments, "bdfhilnsvw"),
        "head" | "tail" if !counts_bytes && !arguments.iter().any(|word| word == "-f" || word == "-F") => {
            file_after(arguments, "n")
        }
        "sed" => match arguments {
            [quiet, range, files @ ..] if quiet == "-n" && is_line_range(range) => file_after(files, ""),
            _ => return None,
        },
        _ => return None,
    };
    match operands.as_slice() {
        [only] => Some(only),
        _ => None,
    }
}

fn read(cmd: String, path: &str, folder: Option<&Path>) -> ParsedCommand {
    let place = folder.map_or_else(|| PathBuf::from(path), |folder| folder.join(path));
    ParsedCommand::Read(ReadCommand { cmd, name: short_path(path), path: Some(place) })
}

fn unknown(cmd: String) -> ParsedCommand {
    ParsedCommand::Unknown(UnknownCommand { cmd })
}

/// The most telling part of a path: the last one, but not a name that every project has.
fn short_path(path: &str) -> String {
    let trimmed = path.trim_end_matches('/');
    let telling = |part: &&str| !part.is_empty() && !matches!(*part, "build" | "dist" | "node_modules" | "src");
    let part = trimmed.rsplit('/').find(telling).unwrap_or(if trimmed.is_empty() { path } else { trimmed });
    part.to_owned()
}
