//! A server that many clients share.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use codex_config::{Env, Home, SERVER_TOKEN_VARIABLE};
use codex_server::app::{AppServer, Start};
use codex_transport::{Address, BindError, Limits, Listener, Options, Shortage, Slots, Token};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::args::ListenArgs;
use super::log;
use crate::failure::ErrorWithHint;
use crate::{console, memory, signals};

/// The minimum interval between unloading threads for lack of descriptors.
const BETWEEN_UNLOADINGS: Duration = Duration::from_millis(200);
/// The time limit for running turns to stop.
const LAST_TURNS: Duration = Duration::from_secs(15);

/// Serves until a signal arrives, or until standard input closes if that is served too.
pub(crate) fn run(start: Start, args: &ListenArgs) -> anyhow::Result<ExitCode> {
    start.config.home().ensure()?;
    let log = if args.detached { Some(detach(start.config.home())?) } else { None };
    let output = console::take()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let served = runtime.block_on(async {
        // Signals first: a process that reads that the server listens may already send one.
        let mut stop = signals::stop()?;
        let shortage = Shortage::default();
        let listeners = bind(&start, args, &shortage).await?;
        let app = AppServer::new(start);
        memory::let_go_of_start();
        let stdio = args.listen.contains(&Address::Stdio);
        let served = serve(&app, listeners, args, async {
            let input_ends = async {
                if !stdio {
                    return std::future::pending().await;
                }
                app.serve(tokio::io::stdin(), tokio::fs::File::from_std(output)).await
            };
            tokio::select! {
                ended = input_ends => ended.context("the connection failed"),
                () = stop.wait() => Ok(()),
                () = free_descriptors(&app, &shortage) => Ok(()),
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

/// Listens everywhere, or nowhere if one of the addresses is unusable.
async fn bind(start: &Start, args: &ListenArgs, shortage: &Shortage) -> anyhow::Result<Vec<Listener>> {
    let addresses: Vec<Address> = args.listen.iter().filter(|it| **it != Address::Stdio).cloned().collect();
    let token = if addresses.iter().any(Address::needs_token) {
        Some(token(start.config.home(), start.config.env(), args.token_file.as_deref(), Purpose::Serve)?)
    } else {
        None
    };
    let (slots, limits) = (Slots::new(args.max_connections), Limits::default());
    let mut listeners = Vec::new();
    for address in addresses {
        let (token, slots, shortage) = (token.clone(), slots.clone(), shortage.clone());
        let options = Options { token, slots, limits, shortage, allows_remote: args.allow_remote };
        let listener = bind_one(&with_path(address, start.config.home()), options).await?;
        say(&format!("listening on {}", listener.address()));
        listeners.push(listener);
    }
    Ok(listeners)
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
    app: &AppServer,
    listeners: Vec<Listener>,
    args: &ListenArgs,
    end: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    let stop = watch::Sender::new(false);
    let mut listening = JoinSet::new();
    for listener in listeners {
        let app = app.clone();
        let service = move |input, output| {
            let app = app.clone();
            async move {
                if let Err(error) = app.serve(input, output).await {
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
