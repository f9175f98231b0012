//! A server without free descriptors. It has its own process, because it uses up all of them.

#![expect(clippy::expect_used, reason = "a test may fail where it stands")]

use std::fs::File;
use std::time::Duration;

use codex_transport::{Address, Limits, Listener, Options, Reader, Shortage, Slots, Writer};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::timeout;

/// Takes every descriptor that is left.
fn take_all() -> Vec<File> {
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

/// Everything that a client receives, as long as the server does not pause too often.
async fn told(mut client: UnixStream) -> String {
    let mut told = String::new();
    let reading = timeout(Duration::from_secs(60), client.read_to_string(&mut told));
    reading.await.expect("it comes in time").expect("it is text");
    told
}

#[tokio::test(start_paused = true)]
async fn a_client_without_a_descriptor_is_served_later_or_refused_with_a_reason() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let socket = folder.path().join("run/socket");
    let (slots, limits, shortage) = (Slots::new(8), Limits::default(), Shortage::default());
    let options =
        Options { token: None, slots, limits, shortage: shortage.clone(), allows_remote: false, takes_bearer: true };
    let listener = Listener::bind(&Address::Unix(Some(socket.clone())), options).await.expect("it listens");
    let service = |_: Reader, mut output: Writer| async move {
        output.write_all(b"welcome\n").await.expect("it is heard");
    };
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(listener.serve(service, stopped));
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum }).expect("it can be lowered");

    let mut taken = take_all();
    taken.pop();
    let client = UnixStream::connect(&socket).await.expect("it listens");
    shortage.reported().await;
    drop(taken);
    assert_eq!(told(client).await, "welcome\n");

    let mut taken = take_all();
    taken.pop();
    let client = UnixStream::connect(&socket).await.expect("it listens");
    let told = told(client).await;
    assert!(told.contains("too many files are open (see ulimit -n); retry later"), "{told}");
    drop(taken);
    stop.send_replace(true);
    serving.await.expect("it does not panic");
}
