//! Streams of a server at an address that outlast one request: its own messages, answers that broke off, and the
//! transport of 2024-11-05, where all answers come on one stream.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode, Url};
use tokio::time::{sleep, timeout};

use super::{CONNECT, Link, MOST_ANSWER, PostError, SESSION, VERSION, deliver, lock};
use crate::connection::{Connection, Shared};
use crate::event_stream::EventReader;
use crate::rpc;

/// The deadline for the head of a stream.
const HEAD: Duration = Duration::from_secs(30);
/// The wait before a stream is asked for again, unless the server says one, and its bounds.
const RETRY: Duration = Duration::from_secs(1);
const SHORTEST_RETRY: Duration = Duration::from_millis(100);
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// The number of times that a stream may break off or be refused without an event in between.
const MOST_FAILURES: u32 = 5;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// A reader of events for this transport.
pub(super) fn reader() -> EventReader {
    EventReader::with_limit(MOST_ANSWER)
}

/// Passes on the messages of a stream until it ends; returns how many events came.
pub(super) async fn follow(
    link: &Link,
    connection: &Weak<Shared>,
    is_greeting: bool,
    response: Response,
    reader: &mut EventReader,
) -> Result<usize, String> {
    let (mut body, mut count) = (response.bytes_stream(), 0);
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|error| codex_tools::full_message(&error.without_url()))?;
        for event in reader.take(&chunk)? {
            count += 1;
            deliver(link, connection, is_greeting, &event.data);
        }
    }
    Ok(count)
}

/// Asks for the rest of an answer whose stream broke off, as long as the server has named a place to go on from.
pub(super) async fn resume(link: &Link, connection: &Weak<Shared>, id: u64, mut reader: EventReader) {
    let is_open = || Connection::upgrade(connection).is_some_and(|connection| connection.is_open(id));
    let mut failures = 0;
    while is_open() && reader.last_id().is_some() && failures < MOST_FAILURES {
        sleep(wait(&reader, failures)).await;
        let came = match get(link, reader.last_id()).await {
            Ok(response) => follow(link, connection, false, response, restarted(&mut reader)).await.unwrap_or(0),
            Err(error) if error.is_final() => return,
            Err(_) => 0,
        };
        failures = if came > 0 { 0 } else { failures + 1 };
    }
}

/// Receives the messages that the server sends outside of answers, if it offers that.
pub(super) async fn listen(link: Arc<Link>, connection: Weak<Shared>) {
    let (mut reader, mut failures) = (reader(), 0);
    while failures < MOST_FAILURES {
        let came = match get(&link, reader.last_id()).await {
            Ok(response) => follow(&link, &connection, false, response, restarted(&mut reader)).await.unwrap_or(0),
            Err(error) if error.is_final() => {
                if let Some(connection) =
                    Connection::upgrade(&connection).filter(|_| link.is_lost.load(Ordering::Relaxed))
                {
                    connection.end(": its session has expired");
                }
                return;
            }
            Err(_) => 0,
        };
        failures = if came > 0 { 0 } else { failures + 1 };
        sleep(wait(&reader, failures)).await;
    }
}

fn restarted(reader: &mut EventReader) -> &mut EventReader {
    reader.begin_again();
    reader
}

fn wait(reader: &EventReader, failures: u32) -> Duration {
    let said = reader.retry().unwrap_or(RETRY).clamp(SHORTEST_RETRY, LONGEST_RETRY);
    (said * (1 << failures.saturating_sub(1))).min(LONGEST_RETRY)
}

/// Asks for a stream, from the event after this one on.
async fn get(link: &Link, after: Option<&str>) -> Result<Response, PostError> {
    let (session, version) = lock(&link.session).clone();
    let had_session = session.is_some();
    let mut headers = link.headers.clone();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    headers.extend(session.map(|session| (SESSION, session)));
    headers.extend(version.map(|version| (VERSION, version)));
    headers.extend(after.and_then(|id| HeaderValue::try_from(id).ok()).map(|id| (LAST_EVENT_ID, id)));
    let asked = link.send(link.client.get(link.url.clone()).headers(headers));
    let response = timeout(HEAD, asked).await.map_err(|_| format!("no stream within {} s", HEAD.as_secs()))??;
    let status = response.status();
    if status == StatusCode::NOT_FOUND && had_session {
        link.is_lost.store(true, Ordering::Relaxed);
    }
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if status.is_success() && kind.starts_with("text/event-stream") {
        return Ok(response);
    }
    let why = format!("the server answered {status} with `{kind}` in place of a stream");
    // A page in place of a stream will be one the next time, too.
    let status = if status.is_success() { StatusCode::METHOD_NOT_ALLOWED } else { status };
    Err(PostError { status: Some(status), why })
}

/// Begins the transport of 2024-11-05: the server tells on a stream where it takes messages, and answers there.
pub(super) async fn begin_legacy(link: &Link, connection: &Weak<Shared>) -> Result<(), String> {
    let response = get(link, None).await.map_err(|error| error.why)?;
    let (mut body, mut reader) = (response.bytes_stream(), reader());
    let (endpoint, rest) = timeout(CONNECT, async {
        while let Some(chunk) = body.next().await {
            let chunk = chunk.map_err(|error| codex_tools::full_message(&error.without_url()))?;
            let mut events = reader.take(&chunk)?.into_iter();
            if let Some(event) = events.find(|event| event.name == "endpoint") {
                return Ok((String::from_utf8_lossy(&event.data).into_owned(), events.collect::<Vec<_>>()));
            }
        }
        Err("the stream of the server ended without an address for messages".to_owned())
    })
    .await
    .map_err(|_| format!("the server told no address for messages within {} s", CONNECT.as_secs()))??;
    let url = link.url.join(endpoint.trim()).map_err(|error| format!("`{endpoint}` is no address: {error}"))?;
    // Keys would go to a stranger.
    if url.origin() != link.url.origin() {
        return Err(format!("the server wants messages to be sent to another origin: {}", origin(&url)));
    }
    *lock(&link.legacy) = Some(url);
    let connection = connection.clone();
    let reading = async move {
        let pass = |data: &[u8]| {
            if let (Some(connection), Some(message)) = (Connection::upgrade(&connection), rpc::read(data)) {
                connection.receive(message);
            }
        };
        for event in &rest {
            pass(&event.data);
        }
        while let Some(Ok(chunk)) = body.next().await {
            let Ok(events) = reader.take(&chunk) else { break };
            for event in &events {
                pass(&event.data);
            }
        }
        if let Some(connection) = Connection::upgrade(&connection) {
            connection.end(": its stream has ended");
        }
    };
    lock(&link.reading).spawn(reading);
    Ok(())
}

fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}
