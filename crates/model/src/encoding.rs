//! Encodings that all APIs share.

use std::borrow::Cow;
use std::sync::Arc;

use codex_wire::conversation_item::{ConversationItem, ItemOrigin};
use codex_wire::provider_traits::{ProviderTraits, SchemaForm};
use codex_wire::response::{FunctionCallOutputPayload, LocalShellAction, LocalShellCall, ResponseItem};
use codex_wire::tool_spec::{CustomTool, ToolSpec};
use serde::Serialize;
use serde_json::{Value, json};

use crate::flat_tools::{FlatTool, flat_tools, joined_name};
use crate::schema::{is_simple, simplified};

/// The one argument of a function that represents a tool with free text.
pub(crate) const FREE_TEXT: &str = "input";

/// The parameters of an encoding besides the prompt.
#[derive(Debug, Clone)]
pub(crate) struct RequestFormat<'a> {
    /// Distinguishes forms of items.
    pub(crate) name: Arc<str>,
    pub(crate) traits: &'a ProviderTraits,
    /// The provider of the request: opaque data of other providers is left out.
    pub(crate) origin: ItemOrigin,
    /// The schemas that the provider accepts, as far as is known.
    pub(crate) schemas: SchemaForm,
    /// The stored answer that the request continues, if there is one.
    pub(crate) follows: Option<StoredAnswer>,
    /// Whether the request is a message of a WebSocket.
    pub(crate) is_message: bool,
}

/// An answer that the provider stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredAnswer {
    /// Its id.
    pub(crate) response_id: String,
    /// The number of items at the beginning of the conversation that it stands for.
    pub(crate) items: usize,
}

impl<'a> RequestFormat<'a> {
    pub(crate) fn new(wire: &str, provider: &str, account: Option<&str>, traits: &'a ProviderTraits) -> Self {
        let name = format!("{wire}/{provider}/{}", account.unwrap_or_default());
        let origin = ItemOrigin { provider: provider.to_owned(), account: account.map(str::to_owned), opaque: None };
        Self { name: name.into(), traits, origin, schemas: traits.schemas, follows: None, is_message: false }
    }

    /// Whether an item contains data that only another provider can read.
    pub(crate) fn is_foreign(&self, item: &ConversationItem) -> bool {
        item.origin().is_some_and(|origin| !origin.is_same_provider(&self.origin))
    }

    /// Whether an item consists only of data that another provider can read. Any other item, such as a call with a
    /// signature, is sent without that data.
    pub(crate) fn is_unreadable(&self, item: &ConversationItem) -> bool {
        let is_opaque = |item: &ResponseItem| matches!(item, ResponseItem::Reasoning(_) | ResponseItem::Compaction(_));
        self.is_foreign(item) && item.typed().map_or(true, |typed| is_opaque(&typed))
    }

    /// The opaque data of an item, if it is this provider's.
    pub(crate) fn opaque<'i>(&self, item: &'i ConversationItem) -> Option<&'i Value> {
        item.origin().filter(|origin| origin.is_same_provider(&self.origin)).and_then(|origin| origin.opaque.as_ref())
    }

    /// A schema in the form that the provider accepts.
    pub(crate) fn schema<'s>(&self, schema: &'s Value) -> Cow<'s, Value> {
        match self.schemas {
            SchemaForm::Simple if !is_simple(schema) => Cow::Owned(simplified(schema)),
            SchemaForm::Simple | SchemaForm::Full | SchemaForm::Strict => Cow::Borrowed(schema),
        }
    }

    /// The name of the list of tools in this form.
    pub(crate) fn tools_name(&self) -> String {
        format!("{}/{}", self.name, self.schemas.as_str())
    }
}

/// A tool as a function, for APIs that have only functions.
pub(crate) struct Function<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) description: Cow<'a, str>,
    pub(crate) strict: bool,
    pub(crate) parameters: Cow<'a, Value>,
}

impl<'a> Function<'a> {
    /// The tools of a list as functions, without those that only a provider with these built-in tools could run.
    pub(crate) fn all(specs: &'a [ToolSpec], format: &RequestFormat<'_>) -> Vec<Self> {
        flat_tools(specs, format.traits).into_iter().filter_map(|tool| Self::of(tool, format)).collect()
    }

    fn of(FlatTool { name, spec, .. }: FlatTool<'a>, format: &RequestFormat<'_>) -> Option<Self> {
        Some(match spec {
            ToolSpec::Function(tool) => Self {
                name,
                description: Cow::Borrowed(&tool.description),
                strict: tool.strict && format.schemas == SchemaForm::Strict,
                parameters: format.schema(&tool.parameters),
            },
            ToolSpec::Custom(tool) => Self {
                name,
                description: described(tool),
                strict: false,
                parameters: Cow::Owned(json!({
                    "type": "object",
                    "properties": {FREE_TEXT: {"type": "string", "description": "The whole text"}},
                    "required": [FREE_TEXT],
                })),
            },
            ToolSpec::LocalShell | ToolSpec::WebSearch(_) | ToolSpec::Namespace(_) => return None,
        })
    }
}

/// The description of a tool with free text, with its grammar.
fn described(tool: &CustomTool) -> Cow<'_, str> {
    match &tool.grammar {
        None => Cow::Borrowed(&tool.description),
        Some(grammar) => Cow::Owned(format!(
            "{}\n\nThe text has to follow this {} grammar:\n{}",
            tool.description, grammar.syntax, grammar.definition
        )),
    }
}

/// A call in the form of a function call: id, name and arguments.
pub(crate) fn call_parts<'i>(item: &'i ResponseItem) -> Option<(Cow<'i, str>, Cow<'i, str>, Cow<'i, str>)> {
    let parts = |id: &'i str, name: &'i str, arguments| (Cow::Borrowed(id), Cow::Borrowed(name), arguments);
    Some(match item {
        ResponseItem::FunctionCall(call) => {
            let (id, arguments) = (Cow::Borrowed(&*call.call_id), Cow::Borrowed(&*call.arguments));
            let joined = call.namespace.as_ref().map(|namespace| Cow::Owned(joined_name(namespace, &call.name)));
            (id, joined.unwrap_or(Cow::Borrowed(&*call.name)), arguments)
        }
        ResponseItem::CustomToolCall(call) => {
            parts(&call.call_id, &call.name, Cow::Owned(json!({FREE_TEXT: call.input}).to_string()))
        }
        ResponseItem::LocalShellCall(call) => local_shell(call)?,
        // An invalid call has an output too, which has to refer to an id.
        ResponseItem::Other(other) => {
            let text = |name: &str| other[name].as_str().filter(|text| !text.is_empty());
            let is_call = other["type"].as_str().is_some_and(|kind| kind.ends_with("_call"));
            parts(text("call_id").filter(|_| is_call)?, text("name").unwrap_or("unknown"), Cow::Borrowed("{}"))
        }
        _ => return None,
    })
}

fn local_shell(call: &LocalShellCall) -> Option<(Cow<'_, str>, Cow<'_, str>, Cow<'_, str>)> {
    let LocalShellAction::Exec(exec) = &call.action;
    let id = call.call_id.as_deref().or(call.id.as_deref())?;
    let mut arguments = json!({"command": exec.command});
    if let Some(folder) = &exec.working_directory {
        arguments["workdir"] = folder.as_str().into();
    }
    Some((Cow::Borrowed(id), Cow::Borrowed("shell"), Cow::Owned(arguments.to_string())))
}

/// The id of a call, and its output.
pub(crate) fn output_parts(item: &ResponseItem) -> Option<(&str, &FunctionCallOutputPayload)> {
    match item {
        ResponseItem::FunctionCallOutput(output) => Some((&output.call_id, &output.output)),
        ResponseItem::CustomToolCallOutput(output) => Some((&output.call_id, &output.output)),
        _ => None,
    }
}

/// Describes a schema to the model if the provider cannot enforce it.
pub(crate) fn schema_instruction(schema: &Value) -> String {
    format!("Your last message has to be JSON, and nothing else, that follows this schema: {schema}")
}

/// Encodes a value that always has an encoding: strings, numbers, and maps with string keys.
pub(crate) fn json_of(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Adds a text to a buffer as a JSON string.
pub(crate) fn write_string(body: &mut Vec<u8>, text: &str) {
    // Writing a string into memory cannot fail.
    let _ = serde_json::to_writer(body, text);
}
