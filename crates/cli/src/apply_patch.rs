//! The program `apply_patch` for the model's scripts: this binary under another name.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use codex_config::Home;

use crate::console;

const NAME: &str = "apply_patch";

const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// Selects the same program, for callers that cannot use another name. Only the first argument counts.
const FLAG: &str = "--codex-run-as-apply-patch";

/// The arguments, if the program was called to apply a patch.
pub(crate) fn words() -> Option<Vec<OsString>> {
    let mut words = std::env::args_os();
    let is_named = words.next().is_some_and(|name| Path::new(&name).file_name() == Some(OsStr::new(NAME)));
    let words: Vec<OsString> = words.collect();
    (is_named || words.first().is_some_and(|word| word == FLAG)).then_some(words)
}

/// Applies the patch in the only argument, or else from standard input. It may write whatever the process may, which
/// for the model's commands is whatever their sandbox allows.
pub(crate) fn run(words: &[OsString]) -> ExitCode {
    let text = match words {
        [flag] if flag == FLAG => return say(1, format_args!("Error: {FLAG} needs a PATCH in UTF-8 as its argument.")),
        [flag, patch] if flag == FLAG => patch.to_str().map(str::to_owned),
        [patch] => patch.to_str().map(str::to_owned),
        [] => match read_input() {
            Ok(text) => Some(text).filter(|text| !text.is_empty()),
            Err(error) => return say(1, format_args!("Error: {error:#}")),
        },
        _ => return say(2, format_args!("Error: {NAME} takes exactly one argument.")),
    };
    let Some(text) = text else { return say(2, format_args!("Usage: {NAME} 'PATCH', or the patch on standard input")) };
    match applied(&text) {
        Ok(summary) if console::document().write_all(summary.as_bytes()).is_ok() => ExitCode::SUCCESS,
        // The files are changed, but the result cannot be printed.
        Ok(_) => ExitCode::FAILURE,
        Err(error) => say(1, format_args!("{error:#}")),
    }
}

fn applied(text: &str) -> anyhow::Result<String> {
    let cwd = std::env::current_dir().context("the current directory is gone")?;
    Ok(codex_patch::apply_patch(text, &cwd)?)
}

/// Prints the error. Nothing precedes it, because scripts compare the text.
fn say(status: u8, what: std::fmt::Arguments) -> ExitCode {
    // If stderr is closed, nobody is left to tell.
    let _: std::io::Result<()> = writeln!(console::document_err(), "{what}");
    ExitCode::from(status)
}

fn read_input() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin().take(MOST_BYTES).read_to_string(&mut text).context("could not read the patch")?;
    Ok(text)
}

/// Installs the program where commands find it: in a folder of the home, which no sandbox makes writable. `None` if
/// that fails; patches then arrive as separate tool calls.
pub(crate) fn install(home: &Home) -> Option<PathBuf> {
    let folder = home.path().join("bin");
    let (link, program) = (folder.join(NAME), std::env::current_exe().ok()?);
    // A link could lead to a folder that commands can write.
    if std::fs::symlink_metadata(&folder).is_ok_and(|found| !found.is_dir()) {
        return None;
    }
    if std::fs::read_link(&link).is_ok_and(|target| target == program) {
        return Some(folder);
    }
    std::fs::create_dir_all(&folder).ok()?;
    // Another process may do the same at this moment, so the link is created under a temporary name and moved into
    // place.
    let aside = home.temporary_folder().ok()?;
    std::os::unix::fs::symlink(&program, aside.path().join(NAME)).ok()?;
    std::fs::rename(aside.path().join(NAME), &link).ok()?;
    Some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_put_where_no_sandbox_can_write() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::at(temp.path());
        for _ in 0..2 {
            assert_eq!(install(&home), Some(temp.path().join("bin")));
            let entries = std::fs::read_dir(temp.path()).unwrap();
            let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            assert_eq!(names, ["bin"]);
        }
        let target = std::fs::read_link(temp.path().join("bin/apply_patch")).unwrap();
        assert_eq!(target, std::env::current_exe().unwrap());
    }

    #[test]
    fn nothing_is_put_where_a_link_leads() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", temp.path().join("bin")).unwrap();
        assert_eq!(install(&Home::at(temp.path())), None);
        assert_eq!(std::fs::read_dir(temp.path().join("elsewhere")).unwrap().count(), 0);
    }
}
