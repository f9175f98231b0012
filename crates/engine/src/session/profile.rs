//! The profile of requests to the model: settings, instructions, environment context and tools.

use std::path::PathBuf;
use std::sync::Arc;

use codex_config::{ModelInfo, ModelTable};
use codex_log::settings::Settings;
use codex_model::{Backoff, Prompt, ReasoningRequest};
use codex_thread::HistoryMode;
use codex_tools::agents::ThreadAgents;
use codex_tools::registry::{Offer, Registry};
use codex_wire::conversation_item::ConversationItem;
use codex_wire::ids::ThreadId;
use codex_wire::input::UserInput;
use codex_wire::policy::ApprovalKind;
use codex_wire::provider_traits::{PatchForm, ShellForm};
use codex_wire::reasoning::{ReasoningEffort, ReasoningSummary};
use codex_wire::response::Message;
use codex_wire::skill::SkillMetadata;
use codex_wire::tool_spec::ToolList;

use crate::environment::{Environment, shell_name};
use crate::images;
use crate::setup::Setup;
use crate::turn::{TurnPolicy, UserMessage};

/// The share of its window that a model can use, in percent.
const USABLE_PERCENT: i64 = 95;

/// The share of the window that may be used before the conversation is compacted.
const COMPACT_AT_PERCENT: i64 = 90;

/// The maximum number of calls of an answer that may run at once.
const CALLS_AT_ONCE: usize = 8;

/// The settings of requests to the model.
pub(super) struct Profile {
    /// The settings of the next turn.
    pub(super) settings: Arc<Settings>,
    /// The environment that the model knows.
    pub(super) environment: Environment,
    pub(super) instructions: Arc<str>,
    pub(super) skills: Arc<[SkillMetadata]>,
    pub(super) models: ModelTable,
    /// The key of the provider's cache.
    pub(super) cache_key: ThreadId,
}

impl Profile {
    /// The known properties of the model in these settings.
    pub(super) fn model_info(&self, setup: &Setup, settings: &Settings) -> ModelInfo {
        self.models.info(setup.config.model_of(&settings.model).1)
    }

    /// The size of the model's window, if known.
    pub(super) fn context_window(&self, setup: &Setup, settings: &Settings) -> Option<i64> {
        let configured = setup.config.model.context_window.and_then(|window| i64::try_from(window).ok());
        let window = configured.or(self.model_info(setup, settings).context_window);
        // Models perform poorly at the very end of their window; clients of the event queue receive the full size.
        let usable = if setup.profile.history == HistoryMode::Full { USABLE_PERCENT } else { 100 };
        window.map(|window| window * usable / 100)
    }

    /// The policy of a turn with these settings.
    pub(super) fn turn_policy(
        &self,
        setup: &Setup,
        settings: &Settings,
        window: Option<i64>,
        tools: &Arc<Registry>,
        agents: Option<&Arc<dyn ThreadAgents>>,
    ) -> TurnPolicy {
        let config = &setup.config;
        let set = config.model.auto_compact_token_limit.and_then(|limit| i64::try_from(limit).ok());
        TurnPolicy {
            request_limit: config.model.turn_requests,
            retry_limit: u32::try_from(config.model_of(&settings.model).0.stream_max_retries).unwrap_or(u32::MAX),
            backoff: Backoff::new(),
            forgets_interrupted: setup.profile.history == HistoryMode::Brief,
            // The rest of the window has to hold the request for a summary and the summary itself.
            compact_at: set.or(window.map(|window| window * COMPACT_AT_PERCENT / 100)),
            calls_at_once: if self.calls_in_parallel(setup, settings) { CALLS_AT_ONCE } else { 1 },
            waits_for_limits: config.model.waits_for_limits,
            tools: Arc::clone(tools),
            agents: agents.cloned(),
            is_mail_first: agents.is_some() && config.agents().is_before_tools,
        }
    }

    /// The tools that the model is offered: those that it was trained on, as far as its provider supports them.
    pub(super) fn offer(&self, setup: &Setup, settings: &Settings, has_goal: bool) -> Offer {
        let info = self.model_info(setup, settings);
        let traits = &setup.config.model_of(&settings.model).0.traits;
        let shell = match (setup.config.features.get("unified_exec"), info.shell) {
            (Some(true), _) => ShellForm::ExecCommand,
            (Some(false), ShellForm::ExecCommand) => ShellForm::Shell,
            (_, known) => known,
        };
        let patch = if traits.custom_tools { info.patch } else { PatchForm::Function };
        Offer {
            shell,
            patch,
            web_search: setup.config.web_search.filter(|_| traits.hosted_tools),
            has_goal,
            has_namespaces: setup.profile.groups_tools && traits.hosted_tools,
            asks_permissions: asks_permissions(setup, settings),
        }
    }

    /// Whether the model is informed that it may make several calls at once, and such calls run concurrently.
    fn calls_in_parallel(&self, setup: &Setup, settings: &Settings) -> bool {
        let is_wanted = setup.config.features.get("parallel").copied().unwrap_or(true);
        // With minimal reasoning effort, models that can make several calls at once cannot.
        let thinks = settings.effort != Some(ReasoningEffort::Minimal);
        is_wanted && thinks && self.model_info(setup, settings).calls_in_parallel
    }

    /// The request to the model in a turn with these settings.
    pub(super) fn prompt(
        &self,
        setup: &Setup,
        thread: ThreadId,
        settings: &Settings,
        input: Vec<ConversationItem>,
        tools: Arc<ToolList>,
    ) -> Prompt {
        let Settings { model, effort, summary, verbosity, .. } = settings;
        let info = self.model_info(setup, settings);
        let reasons = info.reasons || effort.is_some();
        Prompt {
            thread,
            cache_key: self.cache_key,
            model: model.clone(),
            instructions: Arc::clone(&self.instructions),
            input,
            tools,
            parallel_tool_calls: self.calls_in_parallel(setup, settings),
            reasoning: reasons.then(|| ReasoningRequest {
                effort: effort.clone(),
                summary: (*summary != ReasoningSummary::None).then(|| summary.clone()),
                thinking: info.thinking,
            }),
            verbosity: verbosity.clone(),
            output_schema: None,
            max_output_tokens: info.max_output_tokens,
            pace: None,
        }
    }

    /// Updates the environment, and returns the messages about it for the model.
    pub(super) fn renew_environment(&mut self, setup: &Setup) -> Vec<Message> {
        let environment = Environment::new(&self.settings, shell_name(setup.shell.as_deref()));
        let changes = environment.changes(&self.environment);
        self.environment = environment;
        changes
    }

    /// Builds the message of the user. The future does not borrow the session.
    pub(super) fn message(
        &self,
        setup: &Setup,
        content: Vec<UserInput>,
        key: Option<Arc<str>>,
        cwd: PathBuf,
    ) -> impl Future<Output = UserMessage> + use<> {
        let show = images::ImageDetail { history: setup.profile.history, marks: setup.profile.marks_images };
        let said = images::user_message(content, cwd, Arc::clone(&self.skills), show);
        async { UserMessage { key, ..said.await } }
    }
}

/// Whether the model may ask for permissions: the user has enabled that, and somebody may be asked.
fn asks_permissions(setup: &Setup, settings: &Settings) -> bool {
    let is_enabled = setup.config.features.get("request_permissions_tool").copied().unwrap_or(false);
    is_enabled && settings.approval_policy.silence(ApprovalKind::Permissions).is_none()
}
