//! Calls as the API has them, translated back to calls of the tools in the request.

use std::collections::BTreeMap;

use codex_wire::provider_traits::ProviderTraits;
use codex_wire::response::{CustomToolCall, FunctionCall, ResponseItem};
use codex_wire::tool_spec::{ToolList, ToolSpec};
use serde_json::{Map, Value};

use crate::ModelError;
use crate::encoding::FREE_TEXT;
use crate::error_response::shorten;
use crate::tool_names::accepted_name;

/// The tools of a request that the provider knows in another form: those that take free text, and those whose names it
/// does not accept.
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
        let renamed =
            specs.iter().map(|spec| (accepted_name(spec.name(), traits).into_owned(), spec.name().to_owned()));
        Self {
            free_text: free_text.map(|spec| spec.name().to_owned()).collect(),
            renamed: renamed.filter(|(accepted, name)| accepted != name).collect(),
        }
    }

    /// A complete call. One that ends in the middle of its arguments is an error, since to run a part of it may do
    /// harm; the tool rejects invalid arguments, so that the error is reported to the model.
    pub(crate) fn call(&self, call_id: String, name: &str, arguments: String) -> Result<ResponseItem, ModelError> {
        let name = self.renamed.get(name).map_or(name, String::as_str).to_owned();
        let arguments = if arguments.trim().is_empty() { "{}".to_owned() } else { arguments };
        match serde_json::from_str::<Value>(&arguments) {
            Ok(Value::Object(members)) if self.free_text.contains(&name) => {
                Ok(free_text(call_id, name, members, arguments))
            }
            Err(error) if error.is_eof() => {
                Err(invalid_answer(format!("the call of {} never closes", shorten(&name, 80))))
            }
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
pub(crate) fn invalid_answer(message: String) -> ModelError {
    ModelError::Failed { code: String::new(), message, after: None }
}
