//! Finds programs that run outside of every sandbox.
//!
//! Invariant: no program is taken from a folder that sandboxed commands can write: neither through a relative entry of
//! `PATH`, nor through one in a workspace, such as that of an activated environment, nor through a link.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use crate::Env;

/// The default `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The folders of `PATH` that sandboxed commands cannot write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    folders: Vec<PathBuf>,
    /// Folders that commands may write, without links.
    writable: Vec<PathBuf>,
}

impl Programs {
    /// Selects the folders of `PATH` that are neither below one of the `writable` folders nor below a temporary one.
    #[must_use]
    pub fn new(env: &Env, writable: &[PathBuf]) -> Self {
        let temporary = [Some("/tmp".into()), env.get("TMPDIR")].into_iter().flatten().map(PathBuf::from);
        Self::outside_of(writable.iter().cloned().chain(temporary), env)
    }

    fn outside_of(writable: impl Iterator<Item = PathBuf>, env: &Env) -> Self {
        let writable = writable.filter_map(|folder| folder.canonicalize().ok());
        // If `/` is the workspace, no other folder would be left; users cannot write system folders anyway.
        let writable: Vec<_> = writable.filter(|folder| folder.parent().is_some()).collect();
        let path = env.get("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
        let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
        let folders = folders.filter(|folder| is_outside(folder, &writable)).collect();
        Self { folders, writable }
    }

    /// The program with this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        if name.is_empty() || name.contains('/') {
            return None;
        }
        let mut programs = self.folders.iter().map(|folder| folder.join(name));
        programs.find(|program| is_program(program) && is_outside(program, &self.writable))
    }

    /// These folders as a value of `PATH`, for programs that look up others.
    #[must_use]
    pub fn path(&self) -> OsString {
        // They come from such a list, so they can be joined.
        std::env::join_paths(&self.folders).unwrap_or_else(|_| DEFAULT_PATH.into())
    }
}

/// Whether a path exists and is really outside of all these folders.
fn is_outside(path: &Path, folders: &[PathBuf]) -> bool {
    path.canonicalize().is_ok_and(|path| !folders.iter().any(|folder| path.starts_with(folder)))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use tempfile::TempDir;

    use super::*;

    /// Looks for `tool` on a path where these programs exist and commands may write below `@/work`; `@` is a folder.
    #[track_caller]
    fn check(programs: &[&str], path: &str, expected: Option<&str>) {
        let temp = TempDir::new().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let at = root.display().to_string();
        fs::create_dir(root.join("work")).unwrap();
        for program in programs {
            let (program, target) = program.split_once(" -> ").unwrap_or((program, ""));
            let program = root.join(program);
            fs::create_dir_all(program.parent().unwrap()).unwrap();
            if target.is_empty() {
                fs::write(&program, "").unwrap();
                fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            } else {
                symlink(root.join(target), &program).unwrap();
            }
        }
        let env = Env::from_iter([("PATH", path.replace('@', &at))]);
        let found = Programs::outside_of([root.join("work")].into_iter(), &env).find("tool");
        let found = found.map(|program| program.display().to_string().replace(&at, "@"));
        assert_eq!(found.as_deref(), expected, "{programs:?} on {path}");
    }

    #[test]
    fn the_first_program_on_the_path_is_taken() {
        check(&["a/tool", "b/tool"], "@/none:@/a:@/b", Some("@/a/tool"));
        check(&["a/other"], "@/a", None);
        check(&["a/tool/folder", "b/tool"], "@/a:@/b", Some("@/b/tool"));
    }

    #[test]
    fn no_program_is_taken_from_a_workspace() {
        check(&["work/.venv/bin/tool", "b/tool"], "@/work/.venv/bin:@/b", Some("@/b/tool"));
        check(&["work/tool", "b/tool"], "@/b/../work:@/b", Some("@/b/tool"));
        check(&["workshop/tool"], "@/workshop", Some("@/workshop/tool"));
    }

    #[test]
    fn no_program_is_taken_through_a_link_into_a_workspace() {
        check(&["work/tool", "a -> work", "b/tool"], "@/a:@/b", Some("@/b/tool"));
        check(&["work/tool", "a/tool -> work/tool", "b/tool"], "@/a:@/b", Some("@/b/tool"));
        check(&["c/tool", "a/tool -> c/tool"], "@/a", Some("@/a/tool"));
    }

    #[test]
    fn relative_entries_and_names_with_folders_are_passed_over() {
        let env = Env::from_iter([("PATH", ".::bin:./bin:/bin:/usr/bin")]);
        let programs = Programs::new(&env, &[]);
        assert_eq!(programs.path(), "/bin:/usr/bin");
        assert!(programs.find("sh").is_some_and(|program| program.is_absolute()));
        assert_eq!((programs.find("../bin/sh"), programs.find("")), (None, None));
        // Without a path, the default of shells.
        assert!(Programs::new(&Env::from_iter::<[(&str, &str); 0]>([]), &["/".into()]).find("sh").is_some());
    }

    #[test]
    fn no_program_is_taken_from_a_temporary_folder() {
        let temp = TempDir::new_in("/tmp").unwrap();
        let path = temp.path().display().to_string();
        let env = Env::from_iter([("PATH", format!("{path}:/bin"))]);
        assert_eq!(Programs::new(&env, &[]).path(), "/bin");
        let env = Env::from_iter([("PATH", "/bin:/usr/bin"), ("TMPDIR", "/usr/bin")]);
        assert!(!Programs::new(&env, &[]).path().to_string_lossy().contains("/usr/bin"));
    }
}
