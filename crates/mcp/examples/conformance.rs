//! A client for the conformance suite of MCP, which starts it with the address of a server and the name of a scenario:
//!
//! ```sh
//! cargo build -p codex-mcp --example conformance
//! npx @modelcontextprotocol/conformance client --command target/debug/examples/conformance --scenario tools_call
//! ```
//!
//! It does what a thread does: starts the server, logs in if the server wants it, calls every tool, and accepts every
//! question. The user in the browser is played by a request that follows where the login page leads.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use codex_config::{Config, Env, Home, Overrides};
use codex_log::settings::Settings;
use codex_log::{Answer, Body, ItemId};
use codex_mcp::McpServers;
use codex_tools::call::{ToolCall, ToolInput};
use codex_tools::context::{ToolContext, ToolSetup};
use codex_tools::grants::Grants;
use codex_tools::lifecycle::{CallEvent, Lifecycle, OpenGate, ToolOutput};
use codex_tools::registry::{Registry, ToolSource};
use codex_tools::rules::Rules;
use codex_tools::servers::{ServerLoginRequest, ServerScope, ServerState, ServerStatus, ThreadServers, ToolServers};
use codex_wire::decision::ElicitationDecision;
use codex_wire::mcp::McpAuthStatus;
use codex_wire::policy::{AskForApproval, SandboxPolicy};
use serde_json::{Value, json};
use tokio::time::timeout;

/// The longest that anything may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The most further logins for one call.
const MOST_LOGINS: usize = 2;
/// The address that the suite expects of a client that describes itself in a document.
const CLIENT_DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let done = runtime.map_err(|error| error.to_string()).and_then(|runtime| runtime.block_on(run()));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), String> {
    let url = std::env::args().nth(1).ok_or("usage: conformance URL")?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let home = Home::at(folder.path());
    std::fs::write(home.config_file(), config(&url)).map_err(|error| error.to_string())?;
    let config = Config::load(&home, &env(), &Overrides::default()).map_err(|error| error.to_string())?;
    let client =
        Client::new(ServerScope { config: Arc::new(config), home, cwd: folder.path().to_owned(), reload: None });
    client.start().await?;
    client.call_all().await?;
    client.end().await;
    Ok(())
}

/// The context of the scenario.
fn context() -> Value {
    let text = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// The variables of this process, and the secret of the context.
fn env() -> Env {
    let secret = context()["client_secret"].as_str().unwrap_or_default().to_owned();
    std::env::vars().chain([("CONFORMANCE_SECRET".to_owned(), secret)]).collect()
}

fn config(url: &str) -> String {
    let context = context();
    let oauth = match context["client_id"].as_str() {
        Some(id) => format!("{{ client_id = '{id}', client_secret_env_var = 'CONFORMANCE_SECRET' }}"),
        None => format!("{{ client_id = '{CLIENT_DOCUMENT}' }}"),
    };
    format!(
        "mcp_oauth_credentials_store = 'file'\n[mcp_servers.s]\nurl = '{url}'\noauth = {oauth}\n\
         default_tools_approval_mode = 'approve'\n"
    )
}

/// A thread with one server.
struct Client {
    all: McpServers,
    scope: ServerScope,
    servers: Arc<dyn ThreadServers>,
}

impl Client {
    fn new(scope: ServerScope) -> Self {
        let all = McpServers::new(env());
        let servers = all.open(scope.clone());
        Self { all, scope, servers }
    }

    async fn status(&self) -> Result<ServerStatus, String> {
        let listed = timeout(PATIENCE, self.servers.list()).await.map_err(|_| "the server is too slow")?;
        listed.into_iter().next().ok_or_else(|| "there is no server".to_owned())
    }

    /// Waits for the server, and logs in if it wants that.
    async fn start(&self) -> Result<(), String> {
        let status = self.status().await?;
        match status.state {
            ServerState::Connected => Ok(()),
            ServerState::Failed(_) if status.auth == McpAuthStatus::NotLoggedIn => {
                self.log_in().await?;
                // It starts again by itself.
                loop {
                    let event = timeout(PATIENCE, self.servers.next_event()).await;
                    event.map_err(|_| "the server does not start after the login")?;
                    match self.status().await?.state {
                        ServerState::Connected => return Ok(()),
                        ServerState::Starting | ServerState::Disabled | ServerState::Failed(_) => {}
                    }
                }
            }
            state => Err(format!("the server did not start: {state:?}")),
        }
    }

    async fn log_in(&self) -> Result<(), String> {
        let request = ServerLoginRequest { name: "s".to_owned(), ..ServerLoginRequest::default() };
        let begun = self.all.log_in(self.scope.clone(), request).await.map_err(|error| error.message)?;
        timeout(PATIENCE, visit(&begun.url)).await.map_err(|_| "the login page is too slow")??;
        begun.end.await.map_err(|error| error.message)
    }

    /// Calls every tool. A call that the login does not allow is tried again after another login.
    async fn call_all(&self) -> Result<(), String> {
        for (name, tool) in self.status().await?.names {
            let mut logins = 0;
            loop {
                let output = self.call(&name, &arguments(&tool)).await?;
                eprintln!("{name}: {output}");
                if !output.contains("the login lacks a scope") || logins == MOST_LOGINS {
                    break;
                }
                logins += 1;
                self.log_in().await?;
            }
        }
        Ok(())
    }

    async fn call(&self, tool: &str, arguments: &Value) -> Result<String, String> {
        let sources = vec![Arc::clone(&self.servers) as Arc<dyn ToolSource>];
        let mut lifecycle =
            Lifecycle::new(Arc::new(Registry::new(sources)), Arc::new(OpenGate), Grants::by(Rules::default()));
        let cx = self.context(&lifecycle);
        let input = ToolInput::Function(arguments.to_string());
        let mut events = lifecycle.begin(ToolCall { id: ItemId::new("call"), tool: tool.to_owned(), input }, &cx);
        loop {
            for event in std::mem::take(&mut events) {
                match event {
                    CallEvent::Emit(Body::Asked(question)) => {
                        // A user who changes nothing accepts the defaults.
                        let given = Answer::Given { action: ElicitationDecision::Accept, content: Some(json!({})) };
                        events = lifecycle.answer(&question.id, given).unwrap_or_default();
                    }
                    CallEvent::Ended(_, ToolOutput::Text(text)) => return Ok(text),
                    CallEvent::Ended(_, ToolOutput::Parts(parts)) => return Ok(format!("{parts:?}")),
                    CallEvent::Emit(_) | CallEvent::Failed(_) | CallEvent::TurnStopped | CallEvent::GoalReported(_) => {
                    }
                }
            }
            if events.is_empty() {
                events = timeout(PATIENCE, lifecycle.next()).await.map_err(|_| format!("{tool} is too slow"))?;
            }
        }
    }

    fn context(&self, lifecycle: &Lifecycle) -> Arc<ToolContext> {
        let settings = Settings {
            approval_policy: AskForApproval::OnRequest,
            sandbox_policy: SandboxPolicy::ReadOnly,
            ..Settings::of_folder(self.scope.cwd.clone())
        };
        Arc::new(ToolContext::new(ToolSetup {
            config: &self.scope.config,
            home: &self.scope.home,
            programs: None,
            shell: None,
            is_verbatim: false,
            answer_within: None,
            settings: Arc::new(settings),
            thread: Arc::clone(lifecycle.thread()),
            sampler: None,
        }))
    }

    /// Ends the session with the server.
    async fn end(self) {
        drop((self.servers, self.all));
        tokio::task::yield_now().await;
    }
}

/// Opens the page of a login, and follows it back to this program.
async fn visit(page: &str) -> Result<(), String> {
    let mut next = Some(page.to_owned());
    while let Some(address) = next {
        let url = reqwest::Url::parse(&address).map_err(|error| error.to_string())?;
        let client = codex_model::http_client(&url, PATIENCE, None).map_err(|error| error.to_string())?;
        let response = client.get(url).send().await.map_err(|error| error.without_url().to_string())?;
        // The client itself stays on one host.
        let location = response.headers().get(reqwest::header::LOCATION);
        next = location.and_then(|location| location.to_str().ok()).map(str::to_owned);
    }
    Ok(())
}

/// The arguments that the tools of the suite take.
fn arguments(tool: &str) -> Value {
    match tool {
        "add_numbers" => json!({"a": 5, "b": 3}),
        _ => json!({}),
    }
}
