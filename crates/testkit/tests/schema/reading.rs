//! Messages that a schema allows a client to send are accepted.

use codex_protocol::methods::{ClientRequest, METHODS};
use codex_protocol::schema::Definitions;
use codex_protocol::v2::account::AuthTokensLogin;
use codex_protocol::v2::permission_request::PermissionsRequestApprovalResponse;
use codex_protocol::v2::request::{ApprovalResponse, McpElicitationResponse};
use codex_wire::dynamic_tool::DynamicToolCallResponse;
use codex_wire::op::{Op, Submission};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::shapes::{Checker, Drawing};

/// The number of values generated for each message.
const DRAWN: u64 = 200;

/// Generates values that match a definition.
fn each_of(definitions: &Definitions, schema: &Value, mut check: impl FnMut(Value)) {
    for seed in 0..DRAWN {
        let mut drawing = Drawing { definitions, chance: fastrand::Rng::with_seed(seed) };
        check(drawing.draw(schema, 0));
    }
}

#[test]
fn every_request_that_the_schema_allows_is_read() {
    let definitions = Definitions::built_in().unwrap();
    let requests = definitions.get("ClientRequest").unwrap()["oneOf"].as_array().unwrap();
    assert_eq!(requests.len(), METHODS.len());
    let mut checker = Checker::built_in();
    for request in requests {
        each_of(&definitions, request, |message| {
            assert_eq!(checker.complaint("ClientRequest", &message), None, "{message}");
            let method = message["method"].as_str().unwrap();
            let params = message.get("params").map(|params| RawValue::from_string(params.to_string()).unwrap());
            let read = ClientRequest::read(method, params.as_deref());
            assert!(read.is_ok(), "{}\n{message}", read.unwrap_err().message);
        });
    }
}

#[test]
fn every_submission_that_the_schema_allows_is_read() {
    let definitions = Definitions::built_in().unwrap();
    let mut kinds = std::collections::BTreeSet::new();
    each_of(&definitions, definitions.get("Submission").unwrap(), |submission| {
        let read: Submission =
            serde_json::from_value(submission.clone()).unwrap_or_else(|error| panic!("{error}\n{submission}"));
        assert!(!matches!(read.op, Op::Other(_)), "{submission}");
        kinds.insert(read.op.kind().to_owned());
    });
    assert_eq!(kinds.len(), Op::KINDS.len(), "{kinds:?}");
}

#[test]
fn every_answer_that_the_schema_allows_is_read() {
    let definitions = Definitions::built_in().unwrap();
    for request in definitions.get("ServerRequest").unwrap()["oneOf"].as_array().unwrap() {
        let method = request["properties"]["method"]["enum"][0].as_str().unwrap();
        each_of(&definitions, &request["x-response"], |answer| {
            let read = match method {
                "account/chatgptAuthTokens/refresh" => serde_json::from_value::<AuthTokensLogin>(answer.clone()).err(),
                "mcpServer/elicitation/request" => {
                    serde_json::from_value::<McpElicitationResponse>(answer.clone()).err()
                }
                "item/tool/call" => serde_json::from_value::<DynamicToolCallResponse>(answer.clone()).err(),
                "item/permissions/requestApproval" => {
                    serde_json::from_value::<PermissionsRequestApprovalResponse>(answer.clone()).err()
                }
                _ => serde_json::from_value::<ApprovalResponse>(answer.clone()).err(),
            };
            assert!(read.is_none(), "{method}: {read:?}\n{answer}");
        });
    }
}
