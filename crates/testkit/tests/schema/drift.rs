//! Generated files match the types.
//!
//! After a type or a table has changed, one command regenerates everything: `UPDATE_EXPECT=1 cargo test -p
//! codex-testkit --test schema drift`

use codex_dialects::exec::ThreadEvent;
use codex_methods::schema_files::typescript_bundle;
use codex_protocol::schema::Definitions;
use expect_test::{ExpectFile, expect_file};
use serde_json::Value;

use crate::methods;

fn bundle() -> Value {
    crate::bundle::bundle::<ThreadEvent>()
}

#[track_caller]
fn check(file: ExpectFile, written: &str) {
    let stored = file.data();
    if stored != written && std::env::var_os("UPDATE_EXPECT").is_none() {
        let place = stored.lines().zip(written.lines()).position(|(old, new)| old != new);
        let name = file.path.display();
        panic!(
            "{name} is not what the types say, from line {}. Write it anew with\n    \
             UPDATE_EXPECT=1 cargo test -p codex-testkit --test schema drift",
            place.unwrap_or_default() + 1
        );
    }
    file.assert_eq(written);
}

/// JSON with one definition per line: small, and a change of one type is a change of one line.
fn one_a_line(bundle: &Value) -> String {
    let definitions = |of: &Value, inner: &dyn Fn(&str, &Value) -> String| -> String {
        let lines = of
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, of)| format!("{}:{}", Value::from(name.as_str()), inner(name, of)));
        format!("{{\n{}\n}}", lines.collect::<Vec<_>>().join(",\n"))
    };
    let plain = |_: &str, of: &Value| of.to_string();
    let spaces = |name: &str, of: &Value| match name {
        "v2" | "exec" => definitions(of, &plain),
        _ => of.to_string(),
    };
    let top = |name: &str, of: &Value| match name {
        "definitions" => definitions(of, &spaces),
        _ => of.to_string(),
    };
    definitions(bundle, &top) + "\n"
}

#[test]
fn the_bundle_matches_the_types() {
    let text = one_a_line(&bundle());
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), bundle());
    check(expect_file!["../../../../schema/codex_app_server_protocol.schemas.json"], &text);
}

#[test]
fn typescript_matches_the_types() {
    let text = typescript_bundle(&Definitions::of(&bundle()));
    check(expect_file!["../../../../schema/codex_app_server_protocol.ts"], &text);
}

#[test]
fn the_document_of_methods_matches_the_table() {
    check(expect_file!["../../../../docs/methods.md"], &methods::page(&bundle()));
}
