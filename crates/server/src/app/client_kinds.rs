//! Who a client is, as far as it says so: one table of the kinds of clients, how each is recognised, and what follows.
//!
//! `docs/compatibility.md` contains the table; a test compares the two.

use codex_dialects::ProtocolRelease;
use codex_dialects::event_filter::{ApprovalForms, ClientTraits, Dialect};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A sign that a client is of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// `clientInfo.name`.
    Name(&'static str),
    /// A policy in camelCase, and no capabilities.
    OldPolicy,
    /// A policy in camelCase, which newer releases refuse, and capabilities, which older ones do not know.
    OldPolicyAndCapabilities,
    /// Capabilities in `initialize`.
    Capabilities,
    /// None of these.
    Nothing,
}

/// A kind of client.
#[derive(Debug)]
struct ClientKind {
    sign: Sign,
    /// The releases that such clients were written for.
    #[cfg_attr(not(test), expect(dead_code, reason = "only the page says it"))]
    age: &'static str,
    /// The release whose behaviour they get.
    release: ProtocolRelease,
    dialect: Option<Dialect>,
    /// Whether they get `codex/event/*` in addition to notifications.
    has_events: bool,
    /// The approval requests that they answer; `None` if that follows from the methods that they use.
    approvals: Option<ApprovalForms>,
    /// Whether they stop at members that are `null`.
    leaves_out_null: bool,
}

const NO_SIGN: ClientKind = ClientKind {
    sign: Sign::Nothing,
    age: "0.39–0.55 and 0.69–0.117",
    release: ProtocolRelease::V077,
    dialect: None,
    has_events: true,
    approvals: None,
    leaves_out_null: false,
};

const WITH_CAPABILITIES: ClientKind = ClientKind {
    sign: Sign::Capabilities,
    age: "0.118 and later",
    release: ProtocolRelease::V0166,
    has_events: false,
    ..NO_SIGN
};

const OLD_POLICY: ClientKind = ClientKind {
    sign: Sign::OldPolicy,
    age: "0.56–0.68",
    release: ProtocolRelease::V058,
    approvals: Some(ApprovalForms::V1),
    ..NO_SIGN
};

/// All kinds. The first row that fits decides.
const KINDS: &[ClientKind] = &[
    ClientKind {
        sign: Sign::Name("jetbrains-codex"),
        age: "a description of 0.56–0.58",
        release: ProtocolRelease::V077,
        dialect: Some(Dialect::Items),
        leaves_out_null: true,
        ..OLD_POLICY
    },
    ClientKind {
        sign: Sign::OldPolicyAndCapabilities,
        age: "unknown",
        approvals: Some(ApprovalForms::Both),
        ..WITH_CAPABILITIES
    },
    OLD_POLICY,
    WITH_CAPABILITIES,
    NO_SIGN,
];

/// The signs of a client.
#[derive(Debug)]
pub(crate) struct Signs<'a> {
    /// The release that the server was told to match.
    pub(crate) emulate: Option<ProtocolRelease>,
    /// The release that the server matches for a client that gives no sign.
    pub(crate) default: ProtocolRelease,
    /// The dialect that the server was told to use, or that the client has chosen.
    pub(crate) dialect: Option<Dialect>,
    pub(crate) name: &'a str,
    pub(crate) has_capabilities: bool,
    /// Whether a policy of a request was in camelCase.
    pub(crate) has_old_policy: bool,
}

impl Signs<'_> {
    /// The traits of the client. The options of the server decide first, then the client's choice, its name, and its
    /// policies.
    pub(crate) fn traits(&self) -> ClientTraits {
        let named = KINDS.iter().find(|kind| matches!(kind.sign, Sign::Name(name) if name == self.name));
        let kind = match (self.emulate, self.dialect) {
            (Some(release), _) => of_release(release),
            (None, Some(_)) => self.by_requests(),
            (None, None) => named.unwrap_or_else(|| self.by_requests()),
        };
        let dialect = self.dialect.or(kind.dialect);
        // A kind that is known by its name is never asked in a form that it does not answer.
        let approvals = match (named.and_then(|kind| kind.approvals), self.dialect) {
            (Some(forms), _) => Some(forms),
            (None, Some(_)) => None,
            (None, None) => kind.approvals,
        };
        ClientTraits {
            release: self.release(kind),
            dialect,
            has_events: kind.has_events,
            approvals,
            leaves_out_null: dialect == Some(Dialect::Items) || named.is_some_and(|kind| kind.leaves_out_null),
        }
    }

    fn by_requests(&self) -> &'static ClientKind {
        let sign = match (self.has_old_policy, self.has_capabilities) {
            (true, true) => Sign::OldPolicyAndCapabilities,
            (true, false) => Sign::OldPolicy,
            (false, true) => Sign::Capabilities,
            (false, false) => Sign::Nothing,
        };
        kind_of(sign).unwrap_or(&NO_SIGN)
    }

    fn release(&self, kind: &ClientKind) -> ProtocolRelease {
        match (self.emulate, self.dialect) {
            (Some(release), _) => release,
            // The last release with these events.
            (None, Some(Dialect::V1 | Dialect::Both | Dialect::Items)) => ProtocolRelease::V077,
            (None, Some(Dialect::V2) | None) if kind.sign == Sign::Nothing => self.default,
            (None, Some(Dialect::V2) | None) => kind.release,
        }
    }
}

fn kind_of(sign: Sign) -> Option<&'static ClientKind> {
    KINDS.iter().find(|kind| kind.sign == sign)
}

/// The clients of a release.
fn of_release(release: ProtocolRelease) -> &'static ClientKind {
    match release {
        ProtocolRelease::V058 => &OLD_POLICY,
        ProtocolRelease::V077 => &NO_SIGN,
        ProtocolRelease::V0166 => &WITH_CAPABILITIES,
    }
}

/// The spelling of the policies of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PolicySpelling {
    /// As in 0.56–0.68: `onRequest`, `workspaceWrite`.
    CamelCase,
    /// As in all other releases: `on-request`, `workspace-write`.
    KebabCase,
}

/// The policies of a request, by their names alone. The type of a sandbox policy is in camelCase in every release, so
/// it says nothing.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Policies<'a> {
    #[serde(borrow, default)]
    approval_policy: Option<&'a RawValue>,
    #[serde(borrow, default)]
    sandbox: Option<&'a RawValue>,
}

impl PolicySpelling {
    /// The spelling of the policies in the parameters of a request; `None` if it has none, or only words that are
    /// spelled alike in all releases.
    pub(crate) fn of(params: Option<&RawValue>) -> Option<Self> {
        let policies: Policies<'_> = serde_json::from_str(params?.get()).ok()?;
        let words = [policies.approval_policy, policies.sandbox].into_iter().flatten();
        let words: Vec<&str> = words.filter_map(|word| serde_json::from_str(word.get()).ok()).collect();
        if words.iter().any(|word| word.contains(char::is_uppercase)) {
            Some(Self::CamelCase)
        } else {
            words.iter().any(|word| word.contains('-')).then_some(Self::KebabCase)
        }
    }
}

#[cfg(test)]
mod tests;
