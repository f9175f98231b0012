//! The authorization of requests.

use std::sync::Mutex;

use codex_model::{
    Authorization, Credentials, HttpModel, Model as _, ModelError, Provider, SharedCredentials, StreamExt as _,
};
use codex_testkit::FakeModel;
use futures_util::future::{BoxFuture, ready};

use crate::asking::{prompt, provider};

/// Keys that are returned one after the other; when one is rejected, there may be another.
struct Keys(Mutex<Vec<&'static str>>);

impl Credentials for Keys {
    fn authorize(&self) -> BoxFuture<'_, Result<Authorization, ModelError>> {
        let key = self.0.lock().unwrap().pop().ok_or(ModelError::Unavailable { message: "no key".to_owned() });
        Box::pin(ready(key.map(Authorization::bearer)))
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

/// A login that is for one address, whatever the provider.
struct BoundLogin(String);

impl Credentials for BoundLogin {
    fn authorize(&self) -> BoxFuture<'_, Result<Authorization, ModelError>> {
        let account = Some("acct-1".to_owned());
        let base_url = Some(self.0.clone());
        Box::pin(ready(Ok(Authorization { account, base_url, ..Authorization::bearer("token") })))
    }

    fn refused<'a>(&'a self, _: &'a Authorization) -> BoxFuture<'a, bool> {
        Box::pin(ready(false))
    }
}

#[tokio::test]
async fn a_login_goes_to_the_address_that_it_is_for_and_names_its_account() {
    let (own, bound) = (FakeModel::start(r"[]"), FakeModel::start(r#"[{"items": []}]"#));
    let mut provider = provider(&own);
    provider.credentials = SharedCredentials::new(BoundLogin(crate::asking::provider(&bound).base_url));
    let events = HttpModel::new(provider).ask(prompt("Hello.")).collect::<Vec<_>>().await;
    assert!(events.iter().all(Result::is_ok), "{events:?}");
    assert_eq!((sent(&own), sent(&bound)), (Vec::new(), vec!["Bearer token".to_owned()]));
    assert_eq!(bound.requests()[0].header("chatgpt-account-id"), Some("acct-1"));
}
