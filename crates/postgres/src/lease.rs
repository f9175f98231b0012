//! The lease of this process: one row that it renews, and that makes it the owner of its threads.
//!
//! Invariants: all times are those of the database's clock, except the age of the last renewal, which is measured from
//! before it was sent. A process that has not renewed its lease for [`HALT`] revokes its writers, [`LEASE`] minus that
//! before anybody may take its threads over. An expired lease is never renewed; the process asks for another one.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codex_wire::ids::ThreadId;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::connection::column;
use crate::database::{Database, Pool};
use crate::errors::{Failure, PostgresError};
use crate::schema;

/// The time between two renewals.
pub(crate) const RENEWAL: Duration = Duration::from_secs(5);

/// The time without a renewal after which the writers of this process are revoked.
pub(crate) const HALT: Duration = Duration::from_secs(10);

/// The time without a renewal after which the commands of threads are ended from outside, if this process has not done
/// so itself: when it is halted.
pub(crate) const COMMANDS: Duration = Duration::from_secs(12);

/// The time after which others may take over, for the statements below.
const LEASE: &str = "15 seconds";

/// The time after which a renewal without an answer means that the database is away.
const ANSWER: Duration = Duration::from_secs(2);

/// The time limit for giving a lease back. After that, it expires.
const RELEASE_TIME: Duration = Duration::from_secs(5);

/// The pause before another attempt to get a lease.
const PAUSE: Duration = Duration::from_secs(1);

/// Nobody has heard of this id before it has succeeded, so a row of an earlier attempt may be as old as it likes.
const REGISTER: &str = "INSERT INTO @.servers (id, name, incarnation, expires, address) \
     VALUES ($1, $2, $3, now() + $4::text::interval, $5) ON CONFLICT (id) DO UPDATE SET expires = excluded.expires";

/// Renews a lease and lists the living servers. Without a lease there are no rows. Each row also has a digest of the
/// recent changes by others, so that nobody has to look for changes while there are none.
const RENEW: &str = "WITH renewed AS (UPDATE @.servers SET expires = now() + $2::text::interval \
     WHERE id = $1 AND expires > now() AND incarnation = (SELECT incarnation FROM @.store) RETURNING id) \
     SELECT id, name, address, (SELECT md5(string_agg(changes.id::text, ',' ORDER BY changes.id)) FROM @.changes \
     WHERE at > now() - interval '10 minutes' AND server IS DISTINCT FROM $1) AS changes \
     FROM @.servers WHERE expires > now() AND EXISTS (SELECT 1 FROM renewed) ORDER BY id";

const RELEASE: &str = "WITH gone AS (DELETE FROM @.servers WHERE id = $1) \
     UPDATE @.threads SET owner = NULL WHERE owner = $1";

const LIVING: &str = "SELECT id, name, address FROM @.servers WHERE expires > now() AND id <> $1 ORDER BY id";

/// Rows of servers that have been dead for long. Nothing refers to them by more than an id.
const FORGET: &str = "DELETE FROM @.servers WHERE expires < now() - interval '1 day'";

/// Tells the writer of one thread that it may no longer write.
#[derive(Debug)]
pub(crate) struct Revocation {
    reason: watch::Sender<Option<String>>,
}

impl Default for Revocation {
    fn default() -> Self {
        Self { reason: watch::Sender::new(None) }
    }
}

impl Revocation {
    pub(crate) fn revoke(&self, reason: &str) {
        self.reason.send_if_modified(|told| {
            let is_first = told.is_none();
            told.get_or_insert_with(|| reason.to_owned());
            is_first
        });
    }

    pub(crate) fn reason(&self) -> Option<String> {
        self.reason.borrow().clone()
    }

    /// Waits for the revocation, and returns its reason.
    pub(crate) async fn revoked(&self) -> String {
        let mut told = self.reason.subscribe();
        // The sender is in `self`, so this cannot fail.
        drop(told.wait_for(Option::is_some).await);
        self.reason().unwrap_or_default()
    }
}

/// The lease of a process, and the threads that it writes.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    shared: Arc<Shared>,
}

/// A living server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LivingServer {
    /// The id of its lease.
    pub id: Uuid,
    /// Its name, for people.
    pub name: String,
    /// The address at which other servers reach it.
    pub address: Option<String>,
}

#[derive(Debug)]
struct Shared {
    server_name: String,
    command_deadline: fn(Option<Duration>),
    state: Mutex<State>,
    /// The living servers as of the last renewal.
    servers: watch::Sender<Arc<[LivingServer]>>,
    /// A digest of the recent changes by others, as of the last renewal.
    changes: watch::Sender<Option<String>>,
    /// Whether the database answered when it was last asked for a lease.
    answers: watch::Sender<bool>,
    /// Notified when a lease is lost or given back.
    lost: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The id of the current lease.
    owner: Option<Uuid>,
    writers: HashMap<ThreadId, Arc<Revocation>>,
    /// The writers of lost leases, until their threads have ended.
    revoked: Vec<Arc<Revocation>>,
    /// The moment from which the current lease counts.
    renewed: Option<Instant>,
    /// The address at which other servers reach this one.
    address: Option<String>,
    /// Whether the lease was given back for good.
    is_over: bool,
}

impl Lease {
    pub(crate) fn new(server_name: String, command_deadline: fn(Option<Duration>)) -> Self {
        let (servers, answers) = (watch::Sender::new(Arc::from([])), watch::Sender::new(true));
        let (state, changes, lost) = (Mutex::default(), watch::Sender::default(), Notify::new());
        let shared = Shared { server_name, command_deadline, state, servers, changes, answers, lost };
        Self { shared: Arc::new(shared) }
    }

    /// The name of this server, for people.
    pub(crate) fn server_name(&self) -> &str {
        &self.shared.server_name
    }

    /// The living servers, each time they are known anew.
    pub(crate) fn servers(&self) -> watch::Receiver<Arc<[LivingServer]>> {
        self.shared.servers.subscribe()
    }

    /// A digest of the recent changes by others, each time it differs.
    pub(crate) fn changes(&self) -> watch::Receiver<Option<String>> {
        self.shared.changes.subscribe()
    }

    /// Whether the database answers.
    pub(crate) fn answers(&self) -> watch::Receiver<bool> {
        self.shared.answers.subscribe()
    }

    /// Has a lease from here on: when one is lost, another one is acquired as soon as the database answers.
    pub(crate) async fn hold(&self, pool: &Rc<Pool>, address: Option<String>) -> Result<(), PostgresError> {
        self.state().address = address;
        self.acquire(pool).await?;
        let (lease, pool) = (self.clone(), Rc::clone(pool));
        tokio::task::spawn_local(async move {
            while !lease.state().is_over {
                match lease.acquire(&pool).await {
                    Ok(_) => lease.shared.lost.notified().await,
                    Err(_) => sleep(PAUSE).await,
                }
            }
        });
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of the current lease, if there is one.
    pub(crate) fn owner(&self) -> Option<Uuid> {
        self.state().owner
    }

    /// Whether this process writes a thread.
    pub(crate) fn writes(&self, thread: ThreadId) -> bool {
        self.state().writers.contains_key(&thread)
    }

    /// Records a writer of this process. Returns `None` if there is one already, or the lease is not this one any more.
    pub(crate) fn enter(&self, thread: ThreadId, owner: Uuid) -> Option<Arc<Revocation>> {
        let mut state = self.state();
        if state.owner != Some(owner) || state.writers.contains_key(&thread) {
            return None;
        }
        let revocation = Arc::new(Revocation::default());
        state.writers.insert(thread, Arc::clone(&revocation));
        self.tell_deadline(&state);
        Some(revocation)
    }

    /// Removes a writer.
    pub(crate) fn leave(&self, thread: ThreadId, revocation: &Arc<Revocation>) {
        let mut state = self.state();
        if state.writers.get(&thread).is_some_and(|known| Arc::ptr_eq(known, revocation)) {
            state.writers.remove(&thread);
        }
        state.revoked.retain(|known| !Arc::ptr_eq(known, revocation));
        self.tell_deadline(&state);
    }

    /// Tells how long the commands of threads may run without another renewal.
    fn tell_deadline(&self, state: &State) {
        let has_threads = !state.writers.is_empty() || !state.revoked.is_empty();
        let until = state.renewed.filter(|_| has_threads).map(|renewed| renewed + COMMANDS);
        (self.shared.command_deadline)(until.map(|until| until.saturating_duration_since(Instant::now())));
    }

    /// Records that a lease counts from this moment on.
    fn renewed(&self, owner: Uuid, sent: Instant) {
        let mut state = self.state();
        if state.owner == Some(owner) {
            state.renewed = Some(sent);
            self.tell_deadline(&state);
        }
    }

    /// Ends the lease: every writer of this process is revoked.
    fn lose(&self, owner: Uuid, reason: &str) {
        let mut state = self.state();
        if state.owner == Some(owner) {
            state.owner = None;
            for (_, revocation) in std::mem::take(&mut state.writers) {
                revocation.revoke(reason);
                state.revoked.push(revocation);
            }
            self.shared.lost.notify_one();
        }
    }

    /// The id of the current lease, which is acquired if there is none.
    pub(crate) async fn acquire(&self, pool: &Rc<Pool>) -> Result<Uuid, PostgresError> {
        if let Some(owner) = self.owner() {
            return Ok(owner);
        }
        let address = self.state().address.clone();
        let (owner, sent) = (codex_wire::ids::fresh_uuid(), Cell::new(Instant::now()));
        let registered = pool.run(async |connection| {
            // The lease counts from the attempt that has succeeded: the database may have been away for long.
            sent.set(Instant::now());
            let tables = schema::open(pool, connection).await?;
            let name = &self.shared.server_name;
            connection.execute(FORGET, &[]).await?;
            connection.execute(REGISTER, &[&owner, name, &tables.incarnation, &LEASE, &address]).await?;
            Ok(tables.incarnation)
        });
        let registered = registered.await;
        self.shared.answers.send_replace(registered.is_ok());
        let (incarnation, sent) = (registered?, sent.get());
        if let Err(instead) = self.begin(owner, sent) {
            // The row was made for nothing. Others would take it for one more server.
            tokio::task::spawn_local(remove(Rc::clone(pool), owner));
            let over = PostgresError::Away { place: pool.place.clone(), problem: ENDS.to_owned() };
            return instead.ok_or(over);
        }
        let lease = self.clone();
        pool.expect_incarnation(incarnation, move || lease.lose(owner, RESTORED));
        tokio::task::spawn_local(keep(self.clone(), Rc::clone(pool), owner, sent));
        Ok(owner)
    }

    /// Begins a lease that counts from this moment on, unless another call was faster, or the lease was given back for good.
    /// The error is the lease that there is instead.
    fn begin(&self, owner: Uuid, sent: Instant) -> Result<(), Option<Uuid>> {
        let mut state = self.state();
        if state.owner.is_some() || state.is_over {
            return Err(state.owner);
        }
        (state.owner, state.renewed) = (Some(owner), Some(sent));
        Ok(())
    }

    /// Gives the lease back for good, so that others need not wait until it expires. The result resolves when that is
    /// done, or has taken too long, and lists the servers that are left.
    pub(crate) fn release(&self, database: &Database) -> Option<oneshot::Receiver<Arc<[LivingServer]>>> {
        self.state().is_over = true;
        let owner = self.owner()?;
        self.lose(owner, ENDS);
        let known: Arc<[LivingServer]> =
            self.shared.servers.borrow().iter().filter(|server| server.id != owner).cloned().collect();
        Some(database.spawn(move |pool| async move {
            let deadline = Instant::now() + RELEASE_TIME;
            let released = pool.run_until(deadline, async |connection| {
                connection.execute(RELEASE, &[&owner]).await?;
                Ok(living(&connection.query(LIVING, &[&owner]).await?, &pool.place)?)
            });
            released.await.unwrap_or(known)
        }))
    }
}

/// The reason why this process loses its lease when it meets another incarnation of the store.
const RESTORED: &str = "the database was restored from a backup; open the thread again to continue from what it has";

/// The reason why this process gives its lease back.
const ENDS: &str = "the program ends";

/// The servers in rows.
fn living(rows: &[Row], place: &str) -> Result<Arc<[LivingServer]>, PostgresError> {
    let server = |row| {
        let (id, name) = (column(row, "id", place)?, column(row, "name", place)?);
        Ok(LivingServer { id, name, address: column(row, "address", place)? })
    };
    rows.iter().map(server).collect()
}

/// Removes the row of a lease.
async fn remove(pool: Rc<Pool>, owner: Uuid) {
    let deadline = Instant::now() + RELEASE_TIME;
    // Otherwise it expires.
    drop(pool.run_until(deadline, async |connection| connection.execute(RELEASE, &[&owner]).await).await);
}

/// A renewal: the moment from which the lease counts, the living servers, and a digest of the changes by others.
type Renewal = (Instant, Arc<[LivingServer]>, Option<String>);

async fn renew(pool: &Pool, owner: Uuid, deadline: Instant) -> Result<Renewal, PostgresError> {
    let renewal = pool.run_until(deadline, async |connection| {
        let sent = Instant::now();
        let rows = connection.query(RENEW, &[&owner, &LEASE]).await?;
        if rows.is_empty() {
            return Err(Failure::Own(PostgresError::LeaseLost { place: pool.place.clone() }));
        }
        let changes: Option<String> = rows.first().map_or(Ok(None), |row| column(row, "changes", &pool.place))?;
        Ok((sent, living(&rows, &pool.place)?, changes))
    });
    renewal.await
}

/// Renews a lease until it is lost or given back.
async fn keep(lease: Lease, pool: Rc<Pool>, owner: Uuid, acquired: Instant) {
    let mut renewed = acquired;
    let lost = format!("this server could not renew its lease in {} for 10 s", pool.place);
    loop {
        sleep_until(renewed + RENEWAL).await;
        if lease.owner() != Some(owner) {
            return;
        }
        let sent = Instant::now();
        let mut renewal = std::pin::pin!(renew(&pool, owner, renewed + HALT));
        let answer = if let Ok(answer) = timeout(ANSWER, &mut renewal).await {
            answer
        } else {
            lease.shared.answers.send_replace(false);
            // Its connection may be dead without anybody having noticed. All turns would end for that.
            pool.forget_idle();
            tokio::select! {
                answer = renewal => answer,
                answer = renew(&pool, owner, renewed + HALT) => answer,
            }
        };
        lease.shared.answers.send_replace(answer.is_ok());
        match answer {
            Ok((sent, servers, changes)) => {
                renewed = sent;
                lease.renewed(owner, sent);
                lease.shared.servers.send_replace(servers);
                lease.shared.changes.send_if_modified(|known| {
                    let is_other = *known != changes;
                    *known = changes;
                    is_other
                });
            }
            Err(PostgresError::Refused { problem, .. }) if sent < renewed + HALT => {
                tracing::warn!(%problem, "the lease of this server could not be renewed");
                sleep_until(renewed + HALT).await;
                return lease.lose(owner, &lost);
            }
            Err(_) => return lease.lose(owner, &lost),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use tokio::task::LocalSet;

    use super::*;
    use crate::database::{Connect, Connected, PoolOptions};

    /// A database that never answers.
    struct Away;

    impl Connect for Away {
        fn connect<'a>(&'a self) -> Pin<Box<dyn Future<Output = Connected> + Send + 'a>> {
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_cannot_be_renewed_ends_before_others_may_take_over() {
        let options = PoolOptions { patience: HALT, is_plain: false };
        let pool = Rc::new(Pool::new(Box::new(Away), "codex".to_owned(), "there".to_owned(), options));
        let (lease, owner, thread) =
            (Lease::new("server".to_owned(), |_| {}), codex_wire::ids::fresh_uuid(), ThreadId::fresh());
        lease.state().owner = Some(owner);
        let revocation = lease.enter(thread, owner).unwrap();
        assert!(lease.enter(thread, owner).is_none(), "a thread has one writer");
        let begun = Instant::now();
        let tasks = LocalSet::new();
        let revoked = tasks.run_until(async {
            tokio::task::spawn_local(keep(lease.clone(), pool, owner, begun));
            revocation.revoked().await
        });
        assert_eq!(revoked.await, "this server could not renew its lease in there for 10 s");
        assert!(begun.elapsed() <= HALT + Duration::from_millis(10), "{:?}", begun.elapsed());
        assert!(begun.elapsed() + Duration::from_secs(2) > HALT, "{:?}", begun.elapsed());
        assert!(lease.owner().is_none() && !lease.writes(thread));
    }
}
