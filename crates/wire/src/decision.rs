//! The answers of a person or a program to approval requests.
//!
//! Invariant: an answer that cannot be decoded is an error, never an approval.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Map, Value, json};

use crate::forms::{same_word, take};

/// The answer to an approval request.
///
/// It is read in the spelling of every dialect and in any case: `approved`, `accept` or `allow`, bare or as `{"action":
/// …}`. It is written as in the submission queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename_all = "snake_case"))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub enum ReviewDecision {
    /// Approved once.
    Approved,
    /// Approved, and commands with this prefix are approved from now on.
    ApprovedExecpolicyAmendment {
        /// The words of the prefix.
        proposed_execpolicy_amendment: Vec<String>,
    },
    /// Approved, and so is the same request for the rest of this session.
    ApprovedForSession,
    /// Denied; the model is informed and continues.
    #[default]
    Denied,
    /// Denied, and the turn ends.
    Abort,
    /// No answer arrived in time.
    TimedOut,
}

impl ReviewDecision {
    /// Whether the action is allowed.
    #[must_use]
    pub const fn allows(&self) -> bool {
        match self {
            Self::Approved | Self::ApprovedExecpolicyAmendment { .. } | Self::ApprovedForSession => true,
            Self::Denied | Self::Abort | Self::TimedOut => false,
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        if same_word(word, &["approved", "accept", "allow"]) {
            Some(Self::Approved)
        } else if same_word(word, &["approved_for_session", "accept_for_session"]) {
            Some(Self::ApprovedForSession)
        } else if same_word(word, &["denied", "decline", "deny"]) {
            Some(Self::Denied)
        } else if same_word(word, &["abort", "cancel"]) {
            Some(Self::Abort)
        } else if same_word(word, &["timed_out"]) {
            Some(Self::TimedOut)
        } else {
            None
        }
    }

    /// Decodes `{"action": word}`, `{"denied": {..}}` and the answer with a rule.
    fn from_object(mut object: Map<String, Value>) -> Result<Option<Self>, serde_json::Error> {
        if let Some(action) = take(&mut object, &["action"]) {
            return Ok(action.as_str().and_then(Self::from_word));
        }
        let mut members = object.into_iter();
        let (Some((word, Value::Object(mut body))), None) = (members.next(), members.next()) else {
            return Ok(None);
        };
        if same_word(&word, &["denied"]) {
            return Ok(Some(Self::Denied));
        }
        if !same_word(&word, &["approved_execpolicy_amendment", "accept_with_execpolicy_amendment"]) {
            return Ok(None);
        }
        let spellings = [
            "proposed_execpolicy_amendment",
            "execpolicy_amendment",
            "proposedExecpolicyAmendment",
            "execpolicyAmendment",
        ];
        let rule = take(&mut body, &spellings).ok_or_else(|| serde_json::Error::missing_field(spellings[0]))?;
        let proposed_execpolicy_amendment = serde_json::from_value(rule)?;
        Ok(Some(Self::ApprovedExecpolicyAmendment { proposed_execpolicy_amendment }))
    }
}

impl Serialize for ReviewDecision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Approved => serializer.serialize_str("approved"),
            Self::ApprovedExecpolicyAmendment { proposed_execpolicy_amendment } => json!({
                "approved_execpolicy_amendment": {"proposed_execpolicy_amendment": proposed_execpolicy_amendment}
            })
            .serialize(serializer),
            Self::ApprovedForSession => serializer.serialize_str("approved_for_session"),
            Self::Denied => serializer.serialize_str("denied"),
            Self::Abort => serializer.serialize_str("abort"),
            Self::TimedOut => serializer.serialize_str("timed_out"),
        }
    }
}

impl<'de> Deserialize<'de> for ReviewDecision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let shown = value.to_string();
        let decision = match value {
            Value::String(word) => Self::from_word(&word),
            Value::Object(object) => Self::from_object(object).map_err(D::Error::custom)?,
            _ => None,
        };
        decision.ok_or_else(|| D::Error::custom(format_args!("unknown decision {shown}")))
    }
}

/// The answer to a question of an MCP server to the user.
///
/// It is read as a word in any case, bare or as `{"action": …}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub enum ElicitationDecision {
    /// The user answered.
    Accept,
    /// The user declined.
    Decline,
    /// The user cancelled.
    Cancel,
}

impl<'de> Deserialize<'de> for ElicitationDecision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let word = value.get("action").unwrap_or(&value).as_str().unwrap_or_default();
        if same_word(word, &["accept"]) {
            Ok(Self::Accept)
        } else if same_word(word, &["decline"]) {
            Ok(Self::Decline)
        } else if same_word(word, &["cancel"]) {
            Ok(Self::Cancel)
        } else {
            Err(D::Error::custom(format_args!("unknown decision {value}, expected accept, decline or cancel")))
        }
    }
}
