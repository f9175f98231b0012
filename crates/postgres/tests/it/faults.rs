//! Every statement fails once, before it is sent and after it has committed, and the thread is a prefix each time.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use codex_log::store::laws::{LAWS, wait_for};
use codex_log::store::{Commit, Entry, LogWriter, Opened, ReadFrom, ThreadStore};
use codex_postgres::{Connect, Connected, PostgresStore, StoreOptions};
use codex_wire::ids::ThreadId;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio_postgres::{Config, NoTls};

use crate::cluster::{Cluster, cluster, run};

/// When a write fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// It is not sent.
    Before,
    /// It is sent and done, and the answer is lost.
    After,
}

/// The fault of all connections of a store.
#[derive(Debug)]
pub(crate) struct Fault {
    /// The number of writes until it.
    writes: AtomicI64,
    when: When,
    /// Whether everything later fails too, as while the database is away.
    lasts: AtomicBool,
}

impl Fault {
    pub(crate) fn at(writes: i64, when: When, lasts: bool) -> Arc<Self> {
        Arc::new(Self { writes: AtomicI64::new(writes), when, lasts: AtomicBool::new(lasts) })
    }

    /// Whether this write fails.
    fn strikes(&self) -> bool {
        let left = self.writes.fetch_sub(1, Ordering::Relaxed);
        left == 0 || (left < 0 && self.lasts.load(Ordering::Relaxed))
    }

    pub(crate) fn has_struck(&self) -> bool {
        self.writes.load(Ordering::Relaxed) < 0
    }

    /// Lets a write from now on fail.
    pub(crate) fn strike_after(&self, writes: i64) {
        self.writes.store(writes, Ordering::Relaxed);
    }

    pub(crate) fn mend(&self) {
        self.lasts.store(false, Ordering::Relaxed);
    }
}

struct Faulty {
    stream: UnixStream,
    fault: Arc<Fault>,
    /// Whether the next answer is lost.
    is_deaf: bool,
}

fn reset() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

impl AsyncRead for Faulty {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if self.is_deaf {
            buf.set_filled(before);
            return Poll::Ready(Err(reset()));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Faulty {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        // The whole request is sent at once, or nothing.
        ready!(self.stream.poll_write_ready(cx))?;
        if self.fault.strikes() {
            if self.fault.when == When::Before {
                return Poll::Ready(Err(reset()));
            }
            self.is_deaf = true;
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

struct FaultyConnector {
    socket: PathBuf,
    config: Config,
    fault: Arc<Fault>,
}

impl Connect for FaultyConnector {
    fn connect<'a>(&'a self) -> Pin<Box<dyn Future<Output = Connected> + Send + 'a>> {
        Box::pin(async move {
            let stream = UnixStream::connect(&self.socket).await.expect("the server runs");
            let stream = Faulty { stream, fault: Arc::clone(&self.fault), is_deaf: false };
            let (client, connection) = self.config.connect_raw(stream, NoTls).await?;
            Ok((client, Box::pin(connection) as _))
        })
    }
}

pub(crate) fn open(cluster: &Cluster, options: &StoreOptions, fault: &Arc<Fault>) -> PostgresStore {
    let config = cluster.url().parse().expect("it is a URL");
    let connector = FaultyConnector { socket: cluster.socket(), config, fault: Arc::clone(fault) };
    // Notifications are sent at any time, and would make the writes before a fault differ from run to run.
    let options = StoreOptions { notifications: false, ..options.clone() };
    PostgresStore::open_with(&options, "test".to_owned(), Box::new(connector)).expect("one fault is made up for")
}

/// A store without faults, and the number of times that it has sent something.
pub(crate) fn counted(cluster: &Cluster, options: &StoreOptions) -> (PostgresStore, impl Fn() -> i64 + use<>) {
    let none = Fault::at(i64::MAX, When::Before, false);
    (open(cluster, options, &none), move || i64::MAX - none.writes.load(Ordering::Relaxed))
}

fn append(writer: &mut dyn LogWriter, number: usize) {
    writer
        .append(0, "event_msg", &mut |out| serde_json::to_writer(out, &json!({"number": number})))
        .expect("it is JSON");
}

pub(crate) fn commit(writer: &mut dyn LogWriter) -> bool {
    match writer.commit(true) {
        Commit::Done(done) => done.is_ok(),
        Commit::Sync(sync) => sync().is_ok(),
        Commit::Later(written) => wait_for(written).is_ok(),
    }
}

fn numbers(store: &PostgresStore, thread: ThreadId) -> Vec<u64> {
    let Ok(mut lines) = store.read(thread, ReadFrom::Start) else { return Vec::new() };
    let mut numbers = Vec::new();
    while let Some(entry) = lines.next_entry().expect("lines can be read") {
        let Entry::Line(line) = entry else { panic!("a line is broken") };
        numbers.push(line.payload_as::<serde_json::Value>().expect("it is JSON")["number"].as_u64().expect("a number"));
    }
    numbers
}

/// Appends three batches of two lines each. A batch that fails is appended again with the next one.
fn write(store: &PostgresStore, clean: &PostgresStore, mut failed: impl FnMut()) -> ThreadId {
    let thread = ThreadId::fresh();
    let Opened { mut writer, .. } = store.create(thread).expect("a thread can begin");
    let (mut saved, mut position) = (0, 0);
    for upto in [2, 4, 6] {
        loop {
            (saved..upto).for_each(|number| append(&mut *writer, number));
            if commit(&mut *writer) {
                break;
            }
            assert_eq!(writer.position(), position, "nothing of it is in the log");
            let there = numbers(clean, thread).len();
            assert!(there == saved || there == upto, "{there} lines are not a prefix");
            failed();
        }
        (saved, position) = (upto, writer.position());
        assert_eq!(numbers(clean, thread), (0..upto as u64).collect::<Vec<_>>(), "what was committed is there, once");
    }
    thread
}

#[test]
fn whichever_statement_fails_once_nothing_is_lost_and_nothing_is_twice() {
    let Some(cluster) = cluster() else { return };
    let options = cluster.options();
    let clean = crate::cluster::open(&options);
    for when in [When::Before, When::After] {
        for writes in 0.. {
            let fault = Fault::at(writes, when, false);
            let store = open(&cluster, &options, &fault);
            let thread = write(&store, &clean, || panic!("one fault is made up for"));
            drop(store);
            assert_eq!(numbers(&clean, thread).len(), 6);
            if !fault.has_struck() {
                assert!(writes > 10, "there were only {writes} writes");
                break;
            }
        }
    }
    assert_eq!(run(&options, "SELECT count(*) FROM @.threads WHERE owner IS NOT NULL"), ["0"], "all were given back");
}

#[test]
fn whichever_statement_fails_for_long_the_thread_is_a_prefix_and_goes_on() {
    let Some(cluster) = cluster() else { return };
    let mut options = cluster.options();
    let clean = crate::cluster::open(&options);
    options.patience = Duration::from_millis(300);
    for when in [When::Before, When::After] {
        // The writes before the first commit are those of the start, which fails as a whole.
        let start = Fault::at(i64::MAX, when, false);
        let store = open(&cluster, &options, &start);
        drop(store.create(ThreadId::fresh()).expect("a thread can begin"));
        let before = i64::MAX - start.writes.load(Ordering::Relaxed);
        drop(store);
        for writes in before.. {
            let fault = Fault::at(writes, when, true);
            let store = open(&cluster, &options, &fault);
            write(&store, &clean, || fault.mend());
            let struck = fault.has_struck();
            fault.mend();
            if !struck {
                break;
            }
        }
    }
}

/// The number of laws that are tried at the same time, each with a store of its own.
const AT_ONCE: usize = 4;

#[test]
fn the_laws_hold_whichever_statement_fails_once() {
    let Some(cluster) = cluster() else { return };
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((name, holds)) = LAWS.get(next.fetch_add(1, Ordering::Relaxed)) {
                    hold_with_faults(&cluster, name, *holds);
                }
            });
        }
    });
}

/// Tries a law with a fault in each of its statements. The first ones open the store, which the test above covers.
fn hold_with_faults(cluster: &Cluster, name: &str, holds: fn(&dyn ThreadStore)) {
    let options = cluster.options();
    let none = Fault::at(i64::MAX, When::Before, false);
    drop(open(cluster, &options, &none));
    let opening = i64::MAX - none.writes.load(Ordering::Relaxed);
    for when in [When::Before, When::After] {
        // Long lines take long. Their statements are those of the other laws, so a few faults in them are enough.
        let step = if name.starts_with("long lines") { 10 } else { 1 };
        for writes in (opening..).step_by(step) {
            let fault = Fault::at(writes, when, false);
            eprintln!("{name}, write {writes} fails, {when:?}");
            holds(&open(cluster, &options, &fault));
            run(
                &options,
                "DELETE FROM @.threads; DELETE FROM @.lines; DELETE FROM @.metadata; DELETE FROM @.prompts; DELETE FROM @.texts",
            );
            if !fault.has_struck() {
                break;
            }
        }
    }
}
