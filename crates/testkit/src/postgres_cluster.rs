//! A private PostgreSQL cluster on a Unix socket in a temporary folder.

#![expect(clippy::expect_used, reason = "a test cannot continue without its database")]

use std::fs::Permissions;
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use tokio_postgres::{NoTls, SimpleQueryMessage};

/// Ends a server and removes its folder when the pipe to this program closes, however this program ends.
pub(crate) const WATCH: &str = r#"folder=$1; shift; "$@" >"$folder/log" 2>&1 & server=$!; read -r _; kill -INT $server; wait $server; rm -rf "$folder""#;

/// A running cluster, which ends with this program.
#[derive(Debug)]
pub struct PostgresCluster {
    /// The folder of its socket and its data.
    pub folder: PathBuf,
    /// The folder of PostgreSQL's programs.
    programs: PathBuf,
    _watch: Child,
}

/// The cluster of this program. `None`, with a message, where PostgreSQL is not installed.
#[must_use]
pub fn postgres_cluster() -> Option<&'static PostgresCluster> {
    static CLUSTER: OnceLock<Option<PostgresCluster>> = OnceLock::new();
    let found = CLUSTER.get_or_init(|| programs().map(|programs| start(&programs, &["-h".to_owned(), String::new()])));
    if found.is_none() {
        eprintln!("skipped: there is no initdb here");
    }
    found.as_ref()
}

/// A cluster that also takes TLS connections at a port of `localhost`, with the certificate `server.pem` of
/// [`tls_file`](crate::tls_file); and that port.
///
/// # Panics
/// When it cannot be started.
#[must_use]
pub fn postgres_cluster_with_tls() -> Option<(&'static PostgresCluster, u16)> {
    static CLUSTER: OnceLock<Option<(PostgresCluster, u16)>> = OnceLock::new();
    let found = CLUSTER.get_or_init(|| {
        let programs = programs()?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|it| it.local_addr()).expect("a port").port();
        // The server reads the key only if nobody else can.
        let keys = tempfile::Builder::new().prefix("codex-pg-tls-").tempdir().expect("a folder can be made").keep();
        let mut settings = vec!["-h".to_owned(), "127.0.0.1".to_owned(), "-p".to_owned(), port.to_string()];
        settings.extend(["-c".to_owned(), "ssl=on".to_owned()]);
        for (name, setting) in [("server.pem", "ssl_cert_file"), ("server.key", "ssl_key_file")] {
            let copy = keys.join(name);
            std::fs::copy(crate::tls_file(name), &copy).expect("it can be copied");
            std::fs::set_permissions(&copy, Permissions::from_mode(0o600)).expect("it is ours");
            if let Some((user, group)) = user() {
                chown(&copy, Some(user), Some(group)).expect("root may give a file away");
            }
            settings.extend(["-c".to_owned(), format!("{setting}={}", copy.display())]);
        }
        if let Some((user, group)) = user() {
            chown(&keys, Some(user), Some(group)).expect("root may give a folder away");
        }
        Some((start(&programs, &settings), port))
    });
    if found.is_none() {
        eprintln!("skipped: there is no initdb here");
    }
    found.as_ref().map(|(cluster, port)| (cluster, *port))
}

fn programs() -> Option<PathBuf> {
    let packaged = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut packaged: Vec<PathBuf> = packaged.map(|entry| entry.path().join("bin")).collect();
    packaged.sort_unstable();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has = |folder: &PathBuf| folder.join("initdb").is_file() && folder.join("postgres").is_file();
    packaged.into_iter().rev().chain(std::env::split_paths(&path)).find(has)
}

/// The user that the server runs as: root may not.
pub(crate) fn user() -> Option<(u32, u32)> {
    if !rustix::process::getuid().is_root() {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").expect("there are users");
    let of = |name: &str| {
        let line = users.lines().find(|line| line.starts_with(&format!("{name}:")))?;
        let mut parts = line.split(':').skip(2);
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    };
    of("postgres").or_else(|| of("nobody"))
}

pub(crate) fn command(program: &Path, user: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(program);
    if let Some((user, group)) = user {
        command.uid(user).gid(group).current_dir("/");
    }
    command
}

fn start(programs: &Path, settings: &[String]) -> PostgresCluster {
    let folder = tempfile::Builder::new().prefix("codex-pg-").tempdir().expect("a folder can be made").keep();
    let user = user();
    if let Some((user, group)) = user {
        chown(&folder, Some(user), Some(group)).expect("root may give a folder away");
    }
    let data = folder.join("data");
    let made = command(&programs.join("initdb"), user)
        .args(["-A", "trust", "-U", "postgres", "--no-sync", "-D"])
        .arg(&data)
        .output()
        .expect("initdb runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let watch = command(Path::new("/bin/sh"), user)
        .args(["-c", WATCH, "watch"])
        .arg(&folder)
        .arg(programs.join("postgres"))
        .args(settings)
        .args(["-c", "fsync=off", "-c", "max_connections=200", "-c", "shared_buffers=16MB"])
        .args(["-c", "logging_collector=off", "-k"])
        .arg(&folder)
        .arg("-D")
        .arg(&data)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server starts");
    PostgresCluster { folder, programs: programs.to_path_buf(), _watch: watch }
}

impl PostgresCluster {
    /// The URL of its database.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://postgres@{}/postgres", self.folder.display().to_string().replace('/', "%2F"))
    }

    /// The URL of another database of the cluster.
    #[must_use]
    pub fn url_of(&self, database: &str) -> String {
        format!("{}/{database}", self.url().trim_end_matches("/postgres"))
    }

    /// Runs one of PostgreSQL's programs for this cluster, such as `pg_dump`, and returns what it prints.
    ///
    /// # Panics
    /// When it fails.
    #[must_use]
    pub fn run_program(&self, name: &str, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        let beside_the_server = Some(self.programs.join(name)).filter(|program| program.is_file());
        let mut command = command(&beside_the_server.unwrap_or_else(|| name.into()), user());
        command.args(["-h".as_ref(), self.folder.as_os_str()]).args(["-U", "postgres"]).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut stdin = child.stdin.take().expect("it is piped");
        let input = input.to_vec();
        // It may print while it reads.
        let writing = std::thread::spawn(move || stdin.write_all(&input));
        let done = child.wait_with_output().expect("it runs");
        assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
        writing.join().expect("it does not panic").expect("it reads everything");
        done.stdout
    }

    /// The socket of the server.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.join(".s.PGSQL.5432")
    }

    /// Runs statements as somebody else who uses the database, and returns the first column of their rows.
    ///
    /// # Panics
    /// When a statement fails.
    #[must_use]
    pub fn sql(&self, statements: &str) -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&self.url(), NoTls).await.expect("the server runs");
            tokio::spawn(connection);
            let rows = client.simple_query(statements).await.expect("the statement is right");
            let values = rows.into_iter().filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
                _ => None,
            });
            values.collect()
        })
    }
}
