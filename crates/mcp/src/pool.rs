//! All servers of this process, shared by its threads.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use codex_config::{AccountError, BegunLogin, Env, Home, McpLoginConfig, McpServer};
use codex_login::{ServerLogin, ServerLogins};
use codex_tools::servers::{ServerLoginRequest, ServerScope, ThreadServers, ToolServers};
use futures_util::future::BoxFuture;

use crate::logins::{self, WaitingLogins};
use crate::server::{Lease, Recipe, Server};
use crate::thread_servers::ServerSet;

/// The MCP servers of this process.
pub struct McpServers {
    pool: Arc<Pool>,
    /// The servers of each thread, to reload them.
    sets: Mutex<Vec<Weak<ServerSet>>>,
    waiting: Arc<WaitingLogins>,
}

/// The running servers, by the digest of their configuration.
pub(crate) struct Pool {
    env: Env,
    logins: ServerLogins,
    servers: Mutex<HashMap<String, Arc<Server>>>,
}

impl McpServers {
    /// Creates an empty pool; `env` has the variables that are passed on.
    #[must_use]
    pub fn new(env: Env) -> Self {
        let logins = ServerLogins::new(&env);
        let pool = Arc::new(Pool { env, logins, servers: Mutex::default() });
        Self { pool, sets: Mutex::default(), waiting: Arc::default() }
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

    fn restart(&self, name: &str) -> bool {
        let servers = self.pool.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let named: Vec<_> = servers.values().filter(|server| server.is_named(name)).collect();
        for server in &named {
            server.restart();
        }
        !named.is_empty()
    }

    fn log_in(
        &self,
        scope: ServerScope,
        request: ServerLoginRequest,
    ) -> BoxFuture<'static, Result<BegunLogin, AccountError>> {
        let (pool, waiting) = (Arc::clone(&self.pool), Arc::clone(&self.waiting));
        Box::pin(async move {
            let name = request.name.clone();
            let refused = |message| AccountError { message, is_internal: false };
            let servers = scope.config.mcp_servers(scope.home.user_dir());
            let server = servers.iter().find(|server| server.name == name);
            let server = server.ok_or_else(|| refused(format!("No MCP server named '{name}' found.")))?;
            let login = pool.login(&scope.home, scope.config.mcp_login(), server);
            let login = login
                .ok_or_else(|| refused("OAuth login is only supported for streamable HTTP servers.".to_owned()))?;
            logins::begin(waiting, login, request, move || pool.logged_in(&name)).await
        })
    }
}

impl Pool {
    /// The server of a configuration, started if it is not running.
    pub(crate) fn lease(
        self: &Arc<Self>,
        config: &McpServer,
        cwd: &Path,
        home: &Home,
        login: Option<ServerLogin>,
    ) -> Lease {
        let recipe = Recipe { config: config.clone(), cwd: cwd.to_owned(), env: self.env.clone(), login };
        let key = recipe.digest();
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = servers.get(&key) {
            return server.lease();
        }
        let server = Arc::new(Server::new(recipe, home.path()));
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

    /// The login to a server, if a person can log in there.
    pub(crate) fn login(&self, home: &Home, settings: McpLoginConfig, config: &McpServer) -> Option<ServerLogin> {
        self.logins.to(home, settings, config)
    }

    fn logged_in(&self, name: &str) {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.values().for_each(|server| server.logged_in(name));
    }

    /// Removes a server, unless a thread has begun to use it meanwhile; returns whether it was removed.
    fn forget(&self, key: &str, server: &Server) -> bool {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        // Threads begin to use a server under the same lock.
        server.is_unused() && servers.remove(key).is_some()
    }
}
