use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn show(tree: Result<Tree, LayerError>) -> String {
    fn show_value(value: &Value) -> String {
        match value {
            Value::Array(nodes) => {
                let items = nodes.iter().map(|node| format!("{}@{}", show_value(&node.value), node.origin));
                format!("[{}]", items.collect::<Vec<_>>().join(", "))
            }
            Value::Table(table) => {
                let members = table.iter().map(|(name, node)| format!("{name}={}", show_value(&node.value)));
                format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
            }
            value => value.describe(),
        }
    }
    match tree {
        Ok(tree) => {
            let line =
                |(path, node): (KeyPath, &Node)| format!("{}: {path}: {}\n", node.origin, show_value(&node.value));
            tree.leaves().into_iter().map(line).collect()
        }
        Err(error) => {
            let cause = std::error::Error::source(&error).map(|cause| format!("\ncaused by: {cause}"));
            let hint = error.hint().map(|hint| format!("\nhint: {hint}"));
            format!("{error}{}{}", cause.unwrap_or_default(), hint.unwrap_or_default())
        }
    }
}

#[track_caller]
fn check_file(text: &str, expected: Expect) {
    expected.assert_eq(&show(Tree::parse(Path::new("c.toml"), text)));
}

#[track_caller]
fn check_override(text: &str, expected: Expect) {
    expected.assert_eq(&show(Tree::from_override(text)));
}

#[track_caller]
fn check_request(config: &Json, expected: Expect) {
    expected.assert_eq(&show(Tree::from_request(config.as_object().unwrap())));
}

#[test]
fn every_value_of_a_file_has_its_line() {
    check_file(
        "model = 'm' # c\n\nlist = [\n  1,\n  'b',\n]\ntext = \"\"\"\na\nb\"\"\"\n[a.b]\nc.d = 1.5\ne = { f = true,\n g = 1979-05-27 }\n[[t]]\nx = 1\n[[t]]\n",
        expect![[r#"
            c.toml:11: a.b.c.d: the float 1.5
            c.toml:12: a.b.e.f: the boolean true
            c.toml:13: a.b.e.g: the date-time 1979-05-27
            c.toml:3: list: [the integer 1@c.toml:4, the string "b"@c.toml:5]
            c.toml:1: model: the string "m"
            c.toml:14: t: [{x=the integer 1}@c.toml:14, {}@c.toml:16]
            c.toml:7: text: the string "a\nb"
        "#]],
    );
}

#[test]
fn tables_have_the_line_of_their_header() {
    let tree = Tree::parse(Path::new("c.toml"), "\n[a.b]\nx = 1\n\n[a]\ny = 2\n").unwrap();
    let line = |path: &[&str]| tree.get(path).map(|node| node.origin.to_string());
    assert_eq!(line(&["a", "b"]).as_deref(), Some("c.toml:2"));
    assert!(line(&["a"]).is_some());
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_are_fine() {
    check_file(
        "\u{feff}a = 1\r\nb = 2\r\n",
        expect![[r#"
            c.toml:1: a: the integer 1
            c.toml:2: b: the integer 2
        "#]],
    );
}

#[test]
fn syntax_errors_have_line_and_column() {
    check_file("a = 1\nb = \n", expect!["c.toml:2:5: string values must be quoted, expected literal string"]);
    check_file("a = 1\na = 2\n", expect!["c.toml:2:1: duplicate key `a` (first set on line 1)"]);
    check_file("[table\n", expect!["c.toml:1:7: unclosed table, expected `]`"]);
    check_file("key = \"sk-secret\n", expect![[r#"c.toml:1:17: invalid basic string, expected `"`"#]]);
}

#[test]
fn a_key_that_is_set_twice_is_named_with_both_lines() {
    check_file(
        "model = 'a'\n\n[tools]\nmodel = 1\n'model' = 'sk-1'\n",
        expect!["c.toml:5:1: duplicate key `model` (first set on line 4)"],
    );
    check_file("[a.b]\nx = 1\n[c]\n[a.b]\ny = 1\n", expect!["c.toml:4:4: duplicate key `a.b` (first set on line 1)"]);
    check_file("[[a]]\nx = 1\n[[a]]\nx = 1\nx = 2\n", expect!["c.toml:5:1: duplicate key `x`"]);
    check_file("a.b = 1\na = 2\n", expect!["c.toml:2:1: duplicate key `a` (first set on line 1)"]);
}

#[test]
fn overrides_take_every_toml_type() {
    check_override(
        "a=1",
        expect![[r#"
            -c a: a: the integer 1
        "#]],
    );
    check_override(
        "a=-1.5",
        expect![[r#"
            -c a: a: the float -1.5
        "#]],
    );
    check_override(
        "a=true",
        expect![[r#"
            -c a: a: the boolean true
        "#]],
    );
    check_override(
        "a=\"x y\"",
        expect![[r#"
            -c a: a: the string "x y"
        "#]],
    );
    check_override(
        "a='x'",
        expect![[r#"
            -c a: a: the string "x"
        "#]],
    );
    check_override(
        "a=1979-05-27T07:32:00Z",
        expect![[r#"
            -c a: a: the date-time 1979-05-27T07:32:00Z
        "#]],
    );
    check_override(
        "a=[1, 'b']",
        expect![[r#"
            -c a: a: [the integer 1@-c a, the string "b"@-c a]
        "#]],
    );
    check_override(
        "a={b.c=1, d='e'}",
        expect![[r#"
            -c a: a.b.c: the integer 1
            -c a: a.d: the string "e"
        "#]],
    );
}

#[test]
fn a_value_that_is_not_toml_is_a_string() {
    check_override(
        "model=gpt-5",
        expect![[r#"
            -c model: model: the string "gpt-5"
        "#]],
    );
    check_override(
        "a= x = y ",
        expect![[r#"
            -c a: a: the string "x = y"
        "#]],
    );
    check_override(
        "a=",
        expect![[r#"
            -c a: a: the string ""
        "#]],
    );
    check_override(
        "a=\"open",
        expect![[r#"
            -c a: a: the string "\"open"
        "#]],
    );
    check_override(
        "a=True",
        expect![[r#"
            -c a: a: the string "True"
        "#]],
    );
    check_override(
        "a=1 2",
        expect![[r#"
            -c a: a: the string "1 2"
        "#]],
    );
}

#[test]
fn keys_of_overrides_may_be_dotted_and_quoted() {
    check_override(
        "a.b.c=1",
        expect![[r#"
            -c a.b.c: a.b.c: the integer 1
        "#]],
    );
    check_override(
        r#"projects."/a/b.c".trust_level="trusted""#,
        expect![[r#"
            -c projects."/a/b.c".trust_level: projects."/a/b.c".trust_level: the string "trusted"
        "#]],
    );
    check_override(
        r#"projects."/a=\"b".trust_level=x"#,
        expect![[r#"
            -c projects.'/a="b'.trust_level: projects.'/a="b'.trust_level: the string "x"
        "#]],
    );
    check_override(
        "projects.'/a=b'.trust_level=x",
        expect![[r#"
            -c projects."/a=b".trust_level: projects."/a=b".trust_level: the string "x"
        "#]],
    );
    check_override(
        "projects./a/b.trust_level=x",
        expect![[r#"
            -c projects."/a/b".trust_level: projects."/a/b".trust_level: the string "x"
        "#]],
    );
    check_override(
        " a . b = 1",
        expect![[r#"
            -c a.b: a.b: the integer 1
        "#]],
    );
}

#[test]
fn broken_overrides_are_named() {
    check_override(
        "model",
        expect![[r#"
            -c model: expected KEY=VALUE, found no `=`
            hint: write the key, `=` and the value, as in -c model=gpt-5"#]],
    );
    check_override(
        "",
        expect![[r#"
            -c : expected KEY=VALUE, found no `=`
            hint: write the key, `=` and the value, as in -c model=gpt-5"#]],
    );
    check_override(
        "=1",
        expect![[r#"
            -c =…: bad key
            caused by: the key is empty
            hint: separate segments with dots, and quote one that contains a dot: projects."/a.b".trust_level"#]],
    );
    check_override(
        "a..b=1",
        expect![[r#"
            -c a..b=…: bad key
            caused by: a segment between the dots of the key is empty
            hint: separate segments with dots, and quote one that contains a dot: projects."/a.b".trust_level"#]],
    );
    check_override(
        "a.\"b=sk-secret",
        expect![[r#"
            -c a."b=…: bad key
            caused by: the quotes in the key are not closed, or not around a whole segment
            hint: separate segments with dots, and quote one that contains a dot: projects."/a.b".trust_level"#]],
    );
    check_override(
        &format!("a={}", "{a=".repeat(99) + "1" + &"}".repeat(99)),
        expect![[r#"
            -c a: a: the string "{a={a={a={a={a={a={a={a={a={a={a={a={a={a={a={a={a={a={a={a="…
        "#]],
    );
    check_override(
        &format!("{}=1", "a.".repeat(90) + "a"),
        expect![[r#"
            -c a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a: a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a: the integer 1
        "#]],
    );
}

#[test]
fn deep_nesting_is_refused() {
    let keys = "k.".repeat(78) + "k";
    check_override(
        &format!("a={}1{}", format!("{{{keys}=").repeat(70), "}".repeat(70)),
        expect!["-c a: nested more than 100 levels deep"],
    );
    check_file(
        &format!("\nx={}1{}", format!("{{{keys}=").repeat(2), "}".repeat(2)),
        expect!["c.toml:2: nested more than 100 levels deep"],
    );
    let json = (0..120).fold(json!(1), |inner, _| json!({ "a": inner }));
    check_request(&json, expect!["config in the request: nested more than 100 levels deep"]);
}

#[test]
fn requests_have_dotted_names_and_json_values() {
    check_request(
        &json!({"a.b": 1, "a": {"c.d": [true, null, "x"], "n": null}, "f": 1.5, "big": u64::MAX, "z": null}),
        expect![[r#"
            config in the request: a.b: the integer 1
            config in the request: a."c.d": [the boolean true@config in the request, the string "x"@config in the request]
            config in the request: big: the float 18446744073709552000
            config in the request: f: the float 1.5
        "#]],
    );
    check_request(
        &json!({"a..b": 1}),
        expect![[r#"
            config in the request: bad key "a..b"
            caused by: a segment between the dots of the key is empty
            hint: separate segments with dots, and quote one that contains a dot: projects."/a.b".trust_level"#]],
    );
}

proptest! {
    #[test]
    fn any_override_is_a_tree_or_an_error(text in ".*") {
        let _ = Tree::from_override(&text);
    }

    #[test]
    fn any_override_with_a_plain_key_is_a_tree(value in "(?s).*") {
        let tree = Tree::from_override(&format!("a.b={value}")).unwrap();
        prop_assert!(tree.get(&["a", "b"]).is_some());
    }

    #[test]
    fn any_file_is_a_tree_or_an_error_in_it(text in "([a-c\\[\\]{}=.,\"'# 0-9]|\n){0,40}") {
        let lines = text.split('\n').count();
        match Tree::parse(Path::new("c.toml"), &text) {
            Ok(tree) => for (_, node) in tree.leaves() {
                let inside = matches!(node.origin, Origin::File { line, .. } if line >= 1 && line <= lines);
                prop_assert!(inside, "{}", node.origin);
            },
            Err(LayerError::Syntax { line, .. }) => prop_assert!(line >= 1 && line <= lines),
            Err(error) => prop_assert!(false, "{error}"),
        }
    }
}
