use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

/// Each line of some code, and below it a letter for the style of each character.
#[track_caller]
fn check(name: &str, text: &str, expected: Expect) {
    let letter = |style| match style {
        Style::Keyword => 'k',
        Style::Quoted => 'q',
        Style::Comment => 'c',
        Style::Number => 'n',
        Style::Type => 't',
        Style::Name => 'f',
        Style::Code => 'x',
        Style::Green => '+',
        Style::Red => '-',
        _ => '.',
    };
    let mut shown = Vec::new();
    for row in code(name, text) {
        let line: String = row.iter().map(|span| span.text.as_str()).collect();
        let letters: String = row.iter().flat_map(|span| span.text.chars().map(|_| letter(span.style))).collect();
        shown.extend([line, letters]);
    }
    shown.push(String::new());
    expected.assert_eq(&shown.join("\n"));
}

#[test]
fn rust() {
    let text = r##"let x: &'a str = "a\"b"; // no
if c == '"' || c == '\'' { println!("{}", f(1.5e-3)); }
let raw = r#"a "b"
c"#; /* a /* b */
c */ Some(0xff_u8) != x.y(1..2)
"##;
    check(
        "rust",
        text,
        expect![[r##"
            let x: &'a str = "a\"b"; // no
            kkk.....tt.kkk...qqqqqq..ccccc
            if c == '"' || c == '\'' { println!("{}", f(1.5e-3)); }
            kk......qqq.........qqqq...fffffff..qqqq..f.nnnnnn.....
            let raw = r#"a "b"
            kkk.......qqqqqqqq
            c"#; /* a /* b */
            qqq..cccccccccccc
            c */ Some(0xff_u8) != x.y(1..2)
            cccc.tttt.nnnnnnn.......f.n..n.
        "##]],
    );
}

#[test]
fn scripts() {
    check(
        "py",
        "@cache\ndef f(a): return \"\"\"x # no\nno\"\"\" # yes\n",
        expect![[r#"
            @cache
            ffffff
            def f(a): return """x # no
            kkk.f.....kkkkkk.qqqqqqqqq
            no""" # yes
            qqqqq.ccccc
        "#]],
    );
    check(
        "bash",
        "for f in $@; do echo \"$f\" $#; done # it's over\n",
        expect![[r#"
            for f in $@; do echo "$f" $#; done # it's over
            kkk...kk.....kk.kkkk.qqqq.....kkkk.ccccccccccc
        "#]],
    );
    check(
        "src/app.ts",
        "const a = `x ${1}\n` + new Map<string>() // y\n",
        expect![[r#"
            const a = `x ${1}
            kkkkk.....qqqqqqq
            ` + new Map<string>() // y
            q...kkk.ttt.kkkkkk....cccc
        "#]],
    );
    check(
        "SQL",
        "SELECT count(*) FROM t WHERE a = 'it''s' -- all\n",
        expect![[r#"
            SELECT count(*) FROM t WHERE a = 'it''s' -- all
            kkkkkk.fffff....kkkk...kkkkk.....qqqqqqq.cccccc
        "#]],
    );
}

#[test]
fn data_has_keys() {
    check(
        "json",
        "{\"a\": [1, true, \"b\"], \"c\": \"d: e\"}\n",
        expect![[r#"
            {"a": [1, true, "b"], "c": "d: e"}
            .fff...n..kkkk..qqq...fff..qqqqqq.
        "#]],
    );
    check(
        "yaml",
        "key: a#b # yes\n- name: http://x\n",
        expect![[r#"
            key: a#b # yes
            fff......ccccc
            - name: http://x
            ..ffff..........
        "#]],
    );
    check(
        "toml",
        "a.b = '''x\ny''' # z\n",
        expect![[r#"
            a.b = '''x
            fff...qqqq
            y''' # z
            qqqq.ccc
        "#]],
    );
}

#[test]
fn markup_and_diffs() {
    check(
        "html",
        "<!-- a\nb --><a href=\"x>y\">1 < 2</a>\n",
        expect![[r#"
            <!-- a
            cccccc
            b --><a href="x>y">1 < 2</a>
            ccccckk.ffff.qqqqqk.....kkkk
        "#]],
    );
    check(
        "diff",
        "@@ -1 +1 @@\n-a\n+b\n",
        expect![[r#"
            @@ -1 +1 @@
            kkkkkkkkkkk
            -a
            --
            +b
            ++
        "#]],
    );
    check(
        "unknown",
        "let x\n",
        expect![[r#"
            let x
            xxxxx
        "#]],
    );
}

#[test]
fn a_text_on_one_line_ends_with_it() {
    check(
        "c",
        "x = \"a\nint b; /* c\nd */ int\n",
        expect![[r#"
            x = "a
            ....qq
            int b; /* c
            kkk....cccc
            d */ int
            cccc.kkk
        "#]],
    );
}

#[test]
fn a_language_has_one_table() {
    let mut seen = BTreeMap::new();
    for (at, language) in language::ALL.iter().enumerate() {
        for name in language.names.split(' ') {
            assert_eq!(name, name.to_ascii_lowercase());
            assert_eq!(seen.insert(name, at), None, "{name} is there twice");
        }
        let lengths: Vec<usize> = language.quotes.iter().map(|quote| quote.start.len()).collect();
        let is_in_order = language
            .quotes
            .iter()
            .enumerate()
            .all(|(at, quote)| language.quotes[..at].iter().all(|earlier| !quote.start.starts_with(earlier.start)));
        assert!(is_in_order, "{}: a mark hides a longer one: {lengths:?}", language.names);
    }
}

proptest! {
    /// No character is lost, and code in two parts has the colours of the whole.
    #[test]
    fn all_text_is_shown(
        name in "(rust|c|py|sh|json|sql|lua|html|yaml|css|ocaml|diff|x)",
        lines in prop::collection::vec("[a-cre\"'/*#<>!(){}\\[\\]:=$@\\\\é 1.\\-]{0,30}", 0..6),
        cut in 0usize..6,
    ) {
        let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        let whole = code(&name, &text);
        let shown: Vec<String> =
            whole.iter().map(|row| row.iter().map(|span| span.text.as_str()).collect()).collect();
        prop_assert_eq!(shown, text.lines().map(str::to_owned).collect::<Vec<_>>());
        let cut: usize = lines.iter().take(cut).map(|line| line.len() + 1).sum();
        let mut within = Within::default();
        let mut parts = code_within(&name, &text[..cut], &mut within);
        parts.extend(code_within(&name, &text[cut..], &mut within));
        prop_assert_eq!(parts, whole);
    }
}
