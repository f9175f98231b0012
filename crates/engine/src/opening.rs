//! What has to be found out before a thread can start.

use std::path::PathBuf;
use std::sync::Arc;

use chrono::{Local, SecondsFormat, Utc};
use codex_store::{PromptHistory, RolloutFile};
use codex_wire::ids::ThreadId;
use codex_wire::response::Message;
use codex_wire::rollout::{SessionLineage, SessionMeta};
use codex_wire::skill::{SkillErrorInfo, SkillMetadata};

use crate::journal::Journal;
use crate::log::ThreadStarted;
use crate::project_doc::{self, ProjectDocs};
use crate::settings::Settings;
use crate::skills;
use crate::thread::{Setup, StartError};

const BASE_INSTRUCTIONS: &str = include_str!("../prompts/base.md");

/// A thread about to start.
pub(crate) struct Opening {
    /// Its first event.
    pub(crate) started: ThreadStarted,
    /// What the model is told before the conversation.
    pub(crate) instructions: Arc<str>,
    /// What the conversation begins with: the instructions of whoever set the agent up, of the user and the project.
    pub(crate) preface: Vec<Message>,
    /// The skills it knows.
    pub(crate) skills: Arc<[SkillMetadata]>,
    /// What the user should know.
    pub(crate) warnings: Vec<String>,
    /// Its log, open.
    pub(crate) journal: Journal,
}

impl Opening {
    /// Reads what the thread needs and opens its log, on a thread that may block.
    pub(crate) async fn prepare(id: ThreadId, setup: &Setup) -> Result<Self, StartError> {
        let setup = setup.clone();
        match tokio::task::spawn_blocking(move || Self::read(id, &setup)).await {
            Ok(opening) => opening,
            Err(error) => Err(StartError::Prepare(error)),
        }
    }

    fn read(id: ThreadId, setup: &Setup) -> Result<Self, StartError> {
        let Setup { config, home, cwd, .. } = setup;
        let instructions = match (&setup.base_instructions, &config.instructions.base_file) {
            (Some(text), _) => Arc::clone(text),
            (None, Some(path)) => std::fs::read_to_string(path)
                .map_err(|source| StartError::Instructions { path: path.clone(), source })?
                .into(),
            (None, None) => BASE_INSTRUCTIONS.into(),
        };
        let found = ProjectDocs {
            home: home.path(),
            cwd,
            max_bytes: usize::try_from(config.instructions.project_doc_max_bytes).unwrap_or(usize::MAX),
            fallback_names: &config.instructions.project_doc_fallback_filenames,
        }
        .read();
        let skills = skills::list(config, home, cwd);
        let known = skills::describe(&skills.skills);
        let user: Vec<String> = config.instructions.user.clone().into_iter().chain(found.text).chain(known).collect();
        let user = (!user.is_empty()).then(|| user.join("\n\n"));
        let now = Local::now();
        let rollout = RolloutFile::place(&home.sessions(), id, now);
        let started = started(id, setup, user.clone(), rollout.clone());
        let (journal, unsaved) = Journal::create(id, rollout);
        let broken = |error: &SkillErrorInfo| format!("{} is no skill: {}", error.path.display(), error.message);
        let skill_warnings: Vec<String> = skills.errors.iter().map(broken).collect();
        Ok(Self {
            started,
            instructions,
            preface: config
                .instructions
                .developer
                .as_ref()
                .map(Message::developer)
                .into_iter()
                .chain(user.map(|text| Message::user(project_doc::instructions_message(cwd, &text))))
                .collect(),
            warnings: unsaved.into_iter().chain(found.warnings).chain(skill_warnings).collect(),
            skills: skills.skills.into(),
            journal,
        })
    }
}

fn started(id: ThreadId, setup: &Setup, instructions: Option<String>, rollout: PathBuf) -> ThreadStarted {
    let Setup { config, home, cwd, originator, source, .. } = setup;
    let history = PromptHistory::new(home.history_file(), config.history.max_bytes).look();
    ThreadStarted {
        settings: Arc::new(Settings {
            cwd: cwd.clone(),
            approval_policy: config.approval_policy(),
            sandbox_policy: config.sandbox_policy(),
            model: config.model.name.clone(),
            effort: config.model.reasoning_effort.clone(),
            summary: config.model.reasoning_summary.clone(),
            verbosity: config.model.verbosity.clone(),
        }),
        provider: config.provider.id.clone(),
        meta: SessionMeta {
            id,
            timestamp: Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true),
            cwd: cwd.clone(),
            originator: originator.clone(),
            cli_version: env!("CARGO_PKG_VERSION").to_owned(),
            instructions,
            source: Some(source.clone()),
            model_provider: Some(config.provider.id.clone()),
            lineage: SessionLineage::default(),
            git: None,
        },
        rollout,
        history_log: history.log_id,
        history_entries: history.entries,
    }
}
