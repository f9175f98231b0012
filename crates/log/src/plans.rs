//! Plans, which follow from calls of the model and their outputs.

use codex_wire::plan::UpdatePlanArgs;
use codex_wire::response::{FunctionCallOutput, FunctionCallOutputPayload};
use serde::Deserialize;

/// The tool by which the model shows a plan.
const TOOL: &str = "update_plan";

/// The output for the model when its plan was accepted.
const TAKEN: &str = "Plan updated";

#[derive(Deserialize)]
struct PlanCall {
    name: String,
    arguments: String,
    call_id: String,
}

/// Watches the items of a conversation go by for plans that were taken.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    /// Calls that have no output yet, with their names.
    called: Vec<(String, UpdatePlanArgs)>,
}

impl Plans {
    /// Takes the next item, of a type if that is known. Returns the plan that holds from here on, if that is new.
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
