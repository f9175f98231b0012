//! Child agents after the program was killed: what they asked is asked again, and what was cut off has failed.

use serde_json::{Value, json};

use crate::program::{Place, Running};

const CONFIG: &str = "model_provider = 'scripted'\napproval_policy = 'untrusted'\n\
                      sandbox_mode = 'danger-full-access'\nfeatures.subagent_tools = true\n\
                      subagent_root_inbox_autosubmit = false\n\
                      [model_providers.scripted]\nscript = 'answers.json'\n";

/// A root that starts an agent, which runs a command that needs an approval, and another that streams for ever.
fn place(depth: usize) -> Place {
    let command = json!({"command": ["sh", "-c", "echo made >> made"]});
    let spawn = |id: &str, prompt: &str| json!({"call": "subagent_spawn", "id": id, "args": {"prompt": prompt}});
    let wait = |id: &str| json!({"call": "subagent_await", "id": id, "args": {}});
    let first = if depth == 2 { "Have it made" } else { "Make a file" };
    // A request of a parent has the prompts of its children, so parents come first.
    let script = json!([
        {"when": "id-list", "repeat": true, "items": [{"text": "Listed."}]},
        {"when": "Who is there", "items": [{"call": "subagent_list", "id": "id-list", "args": {"all": true}}]},
        {"when": "id-touch", "items": [{"text": "Made it."}]},
        {"when": "id-spawn", "items": [wait("id-await")]},
        {"when": ["id-below", "Made it."], "items": [{"text": "It is made."}]},
        {"when": "id-below", "items": [wait("id-await-below")]},
        {"when": "Make a file", "items": [{"call": "shell", "id": "id-touch", "args": command}]},
        {"when": "Never end", "items": [{"text": "On", "done": false}, {"hang": true}]},
        {"when": "Have it made", "items": [spawn("id-below", "Make a file")]},
        {"items": [spawn("id-endless", "Never end"), spawn("id-spawn", first)]},
    ]);
    Place::new().file("home/answers.json", &script.to_string()).file("home/config.toml", CONFIG)
}

/// An app-server and the number of its last request.
struct Server {
    running: Running,
    last: u64,
}

impl Server {
    fn start(place: &Place) -> Self {
        let mut server = Self { running: place.start(&["app-server"]), last: 0 };
        server.call("initialize", &json!({"clientInfo": {"name": "tests", "version": "1"}}));
        server.send(&json!({"method": "initialized"}));
        server
    }

    fn send(&mut self, message: &Value) {
        self.running.send(&format!("{message}\n"));
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let id = self.last + 1000;
        self.send(&json!({"id": id, "method": method, "params": params}));
        let line = self.running.line_with(&format!("\"id\":{id}"));
        serde_json::from_str::<Value>(&line).expect("it is JSON")["result"].clone()
    }

    fn until(&mut self, part: &str) -> Value {
        serde_json::from_str(&self.running.line_with(part)).expect("it is JSON")
    }

    /// Reads until each of these was in a line.
    fn until_all(&mut self, parts: &[&str]) {
        let mut missing = parts.to_vec();
        while !missing.is_empty() {
            let message = self.running.message().to_string();
            missing.retain(|part| !message.contains(part));
        }
    }

    /// The next question, and the thread that asks.
    fn question(&mut self) -> (Value, String) {
        let asked = self.until("item/commandExecution/requestApproval");
        let thread = asked["params"]["threadId"].as_str().expect("it names its thread").to_owned();
        (asked["id"].clone(), thread)
    }

    fn say(&mut self, thread: &str, text: &str) {
        let input = json!([{"type": "text", "text": text}]);
        self.call("turn/start", &json!({"threadId": thread, "input": input}));
    }
}

/// The agents as a tool lists them to the model: the statuses by thread.
fn listed(place: &Place, root: &str) -> Vec<(String, String)> {
    let run = place.run(&["threads", "show", "--tree", root], "");
    let lines = run.stdout.lines().skip(1).map(|line| line.trim().to_owned());
    lines.map(|line| (line.split(' ').nth(1).unwrap_or_default().to_owned(), line)).collect()
}

fn kill_and_resume(depth: usize) {
    let place = place(depth);
    let mut server = Server::start(&place);
    let root = server.call("thread/start", &json!({}))["thread"]["id"].as_str().expect("an id").to_owned();
    server.say(&root, "Have a file made.");
    let (_, child) = server.question();
    assert_ne!(child, root);
    drop(server);
    assert!(!place.path("project/made").exists());

    let mut server = Server::start(&place);
    server.call("thread/resume", &json!({"threadId": root}));
    let (question, again) = server.question();
    assert_eq!(again, child, "the same agent asks again");
    server.send(&json!({"id": question, "result": {"decision": "accept"}}));
    // The end of an agent further below is told to its parent, which need not be at work.
    let parts: &[&str] = if depth == 1 { &["\"Made it.\"", "\"status\":\"idle\""] } else { &["\"Made it.\""] };
    server.until_all(parts);
    server.say(&root, "Who is there?");
    server.until("\"Listed.\"");
    drop(server);
    let made = || std::fs::read_to_string(place.path("project/made")).expect("the file is made");
    assert_eq!(made(), "made\n");
    let agents = listed(&place, &root);
    assert_eq!(agents.len(), 1 + depth, "{agents:?}");
    for (thread, line) in agents.iter().filter(|_| depth == 1) {
        let status = if line.contains("Never end") { "failed: the program ended" } else { "· idle" };
        assert!(line.contains(status), "{thread} {agents:?}");
    }

    // It was answered once.
    let mut server = Server::start(&place);
    server.call("thread/resume", &json!({"threadId": root}));
    server.say(&root, "Who is there?");
    loop {
        let message = server.running.message();
        assert_ne!(message["method"], "item/commandExecution/requestApproval", "{message}");
        if message.to_string().contains("Listed.") {
            break;
        }
    }
    assert_eq!(made(), "made\n");
}

#[test]
fn the_question_of_a_child_is_asked_again_and_answered_once() {
    kill_and_resume(1);
}

#[test]
fn the_question_of_a_child_of_a_child_is_asked_again_and_answered_once() {
    kill_and_resume(2);
}
