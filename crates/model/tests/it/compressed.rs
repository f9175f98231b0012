//! Answers that the provider has compressed.

use std::io::{Read as _, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use codex_model::{HttpModel, Model as _, ModelError, ModelEvent, Provider, StreamExt as _};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::asking::prompt;

const DELTA: &str = "data: {\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"delta\":\"Hel\"}\n\n";
const COMPLETED: &str = "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"last\"}}\n\n";

/// A server that compresses its answer with gzip, and the signal that lets it go on.
fn server(
    status: &'static str,
    serve: impl FnOnce(&str, GzEncoder<TcpStream>, &Receiver<()>) + Send + 'static,
) -> (HttpModel, Sender<()>) {
    encoding_server("gzip", status, |request, stream, waits| {
        serve(request, GzEncoder::new(stream, Compression::default()), waits);
    })
}

/// A server that says that its answer is compressed, and the signal that lets it go on.
fn encoding_server(
    encoding: &'static str,
    status: &'static str,
    serve: impl FnOnce(&str, TcpStream, &Receiver<()>) + Send + 'static,
) -> (HttpModel, Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut provider = Provider::new("mock", format!("http://{}/v1", listener.local_addr().unwrap()));
    (provider.request_max_retries, provider.stream_idle_timeout) = (0, Duration::from_secs(5));
    let (go_on, waits) = channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = vec![0; 65536];
        let length = stream.read(&mut request).unwrap();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/event-stream\r\ncontent-encoding: {encoding}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        serve(&String::from_utf8_lossy(&request[..length]), stream, &waits);
    });
    (HttpModel::new(provider), go_on)
}

#[tokio::test]
async fn a_compressed_stream_arrives_piece_by_piece() {
    let (model, go_on) = server("200 OK", |request, mut out, waits| {
        assert!(request.to_ascii_lowercase().contains("accept-encoding: gzip"), "{request}");
        out.write_all(DELTA.as_bytes()).unwrap();
        out.flush().unwrap();
        // The rest is sent only after the client has read the first event.
        waits.recv_timeout(Duration::from_secs(10)).unwrap();
        out.write_all(COMPLETED.as_bytes()).unwrap();
        out.finish().unwrap();
    });
    let mut answer = model.ask(prompt("Hello."));
    assert!(matches!(answer.next().await, Some(Ok(ModelEvent::Opened { .. }))));
    let delta = answer.next().await;
    assert!(matches!(&delta, Some(Ok(ModelEvent::TextDelta { delta, .. })) if delta == "Hel"), "{delta:?}");
    go_on.send(()).unwrap();
    let last = answer.next().await;
    assert!(matches!(&last, Some(Ok(ModelEvent::Completed { response_id, .. })) if response_id == "last"), "{last:?}");
    assert!(answer.next().await.is_none());
}

#[tokio::test]
async fn a_compressed_refusal_is_read() {
    let (model, _go_on) = server("400 Bad Request", |_, mut out, _| {
        out.write_all(br#"{"error": {"message": "unknown parameter"}}"#).unwrap();
        out.finish().unwrap();
    });
    let error = model.ask(prompt("Hello.")).next().await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "unknown parameter");
}

#[tokio::test]
async fn a_compressed_stream_that_is_cut_is_an_error() {
    let (model, _go_on) = server("200 OK", |_, mut out, _| {
        out.write_all(DELTA.as_bytes()).unwrap();
        out.flush().unwrap();
        out.get_ref().shutdown(std::net::Shutdown::Both).unwrap();
    });
    let events: Vec<_> = model.ask(prompt("Hello.")).collect().await;
    assert!(matches!(&events[..], [Ok(_), Ok(_), Err(ModelError::Disconnected { .. })]), "{events:?}");
}

#[tokio::test]
async fn a_small_answer_that_grows_without_end_is_refused() {
    let (model, _go_on) = server("200 OK", |_, mut out, _| {
        let zeros = vec![b'0'; 1024 * 1024];
        // The client disconnects early.
        let _ = out.write_all(b"data: ");
        while out.write_all(&zeros).and_then(|()| out.flush()).is_ok() {}
    });
    let events: Vec<_> = model.ask(prompt("Hello.")).collect().await;
    assert!(matches!(&events[..], [Ok(_), Err(ModelError::Stream(_))]), "{events:?}");
}

/// A frame of Zstandard whose blocks are not compressed.
struct ZstdFrame(TcpStream);

impl ZstdFrame {
    fn begin(mut stream: TcpStream) -> Self {
        stream.write_all(&[0x28, 0xb5, 0x2f, 0xfd, 0, 0]).unwrap();
        Self(stream)
    }

    fn block(&mut self, bytes: &[u8], is_last: bool) {
        let header = u32::try_from(bytes.len()).unwrap() << 3 | u32::from(is_last);
        self.0.write_all(&[&header.to_le_bytes()[..3], bytes].concat()).unwrap();
    }
}

#[tokio::test]
async fn a_stream_of_zstandard_arrives_block_by_block() {
    let (model, go_on) = encoding_server("zstd", "200 OK", |request, stream, waits| {
        assert!(request.to_ascii_lowercase().contains("accept-encoding: gzip, zstd"), "{request}");
        let mut frame = ZstdFrame::begin(stream);
        frame.block(DELTA.as_bytes(), false);
        // The rest is sent only after the client has read the first event.
        waits.recv_timeout(Duration::from_secs(10)).unwrap();
        frame.block(COMPLETED.as_bytes(), true);
    });
    let mut answer = model.ask(prompt("Hello."));
    assert!(matches!(answer.next().await, Some(Ok(ModelEvent::Opened { .. }))));
    let delta = answer.next().await;
    assert!(matches!(&delta, Some(Ok(ModelEvent::TextDelta { delta, .. })) if delta == "Hel"), "{delta:?}");
    go_on.send(()).unwrap();
    let last = answer.next().await;
    assert!(matches!(&last, Some(Ok(ModelEvent::Completed { response_id, .. })) if response_id == "last"), "{last:?}");
    assert!(answer.next().await.is_none());
}

#[tokio::test]
async fn a_refusal_in_zstandard_is_read() {
    let (model, _go_on) = encoding_server("zstd", "400 Bad Request", |_, stream, _| {
        ZstdFrame::begin(stream).block(br#"{"error": {"message": "unknown parameter"}}"#, true);
    });
    let error = model.ask(prompt("Hello.")).next().await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "unknown parameter");
}

#[tokio::test]
async fn a_stream_of_zstandard_that_is_cut_wrong_or_endless_is_an_error() {
    let (cut, _go_on) =
        encoding_server("zstd", "200 OK", |_, stream, _| ZstdFrame::begin(stream).block(DELTA.as_bytes(), false));
    let (wrong, _go_on) = encoding_server("zstd", "200 OK", |_, mut stream, _| {
        stream.write_all(DELTA.as_bytes()).unwrap();
    });
    for (model, events) in [(cut, 2), (wrong, 1)] {
        let answer: Vec<_> = model.ask(prompt("Hello.")).collect().await;
        assert_eq!(answer.len(), events + 1, "{answer:?}");
        assert!(matches!(answer.last(), Some(Err(ModelError::Disconnected { source: Some(_) }))), "{answer:?}");
    }
    let (endless, _go_on) = encoding_server("zstd", "200 OK", |_, stream, _| {
        let mut frame = ZstdFrame::begin(stream);
        frame.block(b"data: ", false);
        // Each block has four bytes and stands for 128 KiB.
        let header = (128 * 1024_u32) << 3 | 2;
        let blocks = [&header.to_le_bytes()[..3], b"0"].concat().repeat(1000);
        while frame.0.write_all(&blocks).is_ok() {}
    });
    let answer: Vec<_> = endless.ask(prompt("Hello.")).collect().await;
    assert!(matches!(&answer[..], [Ok(_), Err(ModelError::Stream(_))]), "{answer:?}");
}
