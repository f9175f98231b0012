//! One client: its lines go to the router, and what the router decides is done.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codex_lines::{Line, LineReader, MAX_LINE_BYTES, Outbox, Room, Writer};
use codex_wire::ids::ThreadId;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, duplex};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use crate::link::{self, WAITING_LINES};
use crate::message::Message;
use crate::peers::Peers;
use crate::router::{ClientView, Effect, LinkNumber, METHOD, Router};

/// The buffer size of the pipes to the server of this process, and to a client within it.
const PIPE_BYTES: usize = 64 * 1024;

/// The time limit for owners to answer the last requests of a client.
const LAST_ANSWERS: Duration = Duration::from_secs(30);

/// The time limit for a client to read the last messages, and for the server of this process to end.
const LAST_WORDS: Duration = Duration::from_secs(30);

/// Passes requests on to the servers that have their threads open.
#[derive(Debug, Clone)]
pub struct Relay {
    peers: Arc<dyn Peers>,
    view: ClientView,
}

/// The state of one client.
pub(crate) struct Shared {
    pub(crate) peers: Arc<dyn Peers>,
    router: Mutex<Router>,
    /// To the client, until everything has ended.
    outbox: Mutex<Option<Arc<Outbox>>>,
    /// To the server of this process, until the client's input has ended.
    local: Mutex<Option<Arc<Outbox>>>,
    links: Mutex<HashMap<LinkNumber, mpsc::Sender<Vec<u8>>>>,
    /// Notified when a request may have been answered.
    progress: Notify,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change under these locks is complete.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Relay {
    #[must_use]
    pub fn new(peers: Arc<dyn Peers>, view: ClientView) -> Self {
        Self { peers, view }
    }

    /// The name of the other server that has a thread open and can be reached.
    pub async fn owner(&self, thread: ThreadId) -> Option<String> {
        self.peers.owner(thread).await.map(|peer| peer.name)
    }

    /// Connects a client within this process: its end of an in-memory stream. Dropping it disconnects the client.
    #[must_use]
    pub fn connect<F>(&self, local: impl FnOnce(DuplexStream, DuplexStream) -> F + Send + 'static) -> DuplexStream
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        let (theirs, ours) = duplex(PIPE_BYTES);
        let relay = self.clone();
        tokio::spawn(async move {
            let (input, output) = tokio::io::split(ours);
            // An in-memory stream fails only when the client is gone.
            let _: io::Result<()> = relay.serve(input, output, local).await;
        });
        theirs
    }

    /// Serves one client until its input has ended and everything is answered. `local` serves it as the server of this
    /// process does; its result is returned.
    ///
    /// # Errors
    /// Those of `local`.
    pub async fn serve<R, W, F>(
        &self,
        input: R,
        output: W,
        local: impl FnOnce(DuplexStream, DuplexStream) -> F,
    ) -> io::Result<()>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
        F: Future<Output = io::Result<()>>,
    {
        let (to_local, local_input) = duplex(PIPE_BYTES);
        let (local_output, from_local) = duplex(PIPE_BYTES);
        let (outbox, writer) = Outbox::new(output);
        let (local_outbox, local_writer) = Outbox::new(to_local);
        let shared = Arc::new(Shared {
            peers: Arc::clone(&self.peers),
            router: Mutex::new(Router::new(self.view)),
            outbox: Mutex::new(Some(Arc::new(outbox))),
            local: Mutex::new(Some(Arc::new(local_outbox))),
            links: Mutex::default(),
            progress: Notify::new(),
        });
        let session = Session { shared: &shared, input, writer, local_writer, from_local };
        let served = session.run(local(local_input, local_output)).await;
        shared.close();
        served
    }
}

/// The directions in which lines flow between the client and the server of this process.
struct Session<'a, R, W> {
    shared: &'a Arc<Shared>,
    input: R,
    writer: Writer<W>,
    local_writer: Writer<DuplexStream>,
    from_local: DuplexStream,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Session<'_, R, W> {
    async fn run(self, local: impl Future<Output = io::Result<()>>) -> io::Result<()> {
        let Self { shared, input, writer, local_writer, from_local } = self;
        let mut local = std::pin::pin!(local);
        let mut writing = std::pin::pin!(writer.run());
        let mut served = None;
        {
            let mut to_local = std::pin::pin!(local_writer.run());
            let mut reading = std::pin::pin!(shared.read(input));
            let mut forwarding = std::pin::pin!(shared.forward(from_local));
            let (mut is_read, mut is_passed) = (false, false);
            loop {
                tokio::select! {
                    () = &mut reading, if !is_read => is_read = true,
                    // The server of this process may stop reading before the client stops writing.
                    _ = &mut to_local, if !is_passed => is_passed = true,
                    result = &mut local, if served.is_none() => served = Some(result),
                    () = &mut forwarding => break,
                    // The client no longer reads. The server notices when its pipe closes.
                    _ = &mut writing => {
                        shared.close();
                        break;
                    }
                }
            }
        }
        shared.close();
        // Both pipes to the server are closed now.
        let ending = async {
            let served = match served {
                Some(served) => served,
                None => local.await,
            };
            // It may have failed before, which the client caused.
            drop(timeout(LAST_WORDS, writing).await);
            served
        };
        timeout(2 * LAST_WORDS, ending).await.unwrap_or(Ok(()))
    }
}

impl Shared {
    pub(crate) fn outbox(&self) -> Option<Arc<Outbox>> {
        lock(&self.outbox).clone()
    }

    fn with_router<T>(&self, work: impl FnOnce(&mut Router) -> T) -> T {
        work(&mut lock(&self.router))
    }

    /// Takes note of a line of an owner. Returns whether the client gets it.
    pub(crate) fn link_line(&self, link: LinkNumber, line: &[u8]) -> bool {
        let is_wanted = self.with_router(|router| router.link_line(link, line));
        self.progress.notify_one();
        is_wanted
    }

    /// Asks the router, and does what it says. Its lock is held, so that lines keep their order.
    pub(crate) fn route(self: &Arc<Self>, work: impl FnOnce(&mut Router) -> Vec<Effect>) {
        let mut router = lock(&self.router);
        let effects = work(&mut router);
        self.perform(&mut router, effects, None);
    }

    /// Does what the router says. `room` is that of a line of the client on its way to the server of this process.
    fn perform(self: &Arc<Self>, router: &mut Router, effects: Vec<Effect>, mut room: Option<Room>) {
        let mut effects: VecDeque<Effect> = effects.into();
        while let Some(effect) = effects.pop_front() {
            match effect {
                Effect::ToLocal(mut line) => {
                    line.push(b'\n');
                    if let Some(local) = &*lock(&self.local) {
                        match room.take() {
                            Some(room) => local.send_notification(line, room),
                            None => local.send_answer_at_once(line),
                        }
                    }
                }
                Effect::ToClient(line) => {
                    if let Some(outbox) = self.outbox() {
                        outbox.send_answer_at_once(line);
                    }
                }
                Effect::LookUp(thread) => {
                    let shared = Arc::clone(self);
                    tokio::spawn(async move {
                        let owner = shared.peers.owner(thread).await;
                        shared.route(|router| router.looked_up(thread, owner));
                    });
                }
                Effect::Open { link, peer, initialize } => {
                    let (lines, queue) = mpsc::channel(WAITING_LINES);
                    lock(&self.links).insert(link, lines);
                    tokio::spawn(link::run(Arc::clone(self), link, peer, initialize, queue));
                }
                Effect::ToLink { link, line, request } => {
                    let sent = lock(&self.links).get(&link).map(|lines| lines.try_send(line));
                    match sent {
                        Some(Err(TrySendError::Full(_))) => effects.extend(router.link_full(link, request)),
                        // If its task has ended, it closes the link.
                        Some(Ok(()) | Err(TrySendError::Closed(_))) | None => {}
                    }
                }
                Effect::Close(link) => drop(lock(&self.links).remove(&link)),
            }
        }
        self.progress.notify_one();
    }

    /// Routes the lines of the client until its input ends, and waits for the answers of owners.
    async fn read<R: AsyncRead + Unpin>(self: &Arc<Self>, input: R) {
        // The server of this process reports a longer line to the client.
        let mut lines = LineReader::with_limit(input, MAX_LINE_BYTES + 1);
        // An input that fails has ended.
        while let Ok(Some(line)) = lines.next().await {
            let line = match line {
                Line::Whole(line) => line,
                Line::TooLong { head, .. } => padded(head),
            };
            let Some(local) = lock(&self.local).clone() else { break };
            let room = local.room(line.len()).await;
            let message = Message::read(&line);
            let thread = self.with_router(|router| router.thread_of(&message));
            let is_here = thread.is_some_and(|thread| self.peers.is_here(thread));
            let own_id = if matches!(message, Message::Initialize { .. }) { self.peers.own_id() } else { None };
            let mut router = lock(&self.router);
            let effects = router.client_line(line, message, is_here, own_id.as_deref());
            self.perform(&mut router, effects, Some(room));
        }
        let answered = async {
            while self.with_router(|router| router.has_unanswered()) {
                self.progress.notified().await;
            }
        };
        // Requests that are not answered until then are given up.
        drop(timeout(LAST_ANSWERS, answered).await);
        drop(lock(&self.local).take());
    }

    /// Passes the lines of the server of this process to the client until it closes its side.
    async fn forward(&self, from_local: DuplexStream) {
        let mut lines = LineReader::with_limit(from_local, usize::MAX / 2);
        while let Ok(Some(line)) = lines.next().await {
            let (Line::Whole(line), Some(outbox)) = (line, self.outbox()) else { return };
            pass_on(&outbox, line).await;
        }
    }

    /// Closes everything.
    fn close(&self) {
        drop(lock(&self.local).take());
        drop(lock(&self.outbox).take());
        lock(&self.links).clear();
    }
}

/// Passes a line of a server to the client, as soon as there is room for it.
pub(crate) async fn pass_on(outbox: &Outbox, mut line: Vec<u8>) {
    line.push(b'\n');
    if line.starts_with(METHOD) {
        let room = outbox.room(line.len()).await;
        outbox.send_notification(line, room);
    } else {
        outbox.send_answer(line).await;
    }
}

/// A line that is as long as one that was not kept, for the server that complains about it: its beginning counts.
fn padded(mut head: Vec<u8>) -> Vec<u8> {
    head.resize(MAX_LINE_BYTES + 1, b' ');
    head
}
