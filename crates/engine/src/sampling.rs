//! The model of a turn, for MCP servers that may ask it.

use std::fmt;
use std::sync::Arc;

use codex_log::settings::Settings;
use codex_model::{Model, ModelEvent, Prompt, StreamExt as _};
use codex_tools::sampling::{Sample, SampleRequest, Sampler};
use codex_wire::conversation_item::ConversationItem;
use codex_wire::ids::ThreadId;
use codex_wire::response::ResponseItem;
use codex_wire::tokens::{BYTES_PER_TOKEN, TokenUsage};
use codex_wire::tool_spec::ToolList;
use futures_util::future::BoxFuture;

use crate::setup::Setup;
use crate::tree_requests::{AgentRequests, Place};

/// The model of a turn with these settings.
pub(crate) fn turn_model(setup: &Setup, settings: &Settings) -> Arc<dyn Sampler> {
    let (model, requests) = (Arc::clone(&setup.model), setup.requests_of_agent());
    Arc::new(TurnModel { model, requests, name: settings.model.clone() })
}

struct TurnModel {
    model: Arc<dyn Model>,
    requests: AgentRequests,
    name: String,
}

impl fmt::Debug for TurnModel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TurnModel").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Sampler for TurnModel {
    fn sample(&self, request: SampleRequest) -> BoxFuture<'static, Result<Sample, String>> {
        let SampleRequest { instructions, messages, max_tokens } = request;
        let encode = |message| ConversationItem::new(&Arc::new(ResponseItem::Message(message)));
        let input = match messages.into_iter().map(encode).collect::<Result<Vec<_>, _>>() {
            Ok(input) => input,
            Err(error) => return Box::pin(std::future::ready(Err(error.to_string()))),
        };
        // The request shares nothing with the thread, so it must not share its key of the provider's cache.
        let thread = ThreadId::fresh();
        let place = self.requests.place(&self.name);
        let answer = self.model.ask(Prompt {
            thread,
            cache_key: thread,
            model: self.name.clone(),
            instructions: instructions.into(),
            input,
            tools: ToolList::of(Vec::new()),
            parallel_tool_calls: false,
            reasoning: None,
            verbosity: None,
            output_schema: None,
            max_output_tokens: Some(max_tokens),
            pace: place.as_ref().and_then(Place::pace),
        });
        let reading = read(answer, self.name.clone(), max_tokens);
        Box::pin(async move {
            if let Some(place) = &place {
                place.granted().await;
            }
            reading.await
        })
    }
}

/// Reads an answer up to its allowed length. Not every API takes a limit, so it is enforced here too.
async fn read(mut answer: codex_model::Answer, model: String, max_tokens: u32) -> Result<Sample, String> {
    let most_bytes = usize::try_from(max_tokens).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN);
    let (mut text, mut streamed, mut used) = (String::new(), 0, None);
    while let Some(event) = answer.next().await {
        match event.map_err(|error| error.to_string())? {
            ModelEvent::TextDelta { delta, .. } => {
                streamed += delta.len();
                text.push_str(&delta);
            }
            ModelEvent::ItemDone(ResponseItem::Message(message), _) => {
                // Its deltas are a part of the whole text.
                text.truncate(text.len() - std::mem::take(&mut streamed));
                text.push_str(&message.text());
            }
            ModelEvent::Completed { usage, .. } => used = usage,
            _ => {}
        }
        if text.len() > most_bytes {
            let end = (0..=most_bytes).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            text.truncate(end);
            let output_tokens = u64::from(max_tokens);
            return Ok(Sample { model, text, input_tokens: 0, output_tokens, is_cut: true });
        }
    }
    let estimated = i64::try_from(text.len().div_ceil(BYTES_PER_TOKEN)).unwrap_or(i64::MAX);
    let TokenUsage { input_tokens, output_tokens, .. } =
        used.unwrap_or(TokenUsage { output_tokens: estimated, ..TokenUsage::default() });
    let count = |tokens: i64| u64::try_from(tokens).unwrap_or(0);
    Ok(Sample { model, text, input_tokens: count(input_tokens), output_tokens: count(output_tokens), is_cut: false })
}

#[cfg(test)]
mod tests {
    use codex_wire::response::{ContentItem, Message};
    use futures_util::stream;

    use super::*;

    fn delta(text: &str) -> ModelEvent {
        ModelEvent::TextDelta { item_id: "m".to_owned(), delta: text.to_owned() }
    }

    fn done(text: &str) -> ModelEvent {
        let content = vec![ContentItem::OutputText { text: text.into() }];
        ModelEvent::ItemDone(ResponseItem::Message(Message { id: None, role: "assistant".to_owned(), content }), None)
    }

    async fn answer(events: impl Iterator<Item = ModelEvent> + Send + 'static, most: u32) -> (String, u64, bool) {
        let events = Box::pin(stream::iter(events.map(Ok)));
        let sample = read(events, "m".to_owned(), most).await.unwrap();
        (sample.text, sample.output_tokens, sample.is_cut)
    }

    #[tokio::test]
    async fn the_text_is_counted_once_and_never_longer_than_allowed() {
        let whole = [delta("hel"), delta("lo"), done("hello"), done(" you")];
        assert_eq!(answer(whole.into_iter(), 100).await, ("hello you".to_owned(), 3, false));
        // The rest is not read: the stream would panic.
        let endless = (0..).map(|number| if number < 9 { delta("ääää") } else { panic!("read too far") });
        assert_eq!(answer(endless, 4).await, ("ääääääää".to_owned(), 4, true));
    }
}
