use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

fn keys(script: &str) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = script;
    while let Some(c) = rest.chars().next() {
        let named = [("<esc>", Key::Esc), ("<nl>", Key::NewLine), ("<c-r>", Key::Ctrl('r')), ("<enter>", Key::Enter)];
        if let Some((name, key)) = named.into_iter().find(|(name, _)| rest.starts_with(name)) {
            keys.push(key);
            rest = &rest[name.len()..];
        } else {
            keys.push(Key::Char(c));
            rest = &rest[c.len_utf8()..];
        }
    }
    keys
}

fn play(script: &str) -> (Vim, Editor, Edit) {
    let (mut vim, mut editor, mut last) = (Vim::default(), Editor::default(), Edit::Ignored);
    for key in keys(script) {
        last = match vim.press(&mut editor, &key) {
            Some(edit) => edit,
            None => editor.press(&key),
        };
    }
    (vim, editor, last)
}

/// Plays keys, and prints the text with the cursor in it.
#[track_caller]
fn check(script: &str, expected: Expect) {
    let (_, editor, _) = play(script);
    let (text, cursor) = editor.shown();
    let (before, after) = text.split_at(cursor);
    expected.assert_eq(&format!("{before}|{after}"));
}

#[test]
fn motions_move() {
    check("one two three<esc>0w", expect!["one |two three"]);
    check("one two three<esc>02w", expect!["one two |three"]);
    check("one two three<esc>b", expect!["one two |three"]);
    check("one two three<esc>0e", expect!["on|e two three"]);
    check("foo.bar baz<esc>0w", expect!["foo|.bar baz"]);
    check("foo.bar baz<esc>0W", expect!["foo.bar |baz"]);
    check("  abc<esc>^", expect!["  |abc"]);
    check("abc<esc>0$", expect!["ab|c"]);
    check("a(b)c<esc>0f)", expect!["a(b|)c"]);
    check("a.b.c<esc>0t.;", expect!["a.|b.c"]);
    check("a.b.c<esc>0f.;", expect!["a.b|.c"]);
    check("a.b.c<esc>F.", expect!["a.b|.c"]);
    check("one<nl>two<nl>three<esc>gg", expect!["|one\ntwo\nthree"]);
    check("one<nl>two<nl>three<esc>2G", expect!["one\n|two\nthree"]);
    check("one<nl>two<esc>k", expect!["on|e\ntwo"]);
    check("日本語<esc>hx", expect!["日|語"]);
}

#[test]
fn operators_take_motions_counts_and_objects() {
    check("one two three<esc>0dw", expect!["|two three"]);
    check("one two three<esc>0d2w", expect!["|three"]);
    check("one two three<esc>02dw", expect!["|three"]);
    check("one two three<esc>0wD", expect!["one| "]);
    check("one two three<esc>0wcwx<esc>", expect!["one |x three"]);
    check("one two three<esc>0wlciwnew<esc>", expect!["one ne|w three"]);
    check("one two three<esc>0wldaw", expect!["one |three"]);
    check("one two<esc>daw", expect!["on|e"]);
    check("say \"a b\" now<esc>0fadi\"", expect!["say \"|\" now"]);
    check("f(a, (b))<esc>0f,ci(x<esc>", expect!["f(|x)"]);
    check("f(a)<esc>da(", expect!["|f"]);
    check("one<nl>two<nl>three<esc>ggdd", expect!["|two\nthree"]);
    check("one<nl>two<nl>three<esc>kdd", expect!["one\n|three"]);
    check("one<nl>two<nl>three<esc>dd", expect!["one\n|two"]);
    check("one<nl>two<nl>three<esc>gg2dd", expect!["|three"]);
    check("one<nl>two<nl>three<esc>ggdj", expect!["|three"]);
    check("one<nl>two<nl>three<esc>dgg", expect!["|"]);
    check("one two<esc>0yiwwP", expect!["one on|etwo"]);
    check("one<nl>two<esc>yyp", expect!["one\ntwo\n|two"]);
    check("one<nl>two<esc>ggyyP", expect!["|one\none\ntwo"]);
    check("ab<esc>xp", expect!["a|b"]);
    check("ab<esc>0xp", expect!["b|a"]);
    check("abc<esc>03x", expect!["|"]);
    check("abc<esc>0rx", expect!["|xbc"]);
    check("abc<esc>0~~", expect!["AB|c"]);
    check("one<nl>  two<esc>ggJ", expect!["one| two"]);
    check("one<esc>ccnew<esc>", expect!["ne|w"]);
    check("one<esc>Otop<esc>", expect!["to|p\none"]);
    check("one<esc>olow<esc>", expect!["one\nlo|w"]);
}

#[test]
fn changes_are_undone_and_repeated() {
    check("one two three<esc>0dwu", expect!["|one two three"]);
    check("one two three<esc>0dwu<c-r>", expect!["|two three"]);
    check("one two three<esc>0dw.", expect!["|three"]);
    check("one two three<esc>0cwx<esc>w.", expect!["x |x three"]);
    check("a<esc>ab<esc>..", expect!["abb|b"]);
    check("abc<esc>0x3.", expect!["|"]);
    check("typed first<esc>.", expect!["typed firs|t"]);
}

#[test]
fn a_selection_is_operated_on() {
    check("one two<esc>0vey", expect!["|one two"]);
    check("one two<esc>0vld", expect!["|e two"]);
    check("one two<esc>0vecx<esc>", expect!["|x two"]);
    check("one<nl>two<nl>three<esc>ggVjd", expect!["|three"]);
    check("one two<esc>0wviwd", expect!["one| "]);
    let (vim, editor, _) = play("one two<esc>0wvl");
    assert_eq!(vim.selection(&editor), Some(4..6));
    let (vim, editor, _) = play("one two<esc>0wvl<esc>");
    assert_eq!((vim.mode(), vim.selection(&editor)), (Mode::Normal, None));
}

#[test]
fn other_keys_keep_their_meaning() {
    let (vim, editor, last) = play("text<esc><enter>");
    assert_eq!((vim.mode(), editor.text().as_str(), last), (Mode::Normal, "text", Edit::Submit));
    assert_eq!(play("text<esc><esc>").2, Edit::Ignored, "the chat gets a lone Esc");
    assert_eq!(play("text<esc>d<esc>").2, Edit::Changed, "an Esc ends a command first");
    assert_eq!(play("text<esc>k").2, Edit::Older);
    assert_eq!(play("text<esc>j").2, Edit::Newer);
}

proptest! {
    /// With any keys, the cursor is between characters.
    #[test]
    fn no_keys_break_it(script in r"([a-zA-Z0-9é日\u{301}.,;()~$^ ]|<esc>|<nl>|<c-r>){0,60}") {
        let (vim, editor, _) = play(&script);
        prop_assert!(editor.raw().is_char_boundary(editor.cursor()));
        if let Some(range) = vim.selection(&editor) {
            prop_assert!(editor.raw().get(range).is_some());
        }
    }
}
