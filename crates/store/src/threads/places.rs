//! The paths of rollouts below a home.

use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Local, NaiveDateTime, TimeZone, Utc};
use codex_wire::ids::ThreadId;

/// The folder of active rollouts, in folders of years, months and days.
pub(crate) const SESSIONS: &str = "sessions";

/// The folder of archived rollouts, without subfolders.
pub(crate) const ARCHIVED: &str = "archived_sessions";

/// The parts of a rollout's file name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RolloutName<'a> {
    /// The start time of the thread, in local time, as in the name.
    pub(crate) time: &'a str,
    pub(crate) id: ThreadId,
}

impl<'a> RolloutName<'a> {
    /// Parses a name of the form `rollout-2026-01-02T03-04-05-<id>.jsonl`; `None` for any other.
    pub(crate) fn parse(name: &'a str) -> Option<Self> {
        let rest = name.strip_prefix("rollout-")?.strip_suffix(".jsonl")?;
        let (time, id) = (rest.get(..19)?, rest.get(19..)?.strip_prefix('-')?);
        local_time(time)?;
        Some(Self { time, id: id.parse().ok()? })
    }

    /// The start time of the thread.
    pub(crate) fn began(&self) -> Option<DateTime<Utc>> {
        let local = Local.from_local_datetime(&local_time(self.time)?).earliest()?;
        Some(local.to_utc())
    }
}

/// Parses the time in a file name.
pub(crate) fn local_time(text: &str) -> Option<NaiveDateTime> {
    NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H-%M-%S").ok()
}

/// The folder below the sessions for threads with this start time, as in file names.
pub(crate) fn day_folder(time: &str) -> Option<PathBuf> {
    Some(PathBuf::from(time.get(..4)?).join(time.get(5..7)?).join(time.get(8..10)?))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadFile {
    /// The file, with all links resolved.
    pub path: PathBuf,
    /// The thread in its name.
    pub id: ThreadId,
    pub archived: bool,
}

/// The reason why a path is not that of a thread.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    #[error("could not find {path}", path = .path.display())]
    Missing { path: PathBuf, source: io::Error },
    /// It leads outside of the thread folders.
    #[error("{path} is not below {home}", path = .path.display(), home = .home.display())]
    Outside { path: PathBuf, home: PathBuf },
    /// The file name is not that of a thread, or it is not a file.
    #[error("{path} is not the file of a thread", path = .path.display())]
    NotAThread { path: PathBuf },
}

/// Checks that a path from a client leads to a thread of a home. Links are resolved first, so that none leads out; the
/// folders of the home themselves may be links by the user's choice.
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

/// The thread folder that contains a resolved path.
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
    fn file_names_contain_time_and_thread() {
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
        assert!(error(top.path().join("elsewhere").join(&name)).contains("is not below"));
        assert!(error(day.join("link.jsonl")).contains("is not below"));
        assert!(error(day.join("../../../../auth.json")).contains("is not below"));
        assert!(error(day.join("notes.jsonl")).ends_with("is not the file of a thread"));
        assert!(error(day.join("gone.jsonl")).starts_with("could not find"));
    }
}
