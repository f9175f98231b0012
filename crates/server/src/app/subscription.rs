//! Subscriptions by event number: a client that was disconnected continues from where it stopped.
//!
//! The last message of an event carries the event's number as `seq`. A client that reconnects names the last number it
//! has seen, receives the events it missed, and then a notification that it has caught up. Events that are no longer in
//! memory are read from the thread's lines (`missed`). If too much was missed, the client receives the whole thread
//! instead, and the response says so.

use std::sync::Arc;

use codex_dialects::replay::missed::{self, Missed};
use codex_log::{LogId, Seq};
use codex_protocol::methods::call;
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::notification::ServerNotification;
use codex_protocol::v2::subscribe::{ThreadCaughtUp, ThreadSubscribeParams, ThreadSubscribeResponse};
use codex_protocol::v2::thread::{ThreadOptions, ThreadResumeParams};
use codex_thread::{Closed, Cursor, FeedStart, Subscription, Thread};
use codex_wire::ids::ThreadId;

use super::connection::Connection;
use super::dispatch::{Request, ServeThread, not_found};
use super::lane::Lane;
use codex_dialects::event_filter::Subscriptions;

use super::open_thread::{self, Opened};
use super::questions::Repeat;
use super::stored_threads::Turns;
use super::subscriber::ThreadSubscriber;
use codex_dialects::v2::project::ProjectionOptions;

/// The progress of a client that subscribed by event numbers.
#[derive(Debug)]
pub(crate) struct EventNumbers {
    log: LogId,
    /// The event after which the client has caught up; `None` once it has.
    mark: Option<Seq>,
}

impl EventNumbers {
    /// The progress of a client that has received everything up to `told` when `last` was the last event.
    fn new(log: LogId, told: Option<Seq>, last: Seq) -> Self {
        Self { log, mark: Some(last).filter(|last| told.is_none_or(|told| told < *last)) }
    }

    /// The notification for the client, if it has caught up with this event.
    pub(crate) fn caught_up(&mut self, thread: ThreadId, told: Option<Seq>) -> Option<ServerNotification> {
        let has_caught_up = self.mark.is_none_or(|mark| told.is_some_and(|told| told >= mark));
        has_caught_up.then(|| {
            self.mark = None;
            let (thread_id, log_id) = (thread.to_string(), self.log.to_string());
            ServerNotification::ThreadCaughtUp(ThreadCaughtUp { thread_id, log_id, seq: told.map(Seq::number) })
        })
    }

    /// Whether the client is still receiving missed events.
    pub(crate) fn is_behind(&self) -> bool {
        self.mark.is_some()
    }
}

/// Inserts the number of an event into the line that ends there.
pub(crate) fn add_number(lines: &mut Vec<u8>, end: usize, seq: Seq) {
    if lines.get(..end).is_some_and(|lines| lines.ends_with(b"}\n")) {
        lines.splice(end - 2..end - 2, format!(",\"seq\":{seq}").into_bytes());
    }
}

impl ServeThread for call::ThreadSubscribe {
    async fn serve(lane: &mut Lane, request: Request<Self>, params: ThreadSubscribeParams) {
        if lane.is_subscribed() {
            return match lane.subscriber().await {
                Ok(subscriber) => subscribe_again(subscriber, request, params).await,
                Err(error) => request.answer(Err(error)).await,
            };
        }
        match open(&request.connection, lane.thread, &params).await {
            Ok(New { mut subscriber, answer, told }) => {
                request.answer(Ok(answer)).await;
                subscriber.mark_if_caught_up(told);
                lane.attach(subscriber);
            }
            Err(error) => request.answer(Err(error)).await,
        }
    }
}

/// A client that subscribes from here on, and its first messages.
struct New {
    subscriber: ThreadSubscriber,
    answer: ThreadSubscribeResponse,
    /// The last event the client knows of.
    told: Option<Seq>,
}

async fn open(connection: &Arc<Connection>, id: ThreadId, params: &ThreadSubscribeParams) -> Result<New, ErrorObject> {
    let turn = connection.host.start.threads.turn_to_open(id).await;
    let Some(thread) = connection.host.start.threads.get(id) else {
        drop(turn);
        return load(connection, id, params).await;
    };
    let subscription = subscribe(connection, &thread, params).await.map_err(|_| not_found(&params.thread_id))?;
    super::tool_client::offer(connection, &thread).await;
    let Subscription { feed, running, asked, open_items, begins, .. } = subscription;
    let (connection, wishes) = (Arc::clone(connection), ProjectionOptions::default());
    let mut subscriber = ThreadSubscriber::new(connection, thread, feed, wishes, Subscriptions::v2());
    subscriber.take_in(&open_items, begins.is_unbroken);
    let (answer, told) = begin(&mut subscriber, params, begins).await?;
    subscriber.repeat(running.as_ref(), &asked, Repeat::No);
    Ok(New { subscriber, answer, told })
}

/// Loads the thread. The client has seen only events from before it was loaded, so later ones are in its lines.
async fn load(connection: &Arc<Connection>, id: ThreadId, params: &ThreadSubscribeParams) -> Result<New, ErrorObject> {
    let resume = ThreadResumeParams {
        thread_id: params.thread_id.clone(),
        path: None,
        history: None,
        exclude_turns: false,
        initial_turns_page: None,
        options: ThreadOptions::default(),
    };
    let Opened { mut subscriber, answer } = open_thread::resume(connection, id, resume).await?;
    let gone = |_| not_found(&params.thread_id);
    let subscription = subscribe(connection, &subscriber.thread, params).await.map_err(gone)?;
    if subscription.begins.is_unbroken {
        let Subscription { feed, running, asked, open_items, begins, .. } = subscription;
        subscriber.read_from(feed);
        subscriber.take_in(&open_items, true);
        let (answer, told) = begin(&mut subscriber, params, begins).await?;
        subscriber.repeat(running.as_ref(), &asked, Repeat::No);
        return Ok(New { subscriber, answer, told });
    }
    let now = subscriber.thread.subscribe().await.map_err(gone)?;
    subscriber.numbering = Some(EventNumbers::new(now.begins.log, None, now.begins.last));
    subscriber.repeat(now.running.as_ref(), &now.asked, Repeat::No);
    let (log_id, seq) = (now.begins.log.to_string(), Some(now.begins.last.number()));
    let answer = ThreadSubscribeResponse { thread: answer.thread, log_id, seq, reset: true };
    Ok(New { subscriber, answer, told: None })
}

/// Continues from where a client stopped, if the events since then are in memory or in the lines.
async fn subscribe(
    connection: &Connection,
    thread: &Thread,
    params: &ThreadSubscribeParams,
) -> Result<Subscription, Closed> {
    let Some(after) = params.after.map(Seq::new) else { return thread.subscribe().await };
    let mut subscription = thread.subscribe_after(Cursor { log: params.log_id.clone(), seq: after }).await?;
    let Some(upto) = subscription.begins.lines_upto else { return Ok(subscription) };
    let (id, store, is_running) = (thread.id(), Arc::clone(&connection.host.store), subscription.running.is_some());
    let read = tokio::task::spawn_blocking(move || missed::read(id, &*store, (after, upto), is_running)).await;
    let Ok(Some(Missed { open_items, events })) = read else { return thread.subscribe().await };
    if !events.is_empty() {
        // The last of them has this number.
        subscription.begins.lines_upto = None;
    }
    subscription.feed.put_before(events);
    subscription.open_items = open_items;
    subscription.begins.is_unbroken = true;
    Ok(subscription)
}

/// Numbers a subscriber's messages from here on.
async fn begin(
    subscriber: &mut ThreadSubscriber,
    params: &ThreadSubscribeParams,
    begins: FeedStart,
) -> Result<(ThreadSubscribeResponse, Option<Seq>), ErrorObject> {
    let FeedStart { log, last, is_unbroken, lines_upto } = begins;
    let told = if is_unbroken { params.after.map(Seq::new).max(lines_upto) } else { Some(last) };
    subscriber.numbering = Some(EventNumbers::new(log, told, last));
    let opened = open_thread::describe(&subscriber.connection, &subscriber.thread, Turns::wanted(!is_unbroken)).await?;
    let (log_id, seq) = (log.to_string(), Some(last.number()));
    let answer = ThreadSubscribeResponse { thread: opened.thread, log_id, seq, reset: !is_unbroken };
    Ok((answer, told))
}

/// Serves a client that is already subscribed.
async fn subscribe_again(
    subscriber: &mut ThreadSubscriber,
    request: Request<call::ThreadSubscribe>,
    params: ThreadSubscribeParams,
) {
    if params.from_now {
        return number_from_now(subscriber, request, &params).await;
    }
    // Earlier messages precede the response, because they are repeated after it.
    subscriber.flush().await;
    let begun = match subscribe(&request.connection, &subscriber.thread, &params).await {
        Ok(subscription) => begin(subscriber, &params, subscription.begins).await.map(|begun| (begun, subscription)),
        Err(_) => Err(not_found(&params.thread_id)),
    };
    match begun {
        Ok(((answer, told), Subscription { feed, running, asked, open_items, begins, .. })) => {
            subscriber.read_from(feed);
            subscriber.take_in(&open_items, begins.is_unbroken);
            request.answer(Ok(answer)).await;
            subscriber.repeat(running.as_ref(), &asked, Repeat::Yes);
            subscriber.mark_if_caught_up(told);
        }
        Err(error) => request.answer(Err(error)).await,
    }
}

/// Numbers the messages of a client that has seen everything so far.
async fn number_from_now(
    subscriber: &mut ThreadSubscriber,
    request: Request<call::ThreadSubscribe>,
    params: &ThreadSubscribeParams,
) {
    let Ok(Subscription { begins: FeedStart { log, last, .. }, .. }) = subscriber.thread.subscribe().await else {
        return request.answer(Err(not_found(&params.thread_id))).await;
    };
    // Everything up to its number precedes the response.
    let told = subscriber.take_waiting().unwrap_or(last).max(last);
    subscriber.flush().await;
    subscriber.numbering = Some(EventNumbers::new(log, Some(told), told));
    let opened = open_thread::describe(&subscriber.connection, &subscriber.thread, Turns::wanted(false)).await;
    let (log_id, seq) = (log.to_string(), Some(told.number()));
    let answer = opened.map(|opened| ThreadSubscribeResponse { thread: opened.thread, log_id, seq, reset: false });
    request.answer(answer).await;
    subscriber.mark_if_caught_up(Some(told));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_goes_into_the_last_message() {
        let (one, two) = ("{\"method\":\"a\"}\n", "{\"method\":\"b\",\"params\":{}}\n");
        let mut lines = format!("{one}{two}").into_bytes();
        add_number(&mut lines, one.len() + two.len(), Seq::new(7));
        assert_eq!(lines, b"{\"method\":\"a\"}\n{\"method\":\"b\",\"params\":{},\"seq\":7}\n");
        let mut lines = format!("{one}{two}").into_bytes();
        add_number(&mut lines, one.len(), Seq::new(7));
        assert_eq!(lines, b"{\"method\":\"a\",\"seq\":7}\n{\"method\":\"b\",\"params\":{}}\n");
        let mut nothing = Vec::new();
        add_number(&mut nothing, 0, Seq::new(7));
        assert!(nothing.is_empty());
    }

    #[test]
    fn a_client_has_caught_up_once_it_has_the_last_event() {
        let thread = ThreadId::fresh();
        let (log, [three, four, five]) = (LogId::new(thread, thread), [3, 4, 5].map(Seq::new));
        let mut numbering = EventNumbers::new(log, Some(three), five);
        assert!(numbering.caught_up(thread, Some(four)).is_none());
        assert!(numbering.is_behind());
        assert!(numbering.caught_up(thread, Some(five)).is_some());
        assert!(!numbering.is_behind());
        assert!(!EventNumbers::new(log, Some(five), five).is_behind());
    }
}
