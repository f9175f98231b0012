//! Another user connects to a Unix socket. As root the test becomes one; otherwise it checks who would be accepted.
//!
//! It runs itself as the other user, so it has its own `main`.

#![expect(clippy::expect_used, reason = "a test may fail where it stands")]

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use codex_transport::{Address, Limits, Listener, Options, Reader, Shortage, Slots, Writer, is_welcome};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::watch;

/// Nobody.
const OTHER: u32 = 65534;

fn main() {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some("--knock") {
        let path = words.next().expect("a path");
        return std::io::stdout().write_all(knock(Path::new(&path)).as_bytes()).expect("somebody reads");
    }
    let folder = tempfile::tempdir().expect("a folder can be made");
    let own = std::fs::metadata(folder.path()).expect("it is there").uid();
    assert!(is_welcome(own, own) && !is_welcome(OTHER, own) && is_welcome(0, own), "who is welcome");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime can be made").block_on(check(folder.path(), own));
}

/// The result of connecting.
fn knock(path: &Path) -> &'static str {
    let mut stream = match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return "no way",
        Err(error) => panic!("{error}"),
        Ok(stream) => stream,
    };
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("it can be set");
    // The server may have disconnected already.
    let _: std::io::Result<()> = stream.write_all(b"hello\n");
    let mut heard = String::new();
    match stream.read_to_string(&mut heard) {
        Ok(_) if heard == "welcome\n" => "welcome",
        Ok(_) => "nothing",
        Err(error) if error.kind() == ErrorKind::ConnectionReset => "nothing",
        Err(error) => panic!("{error}"),
    }
}

async fn check(folder: &Path, own: u32) {
    let socket = folder.join("run/socket");
    let (slots, limits, shortage) = (Slots::new(8), Limits::default(), Shortage::default());
    let options = Options { token: None, slots, limits, shortage, allows_remote: false, takes_bearer: true };
    let listener = Listener::bind(&Address::Unix(Some(socket.clone())), options).await.expect("it listens");
    let (stop, stopped) = watch::channel(false);
    let service = |mut input: Reader, mut output: Writer| async move {
        input.read_exact(&mut [0; 6]).await.expect("it says hello");
        output.write_all(b"welcome\n").await.expect("it is heard");
    };
    let serving = tokio::spawn(listener.serve(service, stopped));
    assert_eq!(run(folder, &socket, own).await, "welcome", "its owner");
    if own == 0 {
        assert_eq!(run(folder, &socket, OTHER).await, "no way", "another user before a closed folder");
        // Even if the modes let others through, the server checks their user.
        for (path, mode) in [(folder.to_owned(), 0o755), (folder.join("run"), 0o755), (socket.clone(), 0o666)] {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("it can be changed");
        }
        assert_eq!(run(folder, &socket, OTHER).await, "nothing", "another user at an open socket");
        assert_eq!(run(folder, &socket, own).await, "welcome", "its owner, afterwards");
    }
    stop.send_replace(true);
    serving.await.expect("it does not panic");
}

/// Connects as a user.
async fn run(folder: &Path, socket: &Path, user: u32) -> String {
    // The other user may not be able to reach this program's folder.
    let program = tempfile::Builder::new()
        .permissions(PermissionsExt::from_mode(0o755))
        .tempdir_in(folder.parent().expect("it has one"));
    let program = program.expect("a folder can be made");
    let (knocker, socket) = (program.path().join("knock"), socket.to_owned());
    // A separate process copies the file: a child that is started in the meantime would inherit a descriptor open for
    // writing, and such a file cannot be executed.
    let copied = Command::new("cp").arg(std::env::current_exe().expect("it has a path")).arg(&knocker).status();
    assert!(copied.is_ok_and(|status| status.success()), "it can be copied");
    let output = tokio::task::spawn_blocking(move || {
        let mut command = Command::new(knocker);
        command.arg("--knock").arg(socket);
        if user == OTHER {
            command.uid(OTHER).gid(OTHER);
        }
        command.output().expect("it runs")
    });
    let output = output.await.expect("it does not panic");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
