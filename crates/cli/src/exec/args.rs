//! The command line of `codex exec`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use codex_config::BudgetConfig;
use codex_wire::policy::SandboxMode;

use crate::app_server::args::EmulatedRelease;
use crate::args::TopReviewArgs;

/// Options of `exec`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Exit status: 0 success, 1 the turn failed or could not start, 2 invalid command line, 3 an approval was \
    needed and nobody could give it, 4 a budget was exhausted, 124 timed out, 130 interrupted."
)]
pub(crate) struct ExecArgs {
    /// Subcommand instead of a new thread
    #[command(subcommand)]
    pub(crate) form: Option<ExecForm>,
    #[command(flatten)]
    pub(crate) options: ExecOptions,
    #[command(flatten)]
    pub(crate) pictures: ImageArgs,
    /// Prompt; read from standard input if omitted or `-`
    pub(crate) prompt: Option<String>,
}

impl ExecArgs {
    /// A review.
    pub(crate) fn review(TopReviewArgs { options, review }: TopReviewArgs) -> Self {
        Self { form: Some(ExecForm::Review(review)), options, pictures: ImageArgs::default(), prompt: None }
    }
}

/// Pictures. They are taken on both sides of a subcommand, so every form has its own list.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct ImageArgs {
    /// Image to attach to the prompt; may be repeated
    #[arg(short = 'i', long = "image", value_name = "FILE")]
    pub(crate) images: Vec<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExecForm {
    /// Resume a thread
    Resume(ThreadArgs),
    /// Fork a thread and continue in the copy; the original is unchanged
    Fork(ThreadArgs),
    /// Review changes; no file is modified
    Review(ReviewArgs),
}

/// A thread and what to say in it.
#[derive(Debug, ClapArgs)]
pub(crate) struct ThreadArgs {
    /// Thread id (or its beginning) or name; with --last, the prompt
    #[arg(value_name = "THREAD", required_unless_present = "last")]
    pub(crate) thread: Option<String>,
    /// Prompt; read from standard input if omitted or `-`
    pub(crate) prompt: Option<String>,
    /// Use the most recently updated thread of this folder
    #[arg(long)]
    pub(crate) last: bool,
    /// With --last, include threads of all folders
    #[arg(long, requires = "last")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) pictures: ImageArgs,
}

/// The target of a review.
#[derive(Debug, ClapArgs)]
pub(crate) struct ReviewArgs {
    /// Review uncommitted changes
    #[arg(long, group = "target")]
    pub(crate) uncommitted: bool,
    /// Review the changes of this branch against BRANCH
    #[arg(long, value_name = "BRANCH", group = "target")]
    pub(crate) base: Option<String>,
    /// Review a commit
    #[arg(long, value_name = "SHA", group = "target")]
    pub(crate) commit: Option<String>,
    /// Title of the commit, for display
    #[arg(long, requires = "commit")]
    pub(crate) title: Option<String>,
    /// Custom review instructions; `-` reads them from standard input
    #[arg(group = "target")]
    pub(crate) prompt: Option<String>,
}

/// Options that all forms take.
#[derive(Debug, Default, ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct ExecOptions {
    /// Print events as JSON Lines instead of human-readable text
    #[arg(long, alias = "experimental-json", global = true)]
    pub(crate) json: bool,
    /// Model to use
    #[arg(short, long, value_name = "MODEL", global = true)]
    pub(crate) model: Option<String>,
    /// Use a local model server
    #[arg(long, global = true)]
    pub(crate) oss: bool,
    /// Local server to use
    #[arg(long, value_name = "SERVER", value_enum, global = true)]
    pub(crate) local_provider: Option<LocalProvider>,
    /// Sandbox mode for commands: read-only, workspace-write or danger-full-access
    #[arg(short, long, value_name = "MODE", value_parser = SandboxMode::from_str, global = true)]
    pub(crate) sandbox: Option<SandboxMode>,
    /// Same as --sandbox workspace-write
    #[arg(long, global = true)]
    pub(crate) full_auto: bool,
    /// Skip all approvals and run without a sandbox. Only for environments that are sandboxed externally
    #[arg(long, alias = "yolo", global = true, conflicts_with_all = ["full_auto", "approvals"])]
    pub(crate) dangerously_bypass_approvals_and_sandbox: bool,
    /// Allow writing to this folder too; may be repeated
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Allow running outside a git repository
    #[arg(long, global = true)]
    pub(crate) skip_git_repo_check: bool,
    /// JSON Schema file that the last message must follow
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) output_schema: Option<PathBuf>,
    /// Write the last message to this file
    #[arg(short = 'o', long, value_name = "FILE", global = true)]
    pub(crate) output_last_message: Option<PathBuf>,
    /// When to use colours
    #[arg(long, value_enum, default_value_t, global = true)]
    pub(crate) color: Color,
    /// With --json, match this release's events where releases differ
    #[arg(long, value_enum, value_name = "RELEASE", global = true)]
    pub(crate) emulate: Option<EmulatedRelease>,
    #[command(flatten)]
    pub(crate) storage: StorageOptions,
    #[command(flatten)]
    pub(crate) limits: LimitOptions,
    /// Who answers approval requests: policy, deny, stdio or unix:PATH
    ///
    /// Without this option nothing is asked: the approval policy is `never`, and actions that are not allowed fail. With
    /// it the configured policy applies. `policy` ends the run with status 3 at the first request. `deny` declines every
    /// request. `stdio` prints each request as an event of --json and reads answers from standard input; `unix:PATH`
    /// does both over a socket. An answer looks like {"id":"…","decision":"approved"}. One with "command" instead of
    /// "id" is kept for that exact command; one with neither answers the next request.
    #[arg(long, value_name = "WHO", value_parser = Approvals::from_str, global = true)]
    pub(crate) approvals: Option<Approvals>,
}

/// The time that a run may take, and the most that it may use with its child agents.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct LimitOptions {
    /// Time limit (30, 90s, 5m, 1h)
    #[arg(long, value_name = "TIME", value_parser = duration, global = true)]
    pub(crate) timeout: Option<Duration>,
    /// Time limit without any activity
    #[arg(long, value_name = "TIME", value_parser = duration, global = true)]
    pub(crate) idle_timeout: Option<Duration>,
    /// Stop after using this many tokens, input and output together
    #[arg(long, value_name = "COUNT", global = true)]
    pub(crate) max_tokens: Option<i64>,
    /// Stop after this many requests to the model
    #[arg(long, value_name = "COUNT", global = true)]
    pub(crate) max_requests: Option<u64>,
    /// Stop after this many commands of the model
    #[arg(long, value_name = "COUNT", global = true)]
    pub(crate) max_commands: Option<u64>,
    /// Stop after spending this much, by the prices in config.toml
    #[arg(long, value_name = "AMOUNT", value_parser = amount, global = true)]
    pub(crate) max_cost: Option<f64>,
}

impl LimitOptions {
    /// The budget of the run.
    pub(crate) fn budget(&self) -> BudgetConfig {
        let Self { max_tokens: tokens, max_requests: requests, max_commands: commands, max_cost: cost, .. } = *self;
        BudgetConfig { tokens, cost, seconds: None, commands, requests }
    }
}

/// Options of the stored thread.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct StorageOptions {
    /// Do not save the thread
    #[arg(long, global = true)]
    pub(crate) ephemeral: bool,
    /// Word for the origin of a new thread, stored with it and shown to clients
    #[arg(long, value_name = "WORD", value_parser = thread_source, global = true)]
    pub(crate) thread_source: Option<String>,
    /// Accepted for compatibility; ignored
    #[arg(long, value_name = "PROGRAM", num_args = 1, hide = true, global = true)]
    pub(crate) cyber_access_program: Option<String>,
}

/// A server of models on this machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LocalProvider {
    /// Ollama
    #[default]
    Ollama,
    /// LM Studio
    Lmstudio,
    /// llama.cpp (llama-server)
    Llamacpp,
    /// vLLM
    Vllm,
}

impl LocalProvider {
    /// Its key in `[model_providers]`.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Ollama => "ollama",
            Self::Lmstudio => "lmstudio",
            Self::Llamacpp => "llamacpp",
            Self::Vllm => "vllm",
        }
    }
}

/// Whether to colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// Even when output is not a terminal
    Always,
    /// Never
    Never,
    /// When output is a terminal
    #[default]
    Auto,
}

/// The source of answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Approvals {
    /// Nobody: a question ends the run.
    Policy,
    /// Nobody: the answer is no.
    Deny,
    /// The parent process.
    Stdio,
    /// The program that listens there.
    Unix(PathBuf),
}

impl FromStr for Approvals {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("unix:")) {
            ("policy", _) => Ok(Self::Policy),
            ("deny", _) => Ok(Self::Deny),
            ("stdio", _) => Ok(Self::Stdio),
            (_, Some(path)) if !path.is_empty() => Ok(Self::Unix(path.into())),
            _ => Err("expected policy, deny, stdio or unix:PATH".to_owned()),
        }
    }
}

/// Reads the word for the origin of a thread.
fn thread_source(text: &str) -> Result<String, String> {
    let word = text.trim();
    if word.is_empty() || word.len() > 128 || word.chars().any(char::is_control) {
        return Err("expected 1 to 128 bytes without control characters".to_owned());
    }
    Ok(word.to_owned())
}

/// Reads an amount of money.
fn amount(text: &str) -> Result<f64, String> {
    let amount = text.parse().ok().filter(|amount: &f64| amount.is_finite() && *amount >= 0.0);
    amount.ok_or_else(|| format!("`{text}` is not an amount; use for example 0.5 or 2"))
}

/// Reads a duration: a number of seconds, or a number with ms, s, m or h.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration; write 30, 90s, 5m or 1h");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "" | "s" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err(wrong()),
    };
    let duration = Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?;
    if duration.is_zero() { Err("a duration must be longer than nothing".to_owned()) } else { Ok(duration) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, seconds) in [("30", 30.0), ("1.5s", 1.5), ("5m", 300.0), ("1h", 3600.0), ("250ms", 0.25)] {
            assert_eq!(duration(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
        for text in ["", "m", "-1", "1d", "0", "nan", "1e400"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn somebody_answers() {
        assert_eq!("unix:/run/a".parse(), Ok(Approvals::Unix("/run/a".into())));
        assert_eq!("stdio".parse(), Ok(Approvals::Stdio));
        assert!("unix:".parse::<Approvals>().is_err());
        assert!("me".parse::<Approvals>().is_err());
    }
}
