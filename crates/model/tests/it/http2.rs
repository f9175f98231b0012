//! Answers over HTTP/2.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use codex_model::{HttpModel, Model as _, ModelEvent, Provider, StreamExt as _};
use codex_testkit::{tls_acceptor, tls_file};
use h2::server::SendResponse;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::asking::{ask, prompt};

const DELTA: &str = "data: {\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"delta\":\"Hel\"}\n\n";
const COMPLETED: &str = "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"second\"}}\n\n";

/// A server with HTTP/2 alone. It answers in full, except for requests that say "hang", and tells of those that the
/// client cancels.
struct Http2Server {
    provider: Provider,
    connections: Arc<AtomicUsize>,
    cancelled: mpsc::UnboundedReceiver<()>,
}

async fn server() -> Http2Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut provider = Provider::new("mock", format!("https://localhost:{}/v1", listener.local_addr().unwrap().port()));
    (provider.request_max_retries, provider.ca_certificates) = (0, Some(tls_file("ca.pem")));
    let (connections, (tell, cancelled)) = (Arc::new(AtomicUsize::new(0)), mpsc::unbounded_channel());
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            let tell = tell.clone();
            tokio::spawn(async move {
                let secure = tls_acceptor(&["h2"]).accept(socket).await.unwrap();
                let mut connection = h2::server::handshake(secure).await.unwrap();
                while let Some(Ok((request, respond))) = connection.accept().await {
                    tokio::spawn(answer(request, respond, tell.clone()));
                }
            });
        }
    });
    Http2Server { provider, connections, cancelled }
}

async fn answer(
    request: http::Request<h2::RecvStream>,
    mut respond: SendResponse<Bytes>,
    tell: mpsc::UnboundedSender<()>,
) {
    assert_eq!((request.version(), request.uri().path()), (http::Version::HTTP_2, "/v1/responses"));
    let (mut body, mut asked) = (request.into_body(), Vec::new());
    while let Some(Ok(piece)) = body.data().await {
        body.flow_control().release_capacity(piece.len()).unwrap();
        asked.extend_from_slice(&piece);
    }
    let mut stream = respond.send_response(http::Response::new(()), false).unwrap();
    stream.send_data(Bytes::from_static(DELTA.as_bytes()), false).unwrap();
    if String::from_utf8_lossy(&asked).contains("hang") {
        let reset = std::future::poll_fn(|cx| stream.poll_reset(cx)).await;
        assert_eq!(reset.unwrap(), h2::Reason::CANCEL);
        tell.send(()).unwrap();
        return;
    }
    stream.send_data(Bytes::from_static(COMPLETED.as_bytes()), true).unwrap();
}

#[tokio::test]
async fn requests_share_one_connection_and_an_interrupt_cancels_only_its_own() {
    let mut server = server().await;
    let model = HttpModel::new(server.provider);
    let (first, second) = tokio::join!(ask(&model, "One."), ask(&model, "Two."));
    assert!(first.ends_with("text m \"Hel\"\ncompleted second None\n"), "{first}");
    assert_eq!(first, second);
    // Two that begin at the same time may each open a connection; later ones use what is open.
    let opened = server.connections.load(Ordering::Relaxed);
    let mut hanging = model.ask(prompt("hang"));
    while !matches!(hanging.next().await, Some(Ok(ModelEvent::TextDelta { .. }))) {}
    drop(hanging);
    server.cancelled.recv().await.unwrap();
    assert_eq!(ask(&model, "Three.").await, first);
    assert_eq!(server.connections.load(Ordering::Relaxed), opened);
}
