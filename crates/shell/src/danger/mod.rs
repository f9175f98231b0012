//! Detects commands that destroy data irrecoverably, anywhere in a command line.
//!
//! Invariant: it fails closed. Anything that cannot be analysed, or whose name is known only at run time, is dangerous.

mod code;
mod git;
mod in_place;
mod moves;

use std::fmt;

pub use moves::{Move, moves};

use codex_wire::command_line::display;

use crate::reach::{Reach, Reached, reach, reads_commands};
use crate::script::Word;
use crate::understand::{base_name, is_shell};

/// The reason why a command line is dangerous.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Danger {
    command: String,
    why: &'static str,
}

impl fmt::Display for Danger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.command.is_empty() { f.write_str(self.why) } else { write!(f, "`{}` {}", self.command, self.why) }
    }
}

/// Detects whether a command line may destroy something, in any position and through any wrapper.
#[must_use]
pub fn danger(argv: &[String]) -> Option<Danger> {
    let reach = reach(argv);
    let found = reach.commands.iter().find_map(|command| {
        let why = judge(command)?;
        Some(Danger { command: shown(&command.words), why })
    });
    found.or_else(|| unseen(&reach))
}

/// Finds danger in parts that could not be analysed.
fn unseen(reach: &Reach) -> Option<Danger> {
    if reach.too_much {
        return Some(Danger { command: String::new(), why: "there is too much of it to check" });
    }
    if let Some(file) = reach.emptied.first() {
        return Some(Danger { command: shown(std::slice::from_ref(file)), why: "is emptied" });
    }
    if reach.fed.iter().any(|text| code::deletes(text)) {
        return Some(Danger { command: String::new(), why: "its input is code that deletes files" });
    }
    if let Some(program) = reach.opaque.first() {
        return Some(Danger { command: program.clone(), why: "runs a script that is known only when it runs" });
    }
    let device = reach.targets.iter().filter_map(Word::text).find(|target| is_disk(target));
    if let Some(device) = device {
        return Some(Danger { command: device.to_owned(), why: "is a disk that would be written over" });
    }
    let mention = reach.unread.iter().find_map(|script| {
        let mut tokens = script.split(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '_' | '-'));
        tokens.find(|token| is_mention(token))
    });
    mention.map(|token| Danger { command: token.to_owned(), why: "is in a script that could not be read" })
}

/// Whether a token of an unparseable script is reason enough to ask.
fn is_mention(token: &str) -> bool {
    let destroys =
        matches!(token, "rm" | "dd" | "chmod" | "chown" | "find" | "git" | "xargs" | "eval" | "sudo" | "doas");
    destroys || is_shell(token) || always(token).is_some()
}

fn shown(words: &[Word]) -> String {
    let texts: Vec<_> = words.iter().map(|word| word.text().unwrap_or("…").to_owned()).collect();
    display(&texts).replace("'…'", "…")
}

fn judge(command: &Reached) -> Option<&'static str> {
    if command.words.is_empty() {
        return None;
    }
    let Some(program) = command.program() else {
        return Some("has a name that is known only when it runs");
    };
    let arguments = Arguments::of(command.arguments());
    let by_name = always(program).or_else(|| match program {
        "rm" | "grm" => rm(&arguments),
        "git" => git::git(command.arguments()),
        "sed" | "gsed" | "perl" | "ruby" => {
            in_place::edits(program, &arguments.texts).then_some("changes files in place")
        }
        "dd" => {
            arguments.any(|text| text.starts_with("of=") && text != "of=/dev/null").then_some("writes over its output")
        }
        "chmod" | "chown" | "chgrp" => arguments.has("R", &["--recursive"]).then_some("changes a whole tree"),
        "find" | "gfind" | "bfs" => arguments.any(|text| text == "-delete").then_some("deletes what it finds"),
        "rsync" => arguments
            .any(|text| text.starts_with("--del") || text == "--remove-source-files")
            .then_some("deletes files"),
        "crontab" => arguments.has("r", &["--remove"]).then_some("deletes the table of jobs"),
        "tee" | "cp" | "mv" | "install" | "ln" => over(program, &arguments),
        "tar" | "bsdtar" | "gtar" => arguments.any(|text| text == "--remove-files").then_some("deletes what it packs"),
        "kill" => arguments.any(|text| text == "-1").then_some("ends every process"),
        "eval" | "source" | "." => arguments.unknown.then_some("runs a script that is known only when it runs"),
        "docker" | "podman" => (arguments.any(|text| text == "prune")
            || arguments.any(|text| text == "rm" || text == "rmi"))
        .then_some("removes containers, images or volumes"),
        "kubectl" | "helm" => {
            arguments.any(|text| matches!(text, "delete" | "uninstall" | "drain")).then_some("deletes from a cluster")
        }
        "terraform" | "tofu" => arguments
            .any(|text| matches!(text, "destroy" | "-auto-approve" | "--auto-approve"))
            .then_some("changes what is deployed"),
        "gh" => arguments.any(|text| text == "delete").then_some("deletes on the server"),
        "aws" | "gsutil" | "rclone" => arguments
            .any(|text| matches!(text, "rm" | "rb" | "delete" | "purge" | "--delete"))
            .then_some("deletes stored files"),
        "init" | "telinit" => arguments.any(|text| text == "0" || text == "6").then_some("stops the machine"),
        "systemctl" => arguments
            .any(|text| matches!(text, "poweroff" | "reboot" | "halt" | "kexec"))
            .then_some("stops the machine"),
        _ => None,
    });
    by_name.or_else(|| fed(command, program)).or_else(|| code::inline(program, &arguments.texts))
}

/// Programs that are dangerous whatever their arguments.
fn always(program: &str) -> Option<&'static str> {
    match program {
        "shred" | "srm" | "wipe" => Some("destroys the contents of files"),
        "truncate" => Some("cuts files off"),
        "unlink" => Some("deletes a file"),
        "mkswap" | "mke2fs" | "wipefs" | "fdisk" | "sfdisk" | "cfdisk" | "gdisk" | "sgdisk" | "parted"
        | "blkdiscard" | "diskutil" | "hdparm" | "badblocks" => Some("changes disks"),
        "sudo" | "doas" | "su" | "pkexec" | "runuser" | "run0" => Some("runs as another user"),
        "shutdown" | "reboot" | "halt" | "poweroff" => Some("stops the machine"),
        _ if program == "mkfs" || program.starts_with("mkfs.") => Some("makes a file system over what is there"),
        _ => None,
    }
}

/// The arguments of a command, with options before `--` separated from the rest.
struct Arguments<'a> {
    texts: Vec<&'a str>,
    options: Vec<&'a str>,
    /// Whether some argument is known only at run time, and so may be an option.
    unknown: bool,
}

impl<'a> Arguments<'a> {
    fn of(words: &'a [Word]) -> Self {
        let texts: Vec<_> = words.iter().filter_map(Word::text).collect();
        let options =
            texts.iter().copied().take_while(|text| *text != "--").filter(|text| text.starts_with('-')).collect();
        let before_end = words.iter().take_while(|word| word.literal() != Some("--"));
        let may_be_option = |word: &Word| match word {
            Word::Literal(_) => false,
            Word::Pattern(text) => text.starts_with(['*', '?', '[', '{', '-']),
            Word::Unknown => true,
        };
        Self { texts, options, unknown: before_end.into_iter().any(may_be_option) }
    }

    fn any(&self, test: impl Fn(&str) -> bool) -> bool {
        self.texts.iter().any(|text| test(text))
    }

    /// Whether one of the given options is present: short ones alone or combined, long ones abbreviated or not.
    fn has(&self, short: &str, long: &[&str]) -> bool {
        self.unknown
            || self.options.iter().any(|option| match option.strip_prefix("--") {
                Some(name) => {
                    let name = name.split('=').next().unwrap_or(name);
                    !name.is_empty() && long.iter().any(|long| long.trim_start_matches('-').starts_with(name))
                }
                None => option.contains(|c| short.contains(c)),
            })
    }
}

fn rm(arguments: &Arguments<'_>) -> Option<&'static str> {
    arguments.has("rRf", &["--recursive", "--force", "--no-preserve-root"]).then_some("deletes without asking")
}

/// Detects files that are emptied or deleted for good, and disks that are overwritten.
fn over(program: &str, arguments: &Arguments<'_>) -> Option<&'static str> {
    if arguments.any(is_disk) {
        return Some("writes over a disk");
    }
    if program != "tee" && arguments.any(|text| text == "/dev/null") {
        return Some("leaves nothing of a file");
    }
    let forced = program == "mv" && arguments.options.iter().any(|option| is_forced(option));
    forced.then_some("replaces files without asking")
}

fn is_forced(option: &str) -> bool {
    match option.strip_prefix("--") {
        Some(name) => !name.is_empty() && "force".starts_with(name),
        // The letters after these are a value.
        None => option.split(['S', 't']).next().is_some_and(|letters| letters.contains('f')),
    }
}

/// Detects shells and interpreters that run the output of another command.
fn fed(command: &Reached, program: &str) -> Option<&'static str> {
    let plain = command.arguments().iter().all(|word| word.text().is_some_and(|text| text.starts_with('-')));
    let reads = command.piped && plain && reads_commands(program) && program != "xargs";
    if reads {
        return Some("runs what another command writes");
    }
    let substituted = command.arguments().contains(&Word::Unknown);
    (substituted && is_shell(program)).then_some("runs a script that is known only when it runs")
}

fn is_disk(target: &str) -> bool {
    let Some(device) = target.strip_prefix("/dev/").or_else(|| target.strip_prefix("of=/dev/")) else { return false };
    ["sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "mapper/", "md", "loop"]
        .iter()
        .any(|name| base_name(device).starts_with(name) || device.starts_with(name))
}
