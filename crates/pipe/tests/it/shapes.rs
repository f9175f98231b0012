//! Whether events match the schema that the program prints.

use std::sync::LazyLock;

use codex_protocol::schema::BUNDLE;
use serde_json::Value;

struct Checker {
    schemas: boon::Schemas,
    event: boon::SchemaIndex,
}

static OURS: LazyLock<Checker> = LazyLock::new(|| {
    let (mut compiler, mut schemas) = (boon::Compiler::new(), boon::Schemas::new());
    let bundle = serde_json::from_str(BUNDLE).expect("a bundle is JSON");
    compiler.add_resource("http://test/bundle.json", bundle).expect("a bundle can be added");
    let place = "http://test/bundle.json#/definitions/EventMsg";
    let event = compiler.compile(place, &mut schemas).expect("a definition can be compiled");
    Checker { schemas, event }
});

/// Fails if the message of an event does not match its schema.
#[track_caller]
pub(crate) fn check_event(event: &Value) {
    if let Err(error) = OURS.schemas.validate(&event["msg"], OURS.event) {
        panic!("our schema does not allow this: {event}\n{error:#}");
    }
}

#[test]
#[should_panic(expected = "our schema does not allow this")]
fn an_event_without_its_text_is_noticed() {
    check_event(&serde_json::json!({"msg": {"type": "warning"}}));
}
