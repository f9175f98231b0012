//! Assembles everything that a server needs: the configuration, and threads that run in this process.

use std::path::PathBuf;
use std::sync::Arc;

use codex_agents::LocalTrees;
use codex_config::{Config, ConfigSource, Env, Home};
use codex_engine::{CredentialsSource, HostOptions, LocalHost};
use codex_login::{Accounts, LoginStore};
use codex_mcp::McpServers;
use codex_server::app::Start;
use codex_tools::servers::{ServerAccess, ToolServers};
use codex_wire::rollout::SessionSource;

use crate::cluster::Cluster;
use crate::proto::ORIGINATOR;
use crate::{apply_patch, thread_store};

/// The parts of a server with a working directory, a session source, and a replay buffer size; and the servers that
/// share its threads.
pub(crate) fn start(
    config: ConfigSource,
    cwd: PathBuf,
    source: SessionSource,
    recent: usize,
) -> anyhow::Result<(Start, Option<Cluster>)> {
    let originator = originator(config.env(), ORIGINATOR);
    let programs = apply_patch::install(config.home());
    // An unreadable configuration is reported by the first thread.
    let (store, cluster) = thread_store::open_shared(config.home(), config.config().ok().as_deref(), config.env())?;
    let config = Arc::new(config);
    let servers: Arc<dyn ToolServers> = Arc::new(McpServers::new(config.env().clone()));
    let accounts = Accounts::of(store_of(&config), config.env());
    let threads = LocalHost::new(HostOptions {
        agents: Some(Arc::new(LocalTrees)),
        config: Arc::clone(&config),
        cwd: cwd.clone(),
        programs: programs.clone(),
        credentials: of_accounts(accounts.clone()),
        originator: originator.clone(),
        source,
        recent_bytes: recent,
        store: Arc::clone(&store),
        servers: Some(Arc::clone(&servers)),
    });
    let accounts = Arc::new(accounts);
    let start = Start {
        threads: Arc::new(threads),
        accounts,
        store,
        config,
        cwd,
        programs,
        originator,
        servers: Some(servers),
        release: None,
        dialect: None,
        delta_interval: None,
    };
    Ok((start, cluster))
}

/// The name in requests to providers: the given one, unless the environment sets another.
pub(crate) fn originator(env: &Env, default: &str) -> String {
    env.text("CODEX_INTERNAL_ORIGINATOR_OVERRIDE").unwrap_or_else(|| default.to_owned())
}

/// The MCP servers of a program with one thread.
pub(crate) fn servers(env: &Env) -> ServerAccess {
    ServerAccess { servers: Arc::new(McpServers::new(env.clone())), reload: None }
}

/// The credentials of requests: keys, and the login of this process, which all its threads share.
pub(crate) fn credentials(home: &Home, config: &Config, env: &Env) -> CredentialsSource {
    of_accounts(Accounts::of(LoginStore::of(home, &config.login()), env))
}

/// The place of the login. Only a build with a keyring has a choice, so others need not read the configuration yet; an
/// unreadable configuration is reported by the first thread.
fn store_of(config: &ConfigSource) -> LoginStore {
    let login = if cfg!(feature = "keyring") { config.config().ok().map(|config| config.login()) } else { None };
    LoginStore::of(config.home(), &login.unwrap_or_default())
}

fn of_accounts(accounts: Accounts) -> CredentialsSource {
    CredentialsSource::new(move |config, provider| accounts.credentials(config.login(), provider))
}
