//! `codex threads`: threads on the command line.

use serde_json::Value;

use crate::exec::{exec, scripted};
use crate::program::{Place, Run};
use crate::pty::Pty;

/// A place with one thread, and its id.
fn place() -> (Place, String) {
    let place = scripted(r#"[{"items": [{"text": "The answer is forty-two."}], "repeat": true}]"#);
    let run = exec(&place, &["--json", "what is the answer?"], "");
    let id = run.lines()[0]["thread_id"].as_str().expect("it has an id").to_owned();
    (place, id)
}

#[track_caller]
fn check(place: &Place, args: &[&str]) -> Run {
    let run = place.run(&[&["threads"], args].concat(), "");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    run
}

fn json(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).expect("it is JSON")
}

#[test]
fn lists_and_searches_are_read_by_people_and_programs() {
    let (place, id) = place();
    let listed = check(&place, &["list"]).stdout;
    assert!(listed.starts_with(&id) && listed.ends_with("  what is the answer?\n"), "{listed:?}");
    assert_eq!(json(&check(&place, &["list", "--json", "--here"]))["threads"][0]["id"], *id);
    assert_eq!(json(&check(&place, &["list", "--json", "--archived"]))["threads"], serde_json::json!([]));
    let found = check(&place, &["search", "forty"]).stdout;
    assert!(found.starts_with(&id) && found.contains("forty"), "{found:?}");
    assert_eq!(json(&check(&place, &["search", "--json", "forty"]))["hits"][0]["thread"]["id"], *id);
    assert_eq!(json(&check(&place, &["search", "--json", "fifty"]))["hits"], serde_json::json!([]));
}

#[test]
fn a_thread_is_shown_exported_and_taken_in_elsewhere() {
    let (place, id) = place();
    let shown = check(&place, &["show", &id]).stdout;
    assert!(shown.contains("## User\n\nwhat is the answer?\n\n## Assistant\n\nThe answer is forty-two."), "{shown}");
    assert_eq!(json(&check(&place, &["show", "--json", &id]))["preview"], "what is the answer?");
    assert_eq!(check(&place, &["export", &id]).stdout, shown);
    check(&place, &["export", &id, "--format", "bundle", "-o", "thread.bundle"]);
    let bundle = std::fs::read_to_string(place.path("project/thread.bundle")).unwrap();
    let elsewhere = scripted("[]");
    let imported = elsewhere.run(&["threads", "import", "-"], &bundle);
    assert_eq!((imported.code, imported.stdout.as_str()), (Some(0), &*format!("imported {id}\n")));
    assert_eq!(check(&elsewhere, &["show", &id]).stdout, shown);
    // A second import creates a separate thread.
    let again = elsewhere.run(&["threads", "import", "--json", "-"], &bundle);
    assert_eq!(json(&again)["renamed_from"], *id);
}

#[test]
fn a_thread_is_archived_restored_named_and_deleted() {
    let (place, id) = place();
    check(&place, &["rename", &id, "the question"]);
    assert_eq!(place.run(&["archive", "the question"], "").stdout, format!("archived {id}\n"));
    assert_eq!(check(&place, &["list"]).stdout, "");
    let put_away = exec(&place, &["resume", &id, "go on"], "");
    assert_eq!(put_away.code, Some(1));
    assert!(put_away.stderr.contains("hint: restore it with"), "{}", put_away.stderr);
    assert_eq!(place.run(&["unarchive", &id], "").stdout, format!("unarchived {id}\n"));
    assert!(check(&place, &["list"]).stdout.ends_with("  the question\n"));
    for args in [&["delete", &id][..], &["threads", "delete", &id]] {
        let refused = place.run(args, "y\n");
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
        let why =
            format!("error: cannot ask for confirmation without a terminal; {id} was not deleted\nhint: use --force");
        assert!(refused.stderr.starts_with(&why), "{}", refused.stderr);
    }
    let mut asked = Pty::start(&place, &["delete", &id]);
    asked.until("permanently? [y/N] ");
    asked.send("n\n");
    assert_eq!(asked.wait().code, Some(1));
    assert!(check(&place, &["list"]).stdout.ends_with("  the question\n"));
    assert_eq!(place.run(&["delete", "--force", &id], "").stdout, format!("deleted {id}\n"));
    let gone = place.run(&["threads", "show", &id], "");
    assert_eq!(gone.code, Some(1));
    assert_eq!(gone.stderr, format!("error: thread not found: {id}\nhint: list threads with `codex threads list`\n"));
}

#[test]
fn a_torn_file_is_mended() {
    let (place, id) = place();
    let path = json(&check(&place, &["show", "--json", &id]))["path"].as_str().unwrap().to_owned();
    assert_eq!(check(&place, &["repair", &id]).stdout, format!("{id}: no problems found\n"));
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, [&whole[..], b"{\"timestamp\":\"2026"].concat()).unwrap();
    assert!(check(&place, &["repair", &id]).stdout.contains("removed an incomplete last line (18 bytes)"));
    assert_eq!(std::fs::read(&path).unwrap(), whole);
    assert_eq!(check(&place, &["repair"]).stdout, "the index is up to date\n");
}

#[test]
fn a_thread_is_played_again() {
    let (place, id) = place();
    let played = place.run(&["replay", &id, "--dialect", "exec"], "");
    let last = played.lines().pop().unwrap();
    assert_eq!((played.code, &last["type"]), (Some(0), &"turn.completed".into()), "{}", played.stderr);
    assert_eq!(played.lines()[2]["item"]["text"], "The answer is forty-two.");
    let played = place.run(&["replay", &id], "");
    assert_eq!((played.code, &played.events()[0]["msg"]["session_id"]), (Some(0), &id.as_str().into()));
    assert!(!played.events()[0]["msg"]["model"].as_str().unwrap().is_empty());
    let gone = place.run(&["replay", "gone.jsonl"], "");
    assert_eq!((gone.code, gone.stdout.as_str()), (Some(1), ""));
}
