//! Connections to the database: a thread of their own, a small pool, and another attempt after a break.
//!
//! Invariant: a statement that may be repeated is repeated until it succeeds or the patience of its caller ends, and no
//! wait is longer than that. Statements that are not idempotent find out themselves whether an attempt has succeeded.

use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as blocking;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use tokio::task::{self, JoinSet, LocalSet};
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};
use uuid::Uuid;

use crate::address::{Address, StoreOptions, quoted_schema};
use crate::connection::{Connection, SESSION_SETTING};
use crate::errors::{Failure, PostgresError, is_about_parameters};
use crate::schema;
use crate::tls::Tls;

/// The number of connections of a process. Statements are short, so a few serve thousands of threads.
const MOST_CONNECTIONS: usize = 8;

/// The time limit of one statement.
const STATEMENT_TIME: Duration = Duration::from_secs(20);

/// The pauses between attempts: the first, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The time limit for the last statements of a process.
const CLOSING_TIME: Duration = Duration::from_secs(2);

/// A future on the thread of the connections.
pub(crate) type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

type Job = Box<dyn FnOnce(Rc<Pool>) -> LocalFuture<'static, ()> + Send>;

/// Makes connections.
pub trait Connect: Send + Sync {
    /// Connects, and returns the client with the future that drives its connection.
    fn connect<'a>(&'a self) -> Pin<Box<dyn Future<Output = Connected> + Send + 'a>>;

    /// Notified when a connection receives a notification; `None` if nobody looks for them.
    fn news(&self) -> Option<Arc<Notify>> {
        None
    }

    /// The value of the setting `codex.session` in the sessions of its connections. A session with another value is that of
    /// a pooler. `None` if there is none in between.
    fn session(&self) -> Option<&str> {
        None
    }
}

/// A client, and the future that drives its connection.
pub type Connected =
    Result<(Client, Pin<Box<dyn Future<Output = Result<(), tokio_postgres::Error>> + Send>>), tokio_postgres::Error>;

/// A database, used from any thread. Clones share its connections.
#[derive(Clone)]
pub(crate) struct Database {
    shared: Arc<Shared>,
}

struct Shared {
    jobs: Mutex<Option<mpsc::UnboundedSender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    place: String,
    patience: Duration,
    uses_locks: bool,
    notifies: bool,
}

/// Work that was begun on the thread of the connections.
#[derive(Debug)]
pub(crate) struct Awaited<T> {
    database: Database,
    answer: blocking::Receiver<Result<T, PostgresError>>,
}

impl<T> Awaited<T> {
    /// Waits until it is done.
    pub(crate) fn wait(self) -> Result<T, PostgresError> {
        self.answer.recv().unwrap_or_else(|_| Err(self.database.ended()))
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("place", &self.shared.place).finish_non_exhaustive()
    }
}

/// Connects over the network.
struct Network {
    config: Config,
    /// The same, with a setting that marks the sessions of this process.
    marked: Config,
    session: String,
    /// Whether marked connections are refused. Poolers do that.
    is_unmarked: AtomicBool,
    tls: Option<Tls>,
    news: Arc<Notify>,
}

impl Network {
    fn new(config: Config, tls: Option<Tls>) -> Self {
        let (session, mut marked) = (codex_wire::ids::fresh_uuid().to_string(), config.clone());
        let options = config.get_options().map(|options| format!("{options} ")).unwrap_or_default();
        marked.options(format!("{options}-c {SESSION_SETTING}={session}"));
        Self { config, marked, session, is_unmarked: AtomicBool::new(false), tls, news: Arc::default() }
    }

    async fn open(&self, config: &Config) -> Connected {
        if let Some(tls) = &self.tls {
            let (client, connection) = config.connect(tls.clone()).await?;
            return Ok((client, Box::pin(drive(connection, Arc::clone(&self.news))) as _));
        }
        let (client, connection) = config.connect(NoTls).await?;
        Ok((client, Box::pin(drive(connection, Arc::clone(&self.news))) as _))
    }
}

/// Drives a connection, and passes on that there are notifications.
async fn drive<S, T>(
    mut connection: tokio_postgres::Connection<S, T>,
    news: Arc<Notify>,
) -> Result<(), tokio_postgres::Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notification(_) = message? {
            news.notify_one();
        }
    }
    Ok(())
}

impl Connect for Network {
    fn connect<'a>(&'a self) -> Pin<Box<dyn Future<Output = Connected> + Send + 'a>> {
        Box::pin(async move {
            if !self.is_unmarked.load(Ordering::Relaxed) {
                match self.open(&self.marked).await {
                    Err(error) if is_about_parameters(&error) => self.is_unmarked.store(true, Ordering::Relaxed),
                    connected => return connected,
                }
            }
            self.open(&self.config).await
        })
    }

    fn news(&self) -> Option<Arc<Notify>> {
        Some(Arc::clone(&self.news))
    }

    fn session(&self) -> Option<&str> {
        Some(&self.session)
    }
}

impl Database {
    /// A database. Nothing is connected before the first statement.
    pub(crate) fn new(options: &StoreOptions) -> Result<Self, PostgresError> {
        let address = Address::of(options)?;
        let tls = if address.uses_tls { Some(Tls::new(options.certificates.as_deref())?) } else { None };
        Self::with_connector(options, address.place, Box::new(Network::new(address.config, tls)))
    }

    /// A database with its own way to connect.
    pub(crate) fn with_connector(
        options: &StoreOptions,
        place: String,
        connector: Box<dyn Connect>,
    ) -> Result<Self, PostgresError> {
        let schema = quoted_schema(&options.schema)?;
        let (jobs, queue) = mpsc::unbounded_channel::<Job>();
        let started = blocking::sync_channel(1);
        let shown = place.clone();
        let pool_options = PoolOptions { patience: options.patience, is_plain: !options.advisory_locks };
        let thread = std::thread::Builder::new().name("codex-store".to_owned()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = match runtime {
                Ok(runtime) => runtime,
                Err(error) => return drop(started.0.send(Err(error))),
            };
            drop(started.0.send(Ok(())));
            let pool = Rc::new(Pool::new(connector, schema, shown, pool_options));
            LocalSet::new().block_on(&runtime, serve(queue, pool));
        });
        let thread = thread.map_err(PostgresError::Start)?;
        started.1.recv().unwrap_or(Ok(())).map_err(PostgresError::Start)?;
        let (jobs, thread, patience) = (Mutex::new(Some(jobs)), Mutex::new(Some(thread)), options.patience);
        let (uses_locks, notifies) = (options.advisory_locks, options.notifications);
        Ok(Self { shared: Arc::new(Shared { jobs, thread, place, patience, uses_locks, notifies }) })
    }

    /// The address without secrets, for people.
    pub(crate) fn place(&self) -> &str {
        &self.shared.place
    }

    pub(crate) fn uses_locks(&self) -> bool {
        self.shared.uses_locks
    }

    pub(crate) fn notifies(&self) -> bool {
        self.shared.notifies
    }

    /// Runs work on the thread of the connections.
    pub(crate) fn spawn<T, F>(&self, work: impl FnOnce(Rc<Pool>) -> F + Send + 'static) -> oneshot::Receiver<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |pool| {
            Box::pin(async move {
                // Nobody may be left to wait for it.
                drop(reply.send(work(pool).await));
            })
        });
        if let Some(jobs) = &*self.shared.jobs.lock().unwrap_or_else(PoisonError::into_inner) {
            // If the thread has ended, the reply is dropped, which its receiver notices.
            drop(jobs.send(job));
        }
        answer
    }

    /// Runs work on the thread of the connections, and waits for it.
    pub(crate) fn wait<T, F>(&self, work: impl FnOnce(Rc<Pool>) -> F + Send + 'static) -> Result<T, PostgresError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, PostgresError>> + 'static,
    {
        self.begin(work).wait()
    }

    /// Runs work on the thread of the connections, for which the caller waits later.
    pub(crate) fn begin<T, F>(&self, work: impl FnOnce(Rc<Pool>) -> F + Send + 'static) -> Awaited<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, PostgresError>> + 'static,
    {
        let (reply, answer) = blocking::sync_channel(1);
        drop(self.spawn(move |pool| async move { drop(reply.send(work(pool).await)) }));
        Awaited { database: self.clone(), answer }
    }

    /// The error of work that was not finished because the program ends.
    pub(crate) fn ended(&self) -> PostgresError {
        PostgresError::Away { place: self.shared.place.clone(), problem: "the program ends".to_owned() }
    }

    pub(crate) fn patience(&self) -> Duration {
        self.shared.patience
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        drop(self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The last statements give leases back. The thread itself may be the one that drops this.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            drop(thread.join());
        }
    }
}

/// Runs jobs until their sender is gone, and then finishes those that run.
async fn serve(mut queue: mpsc::UnboundedReceiver<Job>, pool: Rc<Pool>) {
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = running.join_next() => {}
            job = queue.recv() => match job {
                Some(job) => drop(running.spawn_local(job(Rc::clone(&pool)))),
                None => break,
            },
        }
    }
    drop(timeout(CLOSING_TIME, async { while running.join_next().await.is_some() {} }).await);
}

/// The settings of a pool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolOptions {
    /// The time limit of a call.
    pub(crate) patience: Duration,
    pub(crate) is_plain: bool,
}

/// The connections of a database, on their own thread.
pub(crate) struct Pool {
    connector: Box<dyn Connect>,
    schema: String,
    pub(crate) place: String,
    patience: Duration,
    idle: RefCell<Vec<Connection>>,
    slots: Semaphore,
    news: Arc<Notify>,
    /// Whether the database may lack functions of PostgreSQL.
    pub(crate) is_plain: bool,
    guard: RefCell<Option<Guard>>,
}

/// The incarnation of the store that this process knows, and what to do when a new connection finds another one.
struct Guard {
    incarnation: Uuid,
    lost: Rc<dyn Fn()>,
}

impl Pool {
    pub(crate) fn new(connector: Box<dyn Connect>, schema: String, place: String, options: PoolOptions) -> Self {
        let slots = Semaphore::new(MOST_CONNECTIONS);
        let news = connector.news().unwrap_or_default();
        let PoolOptions { patience, is_plain } = options;
        let (idle, guard) = (RefCell::default(), RefCell::default());
        Self { connector, schema, place, patience, idle, slots, news, is_plain, guard }
    }

    /// From now on, every new connection is compared with this incarnation before it is used. A database that was restored
    /// from a backup needs new connections, so nothing is written to it as if nothing had happened.
    pub(crate) fn expect_incarnation(&self, incarnation: Uuid, lost: impl Fn() + 'static) {
        self.guard.replace(Some(Guard { incarnation, lost: Rc::new(lost) }));
    }

    async fn compare_incarnation(&self, connection: &Connection) -> Result<(), Failure> {
        let expected = self.guard.borrow().as_ref().map(|guard| (guard.incarnation, Rc::clone(&guard.lost)));
        let Some((expected, lost)) = expected else { return Ok(()) };
        if schema::open(self, connection).await?.incarnation != expected {
            lost();
        }
        Ok(())
    }

    /// Notified when the database has notified this process.
    pub(crate) fn news(&self) -> &Notify {
        &self.news
    }

    /// The schema as it stands in statements.
    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    /// A connection that is not one of the pool, and the future that drives it.
    pub(crate) async fn connect(&self) -> Result<(Connection, task::JoinHandle<()>), Failure> {
        let (client, driver) = self.connector.connect().await?;
        // Everything that waits for an answer is told of the end too.
        let driving = tokio::spawn(async move { drop(driver.await) });
        Ok((Connection::new(client, self.schema.clone(), self.connector.session()).await?, driving))
    }

    /// Runs idempotent work on a connection, again and again until it succeeds or the patience ends.
    pub(crate) async fn run<T>(
        &self,
        work: impl AsyncFn(&Connection) -> Result<T, Failure>,
    ) -> Result<T, PostgresError> {
        let deadline = Instant::now() + self.patience;
        self.run_until(deadline, work).await
    }

    /// The same, until a moment.
    pub(crate) async fn run_until<T>(
        &self,
        deadline: Instant,
        work: impl AsyncFn(&Connection) -> Result<T, Failure>,
    ) -> Result<T, PostgresError> {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.attempt(deadline, &work).await {
                Ok(done) => return Ok(done),
                Err(Failure::Own(error)) => return Err(error),
                Err(Failure::Refused(problem)) => {
                    return Err(PostgresError::Refused { place: self.place.clone(), problem });
                }
                Err(Failure::Broken(problem)) if Instant::now() + pause >= deadline => {
                    return Err(PostgresError::Away { place: self.place.clone(), problem });
                }
                Err(Failure::Broken(_)) => {}
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Runs work once.
    pub(crate) async fn attempt<T>(
        &self,
        deadline: Instant,
        work: impl AsyncFn(&Connection) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let left = deadline.saturating_duration_since(Instant::now()).min(STATEMENT_TIME);
        let tried = timeout(left, async {
            let _slot = self.slots.acquire().await;
            let connection = self.connection().await?;
            let done = work(&connection).await;
            if connection.is_closed() {
                self.forget_idle();
            } else if !matches!(done, Err(Failure::Broken(_))) {
                self.idle.borrow_mut().push(connection);
            }
            done
        });
        // A connection whose answer did not come in time is dropped.
        tried.await.unwrap_or_else(|_| {
            self.forget_idle();
            Err(Failure::Broken("no answer in time".to_owned()))
        })
    }

    /// Drops the connections that nobody uses. If one is dead, the others are as likely to be, and each would cost a wait.
    pub(crate) fn forget_idle(&self) {
        drop(self.idle.take());
    }

    async fn connection(&self) -> Result<Connection, Failure> {
        loop {
            let Some(connection) = self.idle.borrow_mut().pop() else { break };
            if !connection.is_closed() {
                return Ok(connection);
            }
        }
        let (connection, _) = self.connect().await?;
        self.compare_incarnation(&connection).await?;
        Ok(connection)
    }
}
