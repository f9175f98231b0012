//! Isolated agents of the real program: the limits of their sandbox, and the leftovers of a killed program.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::program::{Place, say};

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(arguments).current_dir(folder);
    let output = command.output().expect("git runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A project with one commit.
fn place(config: &str, script: &Value) -> Place {
    let config = format!("{config}[model_providers.scripted]\nscript = 'answers.json'\n");
    let place = Place::new().file("home/answers.json", &script.to_string()).file("home/config.toml", &config);
    let place = place.file("project/a.txt", "one\n");
    let project = place.path("project");
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "first"]);
    place
}

fn shell(id: &str, script: &str) -> Value {
    json!({"call": "shell", "id": id, "args": {"command": ["sh", "-c", script]}})
}

fn spawn() -> Value {
    json!({"call": "subagent_spawn", "id": "id-spawn", "args": {"prompt": "Edit the file", "isolation": "worktree"}})
}

/// The home is in a temporary folder here, which is open to commands and patches unless that is excluded.
#[test]
fn an_isolated_agent_writes_its_worktree_and_not_the_folder_of_its_parent() {
    if !crate::program::has_sandbox() {
        return;
    }
    let config = "model_provider = 'scripted'\napproval_policy = 'never'\nsandbox_mode = 'workspace-write'\n\
                  features.subagent_tools = true\n[sandbox_workspace_write]\nexclude_slash_tmp = true\n\
                  exclude_tmpdir_env_var = true\n";
    let edit = "echo two >> a.txt; git add -A && git -c user.name=c -c user.email=c@d commit -q -m mine && echo committed; \
                touch PROJECT/escaped || echo kept out; echo x > .git || echo kept; mkdir .codex || echo closed";
    let patch = "*** Begin Patch\n*** Add File: b.txt\n+new\n*** End Patch\n";
    let outside = "*** Begin Patch\n*** Add File: PROJECT/escaped\n+new\n*** End Patch\n";
    let script = json!([
        {"when": "id-apply", "items": [{"text": "All done."}]},
        {"when": "id-await", "items": [{"call": "subagent_apply", "id": "id-apply", "args": {"agent_id": 1}}]},
        {"when": "id-spawn", "items": [{"call": "subagent_await", "id": "id-await", "args": {}}]},
        {"when": "id-outside", "items": [{"text": "Edited."}]},
        {"when": "id-patch", "items": [{"call": "apply_patch", "id": "id-outside", "args": {"input": outside}}]},
        {"when": "id-edit", "items": [{"call": "apply_patch", "id": "id-patch", "args": {"input": patch}}]},
        {"when": "Edit the file", "items": [shell("id-edit", edit)]},
        {"items": [spawn()]},
    ]);
    let place = place(config, &script);
    let project = place.path("project").canonicalize().expect("it is there");
    let script = script.to_string().replace("PROJECT", &project.display().to_string());
    let place = place.file("home/answers.json", &script);
    let run = place.run(&["exec", "--json", "Have it edited."], "");
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("All done."), "{}", run.stdout);
    let text = |name: &str| std::fs::read_to_string(project.join(name)).unwrap_or_default();
    assert_eq!((text("a.txt").as_str(), text("b.txt").as_str()), ("one\ntwo\n", "new\n"), "{}", run.stdout);
    assert!(!project.join("escaped").exists() && !project.join(".codex").exists());
    let folder = place.path("home/sessions");
    let mut rollouts = String::new();
    collect(&folder, &mut rollouts);
    for said in ["committed", "kept out", "kept\\\\n", "closed"] {
        assert!(rollouts.contains(said), "{said}: {rollouts}");
    }
    assert_eq!(git(&project, &["branch", "--format=%(refname:short)"]), "main");
    assert!(!project.join(".git/worktrees").exists());
}

/// The text of all files below a folder.
fn collect(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            collect(&entry.path(), text);
        } else {
            text.push_str(&std::fs::read_to_string(entry.path()).unwrap_or_default());
        }
    }
}

#[test]
fn the_worktree_of_a_killed_program_goes_with_the_next_run_and_its_changes_stay() {
    let config = "model_provider = 'scripted'\napproval_policy = 'never'\nsandbox_mode = 'danger-full-access'\n\
                  features.subagent_tools = true\n";
    let script = json!([
        {"when": "Hello", "items": [{"text": "Hello."}]},
        {"when": "id-spawn", "items": [{"call": "subagent_await", "id": "id-await", "args": {}}]},
        {"when": "Edit the file", "items": [shell("id-edit", "echo new > b.txt; echo written; read line")]},
        {"items": [spawn()]},
    ]);
    let place = place(config, &script);
    let project = place.path("project");
    let mut codex = place.start(&["proto"]);
    codex.send(&say("1", "Have it edited."));
    let checkout = || {
        let agents = std::fs::read_dir(place.path("home/worktrees")).into_iter().flatten().flatten();
        agents.map(|agent| agent.path().join("project")).find(|checkout| checkout.exists())
    };
    crate::program::eventually("the agent writes", || {
        checkout().is_some_and(|checkout| checkout.join("b.txt").exists())
    });
    assert!(Command::new("kill").args(["-9", &codex.pid().to_string()]).status().expect("kill runs").success());
    codex.wait();
    assert!(checkout().is_some(), "nobody has removed it");
    let mut codex = place.start(&["proto"]);
    codex.send(&say("1", "Hello"));
    codex.until("task_complete");
    crate::program::eventually("the worktree goes", || {
        checkout().is_none() && !project.join(".git/worktrees").exists()
    });
    codex.finish();
    assert_eq!(git(&project, &["show", "codex/agent-1:b.txt"]), "new");
}

/// A role can demand a worktree, and the call that starts its agent cannot take that back.
#[test]
fn a_role_isolates_its_agents() {
    let config = "model_provider = 'scripted'\napproval_policy = 'never'\nsandbox_mode = 'danger-full-access'\n\
                  features.multi_agent = true\n[agents.editor]\ndescription = 'Edits'\nconfig_file = 'editor.toml'\n\
                  [agents.writer]\nisolation = 'worktree'\n";
    for role in ["editor", "writer"] {
        let spawn = json!({"message": "Edit the file", "agent_type": role, "isolation": "none"});
        let spawn = json!({"call": "spawn_agent", "namespace": "multi_agent_v1", "id": "id-spawn", "args": spawn});
        let wait = json!({"targets": ["${child}"]});
        let wait = json!({"call": "wait_agent", "namespace": "multi_agent_v1", "id": "id-wait", "args": wait});
        let found = json!({"child": "agent_id[^0-9a-f]+([0-9a-f-]{36})"});
        let script = json!([
            {"when": "id-wait", "items": [{"text": "All done."}]},
            {"when": "id-spawn", "find": found, "items": [wait]},
            {"when": "id-edit", "items": [{"text": "Edited."}]},
            {"when": "Edit the file", "items": [shell("id-edit", "echo new > b.txt; git branch --show-current")]},
            {"items": [spawn]},
        ]);
        let place = place(config, &script).file("home/editor.toml", "isolation = 'worktree'\n");
        let project = place.path("project");
        let run = place.run(&["exec", "--json", "Have it edited."], "");
        assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
        assert!(run.stdout.contains("All done."), "{}", run.stdout);
        assert!(!project.join("b.txt").exists(), "{role}: it works elsewhere");
        let branches = git(&project, &["branch", "--format=%(refname:short)"]);
        let branch = branches.lines().find(|branch| branch.starts_with("codex/")).expect("its changes are kept");
        assert_eq!(git(&project, &["show", &format!("{branch}:b.txt")]), "new");
    }
}
