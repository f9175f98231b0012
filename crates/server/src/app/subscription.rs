//! Subscriptions by numbers: a client that was cut off goes on where it stopped.
//!
//! The last message that an event gives carries the event's number as `seq`. A client that comes back names the last
//! number it has seen, is told what it has missed, and then that it has caught up. What is not remembered is read from the
//! thread's lines (`missed`). Where too much was missed, it gets the whole thread instead, and is told so.

use std::sync::Arc;

use codex_log::{LogName, Seq};
use codex_protocol::methods::{ClientRequest, call};
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::notification::ServerNotification;
use codex_protocol::v2::subscribe::{ThreadCaughtUp, ThreadSubscribeParams, ThreadSubscribeResponse};
use codex_protocol::v2::thread::{ThreadOptions, ThreadResumeParams};
use codex_thread::{Closed, Cursor, FeedStart, Subscription, Thread};
use codex_wire::ids::ThreadId;
use tokio::sync::mpsc;

use super::connection::{Connection, Unanswered};
use super::dispatch::{new_subscriber, not_found, run_subscriber};
use super::event_filter::Subscriptions;
use super::missed::{self, Missed};
use super::open_thread::{self, Opened, Resumed};
use super::questions::Repeat;
use super::stored_threads::{Turns, parse_name};
use super::subscriber::{SubscriberRequest, ThreadSubscriber};
use codex_dialects::v2::project::Wishes;

/// How far a client that listens by numbers has come.
#[derive(Debug)]
pub(crate) struct Numbering {
    log: LogName,
    /// The event after which the client has caught up; none once it has.
    mark: Option<Seq>,
}

impl Numbering {
    /// Of a client that has been told everything up to `told` when `last` was the last event.
    fn new(log: LogName, told: Option<Seq>, last: Seq) -> Self {
        Self { log, mark: Some(last).filter(|last| told.is_none_or(|told| told < *last)) }
    }

    /// What the client is told, if it has caught up now that it was told of this event.
    pub(crate) fn caught_up(&mut self, thread: ThreadId, told: Option<Seq>) -> Option<ServerNotification> {
        let has_caught_up = self.mark.is_none_or(|mark| told.is_some_and(|told| told >= mark));
        has_caught_up.then(|| {
            self.mark = None;
            let (thread_id, log_id) = (thread.to_string(), self.log.to_string());
            ServerNotification::ThreadCaughtUp(ThreadCaughtUp { thread_id, log_id, seq: told.map(Seq::number) })
        })
    }

    /// Whether the client is still being told what it has missed.
    pub(crate) fn is_behind(&self) -> bool {
        self.mark.is_some()
    }
}

/// Writes the number of an event into the line that ends there.
pub(crate) fn add_number(lines: &mut Vec<u8>, end: usize, seq: Seq) {
    if lines.get(..end).is_some_and(|lines| lines.ends_with(b"}\n")) {
        lines.splice(end - 2..end - 2, format!(",\"seq\":{seq}").into_bytes());
    }
}

/// Serves `thread/subscribe` where the client has no subscriber for the thread yet.
pub(crate) async fn serve(connection: &Arc<Connection>, unanswered: Unanswered, params: ThreadSubscribeParams) {
    match open(connection, &params).await {
        Ok(Seat::New(new)) => {
            let New { mut subscriber, requests, answer, told } = *new;
            connection.outbox.answer::<call::ThreadSubscribe>(&unanswered.id, Ok(answer)).await;
            subscriber.mark_if_caught_up(told);
            run_subscriber(subscriber, requests);
        }
        Ok(Seat::Subscribed(subscriber)) => {
            let request =
                Box::new(SubscriberRequest::Serve(unanswered, ClientRequest::ThreadSubscribe(Box::new(params))));
            if let Err(mpsc::error::SendError(request)) = subscriber.send(request).await
                && let SubscriberRequest::Serve(unanswered, _) = *request
            {
                connection.outbox.refuse(&unanswered.id, ErrorObject::internal("the thread has just ended")).await;
            }
        }
        Err(error) => connection.outbox.refuse(&unanswered.id, error).await,
    }
}

/// Where a client listens.
enum Seat {
    /// At a subscriber that is opened for it.
    New(Box<New>),
    /// Where it listens already.
    Subscribed(mpsc::Sender<Box<SubscriberRequest>>),
}

/// A subscriber that is not open yet.
struct New {
    subscriber: ThreadSubscriber,
    requests: mpsc::Receiver<Box<SubscriberRequest>>,
    answer: ThreadSubscribeResponse,
    /// The last event the client knows of.
    told: Option<Seq>,
}

async fn open(connection: &Arc<Connection>, params: &ThreadSubscribeParams) -> Result<Seat, ErrorObject> {
    let id = parse_name(&params.thread_id)?;
    {
        let _turn = connection.host.start.threads.turn_to_open(id).await;
        if let Some(subscriber) = connection.subscriber(id) {
            return Ok(Seat::Subscribed(subscriber));
        }
        if let Some(thread) = connection.host.start.threads.get(id)
            && let Some(requests) = connection.reserve_subscriber(id)
        {
            let gone = |_| not_found(&params.thread_id);
            let subscription = subscribe(connection, &thread, params).await.map_err(gone)?;
            let Subscription { feed, running, asked, standing, begins, .. } = subscription;
            let mut subscriber = new_subscriber(connection, thread, feed, Wishes::default(), Subscriptions::v2());
            subscriber.take_in(&standing, begins.is_unbroken);
            let (answer, told) = begin(&mut subscriber, params, begins).await?;
            subscriber.repeat(running.as_ref(), &asked, Repeat::No);
            return Ok(Seat::New(Box::new(New { subscriber, requests, answer, told })));
        }
    }
    load(connection, params).await
}

/// Loads the thread. What the client has seen of it was told before it was loaded, so what came since is in its lines.
async fn load(connection: &Arc<Connection>, params: &ThreadSubscribeParams) -> Result<Seat, ErrorObject> {
    let resume = ThreadResumeParams {
        thread_id: params.thread_id.clone(),
        path: None,
        history: None,
        exclude_turns: false,
        initial_turns_page: None,
        options: ThreadOptions::default(),
    };
    match open_thread::resume(connection, resume).await? {
        Resumed::Subscribed(subscriber) => Ok(Seat::Subscribed(subscriber)),
        Resumed::Opened(opened) => {
            let Opened { mut subscriber, requests, answer, .. } = *opened;
            let gone = |_| not_found(&params.thread_id);
            let subscription = subscribe(connection, &subscriber.thread, params).await.map_err(gone)?;
            if subscription.begins.is_unbroken {
                let Subscription { feed, running, asked, standing, begins, .. } = subscription;
                subscriber.read_from(feed);
                subscriber.take_in(&standing, true);
                let (answer, told) = begin(&mut subscriber, params, begins).await?;
                subscriber.repeat(running.as_ref(), &asked, Repeat::No);
                return Ok(Seat::New(Box::new(New { subscriber, requests, answer, told })));
            }
            let now = subscriber.thread.subscribe().await.map_err(|_| not_found(&params.thread_id))?;
            subscriber.numbering = Some(Numbering::new(now.begins.log, None, now.begins.last));
            subscriber.repeat(now.running.as_ref(), &now.asked, Repeat::No);
            let (log_id, seq) = (now.begins.log.to_string(), Some(now.begins.last.number()));
            let answer = ThreadSubscribeResponse { thread: answer.thread, log_id, seq, reset: true };
            Ok(Seat::New(Box::new(New { subscriber, requests, answer, told: None })))
        }
    }
}

/// Lets a client read along from where it stopped, if what came since is remembered or in the lines.
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
    let Ok(Some(Missed { standing, events })) = read else { return thread.subscribe().await };
    subscription.feed.put_before(events);
    subscription.standing = standing;
    subscription.begins.is_unbroken = true;
    Ok(subscription)
}

/// Numbers a subscriber's messages from here on.
async fn begin(
    subscriber: &mut ThreadSubscriber,
    params: &ThreadSubscribeParams,
    begins: FeedStart,
) -> Result<(ThreadSubscribeResponse, Option<Seq>), ErrorObject> {
    let FeedStart { log, last, is_unbroken, .. } = begins;
    let told = if is_unbroken { params.after.map(Seq::new) } else { Some(last) };
    subscriber.numbering = Some(Numbering::new(log, told, last));
    let opened = open_thread::describe(&subscriber.connection, &subscriber.thread, Turns::wanted(!is_unbroken)).await?;
    let (log_id, seq) = (log.to_string(), Some(last.number()));
    let answer = ThreadSubscribeResponse { thread: opened.thread, log_id, seq, reset: !is_unbroken };
    Ok((answer, told))
}

/// Serves `thread/subscribe` at the subscriber where the client listens already.
pub(crate) async fn at_subscriber(
    subscriber: &mut ThreadSubscriber,
    unanswered: Unanswered,
    params: ThreadSubscribeParams,
) {
    let connection = Arc::clone(&subscriber.connection);
    // What was told before the answer is told before it, for it is told again after it.
    subscriber.flush().await;
    let begun = match subscribe(&connection, &subscriber.thread, &params).await {
        Ok(subscription) => begin(subscriber, &params, subscription.begins).await.map(|begun| (begun, subscription)),
        Err(_) => Err(not_found(&params.thread_id)),
    };
    match begun {
        Ok(((answer, told), Subscription { feed, running, asked, standing, begins, .. })) => {
            subscriber.read_from(feed);
            subscriber.take_in(&standing, begins.is_unbroken);
            connection.outbox.answer::<call::ThreadSubscribe>(&unanswered.id, Ok(answer)).await;
            subscriber.repeat(running.as_ref(), &asked, Repeat::Yes);
            subscriber.mark_if_caught_up(told);
        }
        Err(error) => connection.outbox.refuse(&unanswered.id, error).await,
    }
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
    fn a_client_has_caught_up_once_it_was_told_of_the_last_event() {
        let thread = ThreadId::fresh();
        let (log, [three, four, five]) = (LogName::new(thread, thread), [3, 4, 5].map(Seq::new));
        let mut numbering = Numbering::new(log, Some(three), five);
        assert!(numbering.caught_up(thread, Some(four)).is_none());
        assert!(numbering.is_behind());
        assert!(numbering.caught_up(thread, Some(five)).is_some());
        assert!(!numbering.is_behind());
        assert!(!Numbering::new(log, Some(five), five).is_behind());
    }
}
