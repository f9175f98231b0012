//! The loopback port that a browser is redirected to: minimal HTTP with limits on size, time and connections.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::LoginError;
use crate::browser::{CallbackPage, CallbackRequest};

/// The maximum size of a request.
const MOST_BYTES: usize = 16 * 1024;
/// The time limit for a connection to send its request, and to read the response.
const PATIENCE: Duration = Duration::from_secs(5);
/// The number of connections that may be silent at once. One more closes the oldest.
const MOST_CONNECTIONS: usize = 16;

/// A connection that waits for its response.
pub(crate) struct CallbackConnection {
    pub(crate) request: CallbackRequest,
    stream: TcpStream,
}

/// Listens on the first of these ports that is free, on the loopback interface.
pub(crate) async fn bind(ports: &[u16]) -> Result<(TcpListener, u16), LoginError> {
    for port in ports {
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", *port)).await
            && let Ok(address) = listener.local_addr()
        {
            return Ok((listener, address.port()));
        }
    }
    Err(LoginError::Ports { ports: ports.to_vec() })
}

/// Accepts connections until the receiver is dropped.
pub(crate) async fn receive(listener: TcpListener, connections: mpsc::Sender<CallbackConnection>) {
    let mut silent: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = connections.closed() => return,
        };
        // The client may have disconnected already.
        let Ok((stream, _)) = accepted else { continue };
        silent.retain(|connection| !connection.is_finished());
        if silent.len() >= MOST_CONNECTIONS
            && let Some(oldest) = silent.pop_front()
        {
            // Connections that hold the port and say nothing must not keep the browser out.
            oldest.abort();
        }
        let connections = connections.clone();
        let meeting = tokio::spawn(async move {
            if let Ok(Some(connection)) = timeout(PATIENCE, CallbackConnection::meet(stream)).await {
                // One that has sent its request is not silent. The receiver is dropped when the login is over.
                drop(tokio::spawn(async move { connections.send(connection).await }));
            }
        });
        silent.push_back(meeting.abort_handle());
    }
}

impl CallbackConnection {
    async fn meet(mut stream: TcpStream) -> Option<Self> {
        let mut head = Vec::new();
        while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            if head.len() >= MOST_BYTES || stream.read_buf(&mut head).await.ok()? == 0 {
                return None;
            }
        }
        Some(Self { request: CallbackRequest::parse(&head)?, stream })
    }

    /// Sends a page. A browser that does not wait for it needs nothing more.
    pub(crate) async fn answer(mut self, reply: CallbackPage) {
        let said = timeout(PATIENCE, async {
            self.stream.write_all(page(reply).as_bytes()).await?;
            self.stream.shutdown().await
        });
        let _ = said.await;
    }
}

impl CallbackRequest {
    fn parse(head: &[u8]) -> Option<Self> {
        let head = std::str::from_utf8(head).ok()?;
        let mut lines = head.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut request = Self { method, target, ..Self::default() };
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            match name.trim().to_ascii_lowercase().as_str() {
                "host" => value.trim().clone_into(&mut request.host),
                "origin" => request.is_foreign = true,
                "sec-fetch-site" => request.is_foreign |= !matches!(value.trim(), "none" | "same-origin"),
                _ => {}
            }
        }
        Some(request)
    }
}

fn page(reply: CallbackPage) -> String {
    let (status, title, text) = match reply {
        CallbackPage::Done => ("200 OK", "You are logged in", "You may close this page and go back to Codex."),
        CallbackPage::Failed => {
            ("400 Bad Request", "The login failed", "The terminal shows the reason. You may close this page.")
        }
        CallbackPage::Cancelled => ("200 OK", "The login was cancelled", "You may close this page."),
        CallbackPage::Refused => {
            ("403 Forbidden", "This is not the login that Codex waits for", "Begin again in Codex.")
        }
        CallbackPage::Missing => ("404 Not Found", "There is nothing here", ""),
    };
    let body = format!("<!doctype html><meta charset=utf-8><title>{title}</title><h1>{title}</h1><p>{text}");
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\ncontent-security-policy: default-src 'none'\r\n\
         x-content-type-options: nosniff\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_to_the_end_of_its_head() {
        let request = CallbackRequest::parse(
            b"GET /a?b=c HTTP/1.1\r\nHost: localhost:1455\r\nSec-Fetch-Site: cross-site\r\n\r\n",
        )
        .unwrap();
        assert_eq!((request.method.as_str(), request.target.as_str()), ("GET", "/a?b=c"));
        assert_eq!((request.host.as_str(), request.is_foreign), ("localhost:1455", true));
        let own = CallbackRequest::parse(b"GET / HTTP/1.1\r\nsec-fetch-site: none\r\n\r\n").unwrap();
        assert!(!own.is_foreign);
        assert!(CallbackRequest::parse(b"\xff\xff\r\n\r\n").is_none());
        assert!(CallbackRequest::parse(b"GET\r\n\r\n").is_none());
    }

    #[tokio::test]
    async fn silent_connections_do_not_keep_a_browser_out() {
        let (listener, port) = bind(&[0]).await.unwrap();
        let (connections, mut received) = mpsc::channel(1);
        tokio::spawn(receive(listener, connections));
        let mut silent = Vec::new();
        for _ in 0..2 * MOST_CONNECTIONS {
            silent.push(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
        }
        let mut browser = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        browser.write_all(b"GET /auth HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        // The deadline of those that say nothing has not passed.
        let met = timeout(PATIENCE / 2, received.recv()).await.unwrap().unwrap();
        assert_eq!(met.request.target, "/auth");
        let mut nothing = [0];
        assert_eq!(silent[0].read(&mut nothing).await.unwrap(), 0, "the oldest was closed");
    }

    #[tokio::test]
    async fn the_first_free_port_is_taken() {
        let (first, taken) = bind(&[0]).await.unwrap();
        let (_second, port) = bind(&[taken, 0]).await.unwrap();
        assert_ne!(port, taken);
        let error = bind(&[taken]).await.unwrap_err();
        assert!(error.to_string().starts_with(&format!("ports {taken} are in use")), "{error}");
        drop(first);
    }
}
