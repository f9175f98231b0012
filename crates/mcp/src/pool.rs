//! All servers of this process, shared by its threads.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use codex_config::{Env, Home, McpServer};
use codex_tools::servers::{ServerScope, ThreadServers, ToolServers};

use crate::server::{Lease, Recipe, Server};
use crate::thread_servers::ServerSet;

/// The MCP servers of this process.
pub struct McpServers {
    pool: Arc<Pool>,
    /// The servers of each thread, to reload them.
    sets: Mutex<Vec<Weak<ServerSet>>>,
}

/// The servers that run, by the digest of everything that makes them.
pub(crate) struct Pool {
    env: Env,
    servers: Mutex<HashMap<String, Arc<Server>>>,
}

impl McpServers {
    /// No servers yet; `env` has the variables that are passed on.
    #[must_use]
    pub fn new(env: Env) -> Self {
        Self { pool: Arc::new(Pool { env, servers: Mutex::default() }), sets: Mutex::default() }
    }
}

impl fmt::Debug for McpServers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let running = self.pool.servers.lock().unwrap_or_else(PoisonError::into_inner).len();
        formatter.debug_struct("McpServers").field("running", &running).finish_non_exhaustive()
    }
}

impl ToolServers for McpServers {
    fn open(&self, scope: ServerScope) -> Arc<dyn ThreadServers> {
        let set = ServerSet::open(Arc::clone(&self.pool), scope);
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        if sets.len() == sets.capacity() {
            sets.retain(|set| set.strong_count() > 0);
        }
        sets.push(Arc::downgrade(&set));
        set
    }

    fn reload(&self) -> Result<(), String> {
        let sets: Vec<_> = {
            let sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
            sets.iter().filter_map(Weak::upgrade).collect()
        };
        sets.iter().try_for_each(|set| set.reload())
    }
}

impl Pool {
    /// The server of a configuration, started if it does not run.
    pub(crate) fn lease(self: &Arc<Self>, config: &McpServer, cwd: &Path, home: &Home) -> Lease {
        let recipe = Recipe { config: config.clone(), cwd: cwd.to_owned(), env: self.env.clone() };
        let key = recipe.digest();
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = servers.get(&key) {
            return server.lease();
        }
        let server = Arc::new(Server::new(recipe, &home.path().join("cache/mcp")));
        // The lease comes first: a server without threads would not stay.
        let lease = server.lease();
        servers.insert(key.clone(), Arc::clone(&server));
        let pool = Arc::downgrade(self);
        tokio::spawn(async move {
            let mut running = std::pin::pin!(server.keep_running());
            loop {
                tokio::select! {
                    () = server.unused() => {
                        if pool.upgrade().is_none_or(|pool| pool.forget(&key, &server)) {
                            return;
                        }
                    }
                    () = &mut running => return,
                }
            }
        });
        lease
    }

    /// Forgets a server, unless a thread has begun to use it meanwhile; says whether it is forgotten.
    fn forget(&self, key: &str, server: &Server) -> bool {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        // Threads begin to use a server under the same lock.
        server.is_unused() && servers.remove(key).is_some()
    }
}
