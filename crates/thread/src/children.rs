//! The children of a thread, heard by whoever hears the thread itself.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use codex_log::agents::AgentEvent;
use codex_log::{Body, Event, Seq};
use codex_wire::agent::SubagentLifecycleEvent;
use codex_wire::ids::ThreadId;

use crate::feed::Feed;
use crate::handle::Thread;
use crate::subscription::Cursor;

/// Threads that can be looked up.
pub trait LoadedThreads: Send + Sync + fmt::Debug {
    /// The loaded thread with this id.
    fn get(&self, id: ThreadId) -> Option<Thread>;

    /// The loaded threads, oldest first.
    fn loaded(&self) -> Vec<Thread>;
}

/// The logs of the agents below a thread.
#[derive(Debug)]
pub struct Children {
    threads: Arc<dyn LoadedThreads>,
    followed: Vec<(Thread, Feed)>,
}

impl Children {
    /// The children of a thread, which are found among these.
    #[must_use]
    pub fn new(threads: Arc<dyn LoadedThreads>) -> Self {
        Self { threads, followed: Vec::new() }
    }

    /// The child that has begun to work, if an event tells that.
    #[must_use]
    pub fn begun(event: &AgentEvent) -> Option<ThreadId> {
        match event {
            AgentEvent::Lifecycle(SubagentLifecycleEvent::Status(change)) if !change.status.is_terminal() => {
                Some(change.session_id)
            }
            _ => None,
        }
    }

    /// Follows the child that has begun to work, if an event of the thread or of another child tells that.
    pub async fn follow(&mut self, event: &Event) {
        let Body::Agent(told) = &event.body else { return };
        let Some(child) = Self::begun(told).filter(|child| self.get(*child).is_none()) else { return };
        let Some(thread) = self.threads.get(child) else { return };
        let start = Cursor { log: None, seq: Seq::default() };
        let Ok(mut now) = thread.subscribe_after(start).await else { return };
        if !now.begins.is_unbroken {
            let asked = |question: &Arc<_>| Event { body: Body::Asked(Arc::clone(question)), ..event.clone() };
            let asked =
                now.asked.iter().map(asked).map(|event| Event { thread: child, turn: now.running.clone(), ..event });
            now.feed.put_before(asked.map(Arc::new).collect());
        }
        self.followed.push((thread, now.feed));
    }

    /// The followed child with this id.
    #[must_use]
    pub fn get(&self, id: ThreadId) -> Option<&Thread> {
        self.followed.iter().map(|(thread, _)| thread).find(|thread| thread.id() == id)
    }

    /// Waits for the next event of any child, deltas left out. Cancel safe.
    pub async fn next(&mut self) -> (Thread, Arc<Event>) {
        loop {
            for (thread, feed) in &mut self.followed {
                while let Some(event) = feed.try_next() {
                    if !matches!(event.body, Body::ItemDelta { .. }) {
                        return (thread.clone(), event);
                    }
                }
            }
            let (place, event) = self.arrived().await;
            match event {
                Some(event) if !matches!(event.body, Body::ItemDelta { .. }) => {
                    let Some((thread, _)) = self.followed.get(place) else { continue };
                    return (thread.clone(), event);
                }
                Some(_) => {}
                None => drop(self.followed.swap_remove(place)),
            }
        }
    }

    /// Waits for the next event of any child, or for the end of one.
    async fn arrived(&mut self) -> (usize, Option<Arc<Event>>) {
        let mut waits: Vec<Pin<Box<_>>> = self.followed.iter_mut().map(|(_, feed)| Box::pin(feed.next())).collect();
        poll_fn(|cx| {
            for (place, wait) in waits.iter_mut().enumerate() {
                if let Poll::Ready(event) = wait.as_mut().poll(cx) {
                    return Poll::Ready((place, event));
                }
            }
            Poll::Pending
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use codex_log::agents::AgentEvent;
    use codex_wire::agent::{AgentId, SubagentStatus, SubagentStatusChange};

    use super::*;

    fn status(status: SubagentStatus) -> AgentEvent {
        let change = SubagentStatusChange { agent_id: AgentId(1), session_id: ThreadId::fresh(), status };
        AgentEvent::Lifecycle(SubagentLifecycleEvent::Status(change))
    }

    #[test]
    fn a_child_is_followed_when_it_begins_and_not_when_it_ends() {
        assert!(Children::begun(&status(SubagentStatus::Running)).is_some());
        assert!(Children::begun(&status(SubagentStatus::Idle)).is_none());
    }
}
