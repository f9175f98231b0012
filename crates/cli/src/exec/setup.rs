//! Turns the command line into a thread that can start.

use std::path::Path;

use anyhow::bail;
use codex_config::{Config, Env, Home, Origin, TrustLevel};
use codex_console::config_warnings;
use codex_engine::Setup;
use codex_log::history::ForkPoint;
use codex_log::store::ThreadStore;
use codex_store::locate;
use codex_thread::{ClientAdditions, ClientProfile, ExplicitOverrides, InitialHistory};
use codex_wire::ids::ThreadId;
use codex_wire::policy::{AskForApproval, SandboxMode};
use codex_wire::rollout::SessionSource;

use super::args::{ExecArgs, ExecForm, ExecOptions, LocalProvider, ThreadArgs};
use crate::args::Shared;
use crate::chat::trust;
use crate::failure::ErrorWithHint;
use crate::local::{self, LocalRequest};
use crate::proto::working_directory;
use crate::single_thread::{self, FrontEnd};

/// The originator of this command's threads unless the caller sets another.
const ORIGINATOR: &str = "codex_exec";

pub(crate) fn setup(shared: &Shared, args: &ExecArgs, env: &Env) -> anyhow::Result<Setup> {
    let home = Home::find(env)?;
    let cwd = working_directory(shared)?;
    let config = configure(shared, &args.options, &home, env, &cwd)?;
    if !args.options.skip_git_repo_check && !args.options.dangerously_bypass_approvals_and_sandbox {
        check_folder(&cwd, &config)?;
    }
    let front_end = FrontEnd { originator: ORIGINATOR, source: SessionSource::Exec, profile: ClientProfile::EXEC };
    let setup = single_thread::setup(front_end, home, config, cwd, env)?;
    // An error that prevents the run is printed alone.
    config_warnings::tell(&setup.home, env, &shared.overrides())?;
    let initial_history = initial_history(args, &setup.config, &*setup.store, &setup.cwd)?;
    let initial_history = if args.options.storage.ephemeral {
        InitialHistory::Unsaved(Box::new(initial_history))
    } else {
        initial_history
    };
    let additions =
        ClientAdditions { thread_source: args.options.storage.thread_source.clone(), ..ClientAdditions::default() };
    Ok(Setup { initial_history, additions, ..setup })
}

fn configure(shared: &Shared, options: &ExecOptions, home: &Home, env: &Env, cwd: &Path) -> anyhow::Result<Config> {
    let mut overrides = shared.overrides();
    let mut set = |key: &str, value: &str| overrides.values.push(format!("{key}={}", serde_json::Value::from(value)));
    if let Some(model) = &options.model {
        set("model", model);
    }
    let sandbox = options.sandbox.or(options.full_auto.then_some(SandboxMode::WorkspaceWrite));
    let bypass = options.dangerously_bypass_approvals_and_sandbox.then_some(SandboxMode::DangerFullAccess);
    if let Some(mode) = bypass.or(sandbox) {
        set("sandbox_mode", mode.as_str());
    }
    if options.oss || options.local_provider.is_some() {
        let request =
            LocalRequest { server: options.local_provider.map(LocalProvider::id), model: options.model.as_deref() };
        let chosen = local::choose(request, home, env, &overrides)?;
        overrides.values.extend(chosen);
    }
    let mut config = Config::load(home, env, &overrides)?;
    config.sandbox.workspace_write.writable_roots.extend(options.add_dir.iter().map(|dir| cwd.join(dir)));
    if config.sandbox.mode.is_none() && trust::level(&config, &trust::project(cwd)) == Some(TrustLevel::Trusted) {
        config.sandbox.mode = Some(SandboxMode::WorkspaceWrite);
    }
    let is_set_here = is_from_here(&config, "approval_policy");
    if bypass.is_some() || (options.approvals.is_none() && !is_set_here) {
        config.approval_policy = Some(AskForApproval::Never);
    }
    Ok(config)
}

/// Selects a local server, and its usual model unless another is named, without asking the server.
pub(crate) fn use_local(server: LocalProvider, names_model: bool, set: &mut impl FnMut(&str, &str)) {
    let id = server.id();
    set("model_provider", id);
    if !names_model {
        set("model", codex_config::default_model(id));
    }
}

/// Whether a value was given on the command line, so that it overrides that of a resumed thread.
pub(crate) fn is_from_here(config: &Config, key: &str) -> bool {
    config.tree.get(&[key]).is_some_and(|node| matches!(node.origin, Origin::Override(_) | Origin::Flag(_)))
}

/// A model may change files only where changes can be undone, or where the user allows it.
fn check_folder(cwd: &Path, config: &Config) -> anyhow::Result<()> {
    let is_trusted = |folder: &Path| config.projects.get(folder) == Some(&TrustLevel::Trusted);
    if cwd.ancestors().any(|folder| is_trusted(folder) || codex_files::is_checkout(folder)) {
        return Ok(());
    }
    // Scripts search for this sentence.
    let what = "Not inside a trusted directory and --skip-git-repo-check was not specified.".to_owned();
    let folder = cwd.display();
    let hint = format!("{folder} is not inside a trusted git repository; use --skip-git-repo-check to run anyway");
    Err(ErrorWithHint { what, hint }.into())
}

fn initial_history(
    args: &ExecArgs,
    config: &Config,
    store: &dyn ThreadStore,
    cwd: &Path,
) -> anyhow::Result<InitialHistory> {
    let explicit = ExplicitOverrides {
        // The caller is in this folder now, and has chosen who answers.
        cwd: true,
        approval_policy: true,
        model: is_from_here(config, "model"),
        sandbox_policy: is_from_here(config, "sandbox_mode") || config.profile.is_some(),
    };
    match &args.form {
        None | Some(ExecForm::Review(_)) => Ok(InitialHistory::New),
        Some(ExecForm::Resume(thread)) => Ok(InitialHistory::Resumed { thread: find(thread, store, cwd)?, explicit }),
        Some(ExecForm::Fork(thread)) => {
            Ok(InitialHistory::Forked { thread: find(thread, store, cwd)?, point: ForkPoint::End, explicit })
        }
    }
}

fn find(args: &ThreadArgs, store: &dyn ThreadStore, cwd: &Path) -> anyhow::Result<ThreadId> {
    if args.last {
        let folder = (!args.all).then_some(cwd);
        return Ok(locate::newest(store, folder)?.id);
    }
    let Some(thread) = &args.thread else { bail!("no thread given") };
    Ok(locate::active(store, thread)?)
}
