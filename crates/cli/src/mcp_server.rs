//! `codex mcp-server`: this agent as tools of an MCP client; and `codex mcp`, which 0.42 called it, with the methods of
//! conversations on the same stream.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args as ClapArgs;
use codex_config::{ConfigSource, Env, Home, user_agent};
use codex_dialects::ProtocolRelease;
use codex_pipe::mcp;
use codex_server::app::{AppServer, Dialect, Start};
use codex_transport::{Address, Limits, Options, Shortage, Slots, stdio};
use codex_wire::rollout::SessionSource;
use tokio::sync::watch;

use crate::app_server::listen::{self, Purpose};
use crate::args::Shared;
use crate::proto::working_directory;
use crate::{console, host, memory, signals, warnings};

/// The time limit for running turns to stop.
const LAST_TURNS: Duration = Duration::from_secs(15);

/// Options of `mcp-server`.
#[derive(Debug, ClapArgs)]
pub(crate) struct McpServerArgs {
    /// Serve over HTTP at this address, instead of stdin and stdout
    ///
    /// `http://IP:PORT` or `IP:PORT`. Port 0 picks a free port. The URL for clients is printed to standard error as a
    /// line `listening on URL`. SIGTERM ends the server.
    #[arg(long, value_name = "ADDRESS", value_parser = Address::http)]
    listen: Option<Address>,
    /// File with the token that clients must present as `Authorization: Bearer TOKEN`
    ///
    /// Without it the variable `CODEX_APP_SERVER_TOKEN` is used, and without that a token is generated and kept.
    #[arg(long, value_name = "FILE", requires = "listen")]
    token_file: Option<PathBuf>,
    /// Allow listening on an address that other machines can reach, without encryption
    #[arg(long, requires = "listen")]
    allow_remote: bool,
    /// Maximum number of connections
    #[arg(long, value_name = "N", default_value_t = 64, requires = "listen")]
    max_connections: usize,
}

/// Runs until the client is done, or until a signal arrives.
pub(crate) fn run(shared: &Shared, args: &McpServerArgs) -> anyhow::Result<ExitCode> {
    match &args.listen {
        Some(address) => serve_http(shared, args, address),
        None => serve(shared, false),
    }
}

/// Serves clients over HTTP.
fn serve_http(shared: &Shared, args: &McpServerArgs, address: &Address) -> anyhow::Result<ExitCode> {
    let start = start(shared)?;
    start.config.home().ensure()?;
    let token = listen::token(start.config.home(), start.config.env(), args.token_file.as_deref(), Purpose::Serve)?;
    let options = Options {
        token: Some(token),
        slots: Slots::new(args.max_connections),
        limits: Limits::default(),
        shortage: Shortage::default(),
        allows_remote: args.allow_remote,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        // Signals first: a process that reads that the server listens may already send one.
        let mut signal = signals::stop()?;
        let listener = listen::bind_one(address, options).await?;
        console::note(format_args!("listening on {}/mcp", listener.address()));
        memory::let_go_of_start();
        let user_agent = user_agent(&start.originator, start.config.env());
        let server = mcp::HttpServer::new(mcp::Server { threads: Arc::clone(&start.threads), user_agent });
        let stop = watch::Sender::new(false);
        let answering = server.clone();
        let service = move |request| {
            let server = answering.clone();
            async move { server.answer(request).await }
        };
        let serving = tokio::spawn(listener.serve_http(service, stop.subscribe()));
        signal.wait().await;
        // First the turns, so that clients still receive their end.
        let _: Result<(), _> = tokio::time::timeout(LAST_TURNS, server.close()).await;
        stop.send_replace(true);
        serving.await.context("the server broke down")?;
        // A thread may have been opened while the others were closed.
        let _: Result<(), _> = tokio::time::timeout(LAST_TURNS, server.close()).await;
        Ok(ExitCode::SUCCESS)
    })
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
    let start = host::start(ConfigSource::new(home, env, overrides), cwd, SessionSource::Mcp, 0)?;
    Ok(Start { release: Some(ProtocolRelease::V077), dialect: Some(Dialect::V1), ..start })
}
