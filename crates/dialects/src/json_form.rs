//! The JSON of messages, where kinds of clients read it differently: releases before 0.59 had the kind of an item or a
//! change as the name of its only member, and some clients stop at `null`.

use codex_protocol::v2::notification::ServerNotification;
use codex_protocol::v2::request::ServerRequest;
use codex_wire::event::EventMsg;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::ProtocolRelease;
use crate::event_filter::ClientTraits;

/// The form of the JSON that a client reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JsonForm {
    has_old_tags: bool,
    leaves_out_null: bool,
}

impl JsonForm {
    /// The form for a client.
    #[must_use]
    pub fn of(client: ClientTraits) -> Self {
        let has_old_tags = client.release == ProtocolRelease::V058;
        Self { has_old_tags, leaves_out_null: client.leaves_out_null }
    }

    /// Whether messages are encoded as their types are.
    #[must_use]
    pub fn is_plain(self) -> bool {
        self == Self::default()
    }

    /// A notification. The arguments and the result of a tool stay as they are.
    #[must_use]
    pub fn notification(self, notification: &ServerNotification) -> Value {
        use ServerNotification as N;
        let mut value = to_value(notification);
        let is_item = matches!(
            notification,
            N::ItemStarted(_) | N::ItemCompleted(_) | N::RawResponseItemCompleted(_) | N::SessionConfigured(_)
        );
        if is_item {
            if self.has_old_tags {
                add_thought(&mut value["item"]);
            }
            return value;
        }
        self.without_nulls(value)
    }

    /// A `codex/event/*`.
    #[must_use]
    pub fn event(self, msg: &EventMsg) -> Value {
        let mut value = to_value(msg);
        if !self.has_old_tags {
            return value;
        }
        match msg {
            EventMsg::ItemStarted(_) | EventMsg::ItemCompleted(_) => {
                if let Some(Value::Array(parts)) = value["item"].get_mut("content") {
                    // The parts of a message of the user were tagged as they are now.
                    let is_tagged_so = |part: &Value| part["type"].as_str().is_some_and(starts_with_capital);
                    parts.iter_mut().filter(|part| is_tagged_so(part)).for_each(tag_outside);
                }
                tag_outside(&mut value["item"]);
            }
            EventMsg::ApplyPatchApprovalRequest(_) | EventMsg::PatchApplyBegin(_) | EventMsg::PatchApplyEnd(_) => {
                tag_each_outside(&mut value["changes"]);
            }
            EventMsg::ExecCommandBegin(_) | EventMsg::ExecCommandEnd(_) => {
                let is_users_own = value["source"] == "user_shell";
                value["is_user_shell_command"] = is_users_own.into();
            }
            _ => {}
        }
        value
    }

    /// A request of the server.
    #[must_use]
    pub fn request(self, request: &ServerRequest) -> Value {
        let mut value = to_value(request);
        match request {
            ServerRequest::ApplyPatchApproval(_) if self.has_old_tags => tag_each_outside(&mut value["fileChanges"]),
            // An estimate that only these releases had, and never made.
            ServerRequest::ExecCommandApproval(_) if self.has_old_tags => value["risk"] = Value::Null,
            _ => {}
        }
        self.without_nulls(value)
    }

    /// A response or a notification, without members that are `null` if the client stops at these.
    #[must_use]
    pub fn without_nulls(self, value: Value) -> Value {
        if self.leaves_out_null { without_nulls(value) } else { value }
    }
}

fn to_value(message: &impl Serialize) -> Value {
    serde_json::to_value(message).unwrap_or_default()
}

/// Removes members that are `null`, at all depths.
pub(crate) fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(_, member)| !member.is_null());
            Value::Object(kept.map(|(name, member)| (name, without_nulls(member))).collect())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(without_nulls).collect()),
        value => value,
    }
}

/// Rewrites `{"type": "Kind", ..}` as `{"Kind": {..}}`.
fn tag_outside(value: &mut Value) {
    let Value::Object(members) = value else { return };
    if let Some(Value::String(kind)) = members.shift_remove("type") {
        let body = Value::Object(std::mem::take(members));
        *value = Value::Object(Map::from_iter([(kind, body)]));
    }
}

fn tag_each_outside(values: &mut Value) {
    if let Value::Object(values) = values {
        values.values_mut().for_each(tag_outside);
    }
}

fn starts_with_capital(kind: &str) -> bool {
    kind.starts_with(|letter: char| letter.is_ascii_uppercase())
}

/// Adds the text of reasoning in one piece, as releases before 0.59 had it.
fn add_thought(item: &mut Value) {
    if let Some(Value::Array(summary)) = item.get("summary") {
        let text: Vec<_> = summary.iter().filter_map(Value::as_str).collect();
        item["text"] = text.join("\n").into();
    }
}

/// A name of several words, as members in camelCase have it.
pub(crate) fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |joined, word| {
        let mut letters = word.chars();
        let capital = letters.next().map(|letter| letter.to_ascii_uppercase());
        joined + &capital.into_iter().chain(letters).collect::<String>()
    })
}
