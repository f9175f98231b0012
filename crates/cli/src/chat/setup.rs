//! Turns the command line into a server that can start, and the settings for threads.

use std::path::{Path, PathBuf};
use std::time::Duration;

use codex_config::{Config, ConfigSource, Env, Home, Overrides, TrustLevel};
use codex_dialects::ProtocolRelease;
use codex_server::app::Start;
use codex_wire::policy::{AskForApproval, SandboxMode};
use codex_wire::rollout::SessionSource;
use serde_json::{Map, Value};

use super::args::ChatOptions;
use super::trust;
use crate::args::Shared;
use crate::cluster::Cluster;
use crate::exec::args::LocalProvider;
use crate::exec::setup::{is_from_here, use_local};
use crate::host;
use crate::local::{self, LocalRequest};

/// The time between two deltas of an answer: less than the screen takes between two frames.
const DELTAS: Duration = Duration::from_millis(30);

#[derive(Debug, Clone)]
pub(crate) struct ChatEnvironment {
    pub(crate) env: Env,
    pub(crate) home: Home,
    pub(crate) cwd: PathBuf,
    pub(crate) overrides: Overrides,
}

pub(crate) struct Prepared {
    pub(crate) start: Start,
    pub(crate) config: Config,
    /// The settings from the command line, which override those of a resumed thread.
    pub(crate) named: Map<String, Value>,
    /// The servers that share its threads.
    pub(crate) cluster: Option<Cluster>,
}

impl ChatEnvironment {
    pub(crate) fn new(shared: &Shared, options: &ChatOptions, cwd: PathBuf) -> anyhow::Result<Self> {
        let env = Env::process();
        let home = Home::find(&env)?;
        let overrides = overrides(shared, options, &home, &env, &cwd)?;
        Ok(Self { env, home, cwd, overrides })
    }

    /// The user's configuration, before trust is applied.
    pub(crate) fn config(&self) -> anyhow::Result<Config> {
        Ok(Config::load(&self.home, &self.env, &self.overrides)?)
    }

    /// The parts of the chat in a trusted or untrusted project.
    pub(crate) fn prepare(self, level: Option<TrustLevel>) -> anyhow::Result<Prepared> {
        let own = self.config()?;
        let mut named = Map::new();
        let mut name = |key: &str, member: &str, value: Option<&str>| {
            if let Some(value) = value.filter(|_| is_from_here(&own, key)) {
                named.insert(member.to_owned(), value.into());
            }
        };
        name("model", "model", Some(&own.model.name));
        name("sandbox_mode", "sandbox", own.sandbox.mode.map(|mode| mode.as_str()));
        if let Some(policy) = own.approval_policy.filter(|_| is_from_here(&own, "approval_policy")) {
            named.insert("approvalPolicy".to_owned(), serde_json::to_value(policy)?);
        }
        let Self { env, home, cwd, mut overrides } = self;
        overrides.values.extend(trust::defaults(&own, level));
        let config = Config::load(&home, &env, &overrides)?;
        home.ensure()?;
        let source = ConfigSource::new(home, env, overrides);
        let (start, cluster) = host::start(source, cwd, SessionSource::Cli, 0)?;
        let start = Start { release: Some(ProtocolRelease::V077), delta_interval: Some(DELTAS), ..start };
        Ok(Prepared { start, config, named, cluster: cluster.map(Cluster::without_address) })
    }
}

fn overrides(shared: &Shared, options: &ChatOptions, home: &Home, env: &Env, cwd: &Path) -> anyhow::Result<Overrides> {
    let mut overrides = shared.overrides();
    overrides.values.extend(settings(options));
    if options.oss || options.local_provider.is_some() {
        let server = options.local_provider.map(LocalProvider::id);
        let request = LocalRequest { server, model: options.model.as_deref() };
        let chosen = local::choose(request, home, env, &overrides)?;
        overrides.values.extend(chosen);
    }
    if !options.add_dir.is_empty() {
        let mut roots = Config::load(home, env, &overrides)?.sandbox.workspace_write.writable_roots;
        roots.extend(options.add_dir.iter().map(|folder| cwd.join(folder)));
        let roots: Vec<Value> = roots.iter().map(|root| root.to_string_lossy().into()).collect();
        overrides.values.push(format!("sandbox_workspace_write.writable_roots={}", Value::from(roots)));
    }
    Ok(overrides)
}

/// Options as configuration values, without folders and images.
pub(crate) fn settings(options: &ChatOptions) -> Vec<String> {
    let mut values = Vec::new();
    let mut set = |key: &str, value: &str| values.push(format!("{key}={}", Value::from(value)));
    if let Some(model) = &options.model {
        set("model", model);
    }
    if options.oss || options.local_provider.is_some() {
        use_local(options.local_provider.unwrap_or_default(), options.model.is_some(), &mut set);
    }
    let (full, bypass) = (options.full_auto, options.dangerously_bypass_approvals_and_sandbox);
    let sandbox = options.sandbox.or(full.then_some(SandboxMode::WorkspaceWrite));
    let approval = options.ask_for_approval.or(full.then_some(AskForApproval::OnRequest));
    if let Some(mode) = if bypass { Some(SandboxMode::DangerFullAccess) } else { sandbox } {
        set("sandbox_mode", mode.as_str());
    }
    if let Some(policy) = if bypass { Some(AskForApproval::Never) } else { approval } {
        set("approval_policy", policy.as_str());
    }
    if options.search {
        values.push("web_search=\"live\"".to_owned());
    }
    values
}
