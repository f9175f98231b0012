//! Requests to a provider.

use std::time::Duration;

use codex_model::{HttpModel, Model as _, ModelError, Prompt, Provider, SharedCredentials, StaticKey, StreamExt as _};
use codex_testkit::{FakeModel, Request};
use codex_wire::tool_spec::{ToolList, ToolSpec};
use expect_test::expect;

use crate::asking::{prompt, provider, raw};

async fn sent(fake: &FakeModel, model: &HttpModel, prompt: Prompt) -> Request {
    let events = model.ask(prompt).collect::<Vec<_>>().await;
    assert!(events.iter().all(Result::is_ok), "{events:?}");
    fake.requests().pop().unwrap()
}

#[tokio::test]
async fn headers_query_and_key() {
    let fake = FakeModel::start(r#"[{"items": []}]"#);
    let mut provider = provider(&fake);
    provider.credentials = SharedCredentials::new(StaticKey::new("sk-secret"));
    provider.headers = vec![("x-extra".to_owned(), "1".to_owned())];
    provider.query = vec![("api-version".to_owned(), "2025 04".to_owned())];
    provider.user_agent = "agent/1".to_owned();
    provider.originator = "test".to_owned();
    let request = sent(&fake, &HttpModel::new(provider), prompt("Hello.")).await;
    let headers = request.headers.iter().filter(|(name, _)| name != "host" && name != "content-length");
    let headers = headers.map(|(name, value)| [name, ": ", value, "\n"].concat()).collect::<String>();
    expect![[r#"
        /v1/responses?api-version=2025+04
        accept: text/event-stream
        accept-encoding: gzip, zstd
        content-type: application/json
        user-agent: agent/1
        originator: test
        x-extra: 1
        conversation_id: 019a0000-0000-7000-8000-000000000001
        session_id: 019a0000-0000-7000-8000-000000000001
        authorization: Bearer sk-secret
    "#]]
    .assert_eq(&format!("{}\n{headers}", request.path));
}

#[tokio::test]
async fn no_key_no_header() {
    let fake = FakeModel::start(r#"[{"items": []}]"#);
    let request = sent(&fake, &HttpModel::new(provider(&fake)), prompt("Hello.")).await;
    assert_eq!(request.header("authorization"), None);
}

#[tokio::test]
async fn items_go_out_byte_for_byte() {
    let fake = FakeModel::start(r#"[{"items": []}]"#);
    let mut prompt = prompt("Hello.");
    prompt.input = vec![raw(r#"{ "b" : 1.0,  "a":"\u00e9é" }"#).into(), raw("[ ]").into()];
    prompt.tools = ToolList::of(vec![ToolSpec::WebSearch(codex_wire::tool_spec::WebAccess::Usual)]);
    let request = sent(&fake, &HttpModel::new(provider(&fake)), prompt).await;
    expect![[r#"{"model":"mock-model","instructions":"Be brief.","input":[{ "b" : 1.0,  "a":"\u00e9é" },[ ]],"tools":[{"type":"web_search"}],"tool_choice":"auto","parallel_tool_calls":false,"reasoning":null,"store":false,"stream":true,"include":[],"prompt_cache_key":"019a0000-0000-7000-8000-000000000001"}"#]]
    .assert_eq(&String::from_utf8(request.body).unwrap());
}

#[tokio::test]
async fn scripts_look_at_requests() {
    let fake = FakeModel::start(r#"[{"items": []}, {"when": "WEATHER", "items": []}]"#);
    let model = HttpModel::new(provider(&fake));
    assert_eq!(sent(&fake, &model, prompt("the WEATHER")).await.entry, Some(2));
    assert_eq!(sent(&fake, &model, prompt("the WEATHER")).await.entry, Some(1));
}

#[tokio::test]
async fn models_are_listed_with_the_key_over_the_same_connection() {
    let fake = FakeModel::start(r#"[{"items": []}]"#).listing(&["a", "b"]);
    let mut provider = provider(&fake);
    provider.credentials = SharedCredentials::new(StaticKey::new("sk-secret"));
    provider.query = vec![("api-version".to_owned(), "1".to_owned())];
    let model = HttpModel::new(provider);
    assert_eq!(model.list_models(Duration::from_secs(5)).await.unwrap(), ["a", "b"]);
    let request = sent(&fake, &model, prompt("Hello.")).await;
    let list = &fake.requests()[0];
    assert_eq!(
        (list.path.as_str(), list.header("authorization")),
        ("/v1/models?api-version=1", Some("Bearer sk-secret"))
    );
    assert_eq!((list.connection, request.connection), (1, 1));
}

#[tokio::test]
async fn a_list_that_does_not_come_is_not_waited_for() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let provider = Provider::new("mock", format!("http://{}/v1", listener.local_addr().unwrap()));
    let listed = HttpModel::new(provider).list_models(Duration::from_millis(50)).await;
    assert!(matches!(listed, Err(ModelError::Idle { .. })), "{listed:?}");
}

#[tokio::test]
async fn wrong_settings_leave_no_list() {
    let mut provider = Provider::new("mock", "http://127.0.0.1:1/v1");
    provider.headers = vec![("x y".to_owned(), String::new())];
    let listed = HttpModel::new(provider).list_models(Duration::from_secs(5)).await;
    assert!(matches!(listed, Err(ModelError::Header { .. })), "{listed:?}");
}
