//! Options of `app-server`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};
use codex_dialects::ProtocolRelease;
use codex_transport::Address;

use crate::exec::args::duration;

/// Options of `app-server`.
#[derive(Debug, ClapArgs)]
pub(crate) struct AppServerArgs {
    /// Match this release's behaviour where releases differ
    #[arg(long, value_enum, value_name = "RELEASE")]
    pub(crate) emulate: Option<EmulatedRelease>,
    /// Dialect of notifications and approval requests, whatever clients choose
    #[arg(long, value_enum, value_name = "DIALECT")]
    pub(crate) dialect: Option<DialectArg>,
    /// Addresses to listen on
    #[command(flatten)]
    pub(crate) listening: ListenArgs,
    /// Other ways to run it
    #[command(subcommand)]
    pub(crate) form: Option<AppServerForm>,
}

/// A dialect of the app-server.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum DialectArg {
    /// Legacy `codex/event/*` events and v1 approval requests
    V1,
    /// Notifications, and v2 approval requests
    V2,
    /// Both
    Both,
    /// `item/created`, `item/delta`, and legacy events in camelCase
    Items,
}

/// Options of `app-server generate-ts`.
#[derive(Debug, ClapArgs)]
pub(crate) struct GenerateTsArgs {
    /// Folder to write to; created if missing
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Accepted for compatibility; ignored
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) prettier: Option<PathBuf>,
    /// Accepted for compatibility; ignored
    #[arg(long)]
    pub(crate) experimental: bool,
}

/// Options of `app-server generate-json-schema`.
#[derive(Debug, ClapArgs)]
pub(crate) struct GenerateJsonSchemaArgs {
    /// Folder to write to; created if missing
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Accepted for compatibility; ignored
    #[arg(long)]
    pub(crate) experimental: bool,
}

/// A release whose ways can be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum EmulatedRelease {
    /// Notifications, legacy events and v1 approval requests
    #[value(name = "0.58")]
    V058,
    /// Notifications and legacy events
    #[value(name = "0.77")]
    V077,
    /// Notifications only
    #[value(name = "0.166")]
    V0166,
}

impl From<EmulatedRelease> for ProtocolRelease {
    fn from(emulated: EmulatedRelease) -> Self {
        match emulated {
            EmulatedRelease::V058 => Self::V058,
            EmulatedRelease::V077 => Self::V077,
            EmulatedRelease::V0166 => Self::V0166,
        }
    }
}

/// The addresses of the server, and the limit of its clients.
#[derive(Debug, ClapArgs)]
pub(crate) struct ListenArgs {
    /// Address to listen on; may be repeated
    ///
    /// `stdio://` is standard input and output, `unix://PATH` a Unix socket (without a path the one in `CODEX_HOME`),
    /// `ws://IP:PORT` WebSocket, `tcp://IP:PORT` lines over TCP, `grpc://IP:PORT` gRPC. Port 0 picks a free port. Each
    /// address is printed to standard error as a line `listening on URL`.
    #[arg(long, value_name = "URL", default_value = "stdio://")]
    pub(crate) listen: Vec<Address>,
    /// File with the token that clients on IP addresses must present
    ///
    /// Without it the variable `CODEX_APP_SERVER_TOKEN` is used, and without that a token is generated and stored.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Accept only clients that prove that they know the token, not those that send it
    ///
    /// The client libraries of this release and `codex` itself prove it. Other clients send a header `Authorization`.
    #[arg(long)]
    pub(crate) no_bearer: bool,
    /// Allow listening on addresses that other machines can reach, without encryption
    #[arg(long)]
    pub(crate) allow_remote: bool,
    /// Maximum number of connections over Unix sockets, and likewise over IP addresses
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) max_connections: usize,
    /// Unload threads without subscribers after this time; they stay on disk
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30m")]
    pub(crate) unload_after: Duration,
    /// Run in the background: in its own session, with a log
    #[arg(long, hide = true)]
    pub(crate) detached: bool,
}

/// Other ways to run the server.
#[derive(Debug, Subcommand)]
pub(crate) enum AppServerForm {
    /// Connect standard input and output to a running server
    ///
    /// Lets editors that can only start a program share one server.
    Proxy(ProxyArgs),
    /// Manage a server in the background, on the Unix socket in `CODEX_HOME`
    #[command(subcommand)]
    Daemon(DaemonCommand),
    /// Write the protocol's types as TypeScript, one file per type
    GenerateTs(GenerateTsArgs),
    /// Write the protocol's messages as JSON Schema, one file per message and a bundle of all
    GenerateJsonSchema(GenerateJsonSchemaArgs),
}

/// Options of `app-server proxy`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ProxyArgs {
    /// Address of the server
    #[arg(long, value_name = "URL", default_value = "unix://")]
    pub(crate) connect: Address,
    /// File with the token, instead of the variable `CODEX_APP_SERVER_TOKEN` or the file in `CODEX_HOME`
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Send the token to a server that does not prove that it knows it, as through a forwarded port
    #[arg(long)]
    pub(crate) send_token: bool,
}

/// The forms of `app-server daemon`.
#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum DaemonCommand {
    /// Start the server and wait until it answers; no-op if it is already running
    Start(DaemonArgs),
    /// Stop the server; running turns are interrupted and everything is saved
    Stop(DaemonArgs),
    /// Show whether the server is running; exits with status 1 if it is not
    Status(DaemonArgs),
}

/// Options of `app-server daemon`.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct DaemonArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
