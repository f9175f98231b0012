//! The running calls of an answer, concurrent where that is allowed, and the questions about them.
//!
//! The turn decides which calls run, and [`Lifecycle`] takes each through its steps.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codex_log::client_tools::ToolClient;
use codex_log::settings::Settings;
use codex_log::{Body, ItemId, Question, QuestionKind, TurnId};
use codex_thread::{QuestionName, ServersRequest};
use codex_tools::agents::{AgentOrder, ThreadAgents};
use codex_tools::call::{ToolCall, ToolInput};
use codex_tools::context::{ToolContext, ToolSetup};
use codex_tools::dynamic::ClientTools;
use codex_tools::grants::Grants;
use codex_tools::lifecycle::{Lifecycle, OpenGate};
use codex_tools::registry::{BuiltIn, Registry, ToolSource};
use codex_tools::rules::Rules;
use codex_tools::servers::{ServerScope, ThreadServers, offered};
use codex_wire::event::McpStartupCompleteEvent;
use codex_wire::ids::ThreadId;
use codex_wire::mcp::McpInvocation;
use codex_wire::policy::SandboxPolicy;
use codex_wire::rollout::SessionMeta;
use tokio::sync::oneshot;

use super::profile::Profile;
use super::running::RunningTurn;

use crate::sampling;
use crate::setup::Setup;

/// The default time limit of a shell command of the user.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// The calls of a thread.
pub(super) struct Calls {
    /// Its calls, and the grants that they left for later ones.
    pub(super) lifecycle: Lifecycle,
    /// The settings whose folders are resolved.
    profile_key: Option<(PathBuf, SandboxPolicy)>,
    pub(super) servers: Option<Arc<dyn ThreadServers>>,
    /// The other agents of its tree.
    pub(super) agents: Option<Arc<dyn ThreadAgents>>,
    /// The tools that a client supplies.
    pub(super) client_tools: Option<Arc<ClientTools>>,
}

impl Calls {
    /// Creates the calls of a thread with these rules.
    pub(super) fn new(rules: Rules, setup: &Setup, meta: &SessionMeta) -> Self {
        let servers = setup.servers.as_ref().map(|access| {
            access.servers.open(ServerScope {
                config: Arc::clone(&setup.config),
                home: setup.home.clone(),
                cwd: setup.cwd.clone(),
                reload: access.reload.clone(),
            })
        });
        let agents = setup.agents.clone();
        let mut sources: Vec<Arc<dyn ToolSource>> = vec![Arc::new(BuiltIn)];
        sources.extend(agents.iter().map(|agents| Arc::clone(agents) as Arc<dyn ToolSource>));
        sources.extend(servers.iter().map(|servers| Arc::clone(servers) as Arc<dyn ToolSource>));
        let client_tools = client_tools(setup, meta);
        sources.extend(client_tools.iter().map(|tools| Arc::clone(tools) as Arc<dyn ToolSource>));
        let registry = Registry::new(sources);
        let lifecycle = Lifecycle::new(Arc::new(registry), Arc::new(OpenGate), Grants::by(rules));
        Self { lifecycle, profile_key: None, servers, agents, client_tools }
    }

    /// Serves a request about the MCP servers, while the thread continues.
    pub(super) fn serve(&self, request: ServersRequest) {
        const NONE: &str = "this thread has no MCP servers";
        match (request, &self.servers) {
            (ServersRequest::List { reply }, Some(servers)) => {
                let listing = servers.list();
                tokio::spawn(async move { give(reply, offered(listing.await)) });
            }
            (ServersRequest::List { reply }, None) => give(reply, offered(Vec::new())),
            (ServersRequest::ListPrompts { reply }, Some(servers)) => {
                let listing = servers.prompts();
                tokio::spawn(async move { give(reply, listing.await) });
            }
            (ServersRequest::ListPrompts { reply }, None) => give(reply, Vec::new()),
            (ServersRequest::Startup { reply }, Some(servers)) => give(reply, servers.startup()),
            (ServersRequest::Startup { reply }, None) => give(reply, Some(McpStartupCompleteEvent::default())),
            (ServersRequest::CallTool { invocation, reply }, Some(servers)) => {
                let McpInvocation { server, tool, arguments } = *invocation;
                let calling = servers.call(server, tool, arguments);
                tokio::spawn(async move { give(reply, calling.await) });
            }
            (ServersRequest::CallTool { reply, .. }, None) => give(reply, Err(NONE.to_owned())),
            (ServersRequest::ReadResource { server, uri, reply }, Some(servers)) => {
                let reading = servers.read_resource(server, uri);
                tokio::spawn(async move { give(reply, reading.await) });
            }
            (ServersRequest::ReadResource { reply, .. }, None) => give(reply, Err(NONE.to_owned())),
        }
    }

    /// Lets a client run the tools that a client supplies, if there are any.
    pub(super) fn offer_client(&self, client: Arc<dyn ToolClient>, reply: oneshot::Sender<()>) {
        if let Some(tools) = &self.client_tools {
            tools.offer(client);
        }
        give(reply, ());
    }

    /// Waits for the next event of a server. Cancel safe.
    pub(super) async fn next_server_event(servers: Option<&Arc<dyn ThreadServers>>) -> Body {
        match servers {
            Some(servers) => servers.next_event().await,
            None => std::future::pending().await,
        }
    }

    /// Waits for the next order of the tree of agents. Cancel safe.
    pub(super) async fn next_order(agents: Option<&Arc<dyn ThreadAgents>>) -> AgentOrder {
        match agents {
            Some(agents) => agents.next_order().await,
            None => std::future::pending().await,
        }
    }

    /// The context of the calls of a turn, fixed when the first of them starts.
    pub(super) fn context(&self, setup: &Setup, profile: &Profile, turn: Option<&mut RunningTurn>) -> Arc<ToolContext> {
        if let Some(cx) = turn.as_ref().and_then(|turn| turn.tool_context.as_ref()) {
            return Arc::clone(cx);
        }
        let settings = Arc::clone(turn.as_ref().map_or(&profile.settings, |turn| &turn.settings));
        let sampler = self.servers.is_some().then(|| sampling::turn_model(setup, &settings));
        let cx = Arc::new(ToolContext::new(ToolSetup {
            config: &setup.config,
            home: &setup.home,
            programs: setup.programs.as_deref(),
            shell: setup.shell.as_deref(),
            is_verbatim: profile.model_info(setup, &settings).has_terminals(),
            answer_within: setup.profile.answer_within,
            settings,
            thread: Arc::clone(self.lifecycle.thread()),
            sampler,
        }));
        if let Some(turn) = turn {
            turn.tool_context = Some(Arc::clone(&cx));
        }
        cx
    }

    /// Resolves the folders of the settings, before any command can replace them by links.
    pub(super) fn hold_roots(&mut self, setup: &Setup, profile: &Profile, turn: Option<&mut RunningTurn>) {
        let settings = turn.as_ref().map_or(&profile.settings, |turn| &turn.settings);
        let Settings { cwd, sandbox_policy, .. } = &**settings;
        if self.profile_key.as_ref().is_some_and(|(key, policy)| key == cwd && policy == sandbox_policy) {
            return;
        }
        let key = (cwd.clone(), sandbox_policy.clone());
        self.context(setup, profile, turn).hold_roots();
        self.profile_key = Some(key);
    }
}

/// The tools that a client supplies, if there are any. The program that has registered them runs them.
fn client_tools(setup: &Setup, meta: &SessionMeta) -> Option<Arc<ClientTools>> {
    let specs = &meta.lineage.dynamic_tools;
    let client = setup.additions.tool_client.clone().filter(|_| meta.originator == setup.originator);
    (!specs.is_empty()).then(|| Arc::new(ClientTools::new(meta.id, specs.clone(), client)))
}

/// The open question that an answer refers to: the one with that id, the last one about that call, or the only one if
/// the turn is named.
pub(super) fn meant<'a>(
    asked: &'a [Arc<Question>],
    name: &QuestionName,
    turn: Option<&TurnId>,
) -> Option<&'a Arc<Question>> {
    match name {
        QuestionName::Id(id) => asked.iter().find(|asked| asked.id == *id),
        QuestionName::Elicitation { server, id } => asked.iter().find(|asked| match &asked.kind {
            QuestionKind::Elicitation(asked) => asked.server == *server && asked.id == *id,
            _ => false,
        }),
        QuestionName::CallOrTurn(name) => {
            let is_turn = turn.is_some_and(|turn| turn.as_str() == name);
            let about_call = asked.iter().rfind(|asked| asked.item().as_str() == name);
            about_call.or_else(|| asked.first().filter(|_| asked.len() == 1 && is_turn))
        }
    }
}

/// A shell command of the user, as a call.
pub(super) fn user_shell(command: String, timeout: Option<Duration>) -> ToolCall {
    ToolCall {
        id: ItemId::new(ThreadId::fresh().to_string()),
        tool: "user_shell".to_owned(),
        input: ToolInput::UserShell { command, timeout: timeout.unwrap_or(LONGEST) },
    }
}

/// Answers a request. The effect of a request stays even if its client no longer waits for the answer.
pub(super) fn give<T>(reply: oneshot::Sender<T>, answer: T) {
    let _: Result<(), T> = reply.send(answer);
}
