//! The wire output of a fake model.

#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes its snapshots with them")]
#![expect(clippy::unwrap_used, reason = "the lint takes only the tests themselves for tests, not what they call")]

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use codex_testkit::{FakeModel, Options};
use expect_test::{Expect, expect};

const CLOSING: Options = Options { piece: None, keep_alive: false, websockets: false };

/// Sends one request to a model that closes the connection after its response, and prints the response.
#[track_caller]
fn check(script: &str, request: &str, body: &str, expected: Expect) {
    let model = FakeModel::with(CLOSING, script);
    let mut stream = TcpStream::connect(model.url().strip_prefix("http://").unwrap()).unwrap();
    write!(stream, "{request} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    expected.assert_eq(&answer.replace('\r', ""));
}

#[test]
fn streams_events() {
    check(
        r#"[{"items": [{"event": {"type": "x"}}, {"event": {"y": 1}}], "end": "cut", "headers": {"x-a": 5}}]"#,
        "POST /v1/responses?q=1",
        "{}",
        expect![[r#"
            HTTP/1.1 200 Fake
            content-type: text/event-stream
            connection: close
            x-a: 5

            event: response.created
            data: {"type":"response.created","response":{"id":"resp-1"}}

            event: x
            data: {"type":"x"}

            data: {"y":1}

        "#]],
    );
}

#[test]
fn answers_plainly() {
    check(
        r#"[{"status": 418, "body": "teapot"}]"#,
        "POST /responses",
        "not json",
        expect![[r#"
            HTTP/1.1 418 Fake
            content-type: application/json
            connection: close
            content-length: 6

            teapot"#]],
    );
}

#[test]
fn lists_models_and_knows_nothing_else() {
    check(
        "[]",
        "GET /v1/models",
        "",
        expect![[r#"
            HTTP/1.1 200 Fake
            content-type: application/json
            connection: close
            content-length: 75

            {"object":"list","data":[{"id":"mock-model","object":"model"}],"models":[]}"#]],
    );
    check(
        "[]",
        "POST /v1/completions",
        "{}",
        expect![[r#"
            HTTP/1.1 404 Fake
            content-type: application/json
            connection: close
            content-length: 33

            {"error":{"message":"not found"}}"#]],
    );
}
