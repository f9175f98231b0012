//! TLS with a private certificate authority.

use std::path::PathBuf;

use codex_model::{HttpModel, Model as _, ModelError, ModelEvent, Provider, StreamExt as _, ollama};
use codex_testkit::{FakeModel, TlsFront, tls_file};

use crate::asking::prompt;

async fn ask(ca_certificates: Option<PathBuf>) -> Vec<Result<ModelEvent, ModelError>> {
    let fake = FakeModel::start(r#"[{"id": "secure"}]"#);
    let front = TlsFront::of(&fake.url());
    let mut provider = Provider::new("mock", format!("{}/v1", front.url()));
    (provider.request_max_retries, provider.ca_certificates) = (0, ca_certificates);
    HttpModel::new(provider).ask(prompt("Hello.")).collect().await
}

#[tokio::test]
async fn a_certificate_authority_of_the_user_is_trusted() {
    let events = ask(Some(tls_file("ca.pem"))).await;
    let last = events.last().unwrap().as_ref().unwrap();
    assert!(matches!(last, ModelEvent::Completed { response_id, .. } if response_id == "secure"), "{events:?}");
}

#[tokio::test]
async fn an_unknown_certificate_authority_is_refused() {
    let events = ask(None).await;
    // Without any root certificates on the machine, TLS cannot even be set up.
    let is_refused = |error: &ModelError| matches!(error, ModelError::Connect { .. } | ModelError::Tls { .. });
    assert!(matches!(&events[..], [Err(error)] if is_refused(error)), "{events:?}");
}

#[tokio::test]
async fn a_file_of_certificates_that_is_none_is_named() {
    for name in ["missing.pem", "server.key"] {
        let events = ask(Some(tls_file(name))).await;
        let [Err(ModelError::Tls { source })] = &events[..] else { panic!("{events:?}") };
        assert!(source.to_string().contains(name), "{source}");
    }
}

#[tokio::test]
async fn a_download_trusts_the_certificate_authority_of_the_user() {
    let fake = FakeModel::start("[]");
    let front = TlsFront::of(&fake.url());
    let base_url = format!("{}/v1", front.url());
    let trusting = ollama::pull(&base_url, "m", Some(&tls_file("ca.pem")), |_| {}).await;
    assert!(trusting.is_ok(), "{trusting:?}");
    let other = ollama::pull(&base_url, "m", None, |_| {}).await;
    assert!(matches!(other, Err(ModelError::Connect { .. } | ModelError::Tls { .. })), "{other:?}");
}
