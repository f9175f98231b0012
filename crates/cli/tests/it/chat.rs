//! The chat, driven through a terminal.

use serde_json::json;

use crate::program::Place;
use crate::pty::Pty;

/// A place with a trusted project and a model that plays a script, for chats that append lines.
pub(crate) fn place(config: &str, script: &serde_json::Value) -> Place {
    place_with(config, script, "[tui]\nscreen = 'lines'\n")
}

/// The same for chats on the whole screen.
pub(crate) fn full_place(config: &str, script: &serde_json::Value) -> Place {
    place_with(config, script, "")
}

fn place_with(config: &str, script: &serde_json::Value, more: &str) -> Place {
    let place = Place::new().variable("TERM", "xterm-256color").variable("PATH", "/usr/bin:/bin");
    codex_files::testing::make_git_folder(&place.path("project/.git")).expect("a folder can be made");
    let project = place.path("project").canonicalize().expect("it is there");
    let script_file = place.path("home/script.json");
    let config = format!(
        "{config}\nmodel_provider = 'scripted'\n[model_providers.scripted]\nscript = '{}'\n\
         [projects.'{}']\ntrust_level = 'trusted'\n{more}",
        script_file.display(),
        project.display()
    );
    place.file("home/config.toml", &config).file("home/script.json", &script.to_string())
}

/// A call of a command that needs an approval.
pub(crate) fn asked_about(command: &str) -> serde_json::Value {
    let args = json!({"command": ["sh", "-c", command], "with_escalated_permissions": true, "justification": "must"});
    json!({"items": [{"call": "shell", "args": args}]})
}

fn said(text: &str) -> serde_json::Value {
    json!({"items": [{"text": text}]})
}

const CHOICES: &str = "[y] yes  [a] yes, for this session  [n] no  [esc] no, and stop";

#[test]
fn a_prompt_gets_an_answer_and_the_terminal_is_given_back() {
    let place = place("", &json!([said("It rains in **Bergen**.")]));
    let mut chat = Pty::start(&place, &[]);
    chat.until("sandbox  workspace-write, approvals: on-request");
    chat.until("> ");
    assert!(!chat.is_restored(), "keys are read one by one");
    chat.send("weather?\r");
    chat.until("> weather?");
    chat.until("It rains in Bergen.");
    chat.until("tokens: ");
    chat.send("\x04");
    let ended = chat.wait();
    assert_eq!(ended.code, Some(0), "{}", ended.text);
    assert!(chat.is_restored());
    let id = ended.text.rsplit("codex resume ").next().expect("it says how to go on").trim();
    assert_eq!(place.run(&["threads", "show", id, "--json"], "").code, Some(0), "{id}");
    let history = std::fs::read_to_string(place.path("home/history.jsonl")).expect("prompts are kept");
    assert!(history.contains(r#""text":"weather?""#), "{history}");
}

#[test]
fn yes_runs_a_command_and_no_does_not() {
    for (key, past, runs) in [("y", "  yes\n", true), ("n", "  no\n", false), ("a", "  yes, for this session", true)] {
        let script = json!([asked_about("touch canary"), said("As you like.")]);
        let place = place("approval_policy = 'untrusted'", &script);
        let mut chat = Pty::start(&place, &["do it"]);
        chat.until("Approve this command? must");
        chat.until("| sh -c 'touch canary'");
        chat.until(CHOICES);
        assert!(!place.path("project/canary").exists());
        chat.send(key);
        chat.until(past);
        chat.until("As you like.");
        assert_eq!(place.path("project/canary").exists(), runs, "{key}");
        chat.send("/quit\r");
        assert_eq!(chat.wait().code, Some(0));
    }
}

#[test]
fn changes_are_shown_before_they_are_asked_about() {
    let patch = "*** Begin Patch\n*** Add File: new.txt\n+first line\n*** End Patch";
    let call = json!({"items": [{"call": "apply_patch", "args": {"input": patch}}]});
    for (key, past, is_made) in [("y", "applied", true), ("n", "declined", false)] {
        let place = place("approval_policy = 'untrusted'", &json!([call, said("As you like.")]));
        let mut chat = Pty::start(&place, &["do it"]);
        chat.until("add new.txt +1\n");
        chat.until("    1 +first line\n");
        chat.until("Approve these changes?");
        chat.until(CHOICES);
        assert!(!place.path("project/new.txt").exists());
        chat.send(key);
        chat.until(past);
        chat.until("As you like.");
        assert_eq!(place.path("project/new.txt").exists(), is_made, "{key}");
        chat.send("\x04");
        assert_eq!(chat.wait().code, Some(0));
    }
}

#[test]
fn a_command_that_would_hide_itself_is_shown_as_it_is() {
    let evil = "touch canary #\r\u{1b}[2K\u{1b}[1Als\n[y] yes  [n] no \u{202e}";
    let place = place("", &json!([asked_about(evil), said("The end.")]));
    let mut chat = Pty::start(&place, &["do it"]);
    chat.until("Approve this command?");
    let shown = chat.until(CHOICES);
    assert!(shown.contains(r"touch canary #"), "{shown}");
    assert!(shown.contains(r"\r\u{1b}[2K\u{1b}[1Als"), "{shown}");
    assert!(shown.contains("  | [y] yes  [n] no \\u{202e}"), "what it brings along stands behind a bar: {shown}");
    chat.send("n");
    chat.until("The end.");
    chat.send("\x04");
    let raw = String::from_utf8_lossy(&chat.wait().raw).into_owned();
    assert!(!raw.contains("\u{1b}[2K") && !raw.contains('\u{202e}'), "{raw:?}");
    assert!(!place.path("project/canary").exists());
}

#[test]
fn escape_refuses_and_stops_the_turn() {
    for key in ["\x1b", "q"] {
        let place = place("", &json!([asked_about("touch canary"), said("never said")]));
        let mut chat = Pty::start(&place, &["do it"]);
        chat.until(CHOICES);
        chat.send(key);
        chat.until("Interrupted");
        assert!(!place.path("project/canary").exists());
        chat.send("\x04");
        assert!(!chat.wait().text.contains("never said"));
    }
}

#[test]
fn keys_pressed_before_the_choices_are_shown_answer_nothing() {
    let place = place("", &json!([asked_about("touch canary"), said("It was refused.")]));
    let mut chat = Pty::start(&place, &["do it"]);
    // The command is on the screen, and the user keeps typing.
    chat.until("| sh -c 'touch canary'");
    chat.send("yyyy\ry");
    chat.until(CHOICES);
    assert!(!place.path("project/canary").exists(), "what was typed before is no answer");
    chat.send("n");
    chat.until("It was refused.");
    assert!(!place.path("project/canary").exists());
    chat.send("\x04");
    assert_eq!(chat.wait().code, Some(0));
}

#[test]
fn typed_text_survives_a_question() {
    let slow = json!({"items": [{"text": "wait", "deltas": ["wait", {"pause_ms": 300}]},
        {"call": "shell", "args": {"command": ["sh", "-c", "touch canary"], "with_escalated_permissions": true}}]});
    let place = place("", &json!([slow, said("The end.")]));
    let mut chat = Pty::start(&place, &["do it"]);
    chat.until("wait");
    chat.send("yes, but");
    chat.until("> yes, but");
    chat.until(CHOICES);
    assert!(!place.path("project/canary").exists());
    chat.send("n");
    chat.until("The end.");
    chat.until("tokens: ");
    chat.until("> yes, but");
    chat.send("\x03\x03");
    assert_eq!(chat.wait().code, Some(0));
}

#[test]
fn ctrl_c_stops_the_turn_and_once_more_leaves() {
    let place = place("", &json!([{"items": [{"text": "Well", "done": false}, {"hang": true}]}]));
    let mut chat = Pty::start(&place, &["think"]);
    chat.until("Well");
    chat.send("\x03");
    chat.until("Interrupted");
    chat.send("\x03");
    let ended = chat.wait();
    assert_eq!(ended.code, Some(0), "{}", ended.text);
    assert!(ended.text.contains("codex resume "));
    assert!(chat.is_restored());
}

#[test]
fn a_signal_ends_the_chat_in_order() {
    let place = place("", &json!([{"items": [{"text": "Well", "done": false}, {"hang": true}]}]));
    let mut chat = Pty::start(&place, &["think"]);
    chat.until("Well");
    chat.signal(rustix::process::Signal::TERM);
    let ended = chat.wait();
    assert_eq!(ended.code, Some(130), "{}", ended.text);
    assert!(chat.is_restored());
    assert!(ended.text.contains("codex resume "));
}

#[test]
fn a_terminal_that_hangs_up_ends_the_chat_and_nothing_is_lost() {
    for hangs in [true, false] {
        let place = place("", &json!([{"items": [{"text": "Well."}, {"hang": true}]}]));
        let mut chat = Pty::start(&place, if hangs { &["think"] } else { &[] });
        chat.until(if hangs { "Well." } else { "> " });
        assert_eq!(chat.hang_up(), Some(130));
        if hangs {
            let threads = place.run(&["threads", "list", "--json"], "").stdout;
            assert!(threads.contains("think"), "{threads}");
        }
    }
}

#[test]
fn a_thread_continues_where_it_was_left() {
    let first = place("", &json!([said("My name is Ada."), said("You asked for a name.")]));
    let mut chat = Pty::start(&first, &["who are you?"]);
    chat.until("tokens: ");
    chat.send("\x04");
    chat.wait();
    for args in [&["resume", "--last", "what did I ask?"][..], &["fork", "--last", "what did I ask?"]] {
        let mut chat = Pty::start(&first, args);
        chat.until("> who are you?");
        chat.until("My name is Ada.");
        chat.until("> what did I ask?");
        chat.until("tokens: ");
        chat.send("\x04");
        assert_eq!(chat.wait().code, Some(0));
    }
    let mut chat = Pty::start(&first, &["resume"]);
    chat.until("who are you?");
    chat.until("Pick a thread");
    chat.send("nothing like it");
    chat.until("nothing matches");
    chat.send("\x15who are\x1b[B\r");
    chat.until("My name is Ada.");
    chat.send("\x04");
    assert_eq!(chat.wait().code, Some(0));
}

#[test]
fn input_while_a_turn_runs_joins_it() {
    let slow = json!({"items": [{"text": "First", "deltas": ["First", {"pause_ms": 400}, " part."]}]});
    let place = place("", &json!([slow, said("Second part.")]));
    let mut chat = Pty::start(&place, &["begin"]);
    chat.until("First");
    chat.send("and more\r");
    chat.until("> and more");
    chat.until("Second part.");
    chat.until("tokens: ");
    chat.send("\x04");
    assert_eq!(chat.wait().text.matches("tokens: ").count(), 1, "it was one turn");
}

#[test]
fn a_paste_of_several_lines_is_one_message() {
    let place = place("", &json!([said("Got it.")]));
    let mut chat = Pty::start(&place, &[]);
    chat.until("> ");
    chat.send("\x1b[200~first\rsecond\rthird\x1b[201~");
    chat.until("third");
    chat.send("\r");
    chat.until("> first\n  second\n  third\n");
    chat.until("Got it.");
    chat.send("\x04");
    assert_eq!(chat.wait().code, Some(0));
}

#[test]
fn nothing_of_a_model_or_a_command_reaches_the_terminal_as_a_sequence() {
    let evil = "\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}[2J\u{9b}31m\u{202e}shown";
    let run = json!({"items": [{"reasoning": [evil]}, {"text": evil},
        {"call": "shell", "args": {"command": ["printf", "\\033]0;evil\\007\\033[?1049h"]}}]});
    let place = place("", &json!([run, said("The end.")]));
    let mut chat = Pty::start(&place, &["go"]);
    chat.until("The end.");
    chat.send("\x04");
    let ended = chat.wait();
    let raw = String::from_utf8_lossy(&ended.raw);
    for sequence in ["\u{1b}]", "\u{1b}[2J", "\u{9b}", "\u{202e}", "\u{1b}[?1049h", "\u{7}"] {
        assert!(!raw.contains(sequence), "{sequence:?}");
    }
    assert!(ended.text.contains("\u{fffd}]52;c;"), "{}", ended.text);
}

#[test]
fn a_dumb_terminal_is_sent_no_sequence_at_all() {
    let place = place("", &json!([asked_about("touch canary"), said("The end.")])).variable("TERM", "dumb");
    let mut chat = Pty::start(&place, &[]);
    chat.until("> ");
    chat.send("do it\r");
    chat.until("[1] yes  [2] yes, for this session  [3] no  [4] no, and stop");
    chat.send("y");
    chat.until("The end.");
    chat.until("tokens: ");
    chat.send("\x04");
    let ended = chat.wait();
    assert!(!ended.raw.contains(&0x1b), "{:?}", String::from_utf8_lossy(&ended.raw));
    assert!(place.path("project/canary").exists());
    assert!(chat.is_restored());
}

#[test]
fn colours_can_be_had_without() {
    let place =
        place("", &json!([{"items": [{"reasoning": ["Hm."]}, {"text": "The end."}]}])).variable("NO_COLOR", "1");
    let mut chat = Pty::start(&place, &["go"]);
    chat.until("tokens: ");
    chat.send("\x04");
    let raw = String::from_utf8_lossy(&chat.wait().raw).into_owned();
    assert!(raw.contains("Hm."), "{raw:?}");
    for colour in ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m"] {
        assert!(!raw.contains(colour), "{raw:?}");
    }
}

#[test]
fn slash_commands_work() {
    let place = place("", &json!([said("Hello."), said("Hello again.")]));
    let mut chat = Pty::start(&place, &[]);
    chat.until("> ");
    for (line, shown) in [
        ("/help", "/approvals [POLICY] [SANDBOX]"),
        ("/approvals", "approvals: on-request, sandbox: workspace-write"),
        ("/approvals never read-only", "approvals: never, sandbox: read-only"),
        ("/approvals sometimes", "unknown: sometimes"),
        ("/model other", "model: other from the next turn on"),
        ("/nothing", "Unknown command /nothing. Type /help for a list"),
        ("hello", "tokens: "),
        ("/new", "thread  "),
        ("/resume", "Pick a thread"),
        ("1", "> hello"),
    ] {
        chat.send(&format!("{line}\r"));
        chat.until(shown);
    }
    chat.send("/quit\r");
    assert_eq!(chat.wait().code, Some(0));
}

#[test]
fn without_a_terminal_the_chat_suggests_exec() {
    let place = place("", &json!([]));
    for (args, what) in
        [(&[][..], "codex exec"), (&["Say hello."], "codex exec"), (&["resume", "--last"], "codex exec resume")]
    {
        let run = place.run(args, "");
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
        assert_eq!(run.stderr, format!("error: the chat needs a terminal; `{what}` works without one\n"));
    }
}

#[test]
fn full_access_is_confirmed_once_more() {
    let place = place("", &json!([]));
    let mut chat = Pty::start(&place, &[]);
    chat.until("approvals: on-request");
    chat.send("/approvals never danger-full-access\r");
    chat.until("careful: commands would run without a sandbox and without asking you. Type yes");
    chat.send("never mind\r");
    chat.until("approvals: nothing was changed");
    // Also in two steps.
    chat.send("/approvals danger-full-access\r");
    chat.until("approvals: on-request, sandbox: danger-full-access");
    chat.send("/approvals never\r");
    chat.until("careful: ");
    chat.send("yes\r");
    chat.until("approvals: never, sandbox: danger-full-access");
    chat.send("/quit\r");
    assert_eq!(chat.wait().code, Some(0));
}

#[test]
fn a_screen_reader_gets_appended_lines_labels_and_numbers() {
    let script = json!([said("It rains."), asked_about("touch canary"), said("Done.")]);
    let place = full_place("approval_policy = 'untrusted'", &script);
    let mut chat = Pty::start(&place, &["--screen-reader", "weather?"]);
    chat.until("It rains.");
    chat.send("do it\r");
    chat.until("Approve this command?");
    chat.until("[1] yes  [2] yes, for this session  [3] no  [4] no, and stop");
    assert!(!place.path("project/canary").exists());
    chat.send("1");
    chat.until("Done.");
    assert!(place.path("project/canary").exists());
    // The turn is over.
    chat.until("tokens: 200");
    chat.send("/new\r");
    chat.until("thread");
    chat.send("/quit\r");
    let ended = chat.wait();
    assert_eq!(ended.code, Some(0), "{}", ended.text);
    let raw = String::from_utf8_lossy(&ended.raw).replace("\u{1b}[?2004h", "").replace("\u{1b}[?2004l", "");
    assert!(!raw.contains('\u{1b}'), "lines are appended, and nothing is drawn in place: {raw:?}");
    let mut chat = Pty::start(&place, &["resume", "--screen-reader"]);
    chat.until("1  ");
    chat.until("weather?");
    chat.send("1\r");
    chat.until("Done.");
    chat.send("/quit\r");
    assert_eq!(chat.wait().code, Some(0));
}
