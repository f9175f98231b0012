//! Approval requests, and threads without a person to answer them.

use std::path::PathBuf;
use std::sync::Arc;

use codex_engine::Setup;
use codex_log::settings::SettingsChange;
use codex_log::{Body, Event, Question, QuestionKind};
use codex_thread::{ExplicitOverrides, InitialHistory};
use codex_wire::decision::ReviewDecision;
use codex_wire::policy::{ApprovalsReviewer, SandboxPolicy};
use serde_json::{Value, json};

use crate::commands::{ended, outputs};
use crate::world::{Client, World, said};

fn world(approval: &str, sandbox: &str) -> World {
    World::new().set(&format!("approval_policy={approval}")).set(&format!("sandbox_mode={sandbox}"))
}

/// A script whose model makes calls, one per answer, and then is done.
fn script(calls: &[(&str, Value)]) -> String {
    let call = |(tool, args): &(&str, Value)| json!({"items": [{"call": tool, "args": args}]});
    let done = json!({"items": [{"text": "done"}]});
    Value::Array(calls.iter().map(call).chain([done]).collect()).to_string()
}

/// A call of `shell` with a script.
fn shell(text: &str) -> (&'static str, Value) {
    ("shell", json!({"command": ["sh", "-c", text]}))
}

/// Runs a turn, gives every question the same answer, and returns all events.
async fn turn(client: &mut Client, decision: ReviewDecision) -> Vec<Arc<Event>> {
    client.say("1", "hi").await;
    let mut events = Vec::new();
    loop {
        events.extend(client.until(|body| matches!(body, Body::Asked(_) | Body::TurnEnded(_))).await);
        let Some(Body::Asked(question)) = events.last().map(|event| &event.body) else { return events };
        let answered = client.thread.answer(question.id.clone(), decision.clone().into()).await;
        assert_eq!(answered, Ok(true));
    }
}

fn questions(events: &[Arc<Event>]) -> Vec<Arc<Question>> {
    let question = |event: &Arc<Event>| match &event.body {
        Body::Asked(question) => Some(Arc::clone(question)),
        _ => None,
    };
    events.iter().filter_map(question).collect()
}

/// The command lines that were asked about.
fn asked(events: &[Arc<Event>]) -> Vec<String> {
    let line = |question: &Arc<Question>| match &question.kind {
        QuestionKind::Command { argv, .. } => argv.join(" "),
        other => format!("a {}", other.noun()),
    };
    questions(events).iter().map(line).collect()
}

fn warnings(events: &[Arc<Event>]) -> Vec<String> {
    let warning = |event: &Arc<Event>| match &event.body {
        Body::Warning { message } => Some(message.clone()),
        _ => None,
    };
    events.iter().filter_map(warning).collect()
}

fn exec(command: &str, patience: u64) -> (&'static str, Value) {
    let args = json!({"cmd": command, "shell": "/bin/sh", "login": false, "yield_time_ms": patience});
    ("exec_command", args)
}

fn write(chars: &str) -> (&'static str, Value) {
    ("write_stdin", json!({"session_id": 1, "chars": chars, "yield_time_ms": 250}))
}

#[tokio::test]
async fn typing_into_a_command_that_was_only_harmless_is_asked_about() {
    let calls = [exec("cat", 250), write(""), write("one\n"), write("two\n")];
    let world = || world("untrusted", "danger-full-access").set("features.unified_exec=true");

    let mut client = world().start(&script(&calls)).await;
    let events = turn(&mut client, ReviewDecision::Denied).await;
    assert_eq!(asked(&events), ["write_stdin --session 1 one\n", "write_stdin --session 1 two\n"]);
    let first = &questions(&events)[0];
    assert_eq!(
        first.reason.as_deref(),
        Some("to type this into `/bin/sh -c cat`, which was started without an approval")
    );
    assert!(matches!(&first.kind, QuestionKind::Command { amendment: None, .. }), "no rule is about what is typed");
    let told = outputs(&client);
    assert!(told[1].contains("Process running with session ID 1"), "to look is free: {}", told[1]);
    assert_eq!(told[2..], ["exec command rejected by user", "exec command rejected by user"]);

    let mut client = world().start(&script(&calls)).await;
    let events = turn(&mut client, ReviewDecision::Approved).await;
    assert_eq!(asked(&events).len(), 2, "a yes is for once");
    assert!(outputs(&client)[2].contains("one"), "{}", outputs(&client)[2]);

    let mut client = world().start(&script(&calls)).await;
    let events = turn(&mut client, ReviewDecision::ApprovedForSession).await;
    assert_eq!(asked(&events), ["write_stdin --session 1 one\n"], "a yes for the session is for the terminal");
    assert!(outputs(&client)[3].contains("two"), "{}", outputs(&client)[3]);
    let typed = events.iter().filter(|event| matches!(event.body, Body::TerminalWritten { .. })).count();
    assert_eq!(typed, 2);
}

#[tokio::test]
async fn typing_into_a_command_that_a_person_has_allowed_is_free() {
    let calls = [exec("cat; true > /dev/null", 250), write("one\n")];
    let world = world("untrusted", "danger-full-access").set("features.unified_exec=true");
    let mut client = world.start(&script(&calls)).await;
    let events = turn(&mut client, ReviewDecision::Approved).await;
    assert_eq!(asked(&events), ["/bin/sh -c cat; true > /dev/null"]);
    assert!(outputs(&client)[1].contains("one"), "{}", outputs(&client)[1]);
}

#[tokio::test]
async fn destructive_input_to_a_terminal_is_asked_about() {
    let calls = [exec("sh", 250), write("echo fine\n"), write("rm -rf gone\n")];
    let world = world("on-request", "danger-full-access").set("features.unified_exec=true");
    let mut client = world.start(&script(&calls)).await;
    let events = turn(&mut client, ReviewDecision::Denied).await;
    assert_eq!(asked(&events), ["write_stdin --session 1 rm -rf gone\n"]);
}

#[tokio::test]
async fn a_command_of_the_model_finds_no_pager() {
    let world = world("never", "danger-full-access").set("shell_environment_policy.set={MANPAGER=\"most\"}");
    let mut client = world.start(&script(&[shell("echo $PAGER $GIT_PAGER $MANPAGER $LESSSECURE")])).await;
    let events = turn(&mut client, ReviewDecision::Denied).await;
    let printed = ended(&events)[0].end.as_ref().map(|end| end.aggregated.clone());
    assert_eq!(printed.as_deref(), Some("cat cat most 1\n"));
}

/// The approval was for words, and a command could rewrite the script behind them.
#[tokio::test]
async fn an_approval_for_the_session_is_for_the_content_of_a_script() {
    let go = || ("shell", json!({"command": ["./t.sh"], "with_escalated_permissions": true, "justification": "x"}));
    let rewrite = ("shell", json!({"command": ["/bin/sh", "-c", "echo 'echo two' > t.sh"]}));
    let calls = [go(), go(), rewrite, go()];
    let world = world("on-request", "workspace-write");
    let script_file = world.path("project/t.sh");
    std::fs::write(&script_file, "#!/bin/sh\necho one\n").expect("a file can be written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script_file, mode).expect("chmod");
    let mut client = world.start(&script(&calls)).await;
    let events = turn(&mut client, ReviewDecision::ApprovedForSession).await;
    assert_eq!(asked(&events), ["./t.sh", "./t.sh"], "the second run is free, the changed script is not");
}

/// This program itself runs these files, outside of every sandbox.
#[tokio::test]
async fn files_that_the_configuration_names_cannot_be_written() {
    if matches!(codex_sandbox::level(), codex_sandbox::SandboxLevel::Nothing { .. }) {
        return;
    }
    let world = world("never", "workspace-write");
    let file = world.path("project/x.py");
    std::fs::write(&file, "print()\n").expect("a file can be written");
    let world = world.set("notify=['python3', 'x.py']");
    let write = ("shell", json!({"command": ["/bin/sh", "-c", "echo evil >> x.py; mv x.py y; echo tried"]}));
    let patch =
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: x.py\n@@\n-print()\n+evil()\n*** End Patch\nEOF\n";
    let patched = ("shell", json!({"command": ["bash", "-c", patch]}));
    let mut client = world.start(&script(&[write, patched])).await;
    turn(&mut client, ReviewDecision::Denied).await;
    assert!(outputs(&client)[0].contains("tried"), "{:?}", outputs(&client));
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "print()\n");
}

/// A folder that came with a `.git` of its own made harmless commands run what that names.
#[tokio::test]
async fn git_is_confined_where_its_settings_name_programs() {
    for (file, text) in [
        ("config", "[core]\nfsmonitor = touch x"),
        ("config", "[diff \"x\"]\ntextconv = touch x"),
        ("config", "[include]\npath = /tmp/x"),
        ("config", "[extensions]\npartialClone = o\n[remote \"o\"]\npromisor = true"),
        ("hooks/post-index-change", "touch x"),
        ("info/attributes", "* filter=x"),
    ] {
        let world = world("untrusted", "danger-full-access");
        let git = world.path("project/.git");
        codex_files::testing::make_git_folder(&git).expect("a folder can be made");
        let status = ("shell", json!({"command": ["git", "status"]}));
        let list = ("shell", json!({"command": ["ls"]}));
        std::fs::create_dir_all(git.join(file).parent().expect("a parent")).expect("a folder can be made");
        std::fs::write(git.join(file), text).expect("a file can be written");
        let mut client = world.start(&script(&[status, list])).await;
        let events = turn(&mut client, ReviewDecision::Denied).await;
        let is_confinable = !matches!(codex_sandbox::level(), codex_sandbox::SandboxLevel::Nothing { .. });
        assert_eq!(questions(&events).len(), usize::from(!is_confinable), "{file}: {text}");
        assert!(!client.world.path("project/x").exists(), "{file}: {text}");
    }
}

#[tokio::test]
async fn git_is_asked_about_in_another_checkout() {
    let world = world("untrusted", "danger-full-access");
    for folder in ["project", "project/nested", "elsewhere"] {
        codex_files::testing::make_git_folder(&world.path(folder).join(".git")).expect("a folder can be made");
    }
    std::fs::create_dir(world.path("project/src")).expect("a folder can be made");
    let elsewhere = world.path("elsewhere");
    let status = |folder: PathBuf| ("shell", json!({"command": ["git", "status"], "workdir": folder}));
    let list = ("shell", json!({"command": ["ls"], "workdir": elsewhere}));
    let calls = [status("src".into()), status("nested".into()), status(elsewhere), list];
    let mut client = world.start(&script(&calls)).await;
    let events = turn(&mut client, ReviewDecision::Denied).await;
    let folders: Vec<_> = questions(&events)
        .iter()
        .map(|question| match &question.kind {
            QuestionKind::Command { cwd, .. } => cwd.file_name().map(|name| name.to_string_lossy().into_owned()),
            _ => None,
        })
        .collect();
    assert_eq!(folders, [Some("nested".to_owned()), Some("elsewhere".to_owned())]);
}

#[tokio::test]
async fn a_move_over_a_file_is_asked_about() {
    let world = world("on-request", "danger-full-access").file("project/a", "a").file("project/b", "b");
    for folder in ["project/full", "project/empty"] {
        std::fs::create_dir(world.path(folder)).expect("a folder can be made");
    }
    let world = world.file("project/full/a", "kept");
    let calls = ["mv a b", "mv a full", "mv -n a b", "mv a empty", "mv b new"].map(shell);
    let mut client = world.start(&script(&calls)).await;
    let events = turn(&mut client, ReviewDecision::Denied).await;
    assert_eq!(asked(&events), ["sh -c mv a b", "sh -c mv a full"]);
    assert!(client.world.path("project/new").exists());
}

#[tokio::test]
async fn a_rule_records_whether_it_was_accepted_for_the_sandbox() {
    let rule = "prefix_rule(pattern=[\"touch\", \"x\"], decision=\"allow\")";
    let proposed_execpolicy_amendment = vec!["touch".to_owned(), "x".to_owned()];
    let accept = ReviewDecision::ApprovedExecpolicyAmendment { proposed_execpolicy_amendment };
    for (sandbox, escalated, comment) in [
        ("workspace-write", false, "  # codex: in the sandbox only"),
        ("workspace-write", true, ""),
        ("danger-full-access", false, ""),
    ] {
        let run = |escalated| ("shell", json!({"command": ["touch", "x"], "with_escalated_permissions": escalated}));
        let world = world("untrusted", sandbox);
        let mut client = world.start(&script(&[run(escalated), run(escalated)])).await;
        let events = turn(&mut client, accept.clone()).await;
        assert_eq!(asked(&events).len(), 1, "{sandbox} {escalated}");
        let rules = std::fs::read_to_string(client.world.path("home/rules/default.rules")).expect("there is a rule");
        assert_eq!(rules, format!("{rule}{comment}\n"));
    }
    let line = format!("{rule}  # codex: in the sandbox only\n");
    let world = world("untrusted", "workspace-write");
    std::fs::create_dir(world.path("home/rules")).expect("a folder can be made");
    let world = world.file("home/rules/default.rules", line);
    let leaves = ("shell", json!({"command": ["touch", "x"], "with_escalated_permissions": true}));
    let mut client = world.start(&script(&[leaves])).await;
    assert_eq!(asked(&turn(&mut client, ReviewDecision::Denied).await), ["touch x"]);
}

#[tokio::test]
async fn where_nothing_may_be_written_a_write_is_asked_about_once() {
    let patch = "*** Begin Patch\n*** Add File: new\n+x\n*** End Patch";
    let patch = ("shell", json!({"command": ["apply_patch", patch]}));
    let append = || shell("echo line >> x");
    let mut client = world("untrusted", "read-only").start(&script(&[append(), patch, append()])).await;
    let events = turn(&mut client, ReviewDecision::Approved).await;
    assert_eq!(asked(&events), ["sh -c echo line >> x", "a patch", "sh -c echo line >> x"], "a yes is for once");
    let written = |client: &Client, name: &str| std::fs::read_to_string(client.world.path("project").join(name)).ok();
    assert_eq!(written(&client, "x").as_deref(), Some("line\nline\n"));
    assert_eq!(written(&client, "new").as_deref(), Some("x\n"));

    let mut client = world("untrusted", "read-only").start(&script(&[append(), append()])).await;
    let events = turn(&mut client, ReviewDecision::ApprovedForSession).await;
    assert_eq!(asked(&events), ["sh -c echo line >> x"]);
    assert_eq!(written(&client, "x").as_deref(), Some("line\nline\n"));

    let world = world("on-request", "read-only").file("project/old", "old");
    let mut client = world.start(&script(&[append(), shell("rm -f old")])).await;
    let events = turn(&mut client, ReviewDecision::Approved).await;
    assert_eq!(asked(&events), ["sh -c rm -f old"]);
    assert_eq!(
        (written(&client, "old"), written(&client, "x")),
        (None, None),
        "what nobody was asked about is confined"
    );
}

#[tokio::test]
async fn without_a_reviewer_questions_are_declined_with_one_warning() {
    let patch = "*** Begin Patch\n*** Add File: new\n+x\n*** End Patch";
    let patch = ("shell", json!({"command": ["apply_patch", patch]}));
    let calls = [shell("touch x"), patch, shell("touch y"), shell("ls")];
    let told = "the reviewer `auto_review` does not exist here, so nobody is asked and everything that needs an approval \
                is declined";
    let check = |client: &Client, events: &[Arc<Event>]| {
        assert_eq!(asked(events), Vec::<String>::new());
        assert_eq!(warnings(events), [told]);
        assert!(["x", "y", "new"].iter().all(|name| !client.world.path("project").join(name).exists()));
        let outputs = outputs(client);
        assert!(outputs[0].ends_with("and the reviewer `auto_review` does not exist here"), "{}", outputs[0]);
        assert!(outputs[1].starts_with("patch rejected: it needs an approval, and the reviewer"), "{}", outputs[1]);
        assert!(outputs[3].contains("\"exit_code\":0"), "what needs no approval runs: {}", outputs[3]);
    };
    let world_of = || world("untrusted", "danger-full-access");
    let mut client = world_of().set("approvals_reviewer=auto_review").start(&script(&calls)).await;
    let events = turn(&mut client, ReviewDecision::Approved).await;
    check(&client, &events);

    let mut client = world_of().start(&script(&calls)).await;
    let change = SettingsChange { reviewer: Some(ApprovalsReviewer::AutoReview), ..SettingsChange::default() };
    client.say_with("1", vec![said("hi")], change).await;
    let events = client.until_ended().await;
    check(&client, &events);

    let mut client = world_of().set("approvals_reviewer=user").start(&script(&calls[..1])).await;
    assert_eq!(asked(&turn(&mut client, ReviewDecision::Approved).await), ["sh -c touch x"]);
}

/// Starts a thread in a folder with the history of a thread in `project`, as if it had been imported.
async fn resumed(world: World, imported: bool, folder: &str, explicit: ExplicitOverrides) -> Client {
    std::fs::create_dir_all(world.path("here/below")).expect("a folder can be made");
    let mut client = world.start(&script(&[])).await;
    client.turn("1", "hi").await;
    client
        .start_again(&script(&[]), |thread, setup| {
            let path = setup.store.place(thread).expect("it is kept");
            let text = std::fs::read_to_string(&path).expect("the thread has a file");
            let marked =
                text.replacen("\"payload\":{", "\"payload\":{\"imported_at\":\"2026-01-01T00:00:00.000Z\",", 1);
            std::fs::write(&path, if imported { marked } else { text }).expect("a file can be written");
            // An unsaved thread needs no lock, which a process that is just being started could still hold.
            let initial_history = InitialHistory::Unsaved(Box::new(InitialHistory::Resumed { thread, explicit }));
            Setup { cwd: setup.cwd.with_file_name(folder), initial_history, ..setup }
        })
        .await
}

#[tokio::test]
async fn a_thread_from_elsewhere_does_not_choose_where_commands_write() {
    let write = || world("on-request", "workspace-write");
    let is_read_only = |policy: &SandboxPolicy| *policy == SandboxPolicy::ReadOnly;
    let nothing = ExplicitOverrides::default();
    let mut client = resumed(write(), true, "here", nothing).await;
    let settings = client.thread.started().settings.clone();
    assert!(is_read_only(&settings.sandbox_policy) && settings.cwd.ends_with("project"));
    let started = client.until(|body| matches!(body, Body::Warning { .. })).await;
    assert!(warnings(&started)[0].starts_with("this thread comes from elsewhere and works in "));
    // A looser sandbox policy alone does not trust the folder.
    let wider = SandboxPolicy::WorkspaceWrite(codex_wire::policy::WorkspaceWrite::default());
    let change = SettingsChange { sandbox_policy: Some(wider), ..SettingsChange::default() };
    assert!(is_read_only(&client.thread.configure(change).await.expect("it is open").sandbox_policy));
    let change = SettingsChange { cwd: Some(settings.cwd.clone()), ..SettingsChange::default() };
    assert!(!is_read_only(&client.thread.configure(change).await.expect("it is open").sandbox_policy));

    let named = ExplicitOverrides { cwd: true, ..nothing };
    let trusting = |world: World| {
        let project = world.path("project").display().to_string();
        world.set(&format!("projects={{\"{project}\"={{trust_level=\"trusted\"}}}}"))
    };
    for (what, client) in [
        ("our own", resumed(write(), false, "here", nothing).await),
        ("named", resumed(write(), true, "here", named).await),
        ("stood in", resumed(write(), true, "project", nothing).await),
        ("trusted", resumed(trusting(write()), true, "here", nothing).await),
    ] {
        assert!(!is_read_only(&client.thread.started().settings.sandbox_policy), "{what}");
    }
}
