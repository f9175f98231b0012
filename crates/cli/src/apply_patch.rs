//! The program `apply_patch` for scripts of the model: this very binary under another name.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use codex_config::Home;

const NAME: &str = "apply_patch";

/// The largest patch that is read.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// Whether the program was called by this name.
pub(crate) fn is_meant() -> bool {
    std::env::args_os().next().is_some_and(|name| Path::new(&name).file_name() == Some(OsStr::new(NAME)))
}

/// Applies the patch in the first argument, or else on standard input. It may write what the process may, which for
/// commands of the model is what their sandbox lets them.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let text = std::env::args().nth(1).map_or_else(read_input, Ok)?;
    let cwd = std::env::current_dir().context("the current directory is gone")?;
    let summary = codex_engine::apply_patch(&text, &cwd)?;
    std::io::stdout().write_all(summary.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn read_input() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin().take(MOST_BYTES).read_to_string(&mut text).context("could not read the patch")?;
    Ok(text)
}

/// Puts the program where commands find it: a folder of the home, which no sandbox lets a command write. None when
/// that fails; patches then come as calls of their own.
pub(crate) fn install(home: &Home) -> Option<PathBuf> {
    let folder = home.path().join("bin");
    let (link, program) = (folder.join(NAME), std::env::current_exe().ok()?);
    if std::fs::read_link(&link).is_ok_and(|target| target == program) {
        return Some(folder);
    }
    std::fs::create_dir_all(&folder).ok()?;
    // Another process may do the same at this moment, so the link is made aside and moved into place.
    let aside = folder.join(format!(".{NAME}.{}", std::process::id()));
    std::os::unix::fs::symlink(&program, &aside).ok()?;
    std::fs::rename(&aside, &link).ok()?;
    Some(folder)
}
