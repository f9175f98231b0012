//! The way to an issuer over TLS.

use codex_config::Env;
use codex_login::{Body, Network, Request, Transport as _};
use codex_testkit::{FakeModel, TlsFront, tls_file};
use serde_json::json;

#[tokio::test]
async fn the_certificate_authority_of_the_user_is_trusted() {
    let server = FakeModel::start("[]");
    let front = TlsFront::of(&server.url());
    let send = async |env: Env| {
        let request = Request::post(format!("{}/oauth/token", front.url()), Body::Json(json!({})));
        Network::new(&env).send(request).await
    };
    for name in ["CODEX_CA_CERTIFICATE", "SSL_CERT_FILE"] {
        let answer = send(Env::from_iter([(name, tls_file("ca.pem"))])).await.unwrap();
        assert_eq!(answer.status, 404, "the server is no issuer, but it was reached");
    }
    let error = send(Env::from_iter::<[(&str, &str); 0]>([])).await.unwrap_err();
    assert!(error.host.starts_with("localhost:"), "{error}");
    let both = [("CODEX_CA_CERTIFICATE", tls_file("missing.pem")), ("SSL_CERT_FILE", tls_file("ca.pem"))];
    let error = send(Env::from_iter(both)).await.unwrap_err();
    assert!(format!("{:?}", error.source).contains("missing.pem"), "{error:?}");
}
