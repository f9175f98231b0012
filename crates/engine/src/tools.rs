//! The tools the model is offered, and what they do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use codex_log::{Body, ItemId};
use codex_wire::plan::UpdatePlanArgs;
use codex_wire::response::{ContentItem, FunctionCallOutputPayload};
use codex_wire::tool_spec::{ToolList, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::command::{CommandRequest, Place, WriteRequest};
use crate::images;
use crate::patching::PatchRequest;
use crate::turn::{Call, CallPayload, Company};

/// What a call led to: events for the log, then the output for the model.
#[derive(Debug)]
pub(crate) struct CallResult {
    pub(crate) events: Vec<Body>,
    pub(crate) output: FunctionCallOutputPayload,
}

impl CallResult {
    fn text(text: impl Into<String>) -> Self {
        Self { events: Vec::new(), output: FunctionCallOutputPayload::Text(text.into()) }
    }
}

/// The tools as the model is told of them.
#[derive(Clone)]
pub(crate) struct Tools {
    /// All that it has.
    pub(crate) all: Arc<ToolList>,
    /// The same while it works towards a goal.
    pub(crate) with_goal: Arc<ToolList>,
    /// An empty list, for requests that are to be answered in words alone.
    pub(crate) none: Arc<ToolList>,
}

impl Tools {
    /// The tools of a thread.
    pub(crate) fn offered(has_terminals: bool, searches_web: bool) -> Self {
        // They are described once for all threads.
        static KNOWN: Mutex<BTreeMap<(bool, bool), Tools>> = Mutex::new(BTreeMap::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || {
            let all = offered(has_terminals, searches_web);
            let with_goal = all.iter().cloned().chain([update_goal_tool()]).collect();
            Self { all: ToolList::of(all), with_goal: ToolList::of(with_goal), none: ToolList::of(Vec::new()) }
        };
        known.entry((has_terminals, searches_web)).or_insert_with(make).clone()
    }
}

fn offered(has_terminals: bool, searches_web: bool) -> Vec<ToolSpec> {
    let mut tools = if has_terminals { vec![exec_command(), write_stdin()] } else { vec![shell()] };
    tools.push(apply_patch_tool());
    if searches_web {
        tools.push(ToolSpec::WebSearch);
    }
    tools.push(view_image_tool());
    tools.push(ToolSpec::function(
        "update_plan",
        "Shows the person your plan. Send all steps each time, with at most one in progress.",
        json!({
            "type": "object",
            "properties": {
                "explanation": {"type": "string", "description": "Why the plan changed, if it did"},
                "plan": {
                    "type": "array",
                    "description": "The steps, in order",
                    "items": {
                        "type": "object",
                        "properties": {
                            "step": {"type": "string"},
                            "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]}
                        },
                        "required": ["step", "status"],
                        "additionalProperties": false
                    }
                }
            },
            "required": ["plan"],
            "additionalProperties": false
        }),
    ));
    tools
}

fn update_goal_tool() -> ToolSpec {
    ToolSpec::function(
        "update_goal",
        "Says that the goal of this thread is reached, or that you cannot go on without the person.",
        json!({
            "type": "object",
            "properties": {
                "status": {
                    "type": "string",
                    "enum": ["complete", "blocked"],
                    "description": "`complete` only when all of it is done and you have checked that"
                }
            },
            "required": ["status"],
            "additionalProperties": false
        }),
    )
}

fn shell() -> ToolSpec {
    ToolSpec::function(
        "shell",
        "Runs a command and returns what it prints. Most commands need a shell: [\"bash\", \"-lc\", \"…\"].",
        json!({
            "type": "object",
            "properties": {
                "command": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "The program and its arguments"
                },
                "workdir": {"type": "string", "description": "Where to run it; the working directory by default"},
                "timeout_ms": {"type": "number", "description": "How long it may take; 10 seconds by default"},
                "sandbox_permissions": {
                    "type": "string",
                    "enum": ["use_default", "require_escalated"],
                    "description": "`require_escalated` asks the person to let it run outside the sandbox"
                },
                "justification": {
                    "type": "string",
                    "description": "With `require_escalated`: one sentence that tells the person why"
                }
            },
            "required": ["command"],
            "additionalProperties": false
        }),
    )
}

fn apply_patch_tool() -> ToolSpec {
    ToolSpec::function(
        "apply_patch",
        include_str!("../prompts/apply_patch.md"),
        json!({
            "type": "object",
            "properties": {"input": {"type": "string", "description": "The patch, from `*** Begin Patch` to `*** End Patch`"}},
            "required": ["input"],
            "additionalProperties": false
        }),
    )
}

fn view_image_tool() -> ToolSpec {
    ToolSpec::function(
        "view_image",
        "Shows you a picture: a PNG, JPEG, GIF or WebP file on this machine.",
        json!({
            "type": "object",
            "properties": {"path": {"type": "string", "description": "The file"}},
            "required": ["path"],
            "additionalProperties": false
        }),
    )
}

fn exec_command() -> ToolSpec {
    ToolSpec::function(
        "exec_command",
        "Runs a command in a terminal. Returns its output, or a session ID while it goes on.",
        json!({
            "type": "object",
            "properties": {
                "cmd": {"type": "string", "description": "The command, for a shell"},
                "workdir": {"type": "string", "description": "Where to run it; the working directory by default"},
                "shell": {"type": "string", "description": "The shell; the person's own by default"},
                "login": {"type": "boolean", "description": "Whether it is a login shell; true by default"},
                "yield_time_ms": {"type": "number", "description": "How long to wait for its end; 10 seconds by default"},
                "max_output_tokens": {"type": "number", "description": "How much of its output to return"},
                "sandbox_permissions": {"type": "string", "enum": ["use_default", "require_escalated"]},
                "justification": {"type": "string", "description": "With `require_escalated`: why, in one sentence"}
            },
            "required": ["cmd"],
            "additionalProperties": false
        }),
    )
}

fn write_stdin() -> ToolSpec {
    ToolSpec::function(
        "write_stdin",
        "Types into the terminal of a running command, or only looks at it, and returns what it shows.",
        json!({
            "type": "object",
            "properties": {
                "session_id": {"type": "number", "description": "The session ID that exec_command returned"},
                "chars": {"type": "string", "description": "What to type; empty to look only"},
                "yield_time_ms": {"type": "number", "description": "How long to wait for its end; 250 by default"},
                "max_output_tokens": {"type": "number", "description": "How much of its output to return"}
            },
            "required": ["session_id"],
            "additionalProperties": false
        }),
    )
}

/// What may run beside a call. Patches, plans and goals change what later calls find, so they run alone; a tool that nobody
/// knows is answered at once.
pub(crate) fn company(call: &Call) -> Company {
    // Neither the folder nor the shell matters for whether a command is a patch.
    let anywhere = Place { cwd: Path::new("/"), shell: "sh", next_process: 0, is_verbatim: false };
    match (call.tool.as_str(), &call.payload) {
        ("apply_patch" | "update_plan" | "update_goal", _) => Company::Nobody,
        ("write_stdin", CallPayload::Function(arguments)) => {
            let request = WriteRequest::read(arguments);
            request.map_or(Company::All, |request| Company::AllButTerminal(request.look().process))
        }
        _ => match CommandRequest::read(call, anywhere) {
            Some(Ok(command)) if PatchRequest::find(&command).is_some() => Company::Nobody,
            Some(_) | None => Company::All,
        },
    }
}

/// A call that has begun.
pub(crate) enum Begun {
    /// It is over already.
    Over(CallResult),
    /// It takes its time.
    Later(Later),
}

/// The end of a call that takes its time.
pub(crate) type Later = Pin<Box<dyn Future<Output = CallResult> + Send>>;

/// Begins a call that is no command. It never fails: what goes wrong is told to the model.
pub(crate) fn run(call: &Call, cwd: &Path) -> Begun {
    match (call.tool.as_str(), &call.payload) {
        ("update_plan", CallPayload::Function(arguments)) => Begun::Over(update_plan(arguments)),
        ("view_image", CallPayload::Function(arguments)) => view_image(call.id.clone(), arguments, cwd),
        (tool, CallPayload::Function(_) | CallPayload::Own { .. }) => {
            Begun::Over(CallResult::text(format!("unsupported call: {tool}")))
        }
        (tool, CallPayload::Custom(_)) => {
            Begun::Over(CallResult::text(format!("unsupported custom tool call: {tool}")))
        }
    }
}

#[derive(Deserialize)]
struct ViewImageArguments {
    path: PathBuf,
}

fn view_image(item: ItemId, arguments: &str, cwd: &Path) -> Begun {
    let path = match serde_json::from_str::<ViewImageArguments>(arguments) {
        Ok(arguments) => cwd.join(arguments.path),
        Err(error) => {
            return Begun::Over(CallResult::text(format!("failed to parse function arguments: {error}")));
        }
    };
    let event = Body::ImageViewed { item, path: path.clone() };
    Begun::Later(Box::pin(async move {
        match images::read_beside(move || images::one_image(&path)).await {
            Some(part @ ContentItem::InputImage { .. }) => {
                CallResult { events: vec![event], output: FunctionCallOutputPayload::Parts(vec![part]) }
            }
            Some(part) => CallResult::text(part.text().cloned().unwrap_or_default()),
            None => CallResult::text("the picture could not be read in time"),
        }
    }))
}

fn update_plan(arguments: &str) -> CallResult {
    match serde_json::from_str::<UpdatePlanArgs>(arguments) {
        Ok(plan) => CallResult {
            events: vec![Body::PlanUpdated(plan)],
            output: FunctionCallOutputPayload::Text("Plan updated".to_owned()),
        },
        Err(error) => CallResult::text(format!("failed to parse function arguments: {error}")),
    }
}
