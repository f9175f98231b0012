//! The state of a store for the person who operates it: figures, checks, and the declaration of a restore.

use std::fmt;

use codex_wire::ids::ThreadId;
use uuid::Uuid;

use crate::connection::column;
use crate::database::Pool;
use crate::errors::PostgresError;
use crate::schema;
use crate::store::PostgresStore;
use crate::threads;

const FIGURES: &str = "SELECT count(*) FILTER (WHERE NOT deleted) AS threads, \
     count(*) FILTER (WHERE archived AND NOT deleted) AS archived, coalesce(sum(end_at), 0)::bigint AS bytes, \
     count(*) FILTER (WHERE scanned < end_at AND NOT deleted) AS unindexed FROM @.threads";

const SERVERS: &str = "SELECT name, greatest(0, extract(epoch FROM expires - now()))::bigint AS seconds, \
     (SELECT count(*) FROM @.threads WHERE owner = servers.id) AS threads FROM @.servers \
     WHERE expires > now() ORDER BY name";

const PAGE: &str = "SELECT id, deleted FROM @.threads WHERE id > $1 ORDER BY id LIMIT 100";

/// Finds the first line of a thread that does not begin where the one before ends, or has an older epoch than it, and
/// compares the end of the last line with that of the thread.
const CHECK: &str = "SELECT count(*) AS lines, coalesce(max(number), 0) AS last,
    (SELECT end_at FROM @.threads WHERE id = $1) AS end_at,
    (SELECT epoch FROM @.threads WHERE id = $1) AS epoch,
    min(number) FILTER (WHERE number - bytes - 1 <> before) AS gap,
    min(number) FILTER (WHERE epoch < epoch_before) AS late,
    coalesce(max(epoch), 0) AS newest
    FROM (SELECT number, epoch, octet_length(payload) AS bytes,
        coalesce(lag(number) OVER (ORDER BY number), 0) AS before,
        coalesce(lag(epoch) OVER (ORDER BY number), 0) AS epoch_before
        FROM @.lines WHERE thread = $1) AS line";

/// The next threads that have lines, and whether they exist. All at once would take longer than a statement may.
const WITH_LINES: &str = "SELECT thread, EXISTS (SELECT 1 FROM @.threads WHERE threads.id = page.thread) AS exists \
     FROM (SELECT DISTINCT thread FROM @.lines WHERE thread > $1 ORDER BY thread LIMIT 100) AS page ORDER BY thread";

/// The figures of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreStatus {
    /// The address without secrets.
    pub place: String,
    /// The version of the tables.
    pub version: i32,
    pub threads: i64,
    pub archived: i64,
    /// The size of all lines.
    pub bytes: i64,
    /// The number of threads with lines that searches do not find yet.
    pub unindexed: i64,
    pub servers: Vec<ServerStatus>,
}

/// A living server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    pub name: String,
    /// The number of threads that it writes.
    pub threads: i64,
    /// The seconds until its lease expires, unless it renews it.
    pub lease: i64,
}

impl fmt::Display for StoreStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "database   {}, tables of version {}", self.place, self.version)?;
        writeln!(f, "threads    {}, of these {} archived; {} bytes", self.threads, self.archived, self.bytes)?;
        match self.unindexed {
            0 => writeln!(f, "search     up to date")?,
            threads => writeln!(f, "search     {threads} threads to index")?,
        }
        for ServerStatus { name, threads, lease } in &self.servers {
            writeln!(f, "server     {name}: {threads} threads, lease for {lease} s")?;
        }
        Ok(())
    }
}

/// The result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    pub threads: u64,
    pub lines: u64,
    /// The problems, one sentence each.
    pub problems: Vec<String>,
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problems.iter().try_for_each(|problem| writeln!(f, "{problem}"))?;
        writeln!(f, "{} threads, {} lines, {} problems", self.threads, self.lines, self.problems.len())
    }
}

impl PostgresStore {
    /// The figures of the store.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub fn status(&self) -> Result<StoreStatus, PostgresError> {
        self.parts().database.wait(|pool| async move {
            let place = &pool.place;
            let (tables, figures, servers) = pool
                .run(async |connection| {
                    let tables = schema::open(&pool, connection).await?;
                    let figures = connection.query(FIGURES, &[]).await?;
                    Ok((tables, figures, connection.query(SERVERS, &[]).await?))
                })
                .await?;
            let figure = |name: &str| figures.first().map_or(Ok(0), |row| column(row, name, place));
            let server = |row| {
                let (threads, lease) = (column(row, "threads", place)?, column(row, "seconds", place)?);
                Ok(ServerStatus { name: column(row, "name", place)?, threads, lease })
            };
            Ok(StoreStatus {
                place: place.clone(),
                version: tables.version,
                threads: figure("threads")?,
                archived: figure("archived")?,
                bytes: figure("bytes")?,
                unindexed: figure("unindexed")?,
                servers: servers.iter().map(server).collect::<Result<_, PostgresError>>()?,
            })
        })
    }

    /// Checks that the lines of every thread follow each other without gaps and with growing epochs, and removes what is
    /// left of deleted threads.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub fn check(&self) -> Result<Checked, PostgresError> {
        self.parts().database.wait(|pool| async move {
            let (mut checked, mut after) = (Checked::default(), Uuid::nil());
            loop {
                let page = pool.run(async |connection| connection.query(PAGE, &[&after]).await).await?;
                if page.is_empty() {
                    break;
                }
                for row in &page {
                    after = column(row, "id", &pool.place)?;
                    if column(row, "deleted", &pool.place)? {
                        threads::remove_rows(&pool, after.into()).await?;
                        continue;
                    }
                    let found = pool.run(async |connection| connection.row(CHECK, &[&after]).await).await?;
                    if let Some(row) = found {
                        let number = |name: &str| column::<Option<i64>>(&row, name, &pool.place);
                        let figures = Figures {
                            last: number("last")?,
                            end: number("end_at")?,
                            gap: number("gap")?,
                            late: number("late")?,
                            newest: number("newest")?,
                            epoch: number("epoch")?,
                        };
                        checked.threads += 1;
                        checked.lines += u64::try_from(number("lines")?.unwrap_or_default()).unwrap_or_default();
                        checked.problems.extend(figures.problem(after.into()));
                    }
                }
            }
            let orphans = orphans(&pool).await?;
            if orphans > 0 {
                checked.problems.push(format!("there are lines of {orphans} threads that do not exist"));
            }
            Ok(checked)
        })
    }

    /// Declares that the database was restored from a backup: every server that knew it before has to open its threads
    /// again.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub fn declare_restored(&self) -> Result<(), PostgresError> {
        self.parts().database.wait(|pool| async move {
            pool.run(async |connection| {
                let tables = schema::open(&pool, connection).await?;
                schema::declare_restored(connection, &tables).await
            })
            .await
        })
    }
}

/// The number of threads that have lines and do not exist.
async fn orphans(pool: &Pool) -> Result<usize, PostgresError> {
    let (mut orphans, mut after) = (0, Uuid::nil());
    loop {
        let page = pool.run(async |connection| connection.query(WITH_LINES, &[&after]).await).await?;
        let Some(last) = page.last() else { return Ok(orphans) };
        after = column(last, "thread", &pool.place)?;
        for row in &page {
            let exists: bool = column(row, "exists", &pool.place)?;
            orphans += usize::from(!exists);
        }
    }
}

/// The figures of a thread.
struct Figures {
    last: Option<i64>,
    end: Option<i64>,
    gap: Option<i64>,
    late: Option<i64>,
    newest: Option<i64>,
    epoch: Option<i64>,
}

impl Figures {
    fn problem(&self, thread: ThreadId) -> Option<String> {
        if let Some(number) = self.gap {
            return Some(format!("thread {thread}: a line before number {number} is missing or was changed"));
        }
        if let Some(number) = self.late {
            return Some(format!("thread {thread}: line {number} was written by a server that had lost the thread"));
        }
        if self.last != self.end {
            let (last, end) = (self.last.unwrap_or_default(), self.end.unwrap_or_default());
            return Some(format!("thread {thread}: its lines end at {last} instead of {end}"));
        }
        (self.newest > self.epoch).then(|| format!("thread {thread}: its lines are newer than the thread"))
    }
}
