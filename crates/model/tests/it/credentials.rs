//! What requests are authorized with.

use std::sync::Mutex;

use codex_model::{
    Authorization, Credentials, HttpModel, Model as _, ModelError, Provider, SharedCredentials, StreamExt as _,
};
use codex_testkit::FakeModel;
use futures_util::future::{BoxFuture, ready};

use crate::asking::{prompt, provider};

/// Keys that are given one after the other; when one is refused, there may be another.
struct Keys(Mutex<Vec<&'static str>>);

impl Credentials for Keys {
    fn authorize(&self) -> BoxFuture<'_, Result<Authorization, ModelError>> {
        let key = self.0.lock().unwrap().pop().ok_or(ModelError::Unavailable { message: "no key".to_owned() });
        Box::pin(ready(key.map(|key| Authorization { bearer: Some(key.into()), account: None })))
    }

    fn refused<'a>(&'a self, _: &'a Authorization) -> BoxFuture<'a, bool> {
        Box::pin(ready(!self.0.lock().unwrap().is_empty()))
    }
}

fn with_keys(fake: &FakeModel, mut keys: Vec<&'static str>) -> Provider {
    keys.reverse();
    let mut provider = provider(fake);
    provider.credentials = SharedCredentials::new(Keys(Mutex::new(keys)));
    provider
}

fn sent(fake: &FakeModel) -> Vec<String> {
    let key = |request: &codex_testkit::Request| request.header("authorization").unwrap_or_default().to_owned();
    fake.requests().iter().map(key).collect()
}

#[tokio::test]
async fn every_request_asks_for_its_key() {
    let fake = FakeModel::start(r#"[{"items": []}, {"items": []}]"#);
    let model = HttpModel::new(with_keys(&fake, vec!["sk-1", "sk-2"]));
    for _ in 0..2 {
        let events = model.ask(prompt("Hello.")).collect::<Vec<_>>().await;
        assert!(events.iter().all(Result::is_ok), "{events:?}");
    }
    assert_eq!(sent(&fake), ["Bearer sk-1", "Bearer sk-2"]);
    let error = model.ask(prompt("Hello.")).next().await.unwrap().unwrap_err();
    assert!(matches!(error, ModelError::Unavailable { .. }), "{error:?}");
}

#[tokio::test]
async fn a_refused_key_is_replaced_once() {
    let refusal = r#"{"status": 401, "body": {"error": {"message": "expired"}}}"#;
    let fake = FakeModel::start(&format!(r#"[{refusal}, {{"items": []}}, {refusal}, {refusal}]"#));
    let model = HttpModel::new(with_keys(&fake, vec!["old", "new", "old", "new", "never"]));
    let events = model.ask(prompt("Hello.")).collect::<Vec<_>>().await;
    assert!(events.iter().all(Result::is_ok), "{events:?}");
    let error = model.ask(prompt("Hello.")).next().await.unwrap().unwrap_err();
    assert!(matches!(error, ModelError::Unauthorized { status: 401, .. }), "{error:?}");
    assert_eq!(sent(&fake), ["Bearer old", "Bearer new", "Bearer old", "Bearer new"]);
}
