//! Requests of a server to the model. Each is shown to a person first, and the answers during one call have a budget.

use std::time::Duration;

use codex_log::Body;
use codex_tools::command::cut;
use codex_tools::lifecycle::Effect;
use codex_tools::sampling::{Sample, SampleRequest};
use codex_wire::response::{ContentItem, Message};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Phase, RunningCall};
use crate::connection::ServerQuestion;

/// The most bytes of a request that a person is shown.
const SHOWN: usize = 4_000;
/// The most bytes of a request.
const MOST_BYTES: usize = 256 * 1024;
/// The time limit for the answer of the model.
const ANSWER: Duration = Duration::from_secs(5 * 60);

/// The pending answer of the model.
pub(super) type Sampling = BoxFuture<'static, Result<Sample, String>>;

impl RunningCall {
    /// Asks the model after a person has allowed it, or says why not.
    pub(super) fn sample(&mut self) -> Vec<Effect> {
        let Phase::Questioned(exchange, question) = std::mem::replace(&mut self.phase, Phase::Over) else {
            return Vec::new();
        };
        let left = self.target.config.sampling.unwrap_or(0).saturating_sub(self.sampled_tokens);
        let asked = match (&self.cx.sampler, request(&question.params, left)) {
            _ if left == 0 => Err("the tokens for requests of the server to the model are used up".to_owned()),
            (None, _) => Err("there is no model to ask".to_owned()),
            (Some(sampler), request) => request.map(|request| sampler.sample(request)),
        };
        match asked {
            Ok(answer) => {
                let answer = Box::pin(async move {
                    timeout(ANSWER, answer)
                        .await
                        .unwrap_or_else(|_| Err("the model has not answered in time".to_owned()))
                });
                self.phase = Phase::Sampling(exchange, question, answer);
                Vec::new()
            }
            Err(why) => {
                let message = format!("the MCP server `{}` may not ask the model: {why}", self.target.config.name);
                self.phase = Phase::Questioned(exchange, question);
                let mut effects = vec![Effect::Emit(Body::Warning { message })];
                effects.extend(self.decline_question());
                effects
            }
        }
    }

    /// Gives the answer of the model to the server.
    pub(super) fn sampled(&mut self, answer: Result<Sample, String>) -> Vec<Effect> {
        let Phase::Sampling(exchange, question, _) = std::mem::replace(&mut self.phase, Phase::Over) else {
            return Vec::new();
        };
        self.phase = Phase::Questioned(exchange, question);
        match answer {
            Ok(sample) => {
                self.sampled_tokens =
                    self.sampled_tokens.saturating_add(u32::try_from(sample.output_tokens).unwrap_or(u32::MAX));
                let message = format!(
                    "the server asked the model: {} input and {} output tokens",
                    sample.input_tokens, sample.output_tokens
                );
                let mut effects = vec![Effect::Emit(Body::CallProgressed { item: self.id.clone(), message })];
                effects.extend(self.reply_with(result(sample)));
                effects
            }
            Err(why) => {
                let message =
                    format!("a request of the MCP server `{}` to the model failed: {why}", self.target.config.name);
                let mut effects = vec![Effect::Emit(Body::Warning { message })];
                effects.extend(self.decline_question());
                effects
            }
        }
    }
}

/// The text that a person is shown before the model is asked.
pub(super) fn shown(server: &str, question: &ServerQuestion) -> String {
    let said = match request(&question.params, 1) {
        Ok(request) => {
            let texts = request.messages.iter().map(|message| format!("{}: {}", message.role, message.text()));
            let instructions = Some(request.instructions).filter(|text| !text.is_empty());
            instructions
                .into_iter()
                .map(|text| format!("instructions: {text}"))
                .chain(texts)
                .collect::<Vec<_>>()
                .join("\n")
        }
        Err(why) => why,
    };
    let said = cut(&said, SHOWN, said.len() as u64, said.lines().count());
    format!("The MCP server `{server}` wants to ask the model:\n\n{said}")
}

/// A request of a server, with at most this many tokens for the answer.
fn request(params: &Value, most_tokens: u32) -> Result<SampleRequest, String> {
    let messages = params["messages"].as_array().ok_or("the request has no messages")?;
    let messages = messages.iter().map(message).collect::<Result<Vec<_>, String>>()?;
    if messages.iter().flat_map(|message| &message.content).map(size).sum::<usize>() > MOST_BYTES {
        return Err(format!("the request has more than {MOST_BYTES} bytes"));
    }
    let wanted = params["maxTokens"].as_u64().and_then(|tokens| u32::try_from(tokens).ok()).unwrap_or(most_tokens);
    Ok(SampleRequest {
        instructions: params["systemPrompt"].as_str().unwrap_or_default().to_owned(),
        messages,
        max_tokens: wanted.clamp(1, most_tokens.max(1)),
    })
}

fn size(content: &ContentItem) -> usize {
    match content {
        ContentItem::InputText { text } | ContentItem::OutputText { text } => text.len(),
        ContentItem::InputImage { image_url } => image_url.len(),
        ContentItem::Refusal { .. } | ContentItem::Other(_) => 0,
    }
}

fn message(message: &Value) -> Result<Message, String> {
    let Some(role @ ("user" | "assistant")) = message["role"].as_str() else {
        return Err("a message of the request has neither the role `user` nor `assistant`".to_owned());
    };
    let parts = match &message["content"] {
        Value::Array(parts) => parts.as_slice(),
        one => std::slice::from_ref(one),
    };
    let content = parts.iter().map(|part| content(role, part)).collect::<Result<_, _>>()?;
    Ok(Message { id: None, role: role.to_owned(), content })
}

fn content(role: &str, part: &Value) -> Result<ContentItem, String> {
    match (part["type"].as_str().unwrap_or_default(), part["text"].as_str(), part["data"].as_str()) {
        ("text", Some(text), _) if role == "assistant" => Ok(ContentItem::OutputText { text: text.into() }),
        ("text", Some(text), _) => Ok(ContentItem::InputText { text: text.into() }),
        ("image", _, Some(data)) if role == "user" => {
            let mime = part["mimeType"].as_str().unwrap_or("image/png");
            Ok(ContentItem::InputImage { image_url: format!("data:{mime};base64,{data}") })
        }
        (kind, ..) => Err(format!("a message of the request has a part `{kind}`, which the model is not sent")),
    }
}

fn result(sample: Sample) -> Value {
    json!({
        "role": "assistant",
        "content": {"type": "text", "text": sample.text},
        "model": sample.model,
        "stopReason": if sample.is_cut { "maxTokens" } else { "endTurn" },
    })
}
