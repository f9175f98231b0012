//! What is encoded decodes to the same value, whatever the value.

use std::fmt::Debug;

use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::agent::{InboxMessage, SubagentCompletion};
use crate::change::FileChange;
use crate::command::ParsedCommand;
use crate::decision::{ElicitationDecision, ReviewDecision};
use crate::error_info::CodexErrorInfo;
use crate::event::{Event, EventMsg, SubagentLifecycleEvent, TurnItem};
use crate::history::{HistoryEntry, HistoryLine};
use crate::input::UserInput;
use crate::mcp::McpStartupStatus;
use crate::op::{Op, Submission};
use crate::policy::{AskForApproval, SandboxPolicy};
use crate::reasoning::{ReasoningEffort, ReasoningSummary, Verbosity};
use crate::response::ResponseItem;
use crate::review::ReviewTarget;
use crate::rollout::{InitialHistory, RolloutLine, SessionSource};
use crate::v2::account::{Account, LoginAccountParams, LoginAccountResponse};
use crate::v2::config::ConfigLayerSource;

fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) -> Result<(), TestCaseError> {
    let text = serde_json::to_string(value)?;
    let object = serde_json::to_value(value)?;
    // Text that repeats a member would still decode, so the two ways to encode are compared as well.
    prop_assert_eq!(&serde_json::to_string(&object)?, &text);
    prop_assert_eq!(&serde_json::from_str::<T>(&text)?, value, "{}", text);
    prop_assert_eq!(&serde_json::from_value::<T>(object)?, value, "{}", text);
    Ok(())
}

/// Writes one test a type that draws from all its values.
macro_rules! round_trips {
    ($($name:ident: $type:ty),* $(,)?) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(128))]
            $( #[test] fn $name(value in any::<$type>()) { check(&value)?; } )*
        }
    };
}

/// Writes one test a type that draws from each of its kinds in turn.
macro_rules! round_trips_by_kind {
    ($($name:ident: $type:ty),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                let kinds = <$type>::each_kind();
                assert_eq!(kinds.len(), <$type>::KINDS.len() + 1);
                for (kind, strategy) in kinds.into_iter().enumerate() {
                    let drawn = TestRunner::new(ProptestConfig::with_cases(24)).run(&strategy, |value| check(&value));
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

round_trips! {
    submission: Submission,
    event: Event,
    rollout_line: RolloutLine,
    session_source: SessionSource,
    user_input: UserInput,
    sandbox_policy: SandboxPolicy,
    ask_for_approval: AskForApproval,
    review_decision: ReviewDecision,
    elicitation_decision: ElicitationDecision,
    file_change: FileChange,
    codex_error_info: CodexErrorInfo,
    subagent_completion: SubagentCompletion,
    inbox_message: InboxMessage,
    history_entry: HistoryEntry,
    history_line: HistoryLine,
    reasoning_effort: ReasoningEffort,
    reasoning_summary: ReasoningSummary,
    verbosity: Verbosity,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn initial_history(value in any::<InitialHistory>()) {
        check(&value)?;
    }
}
