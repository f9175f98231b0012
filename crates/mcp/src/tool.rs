//! Tools of servers, for the registry.

use std::collections::BTreeSet;
use std::sync::Arc;

use codex_config::McpServer;
use codex_tools::call::{Concurrency, ToolCall, ToolInput};
use codex_tools::context::ToolContext;
use codex_tools::grants::Grants;
use codex_tools::lifecycle::{Call, Effect, ToolOutput};
use codex_tools::registry::{Offer, Tool};
use codex_wire::mcp::Tool as Described;
use codex_wire::tool_spec::ToolSpec;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::call::{RunningCall, Target};
use crate::names;
use crate::namespace::ServerNamespace;
use crate::server::{Phase, Server};
use crate::thread_servers::Slot;

/// A tool of a server.
pub(crate) struct ServerTool {
    /// The name by which the model calls it.
    name: String,
    /// Its name in the namespace of its server.
    short_name: String,
    spec: ToolSpec,
    /// The namespace of the server, for the first of its tools.
    namespace: Option<ServerNamespace>,
    target: Arc<Target>,
    runs_in_parallel: bool,
    /// Whether its server is starting, and had it when it last ran. Calls then wait, and are judged by the tool that the
    /// server has.
    is_remembered: bool,
}

impl ServerTool {
    /// The tools of a server, under names that are added to the `taken` ones.
    pub(crate) fn all(
        slot: &Slot,
        server: &Arc<Server>,
        listed: &[Described],
        is_remembered: bool,
        taken: &mut BTreeSet<String>,
    ) -> Vec<Self> {
        let offered: Vec<_> = listed.iter().filter(|tool| slot.config.offers(&tool.name)).collect();
        let short = ServerNamespace::names(offered.iter().map(|tool| &*tool.name));
        let mut tools: Vec<Self> = offered
            .into_iter()
            .zip(short)
            .map(|(tool, short_name)| {
                let name = names::tool_name(&slot.config.name, &tool.name, taken);
                Self { short_name, ..Self::new(name, slot, Arc::clone(server), tool, is_remembered) }
            })
            .collect();
        let specs = tools.iter().map(|tool| (tool.short_name.clone(), tool.spec.clone())).collect();
        if let Some(first) = tools.first_mut() {
            first.namespace = Some(ServerNamespace::new(&slot.config.name, specs));
        }
        tools
    }

    fn new(name: String, slot: &Slot, server: Arc<Server>, tool: &Described, is_remembered: bool) -> Self {
        let description = tool.description.clone().or_else(|| tool.title.clone()).unwrap_or_default();
        let spec = ToolSpec::function(name.clone(), description, parameters(&tool.input_schema));
        let target = Target::new(Arc::clone(&slot.config), server, tool);
        let runs_in_parallel = slot.config.runs_in_parallel || target.claims.reads_only;
        let (short_name, namespace) = (String::new(), None);
        Self { name, short_name, spec, namespace, target: Arc::new(target), runs_in_parallel, is_remembered }
    }
}

/// The schema with the members that providers require.
fn parameters(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if schema.get("type").is_none() {
        schema["type"] = "object".into();
    }
    if schema.get("properties").is_none() {
        schema["properties"] = json!({});
    }
    schema
}

impl Tool for ServerTool {
    fn spec(&self, offer: Offer) -> Option<ToolSpec> {
        if offer.has_namespaces { self.namespace.as_ref().map(ServerNamespace::spec) } else { Some(self.spec.clone()) }
    }

    fn takes(&self, call: &ToolCall) -> bool {
        let server = &self.target.config.name;
        matches!(call.input, ToolInput::Function(_))
            && (names::means(&call.tool, &self.name, server, &self.target.tool)
                || names::is_grouped(&call.tool, server, &self.short_name))
    }

    fn concurrency(&self, _: &ToolCall) -> Concurrency {
        if self.runs_in_parallel { Concurrency::Beside } else { Concurrency::Alone }
    }

    fn begin(&self, call: ToolCall, cx: &Arc<ToolContext>, grants: &Grants) -> Box<dyn Call> {
        let is_granted = grants.allows_tool(&self.target.digest);
        if self.is_remembered {
            let granted = is_granted.then(|| self.target.digest.clone());
            let known = Some((self.target.tool.clone(), granted));
            return Box::new(EarlyCall::new(&self.target.config, &self.target.server, call, cx, known));
        }
        begin(&self.target, &call, cx, is_granted)
    }
}

/// Starts a call of a known tool.
fn begin(target: &Arc<Target>, call: &ToolCall, cx: &Arc<ToolContext>, is_granted: bool) -> Box<dyn Call> {
    let arguments = match &call.input {
        ToolInput::Function(text) if text.trim().is_empty() => Ok(json!({})),
        ToolInput::Function(text) => serde_json::from_str::<Value>(text).map_err(|error| error.to_string()),
        ToolInput::Custom(_) | ToolInput::UserShell { .. } => Err("the tool takes JSON".to_owned()),
    };
    match arguments {
        Ok(arguments) => Box::new(RunningCall::new(call.id.clone(), target, arguments, cx, is_granted)),
        Err(why) => Box::new(Refused(format!("failed to parse function arguments: {why}"))),
    }
}

/// A call that ends before it starts.
struct Refused(String);

impl Call for Refused {
    fn begun(&mut self) -> Vec<Effect> {
        vec![Effect::End(ToolOutput::Text(std::mem::take(&mut self.0)))]
    }

    fn answered(&mut self, _: codex_log::Answer) -> Vec<Effect> {
        Vec::new()
    }

    fn next(&mut self) -> BoxFuture<'_, Vec<Effect>> {
        Box::pin(std::future::pending())
    }

    fn stop(&mut self) -> Vec<Effect> {
        Vec::new()
    }
}

/// A server that is starting or has failed. Its tools are not known, but a model may know them from earlier turns.
pub(crate) struct StartingServer {
    config: Arc<McpServer>,
    server: Arc<Server>,
}

impl StartingServer {
    pub(crate) fn new(config: Arc<McpServer>, server: Arc<Server>) -> Self {
        Self { config, server }
    }
}

impl Tool for StartingServer {
    fn spec(&self, _: Offer) -> Option<ToolSpec> {
        None
    }

    fn takes(&self, call: &ToolCall) -> bool {
        matches!(call.input, ToolInput::Function(_)) && names::is_of_server(&call.tool, &self.config.name)
    }

    fn concurrency(&self, _: &ToolCall) -> Concurrency {
        Concurrency::Alone
    }

    fn begin(&self, call: ToolCall, cx: &Arc<ToolContext>, _: &Grants) -> Box<dyn Call> {
        Box::new(EarlyCall::new(&self.config, &self.server, call, cx, None))
    }
}

/// A call that waits for its server to start.
struct EarlyCall {
    config: Arc<McpServer>,
    server: Arc<Server>,
    call: ToolCall,
    cx: Arc<ToolContext>,
    /// The tool, if the model was offered it, and the digest of the tool that a person has allowed.
    known: Option<(String, Option<Box<str>>)>,
    begun: Option<Box<dyn Call>>,
}

impl EarlyCall {
    fn new(
        config: &Arc<McpServer>,
        server: &Arc<Server>,
        call: ToolCall,
        cx: &Arc<ToolContext>,
        known: Option<(String, Option<Box<str>>)>,
    ) -> Self {
        let (config, server) = (Arc::clone(config), Arc::clone(server));
        Self { config, server, call, cx: Arc::clone(cx), known, begun: None }
    }

    async fn begin(&mut self) -> Vec<Effect> {
        let McpServer { name, startup_timeout, .. } = &*self.config;
        let started = self.server.ready(*startup_timeout).await;
        let means = |tool: &&Described| {
            if let Some((known, _)) = &self.known {
                return tool.name == *known;
            }
            let safe = names::tool_name(name, &tool.name, &mut std::collections::BTreeSet::new());
            self.config.offers(&tool.name) && names::means(&self.call.tool, &safe, name, &tool.name)
        };
        let mut call = match &started {
            Ok(ready) => match ready.tools.iter().find(means) {
                Some(tool) => {
                    let target = Target::new(Arc::clone(&self.config), Arc::clone(&self.server), tool);
                    // A tool that has changed since it was allowed is asked about again.
                    let granted = self.known.as_ref().and_then(|(_, granted)| granted.as_ref());
                    let is_granted = granted == Some(&target.digest);
                    begin(&Arc::new(target), &self.call, &self.cx, is_granted)
                }
                None => Box::new(Refused(format!("unsupported call: {}", self.call.tool))),
            },
            Err(why) => Box::new(Refused(format!("the MCP server `{name}` cannot be used: {why}"))),
        };
        let effects = call.begun();
        self.begun = Some(call);
        effects
    }
}

impl Call for EarlyCall {
    fn begun(&mut self) -> Vec<Effect> {
        // One that has failed says why at once.
        match self.server.phase() {
            Phase::Failed(why) => {
                let why = format!("the MCP server `{}` cannot be used: {why}", self.config.name);
                vec![Effect::End(ToolOutput::Text(why))]
            }
            Phase::Starting | Phase::Ready(_) => Vec::new(),
        }
    }

    fn answered(&mut self, answer: codex_log::Answer) -> Vec<Effect> {
        self.begun.as_mut().map(|call| call.answered(answer)).unwrap_or_default()
    }

    fn next(&mut self) -> BoxFuture<'_, Vec<Effect>> {
        Box::pin(async move {
            match &mut self.begun {
                Some(call) => call.next().await,
                None => self.begin().await,
            }
        })
    }

    fn stop(&mut self) -> Vec<Effect> {
        self.begun.as_mut().map(|call| call.stop()).unwrap_or_default()
    }

    fn may_begin_again(&self) -> bool {
        self.begun.as_ref().is_none_or(|call| call.may_begin_again())
    }
}
