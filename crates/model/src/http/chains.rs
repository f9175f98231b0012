//! Answers that a provider stores: a request that continues one sends only the items that came since.
//!
//! Invariant: an answer is continued only by a conversation that begins with the whole input of its request, followed by all
//! of its items. Any other conversation is sent as a whole.

use std::hash::{DefaultHasher, Hasher};
use std::sync::{Mutex, PoisonError};

use codex_wire::conversation_item::{ConversationItem, ItemOrigin};
use codex_wire::ids::ThreadId;

use crate::ModelEvent;
use crate::encoding::{RequestFormat, StoredAnswer};

/// The number of threads that are remembered.
const MOST_THREADS: usize = 256;

/// The maximum number of items of an answer that is remembered.
const MOST_OUTPUTS: usize = 1024;

/// The last answer of each thread.
#[derive(Debug, Default)]
pub(super) struct Chains(Mutex<Vec<(ThreadId, Chain)>>);

/// A stored answer, and the conversation that it represents.
#[derive(Debug, Clone)]
struct Chain {
    response_id: String,
    account: Option<String>,
    /// The input of its request.
    input: Fingerprint,
    /// The ids of its items.
    outputs: Vec<String>,
}

/// The start of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fingerprint {
    items: usize,
    hash: u64,
}

impl Fingerprint {
    fn of(items: &[ConversationItem]) -> Self {
        let (mut hasher, mut buffer) = (DefaultHasher::new(), Vec::new());
        for item in items {
            buffer.clear();
            item.append_to(&mut buffer);
            hasher.write_usize(buffer.len());
            hasher.write(&buffer);
        }
        Self { items: items.len(), hash: hasher.finish() }
    }
}

impl Chains {
    fn change<T>(&self, change: impl FnOnce(&mut Vec<(ThreadId, Chain)>) -> T) -> T {
        // Every change leaves the list complete, so a panic elsewhere does no harm.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The answer that a conversation continues.
    pub(super) fn followed(
        &self,
        thread: ThreadId,
        input: &[ConversationItem],
        format: &RequestFormat<'_>,
    ) -> Option<StoredAnswer> {
        let is_ours = |(of, chain): &&(ThreadId, Chain)| *of == thread && chain.account == format.origin.account;
        let chain = self.change(|chains| chains.iter().find(is_ours).map(|(_, chain)| chain.clone()))?;
        let begin = input.get(..chain.input.items)?;
        let items = chain.input.items + chain.outputs.len();
        let outputs = input.get(chain.input.items..items)?;
        let id = |item| format.opaque(item).and_then(|opaque| opaque["id"].as_str());
        let has_outputs = outputs.iter().zip(&chain.outputs).all(|(item, output)| id(item) == Some(output));
        let is_continued = has_outputs && items < input.len() && Fingerprint::of(begin) == chain.input;
        is_continued.then_some(StoredAnswer { response_id: chain.response_id, items })
    }

    /// Removes the answer of a thread; false if there was none.
    pub(super) fn forget(&self, thread: ThreadId) -> bool {
        self.change(|chains| {
            let before = chains.len();
            chains.retain(|(of, _)| *of != thread);
            chains.len() < before
        })
    }

    fn remember(&self, thread: ThreadId, chain: Chain) {
        self.change(|chains| {
            chains.retain(|(of, _)| *of != thread);
            if chains.len() == MOST_THREADS {
                chains.remove(0);
            }
            chains.push((thread, chain));
        });
    }
}

/// An answer that is streaming in, and that later requests may continue.
#[derive(Debug)]
pub(super) struct StreamingAnswer {
    thread: ThreadId,
    chain: Chain,
    /// Whether an item has no id, so that the answer cannot be recognised later.
    is_nameless: bool,
}

impl StreamingAnswer {
    pub(super) fn new(thread: ThreadId, input: &[ConversationItem], origin: &ItemOrigin) -> Self {
        let (input, account) = (Fingerprint::of(input), origin.account.clone());
        let chain = Chain { response_id: String::new(), account, input, outputs: Vec::new() };
        Self { thread, chain, is_nameless: false }
    }

    /// Processes an event of the answer, and remembers the answer when it is complete.
    pub(super) fn see(&mut self, event: &ModelEvent, chains: &Chains) {
        match event {
            ModelEvent::ItemDone(_, origin) => {
                let opaque = origin.as_ref().and_then(|origin| origin.opaque.as_ref());
                match opaque.and_then(|opaque| opaque["id"].as_str()) {
                    Some(id) if self.chain.outputs.len() < MOST_OUTPUTS => self.chain.outputs.push(id.to_owned()),
                    _ => self.is_nameless = true,
                }
            }
            ModelEvent::Completed { response_id, .. } if !response_id.is_empty() && !self.is_nameless => {
                chains.remember(self.thread, Chain { response_id: response_id.clone(), ..self.chain.clone() });
            }
            _ => {}
        }
    }
}
