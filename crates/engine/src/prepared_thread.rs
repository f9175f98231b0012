//! Everything that is read before a thread starts.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, SecondsFormat, Utc};
use codex_log::history::{ForkPoint, History};
use codex_log::store::{Opened, StoreErrorKind};
use codex_thread::{ExplicitOverrides, HistoryMode, InitialHistory};
use codex_wire::agent::MultiAgentVersion;
use codex_wire::error_info::CodexErrorInfo;
use codex_wire::ids::ThreadId;
use codex_wire::policy::AskForApproval;
use codex_wire::response::{FunctionCallOutputPayload, Message, ResponseItem};
use codex_wire::rollout::{SessionMeta, SessionSource, SubAgentSource};
use codex_wire::skill::{SkillErrorInfo, SkillMetadata};
use tokio::time::{Instant, sleep, timeout};

use crate::foreign;
use crate::journal::Journal;
use crate::lineage::{
    cache_key, lineage_of_child, lineage_of_client, lineage_of_fork, meta_of_fork, shared_state, with_tools,
};
use crate::open_error::OpenError;
use crate::resume::{UnfinishedCalls, settle};
use crate::setup::Setup;
use crate::shared_workspace;
use crate::skills;
use codex_config::ModelTable;
use codex_config::project_doc::{self, ProjectDocs};
use codex_config::skill_list;
use codex_log::settings::{Mode, Settings};
use codex_log::state::{HistoryStart, Interrupted, ThreadState};
use codex_log::{Failure, Record, ThreadStarted, TurnId};
use codex_tools::agents::ChildHistory;
use codex_tools::rules::{self, Rules};

const BASE_INSTRUCTIONS: &str = include_str!("../prompts/base.md");

/// The configuration keys of a file with instructions, in current and earlier releases.
const INSTRUCTIONS_KEYS: [&str; 2] = ["model_instructions_file", "experimental_instructions_file"];

/// The largest file of instructions that a configuration may name.
const MOST_INSTRUCTIONS: u64 = 1024 * 1024;

/// The time limit for reading the files of a thread and its project.
const PREPARING_TIME: Duration = Duration::from_secs(60);

/// The time to wait for a thread that another process has open. Clients that restart a server resume their threads
/// immediately, while the previous server is still ending.
const LOCKED_TIME: Duration = Duration::from_secs(2);
/// The time between two attempts.
const LOCKED_PAUSE: Duration = Duration::from_millis(20);

/// A thread that is about to start.
pub(crate) struct PreparedThread {
    pub(crate) started: ThreadStarted,
    /// The instructions of the model.
    pub(crate) instructions: Arc<str>,
    /// The start of the conversation: the instructions of the administrator, the user and the project.
    pub(crate) preface: Vec<Message>,
    /// The skills of the thread.
    pub(crate) skills: Arc<[SkillMetadata]>,
    /// Warnings for the user.
    pub(crate) warnings: Vec<String>,
    /// The open log.
    pub(crate) journal: Journal,
    /// The models that the user has described.
    pub(crate) models: ModelTable,
    /// The user's rules for commands.
    pub(crate) rules: Rules,
    /// The folded state of its log.
    pub(crate) state: ThreadState,
    /// The thread whose requests to the model begin like those of this one.
    pub(crate) cache_key: ThreadId,
    /// The unfinished work of a resumed thread.
    pub(crate) continued: Option<Box<ResumedWork>>,
    /// The instructions for its role among agents.
    pub(crate) role: Option<Message>,
}

/// The unfinished work of a resumed thread.
pub(crate) struct ResumedWork {
    /// Calls whose end was not recorded.
    pub(crate) ends: UnfinishedCalls,
    /// The settings of its last turn.
    pub(crate) before: Option<Settings>,
    /// The turn that continues, if its questions are unanswered or it waits for the account's allowance.
    pub(crate) unfinished: Option<TurnId>,
    /// The allowance that it waits for, and the remaining time.
    pub(crate) limit_wait: Option<(Failure, Duration)>,
}

/// The file of a thread, and its contents.
struct OpenedLog {
    journal: Journal,
    rollout: PathBuf,
    state: Option<ThreadState>,
    explicit: ExplicitOverrides,
    warnings: Vec<String>,
}

impl PreparedThread {
    /// Reads the files of the thread and opens its log. If another process has it open, this waits.
    pub(crate) async fn prepare(setup: &Setup) -> Result<Self, OpenError> {
        let begun = Instant::now();
        loop {
            match Self::attempt(setup.clone()).await {
                Err(OpenError::Store(error))
                    if error.kind() == StoreErrorKind::Locked && begun.elapsed() < LOCKED_TIME =>
                {
                    sleep(LOCKED_PAUSE).await;
                }
                opened => return opened,
            }
        }
    }

    /// Reads and opens it, on a thread that may block.
    async fn attempt(setup: Setup) -> Result<Self, OpenError> {
        match timeout(PREPARING_TIME, tokio::task::spawn_blocking(move || Self::read(&setup))).await {
            Ok(Ok(prepared)) => prepared,
            Ok(Err(error)) => Err(OpenError::Prepare(error)),
            Err(_) => Err(OpenError::Slow { after: PREPARING_TIME }),
        }
    }

    fn read(setup: &Setup) -> Result<Self, OpenError> {
        if !setup.cwd.is_dir() {
            return Err(OpenError::NoSuchFolder { cwd: setup.cwd.clone() });
        }
        let instructions = instructions(setup)?;
        let mut configured = configured(setup);
        // The folder in which a thread continues determines its instructions and skills.
        let meta = meta(setup);
        let OpenedLog { journal, rollout, state, explicit, warnings } = OpenedLog::open(setup, &meta)?;
        let stored = state.as_ref().and_then(|state| state.settings.as_ref());
        let stored = stored.inspect(|before| configured = settle(explicit, configured.clone(), before));
        if let (None, Some(state), false) = (&stored, &state, explicit.cwd)
            && state.meta.cwd.is_dir()
        {
            // It has had no turn yet that could have changed its folder.
            configured.cwd.clone_from(&state.meta.cwd);
        }
        let meta_before = state.as_ref().map(|state| &state.meta);
        let withheld = meta_before.and_then(|meta| foreign::withhold(&mut configured, meta, setup, explicit));
        let (models, unread) = ModelTable::read(&setup.config.model);
        configured.agent_tools = agent_tools(setup, state.as_ref(), &models, &configured);
        let (cwd, is_resumed) = (configured.cwd.clone(), state.is_some());
        let told = Preamble::read(setup, &cwd);
        let meta = state.as_ref().map_or_else(|| new_meta(meta, &told, &configured), |state| state.meta.clone());
        let before = stored.map(|stored| told_under(stored, &configured));
        let prompts = setup.store.prompts();
        let started = ThreadStarted {
            settings: Arc::new(configured),
            provider: setup.config.provider.id.clone(),
            meta,
            is_resumed,
            rollout,
            history_log: prompts.log_id,
            history_entries: prompts.entries,
            instruction_sources: told.sources.clone(),
        };
        let preface = told.preface(setup, &cwd);
        let asks_again = asks_again(setup, &started.settings, before.as_ref());
        let mut state = state.unwrap_or_else(|| ThreadState::new(started.meta.clone(), interrupted(setup)));
        state.limit_wait = state.limit_wait.filter(|_| waits_again(setup));
        let continued = is_resumed.then(|| for_fork(continued(&mut state, before, &preface, asks_again), setup));
        let mut warnings: Vec<_> = warnings.into_iter().chain(withheld).chain(told.warnings).chain(unread).collect();
        Ok(Self {
            started,
            instructions,
            preface,
            rules: rules::or_none(&setup.home, &mut warnings),
            warnings,
            models,
            skills: told.skills,
            journal,
            cache_key: cache_key(setup, &state.meta),
            state,
            continued,
            role: role_instructions(setup).map(Message::developer),
        })
    }
}

/// The metadata of a thread that has none yet.
fn new_meta(meta: SessionMeta, told: &Preamble, configured: &Settings) -> SessionMeta {
    SessionMeta { instructions: told.user.clone(), lineage: with_tools(meta.lineage, configured), ..meta }
}

impl OpenedLog {
    fn open(setup: &Setup, meta: &SessionMeta) -> Result<Self, OpenError> {
        let store = &setup.store;
        match &setup.initial_history {
            InitialHistory::Unsaved(initial_history) => Self::unsaved(setup, initial_history, meta),
            InitialHistory::New | InitialHistory::Given(_) => {
                Ok(Self::of(meta.id, store.create(meta.id)?, None, ExplicitOverrides::default()))
            }
            InitialHistory::Resumed { thread, explicit } => Self::resume(setup, *thread, *explicit),
            InitialHistory::Shared { of, explicit } => {
                let meta = meta_of_fork(&of.state.meta, meta);
                let opened = store.fork(of.state.meta.id, ForkPoint::Position(of.position), &meta)?;
                Ok(Self::of(meta.id, opened, Some(shared_state(of, meta)), *explicit))
            }
            InitialHistory::Forked { thread, point, explicit } => {
                let meta = meta_of_fork(&store.meta(*thread)?, meta);
                let opened = store.fork(*thread, *point, &meta)?;
                let history = store.history(meta.id, interrupted(setup))?;
                Ok(Self::of(meta.id, opened, Some(history.state), *explicit))
            }
        }
    }

    fn of(thread: ThreadId, opened: Opened, state: Option<ThreadState>, explicit: ExplicitOverrides) -> Self {
        let Opened { writer, place, .. } = opened;
        Self { journal: Journal::new(thread, writer), rollout: place, state, explicit, warnings: Vec::new() }
    }

    /// The history of an unsaved thread. Its source is only read.
    fn unsaved(setup: &Setup, initial_history: &InitialHistory, meta: &SessionMeta) -> Result<Self, OpenError> {
        let read = |thread: ThreadId| setup.store.history(thread, interrupted(setup));
        let (history, explicit) = match initial_history {
            InitialHistory::New | InitialHistory::Given(_) => (None, ExplicitOverrides::default()),
            InitialHistory::Resumed { thread, explicit } => (Some(read(*thread)?), *explicit),
            InitialHistory::Forked { thread, explicit, .. } => {
                let mut history = read(*thread)?;
                let lineage = lineage_of_fork(&history.state.meta, &meta.lineage);
                history.state.meta = SessionMeta { lineage, ..meta.clone() };
                (Some(history), *explicit)
            }
            InitialHistory::Shared { of, explicit } => {
                let state = shared_state(of, meta_of_fork(&of.state.meta, meta));
                (Some(History { state, bad_lines: Vec::new() }), *explicit)
            }
            InitialHistory::Unsaved(initial_history) => return Self::unsaved(setup, initial_history, meta),
        };
        let warnings = history.iter().flat_map(|history| &history.bad_lines).map(ToString::to_string).collect();
        let state = history.map(|history| history.state);
        let id = state.as_ref().map_or(meta.id, |state| state.meta.id);
        Ok(Self { warnings, ..Self::of(id, setup.store.unsaved(meta.id), state, explicit) })
    }

    /// Resumes a thread. It is locked first, so that no other process appends to it while it is read.
    fn resume(setup: &Setup, thread: ThreadId, explicit: ExplicitOverrides) -> Result<Self, OpenError> {
        if !explicit.cwd {
            shared_workspace::check(setup, thread)?;
        }
        let opened = setup.store.open(thread)?;
        let History { state, bad_lines } = setup.store.history(thread, interrupted(setup))?;
        let parent = setup.child.as_ref().map(|child| child.spawn.parent_thread_id);
        if parent.is_some() && state.meta.lineage.parent_thread_id != parent {
            return Err(OpenError::OtherTree { thread });
        }
        let mut warnings: Vec<String> = bad_lines.iter().map(ToString::to_string).collect();
        let cut = opened.cut_bytes;
        if cut > 0 {
            warnings.push(format!("{}: the last line was cut off, {cut} bytes were removed", opened.place.display()));
        }
        Ok(Self { warnings, ..Self::of(state.meta.id, opened, Some(state), explicit) })
    }
}

/// The treatment of interrupted answers.
pub(crate) fn interrupted(setup: &Setup) -> Interrupted {
    match setup.profile.history {
        HistoryMode::Brief => Interrupted::Forgotten,
        HistoryMode::Full => Interrupted::Kept,
    }
}

/// The instructions and skills for the model, and warnings about them.
struct Preamble {
    /// The instructions of the user and the project.
    user: Option<String>,
    /// The files of these instructions.
    sources: Vec<PathBuf>,
    skills: Arc<[SkillMetadata]>,
    warnings: Vec<String>,
}

impl Preamble {
    fn read(setup: &Setup, cwd: &Path) -> Self {
        let Setup { config, home, .. } = setup;
        let found = ProjectDocs {
            home: home.path(),
            cwd,
            is_distrusted: skill_list::is_distrusted(config, cwd),
            max_bytes: usize::try_from(config.instructions.project_doc_max_bytes).unwrap_or(usize::MAX),
            fallback_names: &config.instructions.project_doc_fallback_filenames,
        }
        .read();
        let skills = skill_list::list(config, home, cwd);
        let known = skills::describe(&skills.skills).or_else(|| setup.profile.without_skills.map(str::to_owned));
        let user: Vec<String> = config.instructions.user.clone().into_iter().chain(found.text).chain(known).collect();
        let broken = |error: &SkillErrorInfo| format!("{} is not a skill: {}", error.path.display(), error.message);
        Self {
            user: (!user.is_empty()).then(|| user.join("\n\n")),
            sources: found.sources,
            warnings: found.warnings.into_iter().chain(skills.errors.iter().map(broken)).collect(),
            skills: skills.skills.into(),
        }
    }

    fn preface(&self, setup: &Setup, cwd: &Path) -> Vec<Message> {
        let developer = setup.config.instructions.developer.as_deref().map(Message::developer);
        let role = role_instructions(setup).map(Message::developer);
        let user = self.user.as_ref().map(|text| Message::user(project_doc::instructions_message(cwd, text)));
        role.into_iter().chain(developer).chain(user).collect()
    }
}

/// The instructions of an agent for its role: the file of the user, or our own.
fn role_instructions(setup: &Setup) -> Option<String> {
    let (file, text) = setup.agents.as_ref()?.role();
    // A file that is missing or cannot be read is as good as none.
    let own = codex_files::read_text(&setup.home.path().join(file), MOST_INSTRUCTIONS).ok();
    let text = own.filter(|own| !own.trim().is_empty()).unwrap_or_else(|| text.to_owned());
    let role = setup.child.as_ref().and_then(|child| child.instructions.clone());
    let all: Vec<String> = [Some(text), role].into_iter().flatten().filter(|text| !text.is_empty()).collect();
    (!all.is_empty()).then(|| all.join("\n\n"))
}

/// The built-in instructions, which all threads share.
fn base_instructions() -> &'static Arc<str> {
    static SHARED: OnceLock<Arc<str>> = OnceLock::new();
    SHARED.get_or_init(|| BASE_INSTRUCTIONS.into())
}

fn instructions(setup: &Setup) -> Result<Arc<str>, OpenError> {
    Ok(match (&setup.base_instructions, &setup.config.instructions.base_file) {
        (Some(text), _) => Arc::clone(text),
        (None, Some(path)) => instructions_file(path).map_err(|source| {
            let names = |key: &&str| setup.config.tree.get(&[key]).is_some();
            let key = INSTRUCTIONS_KEYS.into_iter().find(names).unwrap_or(INSTRUCTIONS_KEYS[0]);
            OpenError::Instructions { key, path: path.clone(), source }
        })?,
        (None, None) => Arc::clone(base_instructions()),
    })
}

fn instructions_file(path: &Path) -> std::io::Result<Arc<str>> {
    let text = codex_files::read_text(path, MOST_INSTRUCTIONS)?;
    // Empty instructions are never intended.
    if text.trim().is_empty() { Err(std::io::Error::other("it is empty")) } else { Ok(text.into()) }
}

/// The settings that the model was last informed of, taken from the stored ones.
pub(crate) fn told_under(stored: &Settings, now: &Settings) -> Settings {
    let Settings { cwd, approval_policy, sandbox_policy, .. } = stored.clone();
    Settings { cwd, approval_policy, sandbox_policy, ..now.clone() }
}

/// The settings of a new thread.
fn configured(setup: &Setup) -> Settings {
    if let Some(child) = &setup.child {
        return (*child.settings).clone();
    }
    let config = &setup.config;
    Settings {
        cwd: setup.cwd.clone(),
        approval_policy: config.approval_policy(),
        reviewer: config.approvals_reviewer.clone(),
        withheld: None,
        sandbox_policy: config.sandbox_policy(),
        model: config.model.name.clone(),
        effort: config.model.reasoning_effort.clone(),
        summary: config.model.reasoning_summary.clone(),
        verbosity: config.model.verbosity.clone(),
        mode: Mode::default(),
        agent_tools: None,
    }
}

/// The generation of the tools for other agents: that of its log for a thread with a history, else that of its model.
fn agent_tools(
    setup: &Setup,
    state: Option<&ThreadState>,
    models: &ModelTable,
    settings: &Settings,
) -> Option<MultiAgentVersion> {
    let of_turn = state.and_then(|state| state.settings.as_ref()?.agent_tools);
    let of_meta = || state.and_then(|state| state.meta.lineage.multi_agent_version.as_ref()?.parse().ok());
    let of_model = models.info(setup.config.model_of(&settings.model).1).agent_tools;
    setup.agents.as_ref()?.settle_version(of_turn.or_else(of_meta), of_model)
}

/// The first line of a new thread's file.
fn meta(setup: &Setup) -> SessionMeta {
    let child = setup.child.as_deref();
    SessionMeta {
        id: child.map_or_else(ThreadId::fresh, |child| child.thread),
        timestamp: DateTime::<Utc>::from(codex_wire::time::now()).to_rfc3339_opts(SecondsFormat::Millis, true),
        cwd: setup.cwd.clone(),
        originator: setup.originator.clone(),
        cli_version: env!("CARGO_PKG_VERSION").to_owned(),
        instructions: None,
        source: Some(match child {
            Some(child) => SessionSource::SubAgent(SubAgentSource::ThreadSpawn(child.spawn.clone())),
            None => setup.source.clone(),
        }),
        model_provider: Some(setup.config.provider.id.clone()),
        lineage: child.map_or_else(|| lineage_of_client(setup), lineage_of_child),
        git: shared_workspace::repository(setup),
    }
}

/// A child that begins with its parent's history sees another output of the call that has made it.
fn for_fork(mut continued: ResumedWork, setup: &Setup) -> Box<ResumedWork> {
    let Some(ChildHistory::Fork { call_id, output, .. }) = setup.child.as_ref().map(|child| &child.history) else {
        return Box::new(continued);
    };
    for lost in &mut continued.ends.lost {
        if let ResponseItem::FunctionCallOutput(known) = lost
            && known.call_id == *call_id
        {
            known.output = FunctionCallOutputPayload::Text(output.clone());
        }
    }
    continued.unfinished = None;
    Box::new(continued)
}

/// Whether unanswered questions are asked again: only under the same policy, and only if no command can have run before
/// the question.
fn asks_again(setup: &Setup, now: &Settings, before: Option<&Settings>) -> bool {
    let is_same = before.is_some_and(|before| before.approval_policy == now.approval_policy);
    setup.profile.asks_again
        && is_same
        && asks_first(now)
        && matches!(setup.initial_history, InitialHistory::Resumed { .. })
}

/// Whether a person is asked before a command runs, and not only after it has failed.
pub(crate) fn asks_first(settings: &Settings) -> bool {
    settings.approval_policy.is_on_request() || settings.approval_policy == AskForApproval::UnlessTrusted
}

/// Whether a turn that waits for the account's allowance continues to wait.
fn waits_again(setup: &Setup) -> bool {
    setup.config.model.waits_for_limits && matches!(setup.initial_history, InitialHistory::Resumed { .. })
}

fn continued(state: &mut ThreadState, before: Option<Settings>, preface: &[Message], asks_again: bool) -> ResumedWork {
    let unfinished = state.turn.as_ref().and_then(|turn| turn.id.clone());
    let ends = UnfinishedCalls::of(state, asks_again && unfinished.is_some());
    if state.conversation.begins() == HistoryStart::Summary {
        let told = preface.iter().cloned().map(ResponseItem::Message);
        state.conversation.put_before(told.filter_map(|item| Some(Record::new(item).ok()?.json)).collect());
    }
    // Questions that are still relevant are asked again.
    state.questions.clear();
    let limit_wait = state.limit_wait.take().filter(|_| ends.asked.is_empty()).map(|wait| {
        let until = UNIX_EPOCH + Duration::from_millis(u64::try_from(wait.until_ms).unwrap_or(0));
        let after = until.duration_since(SystemTime::now()).unwrap_or_default();
        (Failure { message: wait.message, hint: None, info: CodexErrorInfo::UsageLimitExceeded }, after)
    });
    let unfinished = unfinished.filter(|_| !ends.asked.is_empty() || limit_wait.is_some());
    ResumedWork { ends, before, unfinished, limit_wait }
}
