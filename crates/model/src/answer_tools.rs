//! Calls as the API has them, translated back to calls of the tools in the request.

use std::collections::BTreeMap;

use codex_wire::provider_traits::ProviderTraits;
use codex_wire::response::{CustomToolCall, FunctionCall, ResponseItem};
use codex_wire::tool_spec::{ToolList, ToolSpec};
use serde_json::{Map, Value};

use crate::ModelError;
use crate::encoding::FREE_TEXT;
use crate::error_response::shorten;
use crate::flat_tools::{FlatTool, flat_tools};

/// The tools of a request that the provider knows in another form: those that take free text, those whose names it does
/// not accept, and those of namespaces.
#[derive(Debug, Clone, Default)]
pub struct AnswerTools {
    free_text: Vec<String>,
    renamed: BTreeMap<String, ToolName>,
}

/// The name of a tool here, with its namespace.
#[derive(Debug, Clone)]
struct ToolName {
    namespace: Option<String>,
    name: String,
}

impl AnswerTools {
    /// The tools of a request.
    #[must_use]
    pub fn new(tools: &ToolList, traits: &ProviderTraits) -> Self {
        let all = flat_tools(tools.specs(), traits);
        let free_text = all.iter().filter(|tool| matches!(tool.spec, ToolSpec::Custom(_)));
        let renamed = all.iter().filter(|tool| tool.namespace.is_some() || tool.name != tool.spec.name());
        let here = |tool: &FlatTool<'_>| {
            let (namespace, name) = (tool.namespace.map(str::to_owned), tool.spec.name().to_owned());
            (tool.name.clone().into_owned(), ToolName { namespace, name })
        };
        Self {
            free_text: free_text.map(|tool| tool.spec.name().to_owned()).collect(),
            renamed: renamed.map(here).collect(),
        }
    }

    /// The name and the namespace of a tool that the provider calls like this.
    fn known(&self, name: &str) -> (String, Option<String>) {
        match self.renamed.get(name) {
            Some(known) => (known.name.clone(), known.namespace.clone()),
            None => (name.to_owned(), None),
        }
    }

    /// A call of an API that has the form of our own, but no namespaces.
    pub(crate) fn named(&self, call: &mut FunctionCall) {
        if call.namespace.is_none() {
            (call.name, call.namespace) = self.known(&call.name);
        }
    }

    /// A complete call. One that ends in the middle of its arguments is an error, since to run a part of it may do
    /// harm; the tool rejects invalid arguments, so that the error is reported to the model.
    pub(crate) fn call(&self, call_id: String, name: &str, arguments: String) -> Result<ResponseItem, ModelError> {
        let (name, namespace) = self.known(name);
        let arguments = if arguments.trim().is_empty() { "{}".to_owned() } else { arguments };
        match serde_json::from_str::<Value>(&arguments) {
            Ok(Value::Object(members)) if namespace.is_none() && self.free_text.contains(&name) => {
                Ok(free_text(call_id, name, members, arguments))
            }
            Err(error) if error.is_eof() => {
                Err(invalid_answer(format!("the call of {} never closes", shorten(&name, 80))))
            }
            Ok(_) | Err(_) => {
                Ok(ResponseItem::FunctionCall(FunctionCall { id: None, name, namespace, arguments, call_id }))
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
