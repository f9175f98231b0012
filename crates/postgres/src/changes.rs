//! Changes that clients of all servers are told of: names, the archive, and deletions.
//!
//! A change is recorded in the statement that makes it. A server learns with each renewal of its lease whether there are
//! others, and looks at them then, or at once when the database notifies it. Invariant: no statement that appends to a thread notifies anybody, because transactions
//! that do so commit one after the other; a missed notification only delays the look.

use std::collections::HashSet;
use std::rc::Rc;
use std::time::Duration;

use codex_wire::ids::ThreadId;
use tokio::sync::broadcast;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::connection::column;
use crate::database::{Database, Pool};
use crate::errors::{Failure, PostgresError};
use crate::lease::Lease;

/// The time after which a server looks for changes, and forgets old ones, in any case.
const LOOK: Duration = Duration::from_secs(3600);

/// The pause before another attempt to listen.
const PAUSE: Duration = Duration::from_secs(5);

/// The time limit for the database to let this process listen.
const ANSWER: Duration = Duration::from_secs(20);

/// The number of changes that wait for those who want to know of them; the oldest are dropped.
const WAITING: usize = 1024;

/// The window of a look is longer than the time between two, because a change becomes visible only when its transaction
/// has ended.
const RECENT: &str = "SELECT id, thread, kind, name FROM @.changes WHERE at > now() - interval '10 minutes' \
     AND server IS DISTINCT FROM $1 ORDER BY at, id";

const FORGET: &str = "DELETE FROM @.changes WHERE at < now() - interval '1 hour'";

const NOTIFY: &str = "SELECT pg_notify($1, '')";

/// Records a change in the statement that makes it. The statement returns the thread as `id` if it has changed it, `$3`
/// is the id of the change, and `$4` the lease of this server.
macro_rules! recording {
    ($kind:expr, $name:expr, $change:expr) => {
        concat!(
            "WITH changed AS (",
            $change,
            " RETURNING id) INSERT INTO @.changes (id, thread, kind, name, server) SELECT $3, id, ",
            $kind,
            ", ",
            $name,
            ", $4 FROM changed ON CONFLICT (id) DO UPDATE SET at = now()"
        )
    };
}
pub(crate) use recording;

/// A change of a thread by another server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreChange {
    pub thread: ThreadId,
    pub kind: ChangeKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeKind {
    /// It has a new name, or none any more.
    Named(Option<String>),
    Archived,
    Unarchived,
    Deleted,
}

/// The changes by other servers, for those who want to know of them.
#[derive(Debug, Clone)]
pub(crate) struct Changes {
    told: broadcast::Sender<StoreChange>,
}

impl Default for Changes {
    fn default() -> Self {
        Self { told: broadcast::Sender::new(WAITING) }
    }
}

impl Changes {
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<StoreChange> {
        self.told.subscribe()
    }

    /// Looks for changes until the program ends.
    pub(crate) async fn watch(self, pool: Rc<Pool>, lease: Lease, is_notified: bool) {
        if is_notified {
            tokio::task::spawn_local(listen(Rc::clone(&pool)));
        }
        let (mut seen, mut digest): (Option<HashSet<Uuid>>, _) = (None, lease.changes());
        let mut forgotten: Option<Instant> = None;
        loop {
            let own = lease.owner();
            let rows = pool.run(async |connection| connection.query(RECENT, &[&own]).await).await;
            if let Ok(rows) = rows {
                let all: HashSet<Uuid> = rows.iter().filter_map(|row| row.try_get("id").ok()).collect();
                // Changes from before the first look are in every list already.
                if let Some(seen) = &seen {
                    let is_new = |row: &&Row| row.try_get("id").is_ok_and(|id: Uuid| !seen.contains(&id));
                    for change in rows.iter().filter(is_new).filter_map(|row| change(row, &pool.place).ok().flatten()) {
                        // Nobody may want to know.
                        drop(self.told.send(change));
                    }
                }
                seen = Some(all);
            }
            if forgotten.is_none_or(|forgotten| forgotten.elapsed() >= LOOK) {
                // An old row is no problem.
                drop(pool.run(async |connection| connection.execute(FORGET, &[]).await).await);
                forgotten = Some(Instant::now());
            }
            let something_new = async {
                tokio::select! {
                    () = pool.news().notified() => {}
                    _ = digest.changed() => {}
                }
            };
            drop(timeout(LOOK, something_new).await);
        }
    }
}

fn change(row: &Row, place: &str) -> Result<Option<StoreChange>, PostgresError> {
    let (thread, kind): (Uuid, String) = (column(row, "thread", place)?, column(row, "kind", place)?);
    let kind = match kind.as_str() {
        "name" => ChangeKind::Named(column(row, "name", place)?),
        "archived" => ChangeKind::Archived,
        "unarchived" => ChangeKind::Unarchived,
        "deleted" => ChangeKind::Deleted,
        // A newer release has recorded it.
        _ => return Ok(None),
    };
    Ok(Some(StoreChange { thread: thread.into(), kind }))
}

/// Keeps a connection on which the database notifies this process. Behind a pooler there is none: the session that would
/// listen belongs to somebody else a moment later.
async fn listen(pool: Rc<Pool>) {
    loop {
        let listening = timeout(ANSWER, async {
            let (connection, driving) = pool.connect().await?;
            if connection.has_own_session() {
                connection.batch(&format!("LISTEN {}", pool.schema())).await?;
            }
            Ok::<_, Failure>((connection, driving))
        });
        if let Ok(Ok((connection, driving))) = listening.await {
            if !connection.has_own_session() {
                return;
            }
            // Something may have changed while nobody listened.
            pool.news().notify_one();
            drop(driving.await);
        }
        sleep(PAUSE).await;
    }
}

/// Notifies the other servers that something has changed, without waiting for it.
pub(crate) fn notify(database: &Database) {
    if !database.notifies() {
        return;
    }
    drop(database.spawn(|pool| async move {
        let channel = pool.schema().trim_matches('"').to_owned();
        let deadline = Instant::now() + PAUSE;
        drop(pool.run_until(deadline, async |connection| connection.query(NOTIFY, &[&channel]).await).await);
    }));
}
