//! The rest of the command line.

use std::path::Path;

use serde_json::Value;

use crate::exec::{exec, scripted};
use crate::program::Place;
use crate::pty::Pty;

#[test]
fn every_command_has_a_manual_page() {
    let place = Place::new();
    let page = place.run(&["man"], "").stdout;
    assert!(page.contains(".TH codex") && page.contains("resume") && page.contains("ask\\-for\\-approval"), "{page}");
    let folder = place.path("tmp/man");
    assert_eq!(place.run(&["man", "--to", folder.to_str().expect("it is text")], "").code, Some(0));
    for name in ["codex.1", "codex-exec.1", "codex-exec-resume.1", "codex-fork.1"] {
        assert!(folder.join(name).exists(), "{name}");
    }
}

#[test]
fn a_key_is_stored_shown_and_removed() {
    let place = Place::new();
    let status = place.run(&["login", "status"], "");
    assert_eq!(status.code, Some(1), "{}", status.stdout);
    assert!(status.stdout.starts_with("OpenAI: not logged in"), "{}", status.stdout);
    let login = place.run(&["login", "--with-api-key"], "sk-secret\n");
    assert_eq!(login.code, Some(0), "{}", login.stderr);
    let status = place.run(&["login", "status"], "");
    assert_eq!(status.code, Some(0));
    assert_eq!(place.without_path(&status.stdout), "OpenAI: logged in with the key in TEMP/home/auth.json\n");
    assert!(!format!("{}{}{}", login.stdout, login.stderr, status.stdout).contains("sk-secret"));
    assert_eq!(place.run(&["logout"], "").stderr, "Logged out.\n");
    assert_eq!(place.run(&["logout"], "").stderr, "Not logged in.\n");
}

#[test]
fn a_login_that_the_configuration_forbids_is_refused() {
    for (method, args, expected) in [
        ("chatgpt", &["login", "--with-api-key"][..], "API key login is disabled. Use ChatGPT login instead."),
        ("api", &["login"], "ChatGPT login is disabled. Use API key login instead."),
    ] {
        let place = Place::new().file("home/config.toml", &format!("forced_login_method = '{method}'\n"));
        let run = place.run(args, "sk-secret\n");
        assert_eq!(run.code, Some(1));
        assert!(run.stderr.starts_with(&format!("error: {expected}\n")), "{}", run.stderr);
        assert!(!place.path("home/auth.json").exists());
    }
}

#[test]
fn a_key_that_is_typed_is_not_shown() {
    let place = Place::new();
    let mut login = Pty::start(&place, &["login", "--with-api-key"]);
    login.until("(input is hidden) and press Enter: ");
    login.send("sk-wrong\u{15}sk-secrex\u{7f}t\r");
    let ended = login.wait();
    assert_eq!(ended.code, Some(0), "{}", ended.text);
    assert!(!ended.text.contains("sk-"), "{}", ended.text);
    assert!(login.is_restored());
    let stored = std::fs::read_to_string(place.path("home/auth.json")).expect("it is stored");
    assert!(stored.contains("\"sk-secret\""), "{stored}");
    let mut login = Pty::start(&place, &["login", "--with-api-key"]);
    login.until("press Enter: ");
    login.send("sk-\u{3}");
    let ended = login.wait();
    assert_eq!(ended.code, Some(1));
    assert!(ended.text.ends_with("error: no key was stored\n") && login.is_restored(), "{}", ended.text);
}

#[test]
fn features_are_switched_and_the_rest_of_the_file_stays() {
    let place = Place::new().file("home/config.toml", "# mine\nmodel = 'o3'\n");
    let listed = place.run(&["features", "list"], "").stdout;
    let is = |listed: &str, words: &str| {
        listed.lines().any(|line| line.split_whitespace().collect::<Vec<_>>().join(" ").starts_with(words))
    };
    assert!(is(&listed, "unified_exec off Gives the model terminals"), "{listed}");
    assert_eq!(place.run(&["features", "enable", "unified_exec"], "").code, Some(0));
    assert!(is(&place.run(&["features", "list"], "").stdout, "unified_exec on "));
    let file = std::fs::read_to_string(place.path("home/config.toml")).unwrap();
    assert!(file.starts_with("# mine\nmodel = 'o3'\n") && file.contains("unified_exec = true"), "{file}");
    assert_eq!(place.run(&["features", "disable", "unified_exec"], "").code, Some(0));
    assert!(is(&place.run(&["features", "list", "--enable", "unified_exec"], "").stdout, "unified_exec on "));
    let unknown = place.run(&["features", "enable", "flying"], "");
    assert_eq!(
        (unknown.code, &*unknown.stderr),
        (Some(0), "warning: unknown feature `flying` (saved, but has no effect)\n")
    );
    assert_eq!(place.run(&["features", "enable", "a.b"], "").code, Some(1));
}

#[test]
fn every_shell_can_complete() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let run = place.run(&["completion", shell], "");
        assert_eq!(run.code, Some(0));
        assert!(run.stdout.contains("codex") && run.stdout.contains("threads"), "{shell}");
    }
    assert_eq!(place.run(&["completion", "tcsh"], "").code, Some(2));
}

#[test]
fn the_request_that_would_be_sent_is_shown_and_not_sent() {
    let place = Place::new().file("project/AGENTS.md", "Be kind.");
    let run = place.run(&["debug", "prompt", "-c", "model=o3", "hello there"], "");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let request: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(request["model"], "o3");
    assert!(run.stdout.contains("hello there") && run.stdout.contains("Be kind."), "{}", run.stdout);
    assert!(!place.path("home/sessions").exists());
}

#[test]
fn the_doctor_reports_problems_with_hints() {
    let healthy = scripted("[]").run(&["doctor", "--json"], "");
    let report: Value = serde_json::from_str(&healthy.stdout).unwrap();
    assert_eq!((healthy.code, &report["ok"]), (Some(0), &true.into()), "{}", healthy.stdout);
    let names: Vec<_> = report["checks"].as_array().unwrap().iter().map(|check| &check["what"]).collect();
    assert_eq!(names, ["home", "disk", "config", "login", "network", "sandbox", "git", "threads"]);
    let place = Place::new().file("home/config.toml", "model_provider = 'nowhere'\n");
    let ill = place.run(&["doctor"], "");
    assert_eq!(ill.code, Some(1));
    assert!(ill.stdout.contains("ERROR    config    "), "{}", ill.stdout);
    assert!(ill.stdout.contains("hint: choose another, or add a table [model_providers.nowhere]"), "{}", ill.stdout);
}

#[test]
fn the_doctor_reports_an_unreadable_model_catalogue() {
    let place = Place::new()
        .file("home/config.toml", "model_catalog_json = 'mine.json'\n")
        .file("home/mine.json", "{\"models\": 7}");
    let run = place.run(&["doctor"], "");
    let finding = run.stdout.lines().find(|line| line.starts_with("warning  models"));
    assert!(finding.is_some_and(|line| line.contains("mine.json: invalid type")), "{}", run.stdout);
}

#[test]
fn the_doctor_reports_whether_a_memory_limit_is_enforced() {
    let run = scripted("[]").run(&["-c", "limits.memory=1GiB", "doctor", "--json"], "");
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    let check = report["checks"].as_array().unwrap().iter().find(|check| check["what"] == "memory").unwrap();
    let message = check["message"].as_str().unwrap();
    // That depends on where the tests run.
    let (beginning, has_hint) = match check["state"].as_str() {
        Some("ok") => ("a command may use 1073741824 bytes", false),
        _ => ("`limits.memory` is not enforced: ", true),
    };
    assert!(message.starts_with(beginning) && check["hint"].is_string() == has_hint, "{check}");
    assert_eq!(run.code, Some(0));
}

/// Runs git in a folder.
#[track_caller]
fn git(folder: &Path, arguments: &str) {
    let mut git = std::process::Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]);
    let git = git.args(arguments.split(' ')).current_dir(folder).output().expect("there is git");
    assert!(git.status.success(), "{arguments}: {}", String::from_utf8_lossy(&git.stderr));
}

/// A thread that worked in a folder of a repository and changed files all over it.
fn place_with_changes() -> Place {
    let script = r#"[
        {"items": [{"call": "apply_patch", "args": {"input":
            "*** Begin Patch\n*** Add File: new.txt\n+first\n*** Update File: ../old.txt\n@@\n-before\n+after\n*** Delete File: gone.txt\n*** End Patch"}}]},
        {"items": [{"call": "apply_patch", "args": {"input":
            "*** Begin Patch\n*** Update File: new.txt\n@@\n-first\n+second\n*** End Patch"}}]},
        {"items": [{"text": "Patched."}]}]"#;
    let place = scripted(script).file("project/old.txt", "before\n");
    let place = place.variable("PATH", &std::env::var("PATH").unwrap_or_default());
    std::fs::create_dir(place.path("project/sub")).expect("the folder is new");
    let place = place.file("project/sub/gone.txt", "x\n");
    for arguments in ["init -q", "add -A", "commit -q -m first", "worktree add -q ../user/tree"] {
        git(&place.path("project"), arguments);
    }
    git(&place.path("user"), "clone -q ../project clone");
    let sub = place.path("project/sub").display().to_string();
    let run = exec(&place, &["-C", &sub, "-s", "danger-full-access", "patch"], "");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "Patched.\n"), "{}", run.stderr);
    place
}

#[test]
fn the_changes_of_a_thread_are_applied_from_any_folder_of_its_repository() {
    let place = place_with_changes();
    for checkout in ["user/tree", "user/clone"] {
        let root = place.path(checkout);
        let applied = place.run(&["apply", "-C", &root.join("sub").display().to_string()], "");
        let files = "M old.txt\nD sub/gone.txt\nA sub/new.txt\n";
        assert_eq!((applied.code, applied.stdout.as_str()), (Some(0), files), "{checkout}: {}", applied.stderr);
        assert_eq!(std::fs::read_to_string(root.join("old.txt")).unwrap(), "after\n");
        assert_eq!(std::fs::read_to_string(root.join("sub/new.txt")).unwrap(), "second\n");
        assert!(!root.join("sub/gone.txt").exists());
        // They do not apply a second time, and then none of them is made.
        let again = place.run(&["apply", "-C", &root.display().to_string()], "");
        assert_eq!((again.code, again.stdout.as_str()), (Some(1), ""));
        assert!(again.stderr.contains("error: git apply failed, and no file was changed\nhint: "), "{}", again.stderr);
    }
    assert!(place.run(&["apply", "--print"], "").stdout.starts_with("diff --git a/old.txt b/old.txt\n"));
}

#[test]
fn the_changes_of_a_thread_are_applied_nowhere_else() {
    let place = place_with_changes();
    for folder in ["user/plain", "user/other"] {
        std::fs::create_dir(place.path(folder)).unwrap();
    }
    let place = place.file("user/other/old.txt", "before\n");
    let other = place.path("user/other");
    std::fs::create_dir(other.join("sub")).unwrap();
    std::fs::write(other.join("sub/gone.txt"), "x\n").unwrap();
    for arguments in ["init -q", "add -A", "commit -q -m other", "remote add origin https://h/o/r.git"] {
        git(&other, arguments);
    }
    let apply = |folder: &str, more: &[&str]| {
        let run = place.run(&[&["apply", "-C", &place.path(folder).display().to_string()], more].concat(), "");
        (run.code, run.stdout, place.without_path(&run.stderr))
    };
    let refused = |why: &str| (Some(1), String::new(), why.to_owned());
    assert_eq!(
        apply("user/plain", &[]),
        refused(
            "error: TEMP/user/plain is not inside a git repository\n\
             hint: run it in a checkout of TEMP/project, or print the diff with --print\n"
        )
    );
    assert_eq!(
        apply("user/other", &[]),
        refused(
            "error: this is another repository: TEMP/user/other (origin https://h/o/r.git); \
             the thread worked in TEMP/project\nhint: pass --any-repo to apply its changes here anyway\n"
        )
    );
    assert_eq!(std::fs::read_to_string(other.join("old.txt")).unwrap(), "before\n");
    let files = "M old.txt\nD sub/gone.txt\nA sub/new.txt\n";
    assert_eq!(apply("user/other", &["--any-repo"]), (Some(0), files.to_owned(), String::new()));
    // A clone from the same address is the same repository, although it has none of the commits.
    git(&place.path("project"), "remote add origin git@h:o/r");
    std::fs::remove_dir_all(place.path("home/sessions")).unwrap();
    let sub = place.path("project/sub").display().to_string();
    git(&place.path("project"), "checkout -q -f HEAD");
    std::fs::remove_file(place.path("project/sub/new.txt")).unwrap();
    assert_eq!(exec(&place, &["-C", &sub, "-s", "danger-full-access", "patch"], "").code, Some(0));
    git(&other, "checkout -q -f HEAD");
    std::fs::remove_file(other.join("sub/new.txt")).unwrap();
    assert_eq!(apply("user/other/sub", &[]), (Some(0), files.to_owned(), String::new()));
}

#[test]
fn no_filter_of_a_repository_runs_when_changes_are_applied() {
    let script = r#"[
        {"items": [{"call": "apply_patch", "args": {"input":
            "*** Begin Patch\n*** Update File: old.txt\n@@\n-before\n+after\n*** End Patch"}}]},
        {"items": [{"text": "Patched."}]}]"#;
    let place = scripted(script).file("project/old.txt", "before\n");
    assert_eq!(exec(&place, &["--full-auto", "patch"], "").code, Some(0));
    let (checkout, canary) = (place.path("user/checkout"), place.path("user/canary"));
    std::fs::create_dir(&checkout).unwrap();
    std::fs::write(checkout.join("old.txt"), "before\n").unwrap();
    std::fs::write(checkout.join(".gitattributes"), "* filter=evil\n").unwrap();
    let run = format!("touch {}; cat", canary.display());
    for arguments in
        [&["init", "-q"][..], &["config", "filter.evil.clean", &run], &["config", "filter.evil.smudge", &run]]
    {
        let git = std::process::Command::new("git").args(arguments).current_dir(&checkout).status();
        assert!(git.is_ok_and(|status| status.success()), "{arguments:?}");
    }
    let place = place.variable("PATH", &std::env::var("PATH").unwrap_or_default());
    let there = checkout.display().to_string();
    let applied = place.run(&["apply", "--any-repo", "-C", &there], "");
    assert_eq!(applied.code, Some(0), "{}", applied.stderr);
    assert_eq!(std::fs::read_to_string(checkout.join("old.txt")).unwrap(), "after\n");
    assert!(!canary.exists());
    let again = place.run(&["apply", "--any-repo", "-C", &there], "");
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.starts_with("error: patch failed: old.txt:1\n"), "{}", again.stderr);
    assert!(!place.path("home/tmp").exists() && place.entries("tmp").is_empty());
}

#[test]
fn the_long_version_names_the_commit() {
    let place = Place::new();
    assert_eq!(place.run(&["-V"], "").stdout, "codex-cli 0.200.0\n");
    assert!(place.run(&["--version"], "").stdout.starts_with("codex-cli 0.200.0"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_command_in_the_sandbox_may_use_every_processor() {
    let place = Place::new();
    let allowed = |status: &str| status.lines().find(|line| line.starts_with("Cpus_allowed:")).map(str::to_owned);
    let ours = allowed(&std::fs::read_to_string("/proc/self/status").expect("it can be read"));
    // The CPU on which it starts is random.
    for _ in 0..10 {
        let run = place.run(&["sandbox", "linux", "--", "cat", "/proc/self/status"], "");
        assert_eq!(allowed(&run.stdout), ours, "{}{}", run.stdout, run.stderr);
    }
    assert!(ours.is_some());
}

#[cfg(target_os = "linux")]
#[test]
fn the_sandbox_reports_what_it_disarmed() {
    let place = Place::new();
    std::fs::create_dir(place.path("project/sub")).expect("a folder can be made");
    let project = place.path("project").display().to_string();
    let script = format!("echo x > {project}/sub/.npmrc; exit 3");
    let run = place.run(&["sandbox", "--full-auto", "--", "sh", "-c", &script], "");
    assert_eq!(run.code, Some(3), "{}", run.stderr);
    assert!(run.stderr.starts_with("warning: ") && run.stderr.contains("sub/.npmrc: "), "{}", run.stderr);
    assert!(!place.path("project/sub/.npmrc").exists());
}
