//! The setup of commands that run one thread without a host: `exec`, `proto`, `demo` and `debug prompt`.

use std::path::PathBuf;
use std::sync::Arc;

use codex_config::{BudgetConfig, Config, Env, Home};
use codex_engine::{Setup, connect};
use codex_thread::{ClientAdditions, ClientProfile, InitialHistory};
use codex_wire::rollout::SessionSource;

use crate::{apply_patch, host, thread_store};

/// The properties of a command that its threads record and follow.
pub(crate) struct FrontEnd {
    /// The name in requests to the provider, unless the environment sets another.
    pub(crate) originator: &'static str,
    pub(crate) source: SessionSource,
    pub(crate) profile: ClientProfile,
}

/// Builds the setup of a new thread, with the login, the MCP servers and the store of a home.
pub(crate) fn setup(front_end: FrontEnd, home: Home, config: Config, cwd: PathBuf, env: &Env) -> anyhow::Result<Setup> {
    home.ensure()?;
    let originator = host::originator(env, front_end.originator);
    Ok(Setup {
        model: connect(&config, &host::credentials(&home, &config, env), env, &originator)?,
        store: thread_store::open(&home, Some(&config), env)?,
        config: Arc::new(config),
        programs: apply_patch::install(&home),
        home,
        cwd,
        originator,
        source: front_end.source,
        shell: env.text("SHELL"),
        profile: front_end.profile,
        base_instructions: None,
        initial_history: InitialHistory::New,
        additions: ClientAdditions::default(),
        recent_bytes: 0,
        servers: Some(host::servers(env)),
        agents: None,
        run_budget: BudgetConfig::default(),
        requests: None,
        child: None,
    })
}
