//! `codex mcp-server`: this agent as tools of an MCP client; and `codex mcp`, which 0.42 called it, with the methods of
//! conversations on the same stream.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use codex_config::{ConfigSource, Env, Home, user_agent};
use codex_dialects::ProtocolRelease;
use codex_pipe::mcp;
use codex_server::app::{AppServer, Dialect, Start};
use codex_wire::rollout::SessionSource;

use crate::args::Shared;
use crate::proto::working_directory;
use crate::{console, host, memory, signals, stdio, warnings};

/// Runs until the client is done.
pub(crate) fn run(shared: &Shared) -> anyhow::Result<ExitCode> {
    serve(shared, false)
}

/// The same, with the methods that the app-server of 2025 had for conversations.
pub(crate) fn run_with_conversations(shared: &Shared) -> anyhow::Result<ExitCode> {
    serve(shared, true)
}

fn serve(shared: &Shared, has_conversations: bool) -> anyhow::Result<ExitCode> {
    let output = console::take()?;
    let start = start(shared)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let ended = runtime.block_on(runtime.spawn(async move {
        let mut stop = signals::stop()?;
        memory::let_go_of_start();
        let threads = Arc::clone(&start.threads);
        let user_agent = user_agent(&start.originator, start.config.env());
        let server = mcp::Server { threads: Arc::clone(&threads), user_agent };
        let conversations = has_conversations.then(|| AppServer::new(start).connect());
        tokio::select! {
            ended = mcp::serve(server, conversations, stdio::input(), stdio::output(output)) => {
                ended.context("the connection failed")
            }
            () = stop.wait() => {
                threads.close().await;
                Ok(())
            }
        }
    }));
    // A blocking read of standard input cannot be cancelled, so its thread is abandoned.
    runtime.shutdown_background();
    ended.context("the server panicked")?.map(|()| ExitCode::SUCCESS)
}

fn start(shared: &Shared) -> anyhow::Result<Start> {
    let env = Env::process();
    let home = Home::find(&env)?;
    let overrides = shared.overrides();
    warnings::tell(&home, &env, &overrides)?;
    let cwd = working_directory(shared)?;
    let start = host::start(ConfigSource::new(home, env, overrides), cwd, SessionSource::Mcp, 0);
    Ok(Start { release: Some(ProtocolRelease::V077), dialect: Some(Dialect::V1), ..start })
}
