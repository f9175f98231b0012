//! Connections that die in silence, and statements that arrive when nobody expects them any more.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use codex_log::store::{Opened, ThreadStore};
use codex_postgres::{Connect, Connected, PostgresStore, StoreOptions};
use codex_wire::ids::ThreadId;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio_postgres::{Config, NoTls};

use crate::cluster::{Cluster, cluster, open, run};
use crate::faults::{self, Fault, When, commit};
use crate::texts::{append, texts};

/// The time to wait for something before a test fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// A stream that takes everything and answers nothing once it is cut.
struct Cuttable {
    stream: UnixStream,
    number: usize,
    cut: Arc<AtomicUsize>,
}

impl Cuttable {
    fn is_cut(&self) -> bool {
        self.number < self.cut.load(Ordering::Relaxed)
    }
}

impl AsyncRead for Cuttable {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.is_cut() {
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Cuttable {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_cut() {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Connects, and cuts and refuses connections when it is told to. Clones share that.
#[derive(Clone)]
struct Connector {
    socket: PathBuf,
    config: Config,
    made: Arc<AtomicUsize>,
    cut: Arc<AtomicUsize>,
    /// The moment until which connections are refused.
    away: Arc<Mutex<Option<Instant>>>,
}

impl Connector {
    fn new(cluster: &Cluster) -> Self {
        let config = cluster.url().parse().expect("it is a URL");
        Self { socket: cluster.socket(), config, made: Arc::default(), cut: Arc::default(), away: Arc::default() }
    }

    fn store(&self, options: &StoreOptions) -> PostgresStore {
        let connector = Box::new(self.clone());
        PostgresStore::open_with(options, "test".to_owned(), connector).expect("it can be opened")
    }

    /// Lets everything that is connected die, without anybody being told.
    fn cut(&self) {
        self.cut.store(self.made.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl Connect for Connector {
    fn connect<'a>(&'a self) -> Pin<Box<dyn Future<Output = Connected> + Send + 'a>> {
        Box::pin(async move {
            let away = *self.away.lock().expect("it holds");
            if away.is_some_and(|until| Instant::now() < until) {
                let mut nowhere = Config::new();
                nowhere.host_path(self.socket.with_extension("nowhere")).user("nobody");
                let (client, connection) = nowhere.connect(NoTls).await?;
                return Ok((client, Box::pin(connection) as _));
            }
            let stream = UnixStream::connect(&self.socket).await.expect("the server runs");
            let number = self.made.fetch_add(1, Ordering::Relaxed);
            let stream = Cuttable { stream, number, cut: Arc::clone(&self.cut) };
            let (client, connection) = self.config.connect_raw(stream, NoTls).await?;
            Ok((client, Box::pin(connection) as _))
        })
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts")
}

#[test]
fn connections_that_die_in_silence_cost_no_lease() {
    let Some(cluster) = cluster() else { return };
    drop(cluster.store());
    let connector = Connector::new(&cluster);
    let store = connector.store(&cluster.options());
    store.register(None).expect("it can be entered");
    let (id, mut servers) = (store.server_id(), store.servers());
    let Opened { mut writer, .. } = store.create(ThreadId::fresh()).expect("a thread can begin");
    connector.cut();
    let renewed = runtime().block_on(async { tokio::time::timeout(PATIENCE, servers.changed()).await });
    renewed.expect("it is renewed in time").expect("the store is there");
    assert_eq!(store.server_id(), id, "the lease was renewed over another connection");
    append(&mut *writer, "first");
    assert!(commit(&mut *writer), "the writer was not revoked");
}

/// A lease counts from the attempt that has got it, not from the first one.
#[test]
fn a_lease_that_was_long_in_coming_is_a_whole_one() {
    let Some(cluster) = cluster() else { return };
    drop(cluster.store());
    let mut connector = Connector::new(&cluster);
    connector.config.application_name("long in coming");
    let (options, store) = (cluster.options(), connector.store(&cluster.options()));
    // Longer than a lease is kept without a renewal, and shorter than the patience of a call.
    *connector.away.lock().expect("it holds") = Some(Instant::now() + Duration::from_secs(11));
    let gone = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'long in coming'";
    assert_eq!(run(&options, gone), ["t"]);
    let Opened { mut writer, .. } = store.create(ThreadId::fresh()).expect("the database comes back in time");
    append(&mut *writer, "first");
    assert!(commit(&mut *writer), "it is still the writer");
}

#[test]
fn threads_that_begin_at_once_are_those_of_one_server() {
    let Some(cluster) = cluster() else { return };
    let options = cluster.options();
    let store = open(&options);
    let held: Vec<Opened> = std::thread::scope(|scope| {
        let begun: Vec<_> =
            (0..8).map(|_| scope.spawn(|| store.create(ThreadId::fresh()).expect("a thread can begin"))).collect();
        begun.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
    });
    let until = Instant::now() + PATIENCE;
    while run(&options, "SELECT count(*) FROM @.servers") != ["1"] {
        assert!(Instant::now() < until, "nobody else may be taken for a server");
    }
    drop(held);
}

/// The first attempt to begin a thread was given up, and is still on its way. Its lines are as long as those of the next one.
#[test]
fn a_beginning_that_arrives_late_is_not_taken_for_the_next_one() {
    let Some(cluster) = cluster() else { return };
    let mut options = cluster.options();
    let clean = open(&options);
    options.patience = Duration::from_secs(3);
    let fault = Fault::at(i64::MAX, When::Before, true);
    let store = faults::open(&cluster, &options, &fault);
    let thread = ThreadId::fresh();
    let Opened { mut writer, .. } = store.create(thread).expect("a thread can begin");
    append(&mut *writer, "lost");
    let length = writer.position();
    fault.strike_after(0);
    assert!(!commit(&mut *writer), "the database is away");
    fault.mend();

    let (owner, schema) = (store.server_id().expect("it has a lease"), &options.schema);
    runtime().block_on(async {
        let (late, connection) = tokio_postgres::connect(&cluster.url(), NoTls).await.expect("the server runs");
        tokio::spawn(connection);
        // The database is still at work on the first attempt when the next one comes.
        let beginning = format!(
            "BEGIN; INSERT INTO {schema}.threads (id, owner, epoch, end_at, began, updated) \
             VALUES ('{thread}', '{owner}', 1, {length}, '', 0); \
             INSERT INTO {schema}.lines VALUES ('{thread}', {length}, 1, 0, '{{\"payload\": {{\"text\": \"lost\"}}}}')"
        );
        late.batch_execute(&beginning).await.expect("nobody is in the way");
        append(&mut *writer, "kept");
        assert_eq!(writer.position(), length);
        let next = std::thread::spawn(move || (commit(&mut *writer), writer));
        let (other, connection) = tokio_postgres::connect(&cluster.url(), NoTls).await.expect("the server runs");
        tokio::spawn(connection);
        let waiting = format!(
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%INSERT INTO \"{schema}\".threads%'"
        );
        while other.query(&waiting, &[]).await.expect("it is right").is_empty() {
            assert!(!next.is_finished(), "it waits for the other one");
        }
        late.batch_execute("COMMIT").await.expect("it is right");
        let (is_written, writer) = next.join().expect("it does not panic");
        assert!(is_written);
        assert_eq!(texts(&clean, thread), ["kept"], "what was given up is gone");
        drop(writer);
    });
}
