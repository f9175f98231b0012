//! Commands that destroy what cannot be brought back, wherever in a command line they are.
//!
//! Invariant: it fails closed. What cannot be looked at, or has a name that is known only when it runs, is dangerous.

use std::fmt;

use codex_wire::command_line::display;

use crate::reach::{Reach, Reached, reach, reads_commands};
use crate::sight::Word;
use crate::understand::{base_name, is_shell};

/// Why a command line is dangerous.
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

/// Finds out whether a command line may destroy something, in any position and through any wrapper.
#[must_use]
pub fn danger(argv: &[String]) -> Option<Danger> {
    let reach = reach(argv);
    let found = reach.commands.iter().find_map(|command| {
        let why = judge(command)?;
        Some(Danger { command: shown(&command.words), why })
    });
    found.or_else(|| unseen(&reach))
}

/// Finds danger in what could not be looked at.
fn unseen(reach: &Reach) -> Option<Danger> {
    if reach.too_much {
        return Some(Danger { command: String::new(), why: "there is too much of it to check" });
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

/// Tells whether a token of a script that could not be read is reason enough to ask.
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
        "git" => git(command.arguments()),
        "dd" => {
            arguments.any(|text| text.starts_with("of=") && text != "of=/dev/null").then_some("writes over its output")
        }
        "chmod" | "chown" | "chgrp" => arguments.has("R", &["--recursive"]).then_some("changes a whole tree"),
        "find" => arguments.any(|text| text == "-delete").then_some("deletes what it finds"),
        "rsync" => arguments
            .any(|text| text.starts_with("--del") || text == "--remove-source-files")
            .then_some("deletes files"),
        "crontab" => arguments.has("r", &["--remove"]).then_some("deletes the table of jobs"),
        "tee" | "cp" | "mv" => arguments.any(is_disk).then_some("writes over a disk"),
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
    by_name.or_else(|| fed(command, program)).or_else(|| code(program, command.arguments()))
}

/// Programs that are dangerous whatever their arguments.
fn always(program: &str) -> Option<&'static str> {
    match program {
        "shred" | "srm" | "wipe" => Some("destroys the contents of files"),
        "truncate" => Some("cuts files off"),
        "mkswap" | "mke2fs" | "wipefs" | "fdisk" | "sfdisk" | "cfdisk" | "gdisk" | "sgdisk" | "parted"
        | "blkdiscard" | "diskutil" | "hdparm" | "badblocks" => Some("changes disks"),
        "sudo" | "doas" | "su" | "pkexec" | "runuser" | "run0" => Some("runs as another user"),
        "shutdown" | "reboot" | "halt" | "poweroff" => Some("stops the machine"),
        _ if program == "mkfs" || program.starts_with("mkfs.") => Some("makes a file system over what is there"),
        _ => None,
    }
}

/// The arguments of a command, options before `--` told apart from the rest.
struct Arguments<'a> {
    texts: Vec<&'a str>,
    options: Vec<&'a str>,
    /// Whether some argument is known only when it runs, and so may be an option.
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

    /// Tells whether one of some short options, alone or among others, or of some long ones, cut short or not, is there.
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

/// Judges a git command behind its global options.
fn git(words: &[Word]) -> Option<&'static str> {
    let mut rest = words.iter();
    let subcommand = loop {
        match rest.next() {
            None => return None,
            Some(Word::Unknown | Word::Pattern(_)) => return Some("does what is known only when it runs"),
            Some(Word::Literal(text)) => match text.as_str() {
                "-c" | "--config-env" => {
                    let setting = rest.next().and_then(Word::text);
                    if setting.is_none_or(runs_program) {
                        return Some("runs a program from its settings");
                    }
                }
                "-C" | "--git-dir" | "--work-tree" | "--namespace" | "--super-prefix" | "--attr-source" => {
                    _ = rest.next();
                }
                text if text.starts_with("--exec-path=") => return Some("takes its programs from another folder"),
                text if text.starts_with('-') => {}
                text => break text,
            },
        }
    };
    let words: Vec<_> = rest.cloned().collect();
    git_subcommand(subcommand, &Arguments::of(&words))
}

/// Tells whether a setting of git names a program to run.
fn runs_program(setting: &str) -> bool {
    let key = setting.split('=').next().unwrap_or(setting).to_ascii_lowercase();
    let programs = [
        "alias.",
        "core.pager",
        "core.editor",
        "core.sshcommand",
        "core.fsmonitor",
        "core.hookspath",
        "core.askpass",
        "core.gitproxy",
        "credential.",
        "diff.external",
        "filter.",
        "gpg.",
        "include",
        "pager.",
        "sequence.editor",
        "uploadpack.",
        "remote.",
        "difftool.",
        "mergetool.",
        "protocol.",
    ];
    setting.contains('!')
        || programs.iter().any(|program| key.starts_with(program))
        || key.ends_with("textconv")
        || key.ends_with(".command")
}

fn git_subcommand(subcommand: &str, arguments: &Arguments<'_>) -> Option<&'static str> {
    let first = arguments.texts.iter().find(|text| !text.starts_with('-')).copied().unwrap_or("");
    let forced = || arguments.has("f", &["--force"]);
    match subcommand {
        "reset" => Some("drops changes"),
        "rm" => Some("deletes files"),
        "clean" => (!arguments.has("n", &["--dry-run"]) || arguments.unknown).then_some("deletes untracked files"),
        "checkout" => (forced() || arguments.any(|text| text == "--" || text == ".")).then_some("drops changes"),
        "switch" => (forced() || arguments.has("", &["--discard-changes"])).then_some("drops changes"),
        "restore" => {
            (!arguments.has("S", &["--staged"]) || arguments.has("W", &["--worktree"])).then_some("drops changes")
        }
        "push" => {
            let refspec = arguments.any(|text| text.starts_with('+') || text.starts_with(':'));
            let options = arguments.has(
                "fd",
                &["--force", "--force-with-lease", "--force-if-includes", "--mirror", "--delete", "--prune"],
            );
            (refspec || options).then_some("overwrites or deletes on the server")
        }
        "branch" => arguments.has("DMCf", &["--force"]).then_some("drops a branch"),
        "tag" => arguments.has("df", &["--delete", "--force"]).then_some("drops a tag"),
        "stash" => matches!(first, "drop" | "clear").then_some("drops stashed changes"),
        "reflog" => matches!(first, "expire" | "delete").then_some("drops history"),
        "worktree" => (first == "remove" && forced()).then_some("drops a working tree"),
        "update-ref" => arguments.has("d", &["--delete"]).then_some("drops a reference"),
        "filter-branch" | "filter-repo" => Some("rewrites history"),
        "gc" | "prune" => arguments.has("", &["--prune"]).then_some("drops what nothing refers to"),
        _ => None,
    }
}

/// Finds shells and interpreters that run what another command writes.
fn fed(command: &Reached, program: &str) -> Option<&'static str> {
    let plain = command.arguments().iter().all(|word| word.text().is_some_and(|text| text.starts_with('-')));
    let reads = command.piped && plain && reads_commands(program) && program != "xargs";
    if reads {
        return Some("runs what another command writes");
    }
    let substituted = command.arguments().contains(&Word::Unknown);
    (substituted && is_shell(program)).then_some("runs a script that is known only when it runs")
}

/// Finds deletions in code that is given to an interpreter on the command line.
fn code(program: &str, words: &[Word]) -> Option<&'static str> {
    if !reads_commands(program) || is_shell(program) {
        return None;
    }
    let deletes = ["rmtree", "unlink", "rmSync", "rm -", "remove_dir", "rm_rf", "rmdir"];
    let texts = || words.iter().filter_map(Word::text);
    let inline = texts().any(|text| text.starts_with('-') && text.contains(['c', 'e']));
    let found = inline && texts().any(|text| deletes.iter().any(|call| text.contains(call)));
    found.then_some("deletes files")
}

fn is_disk(target: &str) -> bool {
    let Some(device) = target.strip_prefix("/dev/").or_else(|| target.strip_prefix("of=/dev/")) else { return false };
    ["sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "mapper/", "md", "loop"]
        .iter()
        .any(|name| base_name(device).starts_with(name) || device.starts_with(name))
}
