//! The servers that share a database: this one among them, and who has a thread open.

use std::rc::Rc;
use std::sync::Arc;

use codex_wire::ids::ThreadId;
use tokio::sync::{broadcast, watch};
use uuid::Uuid;

use crate::changes::StoreChange;
use crate::connection::column;
use crate::errors::PostgresError;
use crate::lease::LivingServer;
use crate::store::PostgresStore;

/// The living server that has a thread open.
const OWNER: &str = "SELECT servers.id, servers.name, servers.address FROM @.threads JOIN @.servers \
     ON servers.id = threads.owner AND servers.expires > now() WHERE threads.id = $1 AND NOT threads.deleted";

const NAMESAKES: &str = "SELECT count(*) AS servers FROM @.servers WHERE name = $1 AND id <> $2 AND expires > now()";

/// Whether the name of a server is its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameUse {
    Unique,
    /// Another living server has the same name, or one that was killed has not expired yet.
    Shared,
}

impl PostgresStore {
    /// Enters this server into the list of servers, with the address at which the others reach it, and keeps it there.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub fn register(&self, address: Option<String>) -> Result<NameUse, PostgresError> {
        let (lease, name) = (self.parts().lease.clone(), self.server_name().to_owned());
        let (changes, is_notified) = (self.changes().clone(), self.parts().database.notifies());
        self.parts().database.wait(move |pool| async move {
            lease.hold(&pool, address).await?;
            tokio::task::spawn_local(changes.watch(Rc::clone(&pool), lease.clone(), is_notified));
            let id = lease.owner().unwrap_or_default();
            let row = pool.run(async |connection| connection.row(NAMESAKES, &[&name, &id]).await).await?;
            let servers: i64 = row.map_or(Ok(0), |row| column(&row, "servers", &pool.place))?;
            Ok(if servers == 0 { NameUse::Unique } else { NameUse::Shared })
        })
    }

    /// The name of this server, for people.
    #[must_use]
    pub fn server_name(&self) -> &str {
        self.parts().lease.server_name()
    }

    /// The id of this server: that of its lease.
    #[must_use]
    pub fn server_id(&self) -> Option<Uuid> {
        self.parts().lease.owner()
    }

    /// The living servers, each time they are known anew. A server that is registered learns them every 5 s.
    #[must_use]
    pub fn servers(&self) -> watch::Receiver<Arc<[LivingServer]>> {
        self.parts().lease.servers()
    }

    /// Whether the database answers, as far as a registered server knows.
    #[must_use]
    pub fn answers(&self) -> watch::Receiver<bool> {
        self.parts().lease.answers()
    }

    /// The changes by other servers, as far as a registered server finds them.
    #[must_use]
    pub fn changes_elsewhere(&self) -> broadcast::Receiver<StoreChange> {
        self.changes().subscribe()
    }

    /// The living server other than this one that has a thread open.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub async fn owner_elsewhere(&self, thread: ThreadId) -> Result<Option<LivingServer>, PostgresError> {
        let (lease, database) = (self.parts().lease.clone(), self.parts().database.clone());
        let found = database.spawn(move |pool| async move {
            let id = Uuid::from(thread);
            let row = pool.run(async |connection| connection.row(OWNER, &[&id]).await).await?;
            let Some(row) = row else { return Ok(None) };
            let (id, name) = (column(&row, "id", &pool.place)?, column(&row, "name", &pool.place)?);
            let server = LivingServer { id, name, address: column(&row, "address", &pool.place)? };
            Ok(Some(server).filter(|server| Some(server.id) != lease.owner()))
        });
        found.await.unwrap_or_else(|_| Err(self.parts().database.ended()))
    }

    /// Gives the lease back for good, and with it all threads: other servers can open them at once. Returns the servers
    /// that are left.
    pub async fn leave(&self) -> Arc<[LivingServer]> {
        match self.parts().lease.release(&self.parts().database) {
            Some(released) => released.await.unwrap_or_default(),
            None => Arc::default(),
        }
    }
}
