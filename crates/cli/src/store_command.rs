//! `codex store`: the database that servers share.

use std::io::Write;
use std::process::ExitCode;

use codex_config::{Config, Env, Home};
use codex_postgres::{PostgresStore, StoreCommand, StoreOptions};

use crate::args::Shared;
use crate::console;

/// Options of `store`.
#[derive(Debug, clap::Args)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    pub(crate) command: StoreCommand,
}

/// Does what is asked.
pub(crate) fn run(shared: &Shared, command: &StoreCommand) -> anyhow::Result<ExitCode> {
    let env = Env::process();
    let home = Home::find(&env)?;
    let config = Config::load(&home, &env, &shared.overrides())?;
    let store = PostgresStore::open(&StoreOptions::of(&config.store(&env), &env)?)?;
    let report = store.perform(command, home.path())?;
    write!(console::out(), "{}", report.text)?;
    Ok(if report.is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
