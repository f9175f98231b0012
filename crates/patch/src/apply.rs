//! Applies a plan: all of it, or nothing.
//!
//! Every new file is first written completely under a temporary name, next to its destination. Then names are
//! exchanged, so that the old file is kept aside until everything is done, and can be restored.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{Access, AtFlags, Mode, OFlags, accessat, openat, statat, unlinkat};
use rustix::io::Errno;

use crate::error::{ApplyCause, ApplyError};
use crate::folders::Folders;
use crate::guard::Guard;
use crate::ledger::Net;
use crate::plan::{Plan, Step};
use crate::snapshot::{self, Identity, READ, Snapshot, read_descriptor};
use crate::swap::{exchange, rename_new};

/// The result of applying a patch.
#[derive(Debug)]
pub struct Applied {
    /// The added, modified and deleted files, as reported to the model.
    pub summary: String,
    /// Every file before and after.
    pub before_after: Vec<BeforeAfter>,
}

#[derive(Debug)]
pub struct BeforeAfter {
    /// The old path and content; `None` for a new file.
    pub before: Option<(PathBuf, Snapshot)>,
    /// The new path and content; `None` for a deleted file.
    pub after: Option<(PathBuf, Snapshot)>,
    pub diff: Option<String>,
}

impl Plan {
    /// Writes the plan, if every file is unchanged and the guard allows it. If anything fails, the files changed so far
    /// are restored.
    pub fn apply(self, guard: &Guard) -> Result<Applied, ApplyError> {
        self.check(guard).map_err(|refused| {
            let (crate::Refused::Outside { path, .. } | crate::Refused::Forbidden { path, .. }) = &refused;
            ApplyError { path: path.clone(), cause: refused.into(), not_restored: Vec::new() }
        })?;
        Transaction::new(guard).run(self.steps())?;
        let own = |path: &Path, snapshot: &Snapshot| Some((path.to_owned(), snapshot.clone()));
        let before_after = |net| match net {
            Net::Add { path, after } => BeforeAfter { before: None, after: own(path, after), diff: None },
            Net::Delete { path, before } => BeforeAfter { before: own(path, before), after: None, diff: None },
            Net::Update { path, to, before, after } => {
                let diff = self.diff(path).map(str::to_owned);
                BeforeAfter { before: own(path, before), after: own(to, after), diff }
            }
        };
        let before_after = self.ledger.net().into_iter().map(before_after).collect();
        Ok(Applied { summary: self.summary(), before_after })
    }
}

/// Steps in progress.
struct Transaction {
    folders: Folders,
    staged: Vec<Staged>,
    /// Distinguishes the temporary names from those of other patches.
    mark: String,
    named: usize,
}

/// A step that is prepared, or done.
struct Staged {
    step: Step,
    /// The temporary name of the new file until the step is done, and of the old one from then on.
    aside: Option<OsString>,
    /// The file to be replaced or removed.
    seen: Option<Identity>,
    /// The file that was written.
    wrote: Option<Identity>,
    done: bool,
}

impl Transaction {
    fn new(guard: &Guard) -> Self {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        let mark = format!(".codex-patch-{:x}-{time:x}", std::process::id());
        Self { folders: Folders::new(guard.roots.as_deref()), staged: Vec::new(), mark, named: 0 }
    }

    fn run(mut self, steps: Vec<Step>) -> Result<(), ApplyError> {
        for step in steps {
            let path = step.path.clone();
            if let Err(cause) = self.stage(step) {
                return Err(self.undo(path, cause));
            }
        }
        for at in 0..self.staged.len() {
            if let Err(cause) = self.commit(at) {
                let path = self.staged[at].step.path.clone();
                return Err(self.undo(path, cause));
            }
        }
        self.clean();
        Ok(())
    }

    /// Checks that a file matches the plan, and writes its replacement under a temporary name.
    fn stage(&mut self, step: Step) -> Result<(), ApplyCause> {
        let is_new = step.before.is_none();
        let (folder, name) = self.place(&step.real, is_new).map_err(|error| moved_away(error, is_new))?;
        let seen = step.before.as_ref().map(|before| check_unchanged(&folder, &name, before)).transpose()?;
        if is_new {
            check_vacant(&folder, &name)?;
        }
        let Some(after) = step.after.clone() else {
            self.staged.push(Staged { step, aside: None, seen, wrote: None, done: false });
            return Ok(());
        };
        if !is_new {
            check_writable(&folder, &name)?;
        }
        let (aside, file) = self.create_aside(&folder)?;
        self.staged.push(Staged { step, aside: Some(aside), seen, wrote: None, done: false });
        let wrote = Some(write(file, &after)?);
        self.staged.last_mut().into_iter().for_each(|staged| staged.wrote = wrote);
        Ok(())
    }

    /// Performs one step.
    fn commit(&mut self, at: usize) -> Result<(), ApplyCause> {
        let real = self.staged[at].step.real.clone();
        let (folder, name) = self.place(&real, false)?;
        match (self.staged[at].aside.clone(), self.staged[at].seen) {
            (Some(aside), None) => rename_new(&folder, &aside, &name).map_err(|error| match error {
                Errno::EXIST => ApplyCause::ChangedMeanwhile,
                error => io::Error::from(error).into(),
            })?,
            (Some(aside), Some(seen)) => {
                exchange(&folder, &aside, &name).map_err(|error| moved_away(error.into(), false))?;
                self.staged[at].done = true;
                if !is_same(&folder, &aside, Some(seen)) {
                    return Err(ApplyCause::ChangedMeanwhile);
                }
            }
            (None, seen) => {
                let aside = self.fresh_name();
                rename_new(&folder, &name, &aside).map_err(|error| moved_away(error.into(), false))?;
                self.staged[at].aside = Some(aside.clone());
                self.staged[at].done = true;
                if !is_same(&folder, &aside, seen) {
                    return Err(ApplyCause::ChangedMeanwhile);
                }
            }
        }
        self.staged[at].done = true;
        Ok(())
    }

    /// Restores everything and reports what could not be restored.
    fn undo(mut self, path: PathBuf, cause: ApplyCause) -> ApplyError {
        let mut not_restored = Vec::new();
        while let Some(Staged { step, aside, wrote, done, .. }) = self.staged.pop() {
            let restored = self.place(&step.real, false).is_ok_and(|(folder, name)| {
                let aside = aside.unwrap_or_default();
                let restored = match (done, &step.before, &step.after) {
                    (false, _, _) => Ok(()),
                    (true, None, _) => withdraw(&folder, &aside, &name, wrote),
                    (true, Some(_), Some(_)) => put_back(&folder, &aside, &name, wrote),
                    (true, Some(_), None) => rename_new(&folder, &aside, &name),
                };
                // The temporary file is no longer needed. If the old file could not be restored, this is the old file,
                // and it stays.
                if restored.is_ok() && !aside.is_empty() {
                    let _ = unlinkat(&folder, &aside, AtFlags::empty());
                }
                restored.is_ok()
            });
            if done && !restored {
                not_restored.push(step.path);
            }
        }
        self.folders.remove_made();
        ApplyError { path, cause, not_restored }
    }

    /// Removes the old files. One that cannot be removed does no harm.
    fn clean(&mut self) {
        for Staged { step, aside, .. } in std::mem::take(&mut self.staged) {
            if let (Some(aside), Some(_), Ok((folder, _))) = (aside, &step.before, self.place(&step.real, false)) {
                let _ = unlinkat(&folder, &aside, AtFlags::empty());
            }
        }
    }

    /// The folder of a path, and the name in it.
    fn place(&mut self, real: &Path, make: bool) -> io::Result<(Arc<OwnedFd>, OsString)> {
        let (Some(folder), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        Ok((self.folders.open(folder, make)?, name.to_owned()))
    }

    fn fresh_name(&mut self) -> OsString {
        self.named += 1;
        format!("{}-{:x}~", self.mark, self.named).into()
    }

    fn create_aside(&mut self, folder: &OwnedFd) -> io::Result<(OsString, File)> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let name = self.fresh_name();
            match openat(folder, &name, flags, Mode::from_raw_mode(0o666)) {
                Ok(file) => return Ok((name, file.into())),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Removes a new file. If another program has written there since, it stays.
fn withdraw(folder: &OwnedFd, aside: &OsStr, name: &OsStr, wrote: Option<Identity>) -> Result<(), Errno> {
    match rename_new(folder, name, aside) {
        Err(Errno::NOENT) => Ok(()),
        Ok(()) if !is_same(folder, aside, wrote) => rename_new(folder, aside, name),
        done => done,
    }
}

/// Restores an old file in place of a new one. If another program has written there since, it stays.
fn put_back(folder: &OwnedFd, aside: &OsStr, name: &OsStr, wrote: Option<Identity>) -> Result<(), Errno> {
    exchange(folder, aside, name)?;
    if is_same(folder, aside, wrote) { Ok(()) } else { exchange(folder, aside, name) }
}

/// Writes a new file with the owner of the old one.
fn write(mut file: File, after: &Snapshot) -> io::Result<Identity> {
    file.write_all(&after.bytes)?;
    let Some(mut mode) = after.mode else { return Ok(snapshot::identity(&file.metadata()?)) };
    if let Some((user, group)) = after.owner {
        let meta = file.metadata()?;
        if (meta.uid(), meta.gid()) != (user, group) && fchown(&file, Some(user), Some(group)).is_err() {
            // Set-id bits of another owner must not become ours.
            mode &= 0o777;
        }
    }
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(snapshot::identity(&file.metadata()?))
}

/// Maps errors that mean that a file or a folder was moved.
fn moved_away(error: io::Error, is_new: bool) -> ApplyCause {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::LOOP | Errno::NOTDIR) => ApplyCause::ChangedMeanwhile,
        Some(Errno::NOENT) if !is_new => ApplyCause::ChangedMeanwhile,
        _ => error.into(),
    }
}

fn check_unchanged(folder: &OwnedFd, name: &OsStr, before: &Snapshot) -> Result<Identity, ApplyCause> {
    let file = openat(folder, name, READ, Mode::empty()).map_err(|error| moved_away(error.into(), false))?;
    match read_descriptor(file) {
        Ok((now, seen)) if now.bytes == before.bytes && now.mode == before.mode => Ok(seen),
        Err(snapshot::ReadError::Io(error)) => Err(error.into()),
        Ok(_) | Err(_) => Err(ApplyCause::ChangedMeanwhile),
    }
}

fn check_vacant(folder: &OwnedFd, name: &OsStr) -> Result<(), ApplyCause> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(()),
        Ok(_) => Err(ApplyCause::ChangedMeanwhile),
        Err(error) => Err(io::Error::from(error).into()),
    }
}

/// A read-only file is not replaced either, even if its folder would allow it.
fn check_writable(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match accessat(folder, name, Access::WRITE_OK, AtFlags::EACCESS) {
        Err(error @ (Errno::ACCESS | Errno::PERM | Errno::ROFS)) => Err(error.into()),
        _ => Ok(()),
    }
}

/// Whether a file that was moved aside is the one that was checked before.
fn is_same(folder: &OwnedFd, aside: &OsStr, seen: Option<Identity>) -> bool {
    let file = openat(folder, aside, READ, Mode::empty()).map(File::from);
    let meta = file.map_err(io::Error::from).and_then(|file| file.metadata());
    meta.is_ok_and(|meta| Some(snapshot::identity(&meta)) == seen)
}
