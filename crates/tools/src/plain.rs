//! The calls that need no permission: plans, pictures, and tools that nobody knows.

use std::path::{Path, PathBuf};
use std::pin::Pin;

use codex_log::{Body, ItemId};
use codex_wire::plan::UpdatePlanArgs;
use codex_wire::response::{ContentItem, FunctionCallOutputPayload};
use serde::Deserialize;

use crate::call::{ToolCall, ToolInput};
use crate::images;

/// What a call led to: events for the log, then the output for the model.
#[derive(Debug)]
pub struct CallResult {
    pub events: Vec<Body>,
    pub output: FunctionCallOutputPayload,
}

impl CallResult {
    fn text(text: impl Into<String>) -> Self {
        Self { events: Vec::new(), output: FunctionCallOutputPayload::Text(text.into()) }
    }
}

/// A call that has begun.
pub enum Begun {
    /// It is over already.
    Over(CallResult),
    /// It takes its time.
    Later(Later),
}

/// The end of a call that takes its time.
pub type Later = Pin<Box<dyn Future<Output = CallResult> + Send>>;

/// Begins a call that is no command. It never fails: what goes wrong is told to the model.
#[must_use]
pub fn run(call: &ToolCall, cwd: &Path) -> Begun {
    match (call.tool.as_str(), &call.input) {
        ("update_plan", ToolInput::Function(arguments)) => Begun::Over(update_plan(arguments)),
        ("view_image", ToolInput::Function(arguments)) => view_image(call.id.clone(), arguments, cwd),
        (tool, ToolInput::Function(_) | ToolInput::UserShell { .. }) => {
            Begun::Over(CallResult::text(format!("unsupported call: {tool}")))
        }
        (tool, ToolInput::Custom(_)) => Begun::Over(CallResult::text(format!("unsupported custom tool call: {tool}"))),
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
