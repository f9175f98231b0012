use expect_test::{Expect, expect};
use serde_json::json;

use super::*;

fn schema() -> Value {
    json!({"type": "object", "required": ["name", "size", "colours"], "properties": {
        "name": {"type": "string", "title": "Your\u{202e} name", "minLength": 2, "maxLength": 5},
        "mail": {"type": "string", "format": "email"},
        "age": {"type": "integer", "minimum": 0, "maximum": 150, "default": 30},
        "ratio": {"type": "number"},
        "sure": {"type": "boolean", "default": true},
        "size": {"type": "string", "enum": ["s", "m"], "enumNames": ["Small", "Medium"], "default": "m"},
        "colours": {"type": "array", "minItems": 1, "maxItems": 2,
            "items": {"anyOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}, {"const": "b"}]}},
    }})
}

fn press(form: &mut Form, keys: &[Key]) -> FormKey {
    keys.iter().fold(FormKey::Ignored, |_, key| form.press(key))
}

fn type_text(form: &mut Form, text: &str) {
    for c in text.chars() {
        form.press(&Key::Char(c));
    }
}

#[track_caller]
fn check(form: &Form, expected: Expect) {
    let text = |row: &Row| row.iter().map(|span| span.text.as_str()).collect::<String>();
    let lines: Vec<String> = form.lines().0.iter().map(|row| text(row).trim_end().to_owned()).collect();
    expected.assert_eq(&(lines.join("\n") + "\n"));
}

#[test]
fn every_kind_of_field_is_filled_in() {
    let mut form = from_schema(&schema()).unwrap();
    let tab = Key::Char('\t');
    type_text(&mut form, "Ada");
    press(&mut form, &[Key::Enter]);
    type_text(&mut form, "ada@example.org");
    press(&mut form, &[Key::Enter, Key::Ctrl('u')]);
    type_text(&mut form, "36");
    press(&mut form, std::slice::from_ref(&tab));
    type_text(&mut form, "0.5");
    press(&mut form, &[tab.clone(), Key::Char(' '), tab.clone(), Key::Char('1'), tab.clone()]);
    press(&mut form, &[Key::Char(' '), Key::Down, Key::Down, Key::Char(' ')]);
    check(
        &form,
        expect![[r#"
              Your\u{202e} name (required)
                > Ada
              mail · an e-mail address
                > ada@example.org
              age · a whole number, at least 0.0, at most 150.0
                > 36
              ratio · a number
                > 0.5
              sure · y or n
                [ ] no
              size (required) · Space or a number chooses one
                (•) 1. Small
                ( ) 2. Medium
            » colours (required) · Space or a number chooses
                [x] 1. Red
                [ ] 2. Green
                [x] 3. b
              [ Send ]  [ Decline ]
        "#]],
    );
    assert_eq!(press(&mut form, &[tab, Key::Enter]), FormKey::Send);
    assert_eq!(
        form.answer(),
        json!({"name": "Ada", "mail": "ada@example.org", "age": 36, "ratio": 0.5, "sure": false, "size": "s",
            "colours": ["r", "b"]})
    );
}

#[test]
fn nothing_is_sent_that_the_schema_does_not_allow() {
    let mut form = from_schema(&schema()).unwrap();
    for _ in 0..7 {
        form.press(&Key::Char('\t'));
    }
    assert_eq!(press(&mut form, &[Key::Enter]), FormKey::Changed, "a name is required");
    assert_eq!(form.at, 0);
    for (text, problem) in [("A", "at least 2 characters"), ("Adamant", "at most 5 characters")] {
        type_text(&mut form, text);
        press(&mut form, &[Key::Enter]);
        assert_eq!(form.problem.as_deref(), Some(problem));
        press(&mut form, &[Key::Ctrl('u')]);
    }
    type_text(&mut form, "Ada");
    for (field, text, problem) in [
        (1, "ada", "this is not an e-mail address"),
        (2, "1.5", "this is not a whole number"),
        (2, "151", "at most 150"),
        (3, "x", "this is not a number"),
    ] {
        form.at = field;
        press(&mut form, &[Key::Ctrl('u')]);
        type_text(&mut form, text);
        press(&mut form, &[Key::Enter]);
        assert_eq!(form.problem.as_deref(), Some(problem), "{text}");
        press(&mut form, &[Key::Ctrl('u')]);
    }
    form.at = 7;
    assert_eq!(press(&mut form, &[Key::Enter]), FormKey::Changed);
    assert_eq!((form.at, form.problem.as_deref()), (6, Some("choose at least 1")));
    press(&mut form, &[Key::Char('1'), Key::Char('2'), Key::Char('3'), Key::Enter]);
    assert_eq!(form.problem.as_deref(), Some("choose at most 2"));
    form.at = 8;
    assert_eq!(press(&mut form, &[Key::Enter]), FormKey::Decline);
}

#[test]
fn values_that_are_not_needed_are_left_out() {
    let form = from_schema(&json!({"properties": {"a": {"type": "string"}, "b": {"type": "boolean"}}})).unwrap();
    assert_eq!(form.answer(), json!({}));
    let bad = json!({"properties": {"a": {"type": "integer", "default": "x"}, "b": {"enum": ["x"], "default": "y"}}});
    assert_eq!(from_schema(&bad).unwrap().answer(), json!({}), "a default that does not fit is none");
}

#[test]
fn what_cannot_be_entered_has_no_form() {
    for schema in [
        json!({"properties": {"a": {"type": "object"}}}),
        json!({"properties": {"a": {"type": "array", "items": {"type": "string"}}}}),
        json!({"properties": {}}),
        json!({"properties": 1}),
        json!(null),
    ] {
        assert!(from_schema(&schema).is_none(), "{schema}");
    }
    let many: Map<String, Value> = (0..65).map(|number| (format!("f{number}"), json!({"type": "string"}))).collect();
    assert!(from_schema(&json!({"properties": many})).is_none());
}

#[test]
fn a_model_asks_with_choices_texts_and_secrets() {
    let questions = json!([
        {"id": "db", "header": "Store", "question": "Which?", "isOther": true,
            "options": [{"label": "SQLite", "description": "a file"}, {"label": "Postgres", "description": ""}]},
        {"id": "key", "header": "", "question": "The key?", "isSecret": true},
    ]);
    let mut form = from_questions(&questions).unwrap();
    press(&mut form, &[Key::Down, Key::Down]);
    type_text(&mut form, "a disk");
    press(&mut form, &[Key::Enter]);
    type_text(&mut form, "s3cret");
    check(
        &form,
        expect![[r#"
              Store: Which? (required) · Space or a number chooses one
                ( ) 1. SQLite  a file
                ( ) 2. Postgres
                » other: a disk
            » The key? (required)
                > ••••••▏
              [ Send ]  [ Decline ]
        "#]],
    );
    assert_eq!(press(&mut form, &[Key::Enter, Key::Enter]), FormKey::Send);
    assert_eq!(form.answer(), json!({"answers": {"db": {"answers": ["a disk"]}, "key": {"answers": ["s3cret"]}}}));
    assert!(from_questions(&json!([])).is_none());
    assert!(from_questions(&json!([{"id": "a", "options": [{"label": 1}]}])).is_none());
}

#[test]
fn dates_and_addresses_are_checked() {
    let schema = |format: &str| json!({"properties": {"a": {"type": "string", "format": format}}});
    for (format, text, is_right) in [
        ("date", "2026-11-17", true),
        ("date", "2026-13-17", false),
        ("date-time", "2026-11-17T03:04:05Z", true),
        ("date-time", "2026-11-17T03:04:05.5+01:00", true),
        ("date-time", "2026-11-17 03:04", false),
        ("uri", "https://example.org/x", true),
        ("uri", "example", false),
        ("unknown", "anything", true),
    ] {
        let mut form = from_schema(&schema(format)).unwrap();
        type_text(&mut form, text);
        assert_eq!(form.fields[0].value().is_ok(), is_right, "{format} {text}");
    }
}
