//! The requests of one client about one thread, served in order, whether the thread is loaded or not.
//!
//! Once the client subscribes to the thread, the lane also has its [`ThreadSubscriber`]. One task does both, so an
//! answer always precedes the notifications it causes.

use std::sync::Arc;

use codex_dialects::v2::project::ProjectionOptions;
use codex_log::QuestionId;
use codex_protocol::methods::call;
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::thread::{ThreadParams, ThreadUnsubscribeResponse};
use codex_wire::ids::ThreadId;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use super::connection::{Connection, Unanswered};
use super::dispatch::{Request, ServeThread, contained, not_found};
use super::questions::Repeat;
use super::subscriber::{AfterUnsubscribe, ThreadSubscriber};
use super::tool_client::{self, ToolRequest};
use codex_dialects::event_filter::Subscriptions;

/// The maximum number of requests that may wait in a lane; further ones are refused.
pub(crate) const WAITING_REQUESTS: usize = 64;

/// A queued request.
pub(crate) trait Job: Send {
    fn run(self: Box<Self>, lane: &mut Lane) -> BoxFuture<'_, ()>;

    /// The pending response of a job that is not served.
    fn into_unanswered(self: Box<Self>) -> Unanswered;
}

/// A request to a lane. It is two words long, because every lane has room for 32 of them.
pub(crate) enum LaneRequest {
    Serve(Box<dyn Job>),
    Answered(Box<QuestionAnswer>),
    CallTool(Box<ToolRequest>),
}

/// An answer of the client to a question.
pub(crate) struct QuestionAnswer {
    pub(crate) number: i64,
    pub(crate) question: QuestionId,
    /// The answer as JSON; `None` if the client answered with an error.
    pub(crate) answer: Option<String>,
}

/// The requests of one client about one thread.
pub(crate) struct Lane {
    pub(crate) connection: Arc<Connection>,
    pub(crate) thread: ThreadId,
    subscriber: Option<Box<ThreadSubscriber>>,
    requests: mpsc::Receiver<LaneRequest>,
    /// Whether more requests may arrive.
    is_open: bool,
}

impl Lane {
    pub(crate) fn new(
        connection: Arc<Connection>,
        thread: ThreadId,
        requests: mpsc::Receiver<LaneRequest>,
        subscriber: Option<ThreadSubscriber>,
    ) -> Self {
        Self { connection, thread, subscriber: subscriber.map(Box::new), requests, is_open: true }
    }

    /// Serves requests until the connection ends, or until there is nothing left to wait for.
    pub(crate) async fn run(mut self) {
        loop {
            let Some(subscriber) = &mut self.subscriber else {
                if !self.is_open || self.connection.close_if_empty(self.thread, &self.requests) {
                    return;
                }
                match self.requests.recv().await {
                    Some(request) => self.perform(request).await,
                    None => return,
                }
                continue;
            };
            subscriber.tell_of_servers().await;
            if subscriber.take_backlog() {
                continue;
            }
            // Notifications that wait for room do not delay a request; otherwise a client could not interrupt a turn
            // that floods it.
            tokio::select! {
                biased;
                request = self.requests.recv(), if self.is_open => match request {
                    Some(request) => self.perform(request).await,
                    None if self.connection.has_parted() => self.end_subscription(Some(AfterUnsubscribe::Alive)).await,
                    None => self.is_open = false,
                },
                is_over = subscriber.forward() => if is_over {
                    self.end_subscription(None).await;
                },
            }
        }
    }

    async fn perform(&mut self, request: LaneRequest) {
        if self.subscriber.as_ref().is_some_and(|subscriber| subscriber.thread.has_ended()) {
            // Its remaining messages are sent first; after that it is like any thread that is not loaded.
            self.forward_to_end().await;
        }
        match request {
            LaneRequest::Serve(job) => contained(job.run(self)).await,
            LaneRequest::Answered(answered) => {
                let QuestionAnswer { number, question, answer } = *answered;
                if let Some(subscriber) = &mut self.subscriber {
                    contained(subscriber.answered(number, question, answer.as_deref())).await;
                }
            }
            LaneRequest::CallTool(request) => {
                if let Some(subscriber) = &mut self.subscriber {
                    subscriber.call_tool(*request);
                }
            }
        }
        if let Some(leaving) = self.subscriber.as_ref().and_then(|subscriber| subscriber.leaving()) {
            self.end_subscription(Some(leaving)).await;
        }
    }

    /// Whether the client is subscribed to the thread.
    pub(crate) fn is_subscribed(&self) -> bool {
        self.subscriber.is_some()
    }

    /// Subscribes the client to the thread.
    pub(crate) fn attach(&mut self, subscriber: ThreadSubscriber) {
        self.subscriber = Some(Box::new(subscriber));
    }

    /// The subscriber of the loaded thread. A client that sends a request about a thread is subscribed to it from then
    /// on.
    pub(crate) async fn subscriber(&mut self) -> Result<&mut ThreadSubscriber, ErrorObject> {
        let thread = self.thread;
        let subscriber = self.subscribe(Subscriptions::v2()).await.ok_or_else(|| not_found(&thread.to_string()))?;
        subscriber.follow_client().await;
        if !subscriber.subscriptions.is_v2 {
            subscriber.subscriptions.is_v2 = true;
            subscriber.listen().await;
        }
        Ok(subscriber)
    }

    /// The subscriber of the loaded conversation. A client subscribes to it by adding a listener.
    pub(crate) async fn conversation(&mut self) -> Result<&mut ThreadSubscriber, ErrorObject> {
        let thread = self.thread;
        self.subscribe(Subscriptions::default()).await.ok_or_else(|| super::v1::not_found(thread))
    }

    async fn subscribe(&mut self, subscriptions: Subscriptions) -> Option<&mut ThreadSubscriber> {
        if self.subscriber.is_none() {
            let thread = self.connection.host.start.threads.get(self.thread)?;
            let now = thread.subscribe().await.ok()?;
            tool_client::offer(&self.connection, &thread).await;
            let connection = Arc::clone(&self.connection);
            let mut subscriber =
                ThreadSubscriber::new(connection, thread, now.feed, ProjectionOptions::default(), subscriptions);
            subscriber.take_in(&now.open_items, false);
            subscriber.repeat(now.running.as_ref(), &now.asked, Repeat::No);
            self.attach(subscriber);
        }
        self.subscriber.as_deref_mut()
    }

    /// Runs work while the client continues to receive the events of the thread.
    pub(crate) async fn while_listening<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        while let Some(subscriber) = &mut self.subscriber {
            tokio::select! {
                biased;
                done = &mut work => return done,
                is_over = subscriber.forward() => if is_over {
                    self.end_subscription(None).await;
                },
            }
        }
        work.await
    }

    /// Sends everything up to the end of the thread, which has been reached.
    async fn forward_to_end(&mut self) {
        while let Some(subscriber) = &mut self.subscriber {
            if subscriber.forward().await {
                self.end_subscription(None).await;
            }
        }
    }

    /// Removes the subscriber, because the client has left or the thread has ended.
    async fn end_subscription(&mut self, leaving: Option<AfterUnsubscribe>) {
        let Some(mut subscriber) = self.subscriber.take() else { return };
        if self.is_open && leaving.is_none() {
            subscriber.tell_of_end();
        }
        subscriber.remove_listeners();
        if leaving == Some(AfterUnsubscribe::Unloaded) {
            subscriber.thread.close().await;
        }
        Box::pin(subscriber.flush()).await;
    }
}

impl ServeThread for call::ThreadUnsubscribe {
    async fn serve(lane: &mut Lane, request: Request<Self>, _: ThreadParams) {
        let status = match &mut lane.subscriber {
            Some(subscriber) => subscriber.leave().await,
            None => lane.connection.unsubscribed(lane.thread),
        };
        request.answer(Ok(ThreadUnsubscribeResponse { status })).await;
    }
}
