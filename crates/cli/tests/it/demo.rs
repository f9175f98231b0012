//! `codex demo`.

use crate::program::Place;
use crate::pty::Pty;

#[test]
fn the_demo_shows_a_turn_in_plain_text_when_piped() {
    let place = Place::new();
    let run = place.run(&["demo", "--fast"], "");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert!(!run.stdout.contains('\u{1b}'), "{}", run.stdout);
    let plan = "[>] Read greeting.sh and run its test";
    for part in [
        "> Make the greeting fit the time of day.",
        plan,
        "FAIL 12: Good evening",
        "+elif",
        "ok   12: Good afternoon",
        "pass.",
        "Next: run `codex` to chat, or `codex --help`\n",
    ] {
        assert!(run.stdout.contains(part), "{part:?} is missing in:\n{}", run.stdout);
    }
    assert!(run.stdout.ends_with("\nNext: run `codex` to chat, or `codex --help`\n"), "{}", run.stdout);
}

#[test]
fn the_demo_breaks_lines_between_words() {
    let place = Place::new().variable("TERM", "dumb");
    let mut demo = Pty::start(&place, &["demo", "--fast"]);
    let shown = demo.wait();
    assert_eq!(shown.code, Some(0), "{}", shown.text);
    let is_wide = |line: &&str| line.chars().count() > 80 && line.trim().contains(' ');
    assert_eq!(shown.text.lines().find(is_wide), None);
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    assert!(words(&shown.text).contains(&words("Next: run `codex` to chat, or `codex --help`")), "{}", shown.text);
}

#[test]
fn the_demo_leaves_nothing_behind() {
    let place = Place::new();
    assert_eq!(place.run(&["demo", "--fast"], "").code, Some(0));
    for folder in ["home", "user", "tmp", "project"] {
        assert!(place.entries(folder).is_empty(), "{:?}", place.entries(folder));
    }
}

#[test]
fn the_demo_works_though_the_users_configuration_is_broken() {
    let place = Place::new().file("home/config.toml", "= broken");
    assert_eq!(place.run(&["demo", "--fast"], "").code, Some(0));
}

#[test]
fn the_demo_keeps_its_folder_on_request_and_prints_its_path() {
    let place = Place::new();
    let run = place.run(&["demo", "--fast", "--keep"], "");
    let kept = place.entries("tmp");
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(run.stderr, format!("kept {}\n", kept[0].display()));
    assert!(kept[0].join("project/greeting.sh").exists());
}

#[test]
fn the_demo_of_servers_continues_a_thread_whose_server_was_killed() {
    let place = Place::new().variable("PATH", &std::env::var("PATH").unwrap_or_default());
    let run = place.run(&["demo", "--servers", "2"], "");
    if run.stderr.contains("PostgreSQL is not installed here") {
        eprintln!("skipped: there is no initdb here");
        return;
    }
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    for part in ["kill -9 a", "the turns were completed, interrupted.", "b: I do:"] {
        assert!(run.stdout.contains(part), "{part:?} is missing in:\n{}", run.stdout);
    }
}

#[test]
fn the_demo_of_agents_shows_a_tree_at_work() {
    let run = Place::new().run(&["demo", "--agents", "--fast"], "");
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    for line in [" reader · idle · Reading the script (110 tokens)", " tester · idle · ", " skeptic · idle · "] {
        assert!(run.stdout.contains(line), "{line}: {}", run.stdout);
    }
}
