//! What the model is sent: the conversation, encoded once, and what it has cost so far.

use std::sync::Arc;

use codex_log::state::{Tokens, TurnBegin};
use codex_log::{Record, RolledBack, TurnId};
use codex_wire::conversation_item::ConversationItem;
use codex_wire::response::{Message, ResponseItem};
use codex_wire::tokens::{RateLimitSnapshot, TokenUsage, TokenUsageInfo};

use crate::beginning::Past;

/// The conversation with the model.
///
/// Items are only ever appended, so that each request starts with the bytes of the one before and the provider's
/// cache holds.
#[derive(Debug, Default)]
pub(crate) struct Context {
    items: Vec<ConversationItem>,
    /// How many items the model had been sent when it was asked last.
    sent: usize,
    /// Messages of the user, each with its place.
    said: Vec<(usize, Message)>,
    /// Where the turns since the last summary begin.
    turns: Vec<TurnBegin>,
    /// How many items the conversation began with, before anything was said.
    preface: usize,
    /// The newest item, if it is a message of the user's.
    last: Option<Arc<ResponseItem>>,
    /// How many tokens were in the window after the last answer.
    window_used: i64,
    usage: Option<TokenUsageInfo>,
    rate_limits: RateLimitSnapshot,
    /// Earlier states of the conversation, oldest first; none where nobody can go back.
    past: Option<Vec<Branch>>,
}

/// A state of the conversation that another has taken the place of.
#[derive(Debug, Clone)]
struct Branch {
    items: Vec<ConversationItem>,
    said: Vec<(usize, Message)>,
}

/// A point that the conversation can go back to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    /// How many states were past then, which is the place of the one it belongs to once that is past too.
    branch: usize,
    /// How many items there were.
    items: usize,
    window_used: i64,
}

impl Context {
    /// An empty conversation that goes on counting what the thread costs.
    pub(crate) fn fresh(&self) -> Self {
        Self { usage: self.usage.clone(), rate_limits: self.rate_limits.clone(), ..Self::default() }
    }

    /// Takes over what another conversation of the thread has cost.
    pub(crate) fn take_costs(&mut self, other: &Self) {
        self.usage.clone_from(&other.usage);
        self.rate_limits = other.rate_limits.clone();
    }

    /// A conversation that goes on.
    pub(crate) fn resumed(past: Past, tokens: Tokens) -> Self {
        let Tokens { info, rate_limits } = tokens;
        Self {
            sent: past.items.len(),
            items: past.items,
            turns: past.turns,
            said: past.said,
            preface: past.preface,
            last: None,
            window_used: info.as_ref().map_or(0, |info| info.last_token_usage.tokens_in_window()),
            usage: info,
            rate_limits,
            ..Self::default()
        }
    }

    /// Appends an item.
    pub(crate) fn record(&mut self, record: &Record) {
        self.items.push(record.json.clone());
        let is_of_user = |item: &ResponseItem| matches!(item, ResponseItem::Message(message) if message.role == "user");
        self.last = record.item().filter(|item| is_of_user(item));
    }

    /// Notes that the newest item is what the user said.
    pub(crate) fn credit_user(&mut self) {
        if let Some(ResponseItem::Message(message)) = self.last.as_deref() {
            self.said.push((self.items.len() - 1, message.clone()));
        }
    }

    /// Notes that the conversation begins here.
    pub(crate) fn end_preface(&mut self) {
        self.preface = self.items.len();
    }

    /// Notes that a turn begins now.
    pub(crate) fn begin_turn(&mut self, id: &TurnId) {
        self.turns.push(TurnBegin { item: self.items.len(), id: Some(id.clone()) });
        self.mark();
    }

    /// Forgets the last turns, if so many are known since the last summary.
    pub(crate) fn roll_back(&mut self, turns: usize) -> Option<RolledBack> {
        let kept = self.turns.len().checked_sub(turns)?;
        let TurnBegin { item: start, id } = self.turns.get(kept)?.clone();
        let said = self.said.iter().filter(|(place, _)| *place >= start).count();
        self.turns.truncate(kept);
        self.items.truncate(start);
        self.said.retain(|(place, _)| *place < start);
        self.last = None;
        self.mark();
        Some(RolledBack { turns, said, first: id })
    }

    /// Notes that the model is asked now.
    pub(crate) fn mark(&mut self) {
        self.sent = self.items.len();
    }

    /// Forgets what came after the model was asked last, all but what the user said.
    pub(crate) fn forget_unfinished(&mut self) {
        let later = self.said.iter_mut().filter(|(place, _)| *place >= self.sent);
        let mut kept = Vec::new();
        for (number, (place, _)) in later.enumerate() {
            kept.extend(self.items.get(*place).cloned());
            *place = self.sent + number;
        }
        self.items.truncate(self.sent);
        self.items.extend(kept);
    }

    /// What the user said.
    pub(crate) fn said(&self) -> Vec<Message> {
        self.said.iter().map(|(_, message)| message.clone()).collect()
    }

    /// The items for a summary, without so many halves of the conversation. What is left begins with something the
    /// user said, so that no output stands there without its call.
    pub(crate) fn input_without(&self, halvings: u32) -> Vec<ConversationItem> {
        let conversation = self.items.len() - self.preface;
        let from = self.items.len() - conversation.checked_shr(halvings).unwrap_or(0);
        let from = self.said.iter().map(|(place, _)| *place).find(|place| *place >= from).unwrap_or(from);
        let from = if halvings == 0 { self.preface } else { from };
        self.items[..self.preface].iter().chain(&self.items[from..]).cloned().collect()
    }

    /// Puts other items in the place of the conversation. Returns how many bytes there were, and how many there are.
    pub(crate) fn replace(&mut self, records: &[Record]) -> (usize, usize) {
        let size = |items: &[ConversationItem]| items.iter().map(ConversationItem::json_bytes).sum::<usize>();
        let before = size(&self.items);
        self.leave_branch();
        self.items.truncate(self.preface);
        self.items.extend(records.iter().map(|record| record.json.clone()));
        for (place, _) in &mut self.said {
            *place = self.preface;
        }
        self.window_used = 0;
        self.turns.clear();
        self.mark();
        (before, size(&self.items))
    }

    /// Keeps every state of the conversation from here on, so that points of it can be gone back to.
    pub(crate) fn keep_past(&mut self) {
        self.past.get_or_insert_default();
    }

    fn leave_branch(&mut self) {
        if let Some(past) = &mut self.past {
            past.push(Branch { items: self.items.clone(), said: self.said.clone() });
        }
    }

    /// Where the conversation is now.
    pub(crate) fn point(&self) -> Point {
        let branch = self.past.as_ref().map_or(0, Vec::len);
        Point { branch, items: self.items.len(), window_used: self.window_used }
    }

    /// Goes back to a point. What came after it is past too, so its own points stay good. Returns the items after the
    /// preface.
    pub(crate) fn go_back(&mut self, point: &Point) -> Vec<ConversationItem> {
        self.leave_branch();
        if let Some(branch) = self.past.as_ref().and_then(|past| past.get(point.branch)) {
            self.items.clone_from(&branch.items);
            self.said.clone_from(&branch.said);
        }
        self.items.truncate(point.items);
        self.said.retain(|(place, _)| *place < point.items);
        (self.last, self.window_used) = (None, point.window_used);
        self.mark();
        self.items.clone()
    }

    /// Goes on from another conversation. What was said in this one is past, so its points stay good. Returns all items.
    pub(crate) fn go_to(&mut self, past: Past) -> Vec<ConversationItem> {
        self.leave_branch();
        let Past { items, preface, said, turns, .. } = past;
        (self.items, self.preface, self.said, self.turns) = (items, preface, said, turns);
        (self.last, self.window_used) = (None, 0);
        self.mark();
        self.items.clone()
    }

    /// How many tokens were in the window after the last answer.
    pub(crate) fn window_used(&self) -> i64 {
        self.window_used
    }

    /// All items, for a request.
    pub(crate) fn input(&self) -> Vec<ConversationItem> {
        self.items.clone()
    }

    /// Adds the tokens of an answer.
    pub(crate) fn count(&mut self, usage: TokenUsage, window: Option<i64>) {
        let info = self.usage.get_or_insert_with(|| TokenUsageInfo {
            total_token_usage: TokenUsage::default(),
            last_token_usage: TokenUsage::default(),
            model_context_window: window,
        });
        self.window_used = usage.tokens_in_window();
        info.total_token_usage += usage;
        info.last_token_usage = usage;
        info.model_context_window = window;
    }

    /// Notes about how many tokens the next request begins with, which the model has not counted yet.
    pub(crate) fn estimate(&mut self, tokens: usize) {
        if let Some(info) = &mut self.usage {
            let total_tokens = i64::try_from(tokens).unwrap_or(i64::MAX);
            info.last_token_usage = TokenUsage { total_tokens, ..TokenUsage::default() };
        }
    }

    /// Notes what the account still allows; an answer that says nothing leaves the last word standing.
    pub(crate) fn limit(&mut self, limits: RateLimitSnapshot) {
        if limits != RateLimitSnapshot::default() {
            self.rate_limits = limits;
        }
    }

    /// The tokens used so far; none before the first answer.
    pub(crate) fn usage(&self) -> Option<TokenUsageInfo> {
        self.usage.clone()
    }

    /// What the account allowed when it was last told.
    pub(crate) fn rate_limits(&self) -> RateLimitSnapshot {
        self.rate_limits.clone()
    }
}
