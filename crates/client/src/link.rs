//! A connection that outlasts breaks if its server is elsewhere: it is dialled again, and its threads go on from the last
//! event that was seen.
//!
//! Invariant: an event that was handed out does not come again. A call with a `clientUserMessageId` is repeated after a
//! break, because the server takes it once; any other call fails. A question of a connection that has broken has no
//! answer any more, and the next connection asks again.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use codex_transport::{Address, Token};

use crate::approvals::Approvals;
use crate::backoff::Backoff;
use crate::connection::{Client, Options};
use crate::error::{CallError, ConnectError};
use crate::event::Event;
use crate::feed::{Events, Feed};
use crate::registry::Registry;
use crate::server::dial;

/// Who answers the questions of each connection, which have numbers from 0.
type ApprovalsOf = Box<dyn Fn(u64) -> Approvals + Send + Sync>;

/// A connection that outlasts breaks.
#[derive(Debug)]
pub struct Link {
    caller: Caller,
    events: Events,
    /// The end into which events go, for notes about messages.
    feed: Feed,
    /// The task that dials again; none for a connection that cannot be dialled.
    dialled: Option<Dialled>,
}

#[derive(Debug)]
struct Dialled {
    registry: Arc<Mutex<Registry>>,
    closing: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// The state of a link.
#[derive(Debug, Clone)]
enum Status {
    Up(Client),
    /// It is being dialled again.
    Down,
    /// It is closed, or the server did not come back.
    Over,
}

/// Calls over a link. Clones share it.
#[derive(Debug, Clone)]
pub struct Caller(Calls);

#[derive(Debug, Clone)]
enum Calls {
    Once(Client),
    Again {
        status: watch::Receiver<Status>,
        /// Calls that are repeated take turns, so that they keep their order.
        turns: Arc<Mutex<()>>,
    },
}

impl Link {
    /// Connects to a server.
    ///
    /// # Errors
    /// If that fails the first time; later it is tried again.
    pub async fn dial(
        address: Address,
        token: Option<Token>,
        options: Options,
        approvals: impl Fn(u64) -> Approvals + Send + Sync + 'static,
    ) -> Result<Self, ConnectError> {
        let registry = Registry::default();
        let options = Options { numbers: registry.numbers(), ..options };
        let first = dial(&address, token.as_ref(), options.clone(), approvals(0)).await?;
        let (status, caller) = watch::channel(Status::Up(first.0.clone()));
        let ((closing, close), feed) = (watch::channel(false), Feed::default());
        let (events, notes, registry) = (feed.events(), feed.clone(), Arc::new(Mutex::new(registry)));
        let approvals: ApprovalsOf = Box::new(approvals);
        let linked =
            Linked { address, token, options, approvals, registry: Arc::clone(&registry), feed, status, close };
        let dialled = Some(Dialled { registry, closing, task: tokio::spawn(linked.run(first)) });
        let caller = Caller(Calls::Again { status: caller, turns: Arc::default() });
        Ok(Self { caller, events, feed: notes, dialled })
    }

    /// A connection that cannot be dialled: its first break is its end.
    #[must_use]
    pub fn once((client, events): (Client, Events)) -> Self {
        Self { caller: Caller(Calls::Once(client)), events, feed: Feed::default(), dialled: None }
    }

    /// Calls beside everything else.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Starts a turn, or adds to the one that runs (`expectedTurnId`), under a `clientUserMessageId`. If the connection
    /// breaks before the answer, there is none: the message is sent over the next connection, as a turn of its own unless
    /// one runs by then, and a refusal is told as a note.
    pub async fn say(&self, mut params: Value) -> Option<Result<Value, CallError>> {
        let is_steering = params.get("expectedTurnId").is_some();
        let method = if is_steering { "turn/steer" } else { "turn/start" };
        if !self.lasts() {
            return Some(self.caller.raw(method, params).await);
        }
        tokio::select! {
            biased;
            answer = self.caller.raw(method, params.clone()) => return Some(answer),
            () = self.caller.lost() => {}
        }
        params.as_object_mut().map(|params| params.remove("expectedTurnId"));
        let (caller, feed) = (self.caller.clone(), self.feed.clone());
        tokio::spawn(async move {
            if let Err(error) = caller.raw("turn/start", params).await {
                feed.push(Event::Note { text: error.to_string() });
            }
        });
        None
    }

    /// Follows a thread that was opened over this link across breaks, instead of another one.
    pub fn follow(&self, thread: &str, instead_of: Option<&str>) {
        let Some(Dialled { registry, .. }) = &self.dialled else { return };
        let (registry, caller) = (Arc::clone(registry), self.caller.clone());
        let (thread, before) = (thread.to_owned(), instead_of.map(str::to_owned));
        // The registry may be busy with a break.
        tokio::spawn(async move {
            let mut registry = registry.lock().await;
            if let Some(before) = before {
                registry.forget(&before);
            }
            registry.follow(&thread);
            drop(registry);
            // A server of another release has no numbers; after a break it tells the whole thread.
            let params = json!({"threadId": thread, "fromNow": true});
            let _: Result<Value, CallError> = caller.raw("thread/subscribe", params).await;
        });
    }

    /// The events of all connections in turn, with their ends and beginnings; `None` when it is over.
    pub fn events(&mut self) -> &mut Events {
        &mut self.events
    }

    /// Whether a break is not its end.
    #[must_use]
    pub fn lasts(&self) -> bool {
        matches!(&self.caller.0, Calls::Again { status, .. } if !matches!(*status.borrow(), Status::Over))
    }

    /// Closes it. A server elsewhere goes on.
    pub fn close(&self) {
        if let Some(Dialled { closing, .. }) = &self.dialled {
            closing.send_replace(true);
        }
        if let Some(client) = self.caller.client() {
            client.close();
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Questions that wait keep the client alive.
        self.close();
        if let Some(Dialled { task, .. }) = &self.dialled {
            task.abort();
        }
    }
}

impl Caller {
    /// Calls a method. Without a connection it fails at once, unless it has a `clientUserMessageId`: then it waits for the
    /// next connection, also if it was sent and not answered.
    ///
    /// # Errors
    /// If the server refuses or does not answer in time, or the link is over.
    pub async fn raw(&self, method: &str, params: Value) -> Result<Value, CallError> {
        let closed = || CallError::Closed { method: method.to_owned() };
        let is_named = params.get("clientUserMessageId").is_some_and(Value::is_string);
        let (mut status, turns) = match &self.0 {
            Calls::Once(client) => return client.raw(method, params).await,
            Calls::Again { status, turns } => (status.clone(), turns),
        };
        let _turn = if is_named { Some(turns.lock().await) } else { None };
        loop {
            // A connection that has just broken is not down yet. The attempts to dial again come to an end.
            let is_settled = |status: &Status| match status {
                Status::Up(client) => !is_named || !client.is_closed(),
                Status::Down => !is_named,
                Status::Over => true,
            };
            let client = match &*status.wait_for(is_settled).await.map_err(|_| closed())? {
                Status::Up(client) => client.clone(),
                Status::Down | Status::Over => return Err(closed()),
            };
            match client.raw(method, params.clone()).await {
                Err(CallError::Closed { .. }) if is_named => {}
                answer => return answer,
            }
        }
    }

    /// Waits until there is no connection.
    pub async fn lost(&self) {
        if let Some(client) = self.client() {
            client.closed().await;
        }
    }

    /// The connection that is up.
    fn client(&self) -> Option<Client> {
        match &self.0 {
            Calls::Once(client) => Some(client.clone()),
            Calls::Again { status, .. } => match &*status.borrow() {
                Status::Up(client) => Some(client.clone()),
                Status::Down | Status::Over => None,
            },
        }
    }
}

/// The task behind a link.
struct Linked {
    address: Address,
    token: Option<Token>,
    options: Options,
    approvals: ApprovalsOf,
    registry: Arc<Mutex<Registry>>,
    feed: Feed,
    status: watch::Sender<Status>,
    close: watch::Receiver<bool>,
}

impl Linked {
    async fn run(mut self, (mut client, mut events): (Client, Events)) {
        let (mut backoff, mut number) = (Backoff::default(), 0);
        loop {
            let begun = Instant::now();
            self.pass_on(&client, &mut events, number > 0).await;
            if *self.close.borrow() {
                break;
            }
            number += 1;
            self.feed.push(Event::Disconnected);
            self.status.send_replace(Status::Down);
            match self.dial_again(&mut backoff, begun.elapsed(), number).await {
                Ok(connection) => (client, events) = connection,
                Err(why) => {
                    self.feed.push(Event::Note { text: why });
                    break;
                }
            }
        }
        self.status.send_replace(Status::Over);
        self.feed.close();
    }

    /// Passes on the events of a connection to its end. One that replaces another first recovers its threads.
    async fn pass_on(&self, client: &Client, events: &mut Events, mut is_next: bool) {
        let mut recovering = std::pin::pin!(async { self.registry.lock().await.recover(client).await });
        loop {
            tokio::select! {
                // First, so that the events of the recovery precede its end.
                biased;
                event = events.next() => match event {
                    Some(event) => self.feed.push(event),
                    None => return,
                },
                recovered = &mut recovering, if is_next => {
                    is_next = false;
                    match recovered {
                        Ok(refused) => {
                            self.feed.push(Event::Reconnected { refused });
                            self.status.send_replace(Status::Up(client.clone()));
                        }
                        // It is broken, or too slow; the next one recovers.
                        Err(_) => client.close(),
                    }
                }
            }
        }
    }

    /// Dials until there is a connection; the reason if there is none any more.
    async fn dial_again(
        &mut self,
        backoff: &mut Backoff,
        mut ran: Duration,
        number: u64,
    ) -> Result<(Client, Events), String> {
        let mut close = self.close.clone();
        let dialling = async {
            loop {
                let Some((_, wait)) = backoff.next(ran, fastrand::f64()) else {
                    return Err(format!("{} did not come back", self.address));
                };
                ran = Duration::ZERO;
                sleep(wait).await;
                let (options, approvals) = (self.options.clone(), (self.approvals)(number));
                match dial(&self.address, self.token.as_ref(), options, approvals).await {
                    Ok(connection) => return Ok(connection),
                    Err(error) if error.is_final() => return Err(error.to_string()),
                    Err(_) => {}
                }
            }
        };
        tokio::select! {
            dialled = dialling => dialled,
            _ = close.wait_for(|is_closing| *is_closing) => Err("it is closed".to_owned()),
        }
    }
}
