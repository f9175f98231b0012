//! Tools that a client supplies and runs: a source of tools for the registry.
//!
//! Invariant: a call always ends, with an error for the model if the client is gone, is silent or answers nonsense.

mod check;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codex_log::client_tools::{Calling, ClientToolCall, ClientToolResult, ToolClient};
use codex_log::item::{DynamicCall, DynamicCallEnd};
use codex_log::{Answer, Body, Item, Status, TurnId};
use codex_wire::dynamic_tool::{
    DynamicTool, DynamicToolCallOutputContentItem as Part, DynamicToolNamespaceTool, DynamicToolSpec,
};
use codex_wire::ids::ThreadId;
use codex_wire::response::ContentItem;
use codex_wire::tool_spec::ToolSpec;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::call::{Concurrency, ToolCall, ToolInput};
use crate::command::cut;
use crate::context::ToolContext;
use crate::grants::Grants;
use crate::lifecycle::{Call, Effect, ToolOutput};
use crate::plain::refused;
use crate::registry::{Offer, Tool, ToolSource};

pub use check::{SpecError, check};

/// The time limit of a call.
const ANSWER_WITHIN: Duration = Duration::from_secs(600);
/// The maximum number of parts of a result, of bytes of its texts, and of bytes of an image.
const MOST_PARTS: usize = 256;
const MOST_TEXT: usize = 256 * 1024;
const MOST_IMAGE: usize = 8 * 1024 * 1024;

/// The tools that a client supplies to one thread.
pub struct ClientTools {
    thread: ThreadId,
    specs: Vec<DynamicToolSpec>,
    binding: Arc<Mutex<Binding>>,
}

/// The client that runs the tools, and the turn that calls them.
#[derive(Debug, Default)]
struct Binding {
    client: Option<Arc<dyn ToolClient>>,
    turn: Option<TurnId>,
}

impl ClientTools {
    /// The tools of a thread, and the client that runs them, if it is connected.
    #[must_use]
    pub fn new(thread: ThreadId, specs: Vec<DynamicToolSpec>, client: Option<Arc<dyn ToolClient>>) -> Self {
        Self { thread, specs, binding: Arc::new(Mutex::new(Binding { client, turn: None })) }
    }

    fn binding(&self) -> MutexGuard<'_, Binding> {
        self.binding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets another client run the tools, unless the present one still can.
    pub fn offer(&self, client: Arc<dyn ToolClient>) {
        let mut binding = self.binding();
        if !binding.client.as_ref().is_some_and(|client| client.is_present()) {
            binding.client = Some(client);
        }
    }

    /// Notes the turn that calls the tools from here on.
    pub fn begin_turn(&self, turn: &TurnId) {
        self.binding().turn = Some(turn.clone());
    }

    fn tool(&self, spec: &DynamicTool, namespace: Option<&str>, whole: Option<ToolSpec>) -> Arc<dyn Tool> {
        let name = namespace.map_or_else(|| spec.name.clone(), |namespace| format!("{namespace}__{}", spec.name));
        let function = function(spec, name.clone());
        Arc::new(ClientTool {
            name,
            called: (namespace.map(str::to_owned), spec.name.clone()),
            function,
            is_grouped: namespace.is_some(),
            whole,
            thread: self.thread,
            binding: Arc::clone(&self.binding),
        })
    }
}

impl fmt::Debug for ClientTools {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ClientTools").field("specs", &self.specs.len()).finish_non_exhaustive()
    }
}

impl ToolSource for ClientTools {
    fn version(&self) -> u64 {
        0
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools = Vec::new();
        for spec in &self.specs {
            match spec {
                DynamicToolSpec::Function(tool) => tools.push(self.tool(tool, None, None)),
                DynamicToolSpec::Namespace(group) => {
                    let members = group.tools.iter().map(|DynamicToolNamespaceTool::Function(tool)| tool);
                    let specs = members.clone().map(|tool| function(tool, tool.name.clone())).collect();
                    // The first tool of a namespace stands for all of them.
                    let mut whole = Some(ToolSpec::namespace(group.name.clone(), group.description.clone(), specs));
                    tools.extend(members.map(|tool| self.tool(tool, Some(&group.name), whole.take())));
                }
            }
        }
        tools
    }
}

fn function(tool: &DynamicTool, name: String) -> ToolSpec {
    let mut schema = tool.input_schema.clone();
    // Providers require both members.
    if schema.get("type").is_none() {
        schema["type"] = "object".into();
    }
    if schema.get("properties").is_none() {
        schema["properties"] = json!({});
    }
    ToolSpec::function(name, tool.description.clone(), schema)
}

/// A tool that a client supplies.
struct ClientTool {
    /// The name by which the model calls it.
    name: String,
    /// Its namespace and name, for the client.
    called: (Option<String>, String),
    function: ToolSpec,
    is_grouped: bool,
    /// The namespace with all its tools, for the first of them.
    whole: Option<ToolSpec>,
    thread: ThreadId,
    binding: Arc<Mutex<Binding>>,
}

impl Tool for ClientTool {
    fn spec(&self, offer: Offer) -> Option<ToolSpec> {
        if offer.has_namespaces && self.is_grouped { self.whole.clone() } else { Some(self.function.clone()) }
    }

    fn takes(&self, call: &ToolCall) -> bool {
        matches!(call.input, ToolInput::Function(_)) && call.tool == self.name
    }

    fn concurrency(&self, _: &ToolCall) -> Concurrency {
        Concurrency::Beside
    }

    fn begin(&self, call: ToolCall, cx: &Arc<ToolContext>, _: &Grants) -> Box<dyn Call> {
        let arguments = match &call.input {
            ToolInput::Function(text) if text.trim().is_empty() => Ok(json!({})),
            ToolInput::Function(text) => serde_json::from_str::<Value>(text),
            ToolInput::Custom(_) | ToolInput::UserShell { .. } => Ok(Value::Null),
        };
        let arguments = match arguments {
            Ok(arguments) => arguments,
            Err(error) => return refused(format!("failed to parse function arguments: {error}")),
        };
        let binding = self.binding.lock().unwrap_or_else(PoisonError::into_inner);
        let (namespace, tool) = self.called.clone();
        let asked = ClientToolCall {
            thread: self.thread,
            turn: binding.turn.clone().unwrap_or_else(|| TurnId::new("")),
            id: call.id,
            namespace,
            tool,
            arguments,
        };
        let client = binding.client.clone();
        Box::new(RunningCall { asked, client, phase: Phase::New, began: Instant::now(), most_bytes: cx.output_bytes() })
    }
}

/// A call in progress.
struct RunningCall {
    asked: ClientToolCall,
    client: Option<Arc<dyn ToolClient>>,
    phase: Phase,
    began: Instant,
    /// The number of bytes of text that the model receives.
    most_bytes: usize,
}

enum Phase {
    New,
    Calling(Calling),
    Over,
}

impl RunningCall {
    fn item(&self, status: Status, end: Option<DynamicCallEnd>) -> Item {
        let ClientToolCall { id, namespace, tool, arguments, .. } = self.asked.clone();
        Item::DynamicCall(Arc::new(DynamicCall { id, namespace, tool, arguments, status, end }))
    }

    /// The item of a call that has ended.
    fn ended(&self, status: Status, content: Option<Vec<Part>>) -> Body {
        let duration = self.began.elapsed();
        Body::ItemCompleted(self.item(status, Some(DynamicCallEnd { duration, content })))
    }

    fn end(&mut self, result: Result<ClientToolResult, String>) -> Vec<Effect> {
        self.phase = Phase::Over;
        let (status, content, output) = match result {
            Ok(ClientToolResult { content, success }) => {
                let content = bounded(content);
                let status = if success { Status::Completed } else { Status::Failed };
                let output = for_model(&content, success, self.most_bytes);
                (status, Some(content), output)
            }
            Err(why) => {
                let text = format!("the tool `{}` of the client failed: {why}", self.asked.tool);
                (Status::Failed, None, ToolOutput::Text(text))
            }
        };
        vec![Effect::Emit(self.ended(status, content)), Effect::End(output)]
    }
}

impl Call for RunningCall {
    fn begun(&mut self) -> Vec<Effect> {
        vec![Effect::Emit(Body::ItemStarted(self.item(Status::Running, None)))]
    }

    fn answered(&mut self, _: Answer) -> Vec<Effect> {
        Vec::new()
    }

    fn next(&mut self) -> BoxFuture<'_, Vec<Effect>> {
        Box::pin(async {
            if let Phase::New = self.phase {
                // It is called only now, when its item is in the log.
                let Some(client) = self.client.take().filter(|client| client.is_present()) else {
                    return self.end(Err("no client is connected that supplies it".to_owned()));
                };
                self.phase = Phase::Calling(client.call(self.asked.clone()));
            }
            let Phase::Calling(calling) = &mut self.phase else { return std::future::pending().await };
            let left = ANSWER_WITHIN.saturating_sub(self.began.elapsed());
            let late = || Err(format!("the client did not answer within {} s", ANSWER_WITHIN.as_secs()));
            let result = timeout(left, calling).await.unwrap_or_else(|_| late());
            self.end(result)
        })
    }

    fn stop(&mut self) -> Vec<Effect> {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Over => Vec::new(),
            Phase::New | Phase::Calling(_) => vec![Effect::Emit(self.ended(Status::Failed, None))],
        }
    }
}

/// A result within limits.
fn bounded(content: Vec<Part>) -> Vec<Part> {
    let note = |text: String| Part::InputText { text };
    let left_out = content.len().saturating_sub(MOST_PARTS);
    let mut room = MOST_TEXT;
    let part = |part: Part| match part {
        Part::InputText { text } => {
            let text = cut(&text, room, text.len() as u64, text.lines().count());
            room = room.saturating_sub(text.len());
            note(text)
        }
        // Only the data itself is passed on: an address could name any file or host.
        Part::InputImage { image_url } if image_url.len() <= MOST_IMAGE && image_url.starts_with("data:image/") => {
            Part::InputImage { image_url }
        }
        Part::InputImage { image_url } if image_url.starts_with("data:") => {
            note(format!("[image of {} bytes is left out]", image_url.len()))
        }
        Part::InputImage { .. } => note("[an image that is not a data: URL is left out]".to_owned()),
        Part::InputAudio { audio_url } => note(format!("[audio of {} bytes is left out]", audio_url.len())),
    };
    let mut content: Vec<Part> = content.into_iter().take(MOST_PARTS).map(part).collect();
    if left_out > 0 {
        content.push(note(format!("[{left_out} more parts are left out]")));
    }
    content
}

/// A result as the model receives it.
fn for_model(content: &[Part], success: bool, most_bytes: usize) -> ToolOutput {
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|part| match part {
            Part::InputText { text } => Some(text.as_str()),
            Part::InputImage { .. } | Part::InputAudio { .. } => None,
        })
        .collect();
    let text = texts.join("\n");
    let text = cut(&text, most_bytes, text.len() as u64, text.lines().count());
    let text = match (success, text.is_empty()) {
        (true, _) => text,
        (false, true) => "the tool failed".to_owned(),
        (false, false) => format!("the tool failed:\n{text}"),
    };
    let images: Vec<ContentItem> = content
        .iter()
        .filter_map(|part| match part {
            Part::InputImage { image_url } => Some(ContentItem::InputImage { image_url: image_url.clone() }),
            Part::InputText { .. } | Part::InputAudio { .. } => None,
        })
        .collect();
    if images.is_empty() {
        return ToolOutput::Text(text);
    }
    let text = (!text.is_empty()).then(|| ContentItem::InputText { text: text.into() });
    ToolOutput::Parts(text.into_iter().chain(images).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Part {
        Part::InputText { text: text.to_owned() }
    }

    fn image(url: &str) -> Part {
        Part::InputImage { image_url: url.to_owned() }
    }

    #[test]
    fn results_are_bounded_and_images_are_data() {
        let many = bounded(vec![text(&"x".repeat(MOST_TEXT)), text("more"), image("https://x/y.png")]);
        assert!(matches!(&many[1], Part::InputText { text } if text.len() < 100));
        assert_eq!(many[2], text("[an image that is not a data: URL is left out]"));
        assert_eq!(bounded(vec![text(""); 1000]).len(), MOST_PARTS + 1);
        let audio = Part::InputAudio { audio_url: "data:audio/wav;base64,AA".to_owned() };
        assert_eq!(bounded(vec![audio]), [text("[audio of 24 bytes is left out]")]);
        assert_eq!(for_model(&[text("a"), text("b")], true, 100), ToolOutput::Text("a\nb".to_owned()));
        assert_eq!(for_model(&[], false, 100), ToolOutput::Text("the tool failed".to_owned()));
        let ToolOutput::Parts(parts) = for_model(&[image("data:image/png;base64,AA"), text("a")], true, 100) else {
            panic!("it has parts")
        };
        assert_eq!(parts.len(), 2);
    }
}
