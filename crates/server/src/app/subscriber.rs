//! One client's subscription to one thread: its log as notifications, and its questions.

use std::borrow::Cow;
use std::sync::Arc;

use codex_dialects::eq::{self, Vocabulary};
use codex_log::agents::AgentEvent;
use codex_log::{Body, Event, Question, QuestionId, Seq, TurnId};
use codex_protocol::rpc::Notification;
use codex_protocol::v2::notification::{ServerNotification, ThreadNamed};
use codex_protocol::v2::thread::UnsubscribeStatus;
use codex_thread::encodings::{Encodings, FormKey, Lines};
use codex_thread::{Children, Feed, Published, Thread};
use codex_wire::event::EventMsg;
use codex_wire::input::UserInput;

use super::backlog::Backlog;
use super::children::{self, Follow};
use super::connection::{Client, Connection, Unanswered};
use super::encoded;
use super::outbox::add_line;
use super::outgoing::Outgoing;
use super::paced_feed::PacedFeed;
use super::questions::{Questions, Repeat};
use super::subscription::EventNumbers;
use super::tool_client::ToolCalls;
use codex_dialects::ProtocolRelease;
use codex_dialects::event_filter::{ClientTraits, EventFilter, Events, Notifications, Subscriptions};
use codex_dialects::items::{ItemsMessage, ItemsProjector, NamedEvent};
use codex_dialects::v2::project::{ProjectionOptions, Projector};

/// The number of bytes of notifications that are collected before they are sent, while more are available.
const GATHERED_BYTES: usize = 32 * 1024;
/// The size of an event above which its messages count as large.
const LARGE_BYTES: usize = 64 * 1024;

/// One client's subscription to one thread.
pub(crate) struct ThreadSubscriber {
    pub(crate) connection: Arc<Connection>,
    pub(crate) thread: Thread,
    feed: PacedFeed,
    /// Messages that arrived while the client had no listener.
    pub(crate) backlog: Backlog,
    /// Questions that were open before the client subscribed, or before it has caught up.
    pub(crate) unasked: Vec<(String, Arc<Question>)>,
    /// The subscriptions of the client, and the events that it receives.
    pub(crate) subscriptions: Subscriptions,
    pub(crate) filter: EventFilter,
    wishes: ProjectionOptions,
    projector: Projector,
    items: ItemsProjector,
    /// The questions that the client was asked, by call.
    pub(crate) questions: Questions,
    /// The open calls of tools that the client supplies.
    pub(crate) tool_calls: ToolCalls,
    /// Interrupt requests that are answered once the client has received the end of the turn.
    pub(crate) interrupts: Vec<Unanswered>,
    /// The progress of a client that subscribed by event numbers.
    pub(crate) numbering: Option<EventNumbers>,
    /// The turn of the root in which the thread has begun, if it is a child.
    root_turn: Option<String>,
    /// The traits of the client that the filter follows.
    traits: Option<ClientTraits>,
    /// Whether the client knows that the MCP servers have started.
    knows_servers: bool,
    /// Set once the client has unsubscribed; says whether the thread ends too.
    leaving: Option<AfterUnsubscribe>,
    /// Messages that wait for room.
    pub(crate) outgoing: Outgoing,
    /// The approximate size of the current event in bytes.
    weight: usize,
    notifications: Vec<ServerNotification>,
    events: Vec<EventMsg>,
}

/// The state of a thread after its client has unsubscribed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterUnsubscribe {
    /// It continues.
    Alive,
    /// It ends, because it has no other subscriber and no running turn.
    Unloaded,
}

impl ThreadSubscriber {
    /// Creates a subscriber that reads a thread's log from a feed.
    pub(crate) fn new(
        connection: Arc<Connection>,
        thread: Thread,
        feed: Feed,
        wishes: ProjectionOptions,
        subscriptions: Subscriptions,
    ) -> Self {
        let feed = PacedFeed::new(feed, connection.host.start.delta_interval);
        let traits = connection.client().map(Client::traits);
        Self {
            projector: Projector::new(thread.id().to_string(), connection.release(), wishes),
            filter: EventFilter::of(traits, &subscriptions),
            connection,
            thread,
            feed,
            backlog: Backlog::default(),
            unasked: Vec::new(),
            subscriptions,
            wishes,
            items: ItemsProjector::default(),
            questions: Questions::new(),
            tool_calls: ToolCalls::new(),
            interrupts: Vec::new(),
            numbering: None,
            root_turn: None,
            traits,
            knows_servers: false,
            leaving: None,
            outgoing: Outgoing::default(),
            weight: 0,
            notifications: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Sends the open questions to the client, once it listens and has received the events that led to them.
    pub(crate) fn repeat(&mut self, running: Option<&TurnId>, asked: &[Arc<Question>], repeat: Repeat) {
        let turn = running.map(TurnId::as_str).unwrap_or_default();
        for question in asked {
            if !self.filter.is_muted() && !self.is_behind() {
                self.ask(turn, question, 0, repeat);
            } else if !self.unasked.iter().any(|(_, unasked)| unasked.id == question.id) {
                self.unasked.push((turn.to_owned(), Arc::clone(question)));
            }
        }
    }

    /// Lets the client hear a child that has begun to work.
    fn follow(&self, told: &AgentEvent, turn: Option<&TurnId>) {
        let Some(child) = Children::begun(told) else { return };
        let root_turn = self.root_turn.clone().or_else(|| turn.map(|turn| turn.as_str().to_owned()));
        let follow = Follow { child, subscriptions: self.subscriptions.clone(), wishes: self.wishes, root_turn };
        children::follow(&self.connection, follow);
    }

    /// Notes that the thread is a child, and in which turn of its root it has begun.
    pub(crate) fn belong_to(&mut self, root_turn: Option<String>) {
        self.projector.belong_to(root_turn.clone());
        self.root_turn = root_turn;
    }

    /// Sends goal notifications to the client from here on: a client that requests a goal knows goals.
    pub(crate) fn hear_of_goals(&mut self) {
        self.wishes.goals = true;
        self.projector.hear_of_goals();
    }

    /// Continues with another feed.
    pub(crate) fn read_from(&mut self, feed: Feed) {
        self.feed = PacedFeed::new(feed, self.connection.host.start.delta_interval);
        self.unasked.clear();
    }

    /// Processes the events that the feed refers to, without sending them. A client that reconnects has seen them;
    /// another client first sees an item when it continues.
    pub(crate) fn take_in(&mut self, open_items: &[Arc<Event>], is_unbroken: bool) {
        self.projector = Projector::new(self.thread.id().to_string(), self.connection.release(), self.wishes);
        self.items = ItemsProjector::default();
        for event in open_items {
            self.projector.project(event, &mut Vec::new());
            if is_unbroken {
                self.items.project(event, false, &mut Vec::new());
            }
        }
    }

    /// Sends messages that wait for room, and waits until there is room.
    pub(crate) async fn flush(&mut self) {
        while !self.outgoing.is_empty() {
            let room = self.connection.outbox.room(self.outgoing.next_bytes()).await;
            self.connection.outbox.send_notification(self.outgoing.take(), room);
        }
    }

    fn is_behind(&self) -> bool {
        self.numbering.as_ref().is_some_and(EventNumbers::is_behind)
    }

    /// Notifies a client that has just caught up, if it subscribed by event numbers.
    pub(crate) fn mark_if_caught_up(&mut self, told: Option<Seq>) {
        let id = self.thread.id();
        if let Some(mark) = self.numbering.as_mut().and_then(|numbering| numbering.caught_up(id, told)) {
            for (turn, approval) in std::mem::take(&mut self.unasked) {
                self.ask(&turn, &approval, 0, Repeat::Yes);
            }
            self.send(&mark, super::now_ms());
        }
    }

    /// Sends the open questions to the client again.
    pub(crate) async fn ask_again(&mut self, repeat: Repeat) {
        if let Ok(subscription) = self.thread.subscribe().await {
            self.repeat(subscription.running.as_ref(), &subscription.asked, repeat);
        }
    }

    /// Notes the message that the next turn begins with.
    pub(crate) fn open_with(&mut self, message: Option<Vec<UserInput>>) {
        self.projector.open_with(message);
    }

    /// Follows the client if a policy has told its age since it subscribed.
    pub(crate) async fn follow_client(&mut self) {
        let traits = self.connection.client().map(Client::traits);
        if traits != self.traits {
            self.traits = traits;
            self.projector.follow_release(self.connection.release());
            self.listen().await;
        }
    }

    /// Tells a client that receives events whether the MCP servers have started, as soon as it listens. While one of them
    /// starts, it is an event of the thread that says so.
    pub(crate) async fn tell_of_servers(&mut self) {
        if self.knows_servers || self.filter.events == Events::None || self.is_behind() {
            return;
        }
        self.take_waiting();
        let startup = self.thread.server_startup().await;
        self.take_waiting();
        if let Ok(Some(complete)) = startup
            && !self.knows_servers
        {
            self.send_event(None, &EventMsg::McpStartupComplete(complete), super::now_ms());
        }
        self.knows_servers = true;
    }

    /// Sends the events before the first turn at once, so that they precede the response to the next request.
    pub(crate) async fn tell_beginning(&mut self) {
        while let Some(published) = self.next_waiting() {
            self.take(&published);
            if published.event.turn.is_some() {
                break;
            }
        }
        self.flush().await;
    }

    /// Processes events that arrived while the client had no listener. Returns whether there were any.
    pub(crate) fn take_backlog(&mut self) -> bool {
        if !self.outgoing.is_empty() || self.filter.is_muted() {
            return false;
        }
        let event = self.backlog.next();
        let is_any = event.is_some();
        if let Some(event) = event {
            self.gather(&event.into());
        }
        is_any
    }

    /// Processes the next event, and returns whether the thread has ended. Cancelling this function loses nothing.
    pub(crate) async fn forward(&mut self) -> bool {
        if !self.outgoing.is_empty() {
            let room = self.connection.outbox.room(self.outgoing.next_bytes()).await;
            self.connection.outbox.send_notification(self.outgoing.take(), room);
            return false;
        }
        match self.feed.next_published().await {
            Some(published) if self.filter.is_muted() => self.backlog.push(published.event),
            Some(published) => self.gather(&published),
            None => return true,
        }
        false
    }

    /// The state of the thread, once the client has unsubscribed.
    pub(crate) fn leaving(&self) -> Option<AfterUnsubscribe> {
        self.leaving
    }

    /// Unsubscribes the client, unless it also listens to the thread as a conversation. An idle thread without other
    /// subscribers is unloaded.
    pub(crate) async fn leave(&mut self) -> UnsubscribeStatus {
        if self.leaving.is_some() || (self.listeners() > 0 && !self.subscriptions.is_v2) {
            return UnsubscribeStatus::NotSubscribed;
        }
        if self.listeners() > 0 {
            self.subscriptions.is_v2 = false;
            self.listen_less();
            return UnsubscribeStatus::Unsubscribed;
        }
        let id = self.thread.id();
        self.connection.note_left(id);
        let is_alone = self.thread.listeners().await.is_ok_and(|count| count <= 1);
        let is_idle = matches!(self.thread.running().await, Ok(None));
        self.leaving = Some(if is_alone && is_idle { AfterUnsubscribe::Unloaded } else { AfterUnsubscribe::Alive });
        if self.leaving == Some(AfterUnsubscribe::Unloaded) {
            self.connection.host.start.threads.release(id);
            let closed = ThreadNamed { thread_id: id.to_string() };
            self.notify(&ServerNotification::ThreadClosed(closed), super::now_ms());
        }
        UnsubscribeStatus::Unsubscribed
    }

    /// Processes the events that have arrived, and returns the number of the last one.
    pub(crate) fn take_waiting(&mut self) -> Option<Seq> {
        let mut last = None;
        while let Some(published) = self.next_waiting() {
            self.take(&published);
            last = Some(published.event.seq);
        }
        last
    }

    fn next_waiting(&mut self) -> Option<Published> {
        self.backlog.next().map(Published::from).or_else(|| self.feed.try_next_published())
    }

    /// Processes an event, and those after it as long as there is room.
    fn gather(&mut self, published: &Published) {
        self.take(published);
        while !self.outgoing.is_full(GATHERED_BYTES)
            && let Some(published) = self.next_waiting()
        {
            self.take(&published);
        }
        // A waiting subscriber does not keep the buffers of messages that were sent.
        self.notifications = Vec::new();
        self.events = Vec::new();
    }

    fn take(&mut self, published: &Published) {
        let event = &*published.event;
        self.outgoing.begin();
        self.weight = event.weight();
        // Large messages share their text instead, and are encoded when there is room for them.
        let encodings = published.encodings.as_deref().filter(|_| self.weight < LARGE_BYTES);
        self.translate(event, encodings);
        self.weight = 0;
        // Missed events that share their number with the next one have none.
        if self.numbering.is_some() && event.seq != Seq::default() {
            self.outgoing.number(event.seq);
        }
        if self.is_behind() {
            self.mark_if_caught_up(Some(event.seq));
        }
    }

    fn translate(&mut self, event: &Event, encodings: Option<&Encodings>) {
        // A turn begins in the notifications, because readers of both name it by what these say.
        let begins = matches!(event.body, Body::TurnStarted { .. });
        if begins {
            self.take_notifications(event, encodings);
        }
        if matches!(event.body, Body::ServersStarted(_)) {
            self.knows_servers = true;
        }
        match self.filter.events {
            Events::None => {}
            Events::Items => self.take_items(event),
            Events::WithoutPieces | Events::All => self.take_events(event, encodings),
        }
        match &event.body {
            Body::TurnEnded(outcome) => self.answer_interrupts(outcome),
            Body::Answered { question, .. } => self.resolve(question, event.at_ms),
            Body::Agent(told) => self.follow(told, event.turn.as_ref()),
            _ => {}
        }
        if !begins {
            self.take_notifications(event, encodings);
        }
        self.end_tool_calls(&event.body, event.at_ms);
        match &event.body {
            // A client that is behind is asked once it has caught up, if the question is still open.
            Body::Asked(asked) if !self.backlog.is_settled(&asked.id) && !self.is_behind() => {
                let turn = event.turn.as_ref().map(TurnId::as_str).unwrap_or_default();
                self.ask(turn, asked, event.at_ms, Repeat::No);
            }
            Body::TurnEnded(_) => {
                let open: Vec<QuestionId> = self.questions.keys().cloned().collect();
                for question in open {
                    self.resolve(&question, event.at_ms);
                }
            }
            _ => {}
        }
    }

    fn take_notifications(&mut self, event: &Event, encodings: Option<&Encodings>) {
        let is_plain = self.connection.json_form().is_plain();
        let is_shared =
            self.filter.notifications == Notifications::All && is_plain && self.share_notifications(event, encodings);
        let told = match self.filter.notifications {
            // A client that subscribes in the middle of a turn still receives its start.
            Notifications::None => matches!(event.body, Body::TurnStarted { .. }).then_some(Cow::Borrowed(event)),
            Notifications::OfConversations => codex_dialects::v1::forwarded(event),
            Notifications::OfTurns => Some(Cow::Borrowed(event)),
            Notifications::All if is_shared => None,
            Notifications::All => Some(Cow::Borrowed(event)),
        };
        if let Some(told) = told {
            let mut notifications = std::mem::take(&mut self.notifications);
            self.projector.project(&told, &mut notifications);
            for notification in &notifications {
                self.notify(notification, event.at_ms);
            }
            notifications.clear();
            self.notifications = notifications;
        }
    }

    /// Queues the messages of the dialect with `item/created`.
    fn take_items(&mut self, event: &Event) {
        if matches!(event.body, Body::ThreadStarted(_)) {
            return;
        }
        let raw_items = self.wishes.raw_items || self.subscriptions.wants_raw_items();
        let mut messages = Vec::new();
        self.items.project(event, raw_items, &mut messages);
        for message in messages {
            match message {
                ItemsMessage::Item(notification) => self.send(&notification, event.at_ms),
                ItemsMessage::Event(named) => self.send_named(event.turn.as_ref(), &named, event.at_ms),
            }
        }
    }

    fn send_named(&mut self, turn: Option<&TurnId>, named: &NamedEvent, emitted_at_ms: i64) {
        if self.connection.client().is_some_and(|client| client.is_unwanted_event(named.kind())) {
            return;
        }
        let thread = self.thread.id();
        self.outgoing.add(&encoded::event_message(turn, named.kind(), named.msg(), thread, emitted_at_ms));
        self.outgoing.number_here();
    }

    /// Queues the notifications of an event as another subscriber has encoded them, or encodes them for the others.
    fn share_notifications(&mut self, event: &Event, encodings: Option<&Encodings>) -> bool {
        let Some((encodings, state)) = encodings.zip(self.projector.shared_state(event)) else { return false };
        let form = match self.connection.release() {
            ProtocolRelease::V058 | ProtocolRelease::V077 => encoded::NOTIFICATIONS_077,
            ProtocolRelease::V0166 => encoded::NOTIFICATIONS_0166,
        };
        let key = FormKey { wishes: encoded::wishes(self.wishes), state };
        let Some(lines) = encodings.lines(form, key, || encoded::notifications(&self.projector, event)) else {
            return false;
        };
        self.projector.observe(event);
        self.add_encoded(lines);
        true
    }

    fn take_events(&mut self, event: &Event, encodings: Option<&Encodings>) {
        // The response to the request that opened the thread contains its settings.
        if matches!(event.body, Body::ThreadStarted(_)) {
            return;
        }
        let vocabulary = Vocabulary {
            items: true,
            raw_reasoning: self.wishes.raw_reasoning,
            raw_items: self.wishes.raw_items || self.subscriptions.wants_raw_items(),
        };
        let is_shared = self.filter.events == Events::All && self.connection.json_form().is_plain();
        if let Some(encodings) = encodings.filter(|_| is_shared) {
            let wishes = u8::from(vocabulary.raw_reasoning) | u8::from(vocabulary.raw_items) << 1;
            let key = FormKey { wishes, state: 0 };
            if let Some(lines) = encodings.lines(encoded::EVENTS, key, || encoded::events(event, vocabulary)) {
                return self.add_encoded(lines);
            }
        }
        let mut events = std::mem::take(&mut self.events);
        eq::project(event, vocabulary, &mut events);
        for msg in &events {
            self.send_event(event.turn.as_ref(), msg, event.at_ms);
        }
        events.clear();
        self.events = events;
    }

    /// Queues shared lines, without those that this client opted out of.
    fn add_encoded(&mut self, lines: &Lines) {
        for (line, method) in lines.iter() {
            if !self.is_unwanted(method) {
                self.outgoing.add_lines(line);
                self.number_unless_of_account(method);
            }
        }
    }

    /// Messages about the account belong to no thread, so they have no number.
    fn number_unless_of_account(&mut self, method: &str) {
        if !method.starts_with("account/") {
            self.outgoing.number_here();
        }
    }

    /// Queues a legacy event, if the client receives it.
    pub(crate) fn send_event(&mut self, turn: Option<&TurnId>, msg: &EventMsg, emitted_at_ms: i64) {
        let client = self.connection.client();
        if !self.filter.passes_event(msg) || client.is_some_and(|client| client.is_unwanted_event(msg.kind())) {
            return;
        }
        if self.filter.events == Events::Items {
            return self.send_named(turn, &NamedEvent::of(turn, msg), emitted_at_ms);
        }
        let (thread, form) = (self.thread.id(), self.connection.json_form());
        if !form.is_plain() {
            let msg = form.event(msg);
            let kind = msg["type"].as_str().unwrap_or_default();
            self.outgoing.add(&encoded::event_message(turn, kind, &msg, thread, emitted_at_ms));
        } else if self.weight < LARGE_BYTES {
            self.outgoing.add(&encoded::queue_event(turn, msg, thread, emitted_at_ms));
        } else {
            let (turn, msg) = (turn.cloned(), msg.clone());
            self.outgoing.add_large(self.weight, move |line| {
                add_line(line, &encoded::queue_event(turn.as_ref(), &msg, thread, emitted_at_ms));
            });
        }
        self.outgoing.number_here();
    }

    /// Queues a notification, if the client receives it.
    pub(crate) fn notify(&mut self, notification: &ServerNotification, at_ms: i64) {
        if self.filter.passes(notification) {
            self.send(notification, at_ms);
        }
    }

    fn send(&mut self, params: &ServerNotification, emitted_at_ms: i64) {
        let method = params.method();
        if self.is_unwanted(method) {
            return;
        }
        let form = self.connection.json_form();
        if !form.is_plain() {
            self.outgoing.add(&Notification { method, params: form.notification(params), emitted_at_ms });
        } else if self.weight < LARGE_BYTES {
            self.outgoing.add(&Notification { method, params, emitted_at_ms });
        } else {
            let params = params.clone();
            self.outgoing
                .add_large(self.weight, move |line| add_line(line, &Notification { method, params, emitted_at_ms }));
        }
        self.number_unless_of_account(method);
    }

    fn is_unwanted(&self, method: &str) -> bool {
        self.connection.client().is_some_and(|client| client.is_unwanted(method))
    }
}
