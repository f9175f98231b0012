//! The program `codex-linux-sandbox` of other releases: this binary under another name, for callers with their own
//! policy.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Parser;
use codex_config::{Env, Home};
use codex_sandbox::{Confinement, Launch, Profile, SandboxContext, Stdio};
use codex_wire::policy::SandboxPolicy;

use crate::{failure, sandbox};

const NAME: &str = "codex-linux-sandbox";

/// Run a command in the Linux sandbox, under a policy given as JSON
#[derive(Debug, Parser)]
#[command(name = NAME, bin_name = NAME)]
struct LinuxSandboxArgs {
    /// Folder that the policy treats as the working directory; the command starts in the current one
    #[arg(long)]
    sandbox_policy_cwd: PathBuf,
    /// Sandbox policy, for example {"type":"read-only"}
    #[arg(long, value_parser = policy)]
    sandbox_policy: SandboxPolicy,
    /// Command to run, after `--`
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

fn policy(text: &str) -> Result<SandboxPolicy, serde_json::Error> {
    serde_json::from_str(text)
}

/// Whether the program was called by that name.
pub(crate) fn is_meant() -> bool {
    std::env::args_os().next().is_some_and(|name| Path::new(&name).file_name() == Some(OsStr::new(NAME)))
}

/// Runs the command, and exits with its status.
pub(crate) fn run() -> ExitCode {
    let args = LinuxSandboxArgs::try_parse().unwrap_or_else(|error| crate::misunderstood(&error));
    launch(args).unwrap_or_else(|error| failure::report(&error))
}

fn launch(args: LinuxSandboxArgs) -> anyhow::Result<ExitCode> {
    if args.command.is_empty() {
        bail!("no command given");
    }
    let home = Home::find(&Env::process())?;
    let env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let root = std::path::absolute(&args.sandbox_policy_cwd).context("--sandbox-policy-cwd")?;
    let profile = Profile::new(&args.sandbox_policy, &root, &SandboxContext::of(home.path(), &env));
    let cwd = std::env::current_dir().context("the current directory is gone")?;
    let confinement = Confinement::from(profile);
    sandbox::run_confined(Launch {
        argv: args.command,
        cwd,
        env,
        confinement,
        stdio: Stdio::Inherit,
        most_processes: None,
        most_memory: None,
    })
}
