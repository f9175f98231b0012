//! `codex proto`: one thread over stdin and stdout.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use codex_agents::LocalTrees;
use codex_config::{Config, Env, HistoryPersistence, Home};
use codex_console::config_warnings;
use codex_dialects::eq::Vocabulary;
use codex_engine::Setup;
use codex_pipe::proto::{self, Prompts, Served, User};
use codex_thread::ClientProfile;
use codex_transport::stdio;
use codex_wire::rollout::SessionSource;

use crate::args::Shared;
use crate::single_thread::{self, FrontEnd};
use crate::{console, signals};

/// The program's originator; clients of older releases look for it.
pub(crate) const ORIGINATOR: &str = "codex_cli_rs";

/// Runs until the client is done.
pub(crate) fn run(shared: &Shared) -> anyhow::Result<()> {
    let output = console::take()?;
    let env = Env::process();
    let mut setup = setup(shared, &env)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let served = runtime.block_on(runtime.spawn(async move {
        let vocabulary = Vocabulary { raw_reasoning: setup.config.reasoning.raw, ..Vocabulary::default() };
        let user = user(&setup);
        let children = setup.offer_agents(&LocalTrees);
        let (thread, feed) = setup.start().await?;
        let served = Served { thread: thread.clone(), feed, children, vocabulary, user };
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
    served.context("the server panicked")?
}

fn user(setup: &Setup) -> User {
    let Setup { config, home, store, .. } = setup;
    let is_kept = config.chat.history.persistence == HistoryPersistence::SaveAll;
    let history = is_kept.then(|| Arc::clone(store));
    let prompts = Prompts::new(history, config.chat.history.max_bytes, home.prompts());
    User { config: Arc::clone(config), home: home.clone(), prompts }
}

/// Builds the setup of a submission-queue thread.
pub(crate) fn setup(shared: &Shared, env: &Env) -> anyhow::Result<Setup> {
    let home = Home::find(env)?;
    let overrides = shared.overrides();
    let config = Config::load(&home, env, &overrides)?;
    let cwd = working_directory(shared)?;
    let front_end = FrontEnd { originator: ORIGINATOR, source: SessionSource::Cli, profile: ClientProfile::QUEUE };
    let setup = single_thread::setup(front_end, home, config, cwd, env)?;
    // An error that prevents the start is printed alone.
    config_warnings::tell(&setup.home, env, &overrides)?;
    Ok(setup)
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
