//! Calls that arrive in chunks.

use codex_wire::response::ResponseItem;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::ModelError;
use crate::answer_tools::{AnswerTools, invalid_answer};
use crate::error_response::shorten;

/// The maximum number of calls of one answer.
const MOST_CALLS: usize = 512;

/// The maximum number of bytes of the arguments of all calls of an answer.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// A chunk of a call. Each member may be missing, and arrive later.
#[derive(Deserialize)]
pub(super) struct Piece<'a> {
    index: Option<usize>,
    id: Option<String>,
    #[serde(borrow)]
    function: Option<FunctionPiece<'a>>,
    #[serde(borrow)]
    extra_content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct FunctionPiece<'a> {
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// A partial call.
#[derive(Debug, Default)]
pub(super) struct Call {
    index: Option<usize>,
    id: String,
    name: String,
    arguments: String,
    pub(super) extra: Option<Value>,
}

/// The calls of one answer.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Call>);

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a chunk to its call.
    pub(super) fn add(&mut self, piece: Piece<'_>) -> Result<(), ModelError> {
        let id = piece.id.filter(|id| !id.is_empty());
        let place = match self.place(piece.index, id.as_deref())? {
            Some(place) => place,
            None if self.0.len() == MOST_CALLS => {
                return Err(invalid_answer(format!("the model made more than {MOST_CALLS} calls at once")));
            }
            None => {
                self.0.push(Call { index: piece.index, ..Call::default() });
                self.0.len() - 1
            }
        };
        let Some(call) = self.0.get_mut(place) else { return Ok(()) };
        if let Some(id) = id {
            call.id = id;
        }
        if let Some(extra) = piece.extra_content {
            call.extra = serde_json::from_str(extra.get()).ok();
        }
        let Some(function) = piece.function else { return Ok(()) };
        // Some servers repeat the name with each chunk.
        if let Some(name) = function.name.filter(|name| *name != call.name) {
            call.name.push_str(&name);
        }
        match function.arguments.map(RawValue::get) {
            None | Some("null") => {}
            Some(text) if text.starts_with('"') => {
                let text: String = serde_json::from_str(text)
                    .map_err(|source| ModelError::Malformed { event: "tool_calls".to_owned(), source })?;
                call.arguments.push_str(&text);
            }
            // Some servers send an object instead of a string.
            Some(object) => call.arguments.push_str(object),
        }
        let name = shorten(&call.name, 80).to_owned();
        if self.0.iter().map(|call| call.arguments.len()).sum::<usize>() > MOST_BYTES {
            return Err(invalid_answer(format!(
                "the call of {name} never closes: it has more than {MOST_BYTES} bytes"
            )));
        }
        Ok(())
    }

    /// The call that a chunk belongs to: the one with its index, else the one with its id, else the last one.
    fn place(&self, index: Option<usize>, id: Option<&str>) -> Result<Option<usize>, ModelError> {
        let same_id = id.and_then(|id| self.0.iter().position(|call| call.id == id));
        let Some(index) = index else {
            return Ok(same_id.or_else(|| if id.is_none() { self.0.len().checked_sub(1) } else { None }));
        };
        let same_index = self.0.iter().rposition(|call| call.index == Some(index));
        match (same_index, same_id, id) {
            (Some(place), Some(other), Some(id)) if place != other => Err(twice(id)),
            (None, Some(_), Some(id)) => Err(twice(id)),
            // Some servers give all calls the same index.
            (Some(place), None, Some(_)) if self.0.get(place).is_some_and(|call| !call.id.is_empty()) => Ok(None),
            (place, _, _) => Ok(place),
        }
    }

    /// The complete calls. The call of a tool that takes free text becomes one with free text.
    pub(super) fn finish(&mut self, tools: &AnswerTools) -> Result<Vec<(ResponseItem, Option<Value>)>, ModelError> {
        let mut calls = std::mem::take(&mut self.0);
        calls.sort_by_key(|call| call.index);
        calls.into_iter().map(|call| Ok((finished(&call, tools)?, call.extra))).collect()
    }
}

fn finished(call: &Call, tools: &AnswerTools) -> Result<ResponseItem, ModelError> {
    if call.name.is_empty() {
        return Err(invalid_answer("a call has no name".to_owned()));
    }
    let id = if call.id.is_empty() { format!("call_{:016x}", fastrand::u64(..)) } else { call.id.clone() };
    tools.call(id, &call.name, call.arguments.clone())
}

fn twice(id: &str) -> ModelError {
    invalid_answer(format!("the id {:?} is used for two calls", shorten(id, 80)))
}
