//! The pooler `pgbouncer` in front of a private PostgreSQL cluster.

#![expect(clippy::expect_used, reason = "a test cannot continue without its database")]

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::postgres_cluster::{PostgresCluster, WATCH, command, user};

/// A running pooler, which ends with this value.
#[derive(Debug)]
pub struct Pooler {
    folder: PathBuf,
    watch: Child,
}

impl Pooler {
    /// Starts a pooler with two sessions, and further settings of it such as `pool_mode = transaction`. `None`, with a message,
    /// where `pgbouncer` is not installed.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start(cluster: &PostgresCluster, settings: &str) -> Option<Self> {
        let Some(program) = program() else {
            eprintln!("skipped: there is no pgbouncer here");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("codex-pgb-").tempdir().expect("a folder can be made").keep();
        let (server, own) = (cluster.folder.display(), folder.display());
        let config = format!(
            "[databases]\n* = host={server} user=postgres\n[pgbouncer]\nunix_socket_dir = {own}\nlisten_port = 5432\n\
             auth_type = any\ndefault_pool_size = 2\nmax_client_conn = 200\n{settings}\n"
        );
        std::fs::write(folder.join("pgbouncer.ini"), config).expect("a file can be written");
        let user = user();
        if let Some((user, group)) = user {
            chown(&folder, Some(user), Some(group)).expect("root may give a folder away");
        }
        let watch = command(Path::new("/bin/sh"), user)
            .args(["-c", WATCH, "watch"])
            .args([&folder, &program, &folder.join("pgbouncer.ini")])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the pooler starts");
        Some(Self { folder, watch })
    }

    /// The URL of the database behind it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://postgres@{}/postgres", self.folder.display().to_string().replace('/', "%2F"))
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.watch.stdin.take());
        drop(self.watch.wait());
    }
}

fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    folders.map(|folder| folder.join("pgbouncer")).find(|program| program.is_file())
}
