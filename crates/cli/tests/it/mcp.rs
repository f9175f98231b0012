//! `codex mcp` and `codex mcp-server`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use codex_testkit::{ProtectedOptions, ProtectedServer};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::program::{Place, Run, Running};
use crate::sockets::Server;

const SERVERS: &str = r#"# mine
model = "m" # best

[mcp_servers.full] # trailing
command = "cmd"
env_vars = ["HOME"]
cwd = "/tmp"
enabled = false
startup_timeout_sec = 12.5
tool_timeout_sec = 30
enabled_tools = ["a"]

[mcp_servers.web]
url = "http://127.0.0.1:9/mcp"
bearer_token_env_var = "TOK"
"#;

#[track_caller]
fn check(run: &Run, expected: Expect) {
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    expected.assert_eq(&run.stdout);
}

#[test]
fn servers_are_added_and_removed_and_comments_stay() {
    let place = Place::new().file("home/config.toml", SERVERS);
    let add = ["mcp", "add", "docs", "--env", "B=2", "--env", "A=1", "--", "npx", "-y", "server one"];
    check(&place.run(&add, ""), expect!["Added global MCP server 'docs'.\n"]);
    let written = std::fs::read_to_string(place.path("home/config.toml")).expect("it is there");
    assert!(written.starts_with(SERVERS), "{written}");
    expect![[r#"

        [mcp_servers.docs]
        command = "npx"
        args = ["-y", "server one"]

        [mcp_servers.docs.env]
        A = "1"
        B = "2"
    "#]]
    .assert_eq(&written[SERVERS.len()..]);
    check(
        &place.run(&["mcp", "get", "docs"], ""),
        expect![[r#"
            docs
              enabled: true
              transport: stdio
              command: npx
              args: -y server one
              cwd: -
              env: A=*****, B=*****
              remove: codex mcp remove docs
        "#]],
    );
    check(&place.run(&["mcp", "remove", "docs"], ""), expect!["Removed global MCP server 'docs'.\n"]);
    let written = std::fs::read_to_string(place.path("home/config.toml")).expect("it is there");
    assert_eq!(written.trim_end(), SERVERS.trim_end());
    check(&place.run(&["mcp", "remove", "docs"], ""), expect!["No MCP server named 'docs' found.\n"]);
}

#[test]
fn servers_are_listed_for_people() {
    check(
        &Place::new().run(&["mcp", "list"], ""),
        expect!["No MCP servers configured yet. Try `codex mcp add my-tool -- my-command`.\n"],
    );
    let place = Place::new().file("home/config.toml", SERVERS);
    let run = place.run(&["mcp", "list"], "");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(
        lines,
        [
            "Name  Command  Args  Env         Cwd   Status    Auth       ",
            "full  cmd      -     HOME=*****  /tmp  disabled  Unsupported",
            "",
            "Name  Url                     Bearer Token Env Var  Status   Auth        ",
            "web   http://127.0.0.1:9/mcp  TOK                   enabled  Bearer token",
        ]
    );
    check(&place.run(&["mcp", "get", "full"], ""), expect!["full (disabled)\n"]);
}

#[test]
fn servers_are_listed_for_programs() {
    let place = Place::new().file("home/config.toml", SERVERS);
    let read = |args: &[&str]| serde_json::from_str::<Value>(&place.run(args, "").stdout).expect("it is JSON");
    let full = json!({
        "name": "full", "enabled": false,
        "transport": {
            "type": "stdio", "command": "cmd", "args": [], "env": null, "env_vars": ["HOME"], "cwd": "/tmp",
        },
        "startup_timeout_sec": 12.5, "tool_timeout_sec": 30.0, "auth_status": "unsupported",
    });
    let web = json!({
        "name": "web", "enabled": true,
        "transport": {
            "type": "streamable_http", "url": "http://127.0.0.1:9/mcp", "bearer_token_env_var": "TOK",
            "http_headers": null, "env_http_headers": null,
        },
        "startup_timeout_sec": null, "tool_timeout_sec": null, "auth_status": "bearer_token",
    });
    assert_eq!(read(&["mcp", "list", "--json"]), json!([full, web]));
    let mut full = full;
    full.as_object_mut().expect("it is an object").remove("auth_status");
    full["enabled_tools"] = json!(["a"]);
    full["disabled_tools"] = json!(null);
    assert_eq!(read(&["mcp", "get", "full", "--json"]), full);
}

#[test]
fn mistakes_change_nothing() {
    let place = Place::new().file("home/config.toml", SERVERS);
    for (args, code, why) in [
        (&["mcp", "get", "nope"][..], 1, "No MCP server named 'nope' found."),
        (&["mcp", "add", "bad name", "--", "x"], 1, "invalid server name 'bad name'"),
        (&["mcp", "add", "x"], 2, "required"),
        (&["mcp", "add", "y", "--env", "FOO", "--", "z"], 2, "KEY=VALUE form"),
        (&["mcp", "add", "y", "--url", "http://x", "--env", "A=1"], 2, "cannot be used with"),
        (&["mcp", "add", "y", "--bearer-token-env-var", "T", "--", "z"], 2, "cannot be used with"),
    ] {
        let run = place.run(args, "");
        assert_eq!(run.code, Some(code), "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(why), "{why} in {}", run.stderr);
    }
    assert_eq!(std::fs::read_to_string(place.path("home/config.toml")).expect("it is there"), SERVERS);
}

/// Reads up to the first message that is wanted.
pub(crate) fn until(codex: &mut Running, is_wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let message = codex.message();
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        if is_wanted(&message) {
            return message;
        }
    }
}

pub(crate) fn ask(codex: &mut Running, id: i64, method: &str, params: &Value) -> Value {
    codex.send(&format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})));
    until(codex, |message| message["id"] == json!(id) && message.get("method").is_none())
}

/// The parameters of MCP's `initialize`.
pub(crate) fn hello() -> Value {
    let info = json!({"name": "test", "title": null, "version": "1"});
    json!({"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}, "clientInfo": info})
}

#[test]
fn a_pipe_is_served_with_the_conversations_of_2025() {
    let script =
        r#"[{"items": [{"call": "shell", "args": {"command": ["touch", "out"]}}]}, {"items": [{"text": "Done."}]}]"#;
    let place = Place::new().file("home/answers.json", script).file(
        "home/config.toml",
        "approval_policy = 'untrusted'\nsandbox_mode = 'danger-full-access'\nmodel_provider = 'scripted'\n\
         [model_providers.scripted]\nscript = 'answers.json'\n",
    );
    let mut codex = place.start(&["mcp"]);
    let initialized = ask(&mut codex, 1, "initialize", &hello());
    assert_eq!(initialized["result"]["serverInfo"]["name"], "codex-mcp-server");
    let opened = ask(&mut codex, 2, "newConversation", &json!({}));
    let conversation = &opened["result"]["conversationId"];
    ask(&mut codex, 3, "addConversationListener", &json!({"conversationId": conversation}));
    let items = json!([{"type": "text", "data": {"text": "Go."}}]);
    ask(&mut codex, 4, "sendUserMessage", &json!({"conversationId": conversation, "items": items}));
    let asked = until(&mut codex, |message| message["method"] == "execCommandApproval");
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"decision": "approved"}});
    codex.send(&format!("{answer}\n"));
    let ended = until(&mut codex, |message| message["method"] == "codex/event/task_complete");
    assert_eq!(ended["params"]["msg"]["last_agent_message"], "Done.");
    assert!(place.path("project/out").exists());
    // Tools are served on the same stream, and their questions do not get the ids of others.
    let called = json!({"name": "codex", "arguments": {"prompt": "Go."}});
    codex.send(&format!("{}\n", json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": called})));
    let again = until(&mut codex, |message| message["method"] == "elicitation/create");
    assert_ne!(again["id"], asked["id"]);
    codex.send(&format!("{}\n", json!({"jsonrpc": "2.0", "id": again["id"], "result": {"action": "accept"}})));
    let result = until(&mut codex, |message| message["id"] == 5 && message.get("method").is_none());
    assert_eq!(result["result"]["content"][0]["text"], "Done.");
    assert_eq!(ask(&mut codex, 6, "no/such", &json!({}))["error"]["code"], -32601);
    let run = codex.finish();
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
}

#[test]
fn the_end_of_the_input_ends_the_server_after_the_last_answer() {
    let lines = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello()}),
        json!({
            "jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": "codex", "arguments": {"prompt": "hello"}},
        }),
    ];
    let input = lines.map(|line| format!("{line}\n")).concat();
    let run = Place::new().run(&["mcp-server", "-c", "model_provider=scripted"], &input);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let last: Value = serde_json::from_str(run.stdout.lines().last().expect("a line")).expect("it is JSON");
    let said = last["result"]["content"][0]["text"].as_str().expect("it is a text");
    assert!(last["id"] == 2 && said.starts_with("Hello! I am the built-in offline model"), "{last}");
}

/// Sends a message to a server and returns the whole response.
pub(crate) fn post(url: &str, headers: &str, message: &impl std::fmt::Display) -> String {
    let host = url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp")).expect("it is the endpoint");
    let body = message.to_string();
    let mut stream = TcpStream::connect(host).expect("it listens");
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).expect("it reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("it answers");
    response
}

#[test]
fn the_server_listens_for_clients_with_the_token_until_a_signal() {
    let token = "a-token-for-tests-0123456789";
    let place = Place::new().variable("CODEX_APP_SERVER_TOKEN", token);
    let server = Server::start_as("mcp-server", &place, &["127.0.0.1:0"], &[]);
    let url = server.urls[0].clone();
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello()});
    assert!(post(&url, "", &initialize).starts_with("HTTP/1.1 401 "));
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let opened = post(&url, &bearer, &initialize);
    let session = opened.lines().find(|line| line.starts_with("mcp-session-id: ")).expect("there is a session");
    let call = json!({
        "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "codex", "arguments": {"prompt": "hello"}},
    });
    let called = post(&url, &format!("{bearer}{session}\r\n"), &call);
    assert!(called.contains("content-type: text/event-stream"), "{called}");
    assert!(called.contains("I am the built-in offline model"), "{called}");
    assert_eq!(server.terminate(), (Some(0), String::new()));
}

#[test]
fn addresses_that_should_not_be_served_over_http_are_refused() {
    for (words, why) in [
        (&["--listen", "0.0.0.0:0"][..], "can be reached from other machines"),
        (&["--listen", "ws://127.0.0.1:0"], "use http://IP:PORT"),
        (&["--allow-remote"], "--listen"),
    ] {
        let run = Place::new().run(&[&["mcp-server"], words].concat(), "");
        assert!(run.code != Some(0) && run.stderr.contains(why), "{words:?}: {}", run.stderr);
    }
}

#[test]
fn a_login_to_a_server_is_stored_listed_and_removed() {
    let server = ProtectedServer::serve(ProtectedOptions::default());
    let config = format!("[mcp_servers.web]\nurl = '{}'\n[mcp_servers.local]\ncommand = 'x'\n", server.mcp_url());
    let place = Place::new().file("home/config.toml", &config);
    let state = || {
        let listed: Value =
            serde_json::from_str(&place.run(&["mcp", "list", "--json"], "").stdout).expect("it is JSON");
        listed.as_array().into_iter().flatten().map(|server| server["auth_status"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(state(), ["unsupported", "not_logged_in"]);
    assert!(place.run(&["mcp", "list"], "").stdout.contains("enabled  Not logged in"));

    let mut login = place.start(&["mcp", "login", "web", "--scopes", "a,b"]);
    let page = login.line_with("/authorize?");
    assert_eq!(server.visit(page.trim()), "HTTP/1.1 200 OK");
    let login = login.wait();
    assert_eq!(login.code, Some(0), "{}", login.stderr);
    assert!(login.stdout.ends_with("Successfully logged in to MCP server 'web'.\n"), "{}", login.stdout);
    assert_eq!((server.asked()["scope"].as_str(), state()), ("a b", vec![json!("unsupported"), json!("o_auth")]));

    check(&place.run(&["mcp", "logout", "web"], ""), expect!["Removed OAuth credentials for 'web'.\n"]);
    check(&place.run(&["mcp", "logout", "web"], ""), expect!["No OAuth credentials stored for 'web'.\n"]);
    assert_eq!((server.revoked().len(), place.path("home/.credentials.json").exists()), (1, false));
    let said = format!("{}{}", login.stdout, login.stderr);
    for secret in server.secrets() {
        assert!(!said.contains(&secret), "{secret} in {said}");
    }
}

#[test]
fn the_client_of_logins_is_added_with_the_server() {
    let place = Place::new();
    let add =
        ["mcp", "add", "web", "--url", "https://a.example/mcp", "--oauth-client-id", "me", "--oauth-resource", "r"];
    check(&place.run(&add, ""), expect!["Added global MCP server 'web'.\n"]);
    let written = std::fs::read_to_string(place.path("home/config.toml")).expect("it is there");
    expect![[r#"
        [mcp_servers.web]
        url = "https://a.example/mcp"
        oauth_resource = "r"

        [mcp_servers.web.oauth]
        client_id = "me"
    "#]]
    .assert_eq(&written);
}

#[test]
fn a_login_that_is_impossible_says_why() {
    let place = Place::new().file("home/config.toml", SERVERS);
    let error = |args: &[&str]| {
        let run = place.run(args, "");
        assert_eq!(run.code, Some(1));
        run.stderr
    };
    assert_eq!(error(&["mcp", "login", "x"]), "error: No MCP server named 'x' found in configuration.\n");
    let stdio = error(&["mcp", "login", "full"]);
    assert_eq!(stdio, "error: OAuth login is only supported for streamable HTTP servers.\n");
    let token = error(&["mcp", "login", "web"]);
    assert_eq!(token, "error: 'web' has a token in config.toml, which is used in place of a login.\n");
    let place = Place::new().file("home/config.toml", "[mcp_servers.far]\nurl = 'http://far.example/mcp'\n");
    let far = place.run(&["mcp", "login", "far"], "");
    assert_eq!(far.stderr, "error: http://far.example/mcp is neither https nor on the machine of the server\n");
}

#[test]
fn a_server_of_a_project_is_approved_as_it_is() {
    let place = Place::new();
    let work = place.path("project").canonicalize().expect("the folder is there");
    std::fs::create_dir_all(work.join(".codex")).expect("a folder can be made");
    codex_files::testing::make_git_folder(&work.join(".git")).expect("a folder can be made");
    let write = |command: &str| {
        let file = format!("[mcp_servers.docs]\ncommand = '{command}'\nenv = {{ A = '1' }}\n");
        std::fs::write(work.join(".codex/config.toml"), file).expect("a file can be written");
    };
    write("docs");
    let trust = format!("[projects.'{}']\ntrust_level = 'trusted'\n", work.display());
    let place = place.file("home/config.toml", &trust);
    let listed = || place.run(&["mcp", "list", "--json"], "").stdout;
    assert!(!listed().contains("docs"));
    let asked = place.run(&["mcp", "approve", "docs"], "");
    assert!(asked.code != Some(0) && asked.stderr.contains("use --yes"), "{}", asked.stderr);
    let approved = place.run(&["mcp", "approve", "docs", "--yes"], "");
    assert_eq!(approved.code, Some(0), "{}", approved.stderr);
    assert!(
        approved.stderr.contains(r#"command = "docs""#) && approved.stderr.contains(r#"env = {"A":"1"}"#),
        "{}",
        approved.stderr
    );
    assert!(listed().contains("docs"));
    write("other");
    assert!(!listed().contains("docs"), "what has changed needs another approval");
    let unknown = place.run(&["mcp", "approve", "nothing", "--yes"], "");
    assert!(unknown.stderr.contains("no MCP server named 'nothing'"), "{}", unknown.stderr);
}
