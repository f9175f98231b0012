//! The full-screen chat, driven through a terminal.

use std::path::Path;

use rustix::process::Signal;
use serde_json::json;

use crate::chat::{asked_about, full_place as place};
use crate::pty::Pty;

const LEAVE: &str = "\u{1b}[?1049l";

fn said(text: &str) -> serde_json::Value {
    json!({"items": [{"text": text}]})
}

fn start(place: &crate::program::Place, args: &[&str]) -> Pty {
    Pty::start(place, args)
}

/// The output after the screen was left for the last time.
fn after(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw).into_owned();
    let at = text.rfind(LEAVE).expect("the screen is left");
    text[at..].to_owned()
}

#[test]
fn the_conversation_is_printed_once_when_the_screen_is_left() {
    let place = place("", &json!([said("It rains in **Bergen**.")]));
    let mut chat = start(&place, &["weather?"]);
    chat.until("workspace-write/on-request");
    chat.until("It rains in");
    chat.send("\x04");
    let ended = chat.wait();
    assert_eq!(ended.code, Some(0), "{}", ended.text);
    assert!(chat.is_restored());
    let rest = after(&ended.raw);
    assert_eq!(rest.matches("It rains in").count(), 1, "{rest:?}");
    assert_eq!(rest.matches("weather?").count(), 1, "{rest:?}");
    assert!(rest.contains("To continue this session: codex resume "), "{rest:?}");
}

#[test]
fn yes_runs_a_command_and_earlier_keys_do_not() {
    for (key, runs) in [("y", true), ("n", false), ("\x1b", false)] {
        let script = json!([asked_about("touch canary"), said("As you like.")]);
        let place = place("approval_policy = 'untrusted'", &script);
        let mut chat = start(&place, &["do it"]);
        chat.until("| sh -c 'touch canary'");
        chat.send("yyyy\ry");
        chat.until("[y] yes");
        assert!(!place.path("project/canary").exists(), "keys typed before are no answer");
        chat.send(key);
        chat.until(if key == "\x1b" { "Interrupted" } else { "As you like." });
        assert_eq!(place.path("project/canary").exists(), runs, "{key:?}");
        chat.send("\x04");
        assert_eq!(chat.wait().code, Some(0));
    }
}

#[test]
fn a_terminal_that_hangs_up_approves_nothing() {
    let place = place("approval_policy = 'untrusted'", &json!([asked_about("touch canary"), said("As you like.")]));
    let mut chat = start(&place, &["do it"]);
    chat.until("[y] yes");
    assert_eq!(chat.hang_up(), Some(130));
    assert!(!place.path("project/canary").exists());
}

#[test]
fn ctrl_z_gives_the_screen_back_and_each_line_is_printed_once() {
    let place = place("", &json!([said("The first answer."), said("The second answer.")]));
    let mut chat = start(&place, &["one"]);
    chat.until("The first answer.");
    chat.send("\x1a");
    chat.until_stopped();
    assert!(chat.is_restored());
    chat.until("The first answer.");
    chat.signal(Signal::CONT);
    chat.until("The first answer.");
    chat.send("two\r");
    chat.until("The second answer.");
    chat.send("\x04");
    let raw = chat.wait().raw;
    let text = String::from_utf8_lossy(&raw).into_owned();
    let printed: String =
        text.split(LEAVE).skip(1).map(|part| part.split("\u{1b}[?1049h").next().unwrap_or_default()).collect();
    for line in ["The first answer.", "The second answer."] {
        assert_eq!(printed.matches(line).count(), 1, "{line} {printed:?}");
    }
}

#[test]
fn a_thread_is_resumed_and_a_resize_draws_it_again() {
    let place = place("", &json!([said("An earlier answer.")]));
    let mut chat = start(&place, &["before"]);
    chat.until("An earlier answer.");
    chat.send("\x04");
    chat.wait();
    let mut chat = start(&place, &["resume", "--last"]);
    chat.until("> before");
    chat.until("An earlier answer.");
    chat.signal(Signal::WINCH);
    chat.until("An earlier answer.");
    chat.send("/status\r");
    chat.until("workspace-write");
    chat.send("q\x04");
    assert_eq!(chat.wait().code, Some(0));
}

#[test]
fn nothing_of_a_model_reaches_the_terminal_as_a_sequence() {
    let evil = "\u{1b}]0;title\u{7}\u{1b}[2Jclear \u{1b}]52;c;eA==\u{7}\u{9b}31m";
    let place = place("", &json!([said(evil)]));
    let mut chat = start(&place, &["evil"]);
    chat.until("clear");
    chat.send("\x04");
    let raw = String::from_utf8_lossy(&chat.wait().raw).into_owned();
    assert!(!raw.contains("\u{1b}]0;title") && !raw.contains("\u{1b}]52;") && !raw.contains('\u{9b}'), "{raw:?}");
}

#[test]
fn a_draft_outlives_a_crash_and_is_gone_when_it_is_sent() {
    let place = place("", &json!([said("Hello.")]));
    let mut chat = start(&place, &[]);
    chat.until("workspace-write/on-request");
    chat.send("half a thought");
    chat.until("> half a thought");
    let drafts = place.path("home/drafts");
    until(|| has_draft(&drafts, "half a thought"));
    chat.signal(Signal::KILL);
    chat.wait();
    let mut chat = start(&place, &[]);
    chat.until("> half a thought");
    chat.send(" more\r");
    chat.until("Hello.");
    chat.send("\x04");
    assert_eq!(chat.wait().code, Some(0));
    assert_eq!(std::fs::read_dir(&drafts).expect("it is there").count(), 0);
}

/// Whether a draft in a folder has a text. One that is being written has another name until it is whole.
fn has_draft(folder: &Path, wanted: &str) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut drafts = entries.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
    drafts.any(|path| std::fs::read_to_string(path).is_ok_and(|text| text.contains(wanted)))
}

/// Waits until something is so.
#[track_caller]
fn until(mut is_so: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !is_so() {
        assert!(std::time::Instant::now() < deadline, "waited in vain");
        std::thread::park_timeout(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_text_is_written_in_the_program_of_the_user() {
    let place = place("", &json!([said("Hello.")]));
    let script = "#!/bin/sh\ncat \"$2\" > seen\nprintf 'written %s' \"$1\" > \"$2\"\n";
    let place = place.file("project/editor.sh", script).variable("VISUAL", "sh editor.sh elsewhere");
    let mut chat = start(&place, &[]);
    chat.until("workspace-write/on-request");
    chat.send("a start");
    chat.until("> a start");
    chat.send("\x07");
    chat.until("> written elsewhere");
    assert_eq!(std::fs::read_to_string(place.path("project/seen")).expect("it ran"), "a start");
    chat.send("\r");
    chat.until("Hello.");
    chat.send("\x04");
    let ended = chat.wait();
    let screens = String::from_utf8_lossy(&ended.raw).matches(LEAVE).count();
    assert_eq!((ended.code, screens), (Some(0), 2), "the screen was given back for the program");
}

#[test]
fn lines_that_are_pasted_without_marks_are_not_sent() {
    let place = place("", &json!([said("Hello.")]));
    let mut chat = start(&place, &[]);
    chat.until("workspace-write/on-request");
    chat.send(&"rm -rf somewhere\r".repeat(2000));
    chat.until("[Pasted 34,000 characters]");
    chat.send("\x15");
    chat.send("hi\r");
    chat.until("Hello.");
    chat.send("\x04");
    let ended = chat.wait();
    assert_eq!(ended.code, Some(0));
    let history = std::fs::read_to_string(place.path("home/history.jsonl")).expect("prompts are kept");
    assert!(!history.contains("rm -rf"), "{history}");
}

#[test]
fn mistakes_in_keys_are_told_with_their_line() {
    let place = place("", &json!([]));
    let config = std::fs::read_to_string(place.path("home/config.toml")).expect("it is there");
    let line = config.lines().count() + 3;
    let place = place.file("home/config.toml", &format!("{config}[tui.keys]\nsearch = 'f2'\nserch = 'f3'\n"));
    let mut chat = start(&place, &[]);
    chat.until("there is no action `serch`");
    chat.send("\x04");
    let shown = chat.wait();
    assert!(shown.text.contains(&format!("config.toml:{line}")), "{}", shown.text);
}

#[test]
fn a_closed_terminal_and_a_signal_approve_nothing() {
    for signal in [Signal::HUP, Signal::TERM] {
        let place = place("approval_policy = 'untrusted'", &json!([asked_about("touch canary"), said("As you like.")]));
        let mut chat = start(&place, &["do it"]);
        chat.until("[y] yes");
        chat.signal(signal);
        assert_eq!(chat.wait().code, Some(130));
        assert!(!place.path("project/canary").exists());
    }
}

#[test]
fn a_signal_gives_the_screen_back_and_the_conversation_is_printed_once() {
    for signal in [Signal::HUP, Signal::TERM] {
        let place = place("", &json!([said("It rains in Bergen.")]));
        let mut chat = start(&place, &["weather?"]);
        chat.until("It rains in");
        chat.signal(signal);
        let ended = chat.wait();
        assert_eq!(ended.code, Some(130), "{}", ended.text);
        assert!(chat.is_restored());
        let rest = after(&ended.raw);
        assert_eq!(rest.matches("It rains in").count(), 1, "{rest:?}");
    }
}

#[test]
fn every_frame_is_one_synchronized_update() {
    let deltas: Vec<_> = (0..50).flat_map(|at| [json!(format!("word{at} ")), json!({"pause_ms": 5})]).collect();
    let words: Vec<String> = (0..50).map(|at| format!("word{at} ")).collect();
    let whole = words.concat();
    let place = place("", &json!([{"items": [{"text": whole, "deltas": deltas}]}]));
    let mut chat = start(&place, &["go"]);
    chat.until("word49");
    chat.send("\x04");
    let raw = String::from_utf8_lossy(&chat.wait().raw).into_owned();
    let drawn = raw.split("\u{1b}[?1049h").nth(1).expect("the other screen is used");
    let drawn = drawn.split(LEAVE).next().unwrap_or_default();
    let mut outside = String::new();
    let mut rest = drawn;
    while let Some((before, inside)) = rest.split_once("\u{1b}[?2026h") {
        outside.push_str(before);
        let (frame, after) = inside.split_once("\u{1b}[?2026l").expect("an update ends");
        assert!(!frame.contains("\u{1b}[?2026h"), "updates are not nested");
        rest = after;
    }
    outside.push_str(rest);
    assert!(!outside.contains("word"), "text is drawn in updates alone: {outside:?}");
}

#[test]
fn a_terminal_that_takes_nothing_gets_keys_read_and_does_not_hold_the_program() {
    let place = place("", &json!([]));
    let mut chat = start(&place, &[]);
    chat.until("workspace-write/on-request");
    chat.stop_reading();
    // Each resize draws everything, until no more fits.
    let (mut before, mut same) = (0, 0);
    until(|| {
        chat.signal(Signal::WINCH);
        let unread = chat.unread();
        (before, same) = (unread, if unread == before { same + 1 } else { 0 });
        unread > 0 && same >= 10
    });
    chat.send("typed while it is held");
    until(|| has_draft(&place.path("home/drafts"), "typed while it is held"));
    chat.signal(Signal::TERM);
    assert_eq!(chat.wait_unread(), Some(130));
    assert!(chat.is_restored());
}

/// Whether a sequence of attributes has a colour.
fn is_coloured(parameters: &str) -> bool {
    let number = |word: &str| word.parse::<u32>().unwrap_or(0);
    parameters.split(';').map(number).any(|code| matches!(code, 30..=38 | 40..=48 | 90..=97 | 100..=107))
}

#[test]
fn no_color_leaves_none() {
    let text = "# Title\n\n`code` https://x.y\n\n```rust\nfn main() {} // end\n```\n";
    for (value, has_colours) in [(Some("1"), false), (None, true)] {
        let place = place("", &json!([asked_about("seq 3"), said(text)]));
        let place = if let Some(value) = value { place.variable("NO_COLOR", value) } else { place };
        let mut chat = start(&place, &["go"]);
        chat.until("[y] yes");
        chat.send("y");
        chat.until("fn main");
        chat.send("\x04");
        let raw = String::from_utf8_lossy(&chat.wait().raw).into_owned();
        let sequences = raw.split("\u{1b}[").skip(1).filter_map(|rest| rest.split_once('m').map(|(codes, _)| codes));
        let codes = |codes: &&str| codes.chars().all(|c| c.is_ascii_digit() || c == ';');
        assert_eq!(sequences.filter(codes).any(is_coloured), has_colours, "{raw:?}");
    }
}

#[test]
fn the_mouse_is_left_to_the_terminal_if_that_is_wanted() {
    for (args, takes_mouse) in [(&[][..], true), (&["--no-mouse"][..], false)] {
        let place = place("", &json!([]));
        let mut chat = start(&place, args);
        chat.until("workspace-write/on-request");
        chat.send("\x04");
        let ended = chat.wait();
        assert_eq!(String::from_utf8_lossy(&ended.raw).contains("\u{1b}[?1002h"), takes_mouse, "{args:?}");
    }
}
