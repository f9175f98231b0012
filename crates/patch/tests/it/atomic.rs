//! A patch is applied as a whole or not at all.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use codex_patch::{ApplyCause, ApplyError};

use crate::{Folder, leftovers, patch};

const FOUR: &str = "*** Update File: a\n@@\n-1\n+2\n*** Add File: new/deep/b\n+x\n*** Delete File: c\n\
                    *** Update File: d\n*** Move to: moved/d\n@@\n-1\n+2\n*** Update File: e\n@@\n-1\n+2";

fn folder() -> Folder {
    Folder::with(&[("a", "1\n"), ("c", "1\n"), ("d", "1\n"), ("e", "1\n")])
}

/// Plans a patch, tampers with the files, and applies it. It has to fail and leave everything unchanged.
#[track_caller]
fn meddle(meddle: impl FnOnce(&Folder)) -> ApplyError {
    let folder = folder();
    let plan = folder.planned(&patch(FOUR));
    meddle(&folder);
    let before = folder.tree();
    let error = plan.apply(&folder.guard()).unwrap_err();
    assert_eq!(folder.tree(), before, "{error}");
    assert_eq!(error.not_restored, Vec::<std::path::PathBuf>::new());
    error
}

fn is_changed_meanwhile(error: &ApplyError) -> bool {
    matches!(error.cause, ApplyCause::ChangedMeanwhile)
}

#[test]
fn all_of_it_is_applied() {
    let folder = folder();
    folder.apply(&patch(FOUR)).unwrap();
    let names: Vec<String> = folder.tree().into_keys().collect();
    assert_eq!(names, ["a", "e", "moved/", "moved/d", "new/", "new/deep/", "new/deep/b"]);
}

#[test]
fn a_file_that_changed_meanwhile() {
    for name in ["a", "c", "d", "e"] {
        let error = meddle(|folder| folder.write(name, "other\n"));
        assert!(is_changed_meanwhile(&error), "{error:?}");
        assert!(error.path.ends_with(name));
        assert!(error.to_string().ends_with("; no file was changed"), "{error}");
    }
}

#[test]
fn a_file_that_went_meanwhile() {
    for name in ["a", "c", "d", "e"] {
        let error = meddle(|folder| fs::remove_file(folder.at(name)).unwrap());
        assert!(is_changed_meanwhile(&error), "{error:?}");
    }
}

#[test]
fn a_file_that_was_created_meanwhile() {
    for name in ["new/deep/b", "moved/d"] {
        let error = meddle(|folder| folder.write(name, "other\n"));
        assert!(is_changed_meanwhile(&error), "{error:?}");
    }
}

#[test]
fn a_folder_in_place_of_a_file() {
    for name in ["a", "c", "d", "e"] {
        let error = meddle(|folder| {
            fs::remove_file(folder.at(name)).unwrap();
            fs::create_dir(folder.at(name)).unwrap();
        });
        assert!(is_changed_meanwhile(&error), "{error:?}");
    }
    let error = meddle(|folder| fs::create_dir_all(folder.at("moved/d")).unwrap());
    assert!(is_changed_meanwhile(&error), "{error:?}");
}

#[test]
fn a_file_in_place_of_a_folder() {
    for name in ["new", "moved"] {
        let error = meddle(|folder| folder.write(name, "in the way"));
        assert!(is_changed_meanwhile(&error), "{error:?}");
    }
}

#[test]
fn a_pipe_in_place_of_a_file_does_not_make_anybody_wait() {
    let error = meddle(|folder| {
        fs::remove_file(folder.at("a")).unwrap();
        assert!(Command::new("mkfifo").arg(folder.at("a")).status().unwrap().success());
    });
    assert!(is_changed_meanwhile(&error), "{error:?}");
    let folder = Folder::new();
    assert!(Command::new("mkfifo").arg(folder.at("p")).status().unwrap().success());
    let error = folder.plan(&patch("*** Update File: p\n@@\n-1\n+2")).unwrap_err();
    assert_eq!(error, "could not read /w/p\n  because it is not a regular file but a pipe");
}

#[test]
fn a_link_in_place_of_a_file() {
    for name in ["a", "c", "d", "e"] {
        let error = meddle(|folder| {
            fs::rename(folder.at(name), folder.at("same")).unwrap();
            symlink("same", folder.at(name)).unwrap();
        });
        assert!(is_changed_meanwhile(&error), "{error:?}");
    }
}

#[test]
fn a_mode_that_changed_meanwhile() {
    let error = meddle(|folder| fs::set_permissions(folder.at("e"), Permissions::from_mode(0o600)).unwrap());
    assert!(is_changed_meanwhile(&error), "{error:?}");
}

/// Makes a file or folder unwritable; root may write everything, so root makes it immutable instead.
fn lock(folder: &Folder, name: &str, locked: bool) -> bool {
    let flag = if locked { "+i" } else { "-i" };
    let done = Command::new("chattr").arg(flag).arg(folder.at(name)).output();
    done.is_ok_and(|done| done.status.success())
}

#[test]
fn a_folder_that_may_not_be_written() {
    let folder = Folder::with(&[("a", "1\n"), ("locked/x", "1\n")]);
    let writable = || fs::write(folder.at("locked/probe"), "").is_ok();
    fs::set_permissions(folder.at("locked"), Permissions::from_mode(0o555)).unwrap();
    if writable() && !lock(&folder, "locked", true) {
        return; // Neither way keeps this user out.
    }
    let before = folder.tree();
    let result = folder.apply(&patch("*** Update File: a\n@@\n-1\n+2\n*** Update File: locked/x\n@@\n-1\n+2"));
    let after = folder.tree();
    lock(&folder, "locked", false);
    fs::set_permissions(folder.at("locked"), Permissions::from_mode(0o755)).unwrap();
    assert!(result.unwrap_err().starts_with("could not apply the patch to /w/locked/x; no file was changed"));
    assert_eq!(after, before);
}

/// The files can be prepared and the first one exchanged, but the last one cannot be removed.
#[test]
fn a_failure_after_the_first_file_was_exchanged() {
    let folder = Folder::with(&[("a", "1\n"), ("b", "1\n"), ("z", "1\n")]);
    if !lock(&folder, "z", true) {
        return; // Only root can lock a single file.
    }
    let before = folder.tree();
    let result = folder.apply(&patch(
        "*** Update File: a\n@@\n-1\n+2\n*** Add File: n/new\n+x\n*** Delete File: b\n*** Delete File: z",
    ));
    let after = folder.tree();
    assert!(lock(&folder, "z", false));
    assert!(result.unwrap_err().starts_with("could not apply the patch to /w/z; no file was changed"));
    assert_eq!(after, before);
    assert_eq!(leftovers(&folder.path), Vec::<std::path::PathBuf>::new());
}

#[test]
fn two_names_of_one_file_are_one_file() {
    let folder = Folder::with(&[("real/f", "1\n2\n")]);
    symlink("real", folder.at("link")).unwrap();
    folder.apply(&patch("*** Update File: real/f\n@@\n-1\n+one\n*** Update File: link/f\n@@\n-2\n+two")).unwrap();
    assert_eq!(folder.read("real/f"), b"one\ntwo\n");
}

/// Another thread keeps writing the file. The latest content is never lost to a patch of an older one.
#[test]
fn a_writer_at_the_same_time_is_never_undone() {
    let folder = Folder::with(&[("f", "0\n")]);
    let path = folder.at("f");
    let stop = AtomicBool::new(false);
    let last = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut n = 0;
            while !stop.load(Ordering::Relaxed) {
                n += 1;
                let temp = path.with_extension("tmp");
                fs::write(&temp, format!("{n}\n")).unwrap();
                fs::rename(&temp, &path).unwrap();
            }
            n
        });
        for _ in 0..2000 {
            let now = String::from_utf8(folder.read("f")).unwrap();
            let line = now.trim_end();
            if let Ok(plan) = folder.plan(&patch(&format!("*** Update File: f\n@@\n-{line}\n+{line} patched"))) {
                let _ = plan.apply(&folder.guard());
            }
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    let now = String::from_utf8(folder.read("f")).unwrap();
    assert_eq!(now.split_whitespace().next().unwrap(), last.to_string());
    assert_eq!(leftovers(&folder.path), Vec::<std::path::PathBuf>::new());
}
