//! The inbox of a thread and the orders to it, shared by the thread and the task of its tree.
//!
//! Invariant: a turn that is to be stopped reads no mail. Mail that comes after the order is for the next turn.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codex_log::Body;
use codex_log::agents::Mail;
use codex_log::history::SharedHistory;
use codex_log::settings::Settings;
use codex_tools::agents::AgentOrder;
use codex_wire::budget::Used;
use tokio::sync::{Notify, oneshot};

use crate::tree::AgentView;

/// The number of events about items that may wait for a turn.
const MOST_ITEMS: usize = 128;

/// The inbox of a thread.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    content: Mutex<Content>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Content {
    mail: Vec<InboxMessage>,
    orders: VecDeque<Order>,
    /// Items that are shown in the next turn: outside of turns there are none.
    items: Vec<Body>,
    has_turn: bool,
}

impl Content {
    /// The mail that a turn may read.
    fn readable(&self) -> &[InboxMessage] {
        let is_stopped = self.orders.iter().any(|order| matches!(order, Order::Stop));
        if is_stopped { &[] } else { &self.mail }
    }
}

/// Mail, with a view of the agent that sent it.
#[derive(Debug, Clone)]
pub(crate) struct InboxMessage {
    pub(crate) mail: Mail,
    pub(crate) sender: Option<AgentView>,
}

/// An order as it is queued: events for the log are joined.
#[derive(Debug)]
enum Order {
    Log(Vec<Body>),
    Wake,
    Stop,
    Tighten(Arc<Settings>),
    Charge(Used),
    Share(oneshot::Sender<Option<Arc<SharedHistory>>>),
}

impl Mailbox {
    pub(crate) fn deliver(&self, message: InboxMessage) {
        self.lock().mail.push(message);
    }

    pub(crate) fn withdraw(&self, mail: &[u64]) {
        self.lock().mail.retain(|message| !mail.contains(&message.mail.id));
    }

    /// Orders the thread to log events, all of them in one write.
    pub(crate) fn log(&self, more: impl Iterator<Item = Body>) {
        let mut content = self.lock();
        match content.orders.back_mut() {
            Some(Order::Log(bodies)) => bodies.extend(more),
            _ => content.orders.push_back(Order::Log(more.collect())),
        }
        drop(content);
        self.arrived.notify_one();
    }

    /// Shows an item, as soon as a turn runs. Before too many wait, the oldest make way.
    pub(crate) fn show(&self, bodies: [Body; 2]) {
        let mut content = self.lock();
        if content.items.len() >= MOST_ITEMS {
            content.items.drain(..2);
        }
        content.items.extend(bodies);
        drop(content);
        self.arrived.notify_one();
    }

    /// A turn of the thread has begun or ended.
    pub(crate) fn turn_changed(&self, has_turn: bool) {
        self.lock().has_turn = has_turn;
        self.arrived.notify_one();
    }

    pub(crate) fn wake(&self) {
        self.lock().orders.push_back(Order::Wake);
        self.arrived.notify_one();
    }

    /// Orders the thread to stop its turn, and not to begin one that it was to begin before.
    pub(crate) fn stop(&self) {
        let mut content = self.lock();
        content.orders.retain(|order| !matches!(order, Order::Wake));
        content.orders.push_back(Order::Stop);
        drop(content);
        self.arrived.notify_one();
    }

    /// Lets the thread use no wider policies than these.
    pub(crate) fn tighten(&self, settings: Arc<Settings>) {
        self.lock().orders.push_back(Order::Tighten(settings));
        self.arrived.notify_one();
    }

    /// Lets the thread count what agents below it have used.
    pub(crate) fn charge(&self, used: Used) {
        let mut content = self.lock();
        match content.orders.back_mut() {
            Some(Order::Charge(sum)) => *sum += used,
            _ => content.orders.push_back(Order::Charge(used)),
        }
        drop(content);
        self.arrived.notify_one();
    }

    /// Asks the thread to share its history.
    pub(crate) fn share(&self) -> oneshot::Receiver<Option<Arc<SharedHistory>>> {
        let (reply, history) = oneshot::channel();
        self.lock().orders.push_back(Order::Share(reply));
        self.arrived.notify_one();
        history
    }

    pub(crate) fn has_mail(&self) -> bool {
        !self.lock().readable().is_empty()
    }

    /// Whether mail waits that is a reason to go on.
    pub(crate) fn has_work(&self) -> bool {
        self.lock().readable().iter().any(|message| !message.mail.is_quiet)
    }

    /// Takes the mail that is wanted, interrupts first.
    pub(crate) fn take_mail(&self, is_wanted: impl Fn(&InboxMessage) -> bool) -> Vec<InboxMessage> {
        let mut content = self.lock();
        if content.readable().is_empty() {
            return Vec::new();
        }
        let (mut mail, left): (Vec<_>, Vec<_>) = std::mem::take(&mut content.mail).into_iter().partition(is_wanted);
        content.mail = left;
        mail.sort_by_key(|message| !message.mail.message.interrupt);
        mail
    }

    /// Takes the events for the log that wait.
    pub(crate) fn take_log(&self) -> Vec<Body> {
        let mut content = self.lock();
        let orders = std::mem::take(&mut content.orders);
        let mut bodies = Vec::new();
        for order in orders {
            match order {
                Order::Log(more) => bodies.extend(more),
                other => content.orders.push_back(other),
            }
        }
        bodies
    }

    /// Waits for the next order. Cancel safe.
    pub(crate) async fn next_order(&self) -> AgentOrder {
        loop {
            match self.next() {
                Some(Order::Log(bodies)) => return AgentOrder::Log(bodies),
                Some(Order::Wake) => return AgentOrder::Wake,
                Some(Order::Stop) => return AgentOrder::Stop,
                Some(Order::Tighten(settings)) => return AgentOrder::Tighten(settings),
                Some(Order::Charge(used)) => return AgentOrder::Charge(used),
                Some(Order::Share(reply)) => return AgentOrder::Share(reply),
                None => self.arrived.notified().await,
            }
        }
    }

    fn next(&self) -> Option<Order> {
        let mut content = self.lock();
        let items = std::mem::take(&mut content.items);
        if content.has_turn && !items.is_empty() {
            return Some(Order::Log(items));
        }
        content.items = items;
        content.orders.pop_front()
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        // Every change is one push or take, so a panic elsewhere cannot have left half of one.
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
