//! Providers that store answers: later requests name the answer and send only new items.

use std::sync::Arc;

use codex_model::{HttpModel, Model as _, ModelEvent, Prompt, Provider, StreamExt as _};
use codex_testkit::FakeModel;
use codex_wire::conversation_item::ConversationItem;
use serde_json::{Value, json};

use crate::asking::{prompt, provider, raw};

fn storing(fake: &FakeModel) -> Provider {
    let mut provider = provider(fake);
    provider.traits.store = true;
    provider
}

pub(crate) fn user(text: &str) -> ConversationItem {
    let item = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
    raw(&item.to_string()).into()
}

/// Asks, and adds the items of the answer to the conversation.
pub(crate) async fn turn(model: &HttpModel, conversation: &mut Prompt) {
    let mut answer = model.ask(conversation.clone());
    let mut items = Vec::new();
    while let Some(event) = answer.next().await {
        if let ModelEvent::ItemDone(item, origin) = event.unwrap() {
            items.push(ConversationItem::new(&Arc::new(item)).unwrap().made_by(origin));
        }
    }
    conversation.input.extend(items);
}

/// The answer that each request continues, and its number of items.
pub(crate) fn sent(fake: &FakeModel) -> Vec<(Value, usize)> {
    let sent = |body: Value| (body["previous_response_id"].clone(), body["input"].as_array().map_or(0, Vec::len));
    fake.requests().iter().map(|request| sent(request.json())).collect()
}

const TWO_ITEMS: &str = r#"{"items": [{"reasoning": ["Hm."]}, {"text": "Yes."}], "repeat": true}"#;

#[tokio::test]
async fn a_request_continues_the_answer_before_it() {
    let fake = FakeModel::start(&format!("[{TWO_ITEMS}]"));
    let model = HttpModel::new(storing(&fake));
    let mut conversation = prompt("One.");
    for text in ["Two.", "Three."] {
        turn(&model, &mut conversation).await;
        conversation.input.push(user(text));
    }
    turn(&model, &mut conversation).await;
    assert_eq!(sent(&fake), [(Value::Null, 1), (json!("resp-1"), 1), (json!("resp-1"), 1)]);
    assert!(fake.requests().iter().all(|request| request.json()["store"] == true));
}

#[tokio::test]
async fn a_changed_conversation_is_sent_completely() {
    let fake = FakeModel::start(&format!("[{TWO_ITEMS}]"));
    let model = HttpModel::new(storing(&fake));
    let mut conversation = prompt("One.");
    turn(&model, &mut conversation).await;
    let answered = conversation.clone();
    // There are no new items, the start differs, or an item of the answer is missing.
    turn(&model, &mut conversation).await;
    let mut summed_up = answered.clone();
    summed_up.input[0] = user("A summary.");
    summed_up.input.push(user("Two."));
    turn(&model, &mut summed_up).await;
    let mut shortened = answered;
    shortened.input.remove(1);
    shortened.input.push(user("Two."));
    turn(&model, &mut shortened).await;
    assert_eq!(sent(&fake), [(Value::Null, 1), (Value::Null, 3), (Value::Null, 4), (Value::Null, 3)]);
}

#[tokio::test]
async fn a_provider_that_has_lost_an_answer_is_sent_everything_from_then_on() {
    let lost = r#"{"status": 404, "body": {"error": {"message": "Previous response with id 'resp-1' not found."}}}"#;
    let fake = FakeModel::start(&format!(r#"[{{"items": [{{"text": "Yes."}}]}}, {lost}, {TWO_ITEMS}]"#));
    let model = HttpModel::new(storing(&fake));
    let mut conversation = prompt("One.");
    for text in ["Two.", "Three."] {
        turn(&model, &mut conversation).await;
        conversation.input.push(user(text));
    }
    turn(&model, &mut conversation).await;
    assert_eq!(sent(&fake), [(Value::Null, 1), (json!("resp-1"), 1), (Value::Null, 3), (Value::Null, 6)]);
}

#[tokio::test]
async fn a_provider_that_stores_nothing_is_sent_everything() {
    let fake = FakeModel::start(&format!("[{TWO_ITEMS}]"));
    let model = HttpModel::new(provider(&fake));
    let mut conversation = prompt("One.");
    turn(&model, &mut conversation).await;
    conversation.input.push(user("Two."));
    turn(&model, &mut conversation).await;
    assert_eq!(sent(&fake), [(Value::Null, 1), (Value::Null, 4)]);
}

#[tokio::test]
async fn azure_gets_its_key_in_a_header_its_version_and_the_ids_of_items() {
    let fake = FakeModel::start(r#"[{"items": [{"text": "Yes."}]}, {"status": 400, "body": {}}, {"items": []}]"#);
    let mut provider = storing(&fake);
    provider.traits.key_header = Some("api-key".to_owned());
    provider.traits.api_version = Some("preview".to_owned());
    provider.credentials = codex_model::SharedCredentials::new(codex_model::StaticKey::new("azure-key"));
    let model = HttpModel::new(provider);
    let mut conversation = prompt("One.");
    turn(&model, &mut conversation).await;
    conversation.input.push(user("Two."));
    turn(&model, &mut conversation).await;
    let whole = fake.requests().pop().unwrap();
    assert_eq!(whole.path, "/v1/responses?api-version=preview");
    assert_eq!((whole.header("api-key"), whole.header("authorization")), (Some("azure-key"), None));
    assert_eq!((&whole.json()["store"], &whole.json()["input"][1]["id"]), (&json!(true), &json!("msg-1-1")));
}
