//! `codex replay`: replays a recorded thread without a model.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use codex_config::{Env, Home};
use codex_dialects::replay::{Dialect, Replay};
use codex_store::{FileStore, RolloutLines, locate};

use crate::args::{ReplayArgs, ReplayDialect, ReplaySpeed};
use crate::console;

/// Longer pauses between two lines are shortened to this: nobody waits for a night to pass.
const LONGEST: Duration = Duration::from_secs(60);

/// Replays the thread to standard output.
pub(crate) fn run(args: &ReplayArgs) -> anyhow::Result<ExitCode> {
    let dialect = match args.dialect {
        ReplayDialect::Eq => Dialect::Eq,
        ReplayDialect::V2 => Dialect::V2,
        ReplayDialect::Exec => Dialect::Exec,
    };
    let file = find(&args.rollout)?;
    let mut replay = Replay::open(&file, || Ok(Box::new(RolloutLines::open(&file)?)), dialect)?;
    let mut out = console::json();
    let mut before = None;
    while let Some(due) = replay.next_line()? {
        if args.speed == ReplaySpeed::Original {
            let since = before.map_or(0, |before: i64| due.at_ms.saturating_sub(before));
            let pause = Duration::from_millis(u64::try_from(since).unwrap_or(0)).min(LONGEST);
            std::thread::park_timeout(pause);
            before = Some(due.at_ms);
        }
        out.write_all(due.line.as_bytes())?;
        out.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Finds the file: a path, or the thread with that id or name.
fn find(rollout: &Path) -> anyhow::Result<PathBuf> {
    if rollout.exists() {
        return Ok(rollout.to_owned());
    }
    let home = Home::find(&Env::process())?;
    Ok(locate::thread(&FileStore::of(home.path()), &rollout.to_string_lossy())?.path)
}
