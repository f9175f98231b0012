//! The environment of calls: the state that a thread keeps for all of them, and what is determined once per turn.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use codex_config::{Config, Home, Runner};
use codex_log::Body;
use codex_log::settings::Settings;
use codex_patch::{Applied, TurnDiff};
use codex_sandbox::terminal::Terminals;
use codex_sandbox::{Findings, Names, ResolvedRoots, SandboxLevel};
use codex_shell::SandboxState;
use codex_wire::policy::ApprovalsReviewer;
use codex_wire::tokens::BYTES_PER_TOKEN;

use crate::command::{CallLimits, LaunchContext, variables};
use crate::lifecycle::ToolOutput;
use crate::permissions::GrantedPermissions;
use crate::sampling::Sampler;

/// The default number of output bytes of a command for the model.
const OUTPUT_BYTES: usize = 10_000;

/// The state that the calls of a thread share.
#[derive(Debug)]
pub struct ThreadTools {
    pub(crate) terminals: Arc<Terminals>,
    next_terminal: AtomicU64,
    /// The writable folders as they were when the thread named them.
    roots: ResolvedRoots,
    /// The findings in the folders after commands that were allowed.
    findings: Findings,
    /// Whether the user was warned that nobody can be asked.
    is_told_of_nobody: AtomicBool,
    /// Whether the model is offered the tool for reporting on a goal.
    offers_goal: AtomicBool,
    /// Whether the model may ask for permissions.
    asks_permissions: AtomicBool,
    /// The permissions that people have granted.
    pub(crate) granted: GrantedPermissions,
}

impl Default for ThreadTools {
    fn default() -> Self {
        Self {
            terminals: Arc::default(),
            next_terminal: AtomicU64::new(1),
            roots: ResolvedRoots::default(),
            findings: Findings::default(),
            is_told_of_nobody: AtomicBool::new(false),
            offers_goal: AtomicBool::new(false),
            asks_permissions: AtomicBool::new(false),
            granted: GrantedPermissions::default(),
        }
    }
}

impl ThreadTools {
    pub(crate) fn next_terminal(&self) -> u64 {
        self.next_terminal.load(Ordering::Relaxed)
    }

    /// Takes the number of the next terminal.
    pub(crate) fn take_terminal(&self) {
        self.next_terminal.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether there is a goal to report on.
    pub(crate) fn offers_goal(&self) -> bool {
        self.offers_goal.load(Ordering::Relaxed)
    }

    /// Notes whether there is a goal to report on. It can change during a turn.
    pub fn set_offers_goal(&self, offers_goal: bool) {
        self.offers_goal.store(offers_goal, Ordering::Relaxed);
    }

    /// Whether the model may ask for permissions.
    pub(crate) fn asks_permissions(&self) -> bool {
        self.asks_permissions.load(Ordering::Relaxed)
    }

    /// Notes whether the model may ask for permissions.
    pub fn set_asks_permissions(&self, asks: bool) {
        self.asks_permissions.store(asks, Ordering::Relaxed);
    }

    /// An output with a line about what was disarmed since the last one, if anything was.
    pub(crate) fn with_findings(&self, output: ToolOutput) -> ToolOutput {
        match output {
            ToolOutput::Text(text) => match self.findings.take_for_model() {
                Some(line) => ToolOutput::Text(format!("{text}\n{line}")),
                None => ToolOutput::Text(text),
            },
            parts @ ToolOutput::Parts(_) => parts,
        }
    }

    /// Waits until commands are cleaned up and anything in the folders that could run code later is disarmed. Returns
    /// the warnings for the user.
    pub async fn inspect_folders(&self, cwd: &Path) -> Vec<Body> {
        self.terminals.inspect();
        codex_sandbox::cleanup_done().await;
        let report = self.findings.take();
        let notice = report.notice(cwd);
        report.warning().into_iter().chain(notice).map(|message| Body::Warning { message }).collect()
    }
}

/// The inputs for a turn's calls.
#[derive(Debug)]
pub struct ToolSetup<'a> {
    pub config: &'a Config,
    pub home: &'a Home,
    /// A folder of programs that commands find before all others.
    pub programs: Option<&'a Path>,
    pub shell: Option<&'a str>,
    /// Whether terminals pass output on unchanged by default.
    pub is_verbatim: bool,
    /// The time after which an approval request counts as denied, if the configuration does not say.
    pub answer_within: Option<Duration>,
    pub settings: Arc<Settings>,
    pub thread: Arc<ThreadTools>,
    /// The model of the turn, for servers that may ask it.
    pub sampler: Option<Arc<dyn Sampler>>,
}

/// The environment of the calls of a turn, from the session and never from the model.
#[derive(Debug)]
pub struct ToolContext {
    pub settings: Arc<Settings>,
    pub(crate) shell: String,
    /// Whether terminals pass output on unchanged by default.
    pub(crate) is_verbatim: bool,
    pub(crate) limits: CallLimits,
    /// The home folder of the program, which contains the rules.
    pub(crate) home: Home,
    pub(crate) launch: LaunchContext,
    /// The variables of the user's own commands.
    pub(crate) users_env: Vec<(OsString, OsString)>,
    pub(crate) thread: Arc<ThreadTools>,
    pub sampler: Option<Arc<dyn Sampler>>,
    /// The changes of the turn's patches.
    diff: Mutex<Option<TurnDiff>>,
}

impl ToolContext {
    /// Determines the environment of a turn's calls.
    #[must_use]
    pub fn new(setup: ToolSetup<'_>) -> Self {
        let ToolSetup { config, home, programs, shell, is_verbatim, answer_within, settings, thread, sampler } = setup;
        let tokens = config.tool_output_token_limit;
        let output_bytes = tokens.map_or(OUTPUT_BYTES, |tokens| {
            usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN)
        });
        let launch = LaunchContext {
            policy: settings.sandbox_policy.clone(),
            workspace: settings.cwd.clone(),
            codex_home: home.path().to_owned(),
            most_processes: config.sandbox.most_processes,
            most_memory: config.sandbox.most_memory,
            env: variables(config, programs, Runner::Model),
            roots: thread.roots.clone(),
            terminals: Arc::clone(&thread.terminals),
            names: Names::new(&config.sandbox.protected_names, &config.sandbox.unprotected_names),
            findings: thread.findings.clone(),
            named_files: config.named_files(&settings.cwd),
            granted: thread.granted.clone(),
        };
        Self {
            shell: shell.unwrap_or("/bin/sh").to_owned(),
            is_verbatim,
            limits: CallLimits { output_bytes, answer_within: config.approval_timeout.or(answer_within) },
            home: home.clone(),
            launch,
            users_env: variables(config, programs, Runner::User),
            settings,
            thread,
            sampler,
            diff: Mutex::new(None),
        }
    }

    /// Resolves the folders in the settings, before any command can redirect their names.
    pub fn hold_roots(&self) {
        drop(self.launch.profile());
        codex_sandbox::remove_left_placeholders(&self.launch.workspace, &self.launch.names);
    }

    /// The sandbox that is available for commands of this turn.
    pub(crate) fn sandbox_state(&self) -> SandboxState {
        match (self.launch.profile(), codex_sandbox::level()) {
            (None, _) => SandboxState::Unconfined,
            (Some(_), SandboxLevel::Nothing { .. }) => SandboxState::CannotConfine,
            (Some(_), SandboxLevel::Namespaces { .. } | SandboxLevel::Landlock { .. }) => SandboxState::Confined,
        }
    }

    /// The reason why nobody can be asked, if the reviewer is not the user.
    #[must_use]
    pub fn absent_reviewer(&self) -> Option<String> {
        let reviewer = &self.settings.reviewer;
        (*reviewer != ApprovalsReviewer::User)
            .then(|| format!("the reviewer `{}` does not exist here", reviewer.as_str()))
    }

    /// The warning, given once, that requests for approval are declined.
    #[must_use]
    pub fn tell_of_nobody(&self) -> Option<Body> {
        let absent = self.absent_reviewer()?;
        let is_told = self.thread.is_told_of_nobody.swap(true, Ordering::Relaxed);
        let message = format!("{absent}, so nobody is asked and everything that needs an approval is declined");
        (!is_told).then_some(Body::Warning { message })
    }

    /// Adds an applied patch to the diff of the turn, and returns the diff.
    pub(crate) fn diff_with(&self, applied: &Applied) -> Option<Body> {
        let mut diff = self.diff.lock().unwrap_or_else(PoisonError::into_inner);
        let diff = diff.get_or_insert_with(|| TurnDiff::new(&self.settings.cwd));
        diff.note(applied);
        diff.unified().map(|unified| Body::DiffChanged(unified.into()))
    }

    pub(crate) fn cwd(&self) -> &PathBuf {
        &self.settings.cwd
    }

    /// The time limit of an approval request.
    #[must_use]
    pub fn answer_within(&self) -> Option<Duration> {
        self.limits.answer_within
    }

    /// The number of bytes of a call's output that the model receives.
    #[must_use]
    pub fn output_bytes(&self) -> usize {
        self.limits.output_bytes
    }

    /// Whether the model knows tools whose output begins with the time that they took.
    #[must_use]
    pub fn tells_time(&self) -> bool {
        self.is_verbatim
    }
}
