//! From a call on the wire to the call that was meant.

use std::collections::BTreeMap;

use codex_wire::provider_traits::ProviderTraits;
use codex_wire::response::{CustomToolCall, FunctionCall, ResponseItem};
use codex_wire::tool_spec::{ToolList, ToolSpec};
use serde_json::{Map, Value};

use crate::ModelError;
use crate::encoding::FREE_TEXT;
use crate::names::accepted;
use crate::refusal::shorten;

/// The tools of a request whose calls do not look like what they mean: those that take free text, and those whose names
/// the provider does not take.
#[derive(Debug, Clone, Default)]
pub struct AnswerTools {
    free_text: Vec<String>,
    renamed: BTreeMap<String, String>,
}

impl AnswerTools {
    /// The tools of a request.
    #[must_use]
    pub fn new(tools: &ToolList, traits: &ProviderTraits) -> Self {
        let specs = tools.specs();
        let free_text = specs.iter().filter(|spec| matches!(spec, ToolSpec::Custom(_)));
        let renamed = specs.iter().map(|spec| (accepted(spec.name(), traits).into_owned(), spec.name().to_owned()));
        Self {
            free_text: free_text.map(|spec| spec.name().to_owned()).collect(),
            renamed: renamed.filter(|(accepted, name)| accepted != name).collect(),
        }
    }

    /// A call that is whole. One that ends in the middle of its arguments is an error, since to run a part of it may do
    /// harm; the tool rejects invalid arguments, so that the error is reported to the model.
    pub(crate) fn call(&self, call_id: String, name: &str, arguments: String) -> Result<ResponseItem, ModelError> {
        let name = self.renamed.get(name).map_or(name, String::as_str).to_owned();
        let arguments = if arguments.trim().is_empty() { "{}".to_owned() } else { arguments };
        match serde_json::from_str::<Value>(&arguments) {
            Ok(Value::Object(members)) if self.free_text.contains(&name) => {
                Ok(free_text(call_id, name, members, arguments))
            }
            Err(error) if error.is_eof() => Err(broken(format!("the call of {} never closes", shorten(&name, 80)))),
            Ok(_) | Err(_) => {
                Ok(ResponseItem::FunctionCall(FunctionCall { id: None, name, namespace: None, arguments, call_id }))
            }
        }
    }
}

fn free_text(call_id: String, name: String, mut members: Map<String, Value>, arguments: String) -> ResponseItem {
    match members.shift_remove(FREE_TEXT) {
        Some(Value::String(input)) => {
            ResponseItem::CustomToolCall(CustomToolCall { id: None, status: None, call_id, name, input })
        }
        _ => ResponseItem::FunctionCall(FunctionCall { id: None, name, namespace: None, arguments, call_id }),
    }
}

/// An invalid answer.
pub(crate) fn broken(message: String) -> ModelError {
    ModelError::Failed { code: String::new(), message, after: None }
}
