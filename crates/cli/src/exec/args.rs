//! The command line of `codex exec`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use codex_wire::policy::SandboxMode;

use crate::app_server::args::Emulated;
use crate::args::TopReviewArgs;

/// Options of `exec`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Exit status: 0 done, 1 the turn failed or could not start, 2 the command line is wrong, \
    3 an approval was needed that nobody could give, 4 a budget was used up, 124 a timeout, 130 interrupted.")]
pub(crate) struct ExecArgs {
    /// Which thread, if not a new one
    #[command(subcommand)]
    pub(crate) form: Option<ExecForm>,
    #[command(flatten)]
    pub(crate) options: ExecOptions,
    #[command(flatten)]
    pub(crate) pictures: Pictures,
    /// What to do; `-` reads it from standard input, as does leaving it out
    pub(crate) prompt: Option<String>,
}

impl ExecArgs {
    /// A review.
    pub(crate) fn review(TopReviewArgs { options, review }: TopReviewArgs) -> Self {
        Self { form: Some(ExecForm::Review(review)), options, pictures: Pictures::default(), prompt: None }
    }
}

/// Pictures. They are taken on both sides of a subcommand, so every form has its own list.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct Pictures {
    /// Show the model this picture; repeat for more
    #[arg(short = 'i', long = "image", value_name = "FILE")]
    pub(crate) images: Vec<PathBuf>,
}

/// Which thread.
#[derive(Debug, Subcommand)]
pub(crate) enum ExecForm {
    /// Go on with a thread
    Resume(ThreadArgs),
    /// Go on with a copy of a thread, which stays as it is
    Fork(ThreadArgs),
    /// Have changes reviewed; nothing is changed
    Review(ReviewArgs),
}

/// A thread and what to say in it.
#[derive(Debug, ClapArgs)]
pub(crate) struct ThreadArgs {
    /// The id or the name of the thread; with --last, what to do
    #[arg(value_name = "THREAD", required_unless_present = "last")]
    pub(crate) thread: Option<String>,
    /// What to do; `-` reads it from standard input, as does leaving it out
    pub(crate) prompt: Option<String>,
    /// Take the thread that was written last in this folder
    #[arg(long)]
    pub(crate) last: bool,
    /// With --last, take threads of all folders into account
    #[arg(long, requires = "last")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) pictures: Pictures,
}

/// What to review.
#[derive(Debug, ClapArgs)]
pub(crate) struct ReviewArgs {
    /// Review what is not committed yet
    #[arg(long, group = "target")]
    pub(crate) uncommitted: bool,
    /// Review what this branch changes against that one
    #[arg(long, value_name = "BRANCH", group = "target")]
    pub(crate) base: Option<String>,
    /// Review a commit
    #[arg(long, value_name = "SHA", group = "target")]
    pub(crate) commit: Option<String>,
    /// The first line of that commit, for people
    #[arg(long, requires = "commit")]
    pub(crate) title: Option<String>,
    /// What to review, in words; `-` reads it from standard input
    #[arg(group = "target")]
    pub(crate) prompt: Option<String>,
}

/// Options that all forms take.
#[derive(Debug, Default, ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct ExecOptions {
    /// Print events as JSON lines instead of text for people
    #[arg(long, alias = "experimental-json", global = true)]
    pub(crate) json: bool,
    /// Ask this model
    #[arg(short, long, value_name = "MODEL", global = true)]
    pub(crate) model: Option<String>,
    /// Ask a model of a server on this machine
    #[arg(long, global = true)]
    pub(crate) oss: bool,
    /// Which server that is
    #[arg(long, value_name = "SERVER", value_enum, global = true)]
    pub(crate) local_provider: Option<LocalProvider>,
    /// What commands may touch: read-only, workspace-write or danger-full-access
    #[arg(short, long, value_name = "MODE", value_parser = SandboxMode::from_str, global = true)]
    pub(crate) sandbox: Option<SandboxMode>,
    /// The same as --sandbox workspace-write
    #[arg(long, global = true)]
    pub(crate) full_auto: bool,
    /// Run everything without sandbox and without asking. Only where something else confines this program
    #[arg(long, alias = "yolo", global = true, conflicts_with_all = ["full_auto", "approvals"])]
    pub(crate) dangerously_bypass_approvals_and_sandbox: bool,
    /// Let commands write to this folder too; repeat for more
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Work outside of a git repository too
    #[arg(long, global = true)]
    pub(crate) skip_git_repo_check: bool,
    /// The JSON schema that the last message must follow
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) output_schema: Option<PathBuf>,
    /// Write the last message to this file
    #[arg(short = 'o', long, value_name = "FILE", global = true)]
    pub(crate) output_last_message: Option<PathBuf>,
    /// Whether to colour text for people
    #[arg(long, value_enum, default_value_t, global = true)]
    pub(crate) color: Color,
    /// With --json, match this release's events where releases differ
    #[arg(long, value_enum, value_name = "RELEASE", global = true)]
    pub(crate) emulate: Option<Emulated>,
    /// Do not save the thread
    #[arg(long, global = true)]
    pub(crate) ephemeral: bool,
    /// Give up after this long (30, 90s, 5m, 1h)
    #[arg(long, value_name = "TIME", value_parser = duration, global = true)]
    pub(crate) timeout: Option<Duration>,
    /// Give up when nothing happens for this long
    #[arg(long, value_name = "TIME", value_parser = duration, global = true)]
    pub(crate) idle_timeout: Option<Duration>,
    /// Stop when more tokens than this were used, sent and received together
    #[arg(long, value_name = "COUNT", global = true)]
    pub(crate) max_tokens: Option<i64>,
    /// Stop when the model would have to be asked more often than this
    #[arg(long, value_name = "COUNT", global = true)]
    pub(crate) max_requests: Option<u64>,
    /// Stop when more than this was spent, by the prices in config.toml
    #[arg(long, value_name = "AMOUNT", value_parser = amount, global = true)]
    pub(crate) max_cost: Option<f64>,
    /// Who answers when the policy says that somebody is to be asked: policy, deny, stdio or unix:PATH
    ///
    /// Without it nobody is asked: the policy is `never`, and what is not allowed fails. With it the policy of the
    /// configuration is in force. `policy` ends the run with status 3 at the first question. `deny` says no to all.
    /// `stdio` prints each question as a line of --json and reads answers from standard input, `unix:PATH` does both
    /// over a socket: {"id":"…","decision":"approved"}. An answer with "command" instead of "id" is kept for that very
    /// command, one with neither is for the next question.
    #[arg(long, value_name = "WHO", value_parser = Approvals::from_str, global = true)]
    pub(crate) approvals: Option<Approvals>,
}

/// A server of models on this machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LocalProvider {
    /// Ollama
    #[default]
    Ollama,
    /// LM Studio
    Lmstudio,
}

/// Whether to colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// Also where nobody looks
    Always,
    /// Not at all
    Never,
    /// On a terminal
    #[default]
    Auto,
}

/// Who answers questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Approvals {
    /// Nobody: a question ends the run.
    Policy,
    /// Nobody: the answer is no.
    Deny,
    /// Whoever started this program.
    Stdio,
    /// Whoever listens there.
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

/// Reads an amount of money.
fn amount(text: &str) -> Result<f64, String> {
    let amount = text.parse().ok().filter(|amount: &f64| amount.is_finite() && *amount >= 0.0);
    amount.ok_or_else(|| format!("`{text}` is no amount; write 0.5 or 2"))
}

/// Reads a duration: a number of seconds, or a number with ms, s, m or h.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no duration; write 30, 90s, 5m or 1h");
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
