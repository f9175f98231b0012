//! Calls that need no permission: plans, images, and unknown tools.

use std::path::PathBuf;
use std::sync::Arc;

use codex_log::{Answer, Body};
use codex_wire::goal::GoalStatus;
use codex_wire::plan::UpdatePlanArgs;
use codex_wire::response::ContentItem;
use codex_wire::tool_spec::ToolSpec;
use futures_util::future::BoxFuture;
use serde::Deserialize;

use crate::call::{Concurrency, ToolCall, ToolInput};
use crate::context::ToolContext;
use crate::grants::Grants;
use crate::images;
use crate::lifecycle::{Call, Effect, ToolOutput};
use crate::registry::{Offer, Tool};
use crate::specs;

/// A call without questions: it ends at once, or after a while.
enum PlainCall {
    Over(Vec<Effect>),
    Later(BoxFuture<'static, Vec<Effect>>),
}

impl Call for PlainCall {
    fn begun(&mut self) -> Vec<Effect> {
        match self {
            Self::Over(effects) => std::mem::take(effects),
            Self::Later(_) => Vec::new(),
        }
    }

    fn answered(&mut self, _: Answer) -> Vec<Effect> {
        Vec::new()
    }

    fn next(&mut self) -> BoxFuture<'_, Vec<Effect>> {
        Box::pin(async {
            match self {
                Self::Over(_) => std::future::pending().await,
                Self::Later(later) => later.await,
            }
        })
    }

    fn stop(&mut self) -> Vec<Effect> {
        Vec::new()
    }
}

fn said(text: impl Into<String>) -> Effect {
    Effect::End(ToolOutput::Text(text.into()))
}

/// A refused call, with the reason for the model.
pub(crate) fn refused(why: String) -> Box<dyn Call> {
    Box::new(PlainCall::Over(vec![said(why)]))
}

/// The output of a call to an unknown tool.
fn unsupported(call: &ToolCall) -> Box<dyn Call> {
    let tool = &call.tool;
    refused(match call.input {
        ToolInput::Function(_) | ToolInput::UserShell { .. } => format!("unsupported call: {tool}"),
        ToolInput::Custom(_) => format!("unsupported custom tool call: {tool}"),
    })
}

/// Unknown tools. Their calls are answered at once.
pub(crate) struct UnknownTool;

impl Tool for UnknownTool {
    fn spec(&self, _: Offer) -> Option<ToolSpec> {
        None
    }

    fn takes(&self, _: &ToolCall) -> bool {
        true
    }

    fn concurrency(&self, _: &ToolCall) -> Concurrency {
        Concurrency::Beside
    }

    fn begin(&self, call: ToolCall, _: &Arc<ToolContext>, _: &Grants) -> Box<dyn Call> {
        unsupported(&call)
    }
}

#[derive(Deserialize)]
struct UpdateGoalArguments {
    status: GoalStatus,
}

/// The tool for reporting on a goal, which the session keeps.
pub(crate) struct UpdateGoalTool;

impl Tool for UpdateGoalTool {
    fn spec(&self, offer: Offer) -> Option<ToolSpec> {
        offer.has_goal.then(|| specs::UPDATE_GOAL.clone())
    }

    fn takes(&self, call: &ToolCall) -> bool {
        call.tool == "update_goal"
    }

    /// Later calls see another goal.
    fn concurrency(&self, _: &ToolCall) -> Concurrency {
        Concurrency::Alone
    }

    fn begin(&self, call: ToolCall, cx: &Arc<ToolContext>, _: &Grants) -> Box<dyn Call> {
        let ToolInput::Function(arguments) = &call.input else { return unsupported(&call) };
        if !cx.thread.offers_goal() {
            return unsupported(&call);
        }
        match serde_json::from_str::<UpdateGoalArguments>(arguments).map(|arguments| arguments.status) {
            Ok(status @ (GoalStatus::Complete | GoalStatus::Blocked)) => {
                Box::new(PlainCall::Over(vec![Effect::ReportGoal(status), said("Goal updated")]))
            }
            Ok(_) => refused("the status must be `complete` or `blocked`".to_owned()),
            Err(error) => refused(format!("failed to parse function arguments: {error}")),
        }
    }
}

/// The provider's own web search. No call of it arrives here.
pub(crate) struct WebSearchTool;

impl Tool for WebSearchTool {
    fn spec(&self, offer: Offer) -> Option<ToolSpec> {
        offer.web_search.map(ToolSpec::WebSearch)
    }

    fn takes(&self, _: &ToolCall) -> bool {
        false
    }

    fn concurrency(&self, _: &ToolCall) -> Concurrency {
        Concurrency::Beside
    }

    fn begin(&self, call: ToolCall, _: &Arc<ToolContext>, _: &Grants) -> Box<dyn Call> {
        unsupported(&call)
    }
}

/// The tool that shows the person a plan.
pub(crate) struct UpdatePlanTool;

impl Tool for UpdatePlanTool {
    fn spec(&self, _: Offer) -> Option<ToolSpec> {
        Some(specs::UPDATE_PLAN.clone())
    }

    fn takes(&self, call: &ToolCall) -> bool {
        call.tool == "update_plan"
    }

    /// Plans are shown in order.
    fn concurrency(&self, _: &ToolCall) -> Concurrency {
        Concurrency::Alone
    }

    fn begin(&self, call: ToolCall, _: &Arc<ToolContext>, _: &Grants) -> Box<dyn Call> {
        let ToolInput::Function(arguments) = &call.input else { return unsupported(&call) };
        match serde_json::from_str::<UpdatePlanArgs>(arguments) {
            Ok(plan) => Box::new(PlainCall::Over(vec![Effect::Emit(Body::PlanUpdated(plan)), said("Plan updated")])),
            Err(error) => refused(format!("failed to parse function arguments: {error}")),
        }
    }
}

#[derive(Deserialize)]
struct ViewImageArguments {
    path: PathBuf,
}

/// The tool that shows the model an image.
pub(crate) struct ViewImageTool;

impl Tool for ViewImageTool {
    fn spec(&self, _: Offer) -> Option<ToolSpec> {
        Some(specs::VIEW_IMAGE.clone())
    }

    fn takes(&self, call: &ToolCall) -> bool {
        call.tool == "view_image" && matches!(call.input, ToolInput::Function(_))
    }

    fn concurrency(&self, _: &ToolCall) -> Concurrency {
        Concurrency::Beside
    }

    fn begin(&self, call: ToolCall, cx: &Arc<ToolContext>, _: &Grants) -> Box<dyn Call> {
        let ToolInput::Function(arguments) = &call.input else { return unsupported(&call) };
        let path = match serde_json::from_str::<ViewImageArguments>(arguments) {
            Ok(arguments) => cx.cwd().join(arguments.path),
            Err(error) => return refused(format!("failed to parse function arguments: {error}")),
        };
        let viewed = Body::ImageViewed { item: call.id, path: path.clone() };
        Box::new(PlainCall::Later(Box::pin(async move {
            match images::read_blocking(move || images::one_image(&path)).await {
                Some(part @ ContentItem::InputImage { .. }) => {
                    vec![Effect::Emit(viewed), Effect::End(ToolOutput::Parts(vec![part]))]
                }
                Some(part) => vec![said(part.text().cloned().unwrap_or_default())],
                None => vec![said("the picture could not be read in time")],
            }
        })))
    }
}
