//! Where rollouts lie below a home.

use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Local, NaiveDateTime, TimeZone, Utc};
use codex_wire::ids::ThreadId;

/// The folder of the rollouts in use, in folders of years, months and days.
pub(crate) const SESSIONS: &str = "sessions";

/// The folder of the rollouts put away, without folders in it.
pub(crate) const ARCHIVED: &str = "archived_sessions";

/// What a file name says of a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RolloutName<'a> {
    /// When the thread began, in the local time of the machine, as the name spells it.
    pub(crate) time: &'a str,
    pub(crate) id: ThreadId,
}

impl<'a> RolloutName<'a> {
    /// Reads a name of the form `rollout-2026-01-02T03-04-05-<id>.jsonl`; none for any other.
    pub(crate) fn parse(name: &'a str) -> Option<Self> {
        let rest = name.strip_prefix("rollout-")?.strip_suffix(".jsonl")?;
        let (time, id) = (rest.get(..19)?, rest.get(19..)?.strip_prefix('-')?);
        local_time(time)?;
        Some(Self { time, id: id.parse().ok()? })
    }

    /// When the thread began.
    pub(crate) fn began(&self) -> Option<DateTime<Utc>> {
        let local = Local.from_local_datetime(&local_time(self.time)?).earliest()?;
        Some(local.to_utc())
    }
}

/// A time as names of files write it.
pub(crate) fn local_time(text: &str) -> Option<NaiveDateTime> {
    NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H-%M-%S").ok()
}

/// The folder below the sessions for threads that began at such a time, as file names spell it.
pub(crate) fn day_folder(time: &str) -> Option<PathBuf> {
    Some(PathBuf::from(time.get(..4)?).join(time.get(5..7)?).join(time.get(8..10)?))
}

/// A rollout below a home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadFile {
    /// The file, with all links resolved.
    pub path: PathBuf,
    /// The thread that its name tells.
    pub id: ThreadId,
    /// Whether it was put away.
    pub archived: bool,
}

/// Why a path is not that of a thread.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// There is no such file.
    #[error("could not find {path}", path = .path.display())]
    Missing {
        /// The path.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It leads to a place where no threads are.
    #[error("{path} does not lie below {home}", path = .path.display(), home = .home.display())]
    Outside {
        /// The path.
        path: PathBuf,
        /// The home.
        home: PathBuf,
    },
    /// The file is not named as a thread is, or is no file.
    #[error("{path} is not the file of a thread", path = .path.display())]
    NotAThread {
        /// The path.
        path: PathBuf,
    },
}

/// Checks that a path which a client gave leads to a thread of a home. Links are followed before it is looked at, so
/// that none leads out; that the folders of the home themselves are links is the user's choice.
pub fn check_path(home: &Path, path: &Path) -> Result<ThreadFile, PlaceError> {
    let resolved = path.canonicalize().map_err(|source| PlaceError::Missing { path: path.to_owned(), source })?;
    let archived = match below(home, &resolved) {
        Some(folder) => folder == ARCHIVED,
        None => return Err(PlaceError::Outside { path: path.to_owned(), home: home.to_owned() }),
    };
    let name = resolved.file_name().and_then(|name| name.to_str()).and_then(RolloutName::parse);
    match name {
        Some(name) if resolved.is_file() => Ok(ThreadFile { id: name.id, path: resolved, archived }),
        _ => Err(PlaceError::NotAThread { path: path.to_owned() }),
    }
}

/// Which of the folders of threads a resolved path lies in.
fn below(home: &Path, resolved: &Path) -> Option<&'static str> {
    [SESSIONS, ARCHIVED].into_iter().find(|folder| {
        home.join(folder).canonicalize().is_ok_and(|folder| resolved.starts_with(&folder) && resolved != folder)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01a1de3b-14fd-7922-828f-0d0916245388";

    #[test]
    fn names_tell_time_and_thread() {
        let name = format!("rollout-2026-01-02T03-04-05-{ID}.jsonl");
        let parsed = RolloutName::parse(&name).unwrap();
        assert_eq!((parsed.time, parsed.id), ("2026-01-02T03-04-05", ID.parse().unwrap()));
        assert_eq!(day_folder(parsed.time).unwrap(), Path::new("2026/01/02"));
        for odd in ["rollout-x.jsonl", "rollout-2026-01-02T03-04-05-.jsonl", "é", "rollout-2026-01-02T03-04-0é-x.jsonl"]
        {
            assert_eq!(RolloutName::parse(odd), None, "{odd}");
        }
        assert_eq!(RolloutName::parse(&name.replace("-01-02T", "-41-02T")), None);
        assert_eq!(RolloutName::parse(&name.replace(".jsonl", ".jsonl.zst")), None);
    }

    #[test]
    fn only_threads_below_the_home_pass() {
        let top = tempfile::tempdir().unwrap();
        let home = top.path().join("home");
        let name = format!("rollout-2026-01-02T03-04-05-{ID}.jsonl");
        let day = home.join("sessions/2026/01/02");
        for folder in [&day, &home.join(ARCHIVED), &top.path().join("elsewhere")] {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(folder.join(&name), "").unwrap();
        }
        std::fs::write(day.join("notes.jsonl"), "").unwrap();
        std::fs::write(home.join("auth.json"), "").unwrap();
        std::os::unix::fs::symlink(top.path().join("elsewhere").join(&name), day.join("link.jsonl")).unwrap();
        assert!(!check_path(&home, &day.join(&name)).unwrap().archived);
        assert!(check_path(&home, &home.join(ARCHIVED).join(&name)).unwrap().archived);
        let error = |path: PathBuf| check_path(&home, &path).unwrap_err().to_string();
        assert!(error(top.path().join("elsewhere").join(&name)).contains("does not lie below"));
        assert!(error(day.join("link.jsonl")).contains("does not lie below"));
        assert!(error(day.join("../../../../auth.json")).contains("does not lie below"));
        assert!(error(day.join("notes.jsonl")).ends_with("is not the file of a thread"));
        assert!(error(day.join("gone.jsonl")).starts_with("could not find"));
    }
}
