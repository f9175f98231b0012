//! A server that many clients share.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use codex_config::{Env, Home, SERVER_TOKEN_VARIABLE};
use codex_relay::Relay;
use codex_server::app::{AppServer, Start};
use codex_transport::{Address, BindError, Limits, Listener, Options, Shortage, Slots, Token};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::args::ListenArgs;
use super::log;
use crate::cluster::Cluster;
use crate::failure::ErrorWithHint;
use crate::{console, memory, signals};

/// The minimum interval between unloading threads for lack of descriptors.
const BETWEEN_UNLOADINGS: Duration = Duration::from_millis(200);
/// The time limit for running turns to stop.
const LAST_TURNS: Duration = Duration::from_secs(15);

/// Serves until a signal arrives, or until standard input closes if that is served too.
pub(crate) fn run(start: Start, cluster: Option<&Cluster>, args: &ListenArgs) -> anyhow::Result<ExitCode> {
    start.config.home().ensure()?;
    let log = if args.detached { Some(detach(start.config.home())?) } else { None };
    let output = console::take()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let served = runtime.block_on(async {
        // Signals first: a process that reads that the server listens may already send one.
        let mut stop = signals::stop()?;
        let shortage = Shortage::default();
        let slots = Slots::new(args.max_connections);
        let (listeners, token) = bind(&start, cluster, args, (&slots, &shortage)).await?;
        let app = AppServer::new(start.clone());
        let relay = cluster.map(|cluster| cluster.join(&start, &app, token)).transpose()?;
        let served = Served { app, relay };
        memory::let_go_of_start();
        let stdio = args.listen.contains(&Address::Stdio);
        let served = serve(&served, listeners, args, (cluster, &slots), async {
            let input_ends = async {
                if !stdio {
                    return std::future::pending().await;
                }
                served.client(tokio::io::stdin(), tokio::fs::File::from_std(output)).await
            };
            let watching = async {
                match cluster {
                    Some(cluster) => cluster.watch(&served.app, &slots).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                ended = input_ends => ended.context("the connection failed"),
                () = stop.wait() => Ok(()),
                () = free_descriptors(&served.app, &shortage) => Ok(()),
                () = watching => Ok(()),
            }
        });
        served.await
    });
    // A read of standard input cannot be cancelled, so its thread is abandoned.
    runtime.shutdown_background();
    if let (Err(error), Some(_)) = (&served, &log) {
        crate::failure::say(error);
    }
    if let Some(log) = log {
        log.close();
    }
    served.map(|()| ExitCode::SUCCESS)
}

/// Detaches from the terminal, and redirects output to a log.
fn detach(home: &Home) -> anyhow::Result<log::Log> {
    // This fails for a session leader, which is detached already.
    let _: rustix::io::Result<rustix::process::Pid> = rustix::process::setsid();
    make_folder(&home.run())?;
    log::keep(&home.server_log())
}

/// A server, and the way to the others that share its threads.
#[derive(Clone)]
struct Served {
    app: AppServer,
    relay: Option<Relay>,
}

impl Served {
    /// Serves one client.
    async fn client<R, W>(&self, input: R, output: W) -> std::io::Result<()>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        match &self.relay {
            Some(relay) => relay.serve(input, output, |input, output| self.app.serve(input, output)).await,
            None => self.app.serve(input, output).await,
        }
    }
}

/// Listens everywhere, or nowhere if one of the addresses is unusable. Returns the token of this server too.
async fn bind(
    start: &Start,
    cluster: Option<&Cluster>,
    args: &ListenArgs,
    (slots, shortage): (&Slots, &Shortage),
) -> anyhow::Result<(Vec<Listener>, Option<Token>)> {
    let addresses: Vec<Address> = args.listen.iter().filter(|it| **it != Address::Stdio).cloned().collect();
    let own = if addresses.iter().any(Address::needs_token) {
        Some(token(start.config.home(), start.config.env(), args.token_file.as_deref(), Purpose::Serve)?)
    } else {
        None
    };
    let others = cluster.map(Cluster::token).transpose()?.flatten();
    let token = own.clone().map(|own| others.into_iter().fold(own, Token::or));
    let (limits, mut listeners) = (Limits::default(), Vec::new());
    for address in addresses {
        let (token, slots, shortage) = (token.clone(), slots.clone(), shortage.clone());
        let options =
            Options { token, slots, limits, shortage, allows_remote: args.allow_remote, takes_bearer: !args.no_bearer };
        let listener = bind_one(&with_path(address, start.config.home()), options).await?;
        say(&format!("listening on {}", listener.address()));
        listeners.push(listener);
    }
    Ok((listeners, own))
}

/// Listens on one address.
pub(crate) async fn bind_one(address: &Address, options: Options) -> anyhow::Result<Listener> {
    Listener::bind(address, options).await.map_err(|error| match error {
        BindError::Remote { .. } => {
            let hint = "nothing is encrypted; use an ssh tunnel to 127.0.0.1, or pass --allow-remote".to_owned();
            anyhow::Error::from(ErrorWithHint { what: error.to_string(), hint })
        }
        error => error.into(),
    })
}

async fn serve(
    served: &Served,
    listeners: Vec<Listener>,
    args: &ListenArgs,
    (cluster, slots): (Option<&Cluster>, &Slots),
    end: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    let (app, stop) = (&served.app, watch::Sender::new(false));
    let mut listening = JoinSet::new();
    for listener in listeners {
        let served = served.clone();
        let service = move |input, output| {
            let served = served.clone();
            async move {
                if let Err(error) = served.client(input, output).await {
                    say(&format!("a connection failed: {error}"));
                }
            }
        };
        listening.spawn(listener.serve(service, stop.subscribe()));
    }
    let ended = tokio::select! {
        ended = end => ended,
        () = app.unload_idle(args.unload_after) => Ok(()),
    };
    if let Some(cluster) = cluster {
        cluster.hand_over(app, slots).await;
    }
    // First the turns, so that clients still receive their end.
    let _: Result<(), _> = tokio::time::timeout(LAST_TURNS, app.close()).await;
    stop.send_replace(true);
    listening.join_all().await;
    // A thread may have been opened while the others were closed.
    let _: Result<(), _> = tokio::time::timeout(LAST_TURNS, app.close()).await;
    ended
}

/// Unloads threads without subscribers whenever descriptors run short. Runs until it is dropped.
async fn free_descriptors(app: &AppServer, shortage: &Shortage) {
    loop {
        shortage.reported().await;
        let unloaded = app.unload_unsubscribed().await;
        if unloaded > 0 {
            say(&format!("too many files are open; {unloaded} threads without subscribers were unloaded"));
        }
        tokio::time::sleep(BETWEEN_UNLOADINGS).await;
    }
}

/// The purpose of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To authenticate clients. If there is none, one is generated.
    Serve,
    /// To authenticate at a server.
    Connect,
}

/// The token: from a file, from the variable, or from the home folder.
pub(crate) fn token(home: &Home, env: &Env, file: Option<&Path>, purpose: Purpose) -> anyhow::Result<Token> {
    if let Some(file) = file {
        return Ok(Token::read(file)?);
    }
    if let Some(text) = env.text(SERVER_TOKEN_VARIABLE) {
        return Token::new(&text).context(SERVER_TOKEN_VARIABLE);
    }
    let file = home.server_token_file();
    if purpose == Purpose::Connect {
        return Ok(Token::read(&file)?);
    }
    make_folder(&home.run())?;
    let token = Token::read_or_make(&file)?;
    say(&format!("token file {}", file.display()));
    Ok(token)
}

fn make_folder(path: &Path) -> anyhow::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path).with_context(|| format!("could not create {}", path.display()))
}

/// Adds the default path to an address that needs one.
pub(crate) fn with_path(address: Address, home: &Home) -> Address {
    if address == Address::Unix(None) { Address::Unix(Some(home.server_socket())) } else { address }
}

/// Prints a line to standard error.
fn say(text: &str) {
    console::note(text);
}
