//! `codex proto`: one thread over stdin and stdout.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use codex_config::{Config, Env, HistoryPersistence, Home};
use codex_dialects::eq::Vocabulary;
use codex_engine::{Setup, connect};
use codex_pipe::proto::{self, Prompts, Served, User};
use codex_store::FileStore;
use codex_thread::{ClientProfile, InitialHistory};
use codex_wire::rollout::SessionSource;

use crate::args::Shared;
use crate::{apply_patch, console, host, signals, stdio, warnings};

/// The program's originator; clients of older releases look for it.
pub(crate) const ORIGINATOR: &str = "codex_cli_rs";

/// Runs until the client is done.
pub(crate) fn run(shared: &Shared) -> anyhow::Result<()> {
    let output = console::take()?;
    let env = Env::process();
    let setup = setup(shared, &env)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let served = runtime.block_on(runtime.spawn(async move {
        let vocabulary = Vocabulary { raw_reasoning: setup.config.reasoning.raw, ..Vocabulary::default() };
        let user = user(&setup);
        let (thread, feed) = setup.start().await?;
        let served = Served { thread: thread.clone(), feed, vocabulary, user };
        let mut stop = signals::stop()?;
        tokio::select! {
            served = proto::serve(served, stdio::input(), stdio::output(output)) => {
                served.context("the connection failed")
            }
            () = stop.wait() => {
                thread.close().await;
                Ok(())
            }
        }
    }));
    // A blocking read of standard input cannot be cancelled, so its thread is abandoned.
    runtime.shutdown_background();
    served.context("the server broke down")?
}

fn user(setup: &Setup) -> User {
    let Setup { config, home, store, .. } = setup;
    let is_kept = config.history.persistence == HistoryPersistence::SaveAll;
    let history = is_kept.then(|| Arc::clone(store));
    let prompts = Prompts::new(history, config.history.max_bytes, home.prompts());
    User { config: Arc::clone(config), home: home.clone(), prompts }
}

/// Builds the setup of a submission-queue thread.
pub(crate) fn setup(shared: &Shared, env: &Env) -> anyhow::Result<Setup> {
    let home = Home::find(env)?;
    let overrides = shared.overrides();
    let config = Config::load(&home, env, &overrides)?;
    home.ensure()?;
    let originator = env.text("CODEX_INTERNAL_ORIGINATOR_OVERRIDE").unwrap_or_else(|| ORIGINATOR.to_owned());
    let model = connect(&config, &host::credentials(&home, &config, env), env, &originator)?;
    warnings::tell(&home, env, &overrides)?;
    let programs = apply_patch::install(&home);
    let cwd = working_directory(shared)?;
    Ok(Setup {
        config: Arc::new(config),
        store: Arc::new(FileStore::of(home.path())),
        home,
        model,
        originator,
        source: SessionSource::Cli,
        shell: env.text("SHELL"),
        programs,
        profile: ClientProfile::QUEUE,
        base_instructions: None,
        initial_history: InitialHistory::New,
        recent_bytes: 0,
        servers: Some(host::servers(env)),
        cwd,
    })
}

pub(crate) fn working_directory(shared: &Shared) -> anyhow::Result<PathBuf> {
    let here = std::env::current_dir().context("the current directory is gone")?;
    let Some(folder) = &shared.cwd else { return Ok(here) };
    let folder = here.join(folder);
    // Folders are compared by name later, so none may contain a `..`.
    match folder.canonicalize() {
        Ok(real) if real.is_dir() => Ok(real),
        Ok(_) => bail!("the working directory {} is not a directory", folder.display()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!("the working directory {} does not exist", folder.display())
        }
        Err(error) => Err(error).with_context(|| format!("could not use the working directory {}", folder.display())),
    }
}
