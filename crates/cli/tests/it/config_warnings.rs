//! Configuration keys without effect, and where they are reported.

use serde_json::Value;

use crate::chat;
use crate::exec::{exec, scripted};
use crate::program::Place;
use crate::pty::Pty;

const SCRIPT: &str = r#"[{"items": [{"text": "Hello."}]}]"#;

/// A place whose configuration has a misspelled key and a section without effect.
fn misspelled() -> Place {
    let place = scripted(SCRIPT);
    let config = std::fs::read_to_string(place.path("home/config.toml")).expect("it is there");
    place.file("home/config.toml", &format!("modle = 'x'\n{config}[otel]\nexporter = 'none'\n"))
}

const TOLD: &str = "warning: TEMP/home/config.toml:1: unknown key `modle`; did you mean `model`?\n\
    warning: TEMP/home/config.toml:5: `otel` has no effect: telemetry is not supported yet\n";

#[test]
fn exec_warns_about_keys_without_effect() {
    let place = misspelled();
    let run = exec(&place, &["hi"], "");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "Hello.\n"), "{}", run.stderr);
    let told = place.without_path(&run.stderr);
    assert!(told.starts_with(TOLD) && told.matches("modle").count() == 1, "{told}");
    let quiet = exec(&scripted(SCRIPT), &["hi"], "");
    assert!(!quiet.stderr.contains("warning"), "{}", quiet.stderr);
}

#[test]
fn servers_warn_on_standard_error() {
    let place = misspelled();
    for args in [&["app-server"][..], &["proto"]] {
        let run = place.run(args, "");
        assert!(place.without_path(&run.stderr).starts_with(TOLD), "{args:?}: {}", run.stderr);
        assert_eq!(run.code, Some(0), "{args:?}");
    }
}

#[test]
fn strictness_refuses_to_start() {
    let place = misspelled();
    for args in [
        &["exec", "--strict-config", "--skip-git-repo-check", "hi"][..],
        &["--strict-config", "exec", "--skip-git-repo-check", "hi"],
        &["--strict-config", "app-server"],
        &["proto", "--strict-config"],
        &["features", "list", "--strict-config"],
    ] {
        let run = place.run(args, "");
        let told = place.without_path(&run.stderr);
        assert!(run.code != Some(0) && run.stdout.is_empty(), "{args:?}");
        let expected = "error: TEMP/home/config.toml:1: unknown key `modle`; did you mean `model`? (and 1 more)\n";
        assert!(told.contains(expected) && !told.contains("warning: "), "{args:?}: {told}");
    }
    let clean = exec(&scripted(SCRIPT), &["--strict-config", "hi"], "");
    assert_eq!((clean.code, clean.stdout.as_str()), (Some(0), "Hello.\n"), "{}", clean.stderr);
}

#[test]
fn the_chat_warns_about_keys_without_effect() {
    let place = chat::place("modle = 'x'\n", &serde_json::from_str(SCRIPT).expect("it is JSON"));
    let mut chat = Pty::start(&place, &["hello"]);
    let text = chat.until("Hello.");
    assert!(text.contains("unknown key `modle`") || chat.until("`model`?").contains("unknown key"), "{text}");
    chat.send("\x04");
    assert_eq!(chat.wait().code, Some(0));
    let mut strict = Pty::start(&place, &["--strict-config", "hello"]);
    let ended = strict.wait();
    assert!(
        ended.code == Some(1) && ended.text.contains("error: ") && ended.text.contains("`modle`"),
        "{}",
        ended.text
    );
}

#[test]
fn the_doctor_audits_every_key() {
    let place = misspelled();
    let run = place.run(&["doctor", "-v"], "");
    let told = place.without_path(&run.stdout);
    assert_eq!(run.code, Some(0), "{told}");
    for line in [
        "ok       config    model gpt-5.1-codex, provider scripted; 4 keys, 2 without effect\n",
        "warning  config    TEMP/home/config.toml:1: unknown key `modle`; did you mean `model`?\n",
        "unknown     TEMP/home/config.toml:1  modle: did you mean `model`?\n",
        "honoured    TEMP/home/config.toml:2  model_provider\n",
        "no effect   TEMP/home/config.toml:5  otel: telemetry is not supported yet\n",
        " free\n",
    ] {
        assert!(told.contains(line), "{line} in {told}");
    }
    assert_eq!(place.run(&["doctor", "--strict-config"], "").code, Some(1));
    let report: Value = serde_json::from_str(&place.run(&["doctor", "--json"], "").stdout).expect("it is JSON");
    let states: Vec<_> = report["config"].as_array().expect("a list").iter().map(|key| &key["state"]).collect();
    assert_eq!(states, ["unknown", "honoured", "honoured", "no effect"]);
}

/// Homes of other releases: nothing is an error, and exec, doctor and the chat report everything without effect.
#[test]
fn homes_of_other_releases_are_opened() {
    for (release, lost) in [("0.77", 7), ("0.166", 15)] {
        let path = format!("{}/../config/tests/homes/{release}.toml", env!("CARGO_MANIFEST_DIR"));
        let config = std::fs::read_to_string(path).expect("it is there");
        let provider = "model_provider = \"scripted\"\n";
        let config = config.replace("model_provider = \"openai\"\n", "");
        let script = "[model_providers.scripted]\nscript = 'answers.json'\n";
        let place = scripted(SCRIPT).file("home/config.toml", &format!("{provider}{config}{script}"));
        let place = place.file("home/instructions.md", "Be brief.\n");
        let run = exec(&place, &["hi"], "");
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "Hello.\n"), "{release}: {}", run.stderr);
        assert_eq!(run.stderr.lines().filter(|line| line.starts_with("warning: ")).count(), lost, "{}", run.stderr);
        let doctor = place.run(&["doctor"], "").stdout;
        assert_eq!(doctor.lines().filter(|line| line.starts_with("warning  config")).count(), lost, "{doctor}");
        let project = place.path("project").canonicalize().expect("it is there");
        let config = std::fs::read_to_string(place.path("home/config.toml")).expect("it is there");
        let trusted = format!("{config}[projects.'{}']\ntrust_level = 'trusted'\n", project.display());
        let place = place.file("home/config.toml", &trusted).variable("TERM", "dumb");
        let mut chat = Pty::start(&place, &["hello"]);
        let shown: String = chat.until("Hello.").split_whitespace().collect();
        assert_eq!(shown.matches("home/config.toml:").count(), lost, "{release}: {shown}");
        chat.send("\x04");
        assert_eq!(chat.wait().code, Some(0));
    }
}

#[test]
fn a_project_sets_its_model_and_nothing_that_runs() {
    let place = scripted(SCRIPT);
    let config = std::fs::read_to_string(place.path("home/config.toml")).expect("it is there");
    let project = place.path("project").canonicalize().expect("it is there");
    std::fs::create_dir(project.join(".codex")).expect("a folder can be made");
    let evil = "model = 'of-the-project'\nnotify = ['touch', 'canary']\nmodel_provider = 'evil'\n";
    let place = place.file("project/.codex/config.toml", evil);
    let untrusted = exec(&place, &["hi"], "");
    assert!(
        place
            .without_path(&untrusted.stderr)
            .contains("warning: TEMP/project/.codex/config.toml: not read: the project is not trusted\n")
    );
    let trust = format!("{config}[projects.'{}']\ntrust_level = 'trusted'\n", project.display());
    let place = place.file("home/config.toml", &trust);
    let run = exec(&place, &["hi"], "");
    let told = place.without_path(&run.stderr);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "Hello.\n"), "{told}");
    assert!(told.contains("config.toml:2: `notify` is ignored: a project cannot set it\n"), "{told}");
    assert!(told.contains("config.toml:3: `model_provider` is ignored: a project cannot set it\n"), "{told}");
    let shown = place.run(&["debug", "prompt", "hi"], "");
    assert!(shown.stdout.contains("of-the-project"), "{}", shown.stdout);
    assert!(!project.join("canary").exists());
}
