//! Requests of the tests, and answers as text.

use std::{sync::Arc, time::Duration};

use codex_model::{HttpModel, Model, ModelError, ModelEvent, Prompt, Provider, StreamExt as _};
use codex_testkit::FakeModel;
use codex_wire::tokens::RateLimitSnapshot;
use codex_wire::tool_spec::ToolList;
use serde_json::value::RawValue;

pub(crate) fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

/// A prompt with one message of the user.
pub(crate) fn prompt(text: &str) -> Prompt {
    let item = serde_json::json!({
        "type": "message", "role": "user", "content": [{"type": "input_text", "text": text}],
    });
    Prompt {
        thread: "019a0000-0000-7000-8000-000000000001".parse().unwrap(),
        cache_key: "019a0000-0000-7000-8000-000000000001".parse().unwrap(),
        model: "mock-model".to_owned(),
        instructions: Arc::from("Be brief."),
        input: vec![raw(&item.to_string()).into()],
        tools: ToolList::of(Vec::new()),
        parallel_tool_calls: false,
        reasoning: None,
        verbosity: None,
        output_schema: None,
        max_output_tokens: None,
        pace: None,
    }
}

/// A provider that does not retry and gives up soon, so that each failure shows.
pub(crate) fn provider(fake: &FakeModel) -> Provider {
    let mut provider = Provider::new("mock", format!("{}/v1", fake.url()));
    provider.request_max_retries = 0;
    provider.stream_idle_timeout = Duration::from_secs(5);
    provider
}

pub(crate) fn model(fake: &FakeModel) -> HttpModel {
    HttpModel::new(provider(fake))
}

/// Asks once and lists the answer, one event per line.
pub(crate) async fn ask(model: &dyn Model, text: &str) -> String {
    let mut answer = model.ask(prompt(text));
    let mut lines = String::new();
    while let Some(event) = answer.next().await {
        lines.push_str(&show(&event));
        lines.push('\n');
    }
    lines
}

fn show(event: &Result<ModelEvent, ModelError>) -> String {
    match event {
        Ok(ModelEvent::Opened { rate_limits: None }) => "opened without limits".to_owned(),
        Ok(ModelEvent::Opened { rate_limits: Some(limits) }) if *limits == RateLimitSnapshot::default() => {
            "opened".to_owned()
        }
        Ok(ModelEvent::Opened { rate_limits }) => format!("opened {}", serde_json::to_string(rate_limits).unwrap()),
        Ok(ModelEvent::ItemAdded(item)) => format!("added {}", item.kind()),
        Ok(ModelEvent::TextDelta { item_id, delta }) => format!("text {item_id} {delta:?}"),
        Ok(ModelEvent::ReasoningPartAdded { item_id, index }) => format!("part {item_id} {index}"),
        Ok(ModelEvent::ReasoningSummaryDelta { item_id, index, delta }) => {
            format!("summary {item_id} {index} {delta:?}")
        }
        Ok(ModelEvent::ReasoningDelta { item_id, index, delta }) => format!("thought {item_id} {index} {delta:?}"),
        Ok(ModelEvent::ItemDone(item, _)) => format!("done {}", serde_json::to_string(item).unwrap()),
        Ok(ModelEvent::Completed { response_id, usage, .. }) => {
            let usage = usage.as_ref().map(|usage| {
                [usage.input_tokens, usage.cached_input_tokens, usage.output_tokens, usage.reasoning_output_tokens]
            });
            format!("completed {response_id} {usage:?}")
        }
        Ok(ModelEvent::Notice(text)) => format!("notice {text:?}"),
        Err(error) => format!("error {error}; {:?}; {:?}", error.info(), error.retry()),
    }
}
