//! A PostgreSQL cluster of one program, for demonstrations: in a folder, on a Unix socket, without a password.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{fs, io};

/// Ends the database when the pipe to this program closes, however this program ends.
const WATCH: &str = r#""$@" >/dev/null 2>&1 & read -r _; kill -INT $!; wait $!"#;
/// The largest list of users that is read.
const PASSWD_BYTES: u64 = 16 * 1024 * 1024;

/// A running cluster, which ends when it is dropped or the program ends.
#[derive(Debug)]
pub struct PrivateCluster {
    folder: PathBuf,
    watch: Child,
}

/// The reason why there is no cluster.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    #[error("PostgreSQL is not installed here: the programs `initdb` and `postgres` were not found")]
    NotInstalled,
    #[error("initdb failed: {0}")]
    Initdb(String),
    #[error("could not start a database in {}", .folder.display())]
    Start { folder: PathBuf, source: io::Error },
}

impl PrivateCluster {
    /// Starts a cluster in a folder of this program. It may need a moment before it answers.
    ///
    /// # Errors
    /// If PostgreSQL is not installed or does not start.
    pub fn start(folder: &Path) -> Result<Self, ClusterError> {
        let programs = programs().ok_or(ClusterError::NotInstalled)?;
        let (place, user) = (folder.join("database"), user());
        let failed = |source| ClusterError::Start { folder: place.clone(), source };
        fs::create_dir_all(&place).map_err(failed)?;
        if let Some((user, group)) = user {
            // The other user has to reach its folder, and nothing else there.
            fs::set_permissions(folder, fs::Permissions::from_mode(0o711)).map_err(failed)?;
            chown(&place, Some(user), Some(group)).map_err(failed)?;
        }
        let data = place.join("data");
        let mut initdb = command(&programs.join("initdb"), user);
        let made =
            initdb.args(["-A", "trust", "-U", "postgres", "--no-sync", "-D"]).arg(&data).output().map_err(failed)?;
        if !made.status.success() {
            return Err(ClusterError::Initdb(String::from_utf8_lossy(&made.stderr).trim().to_owned()));
        }
        let mut watch = command(Path::new("/bin/sh"), user);
        watch.args(["-c", WATCH, "watch"]).arg(programs.join("postgres")).args(["-h", "", "-k"]).arg(&place);
        watch.arg("-D").arg(&data).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let watch = watch.spawn().map_err(failed)?;
        Ok(Self { folder: place, watch })
    }

    /// The URL of its database.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://postgres@{}/postgres", self.folder.display().to_string().replace('/', "%2F"))
    }
}

impl Drop for PrivateCluster {
    fn drop(&mut self) {
        drop(self.watch.stdin.take());
        let _: io::Result<std::process::ExitStatus> = self.watch.wait();
    }
}

fn command(program: &Path, user: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(program);
    if let Some((user, group)) = user {
        command.uid(user).gid(group);
    }
    command.current_dir("/");
    command
}

/// The folder of PostgreSQL's programs.
fn programs() -> Option<PathBuf> {
    let packaged = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut packaged: Vec<PathBuf> = packaged.map(|entry| entry.path().join("bin")).collect();
    packaged.sort_unstable();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has = |folder: &PathBuf| folder.join("initdb").is_file() && folder.join("postgres").is_file();
    packaged.into_iter().rev().chain(std::env::split_paths(&path)).find(has)
}

/// The user that the database runs as: root may not.
fn user() -> Option<(u32, u32)> {
    if !rustix::process::getuid().is_root() {
        return None;
    }
    let users = codex_files::read_text(Path::new("/etc/passwd"), PASSWD_BYTES).ok()?;
    let of = |name: &str| {
        let mut parts = users.lines().find(|line| line.starts_with(&format!("{name}:")))?.split(':').skip(2);
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    };
    of("postgres").or_else(|| of("nobody"))
}
