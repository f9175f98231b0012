//! Opens the store of threads that the user has configured: the files of the home, or a database.

use std::sync::Arc;

use codex_config::{Config, Env, Home};
use codex_log::store::ThreadStore;
use codex_store::FileStore;

use crate::args::Shared;
use crate::cluster::Cluster;

/// The store of a configuration; that of the files if the configuration could not be read.
pub(crate) fn open(home: &Home, config: Option<&Config>, env: &Env) -> anyhow::Result<Arc<dyn ThreadStore>> {
    Ok(open_shared(home, config, env)?.0)
}

/// The same, with the servers that share it.
pub(crate) fn open_shared(
    home: &Home,
    config: Option<&Config>,
    env: &Env,
) -> anyhow::Result<(Arc<dyn ThreadStore>, Option<Cluster>)> {
    let Some(store) = config.map(|config| config.store(env)).filter(|store| store.url.is_some()) else {
        return Ok((Arc::new(FileStore::of(home.path())), None));
    };
    #[cfg(feature = "postgres")]
    {
        let options = codex_postgres::StoreOptions {
            command_deadline: codex_sandbox::set_command_deadline,
            ..codex_postgres::StoreOptions::of(&store, env)?
        };
        let opened = codex_postgres::PostgresStore::open(&options)?;
        Ok((Arc::new(opened.clone()), Some(Cluster::new(opened, store))))
    }
    #[cfg(not(feature = "postgres"))]
    {
        drop(store);
        anyhow::bail!("store.url is set, but this build has no feature `postgres`")
    }
}

/// The store of the user, for commands that need no other setting.
pub(crate) fn of_user(shared: &Shared, home: &Home, env: &Env) -> anyhow::Result<Arc<dyn ThreadStore>> {
    open(home, Config::load(home, env, &shared.overrides()).ok().as_ref(), env)
}
