//! TLS with a certificate authority of one's own.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;

use codex_model::{HttpModel, Model as _, ModelError, ModelEvent, Provider, StreamExt as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use rustls::{ServerConfig, ServerConnection, Stream};

use crate::asking::prompt;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name)
}

/// A server whose certificate only the test's own authority vouches for. It answers every request with an empty answer.
fn secure_server() -> String {
    let certificate = CertificateDer::from_pem_file(fixture("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(fixture("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let Ok(mut connection) = ServerConnection::new(Arc::clone(&config)) else { return };
            let mut stream = Stream::new(&mut connection, &mut socket);
            let mut request = vec![0; 65536];
            // A client that does not trust the certificate hangs up.
            if stream.read(&mut request).is_err() {
                continue;
            }
            let answer = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
                          data: {\"type\":\"response.completed\",\"response\":{\"id\":\"secure\"}}\n\n";
            let _ = stream.write_all(answer.as_bytes());
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    format!("https://localhost:{port}/v1")
}

async fn ask(ca_certificates: Option<PathBuf>) -> Vec<Result<ModelEvent, ModelError>> {
    let mut provider = Provider::new("mock", secure_server());
    (provider.request_max_retries, provider.ca_certificates) = (0, ca_certificates);
    HttpModel::new(provider).ask(prompt("Hello.")).collect().await
}

#[tokio::test]
async fn a_certificate_authority_of_the_user_is_trusted() {
    let events = ask(Some(fixture("ca.pem"))).await;
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
        let events = ask(Some(fixture(name))).await;
        let [Err(ModelError::Tls { source })] = &events[..] else { panic!("{events:?}") };
        assert!(source.to_string().contains(name), "{source}");
    }
}
