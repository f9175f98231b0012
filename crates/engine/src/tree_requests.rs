//! The requests of a tree of agents: each takes a place in the queue of its provider before it is sent.
//!
//! A root without agents takes none: two atomic operations are all that its requests cost.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codex_config::Config;
use codex_model::Pace;
use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::request_queue::{Agent, RequestQueue, Ticket};

/// The requests of a tree.
#[derive(Debug)]
pub struct TreeRequests {
    /// The number of requests to a provider that may run at once.
    most: usize,
    /// Whether the root has started an agent.
    has_agents: AtomicBool,
    /// Whether a request of the root runs that it made before it had agents.
    root_asks: AtomicBool,
    /// The queues, by provider.
    queues: Mutex<HashMap<String, Queue>>,
}

struct Queue {
    requests: RequestQueue,
    waiting: HashMap<Ticket, Arc<Notify>>,
}

impl Queue {
    /// Lets no request run for this long, and tells those that wait.
    fn hold(&mut self, delay: Duration) {
        self.requests.hold(Instant::now().into_std() + delay);
        self.waiting.values().for_each(|waiting| waiting.notify_one());
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.requests.fmt(formatter)
    }
}

impl TreeRequests {
    pub(crate) fn new(most: usize) -> Self {
        let (has_agents, root_asks, queues) = (AtomicBool::new(false), AtomicBool::new(false), Mutex::default());
        Self { most, has_agents, root_asks, queues }
    }

    /// The root starts an agent.
    pub(crate) fn expect_agents(&self) {
        self.has_agents.store(true, Ordering::SeqCst);
    }

    /// A place for a request of an agent to a provider.
    pub(crate) fn place(self: &Arc<Self>, agent: Agent, provider: &str) -> Place {
        if agent.is_none() {
            // Either this request sees that there are agents, or their requests see this one.
            self.root_asks.store(true, Ordering::SeqCst);
            if !self.has_agents.load(Ordering::SeqCst) {
                return Place::Alone(Arc::clone(self));
            }
            self.root_asks.store(false, Ordering::SeqCst);
        }
        Place::Queued(Arc::new(QueuedPlace::new(Arc::clone(self), agent, provider.to_owned())))
    }

    /// Changes the queue of a provider, lets the requests run that may, and returns the result.
    fn change<T>(&self, provider: &str, change: impl FnOnce(&mut Queue) -> T) -> T {
        let mut queues = self.lock();
        let new = || Queue { requests: RequestQueue::new(self.most), waiting: HashMap::new() };
        let queue = queues.entry(provider.to_owned()).or_insert_with(new);
        let changed = change(queue);
        self.admit(queue);
        changed
    }

    fn admit(&self, queue: &mut Queue) {
        let outside = usize::from(self.root_asks.load(Ordering::SeqCst));
        while let Some(ticket) = queue.requests.next(Instant::now().into_std(), outside) {
            if let Some(waiting) = queue.waiting.remove(&ticket) {
                waiting.notify_one();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Queue>> {
        // Every change is complete before anything can panic.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The requests of one agent.
#[derive(Clone)]
pub(crate) struct AgentRequests {
    /// The requests of its tree, if it may have one.
    pub(crate) tree: Option<Arc<TreeRequests>>,
    pub(crate) agent: Agent,
    pub(crate) config: Arc<Config>,
}

impl AgentRequests {
    /// A place for a request to a model; none if it needs none.
    pub(crate) fn place(&self, model: &str) -> Option<Place> {
        place(self.tree.as_ref(), self.agent, &self.config, model)
    }
}

/// A place for a request to a model; none outside of trees.
pub(crate) fn place(tree: Option<&Arc<TreeRequests>>, agent: Agent, config: &Config, model: &str) -> Option<Place> {
    tree.map(|tree| tree.place(agent, &config.model_of(model).0.id))
}

/// A place for one request. Dropping it frees it.
#[derive(Debug)]
pub(crate) enum Place {
    /// Of a root without agents.
    Alone(Arc<TreeRequests>),
    Queued(Arc<QueuedPlace>),
}

impl Place {
    /// Waits until the request may be sent. Cancel safe, and at once if it may already.
    pub(crate) async fn granted(&self) {
        match self {
            Self::Alone(_) => {}
            Self::Queued(place) => place.granted().await,
        }
    }

    /// The provider has refused the request for good and asked for this delay: all requests of the tree wait.
    pub(crate) fn hold(&self, delay: Duration) {
        if let Self::Queued(place) = self {
            place.tree.change(&place.provider, |queue| queue.hold(delay));
        }
    }

    /// The pace of the request, once it is sent.
    pub(crate) fn pace(&self) -> Option<Arc<dyn Pace>> {
        match self {
            Self::Alone(_) => None,
            Self::Queued(place) => Some(Arc::clone(place) as Arc<dyn Pace>),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        match self {
            Self::Alone(tree) => {
                tree.root_asks.store(false, Ordering::SeqCst);
                if tree.has_agents.load(Ordering::SeqCst) {
                    tree.lock().values_mut().for_each(|queue| tree.admit(queue));
                }
            }
            // The request may keep its pace a moment longer.
            Self::Queued(place) => place.leave(),
        }
    }
}

/// A place in the queue of a provider.
#[derive(Debug)]
pub(crate) struct QueuedPlace {
    tree: Arc<TreeRequests>,
    agent: Agent,
    provider: String,
    ticket: Ticket,
    admitted: Arc<Notify>,
    /// Whether the request runs, so that its events cost no look at the queue.
    is_running: AtomicBool,
}

impl QueuedPlace {
    fn new(tree: Arc<TreeRequests>, agent: Agent, provider: String) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let ticket = Ticket(NEXT.fetch_add(1, Ordering::Relaxed));
        let place =
            Self { tree, agent, provider, ticket, admitted: Arc::default(), is_running: AtomicBool::new(false) };
        place.tree.change(&place.provider, |queue| place.enter(queue));
        place
    }

    fn enter(&self, queue: &mut Queue) {
        queue.waiting.insert(self.ticket, Arc::clone(&self.admitted));
        queue.requests.enter(self.agent, self.ticket);
    }

    async fn granted(&self) {
        while !self.is_running.load(Ordering::Relaxed) {
            let look = |queue: &mut Queue| (queue.requests.is_waiting(self.ticket), queue.requests.due());
            // The request that has waited longest for the provider lets the others go on.
            self.tree.change(&self.provider, |_| ());
            let due = match self.tree.change(&self.provider, look) {
                (false, _) => return self.is_running.store(true, Ordering::Relaxed),
                (true, due) => due,
            };
            match due {
                Some(due) => tokio::select! {
                    () = self.admitted.notified() => {}
                    () = sleep_until(due.into()) => {}
                },
                None => self.admitted.notified().await,
            }
        }
    }

    fn leave(&self) {
        self.tree.change(&self.provider, |queue| {
            queue.waiting.remove(&self.ticket);
            queue.requests.leave(self.ticket);
        });
    }
}

impl Pace for QueuedPlace {
    /// All requests of the tree wait, and go on in their order.
    fn wait(&self, delay: Duration) -> BoxFuture<'_, ()> {
        self.is_running.store(false, Ordering::Relaxed);
        self.tree.change(&self.provider, |queue| {
            queue.requests.leave(self.ticket);
            self.enter(queue);
            queue.hold(delay);
        });
        Box::pin(self.granted())
    }
}
