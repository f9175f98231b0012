//! `codex mcp-server`: this agent as tools of an MCP client.

use std::process::ExitCode;

use anyhow::Context;
use codex_config::{ConfigSource, Env, Home, user_agent};
use codex_pipe::mcp;
use codex_wire::rollout::SessionSource;

use crate::args::Shared;
use crate::proto::working_directory;
use crate::{console, host, memory, signals, stdio, warnings};

/// Runs until the client is done.
pub(crate) fn run(shared: &Shared) -> anyhow::Result<ExitCode> {
    let output = console::take()?;
    let server = server(shared)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let ended = runtime.block_on(runtime.spawn(async move {
        let mut stop = signals::stop()?;
        memory::let_go_of_start();
        let threads = std::sync::Arc::clone(&server.threads);
        tokio::select! {
            ended = mcp::serve(server, stdio::input(), stdio::output(output)) => ended.context("the connection failed"),
            () = stop.wait() => {
                threads.close().await;
                Ok(())
            }
        }
    }));
    // A blocking read of standard input cannot be cancelled, so its thread is abandoned.
    runtime.shutdown_background();
    ended.context("the server broke down")?.map(|()| ExitCode::SUCCESS)
}

fn server(shared: &Shared) -> anyhow::Result<mcp::Server> {
    let env = Env::process();
    let home = Home::find(&env)?;
    let overrides = shared.overrides();
    warnings::tell(&home, &env, &overrides)?;
    let cwd = working_directory(shared)?;
    let start = host::start(ConfigSource::new(home, env, overrides), cwd, SessionSource::Mcp, 0);
    let user_agent = user_agent(&start.originator, start.config.env());
    Ok(mcp::Server { threads: start.threads, user_agent })
}
