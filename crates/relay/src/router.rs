//! Decides where each line goes, as a state machine without I/O.

use std::collections::{BTreeMap, HashMap};

use codex_protocol::rpc::{ErrorObject, Incoming, OVERLOADED, Response};
use codex_protocol::v2::initialize::{Dialect, RelayedClient, Release};
use codex_wire::ids::{RequestId, ThreadId};
use serde_json::{Map, Value, json};

use crate::message::{Message, ThreadReference};
use crate::peers::Peer;

/// The number of requests that may wait until the owner of their thread is known, or until its link is open.
const MOST_WAITING: usize = 64;

/// The owner of link `n` numbers its requests to the client from `n << LINK_BITS`, so that an id tells who asked. Such
/// ids are exact in JavaScript for two million links.
const LINK_BITS: u32 = 32;

/// The beginning of a notification that a thread is no longer loaded.
const CLOSED: &[u8] = b"{\"method\":\"thread/closed\"";

/// The beginning of the notification that a server ends. Its relayed clients stay where they are.
const MOVED: &[u8] = b"{\"method\":\"server/moved\"";

/// The beginning of every notification and of every request of a server.
pub(crate) const METHOD: &[u8] = b"{\"method\":";

/// The number of a link of one client. The first is 1, because the server of this process numbers its requests from 0.
pub(crate) type LinkNumber = u32;

/// The behaviour of this server towards clients that leave the choice to it. The owners of threads do the same for them.
#[derive(Debug, Clone, Copy)]
pub struct ClientView {
    /// The release that this server was told to match.
    pub emulate: Option<Release>,
    /// The release that it matches for a client that does not choose one.
    pub release: Release,
    /// The dialect for a client that does not choose one.
    pub dialect: Option<Dialect>,
}

/// Something to do, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    ToLocal(Vec<u8>),
    ToClient(Vec<u8>),
    /// Finds out who has a thread open; [`Router::looked_up`] gets the result.
    LookUp(ThreadId),
    /// Opens a link and sends the handshake.
    Open {
        link: LinkNumber,
        peer: Peer,
        initialize: Vec<u8>,
    },
    ToLink {
        link: LinkNumber,
        line: Vec<u8>,
        request: Option<RequestId>,
    },
    Close(LinkNumber),
}

/// A request about a thread, with its line.
#[derive(Debug)]
struct Waiting {
    id: RequestId,
    line: Vec<u8>,
    adds_listener: bool,
}

/// A link to the owner of threads.
#[derive(Debug)]
struct Link {
    peer: Peer,
    /// The lines that wait until the link is open; `None` from then on.
    queue: Option<Vec<Effect>>,
    /// The requests that the owner has not answered.
    unanswered: HashMap<RequestId, Unanswered>,
}

#[derive(Debug)]
struct Unanswered {
    thread: ThreadId,
    adds_listener: bool,
}

/// The routes of one client.
#[derive(Debug)]
pub(crate) struct Router {
    view: ClientView,
    /// The parameters of the client's handshake, once it has sent it.
    initialize: Option<Map<String, Value>>,
    /// Whether the client itself came over a link. Then everything is for this server.
    is_relayed: bool,
    /// Requests about threads whose owner is being looked up.
    waiting: HashMap<ThreadId, Vec<Waiting>>,
    links: BTreeMap<LinkNumber, Link>,
    last_link: LinkNumber,
    /// The threads that are served over links.
    routes: HashMap<ThreadId, LinkNumber>,
    /// The listeners of such threads.
    listeners: HashMap<String, ThreadId>,
}

impl Router {
    pub(crate) fn new(view: ClientView) -> Self {
        Self {
            view,
            initialize: None,
            is_relayed: false,
            waiting: HashMap::new(),
            links: BTreeMap::new(),
            last_link: 0,
            routes: HashMap::new(),
            listeners: HashMap::new(),
        }
    }

    /// The thread of a message, if its place matters: the caller says to [`Router::client_line`] whether it is here.
    pub(crate) fn thread_of(&self, message: &Message) -> Option<ThreadId> {
        match message {
            Message::AboutThread { thread: ThreadReference::Id(id), .. } if !self.is_relayed => Some(*id),
            Message::AboutThread { thread: ThreadReference::Listener(name), .. } => self.listeners.get(name).copied(),
            Message::AboutThread { .. } | Message::Initialize { .. } | Message::Response { .. } | Message::Other => {
                None
            }
        }
    }

    /// Routes a line of the client. `own_id` is the id of this server.
    pub(crate) fn client_line(
        &mut self,
        line: Vec<u8>,
        message: Message,
        is_here: bool,
        own_id: Option<&str>,
    ) -> Vec<Effect> {
        let thread = self.thread_of(&message);
        match message {
            Message::Initialize { id, params } if self.initialize.is_none() => {
                let relay: Option<RelayedClient> =
                    params.get("relay").and_then(|relay| serde_json::from_value(relay.clone()).ok());
                if let Some(relay) = relay {
                    if own_id != Some(relay.server_id.as_str()) {
                        return vec![refuse(&id, ErrorObject::invalid("another server is at this address"))];
                    }
                    self.is_relayed = true;
                }
                self.initialize = Some(params);
                vec![Effect::ToLocal(line)]
            }
            Message::AboutThread { id, adds_listener, .. } => match thread {
                Some(thread) => self.request(thread, Waiting { id, line, adds_listener }, is_here),
                None => vec![Effect::ToLocal(line)],
            },
            Message::Response { id } => match u32::try_from(id >> LINK_BITS) {
                Ok(0) | Err(_) => vec![Effect::ToLocal(line)],
                _ if self.is_relayed => vec![Effect::ToLocal(line)],
                // The link may be gone, and with it the question.
                Ok(link) if !self.links.contains_key(&link) => Vec::new(),
                Ok(link) => vec![Effect::ToLink { link, line, request: None }],
            },
            Message::Initialize { .. } | Message::Other => vec![Effect::ToLocal(line)],
        }
    }

    fn request(&mut self, thread: ThreadId, request: Waiting, is_here: bool) -> Vec<Effect> {
        let all: usize = self.waiting.values().map(Vec::len).sum();
        if let Some(queue) = self.waiting.get_mut(&thread) {
            if all >= MOST_WAITING {
                return vec![refuse(&request.id, overloaded())];
            }
            queue.push(request);
            return Vec::new();
        }
        // Nothing is passed on for a client that has not introduced itself.
        if is_here || self.initialize.is_none() {
            let mut effects = self.routes.get(&thread).copied().map_or_else(Vec::new, |link| self.overtaken(link));
            effects.push(Effect::ToLocal(request.line));
            return effects;
        }
        if let Some(link) = self.routes.get(&thread) {
            return self.over_link(*link, thread, request);
        }
        if all >= MOST_WAITING {
            return vec![refuse(&request.id, overloaded())];
        }
        self.waiting.insert(thread, vec![request]);
        vec![Effect::LookUp(thread)]
    }

    /// This server has taken over a thread that the client follows over a link. The owner at its other end has lost its
    /// lease, and with it all its threads; it may be halted, and could report old events when it continues. So the client
    /// is told that its subscriptions have ended. It would miss what happened since if they went on here in silence.
    fn overtaken(&mut self, link: LinkNumber) -> Vec<Effect> {
        self.link_closed(link, "it could not renew its lease")
    }

    /// Routes the requests that waited for the owner of their thread.
    pub(crate) fn looked_up(&mut self, thread: ThreadId, owner: Option<Peer>) -> Vec<Effect> {
        let requests = self.waiting.remove(&thread).unwrap_or_default();
        let Some(peer) = owner else {
            return requests.into_iter().map(|request| Effect::ToLocal(request.line)).collect();
        };
        let mut effects = Vec::new();
        let known = self.links.iter().find(|(_, link)| link.peer.id == peer.id).map(|(number, _)| *number);
        let number = known.unwrap_or_else(|| {
            self.last_link += 1;
            let initialize = self.handshake(&peer, self.last_link);
            effects.push(Effect::Open { link: self.last_link, peer: peer.clone(), initialize });
            let link = Link { peer, queue: Some(Vec::new()), unanswered: HashMap::new() };
            self.links.insert(self.last_link, link);
            self.last_link
        });
        self.routes.insert(thread, number);
        for request in requests {
            effects.extend(self.over_link(number, thread, request));
        }
        effects
    }

    /// The handshake of a link: that of the client, with what its own server decides for it.
    fn handshake(&self, peer: &Peer, link: LinkNumber) -> Vec<u8> {
        let ClientView { emulate, release, dialect } = self.view;
        let first_request_id = i64::from(link) << LINK_BITS;
        let relay = RelayedClient { server_id: peer.id.clone(), first_request_id, emulate, release, dialect };
        let mut params = self.initialize.clone().unwrap_or_default();
        params.insert("relay".to_owned(), json!(relay));
        codex_lines::encoded(&json!({"id": 0, "method": "initialize", "params": params}))
    }

    fn over_link(&mut self, number: LinkNumber, thread: ThreadId, request: Waiting) -> Vec<Effect> {
        let Waiting { id, line, adds_listener } = request;
        let Some(link) = self.links.get_mut(&number) else { return vec![Effect::ToLocal(line)] };
        let effect = Effect::ToLink { link: number, line, request: Some(id.clone()) };
        match &mut link.queue {
            Some(queue) if queue.len() >= MOST_WAITING => vec![refuse(&id, overloaded())],
            Some(queue) => {
                link.unanswered.insert(id, Unanswered { thread, adds_listener });
                queue.push(effect);
                Vec::new()
            }
            None => {
                link.unanswered.insert(id, Unanswered { thread, adds_listener });
                vec![effect]
            }
        }
    }

    /// Sends the lines that waited for a link.
    pub(crate) fn link_opened(&mut self, number: LinkNumber) -> Vec<Effect> {
        self.links.get_mut(&number).and_then(|link| link.queue.take()).unwrap_or_default()
    }

    /// A link has no room for a line.
    pub(crate) fn link_full(&mut self, number: LinkNumber, request: Option<RequestId>) -> Vec<Effect> {
        match request {
            Some(id) => {
                if let Some(link) = self.links.get_mut(&number) {
                    link.unanswered.remove(&id);
                }
                vec![refuse(&id, overloaded())]
            }
            // An answer must not be lost without anybody noticing.
            None => self.link_closed(number, "it does not read"),
        }
    }

    /// Takes note of a line of an owner. Returns whether the client gets it.
    pub(crate) fn link_line(&mut self, number: LinkNumber, line: &[u8]) -> bool {
        let Some(link) = self.links.get_mut(&number) else { return false };
        if line.starts_with(METHOD) {
            if line.starts_with(CLOSED) {
                let thread = closed_thread(line);
                self.routes.retain(|known, link| *link != number || Some(*known) != thread);
            }
            return !line.starts_with(MOVED);
        }
        if let Ok(Incoming::Response { id, result }) = Incoming::read(line)
            && let Some(Unanswered { thread, adds_listener: true }) = link.unanswered.remove(&id)
            && let Some(listener) = result.ok().flatten().and_then(|result| listener(result.get()))
        {
            self.listeners.insert(listener, thread);
        }
        true
    }

    /// Answers everything that a link leaves behind, and tells the client which threads it is no longer subscribed to.
    pub(crate) fn link_closed(&mut self, number: LinkNumber, why: &str) -> Vec<Effect> {
        let Some(Link { peer, unanswered, .. }) = self.links.remove(&number) else { return Vec::new() };
        let mut effects = vec![Effect::Close(number)];
        let name = &peer.name;
        for (id, Unanswered { thread, .. }) in unanswered {
            let text = format!(
                "thread {thread} is open on server {name}, which cannot be reached: {why}; resume the thread to continue"
            );
            effects.push(refuse(&id, ErrorObject::internal(text).with(json!({"server": name}))));
        }
        let mut threads: Vec<ThreadId> = Vec::new();
        self.routes.retain(|thread, link| {
            if *link == number {
                threads.push(*thread);
            }
            *link != number
        });
        threads.sort_unstable();
        self.listeners.retain(|_, thread| !threads.contains(thread));
        if !self.is_unwanted("thread/closed") {
            effects.extend(threads.iter().map(closed));
        }
        effects
    }

    /// Whether requests over links are still to be answered.
    pub(crate) fn has_unanswered(&self) -> bool {
        !self.waiting.is_empty() || self.links.values().any(|link| !link.unanswered.is_empty())
    }

    /// Whether the client opted out of a notification, or receives events of the first version only.
    fn is_unwanted(&self, method: &str) -> bool {
        let capabilities = self.initialize.as_ref().and_then(|params| params.get("capabilities"));
        let capability = |name: &str| capabilities.and_then(|all| all.get(name));
        let unwanted = capability("optOutNotificationMethods").and_then(Value::as_array);
        let is_named = |name: &str| match name.strip_suffix('*') {
            Some(beginning) => method.starts_with(beginning),
            None => name == method,
        };
        unwanted.is_some_and(|names| names.iter().filter_map(Value::as_str).any(is_named))
            || match self.view.dialect {
                Some(dialect) => dialect == Dialect::V1,
                None => capability("dialect").and_then(Value::as_str) == Some(Dialect::V1.as_str()),
            }
    }
}

fn refuse(id: &RequestId, error: ErrorObject) -> Effect {
    let response: Response<'_, ()> = Response::Error { error, id };
    Effect::ToClient(codex_lines::encoded(&response))
}

fn overloaded() -> ErrorObject {
    ErrorObject { code: OVERLOADED, message: "Server overloaded; retry later.".to_owned(), data: None }
}

fn closed(thread: &ThreadId) -> Effect {
    let closed = json!({"method": "thread/closed", "params": {"threadId": thread}});
    Effect::ToClient(codex_lines::encoded(&closed))
}

/// The thread of a notification that it is closed.
fn closed_thread(line: &[u8]) -> Option<ThreadId> {
    let line: Value = serde_json::from_slice(line).ok()?;
    line["params"]["threadId"].as_str()?.parse().ok()
}

/// The listener that a response names.
fn listener(result: &str) -> Option<String> {
    let result: Value = serde_json::from_str(result).ok()?;
    result["subscriptionId"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests;
