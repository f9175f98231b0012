//! The children of a thread that a client listens to: it hears them too, from their beginning.

use std::sync::Arc;

use codex_dialects::v2::project::ProjectionOptions;
use codex_log::Seq;
use codex_protocol::v2::notification::{ServerNotification, ThreadStatusChanged};
use codex_protocol::v2::thread::ThreadStatus;
use codex_thread::Cursor;
use codex_wire::ids::ThreadId;

use super::connection::Connection;
use super::lane::Lane;
use super::now_ms;
use super::questions::Repeat;
use super::subscriber::ThreadSubscriber;
use codex_dialects::event_filter::Subscriptions;

/// A client's subscription to a child.
pub(crate) struct Follow {
    pub(crate) child: ThreadId,
    /// The same way as it hears the parent.
    pub(crate) subscriptions: Subscriptions,
    pub(crate) wishes: ProjectionOptions,
    /// The turn of the root that has started the child.
    pub(crate) root_turn: Option<String>,
}

/// Lets a client hear a child from here on, unless it does already.
pub(crate) fn follow(connection: &Arc<Connection>, follow: Follow) {
    let Some(requests) = connection.reserve_lane(follow.child) else { return };
    let (connection, child) = (Arc::clone(connection), follow.child);
    drop(tokio::spawn(async move {
        let subscriber = subscriber(&connection, follow).await;
        Lane::new(connection, child, requests, subscriber).run().await;
    }));
}

async fn subscriber(connection: &Arc<Connection>, follow: Follow) -> Option<ThreadSubscriber> {
    let Follow { child, subscriptions, wishes, root_turn } = follow;
    let thread = connection.host.start.threads.get(child)?;
    let now = thread.subscribe_after(Cursor { log: None, seq: Seq::default() }).await.ok()?;
    let mut subscriber = ThreadSubscriber::new(Arc::clone(connection), thread, now.feed, wishes, subscriptions);
    subscriber.belong_to(root_turn);
    let idle = ThreadStatusChanged { thread_id: child.to_string(), status: ThreadStatus::Idle };
    subscriber.notify(&ServerNotification::ThreadStatusChanged(idle), now_ms());
    if !now.begins.is_unbroken {
        subscriber.take_in(&now.open_items, false);
        subscriber.repeat(now.running.as_ref(), &now.asked, Repeat::No);
    }
    Some(subscriber)
}
