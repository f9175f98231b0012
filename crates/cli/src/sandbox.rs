//! `codex sandbox`: runs a command in the sandbox of the model's commands, or explains what that sandbox enforces.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use codex_config::{Config, Env, Home, Runner};
use codex_sandbox::{Confinement, Exit, Findings, Launch, Names, Profile, SandboxContext, SpawnError, Stdio};
use codex_wire::policy::{SandboxMode, SandboxPolicy};

use crate::args::{ConfinedArgs, SandboxArgs, SandboxForm, Shared};
use crate::console;
use crate::failure::{self, ErrorWithHint};
use crate::proto::working_directory;

/// The time limit of a command that this program runs for itself.
const READ_ONLY_TIME: Duration = Duration::from_secs(10);

/// Runs the command, or explains.
pub(crate) fn run(shared: &Shared, args: &SandboxArgs) -> anyhow::Result<ExitCode> {
    match &args.form {
        Some(SandboxForm::Explain(confined)) => explain(shared, confined),
        Some(SandboxForm::Linux(confined)) => linux(shared, confined),
        Some(SandboxForm::Macos(confined)) => macos(shared, confined),
        None => launch(shared, &args.confined),
    }
}

/// Runs the command, on Linux.
pub(crate) fn linux(shared: &Shared, args: &ConfinedArgs) -> anyhow::Result<ExitCode> {
    if cfg!(target_os = "linux") { launch(shared, args) } else { bail!("the Linux sandbox is only available on Linux") }
}

/// Runs the command, on macOS.
pub(crate) fn macos(shared: &Shared, args: &ConfinedArgs) -> anyhow::Result<ExitCode> {
    if cfg!(target_os = "macos") { launch(shared, args) } else { bail!("the macOS sandbox is only available on macOS") }
}

/// Runs a command of this program in a read-only sandbox. Returns its exit status, or `None` after ten seconds.
pub(crate) fn run_read_only(
    home: &Home,
    env: Vec<(OsString, OsString)>,
    cwd: &Path,
    argv: Vec<OsString>,
) -> anyhow::Result<Option<i32>> {
    let profile = Profile::new(&SandboxPolicy::ReadOnly, cwd, &SandboxContext::of(home.path(), &env));
    let launch = Launch {
        argv,
        cwd: cwd.to_owned(),
        env,
        confinement: Confinement::from(profile),
        stdio: Stdio::Inherit,
        most_processes: None,
        most_memory: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut running = codex_sandbox::spawn(launch)?;
        let ended = tokio::time::timeout(READ_ONLY_TIME, running.wait()).await;
        Ok(ended.ok().map(Exit::shell_code))
    })
}

/// The restrictions of a command here.
struct Confined {
    policy: SandboxPolicy,
    profile: Option<Profile>,
    cwd: std::path::PathBuf,
    env: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    most_processes: u32,
    most_memory: Option<u64>,
}

fn confined(shared: &Shared, args: &ConfinedArgs) -> anyhow::Result<Confined> {
    let env = Env::process();
    let home = Home::find(&env)?;
    let config = Config::load(&home, &env, &shared.overrides())?;
    let policy =
        if args.full_auto { config.sandbox.policy_of(SandboxMode::WorkspaceWrite) } else { config.sandbox_policy() };
    let cwd = working_directory(shared)?;
    let variables = config.shell_environment.apply(std::env::vars_os(), Runner::Client);
    let names = Names::new(&config.sandbox.protected_names, &config.sandbox.unprotected_names);
    let named_files = config.named_files(&cwd);
    let sandbox_context = SandboxContext { names, named_files, ..SandboxContext::of(home.path(), &variables) };
    let profile = Profile::new(&policy, &cwd, &sandbox_context);
    let codex_config::SandboxConfig { most_processes, most_memory, .. } = config.sandbox;
    Ok(Confined { policy, profile, cwd, env: variables, most_processes, most_memory })
}

fn launch(shared: &Shared, args: &ConfinedArgs) -> anyhow::Result<ExitCode> {
    if args.command.is_empty() {
        let hint = "put it after `--`, as in `codex sandbox -- ls`".to_owned();
        return Err(ErrorWithHint { what: "no command given".to_owned(), hint }.into());
    }
    let Confined { profile, cwd, env, most_processes, most_memory, .. } = confined(shared, args)?;
    if let Some(why) = codex_sandbox::unenforced_memory_limit(most_memory) {
        failure::warn(&format!("`limits.memory` is not enforced: {why}"));
    }
    let launch = Launch {
        argv: args.command.clone(),
        cwd,
        env,
        confinement: Confinement::from(profile),
        stdio: Stdio::Inherit,
        most_processes: Some(most_processes),
        most_memory,
    };
    run_confined(launch)
}

/// Runs a command to its end, and exits with its status.
pub(crate) fn run_confined(launch: Launch) -> anyhow::Result<ExitCode> {
    let findings = match &launch.confinement {
        Confinement::Policy(profile) => profile.findings().clone(),
        Confinement::None => Findings::default(),
    };
    let cwd = launch.cwd.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        let mut running = codex_sandbox::spawn(launch)?;
        let exit = running.wait().await;
        if let Some(reason) = codex_sandbox::why_ended(&running) {
            failure::warn(reason.trim());
        }
        codex_sandbox::cleanup_done().await;
        Ok(exit)
    });
    let report = findings.take();
    for warning in report.warning().into_iter().chain(report.notice(&cwd)) {
        failure::warn(&warning);
    }
    match ended {
        Ok(exit) => Ok(ExitCode::from(u8::try_from(exit.shell_code()).unwrap_or(u8::MAX))),
        // The exit statuses of shells and `env` for a program that does not run.
        Err(error @ SpawnError::NoSuchProgram { .. }) => Ok(not_run(error, 127)),
        Err(error @ SpawnError::Execute { .. }) => Ok(not_run(error, 126)),
        Err(error) => Err(error.into()),
    }
}

fn not_run(error: SpawnError, status: u8) -> ExitCode {
    failure::say(&error.into());
    ExitCode::from(status)
}

fn explain(shared: &Shared, args: &ConfinedArgs) -> anyhow::Result<ExitCode> {
    let Confined { policy, profile, .. } = confined(shared, args)?;
    let mut stdout = console::out();
    if let Some(profile) = profile {
        write!(stdout, "{}", codex_sandbox::explain(&profile, codex_sandbox::level()))?;
    } else {
        let policy = serde_json::to_value(&policy).context("could not describe the policy")?;
        let name = policy.get("type").and_then(serde_json::Value::as_str).unwrap_or_default();
        writeln!(stdout, "Not sandboxed: the sandbox mode is {name}.")?;
    }
    Ok(ExitCode::SUCCESS)
}
