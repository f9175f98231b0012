//! Options of `app-server`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};
use codex_dialects::Vintage;
use codex_transport::Address;

use crate::exec::args::duration;

/// Options of `app-server`.
#[derive(Debug, ClapArgs)]
pub(crate) struct AppServerArgs {
    /// Follow the ways of this release where releases differ
    #[arg(long, value_enum, value_name = "RELEASE")]
    pub(crate) emulate: Option<Emulated>,
    /// Speak to clients in this dialect, whatever they ask in; they may choose another
    #[arg(long, value_enum, value_name = "DIALECT")]
    pub(crate) dialect: Option<Spoken>,
    /// Where clients come in
    #[command(flatten)]
    pub(crate) listening: ListenArgs,
    /// Other ways to run it
    #[command(subcommand)]
    pub(crate) form: Option<AppServerForm>,
}

/// A dialect of the app-server.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Spoken {
    /// Events of the queue, and questions in the words of 2025
    V1,
    /// Notifications, and questions that name an item
    V2,
    /// Both
    Both,
    /// `item/created` and `item/delta` beside events of the queue
    Items,
}

/// Options of `app-server generate-ts`.
#[derive(Debug, ClapArgs)]
pub(crate) struct GenerateTsArgs {
    /// The folder to write to; it is made if it is missing
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Taken for scripts of other releases; what is written is formatted already
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) prettier: Option<PathBuf>,
    /// Taken for scripts of other releases; everything that is served is written anyway
    #[arg(long)]
    pub(crate) experimental: bool,
}

/// Options of `app-server generate-json-schema`.
#[derive(Debug, ClapArgs)]
pub(crate) struct GenerateJsonSchemaArgs {
    /// The folder to write to; it is made if it is missing
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Taken for scripts of other releases; everything that is served is written anyway
    #[arg(long)]
    pub(crate) experimental: bool,
}

/// A release whose ways can be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Emulated {
    /// Events of the queue beside the notifications
    #[value(name = "0.77")]
    V077,
    /// Notifications alone
    #[value(name = "0.166")]
    V0166,
}

impl From<Emulated> for Vintage {
    fn from(emulated: Emulated) -> Self {
        match emulated {
            Emulated::V077 => Self::V077,
            Emulated::V0166 => Self::V0166,
        }
    }
}

/// Where clients come in, and how many.
#[derive(Debug, ClapArgs)]
pub(crate) struct ListenArgs {
    /// Where to serve; repeat for more
    ///
    /// `stdio://` is standard input and output, `unix://PATH` a Unix socket (without a path the one in `CODEX_HOME`),
    /// `ws://IP:PORT` WebSocket, `tcp://IP:PORT` lines over TCP, `grpc://IP:PORT` gRPC. Port 0 lets the system choose.
    /// Each address is told on standard error in a line `listening on URL`.
    #[arg(long, value_name = "URL", default_value = "stdio://")]
    pub(crate) listen: Vec<Address>,
    /// Read the token that clients of IP addresses need from this file
    ///
    /// Without it the variable `CODEX_APP_SERVER_TOKEN` counts, and without that a token is made and kept.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Listen on addresses that other machines can reach, without encryption
    #[arg(long)]
    pub(crate) allow_remote: bool,
    /// Serve at most so many connections over Unix sockets, and as many over IP addresses
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) max_connections: usize,
    /// Unload threads that nobody has listened to for so long; they stay on disk, with what they ask
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30m")]
    pub(crate) unload_after: Duration,
    /// Run in the background: in a session of its own, with a log
    #[arg(long, hide = true)]
    pub(crate) detached: bool,
}

/// Other ways to run the server.
#[derive(Debug, Subcommand)]
pub(crate) enum AppServerForm {
    /// Connect standard input and output to a server that runs already
    ///
    /// For editors that know only how to start a program: they share one server that way.
    Proxy(ProxyArgs),
    /// Run a server in the background, on the Unix socket in `CODEX_HOME`
    #[command(subcommand)]
    Daemon(DaemonCommand),
    /// Write the types of the protocol as TypeScript, one file a type
    GenerateTs(GenerateTsArgs),
    /// Write the messages of the protocol as JSON Schema, one file a message and a bundle of all
    GenerateJsonSchema(GenerateJsonSchemaArgs),
}

/// Options of `app-server proxy`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ProxyArgs {
    /// Where the server listens
    #[arg(long, value_name = "URL", default_value = "unix://")]
    pub(crate) connect: Address,
    /// Read the token from this file, instead of the variable `CODEX_APP_SERVER_TOKEN` or the file in `CODEX_HOME`
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

/// The forms of `app-server daemon`.
#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum DaemonCommand {
    /// Start it, and return when it answers; one that runs already is as good
    Start(DaemonArgs),
    /// Stop it: running turns are interrupted and everything is written
    Stop(DaemonArgs),
    /// Say whether it runs; the exit status is 1 if it does not
    Status(DaemonArgs),
}

/// Options of `app-server daemon`.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct DaemonArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
