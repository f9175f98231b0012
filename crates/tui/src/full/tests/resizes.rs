//! Every line once and in order, whatever the size of the terminal.

use proptest::prelude::*;
use serde_json::json;

use super::Screen;
use crate::key::Key;
use crate::laid::logical;

/// The numbers of the lines on the screen, in order.
fn numbers(rows: &[String]) -> Vec<usize> {
    let number = |row: &String| row.trim().strip_prefix("line ")?.split(' ').next()?.parse().ok();
    rows.iter().filter_map(number).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    /// 100 random resizes while an answer streams.
    #[test]
    fn no_line_is_lost_or_doubled(sizes in proptest::collection::vec((40u16..300, 5u16..60), 100)) {
        let mut screen = Screen::new(80, 24);
        screen.start_turn();
        screen.item("item/started", json!({"type": "agentMessage", "id": "m", "text": ""}));
        let mut count = 0;
        for (width, height) in sizes {
            for _ in 0..3 {
                screen.delta("m", &format!("line {count} of the answer\n\n"));
                count += 1;
            }
            screen.resize(width, height);
            let shown = numbers(&screen.rows());
            let first = shown.first().copied().unwrap_or(count);
            prop_assert_eq!(&shown, &(first..count).collect::<Vec<_>>(), "{}x{}", width, height);
        }
        // Scrolling from the end to the start shows all of them, once.
        let mut seen = Vec::new();
        for _ in 0..10_000 {
            let shown = numbers(&screen.rows());
            let new: Vec<usize> = shown.into_iter().filter(|number| seen.first().is_none_or(|first| number < first)).collect();
            seen.splice(0..0, new);
            let before = screen.app.transcript.top;
            screen.press(&[Key::PageUp]);
            if screen.app.transcript.top == before {
                break;
            }
        }
        prop_assert_eq!(seen, (0..count).collect::<Vec<_>>());
        // So does the text that is printed when the screen is left.
        let thread = screen.app.thread.as_ref().and_then(|open| screen.app.client.thread(&open.id));
        let printed: Vec<String> =
            screen.app.transcript.unprinted(thread, 80, true).iter().map(|row| logical(row)).collect();
        prop_assert_eq!(numbers(&printed), (0..count).collect::<Vec<_>>());
        let thread = screen.app.thread.as_ref().and_then(|open| screen.app.client.thread(&open.id));
        prop_assert!(screen.app.transcript.unprinted(thread, 80, true).is_empty(), "only once");
    }

    /// Nothing fails on a screen of any size.
    #[test]
    fn any_size_is_drawn(width in 1u16..12, height in 1u16..6, keys in proptest::collection::vec(0usize..12, 0..20)) {
        let mut screen = Screen::new(80, 24);
        screen.start_turn();
        let text = "# 日本語 **b**\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```rust\nlet x;\n```\n";
        screen.item("item/completed", json!({"type": "agentMessage", "id": "m", "text": text}));
        screen.resize(width, height);
        let all = [Key::Char('/'), Key::Char('日'), Key::Enter, Key::PageUp, Key::PageDown, Key::AltUp, Key::AltDown,
            Key::Ctrl('s'), Key::Ctrl('o'), Key::Esc, Key::Char('\t'), Key::Char('q')];
        for key in keys {
            screen.press(&[all[key].clone()]);
            let frame = screen.app.draw();
            prop_assert_eq!(frame.rows.len(), usize::from(height));
            for row in &frame.rows {
                prop_assert!(crate::wrap::row_columns(row) <= usize::from(width), "{:?}", row);
            }
        }
        screen.rows();
    }
}

#[test]
fn only_items_in_view_are_laid_out() {
    let mut screen = Screen::new(120, 40);
    let items: Vec<_> = (0..10_000)
        .map(|number| json!({"type": "agentMessage", "id": format!("m{number}"), "text": format!("line {number} of it")}))
        .collect();
    let turn = json!({"id": "u", "status": "completed", "items": items});
    screen.tell("thread/started", json!({"thread": {"id": "t", "turns": [turn]}}));
    let shown = numbers(&screen.rows());
    assert_eq!(shown.last(), Some(&9_999));
    screen.press(&[Key::PageUp, Key::PageUp]);
    screen.rows();
    assert!(screen.app.transcript.laid_out() < 200, "{}", screen.app.transcript.laid_out());
}

#[test]
fn a_line_of_a_megabyte_and_odd_characters_are_drawn() {
    let mut screen = Screen::new(80, 24);
    screen.start_turn();
    let long = "x".repeat(1024 * 1024);
    screen.item("item/completed", json!({"type": "agentMessage", "id": "m", "text": long}));
    assert!(screen.rows().iter().any(|row| row.starts_with("xxxx")));
    let odd = "a\u{202e}b\u{200b}c\x1b[31md\u{9b}e\u{7}f e\u{301} 👩‍👩‍👧 ไทย עברית";
    screen.item("item/completed", json!({"type": "agentMessage", "id": "n", "text": odd}));
    let text = screen.text();
    // The emulator leaves out the marks that stand for control characters.
    assert!(text.contains("ab\u{200b}c[31md") && text.contains("ไทย עברית"), "{text}");
    assert!(!text.contains('\u{202e}') && !text.contains('\u{1b}'), "{text}");
}
