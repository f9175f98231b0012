//! Destructive `git` commands.

use super::Arguments;
use crate::script::Word;

/// Judges a git command after its global options.
pub(super) fn git(words: &[Word]) -> Option<&'static str> {
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

/// Whether a git setting names a program to run.
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
        "checkout" => (forced() || checks_out_files(arguments)).then_some("drops changes"),
        "checkout-index" => forced().then_some("drops changes"),
        "read-tree" => arguments.has("u", &["--reset"]).then_some("drops changes"),
        "mv" => forced().then_some("replaces files without asking"),
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

/// Whether `git checkout` gets files, whose changes it then discards, and not a branch.
fn checks_out_files(arguments: &Arguments<'_>) -> bool {
    let is_path = |text: &str| text == "--" || text.starts_with(['.', ':']) || text.contains('*');
    let starts_branch = arguments.has("bBt", &["--orphan", "--track"]) && !arguments.unknown;
    let operands = arguments.texts.iter().filter(|text| !text.starts_with('-')).count();
    arguments.any(is_path) || (operands > 1 && !starts_branch)
}
