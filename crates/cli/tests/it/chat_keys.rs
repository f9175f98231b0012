//! Keys and commands of the chat, driven through a terminal.

use rustix::process::Signal;
use serde_json::json;

use crate::chat::{asked_about, place};
use crate::pty::Pty;

fn said(text: &str) -> serde_json::Value {
    json!({"items": [{"text": text}]})
}

const CHOICES: &str = "[y] yes  [a] yes, for this session  [n] no  [esc] no, and stop";

#[test]
fn escape_stops_the_turn_and_arrows_do_not() {
    let place = place("", &json!([{"items": [{"text": "Well", "done": false}, {"hang": true}]}]));
    let mut chat = Pty::start(&place, &["think"]);
    chat.until("Well");
    chat.until("Esc or Ctrl-C to stop");
    chat.send("a\x1b[D\x1b[Cb");
    chat.until("> ab");
    chat.send("\x1b");
    chat.until("Interrupted");
    chat.until("> ab");
    chat.send("\x03\x03");
    assert_eq!(chat.wait().code, Some(0));
}

#[test]
fn ctrl_z_suspends_until_the_program_is_continued() {
    let place = place("", &json!([said("Hello.")]));
    let mut chat = Pty::start(&place, &[]);
    chat.until("> ");
    chat.send("a draft");
    chat.until("> a draft");
    chat.send("\x1a");
    chat.until_stopped();
    assert!(chat.is_restored());
    chat.signal(Signal::CONT);
    chat.until("> a draft");
    chat.send("\r");
    chat.until("Hello.");
    assert!(!chat.is_restored());
    // The prompt at the end of the turn must not be confused with the one that is drawn after the stop.
    chat.until("tokens: ");
    chat.until("> ");
    // Another process stops it.
    chat.signal(Signal::STOP);
    chat.until_stopped();
    chat.signal(Signal::CONT);
    chat.until("> ");
    chat.send("\x04");
    assert_eq!(chat.wait().code, Some(0));
    assert!(chat.is_restored());
}

#[test]
fn a_command_of_the_user_runs_and_is_shown() {
    let place = place("", &json!([said("I saw it.")]));
    let mut chat = Pty::start(&place, &[]);
    chat.until("> ");
    chat.send("!echo one; echo two; touch made\r");
    chat.until("$ echo one; echo two; touch made\n");
    chat.until("  │ one");
    chat.until("  │ two");
    chat.until("exit 0");
    assert!(place.path("project/made").exists());
    chat.send("what did I run?\r");
    chat.until("I saw it.");
    chat.until("tokens: ");
    chat.send("\x04");
    assert_eq!(chat.wait().code, Some(0));
}

#[test]
fn the_status_shows_the_settings_of_the_thread() {
    let usage = json!({"input": 1000, "output": 50});
    let place = place("model_reasoning_effort = 'high'", &json!([{"items": [{"text": "Hello."}], "usage": usage}]));
    let mut chat = Pty::start(&place, &["hi"]);
    chat.until("tokens: ");
    chat.send("/status\r");
    for row in [
        "thread  ",
        "model  gpt-5.1-codex\n",
        "provider  scripted\n",
        "effort  high\n",
        "folder  ",
        "sandbox  workspace-write\n",
        "approvals  on-request\n",
        "trust  trusted\n",
        "tokens  ",
        "% left (",
        "config  ",
    ] {
        chat.until(row);
    }
    chat.send("\x04");
    assert_eq!(chat.wait().code, Some(0));
}

#[test]
fn init_writes_agents_md_only_if_there_is_none() {
    let place = place("", &json!([said("Written.")]));
    let mut chat = Pty::start(&place, &[]);
    chat.until("> ");
    chat.send("/init\r");
    chat.until("> Write a file AGENTS.md");
    chat.until("Written.");
    chat.until("tokens: ");
    let place = place.file("project/AGENTS.md", "mine");
    chat.send("/init\r");
    chat.until("AGENTS.md exists already.");
    chat.send("\x04");
    assert_eq!(chat.wait().code, Some(0));
    drop(place);
}

#[test]
fn changes_are_reviewed_and_the_thread_is_called_so() {
    let place = place("", &json!([said("The changes are fine.")]));
    std::fs::remove_dir_all(place.path("project/.git")).expect("it is there");
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.current_dir(place.path("project")).env("HOME", place.path("user")).env("GIT_CONFIG_NOSYSTEM", "1");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(args);
        assert!(git.output().expect("git is there").status.success(), "{args:?}");
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    let mut chat = Pty::start(&place, &[]);
    chat.until("> ");
    chat.send("/review nosuch\r");
    chat.until("there is no branch or commit `nosuch`");
    chat.send("/review main\r");
    chat.until("review: changes against 'main'");
    chat.until("The changes are fine.");
    chat.until("tokens: ");
    chat.send("\x04");
    assert_eq!(chat.wait().code, Some(0));
    let listed = place.run(&["threads", "list"], "").stdout;
    assert!(listed.contains("Review: changes against 'main'"), "{listed}");
}

#[test]
fn a_question_taller_than_the_screen_cannot_be_approved_unseen() {
    let script = (1..=70).map(|number| format!("echo {number}\n")).collect::<Vec<_>>().concat() + "touch canary";
    let place = place("", &json!([asked_about(&script), said("As you like.")]));
    let mut chat = Pty::start(&place, &["do it"]);
    chat.until("[space] more (page 1 of 4)  [n] no  [esc] no, and stop");
    chat.send("y");
    for page in ["page 2 of 4", "page 3 of 4"] {
        chat.send(" ");
        chat.until(page);
        assert!(!place.path("project/canary").exists());
    }
    chat.send(" ");
    chat.until("| touch canary");
    chat.until(CHOICES);
    assert!(!place.path("project/canary").exists());
    chat.send("y");
    chat.until("As you like.");
    assert!(place.path("project/canary").exists());
    chat.send("\x04");
    assert_eq!(chat.wait().code, Some(0));
}

#[test]
fn changes_taller_than_the_screen_are_paged_too() {
    let lines = (1..=60).map(|number| format!("+line {number}\n")).collect::<Vec<_>>().concat();
    let patch = format!("*** Begin Patch\n*** Add File: new.txt\n{lines}*** End Patch");
    let call = json!({"items": [{"call": "apply_patch", "args": {"input": patch}}]});
    let place = place("approval_policy = 'untrusted'", &json!([call, said("As you like.")]));
    let mut chat = Pty::start(&place, &["do it"]);
    chat.until("add new.txt +60\n");
    chat.until("page 1 of 3)");
    for page in ["page 2 of 3)", "   60 +line 60\n"] {
        chat.send(" ");
        chat.until(page);
        assert!(!place.path("project/new.txt").exists());
    }
    chat.until("Approve these changes?");
    chat.until(CHOICES);
    chat.send("y");
    chat.until("As you like.");
    assert!(place.path("project/new.txt").exists());
    chat.send("\x04");
    assert_eq!(chat.wait().code, Some(0));
}

#[test]
fn a_large_paste_is_a_chip_that_is_sent_completely() {
    let place = place("", &json!([said("Got it.")]));
    let mut chat = Pty::start(&place, &[]);
    chat.until("> ");
    let pasted = "word ".repeat(400);
    chat.send("see ");
    chat.until("> see ");
    chat.send(&format!("\x1b[200~{pasted}end\x1b[201~"));
    chat.until("characters]");
    chat.send(" please");
    chat.until("> see [Pasted 2,003 characters] please");
    chat.send("\r");
    chat.until("Got it.");
    chat.until("tokens: ");
    chat.send("\x04");
    assert_eq!(chat.wait().code, Some(0));
    let history = std::fs::read_to_string(place.path("home/history.jsonl")).expect("prompts are kept");
    assert!(history.contains(&format!("see {pasted}end please")), "{history}");
}

#[test]
fn reasoning_output_and_messages_differ_without_colours() {
    let run = json!({"items": [{"reasoning": ["Hm.\nWell."]},
        {"call": "shell", "args": {"command": ["printf", "one\\ntwo\\n"]}}]});
    let place = place("", &json!([run, said("# Title\n\n- *one*\n\nDone `it`.")])).variable("NO_COLOR", "1");
    let mut chat = Pty::start(&place, &["first\nsecond"]);
    chat.until("> first\n  second\n");
    chat.until("  ~ Hm.");
    chat.until("  ~ Well.");
    chat.until("$ printf ");
    chat.until("  │ one");
    chat.until("  │ two");
    chat.until("  exit 0, ");
    chat.until("# Title");
    chat.until("- *one*");
    chat.until("Done `it`.");
    chat.send("\x04");
    assert_eq!(chat.wait().code, Some(0));
}

#[test]
fn an_answer_is_rendered() {
    let text = "# Title\n\nIt is **very** *good* `code`:\n\n- one\n1. two\n\n```rust\nfn main() {}\n```\nEnd.";
    let deltas: Vec<String> = text.chars().map(String::from).collect();
    let place = place("", &json!([{"items": [{"text": text, "deltas": deltas}]}]));
    let mut chat = Pty::start(&place, &["hi"]);
    chat.until("tokens: ");
    chat.send("\x04");
    let raw = String::from_utf8_lossy(&chat.wait().raw).into_owned();
    for shown in [
        "\u{1b}[1;4mTitle\u{1b}[0m",
        "\u{1b}[1mvery\u{1b}[0m",
        "\u{1b}[3mgood\u{1b}[0m",
        "\u{1b}[36mcode\u{1b}[0m",
        "\u{1b}[2m• \u{1b}[0mone",
        "\u{1b}[2m1. \u{1b}[0mtwo",
        "\u{1b}[36mfn main() {}\u{1b}[0m",
    ] {
        assert!(raw.contains(shown), "{shown:?} in {raw:?}");
    }
    assert!(!raw.contains("**") && !raw.contains("```"), "{raw:?}");
}

#[test]
fn all_turns_are_shown_of_a_thread_that_continues() {
    let mut script: Vec<_> = (1..=5).map(|number| said(&format!("Answer {number}."))).collect();
    let patch = "*** Begin Patch\n*** Add File: new.txt\n+first line\n*** End Patch";
    script.push(json!({"items": [{"call": "apply_patch", "args": {"input": patch}}]}));
    script.push(said("The end."));
    let place = place("", &json!(script));
    let mut chat = Pty::start(&place, &[]);
    chat.until("> ");
    for number in 1..=6 {
        chat.send(&format!("question {number}\r"));
        chat.until("tokens: ");
    }
    chat.send("\x04");
    chat.wait();
    let mut chat = Pty::start(&place, &["resume", "--last"]);
    for number in 1..=5 {
        chat.until(&format!("> question {number}\n"));
        chat.until(&format!("Answer {number}."));
    }
    chat.until("add new.txt +1\n    1 +first line\n  applied");
    chat.until("The end.");
    chat.send("\x04");
    assert_eq!(chat.wait().code, Some(0));
}
