//! Text from any source that reaches a terminal moves no cursor, sets no title and reorders no text.

use codex_testkit::FakeModel;

use crate::exec::scripted;
use crate::program::Place;
use crate::pty::Pty;

/// Sequences that write to the clipboard, set the title, clear the screen, colour and query the terminal; then
/// characters that reverse text and return to the start of the line.
const EVIL: &str =
    "\u{1b}]52;c;cm0gLXJm\u{7}\u{1b}]0;pwn\u{7}\u{1b}[2J\u{9b}31m\u{1b}P$q\u{1b}\\\u{202e}evil\u{2066}\r\u{8}";

/// Runs the program in a terminal without colours, and returns its output.
#[track_caller]
fn check(place: &Place, args: &[&str]) -> String {
    let ended = Pty::start(place, args).wait();
    let text = String::from_utf8(ended.raw).expect("it is text");
    // A terminal itself puts a carriage return before each line feed.
    let shown = text.replace("\r\n", "\n");
    let obeyed = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\t') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!shown.contains(obeyed), "{args:?}: {shown:?}");
    shown
}

/// A place where everything that can have a name has an evil one.
fn place() -> Place {
    let evil = EVIL.replace('\r', "");
    let script = serde_json::json!([
        {"items": [{"reasoning": [EVIL]},
                   {"call": "shell", "args": {"command": ["bash", "-lc", format!("printf '%s' '{evil}'")]}}]},
        {"items": [{"text": format!("final {EVIL}")}]},
    ]);
    scripted(&script.to_string()).variable("NO_COLOR", "1").variable("TERM", "xterm").variable("PATH", "/usr/bin:/bin")
}

#[test]
fn of_a_model_and_its_commands() {
    let place = place();
    let shown = check(&place, &["exec", "--skip-git-repo-check", &format!("do {EVIL}")]);
    assert!(shown.contains("> do \u{fffd}]52;") && shown.contains("final \u{fffd}]52;"), "{shown}");
    assert!(check(&place, &["threads", "list"]).contains("evil"));
    assert!(check(&place, &["threads", "search", "evil"]).contains("evil"));
    let listed = place.run(&["threads", "list", "--json"], "");
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).expect("it is JSON");
    let id = listed["threads"][0]["id"].as_str().expect("it has an id");
    assert!(check(&place, &["threads", "show", id]).contains("final \u{fffd}]52;"));
    assert!(check(&place, &["threads", "export", id]).contains("final \u{fffd}]52;"));
    // A program gets the same thread unchanged, and a list that may end up in a terminal after all is clean there too.
    let exported = place.run(&["threads", "export", id], "");
    assert!(exported.stdout.contains(EVIL), "{}", exported.stdout);
    assert!(!place.run(&["threads", "list"], "").stdout.contains('\u{1b}'));
}

#[test]
fn of_a_server() {
    let body = serde_json::json!([{"status": 400, "body": {"error": {"message": format!("bad {EVIL}")}}}]);
    let model = FakeModel::start(&body.to_string());
    let config = format!("model_provider = 'm'\n[model_providers.m]\nbase_url = '{}/v1'\n", model.url());
    let place = Place::new().file("home/config.toml", &config).variable("NO_COLOR", "1").variable("TERM", "xterm");
    let shown = check(&place, &["exec", "--skip-git-repo-check", "hi"]);
    assert!(shown.contains("bad \u{fffd}]52;"), "{shown}");
}

#[test]
fn of_arguments() {
    let place = place();
    let (word, option) = (format!("no{EVIL}"), format!("--no{EVIL}"));
    let (program, value) = (format!("/no{EVIL}"), format!("model_provider={EVIL}"));
    for args in [
        &["exec", "--skip-git-repo-check", "resume", &word][..],
        &["exec", "-C", &program, "hi"],
        &["exec", &option],
        &[&option],
        &[&word, "x"],
        &["exec", "--color", &word, "hi"],
        &["-c", &value, "exec", "hi"],
        &["-c", &word, "doctor"],
        &["-p", &word, "doctor"],
        &["sandbox", "linux", "--", &program],
        &["sandbox", "explain", "-C", &program],
        &["execpolicy", "check", &word],
        &["execpolicy", "check", "--rules", &program, "ls"],
        &["threads", "show", &word],
        &["threads", "import", &program],
        &["threads", "search", &word],
        &["features", "enable", &word],
        &["login", &word],
        &["replay", &program],
        &["apply", &word],
        &["debug", &word],
        &["app-server", "proxy", "--connect", &word],
    ] {
        assert!(!check(&place, args).is_empty(), "{args:?}");
    }
}

#[test]
fn of_files_and_variables() {
    for config in [
        format!("model = {:?}\nnonsense", "x"),
        format!("approval_policy = \"{}\"\n", toml(EVIL)),
        format!("[model_providers.scripted]\nname = \"{}\"\n[\"{}\"]\n", toml(EVIL), toml(EVIL)),
        format!("model_provider = \"{}\"\n", toml(EVIL)),
    ] {
        let place = place().file("home/config.toml", &config);
        for args in
            [&["doctor"][..], &["exec", "--skip-git-repo-check", "hi"], &["login", "status"], &["features", "list"]]
        {
            check(&place, args);
        }
    }
    for name in ["CODEX_HOME", "OPENAI_BASE_URL", "CODEX_OSS_BASE_URL", "SHELL"] {
        let place = place().variable(name, &format!("/no{EVIL}"));
        check(&place, &["doctor"]);
        check(&place, &["exec", "--skip-git-repo-check", "--ephemeral", "hi"]);
    }
    let rules = format!("prefix_rule(pattern=[\"ls\"], decision=\"allow\", justification=\"{EVIL}\")\nnonsense {EVIL}");
    let place = place().file("project/x.rules", &rules);
    check(&place, &["execpolicy", "check", "--rules", "x.rules", "ls"]);
}

/// Quotes a text for TOML.
fn toml(text: &str) -> String {
    text.chars().flat_map(|c| format!("\\u{:04x}", u32::from(c)).chars().collect::<Vec<_>>()).collect()
}
