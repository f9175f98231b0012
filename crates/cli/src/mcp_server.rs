//! `codex mcp-server`: this agent as tools of an MCP client; and `codex mcp`, which 0.42 called it, with the methods of
//! conversations on the same stream.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args as ClapArgs;
use codex_config::{ConfigSource, Env, Home, user_agent};
use codex_console::config_warnings;
use codex_dialects::ProtocolRelease;
use codex_pipe::mcp::{self, OtherServers, ServerConnection};
use codex_relay::Relay;
use codex_server::app::{AppServer, Start};
use codex_thread::BoxFuture;
use codex_transport::{Address, Limits, Options, Shortage, Slots, stdio};
use codex_wire::ids::ThreadId;
use codex_wire::rollout::SessionSource;
use tokio::io::DuplexStream;
use tokio::sync::watch;

use crate::app_server::listen::{self, Purpose};
use crate::args::Shared;
use crate::cluster::Cluster;
use crate::proto::working_directory;
use crate::{console, host, memory, signals};

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
    let started = Started::new(shared)?;
    let start = &started.start;
    start.config.home().ensure()?;
    let token = listen::token(start.config.home(), start.config.env(), args.token_file.as_deref(), Purpose::Serve)?;
    let slots = Slots::new(args.max_connections);
    let options = Options {
        token: Some(token),
        slots: slots.clone(),
        limits: Limits::default(),
        shortage: Shortage::default(),
        allows_remote: args.allow_remote,
        takes_bearer: true,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        // Signals first: a process that reads that the server listens may already send one.
        let mut signal = signals::stop()?;
        let listener = listen::bind_one(address, options).await?;
        console::note(format_args!("listening on {}/mcp", listener.address()));
        memory::let_go_of_start();
        let server = mcp::HttpServer::new(started.server());
        let stop = watch::Sender::new(false);
        let answering = server.clone();
        let service = move |request| {
            let server = answering.clone();
            async move { server.answer(request).await }
        };
        let serving = tokio::spawn(listener.serve_http(service, stop.subscribe()));
        tokio::select! {
            () = signal.wait() => {}
            () = started.watch(&slots) => {}
        }
        started.hand_over(&slots).await;
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
    let started = Started::new(shared)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let ended = runtime.block_on(runtime.spawn(async move {
        let mut stop = signals::stop()?;
        memory::let_go_of_start();
        let conversations = has_conversations.then(|| started.connect());
        let ended = tokio::select! {
            ended = mcp::serve(started.server(), conversations, stdio::input(), stdio::output(output)) => {
                ended.context("the connection failed")
            }
            () = stop.wait() => Ok(()),
        };
        started.hand_over(&Slots::new(0)).await;
        ended
    }));
    // A blocking read of standard input cannot be cancelled, so its thread is abandoned.
    runtime.shutdown_background();
    ended.context("the server panicked")?.map(|()| ExitCode::SUCCESS)
}

/// The parts of a server.
struct Started {
    start: Start,
    app: AppServer,
    /// The servers that share its threads, and the way to them.
    others: Option<(Cluster, RelayedClients)>,
}

/// Clients within this process whose threads other servers may have open.
#[derive(Debug, Clone)]
struct RelayedClients {
    app: AppServer,
    relay: Relay,
}

impl RelayedClients {
    fn connect_client(&self) -> DuplexStream {
        let app = self.app.clone();
        self.relay.connect(|input, output| async move { app.serve(input, output).await })
    }
}

impl OtherServers for RelayedClients {
    fn connect(&self, thread: ThreadId) -> BoxFuture<'_, Option<ServerConnection>> {
        Box::pin(async move {
            let server = self.relay.owner(thread).await?;
            Some(ServerConnection { server, stream: self.connect_client() })
        })
    }
}

impl Started {
    fn new(shared: &Shared) -> anyhow::Result<Self> {
        let env = Env::process();
        let home = Home::find(&env)?;
        let overrides = shared.overrides();
        config_warnings::tell(&home, &env, &overrides)?;
        let cwd = working_directory(shared)?;
        let config = ConfigSource::new(home, env, overrides);
        let (start, cluster) = host::start(config, cwd, SessionSource::Mcp, 0)?;
        let start = Start { release: Some(ProtocolRelease::V077), ..start };
        let app = AppServer::new(start.clone());
        let cluster = cluster.map(Cluster::without_address);
        let relay = cluster.as_ref().map(|cluster| cluster.join(&start, &app, None)).transpose()?;
        let others = cluster.zip(relay.map(|relay| RelayedClients { app: app.clone(), relay }));
        Ok(Self { start, app, others })
    }

    fn server(&self) -> mcp::Server {
        mcp::Server {
            threads: Arc::clone(&self.start.threads),
            others: self.others.as_ref().map(|(_, relay)| Arc::new(relay.clone()) as Arc<dyn OtherServers>),
            user_agent: user_agent(&self.start.originator, self.start.config.env()),
        }
    }

    /// Connects a client of the app-server.
    fn connect(&self) -> DuplexStream {
        match &self.others {
            Some((_, relay)) => relay.connect_client(),
            None => self.app.connect(),
        }
    }

    /// Follows the database, if there is one. Runs until it is dropped.
    async fn watch(&self, slots: &Slots) {
        match &self.others {
            Some((cluster, _)) => cluster.watch(&self.app, slots).await,
            None => std::future::pending().await,
        }
    }

    /// Ends the threads, and gives them back if other servers share them.
    async fn hand_over(&self, slots: &Slots) {
        match &self.others {
            Some((cluster, _)) => cluster.hand_over(&self.app, slots).await,
            None => {
                let _: Result<(), _> = tokio::time::timeout(LAST_TURNS, self.start.threads.close()).await;
            }
        }
    }
}
