//! The command line.

mod read;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, CommandFactory, Parser, Subcommand};
use codex_config::Overrides;

use crate::app_server::args::AppServerArgs;
use crate::chat::args::{ChatArgs, ResumeArgs};
use crate::exec::args::{ExecArgs, ExecOptions, ReviewArgs};
use crate::lazy::{self, Lazy};
use crate::mcp::args::McpArgs;
use crate::mcp_server::McpServerArgs;
use crate::proto::working_directory;
use crate::threads::args::{DeleteArgs, ThreadArg, ThreadsArgs};

/// The help heading for options that all commands take.
const FOR_ALL: &str = "Global options";

/// A coding agent for the terminal, and an engine that other programs can drive
///
/// Without a command, starts a chat in the terminal. Type /help there for a list of its commands.
#[derive(Debug, Parser)]
#[command(override_usage = "codex [OPTIONS] [PROMPT]\n       codex [OPTIONS] <COMMAND>", max_term_width = 100)]
#[command(name = "codex", bin_name = "codex", version, long_version = env!("CODEX_LONG_VERSION"), display_name = "codex-cli", propagate_version = true)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) shared: Shared,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) chat: ChatArgs,
}

/// A command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Resume a thread in the chat
    ///
    /// Without a thread, pick one from the most recent threads of this folder. A thread that is open in the background
    /// server is joined there; `attach` is another name for this.
    #[command(alias = "attach")]
    Resume(Lazy<ResumeArgs>),
    /// Fork a thread and continue in the copy; the original is unchanged
    Fork(Lazy<ResumeArgs>),
    /// Run one task non-interactively, for scripts and CI
    ///
    /// Prints the last message to standard output and progress to standard error, or with --json all events to
    /// standard output. Nothing is asked: anything that the sandbox does not allow fails.
    #[command(visible_alias = "e")]
    Exec(Lazy<ExecArgs>),
    /// Review changes non-interactively; same as `exec review`
    Review(Lazy<TopReviewArgs>),
    /// List, search, show, export and manage threads
    Threads(Lazy<ThreadsArgs>),
    /// Archive a thread; same as `threads archive`
    Archive(Lazy<ThreadArg>),
    /// Restore an archived thread; same as `threads unarchive`
    Unarchive(Lazy<ThreadArg>),
    /// Delete a thread permanently; same as `threads delete`
    Delete(Lazy<DeleteArgs>),
    /// Show, check and fill the database that servers share
    ///
    /// Needs `store.url` in config.toml, or `CODEX_STORE_URL`.
    #[cfg(feature = "postgres")]
    Store(Lazy<crate::store_command::StoreArgs>),
    /// Replay a recorded thread, without a model
    ///
    /// Prints what a client would have received, line by line. For developing clients and for bug reports.
    Replay(Lazy<ReplayArgs>),
    /// Serve one thread over stdin and stdout, as JSON Lines of submissions and events
    ///
    /// Each input line is a submission with an id and an op, each output line an event with an id and a message. The
    /// first event is `session_configured`. The op `shutdown`, or the end of the input, ends the program.
    Proto(Lazy<NoArgs>),
    /// Serve threads to editors and SDKs over stdin and stdout or over sockets, as JSON-RPC
    ///
    /// Clients send `initialize`, then `thread/start`, `turn/start` and so on. The end of the input ends the server:
    /// running turns are interrupted and everything is saved. With --listen, many clients share one server, and SIGTERM
    /// ends it.
    AppServer(Lazy<AppServerArgs>),
    /// Serve this agent as tools of MCP clients, over stdin and stdout or over HTTP
    ///
    /// The tool `codex` starts a thread and runs its first turn, `codex-reply` runs another one. Approvals are requested
    /// with elicitations. The end of the input ends the server. With --listen, many clients share one server, and SIGTERM
    /// ends it.
    McpServer(Lazy<McpServerArgs>),
    /// List, show, add and remove MCP servers
    ///
    /// With a pipe on standard input and without a command, serves as `mcp-server` does, and the conversations of 0.42 on the
    /// same stream.
    Mcp(Lazy<McpArgs>),
    /// Show the agent at work, without an API key or network
    ///
    /// A scripted model works on a small project in a temporary folder. Everything else is the real engine.
    Demo(Lazy<DemoArgs>),
    /// Run a command in the sandbox used for the model's commands
    ///
    /// Uses the sandbox mode set in config.toml (read-only by default) unless --full-auto is given. Exits with the
    /// command's exit status.
    #[command(args_conflicts_with_subcommands = true)]
    Sandbox(Lazy<SandboxArgs>),
    /// Check a command against the exec policy rules
    Execpolicy(Lazy<ExecpolicyArgs>),
    /// Apply the changes from a thread's last turn here
    ///
    /// Works from any folder of the thread's repository: in the checkout that the thread worked in, in another
    /// worktree, or in a clone. Lists the files that changed (A added, M modified, D deleted). If a change does not
    /// apply, none is made. Without a thread, the most recently updated one is used.
    #[command(visible_alias = "a")]
    Apply(Lazy<ApplyArgs>),
    /// Log in, or show how requests are authenticated
    ///
    /// Without an option, opens a browser and waits up to ten minutes for you to log in there.
    Login(Lazy<LoginArgs>),
    /// Log out: revoke and remove the stored credentials
    Logout(Lazy<NoArgs>),
    /// List, enable and disable features
    Features(Lazy<FeaturesArgs>),
    /// Check this installation and suggest fixes
    Doctor(Lazy<DoctorArgs>),
    /// Inspect the request that would be sent to the model
    Debug(Lazy<DebugArgs>),
    /// Print the manual page, or write those of all commands to a folder
    ///
    /// To read it, run: codex man | man -l -
    Man(Lazy<ManArgs>),
    /// Generate a shell completion script
    ///
    /// For bash, run: source <(codex completion bash)
    Completion(Lazy<CompletionArgs>),
}

/// Options of a command without options.
#[derive(Debug, ClapArgs)]
pub(crate) struct NoArgs {}

/// Options of `man`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ManArgs {
    /// Write one page for each command to this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) to: Option<PathBuf>,
}

/// Options of `completion`.
#[derive(Debug, ClapArgs)]
pub(crate) struct CompletionArgs {
    /// Shell to generate the script for
    #[arg(value_enum, default_value_t = clap_complete::Shell::Bash)]
    pub(crate) shell: clap_complete::Shell,
}

/// Options of `review`.
#[derive(Debug, ClapArgs)]
pub(crate) struct TopReviewArgs {
    #[command(flatten)]
    pub(crate) options: ExecOptions,
    #[command(flatten)]
    pub(crate) review: ReviewArgs,
}

/// Options of `replay`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ReplayArgs {
    /// A thread's file, id or name
    pub(crate) rollout: PathBuf,
    /// Protocol to print
    #[arg(long, value_enum, default_value_t)]
    pub(crate) dialect: ReplayDialect,
    /// Replay speed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) speed: ReplaySpeed,
}

/// The protocols in which a thread can be played.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ReplayDialect {
    /// Events, as `codex proto` prints them
    #[default]
    Eq,
    /// Notifications, as `codex app-server` sends them
    V2,
    /// Events, as `codex exec --json` prints them
    Exec,
}

/// The speed of a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ReplaySpeed {
    /// With the original pauses, up to a minute each
    Original,
    /// All at once
    #[default]
    Instant,
}

/// Options of `apply`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ApplyArgs {
    /// Thread id (or its beginning) or name [default: the most recently updated thread]
    pub(crate) thread: Option<String>,
    /// Print the diff instead of applying it
    #[arg(long)]
    pub(crate) print: bool,
    /// Apply even if this is not the thread's repository
    #[arg(long)]
    pub(crate) any_repo: bool,
}

/// Options of `login`.
#[derive(Debug, ClapArgs)]
pub(crate) struct LoginArgs {
    /// Log in with a code that you enter on another device, for machines without a browser
    #[arg(long, conflicts_with = "with_api_key")]
    pub(crate) device_auth: bool,
    /// Read an API key from standard input and store it
    #[arg(long)]
    pub(crate) with_api_key: bool,
    /// Login service to use instead of the usual one
    #[arg(long = "experimental_issuer", value_name = "URL")]
    pub(crate) experimental_issuer: Option<String>,
    /// Client id at that service
    #[arg(long = "experimental_client-id", value_name = "ID")]
    pub(crate) experimental_client_id: Option<String>,
    /// `status`
    #[command(subcommand)]
    pub(crate) form: Option<LoginForm>,
}

/// The forms of `login`.
#[derive(Debug, Subcommand)]
pub(crate) enum LoginForm {
    /// Show how requests are authenticated; exits with status 1 if they are not
    Status,
}

/// Options of `features`.
#[derive(Debug, ClapArgs)]
pub(crate) struct FeaturesArgs {
    #[command(subcommand)]
    pub(crate) form: FeaturesCommand,
}

/// The forms of `features`.
#[derive(Debug, Subcommand)]
pub(crate) enum FeaturesCommand {
    /// List all features and whether they are enabled
    List,
    /// Enable a feature in config.toml
    Enable {
        /// Feature name
        name: String,
    },
    /// Disable a feature in config.toml
    Disable {
        /// Feature name
        name: String,
    },
}

/// Options of `doctor`.
#[derive(Debug, ClapArgs)]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of `debug`.
#[derive(Debug, ClapArgs)]
pub(crate) struct DebugArgs {
    #[command(subcommand)]
    pub(crate) form: DebugCommand,
}

/// The forms of `debug`.
#[derive(Debug, Subcommand)]
pub(crate) enum DebugCommand {
    /// Run a command in the Linux sandbox; same as `codex sandbox linux`
    #[command(hide = true)]
    Landlock(ConfinedArgs),
    /// Run a command in the macOS sandbox; same as `codex sandbox macos`
    #[command(hide = true)]
    Seatbelt(ConfinedArgs),
    /// Print the request as JSON; nothing is sent
    Prompt {
        /// Prompt to build the request for [default: hello]
        prompt: Option<String>,
    },
}

/// Options of `sandbox`.
#[derive(Debug, ClapArgs)]
pub(crate) struct SandboxArgs {
    /// The sandbox of a system, or `explain`
    #[command(subcommand)]
    pub(crate) form: Option<SandboxForm>,
    #[command(flatten)]
    pub(crate) confined: ConfinedArgs,
}

/// The forms of `sandbox`.
#[derive(Debug, Subcommand)]
pub(crate) enum SandboxForm {
    /// Run a command in the Linux sandbox
    #[command(alias = "landlock")]
    Linux(ConfinedArgs),
    /// Run a command in the macOS sandbox
    #[command(alias = "seatbelt")]
    Macos(ConfinedArgs),
    /// Explain what the sandbox enforces here and what a command could write; runs nothing
    Explain(ConfinedArgs),
}

/// A command and how it is confined.
#[derive(Debug, ClapArgs)]
pub(crate) struct ConfinedArgs {
    /// Allow writing to the working directory and temporary folders
    #[arg(long)]
    pub(crate) full_auto: bool,
    /// Command to run, after `--`
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Options of `execpolicy`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ExecpolicyArgs {
    #[command(subcommand)]
    pub(crate) form: ExecpolicyCommand,
}

/// The forms of `execpolicy`.
#[derive(Debug, Subcommand)]
pub(crate) enum ExecpolicyCommand {
    /// Show whether the rules allow, prompt for or forbid a command, and which rule decides
    #[command(visible_alias = "why")]
    Check(CheckArgs),
}

/// Options of `execpolicy check`.
#[derive(Debug, ClapArgs)]
pub(crate) struct CheckArgs {
    /// Rules file to use; may be repeated [default: those in `CODEX_HOME`]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) rules: Vec<PathBuf>,
    /// Print JSON even to a terminal; other outputs always get JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Pretty-print the JSON
    #[arg(long)]
    pub(crate) pretty: bool,
    /// Command to check
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Options that all commands take.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct Shared {
    /// The repeatable options from anywhere on the command line, in order.
    #[arg(skip)]
    pub(crate) repeated: RepeatableArgs,
    /// Configuration profile to use, from config.toml
    #[arg(short, long, value_name = "NAME", global = true, help_heading = FOR_ALL, display_order = 1003)]
    pub(crate) profile: Option<String>,
    /// Show more detail about errors
    #[arg(short, long, global = true, help_heading = FOR_ALL, display_order = 1007)]
    pub(crate) verbose: bool,
    /// Refuse to start when a key of the configuration has no effect
    #[arg(long, global = true, help_heading = FOR_ALL, display_order = 1006)]
    pub(crate) strict_config: bool,
    /// Working directory to use instead of the current one
    #[arg(short = 'C', long = "cd", value_name = "DIR", global = true, help_heading = FOR_ALL, display_order = 1001)]
    pub(crate) cwd: Option<PathBuf>,
}

/// Repeatable options that all commands take. Those before and after a subcommand both count, unlike with `global`,
/// where the last place wins.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct RepeatableArgs {
    /// Override a value of config.toml; may be repeated
    ///
    /// KEY is a dotted path. VALUE is parsed as TOML, or else taken as a string: -c model=o3 -c 'features.x=true'
    #[arg(short = 'c', long = "config", value_name = "KEY=VALUE", help_heading = FOR_ALL, display_order = 1002)]
    overrides: Vec<String>,
    /// Enable a feature for this run; may be repeated
    #[arg(long, value_name = "FEATURE", help_heading = FOR_ALL, display_order = 1004)]
    enable: Vec<String>,
    /// Disable a feature for this run; may be repeated
    #[arg(long, value_name = "FEATURE", help_heading = FOR_ALL, display_order = 1005)]
    disable: Vec<String>,
}

impl Shared {
    /// The configuration layer of the command line.
    pub(crate) fn overrides(&self) -> Overrides {
        let RepeatableArgs { overrides, enable, disable } = &self.repeated;
        let mut values = overrides.clone();
        values.extend(enable.iter().map(|name| format!("features.{name}=true")));
        values.extend(disable.iter().map(|name| format!("features.{name}=false")));
        // Code that works in the folder reports that it does not exist.
        let cwd = working_directory(self).ok();
        Overrides { profile: self.profile.clone(), values, cwd, strict: self.strict_config, ..Overrides::default() }
    }
}

impl Args {
    /// The whole command line with all options.
    pub(crate) fn whole() -> clap::Command {
        lazy::at_once(Self::outline)
    }

    /// The command line with its commands, whose options are built when they are parsed.
    fn outline() -> clap::Command {
        lazy::with_own_repeated(Self::command())
    }
}

/// Options of the demo.
#[derive(Debug, ClapArgs)]
pub(crate) struct DemoArgs {
    /// Show everything at once instead of at the pace of a model
    #[arg(long)]
    pub(crate) fast: bool,
    /// Keep the temporary folder and print its path
    #[arg(long)]
    pub(crate) keep: bool,
    /// Show an agent that starts three others
    #[arg(long)]
    pub(crate) agents: bool,
    /// Show this many servers that share a database, one of which is killed; needs PostgreSQL
    #[cfg(feature = "postgres")]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=5), conflicts_with_all = ["agents", "fast"])]
    pub(crate) servers: Option<u8>,
}

#[cfg(test)]
mod tests;
