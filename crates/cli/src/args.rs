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
use crate::proto::working_directory;
use crate::threads::args::{DeleteArgs, ThreadWord, ThreadsArgs};

/// Where help lists the options that all commands take, so that those of a command stand together.
const FOR_ALL: &str = "Options of all commands";

/// A coding agent: a chat in the terminal, and an engine that other programs drive.
///
/// Without a command it chats. The first time in a project it asks whether you trust it. /help shows what the chat can do.
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

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Go on with a thread in the chat
    ///
    /// Without a thread, those that were written last in this folder are shown to choose from.
    Resume(Lazy<ResumeArgs>),
    /// Go on with a copy of a thread in the chat; the thread itself stays as it is
    Fork(Lazy<ResumeArgs>),
    /// Do one task without a person, for scripts and programs
    ///
    /// Prints the last message on standard output and what happens meanwhile on standard error, or with --json all
    /// events on standard output. Nobody is asked: what the sandbox does not allow fails.
    #[command(visible_alias = "e")]
    Exec(Lazy<ExecArgs>),
    /// Have changes reviewed, without a person; the same as `exec review`
    Review(Lazy<TopReviewArgs>),
    /// List, search, show, export and tidy up threads
    Threads(Lazy<ThreadsArgs>),
    /// Put a thread away; the same as `threads archive`
    Archive(Lazy<ThreadWord>),
    /// Take a thread back that was put away; the same as `threads unarchive`
    Unarchive(Lazy<ThreadWord>),
    /// Delete a thread for good; the same as `threads delete`
    Delete(Lazy<DeleteArgs>),
    /// Play a recorded thread again, without a model
    ///
    /// Prints what a client would have seen, line by line, for authors of clients and for bug reports.
    Replay(Lazy<ReplayArgs>),
    /// Serve one thread over stdin and stdout, in JSON lines of submissions and events
    ///
    /// Each line in is a submission with an id and an op, each line out an event with an id and a message. The first
    /// line out is `session_configured`. The op `shutdown`, or the end of the input, ends the program.
    Proto(Lazy<NoArgs>),
    /// Serve many threads over stdin and stdout or over sockets, in JSON-RPC messages
    ///
    /// The protocol of editors and SDKs: `initialize`, then `thread/start`, `turn/start` and the rest. The end of the
    /// input ends the program; running turns are interrupted and everything is written. With --listen many clients share
    /// one server, and SIGTERM ends it.
    AppServer(Lazy<AppServerArgs>),
    /// Show a turn of the agent, with no key and no network
    ///
    /// A scripted model works on a small project in a temporary folder. Everything else is the real engine.
    Demo(Lazy<DemoArgs>),
    /// Run a command in the sandbox that the model's commands run in
    ///
    /// Without --full-auto the policy is the one of config.toml, read-only by default. The exit status is that of the
    /// command.
    #[command(args_conflicts_with_subcommands = true)]
    Sandbox(Lazy<SandboxArgs>),
    /// Ask what the rules say about a command
    Execpolicy(Lazy<ExecpolicyArgs>),
    /// Make the changes of a thread's last turn again in this folder, with `git apply`
    ///
    /// For another checkout of the same project. Without a thread it is the one that was written last.
    #[command(visible_alias = "a")]
    Apply(Lazy<ApplyArgs>),
    /// Store the key that requests carry, or say how they are authorised
    Login(Lazy<LoginArgs>),
    /// Forget the login
    Logout(Lazy<NoArgs>),
    /// List and set switches of the configuration
    Features(Lazy<FeaturesArgs>),
    /// Look for what is wrong with this installation, and say what to do about it
    Doctor(Lazy<DoctorArgs>),
    /// Look at what a model would be sent
    Debug(Lazy<DebugArgs>),
    /// Print the manual page, or write those of all commands to a folder
    ///
    /// To read it: codex man | man -l -
    Man(Lazy<ManArgs>),
    /// Print a script that completes this command line in a shell
    ///
    /// For bash: source <(codex completion bash)
    Completion(Lazy<CompletionArgs>),
}

/// Options of a command that has none of its own.
#[derive(Debug, ClapArgs)]
pub(crate) struct NoArgs {}

/// Options of `man`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ManArgs {
    /// Write a page for each command there
    #[arg(long, value_name = "DIR")]
    pub(crate) to: Option<PathBuf>,
}

/// Options of `completion`.
#[derive(Debug, ClapArgs)]
pub(crate) struct CompletionArgs {
    /// For which shell
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
    /// The file of a thread, or the id or name of one
    pub(crate) rollout: PathBuf,
    /// In which protocol
    #[arg(long, value_enum, default_value_t)]
    pub(crate) dialect: ReplayDialect,
    /// How fast
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

/// How fast a thread can be played.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ReplaySpeed {
    /// With the pauses that there were, up to a minute each
    Original,
    /// All at once
    #[default]
    Instant,
}

/// Options of `apply`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ApplyArgs {
    /// The id or the name of the thread
    pub(crate) thread: Option<String>,
    /// Print the changes instead
    #[arg(long)]
    pub(crate) print: bool,
}

/// Options of `login`.
#[derive(Debug, ClapArgs)]
pub(crate) struct LoginArgs {
    /// Read a key from standard input and store it
    #[arg(long)]
    pub(crate) with_api_key: bool,
    /// `status`
    #[command(subcommand)]
    pub(crate) form: Option<LoginForm>,
}

/// The forms of `login`.
#[derive(Debug, Subcommand)]
pub(crate) enum LoginForm {
    /// Say how requests are authorised; the exit status is 1 if they are not
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
    /// List all switches and how they are set
    List,
    /// Switch a feature on, in config.toml
    Enable {
        /// Its name
        name: String,
    },
    /// Switch a feature off, in config.toml
    Disable {
        /// Its name
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
    /// Run a command in the sandbox of Linux; `codex sandbox linux` under its name in other releases
    #[command(hide = true)]
    Landlock(ConfinedArgs),
    /// Run a command in the sandbox of macOS; `codex sandbox macos` under its name in other releases
    #[command(hide = true)]
    Seatbelt(ConfinedArgs),
    /// Print the request that would be sent to the model; nothing is sent
    Prompt {
        /// What the user would say
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
    /// Run a command in the sandbox of Linux
    #[command(alias = "landlock")]
    Linux(ConfinedArgs),
    /// Run a command in the sandbox of macOS
    #[command(alias = "seatbelt")]
    Macos(ConfinedArgs),
    /// Say what the sandbox enforces here and what it lets a command write, without running anything
    Explain(ConfinedArgs),
}

/// A command and how it is confined.
#[derive(Debug, ClapArgs)]
pub(crate) struct ConfinedArgs {
    /// Let the command write to the working directory and the temporary folders
    #[arg(long)]
    pub(crate) full_auto: bool,
    /// The command, after a --
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
    /// Say whether the rules allow, ask about or forbid a command, and which rule it was
    #[command(visible_alias = "why")]
    Check(CheckArgs),
}

/// Options of `execpolicy check`.
#[derive(Debug, ClapArgs)]
pub(crate) struct CheckArgs {
    /// Read this rules file; repeat for more. Without any, those of the home folder
    #[arg(short, long, value_name = "FILE")]
    pub(crate) rules: Vec<PathBuf>,
    /// Print JSON, also in a terminal; programs that read the output get it anyway
    #[arg(long)]
    pub(crate) json: bool,
    /// Print JSON on several lines
    #[arg(long)]
    pub(crate) pretty: bool,
    /// The command
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Options that all commands take.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct Shared {
    /// What was given anywhere on the command line, in order.
    #[arg(skip)]
    pub(crate) repeated: Repeated,
    /// Use a profile of config.toml
    #[arg(short, long, value_name = "NAME", global = true, help_heading = FOR_ALL)]
    pub(crate) profile: Option<String>,
    /// Say more about what goes wrong
    #[arg(short, long, global = true, help_heading = FOR_ALL)]
    pub(crate) verbose: bool,
    /// Refuse to start when a key of the configuration has no effect
    #[arg(long, global = true, help_heading = FOR_ALL)]
    pub(crate) strict_config: bool,
    /// Work in this folder instead of the current one
    #[arg(short = 'C', long = "cd", value_name = "DIR", global = true, help_heading = FOR_ALL)]
    pub(crate) cwd: Option<PathBuf>,
}

/// Options that all commands take several times. Those before and after a subcommand count alike, which is not so with
/// `global`: there the last place where one is given wins.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct Repeated {
    /// Override a value of config.toml; repeat for more
    ///
    /// The key is a dotted path. The value is TOML, or a string if it is not: -c model=o3 -c 'features.x=true'
    #[arg(short = 'c', long = "config", value_name = "KEY=VALUE", help_heading = FOR_ALL)]
    overrides: Vec<String>,
    /// Switch a feature on for this run; repeat for more
    #[arg(long, value_name = "FEATURE", help_heading = FOR_ALL)]
    enable: Vec<String>,
    /// Switch a feature off for this run; repeat for more
    #[arg(long, value_name = "FEATURE", help_heading = FOR_ALL)]
    disable: Vec<String>,
}

impl Shared {
    /// The layer of the configuration that the command line gives.
    pub(crate) fn overrides(&self) -> Overrides {
        let Repeated { overrides, enable, disable } = &self.repeated;
        let mut values = overrides.clone();
        values.extend(enable.iter().map(|name| format!("features.{name}=true")));
        values.extend(disable.iter().map(|name| format!("features.{name}=false")));
        // A folder that does not exist is told by those who work in it.
        let cwd = working_directory(self).ok();
        Overrides { profile: self.profile.clone(), values, cwd, strict: self.strict_config, ..Overrides::default() }
    }
}

impl Args {
    /// The whole command line, for those who look at all of it.
    pub(crate) fn whole() -> clap::Command {
        lazy::at_once(Self::outline)
    }

    /// The command line with the commands alone, which are described when they are met.
    fn outline() -> clap::Command {
        lazy::with_own_repeated(Self::command())
    }
}

/// Options of the demo.
#[derive(Debug, ClapArgs)]
pub(crate) struct DemoArgs {
    /// Show everything at once instead of at the speed of a model
    #[arg(long)]
    pub(crate) fast: bool,
    /// Keep the temporary folder and say where it is
    #[arg(long)]
    pub(crate) keep: bool,
}

#[cfg(test)]
mod tests;
