//! Opens the store of threads that the user has configured: the files of the home, or a database.

use std::sync::Arc;

use codex_config::{Config, Env, Home};
use codex_log::store::ThreadStore;
use codex_store::FileStore;

use crate::args::Shared;

/// The store of a configuration; that of the files if the configuration could not be read.
pub(crate) fn open(home: &Home, config: Option<&Config>, env: &Env) -> anyhow::Result<Arc<dyn ThreadStore>> {
    let Some(store) = config.map(|config| config.store(env)).filter(|store| store.url.is_some()) else {
        return Ok(Arc::new(FileStore::of(home.path())));
    };
    #[cfg(feature = "postgres")]
    let opened = codex_postgres::PostgresStore::open(&codex_postgres::StoreOptions::of(&store, env)?)?;
    #[cfg(not(feature = "postgres"))]
    let opened: FileStore = anyhow::bail!("store.url is set, but this build has no feature `postgres`");
    Ok(Arc::new(opened))
}

/// The store of the user, for commands that need no other setting.
pub(crate) fn of_user(shared: &Shared, home: &Home, env: &Env) -> anyhow::Result<Arc<dyn ThreadStore>> {
    open(home, Config::load(home, env, &shared.overrides()).ok().as_ref(), env)
}
