//! Plans, which follow from calls of the model and their outputs.

use codex_wire::plan::UpdatePlanArgs;
use codex_wire::response::{FunctionCallOutput, FunctionCallOutputPayload};
use serde::Deserialize;

/// The tool with which the model shows a plan.
const TOOL: &str = "update_plan";

/// The output for the model when its plan was accepted.
const TAKEN: &str = "Plan updated";

#[derive(Deserialize)]
struct PlanCall {
    name: String,
    arguments: String,
    call_id: String,
}

/// Finds accepted plans among the items of a conversation.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    /// Calls that have no output yet, with their ids.
    called: Vec<(String, UpdatePlanArgs)>,
}

impl Plans {
    /// Processes the next item, with its type if known. Returns the plan from here on, if it is new.
    pub(crate) fn take(&mut self, kind: Option<&str>, item: &str) -> Option<UpdatePlanArgs> {
        if kind.is_none_or(|kind| kind == "function_call") && item.contains(TOOL) {
            self.call(item);
            return None;
        }
        if self.called.is_empty() || kind.is_some_and(|kind| kind != "function_call_output") {
            return None;
        }
        let FunctionCallOutput { call_id, output } = serde_json::from_str(item).ok()?;
        let place = self.called.iter().position(|(called, _)| *called == call_id)?;
        let (_, plan) = self.called.swap_remove(place);
        (output == FunctionCallOutputPayload::Text(TAKEN.to_owned())).then_some(plan)
    }

    fn call(&mut self, item: &str) {
        let Ok(call) = serde_json::from_str::<PlanCall>(item) else { return };
        if call.name == TOOL
            && let Ok(plan) = serde_json::from_str(&call.arguments)
        {
            self.called.push((call.call_id, plan));
        }
    }
}
