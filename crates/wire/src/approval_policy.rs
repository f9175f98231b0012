//! When a person is asked before something is done.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;

use crate::forms::{UnknownWord, same_word};

/// The policy for asking before acting: a word, or `{"granular": {…}}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "kebab-case")]
pub enum AskForApproval {
    /// Only commands that are known to be safe run without approval.
    #[serde(rename = "untrusted")]
    UnlessTrusted,
    /// Everything runs in the sandbox; a command that fails there may run outside after approval.
    OnFailure,
    /// The model requests approval when it needs more than the sandbox allows.
    OnRequest,
    /// Nothing is asked; failures are returned to the model.
    Never,
    /// As `on-request`, with each kind of question switched on or off.
    Granular(GranularApproval),
}

/// The kinds of questions that are asked. Anything that would need a question of another kind is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the wire")]
pub struct GranularApproval {
    /// See [`ApprovalKind::Sandbox`].
    #[serde(alias = "sandboxApproval")]
    pub sandbox_approval: bool,
    /// See [`ApprovalKind::Rules`].
    pub rules: bool,
    /// Scripts of skills, about which this release never asks.
    #[serde(default, alias = "skillApproval")]
    pub skill_approval: bool,
    /// See [`ApprovalKind::Permissions`].
    #[serde(default, alias = "requestPermissions")]
    pub request_permissions: bool,
    /// See [`ApprovalKind::Mcp`].
    #[serde(alias = "mcpElicitations")]
    pub mcp_elicitations: bool,
}

/// A kind of question that a policy can switch off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalKind {
    /// Commands and patches that the sandbox does not allow, or that look dangerous.
    Sandbox,
    /// Commands that a rule wants asked about.
    Rules,
    /// The tool that requests permissions.
    Permissions,
    /// Calls and questions of MCP servers.
    Mcp,
}

impl AskForApproval {
    /// The words that are policies.
    const WORDS: [(&str, Self); 4] = [
        ("untrusted", Self::UnlessTrusted),
        ("on-failure", Self::OnFailure),
        ("on-request", Self::OnRequest),
        ("never", Self::Never),
    ];

    /// The name of the policy, without its switches.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::UnlessTrusted => "untrusted",
            Self::OnFailure => "on-failure",
            Self::OnRequest => "on-request",
            Self::Never => "never",
            Self::Granular(_) => "granular",
        }
    }

    /// Whether the model decides what it asks for.
    #[must_use]
    pub const fn is_on_request(self) -> bool {
        matches!(self, Self::OnRequest | Self::Granular(_))
    }

    /// The reason why nobody is asked a question of this kind; `None` if somebody is.
    #[must_use]
    pub const fn silence(self, kind: ApprovalKind) -> Option<&'static str> {
        let asked = match self {
            Self::Never => return Some("the approval policy is `never`"),
            Self::UnlessTrusted | Self::OnFailure | Self::OnRequest => return None,
            Self::Granular(asked) => asked,
        };
        match kind {
            ApprovalKind::Sandbox if !asked.sandbox_approval => {
                Some("`sandbox_approval` is off in the approval policy")
            }
            ApprovalKind::Rules if !asked.rules => Some("`rules` is off in the approval policy"),
            ApprovalKind::Permissions if !asked.request_permissions => {
                Some("`request_permissions` is off in the approval policy")
            }
            ApprovalKind::Mcp if !asked.mcp_elicitations => Some("`mcp_elicitations` is off in the approval policy"),
            ApprovalKind::Sandbox | ApprovalKind::Rules | ApprovalKind::Permissions | ApprovalKind::Mcp => None,
        }
    }

    /// The stricter of both. Of two granular policies, what both ask about.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        let rank = |policy| match policy {
            Self::Never => 0,
            Self::OnFailure => 1,
            Self::OnRequest => 2,
            Self::Granular(_) => 3,
            Self::UnlessTrusted => 4,
        };
        match (self, other) {
            (Self::Granular(one), Self::Granular(other)) => Self::Granular(one.and(other)),
            (one, other) if rank(other) > rank(one) => other,
            (one, _) => one,
        }
    }
}

impl GranularApproval {
    /// The switches with their names, in the order in which they are written.
    #[must_use]
    pub const fn switches(self) -> [(&'static str, bool); 5] {
        [
            ("sandbox_approval", self.sandbox_approval),
            ("rules", self.rules),
            ("skill_approval", self.skill_approval),
            ("request_permissions", self.request_permissions),
            ("mcp_elicitations", self.mcp_elicitations),
        ]
    }

    const fn and(self, other: Self) -> Self {
        Self {
            sandbox_approval: self.sandbox_approval && other.sandbox_approval,
            rules: self.rules && other.rules,
            skill_approval: self.skill_approval && other.skill_approval,
            request_permissions: self.request_permissions && other.request_permissions,
            mcp_elicitations: self.mcp_elicitations && other.mcp_elicitations,
        }
    }
}

impl FromStr for AskForApproval {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let word = if same_word(word, &["unless-trusted"]) { "untrusted" } else { word };
        let found = Self::WORDS.iter().find(|(known, _)| same_word(word, &[known]));
        found
            .map(|(_, policy)| *policy)
            .ok_or_else(|| UnknownWord::new(word, &["untrusted", "on-failure", "on-request", "never"]))
    }
}

impl fmt::Display for AskForApproval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for AskForApproval {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Form {
            granular: GranularApproval,
        }
        match Value::deserialize(deserializer)? {
            Value::String(word) => word.parse().map_err(D::Error::custom),
            form @ Value::Object(_) => {
                serde_json::from_value(form).map(|form: Form| Self::Granular(form.granular)).map_err(D::Error::custom)
            }
            _ => Err(D::Error::custom("expected an approval policy: a word, or an object with `granular`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn granular(sandbox_approval: bool, rules: bool) -> AskForApproval {
        AskForApproval::Granular(GranularApproval {
            sandbox_approval,
            rules,
            skill_approval: false,
            request_permissions: false,
            mcp_elicitations: true,
        })
    }

    #[test]
    fn a_granular_policy_is_written_with_all_its_switches() {
        let read = json!({"granular": {"sandbox_approval": true, "rules": false, "mcp_elicitations": true}});
        let policy: AskForApproval = serde_json::from_value(read).unwrap();
        assert_eq!(policy, granular(true, false));
        assert_eq!(
            serde_json::to_value(policy).unwrap(),
            json!({"granular": {"sandbox_approval": true, "rules": false, "skill_approval": false,
                "request_permissions": false, "mcp_elicitations": true}})
        );
    }

    #[test]
    fn a_policy_that_is_none_says_what_is_wrong() {
        let wrong = |value| serde_json::from_value::<AskForApproval>(value).unwrap_err().to_string();
        assert_eq!(
            wrong(json!({"granular": {"sandbox_approval": true, "mcp_elicitations": true}})),
            "missing field `rules`"
        );
        assert_eq!(wrong(json!({"other": {}})), "missing field `granular`");
        assert_eq!(wrong(json!(7)), "expected an approval policy: a word, or an object with `granular`");
        assert_eq!(
            wrong(json!("granular")),
            "unknown value `granular`, expected one of untrusted, on-failure, on-request, never"
        );
    }

    #[test]
    fn each_switch_silences_its_own_kind() {
        let of = |policy: AskForApproval| {
            [ApprovalKind::Sandbox, ApprovalKind::Rules, ApprovalKind::Permissions, ApprovalKind::Mcp]
                .map(|kind| policy.silence(kind).is_none())
        };
        assert_eq!(of(granular(true, false)), [true, false, false, true]);
        assert_eq!(of(granular(false, true)), [false, true, false, true]);
        assert_eq!(of(AskForApproval::Never), [false; 4]);
        assert_eq!(of(AskForApproval::OnRequest), [true; 4]);
    }

    #[test]
    fn two_granular_policies_ask_about_what_both_ask_about() {
        assert_eq!(granular(true, false).stricter(granular(false, true)), granular(false, false));
        assert_eq!(AskForApproval::OnRequest.stricter(granular(true, true)), granular(true, true));
        assert_eq!(granular(true, true).stricter(AskForApproval::UnlessTrusted), AskForApproval::UnlessTrusted);
    }
}
