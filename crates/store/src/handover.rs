//! Requests for threads that another process holds, and may give away while they are idle.
//!
//! Each process that writes threads of a home listens at a socket below `run/holders`. A process that finds a thread
//! locked sends its id to all of them, and tries again. The holder gives an idle thread away by closing its file.
//!
//! Invariant: a request decides nothing. Only the lock of a thread's file, or the claim to it, says who writes it, so a
//! request that is lost, repeated or made up costs a moment at most. Sandboxed commands cannot see `run`.

use std::collections::HashMap;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use codex_log::store::Pending;
use codex_wire::ids::ThreadId;

/// The folder of sockets in a home, one for each process that writes threads.
const HOLDERS: &str = "run/holders";
/// The part of a fresh id that names a socket: the path of a socket is at most 107 bytes long.
const NAME_BYTES: usize = 12;
/// The stack of the thread that listens, which only reads ids.
const STACK_BYTES: usize = 64 * 1024;

/// Asks the processes of a home to give a thread away.
pub(crate) fn ask(home: &Path, thread: ThreadId) {
    let Ok(holders) = home.join(HOLDERS).read_dir() else { return };
    let Ok(socket) = UnixDatagram::unbound() else { return };
    if socket.set_nonblocking(true).is_err() {
        return;
    }
    for holder in holders.flatten().map(|entry| entry.path()) {
        let sent = socket.send_to(thread.to_string().as_bytes(), &holder);
        // Its process is dead.
        if sent.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            drop(std::fs::remove_file(holder));
        }
    }
}

/// Completes when another process asks for a thread of a home. `None` if none can.
pub(crate) fn wanted(home: &Path, thread: ThreadId) -> Option<Pending<()>> {
    let listener = Listener::of(home).ok()?;
    let request = Arc::new(Mutex::new(Request::default()));
    lock(&listener.awaited).insert(thread, Arc::downgrade(&request));
    Some(Box::pin(Wanted { request, _listener: listener }))
}

/// A request for one thread.
#[derive(Debug, Default)]
struct Request {
    is_made: bool,
    waker: Option<Waker>,
}

/// Waits for a request.
struct Wanted {
    request: Arc<Mutex<Request>>,
    _listener: Arc<Listener>,
}

impl Future for Wanted {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut request = lock(&self.request);
        if request.is_made {
            return Poll::Ready(());
        }
        request.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// The socket of this process for one home.
#[derive(Debug)]
struct Listener {
    home: PathBuf,
    path: PathBuf,
    awaited: Mutex<HashMap<ThreadId, Weak<Mutex<Request>>>>,
}

/// The listener of each home, as long as threads of it are open.
static PRESENT: Mutex<Vec<Weak<Listener>>> = Mutex::new(Vec::new());

impl Listener {
    fn of(home: &Path) -> io::Result<Arc<Self>> {
        let mut present = lock(&PRESENT);
        present.retain(|listener| listener.strong_count() > 0);
        if let Some(listener) = present.iter().filter_map(Weak::upgrade).find(|listener| listener.home == home) {
            return Ok(listener);
        }
        let folder = home.join(HOLDERS);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let name = ThreadId::fresh().to_string();
        let path = folder.join(&name[name.len().saturating_sub(NAME_BYTES)..]);
        let socket = UnixDatagram::bind(&path)?;
        let listener = Arc::new(Self { home: home.to_owned(), path, awaited: Mutex::default() });
        let shared = Arc::downgrade(&listener);
        let thread = std::thread::Builder::new().name("thread-requests".to_owned()).stack_size(STACK_BYTES);
        thread.spawn(move || listen(&socket, &shared))?;
        present.push(Arc::downgrade(&listener));
        Ok(listener)
    }

    fn asked_for(&self, thread: ThreadId) {
        let mut awaited = lock(&self.awaited);
        awaited.retain(|_, request| request.strong_count() > 0);
        let Some(request) = awaited.get(&thread).and_then(Weak::upgrade) else { return };
        drop(awaited);
        let mut request = lock(&request);
        request.is_made = true;
        if let Some(waker) = request.waker.take() {
            waker.wake();
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Any datagram wakes the thread, which then finds that nobody needs it.
        if let Ok(socket) = UnixDatagram::unbound() {
            let _ = socket.set_nonblocking(true);
            let _ = socket.send_to(&[], &self.path);
        }
        drop(std::fs::remove_file(&self.path));
    }
}

/// Hears requests until the listener is gone.
fn listen(socket: &UnixDatagram, listener: &Weak<Listener>) {
    let mut id = [0; 64];
    loop {
        let received = socket.recv(&mut id);
        let Some(listener) = listener.upgrade() else { return };
        match received {
            Ok(length) => {
                let thread = std::str::from_utf8(&id[..length]).ok().and_then(|id| id.parse().ok());
                if let Some(thread) = thread {
                    listener.asked_for(thread);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every critical section leaves the state consistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::task::Wake;
    use std::time::Duration;

    use super::*;

    struct Bell(Sender<()>);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.send(()).unwrap();
        }
    }

    #[test]
    fn a_request_reaches_the_thread_that_it_names_and_leaves_nothing() {
        let home = tempfile::tempdir().unwrap();
        let (one, other) = (ThreadId::fresh(), ThreadId::fresh());
        let mut first = wanted(home.path(), one).unwrap();
        let mut second = wanted(home.path(), other).unwrap();
        let (rung, bell) = channel();
        let waker = Waker::from(Arc::new(Bell(rung)));
        let mut cx = Context::from_waker(&waker);
        assert!(first.as_mut().poll(&mut cx).is_pending() && second.as_mut().poll(&mut cx).is_pending());
        let left = home.path().join(HOLDERS).join("dead");
        drop(UnixDatagram::bind(&left).unwrap());
        ask(home.path(), ThreadId::fresh());
        ask(home.path(), other);
        bell.recv_timeout(Duration::from_secs(30)).unwrap();
        assert!(first.as_mut().poll(&mut cx).is_pending() && second.as_mut().poll(&mut cx).is_ready());
        assert!(!left.exists(), "the socket of a dead process is removed");
        drop((first, second));
        assert_eq!(home.path().join(HOLDERS).read_dir().unwrap().count(), 0);
        assert!(wanted(home.path(), one).is_some(), "it listens again");
    }

    #[test]
    fn a_home_with_a_path_too_long_for_a_socket_is_not_asked() {
        let home = tempfile::tempdir().unwrap();
        let long = home.path().join("x".repeat(120));
        assert!(wanted(&long, ThreadId::fresh()).is_none());
        ask(&long, ThreadId::fresh());
    }
}
