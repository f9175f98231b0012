//! Threads that another server takes over, and servers that could be confused with others.

use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::eventually;
use crate::servers::{Client, PATIENCE, Server, Shared, TALK, thread_given_back};

const AGENTS: &[&str] = &["features.subagent_tools=true", "subagent_root_inbox_autosubmit=false"];

/// A root that starts two agents, sends the second one a message, and runs a command. The first agent ends once it may,
/// the second never does.
fn script_of_two_agents() -> String {
    let call = |id: &str, tool: &str, args: Value| json!({"call": tool, "id": id, "args": args});
    let shell = |id: &str, line: &str| call(id, "shell", json!({"command": ["sh", "-c", line], "timeout_ms": 600_000}));
    let spawn = |id: &str, prompt: &str| call(id, "subagent_spawn", json!({"prompt": prompt}));
    let send = |id: &str, prompt: &str| call(id, "subagent_send_message", json!({"agent_id": 2, "prompt": prompt}));
    let endless = "while :; do sleep 0.05; done";
    // A request of a parent has the prompts of its children, so parents come first.
    json!([
        {"when": "id-message", "items": [shell("id-work", &format!("touch begun; {endless}"))]},
        {"when": "id-ready", "items": [send("id-message", "Look here first.")]},
        {"when": "id-second", "items": [shell("id-ready", "while ! test -e second; do sleep 0.01; done")]},
        {"when": "id-made", "items": [{"text": "Made it."}]},
        {"when": "Make a file", "items": [shell("id-made", "while ! test -e go; do sleep 0.01; done")]},
        {"when": "Never end", "items": [shell("id-endless", &format!("touch second; {endless}"))]},
        {"items": [spawn("id-first", "Make a file"), spawn("id-second", "Never end")]},
    ])
    .to_string()
}

/// The script of the server that takes over. Each answer needs everything that it names in its request.
fn script_of_the_next_server() -> String {
    let call = |id: &str, tool: &str, args: Value| json!({"call": tool, "id": id, "args": args});
    let again = json!({"agent_id": 2, "prompt": "Continue now."});
    let mail = ["Who is there", "Made it.", "the program ended"];
    json!([
        {"when": "id-again", "repeat": true, "items": [{"text": "Sent."}]},
        {"when": "id-list", "items": [call("id-again", "subagent_send_message", again)]},
        {"when": mail, "items": [call("id-list", "subagent_list", json!({"all": true}))]},
        {"when": ["Never end", "Look here first.", "Continue now."], "items": [{"text": "Read both."}]},
        {"repeat": true, "items": [{"text": "Something is missing."}]},
    ])
    .to_string()
}

/// Sets the goal of a new thread, whose turn begins at once. Returns the thread.
fn with_goal(client: &mut Client) -> String {
    let thread = client.start_thread();
    let goal = json!({"threadId": thread, "objective": "Have a file made.", "tokenBudget": 1_000_000});
    client.ask("thread/goal/set", &goal);
    thread
}

/// The texts of the messages that end up to one that contains a text.
fn messages_until(client: &mut Client, part: &str) -> Vec<String> {
    let mut texts = Vec::new();
    while !texts.last().is_some_and(|last: &String| last.contains(part)) {
        let item = client.next("item/completed")["params"]["item"].take();
        texts.extend(item["text"].as_str().filter(|_| item["type"] == "agentMessage").map(str::to_owned));
    }
    texts
}

#[test]
fn a_goal_and_agents_are_as_they_were_told_last() {
    let Some(shared) = Shared::new() else { return };
    let (a, b) =
        (shared.server("a", &script_of_two_agents(), AGENTS), shared.server("b", &script_of_the_next_server(), AGENTS));
    let mut at_a = a.client();
    let root = with_goal(&mut at_a);
    let project = shared.workspace.path("project");
    eventually("both agents are at work, and so is the root", || {
        ["begun", "second"].iter().all(|name| project.join(name).exists())
    });
    // A change of the goal in the middle of the turn.
    at_a.ask("thread/goal/set", &json!({"threadId": root, "tokenBudget": 2_000_000}));
    let mut told = Value::Null;
    while told["tokenBudget"] != 2_000_000 {
        told = at_a.next("thread/goal/updated")["params"]["goal"].take();
    }
    std::fs::write(project.join("go"), "").expect("a file can be written");
    assert_eq!(messages_until(&mut at_a, "Made it."), ["Made it."]);
    let mail = "SELECT count(*) FROM @.lines WHERE position('\"agent_mail\"'::bytea IN payload) > 0 \
                AND position('Made it.'::bytea IN payload) > 0";
    eventually("the root has mail that it has not read", || shared.sql(mail) == "1");
    a.signal(Signal::KILL);
    shared.sql("UPDATE @.servers SET expires = now() WHERE name = 'a'");

    let mut at_b = b.client();
    at_b.ask("thread/resume", &json!({"threadId": root}));
    let read = at_b.ask("thread/read", &json!({"threadId": root, "includeTurns": true}));
    let turn = &read["thread"]["turns"][0];
    assert_eq!(turn["status"], "interrupted", "{turn}");
    let goal = at_b.ask("thread/goal/get", &json!({"threadId": root}))["goal"].take();
    assert_eq!((&goal["objective"], &goal["status"]), (&json!("Have a file made."), &json!("active")));
    assert_eq!(goal, told, "as it was told last");

    let kinds = json!({"sourceKinds": ["subAgentThreadSpawn"]});
    let children = at_b.ask("thread/list", &kinds)["data"].take();
    for (prompt, status) in [("Make a file", "completed"), ("Never end", "interrupted")] {
        let child = children.as_array().into_iter().flatten().find(|child| child["preview"] == prompt);
        let child = json!({"threadId": child.unwrap_or_else(|| panic!("{children}"))["id"], "includeTurns": true});
        let turn = at_b.ask("thread/read", &child)["thread"]["turns"][0].take();
        assert_eq!(turn["status"], status, "{turn}");
    }
    let tree = tree(&shared, &root);
    let line = |prompt: &str| tree.lines().find(|line| line.contains(prompt)).unwrap_or_default().to_owned();
    assert!(line("Make a file").contains("idle"), "{tree}");
    assert!(line("Never end").contains("failed: the program ended"), "{tree}");

    // The model is told both ends, and the agent that is sent a message reads the one from before as well.
    at_b.start_turn(&root, "Who is there?");
    let said = messages_until(&mut at_b, "Read both.");
    assert!(!said.iter().any(|text| text.contains("missing")), "{said:?}");
    assert_eq!(shared.sql("SELECT count(*) FROM @.threads WHERE epoch = 2"), "2", "the first agent was not needed");
}

/// The agents of a thread, as another process reads them.
fn tree(shared: &Shared, root: &str) -> String {
    let schema = format!("store.schema={}", shared.schema);
    let run = shared.place("[]").run(&["threads", "show", "--tree", root, "-c", &schema], "");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    run.stdout
}

#[test]
fn a_server_with_the_name_of_another_says_so_and_works() {
    let said = "another server is named twin, or was a moment ago; set store.server_name to a name of its own";
    let Some(shared) = Shared::new() else { return };
    let notes = |server: &Server| server.notes.try_iter().collect::<Vec<String>>();
    let (a, b) = (shared.server("twin", TALK, &[]), shared.server("twin", "[]", &[]));
    assert_eq!(b.notes.recv_timeout(PATIENCE).as_deref(), Ok(said));
    let mut at_a = a.client();
    assert!(notes(&a).is_empty(), "the first one has its name alone");
    // Names are for people: the servers themselves are not confused.
    let thread = at_a.begin_thread();
    let mut at_b = b.client();
    at_b.ask("thread/resume", &json!({"threadId": thread}));
    at_b.start_turn(&thread, "second");
    assert_eq!(at_b.rest_of_turn(), ("One two three.".to_owned(), json!("completed")), "it ran at the first one");
    assert_eq!(shared.sql("SELECT epoch FROM @.threads"), "1");

    // Another name is no reason to say anything, and neither is one that was given back.
    let other = shared.server("other", TALK, &[]);
    other.client();
    a.signal(Signal::TERM);
    b.signal(Signal::TERM);
    eventually("both have left", || shared.sql("SELECT name FROM @.servers") == "other");
    let next = shared.server("twin", TALK, &[]);
    next.client();
    assert_eq!((notes(&other), notes(&next)), (Vec::new(), Vec::new()));
    // One that was killed still has its lease.
    next.signal(Signal::KILL);
    let last = shared.server("twin", TALK, &[]);
    assert_eq!(last.notes.recv_timeout(PATIENCE).as_deref(), Ok(said));
    // A process without an address is never asked by others, so its name confuses nobody.
    let (schema, name) = (format!("store.schema={}", shared.schema), "store.server_name=twin");
    let run = shared.place(TALK).run(&["exec", "--skip-git-repo-check", "-c", &schema, "-c", name, "hi"], "");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "One two three.\n"), "{}", run.stderr);
    assert!(!run.stderr.contains(said), "{}", run.stderr);
}

/// Makes a new repository in a folder, with a commit of its own.
fn repository(folder: &Path, message: &str) {
    for words in [&["init", "-q", "-b", "main"][..], &["commit", "-q", "--allow-empty", "-m", message]] {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words).current_dir(folder);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        let output = command.output().expect("git runs");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_thread_of_another_repository_can_be_read_but_not_continued() {
    let Some(shared) = Shared::new() else { return };
    let (a, b) = (shared.server("a", TALK, &[]), shared.server("b", TALK, &[]));
    let folder = shared.workspace.path("project/work");
    std::fs::create_dir(&folder).expect("a folder can be made");
    repository(&folder, "the first repository");
    let thread = thread_given_back(&a, &folder);

    // The other machine has another repository at the same place.
    std::fs::rename(folder.join(".git"), shared.workspace.path("first.git")).expect("it can be moved");
    repository(&folder, "the second repository");
    let mut at_b = b.client();
    let text = |answer: &Value| answer["error"]["message"].as_str().unwrap_or_default().to_owned();
    let refused = text(&at_b.request("thread/resume", &json!({"threadId": thread})));
    let why = "work, which is another git repository here; it was last open on server a. It can be read here";
    assert!(refused.contains(why), "{refused}");
    let read = at_b.ask("thread/read", &json!({"threadId": thread, "includeTurns": true}));
    assert_eq!(read["thread"]["turns"][0]["status"], "completed", "{read}");
    let input = json!([{"type": "text", "text": "second"}]);
    let refused = text(&at_b.request("turn/start", &json!({"threadId": thread, "input": input})));
    assert_eq!(refused, format!("thread not found: {thread}"), "it is not loaded");
    assert_eq!(shared.sql("SELECT epoch FROM @.threads"), "1", "nobody took the thread over");

    // The thread continues with its own repository.
    std::fs::remove_dir_all(folder.join(".git")).expect("it can be removed");
    std::fs::rename(shared.workspace.path("first.git"), folder.join(".git")).expect("it can be moved");
    at_b.ask("thread/resume", &json!({"threadId": thread}));
    at_b.start_turn(&thread, "second");
    assert_eq!(at_b.rest_of_turn(), ("One two three.".to_owned(), json!("completed")));
}

/// `codex exec` has a thread to itself, so nothing is relayed for it.
#[test]
fn exec_names_the_server_that_has_a_thread_open() {
    let Some(shared) = Shared::new() else { return };
    let a = shared.server("a", TALK, &[]);
    let mut at_a = a.client();
    let thread = at_a.begin_thread();
    let schema = format!("store.schema={}", shared.schema);
    let exec =
        || shared.place(TALK).run(&["exec", "--skip-git-repo-check", "resume", &thread, "-c", &schema, "hi"], "");
    let refused = exec();
    let why = format!("thread {thread} is open on server a; close it there, or wait until that server has ended");
    assert!(refused.code == Some(1) && refused.stderr.contains(&why), "{}", refused.stderr);
    a.signal(Signal::TERM);
    at_a.next("server/moved");
    let run = exec();
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "One two three.\n"), "{}", run.stderr);
}
