use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Applies one edit to a text and prints the text, or the error.
#[track_caller]
fn check(text: &str, key: &str, value: Json, strategy: Merge, expected: Expect) {
    let mut document: DocumentMut = text.parse().unwrap();
    let shown = match apply(&mut document, &KeyPath::parse(key).unwrap(), &value, strategy) {
        Ok(()) => {
            let text = document.to_string();
            text.parse::<DocumentMut>().unwrap_or_else(|error| panic!("{error}\n{text}"));
            text
        }
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&shown);
}

#[track_caller]
fn replace(text: &str, key: &str, value: Json, expected: Expect) {
    check(text, key, value, Merge::Replace, expected);
}

#[track_caller]
fn upsert(text: &str, key: &str, value: Json, expected: Expect) {
    check(text, key, value, Merge::Upsert, expected);
}

const FILE: &str = "# head\nmodel = \"a\" # which\n\n# about t\n[t] # header\nx = 1 # one\ny = { z = 2 }\n";

#[test]
fn a_value_is_changed_in_its_place() {
    replace(
        FILE,
        "model",
        json!("b"),
        expect![[r#"
            # head
            model = "b" # which

            # about t
            [t] # header
            x = 1 # one
            y = { z = 2 }
        "#]],
    );
    replace(
        FILE,
        "t.y.z",
        json!([1, {"a": null, "b": "c"}]),
        expect![[r#"
            # head
            model = "a" # which

            # about t
            [t] # header
            x = 1 # one
            y = { z = [1, { b = "c" }] }
        "#]],
    );
}

#[test]
fn a_key_that_is_missing_is_added_with_its_tables() {
    replace(
        FILE,
        "effort",
        json!("high"),
        expect![[r#"
            # head
            model = "a" # which
            effort = "high"

            # about t
            [t] # header
            x = 1 # one
            y = { z = 2 }
        "#]],
    );
    replace(
        "[t]\nx = 1\n",
        "projects.\"/a/b.c\".trust_level",
        json!("trusted"),
        expect![[r#"
            [t]
            x = 1

            [projects."/a/b.c"]
            trust_level = "trusted"
        "#]],
    );
    replace(
        "",
        "a",
        json!(1.5),
        expect![[r#"
        a = 1.5
    "#]],
    );
    replace(
        "a.b = 1\n",
        "a.c.d",
        json!(2),
        expect![[r#"
        a.b = 1
        a.c = { d = 2 }
    "#]],
    );
    replace(
        "a = { b = 1 }\n",
        "a.c.d",
        json!(2),
        expect![[r#"
        a = { b = 1 , c = { d = 2 } }
    "#]],
    );
}

#[test]
fn objects_become_tables_that_suit_their_place() {
    replace(
        "a = 1\n",
        "t",
        json!({"x": 1, "sub": {"y": [true]}, "empty": {}}),
        expect![[r#"
            a = 1

            [t]
            x = 1

            [t.sub]
            y = [true]

            [t.empty]
        "#]],
    );
    replace(
        "t.x = 1\n",
        "t.y",
        json!({"z": 1}),
        expect![[r#"
        t.x = 1
        t.y = { z = 1 }
    "#]],
    );
    replace(
        "t = 5 # five\n",
        "t",
        json!({"z": 1}),
        expect![[r#"
        t = { z = 1 } # five
    "#]],
    );
}

#[test]
fn replacing_a_table_drops_the_rest_and_upserting_keeps_it() {
    let text = "[t]\n# about x\nx = 1 # one\ny = 2\n[t.sub]\nz = 3\n";
    replace(
        text,
        "t",
        json!({"x": 5, "w": 6}),
        expect![[r#"
        [t]
        # about x
        x = 5 # one
        w = 6
    "#]],
    );
    upsert(
        text,
        "t",
        json!({"x": 5, "w": 6, "y": null, "sub": {"v": 7}}),
        expect![[r#"
        [t]
        # about x
        x = 5 # one
        w = 6
        [t.sub]
        z = 3
        v = 7
    "#]],
    );
    upsert(
        "t = { x = 1 }\n",
        "t",
        json!({"y": 2}),
        expect![[r#"
        t = { x = 1 , y = 2 }
    "#]],
    );
    upsert(
        "t.x = 1\n",
        "t",
        json!({"y": {"z": 2}}),
        expect![[r#"
        t.x = 1
        t.y = { z = 2 }
    "#]],
    );
    upsert(
        "l = [1]\n",
        "l",
        json!([2]),
        expect![[r#"
        l = [2]
    "#]],
    );
}

#[test]
fn a_table_may_become_a_value() {
    replace(
        "a = 1\n[t]\nx = 1\n[u]\n",
        "t",
        json!(3),
        expect![[r#"
        a = 1
        t = 3
        [u]
    "#]],
    );
}

#[test]
fn lists_of_tables_stay_lists_of_tables() {
    let text = "[[h]]\na = 1\n[[h]]\na = 2\n";
    replace(
        text,
        "h",
        json!([{"a": 3}]),
        expect![[r#"
        [[h]]
        a = 3
    "#]],
    );
    replace(
        text,
        "h",
        json!([]),
        expect![[r#"
        h = []
    "#]],
    );
    replace(text, "h.a", json!(1), expect!["h is an array, which has no keys below it"]);
}

#[test]
fn null_removes_and_what_is_not_there_need_not_be_removed() {
    replace(
        "a = 1\nb = 2\n",
        "a",
        json!(null),
        expect![[r#"
        b = 2
    "#]],
    );
    replace(
        "a = 1\n",
        "x.y.z",
        json!(null),
        expect![[r#"
        a = 1
    "#]],
    );
    replace(
        "a = { b = 1, c = 2 }\n",
        "a.b",
        json!(null),
        expect![[r#"
        a = { c = 2 }
    "#]],
    );
    replace(
        "a = 1\n[t]\nx = 1\n",
        "t",
        json!(null),
        expect![[r#"
        a = 1
    "#]],
    );
}

#[test]
fn comments_apart_from_a_removed_key_stay() {
    replace(
        "# head\n\n# about a\na = 1\nb = 2\n",
        "a",
        json!(null),
        expect![[r#"
        # head

        b = 2
    "#]],
    );
    replace(
        "# head\n\na = 1\n\n[t]\nx = 1\n",
        "a",
        json!(null),
        expect![[r#"
        # head

        [t]
        x = 1
    "#]],
    );
}

#[test]
fn a_key_below_a_value_is_refused() {
    replace("a = \"secret\"\n", "a.b.c", json!(1), expect!["a is a string, which has no keys below it"]);
    replace("a = \"secret\"\n", "a.b", json!(null), expect!["a is a string, which has no keys below it"]);
}

#[test]
fn values_that_toml_cannot_hold_are_refused() {
    replace("", "a", json!(u64::MAX), expect!["a: the number is too large"]);
    let deep = (0..MAX_DEPTH).fold(json!(1), |inner, _| json!([inner]));
    check("", "a", deep, Merge::Replace, expect!["a would be nested more than 100 levels deep"]);
}

/// The meaning of an edit, in terms of JSON.
fn model(root: &mut Json, path: &[String], value: &Json, strategy: Merge) -> Result<(), ()> {
    let Some(members) = root.as_object_mut() else { return Err(()) };
    match path {
        [] => Ok(()),
        [name] => {
            match (value, members.get_mut(name), strategy) {
                (Json::Null, _, _) => drop(members.shift_remove(name)),
                (Json::Object(new), Some(old @ Json::Object(_)), Merge::Upsert) => {
                    for (name, value) in new {
                        model(old, std::slice::from_ref(name), value, strategy)?;
                    }
                }
                (value, _, _) => drop(members.insert(name.clone(), without_null(value))),
            }
            Ok(())
        }
        [name, rest @ ..] if members.contains_key(name) || !value.is_null() => {
            model(members.entry(name.clone()).or_insert(json!({})), rest, value, strategy)
        }
        [..] => Ok(()),
    }
}

fn without_null(value: &Json) -> Json {
    match value {
        Json::Object(members) => {
            let members = members.iter().filter(|(_, value)| !value.is_null());
            members.map(|(name, value)| (name.clone(), without_null(value))).collect()
        }
        Json::Array(items) => items.iter().filter(|item| !item.is_null()).map(without_null).collect(),
        value => value.clone(),
    }
}

/// Texts with tables in every notation.
const TEXTS: &[&str] = &[
    "",
    "# c\na = 1 # c\n\n# c\n[b]\na = 1\n[b.c]\na = 2\n[c.a.b]\na = 3 # c\n",
    "a.a = 1\na.b.c = 2\nb = { a = 1, b = { c = 2 } } # c\n[c]\na.b = 1\n",
    "[[a]]\nb = 1\n[[a]]\n[a.c]\nb = 2\n[b]\n[b.a]\n",
];

fn any_value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![Just(Json::Null), (0..9i64).prop_map(Json::from), "[a-c#\"\\n]{0,3}".prop_map(Json::from)];
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Json::from),
            prop::collection::btree_map("[abc]", inner, 0..3).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn as_json(text: &str) -> Json {
    let tree = crate::Tree::parse(std::path::Path::new("c"), text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    Json::Object(crate::json::table_json(tree.root()))
}

/// Empty tables come and go with headers and mean nothing.
fn without_empty(value: &Json) -> Json {
    match value {
        Json::Object(members) => {
            let members = members.iter().map(|(name, value)| (name.clone(), without_empty(value)));
            members.filter(|(_, value)| value.as_object().is_none_or(|inner| !inner.is_empty())).collect()
        }
        value => value.clone(),
    }
}

proptest! {
    #[test]
    fn edits_change_only_their_keys(
        text in prop::sample::select(TEXTS),
        edits in prop::collection::vec(("[abc](\\.[abc]){0,3}", any_value(), any::<bool>()), 1..6),
    ) {
        let mut document: DocumentMut = text.parse().unwrap();
        let mut expected = as_json(text);
        for (key, value, upsert) in edits {
            let strategy = if upsert { Merge::Upsert } else { Merge::Replace };
            let path = KeyPath::parse(&key).unwrap();
            let mut edited = document.clone();
            let mut modelled = expected.clone();
            let made = apply(&mut edited, &path, &value, strategy);
            let meant = model(&mut modelled, path.segments(), &value, strategy);
            prop_assert_eq!(made.is_ok(), meant.is_ok(), "{} {} in\n{}", key, value, document);
            if made.is_ok() {
                (document, expected) = (edited, modelled);
            }
            let written = document.to_string();
            prop_assert_eq!(without_empty(&as_json(&written)), without_empty(&expected), "{}", written);
        }
    }
}
