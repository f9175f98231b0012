//! Every value survives an encoding round trip, and matches the schema of its type.

use std::fmt::Debug;
use std::sync::LazyLock;

use codex_protocol::v2::account::{Account, LoginAccountParams, LoginAccountResponse};
use codex_protocol::v2::config::ConfigLayerSource;
use codex_wire::agent::{InboxMessage, SubagentCompletion};
use codex_wire::change::FileChange;
use codex_wire::command::ParsedCommand;
use codex_wire::decision::{ElicitationDecision, ReviewDecision};
use codex_wire::error_info::CodexErrorInfo;
use codex_wire::event::{Event, EventMsg, SubagentLifecycleEvent, TurnItem};
use codex_wire::history::{HistoryEntry, HistoryLine};
use codex_wire::input::UserInput;
use codex_wire::mcp::McpStartupStatus;
use codex_wire::op::{Op, Submission};
use codex_wire::policy::{AskForApproval, SandboxPolicy};
use codex_wire::reasoning::{ReasoningEffort, ReasoningSummary, Verbosity};
use codex_wire::response::ResponseItem;
use codex_wire::review::ReviewTarget;
use codex_wire::rollout::{RolloutLine, SessionSource};
use codex_wire::schema::{opened, read_form, written_form};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use serde::Serialize;
use serde::de::DeserializeOwned;

fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) -> Result<(), TestCaseError> {
    let text = serde_json::to_string(value)?;
    let object = serde_json::to_value(value)?;
    // Text that repeats a member would still decode, so the two ways to encode are compared as well.
    prop_assert_eq!(&serde_json::to_string(&object)?, &text);
    prop_assert_eq!(&serde_json::from_str::<T>(&text)?, value, "{}", text);
    prop_assert_eq!(&serde_json::from_value::<T>(object)?, value, "{}", text);
    Ok(())
}

/// The two schemas of a type.
struct Schemas {
    known: boon::Schemas,
    forms: [boon::SchemaIndex; 2],
}

impl Schemas {
    fn of<T: schemars::JsonSchema>() -> Self {
        let mut known = boon::Schemas::new();
        let mut compiler = boon::Compiler::new();
        let forms = [("read", read_form::<T>()), ("written", written_form::<T>())].map(|(name, form)| {
            let place = format!("http://test/{name}.json");
            compiler.add_resource(&place, opened(form)).unwrap();
            compiler.compile(&place, &mut known).unwrap()
        });
        Self { known, forms }
    }

    /// The encoded value matches the schema for writing, and may be sent back.
    fn check(&self, value: &impl Serialize) -> Result<(), TestCaseError> {
        let value = serde_json::to_value(value)?;
        for form in self.forms {
            let fits = self.known.validate(&value, form);
            prop_assert!(fits.is_ok(), "{}\n{value}", fits.err().map(|error| error.to_string()).unwrap_or_default());
        }
        Ok(())
    }
}

/// Defines one test per type that generates any of its values.
macro_rules! round_trips {
    ($($name:ident: $type:ty),* $(,)?) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(128))]
            $( #[test] fn $name(value in any::<$type>()) { check(&value)?; } )*
        }
    };
}

/// Defines the same for a type with a schema.
macro_rules! described_round_trips {
    ($($name:ident: $type:ty),* $(,)?) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(128))]
            $(
                #[test]
                fn $name(value in any::<$type>()) {
                    static SCHEMAS: LazyLock<Schemas> = LazyLock::new(Schemas::of::<$type>);
                    check(&value)?;
                    SCHEMAS.check(&value)?;
                }
            )*
        }
    };
}

/// Defines one test per type that generates each of its variants in turn.
macro_rules! round_trips_by_kind {
    ($($name:ident: $type:ty),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                let kinds = <$type>::each_kind();
                let schemas = Schemas::of::<$type>();
                assert_eq!(kinds.len(), <$type>::KINDS.len() + 1);
                for (kind, strategy) in kinds.into_iter().enumerate() {
                    let drawn = TestRunner::new(ProptestConfig::with_cases(24)).run(&strategy, |value| {
                        schemas.check(&value)?;
                        check(&value)
                    });
                    assert!(drawn.is_ok(), "{:?}: {drawn:?}", <$type>::KINDS.get(kind));
                }
            }
        )*
    };
}

round_trips_by_kind! {
    op: Op,
    event_msg: EventMsg,
    response_item: ResponseItem,
    turn_item: TurnItem,
    parsed_command: ParsedCommand,
    review_target: ReviewTarget,
    mcp_startup_status: McpStartupStatus,
    subagent_lifecycle: SubagentLifecycleEvent,
    account: Account,
    login_account_params: LoginAccountParams,
    login_account_response: LoginAccountResponse,
    config_layer_source: ConfigLayerSource,
}

described_round_trips! {
    submission: Submission,
    event: Event,
    user_input: UserInput,
    sandbox_policy: SandboxPolicy,
    ask_for_approval: AskForApproval,
    review_decision: ReviewDecision,
    elicitation_decision: ElicitationDecision,
    file_change: FileChange,
    codex_error_info: CodexErrorInfo,
    history_entry: HistoryEntry,
    reasoning_effort: ReasoningEffort,
    reasoning_summary: ReasoningSummary,
    verbosity: Verbosity,
}

round_trips! {
    rollout_line: RolloutLine,
    session_source: SessionSource,
    subagent_completion: SubagentCompletion,
    inbox_message: InboxMessage,
    history_line: HistoryLine,
}

#[test]
fn values_outside_a_schema_are_noticed() {
    let schemas = Schemas::of::<Submission>();
    let fits = |op: serde_json::Value| schemas.check(&serde_json::json!({"id": "1", "op": op})).is_ok();
    assert!(fits(serde_json::json!({"type": "interrupt"})));
    assert!(fits(serde_json::json!({"type": "from_the_future", "x": 1})), "a new kind");
    assert!(!fits(serde_json::json!({"type": "add_to_history"})), "a known kind that lacks a member");
    assert!(!fits(serde_json::json!({"type": "add_to_history", "text": 1})), "a member of the wrong kind");
    assert!(!fits(serde_json::json!("interrupt")));
}
