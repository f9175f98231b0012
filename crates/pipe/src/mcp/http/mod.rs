//! Streamable HTTP: the same server for clients that send each message as a request of its own.
//!
//! ```text
//! request ─┬─ 2026-07-28: a session for this request alone; closing its stream cancels it
//!          └─ older: the session that the header names ─▶ JSON, or a stream that can be resumed
//! ```
//!
//! The listener has authenticated the client, and has limited the size of the request.

mod events;
mod headers;
mod sessions;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::{Frame, SizeHint};

use self::events::{EventReader, EventStream};
use self::sessions::{HttpSession, Sessions};
use super::Server;
use super::message::{self, INVALID_REQUEST, Incoming, Malformed, RpcError};
use super::session::{Reply, Session, Shared};

/// The path of the one endpoint.
const PATH: &str = "/mcp";
/// The header with the id of a session.
const SESSION_ID: &str = "mcp-session-id";
/// The header with the id of the last event that a client has received.
const LAST_EVENT_ID: &str = "last-event-id";
/// The version since which a stream begins with an event that has no message.
const PRIMED_SINCE: &str = "2025-11-25";

/// A server for clients over HTTP.
#[derive(Debug, Clone)]
pub struct HttpServer {
    shared: Arc<Shared>,
    sessions: Arc<Sessions>,
}

/// The body of a response.
#[derive(Debug)]
pub struct Body(Content);

#[derive(Debug)]
enum Content {
    Whole(Option<Bytes>),
    Events(EventReader),
}

/// A response other than success.
type Refusal = Box<Response<Body>>;
type Answer = Result<Response<Body>, Refusal>;

impl HttpServer {
    #[must_use]
    pub fn new(server: Server) -> Self {
        Self { shared: Shared::new(server), sessions: Arc::default() }
    }

    /// Answers one request of an authenticated client.
    pub async fn answer(&self, request: Request<Bytes>) -> Response<Body> {
        let (head, body) = request.into_parts();
        if head.uri.path() != PATH {
            return refusal(StatusCode::NOT_FOUND, "the one path is /mcp");
        }
        let answer = match head.method {
            Method::POST => self.post(&head.headers, &body).await,
            Method::GET => self.get(&head.headers),
            Method::DELETE => self.delete(&head.headers),
            _ => {
                let mut refused = refusal(StatusCode::METHOD_NOT_ALLOWED, "the methods are POST, GET and DELETE");
                refused.headers_mut().insert(ALLOW, HeaderValue::from_static("POST, GET, DELETE"));
                Ok(refused)
            }
        };
        answer.unwrap_or_else(|refusal| *refusal)
    }

    /// Ends all sessions and calls, and then all threads.
    pub async fn close(&self) {
        self.sessions.close_all();
        self.shared.parked.clear();
        self.shared.server.threads.close().await;
    }

    async fn post(&self, headers: &HeaderMap, body: &[u8]) -> Answer {
        headers::check_post(headers)?;
        let messages = message::read(body);
        if headers::is_stateless(headers, &messages) {
            return self.post_stateless(headers, messages).await;
        }
        headers::check_version(headers)?;
        if let [Ok(Incoming::Request { method, .. })] = messages.as_slice()
            && method == "initialize"
        {
            return self.initialize(messages).await;
        }
        if let [Err(Malformed { id, error })] = messages.as_slice() {
            return Ok(json(StatusCode::BAD_REQUEST, Reply::refusal(id.as_ref(), error.clone())));
        }
        let (_, session) = self.session(headers)?;
        Ok(converse(&session, messages).await)
    }

    /// Serves a request of the version without sessions.
    async fn post_stateless(&self, headers: &HeaderMap, mut messages: Vec<Result<Incoming, Malformed>>) -> Answer {
        let message = match (messages.pop(), messages.is_empty()) {
            // A call is cancelled by closing its stream, and there are no other notifications.
            (Some(Ok(Incoming::Notification { .. })), true) => return Ok(accepted()),
            (Some(message @ Ok(Incoming::Request { .. })), true) => message,
            (Some(Err(Malformed { id, error })), true) => {
                return Ok(json(StatusCode::BAD_REQUEST, Reply::refusal(id.as_ref(), error)));
            }
            _ => return Ok(refusal(StatusCode::BAD_REQUEST, "a body is one request or notification")),
        };
        if let Ok(Incoming::Request { id, method, params }) = &message
            && let Err(error) = headers::check_mirrored(headers, method, params)
        {
            return Ok(json(StatusCode::BAD_REQUEST, Reply::refusal(Some(id), error)));
        }
        let (session, _) = Session::new(Arc::clone(&self.shared));
        let stream = EventStream::new(None);
        let outbox = stream.outbox();
        // Before the call can send anything, so nothing is lost.
        let events = stream.read_after(0).cancelling(Arc::clone(&session));
        Ok(match session.take(message, &outbox).await {
            Some(reply) => json(reply.code.map_or(StatusCode::OK, headers::status_of), reply),
            None => event_stream(events),
        })
    }

    /// Opens a session.
    async fn initialize(&self, mut messages: Vec<Result<Incoming, Malformed>>) -> Answer {
        let draft = Sessions::draft(&self.shared);
        let outbox = EventStream::new(None).outbox();
        let Some(message) = messages.pop() else { return Ok(accepted()) };
        let Some(reply) = draft.session.take(message, &outbox).await else { return Ok(accepted()) };
        if reply.code.is_some() {
            return Ok(json(StatusCode::BAD_REQUEST, reply));
        }
        let id = self.sessions.open(draft).and_then(|id| HeaderValue::from_str(&id).ok());
        let Some(id) = id else {
            let mut refused = refusal(StatusCode::SERVICE_UNAVAILABLE, "too many sessions; end one, or retry later");
            refused.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            return Ok(refused);
        };
        let mut response = json(StatusCode::OK, reply);
        response.headers_mut().insert(SESSION_ID, id);
        Ok(response)
    }

    /// Opens the stream of messages that belong to no request, or continues one that broke off.
    fn get(&self, headers: &HeaderMap) -> Answer {
        headers::check_get(headers)?;
        let (_, session) = self.session(headers)?;
        let found = match headers::text(headers, LAST_EVENT_ID) {
            Some(id) => session.find_event(id),
            None => session.standing_stream().map(|stream| (stream, u64::MAX)),
        };
        let Some((stream, last)) = found else {
            return Ok(refusal(StatusCode::BAD_REQUEST, "Last-Event-ID names no event that is kept"));
        };
        Ok(event_stream(stream.read_after(last)))
    }

    fn delete(&self, headers: &HeaderMap) -> Answer {
        let (id, _) = self.session(headers)?;
        self.sessions.close(&id);
        Ok(empty(StatusCode::NO_CONTENT))
    }

    /// The session that a request names.
    fn session(&self, headers: &HeaderMap) -> Result<(String, Arc<HttpSession>), Refusal> {
        let Some(id) = headers::text(headers, SESSION_ID) else {
            return Err(Box::new(refusal(StatusCode::BAD_REQUEST, "the header Mcp-Session-Id is missing")));
        };
        let gone = || Box::new(refusal(StatusCode::NOT_FOUND, "there is no such session; send initialize again"));
        Ok((id.to_owned(), self.sessions.get(id).ok_or_else(gone)?))
    }
}

/// Passes messages to a session and returns its answer.
async fn converse(session: &HttpSession, messages: Vec<Result<Incoming, Malformed>>) -> Response<Body> {
    let is_asked = |message: &Result<Incoming, Malformed>| matches!(message, Ok(Incoming::Request { .. }) | Err(_));
    let (alone, expects_answers) = (messages.len() == 1, messages.iter().any(is_asked));
    if !expects_answers {
        // Nothing is sent, so no stream is kept.
        let outbox = EventStream::new(None).outbox();
        for message in messages {
            session.session.take(message, &outbox).await;
        }
        return accepted();
    }
    let stream = session.new_stream();
    let outbox = stream.outbox();
    let events = stream.read_after(0);
    for message in messages {
        match session.session.take(message, &outbox).await {
            Some(reply) if alone => return json(StatusCode::OK, reply),
            Some(reply) => outbox.send_answer(reply.line).await,
            None => {}
        }
    }
    let is_primed = session.session.version() >= Some(PRIMED_SINCE);
    event_stream(if is_primed { events.beginning_with_id() } else { events })
}

fn response(status: StatusCode, content: Content) -> Response<Body> {
    let mut response = Response::new(Body(content));
    *response.status_mut() = status;
    response
}

fn empty(status: StatusCode) -> Response<Body> {
    response(status, Content::Whole(None))
}

fn accepted() -> Response<Body> {
    empty(StatusCode::ACCEPTED)
}

fn json(status: StatusCode, reply: Reply) -> Response<Body> {
    let mut response = response(status, Content::Whole(Some(reply.line.into())));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A request that is refused before anybody looks at its message.
fn refusal(status: StatusCode, why: &str) -> Response<Body> {
    json(status, Reply::refusal(None, RpcError::new(INVALID_REQUEST, why)))
}

fn event_stream(events: EventReader) -> Response<Body> {
    let mut response = response(StatusCode::OK, Content::Events(events));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    response
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Content::Whole(whole) => Poll::Ready(whole.take().map(|bytes| Ok(Frame::data(bytes)))),
            Content::Events(events) => events.poll_event(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Content::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Whole(whole) => SizeHint::with_exact(whole.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Content::Events(_) => SizeHint::default(),
        }
    }
}
