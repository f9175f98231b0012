//! Logging in and out from the command line, and what requests carry then.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{SystemTime, UNIX_EPOCH};

use codex_testkit::{FakeIssuer, FakeModel, LoginPorts};

use serde_json::{Value, json};

use crate::program::{Place, Running};

/// Opens an address of this machine as a browser would, and gives the answer with its headers.
fn open(url: &str) -> String {
    let rest = url.strip_prefix("http://").expect("it is plain");
    let (host, target) = rest.split_at(rest.find('/').expect("it has a path"));
    let mut stream = TcpStream::connect(host.replace("localhost", "127.0.0.1")).expect("somebody listens");
    let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it can be asked");
    let mut answer = Vec::new();
    let mut bytes = [0; 4096];
    loop {
        let read = stream.read(&mut bytes).expect("it answers");
        answer.extend_from_slice(&bytes[..read]);
        if read == 0 || answer.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            return String::from_utf8_lossy(&answer).into_owned();
        }
    }
}

/// All files below a folder, as one text.
pub(crate) fn everything_below(folder: &std::path::Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).expect("the folder is there").flatten() {
        let path = entry.path();
        if path.is_dir() {
            text += &everything_below(&path);
        } else if path.file_name().is_some_and(|name| name != "auth.json") {
            text += &String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default());
        }
    }
    text
}

#[test]
fn a_login_with_a_code_goes_to_chatgpt_is_renewed_when_refused_and_revoked() {
    let issuer = FakeIssuer::serve();
    let model = FakeModel::start(
        r#"[{"status": 401, "body": {"error": {"message": "token expired"}}}, {"items": [{"text": "Hi."}]}]"#,
    );
    let config = format!("chatgpt_base_url = '{}'\n", model.url());
    let place = Place::new().file("home/config.toml", &config);
    let login = place.run(&["login", "--device-auth", "--experimental_issuer", issuer.url()], "");
    assert_eq!((login.code, login.stderr.ends_with("Logged in with ChatGPT.\n")), (Some(0), true), "{}", login.stderr);
    assert!(login.stdout.contains(&format!("  {}/codex/device\n  ABCD-1234\n", issuer.url())), "{}", login.stdout);
    let status = place.run(&["login", "status"], "");
    assert_eq!(status.stdout, "OpenAI: logged in with ChatGPT as user@example.com (plan: pro)\n");

    let first = std::fs::read_to_string(place.path("home/auth.json")).expect("it is stored");
    let exec = place.run(&["exec", "--skip-git-repo-check", "hello"], "");
    assert_eq!((exec.code, exec.stdout.as_str()), (Some(0), "Hi.\n"), "{}", exec.stderr);
    let requests = model.requests();
    let tokens: Vec<_> = requests.iter().map(|request| request.header("authorization").unwrap_or_default()).collect();
    assert_eq!((tokens.len(), tokens[0] != tokens[1], issuer.renewals()), (2, true, 1));
    for request in &requests {
        assert_eq!(request.path, "/api/codex/responses");
        assert_eq!(request.header("chatgpt-account-id"), Some("acct-1"));
    }
    assert_ne!(std::fs::read_to_string(place.path("home/auth.json")).expect("it is stored"), first);

    let logout = place.run(&["logout"], "");
    assert_eq!((logout.code, logout.stderr.as_str()), (Some(0), "Logged out.\n"));
    assert_eq!((issuer.revoked().len(), place.path("home/auth.json").exists()), (1, false));
    let runs = [&login, &status, &exec, &logout];
    let said: String = runs.iter().flat_map(|run| [run.stdout.as_str(), run.stderr.as_str()]).collect();
    let shown = said + &everything_below(&place.path("home"));
    for secret in issuer.secrets() {
        assert!(!shown.contains(&secret), "{secret}");
    }
}

#[test]
fn a_browser_brings_a_login_back_to_the_program() {
    let _ports = LoginPorts::hold();
    let issuer = FakeIssuer::serve();
    let place = Place::new().variable("OPENAI_API_KEY", "sk-1");
    let mut login = place.start(&["login", "--experimental_issuer", issuer.url(), "--experimental_client-id", "mine"]);
    let url = login.line_with("/oauth/authorize?");
    assert!(url.starts_with(issuer.url()) && url.contains("client_id=mine&"), "{url}");
    let sent = open(&url);
    let back = sent.lines().find_map(|line| line.strip_prefix("location: ")).expect("it sends the browser back");
    let page = open(back);
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    let login = login.wait();
    assert_eq!(login.code, Some(0), "{}", login.stderr);
    let end = "Logged in with ChatGPT.\nNote: the variable OPENAI_API_KEY is set, and its key is used first.\n";
    assert!(login.stderr.ends_with(end), "{}", login.stderr);
    assert!(place.path("home/auth.json").exists());
}

#[test]
fn a_failed_login_is_explained() {
    let issuer = FakeIssuer::serve();
    issuer.set_polls(&[(403, "access_denied")]);
    let place = Place::new();
    let login = ["login", "--device-auth", "--experimental_issuer"];
    let denied = place.run(&[&login[..], &[issuer.url()]].concat(), "");
    assert_eq!(denied.code, Some(1));
    assert!(
        denied.stderr.ends_with("error: the login was refused: access_denied\nhint: try again with `codex login`\n")
    );
    let nobody = place.run(&[&login[..], &["http://127.0.0.1:1"]].concat(), "");
    assert!(nobody.stderr.contains("error: could not reach the login service at 127.0.0.1:1"), "{}", nobody.stderr);
    assert!(nobody.stderr.ends_with("hint: check the network and the proxy settings\n"), "{}", nobody.stderr);
    issuer.without_device_login();
    let absent = place.run(&[&login[..], &[issuer.url()]].concat(), "");
    assert!(absent.stderr.ends_with("hint: log in with a browser instead: codex login\n"), "{}", absent.stderr);
}

#[test]
#[cfg(not(feature = "keyring"))]
fn a_build_without_a_keyring_explains_how_to_get_one() {
    let place = Place::new().file("home/config.toml", "cli_auth_credentials_store = 'keyring'\n");
    let said = "error: cli_auth_credentials_store = \"keyring\": this build has no keyring\n\
                hint: build it with `--features keyring`, or set it to \"file\" or \"auto\"\n";
    for args in [&["login", "--with-api-key"][..], &["login", "status"]] {
        let run = place.run(args, "sk-1\n");
        assert_eq!((run.code, run.stderr.as_str()), (Some(1), said), "{args:?}");
    }
    // A login from before the setting can still be removed.
    let place = place.file("home/auth.json", r#"{"OPENAI_API_KEY": "sk-old"}"#);
    for said in ["Logged out.\n", "Not logged in.\n"] {
        let run = place.run(&["logout"], "");
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), said));
        assert!(!place.path("home/auth.json").exists());
    }
    let auto = Place::new().file("home/config.toml", "cli_auth_credentials_store = 'auto'\n");
    assert_eq!(auto.run(&["login", "--with-api-key"], "sk-1\n").code, Some(0));
    assert!(auto.path("home/auth.json").exists());
}

#[test]
fn a_program_prints_the_key_of_a_provider() {
    let model = FakeModel::start(r#"[{"items": [{"text": "Hi."}]}]"#);
    let config = format!(
        "model_provider = 'mine'\n[model_providers.mine]\nname = 'Mine'\nbase_url = '{}/v1'\n\
         auth = {{ command = '/bin/sh', args = ['-c', 'echo key-of-a-program'] }}\n",
        model.url()
    );
    let place = Place::new().file("home/config.toml", &config);
    let status = place.run(&["login", "status"], "");
    assert_eq!(status.stdout, "Mine: gets its key from the program /bin/sh\n");
    let exec = place.run(&["exec", "--skip-git-repo-check", "hello"], "");
    assert_eq!(exec.code, Some(0), "{}", exec.stderr);
    assert_eq!(model.requests()[0].header("authorization"), Some("Bearer key-of-a-program"));
}

/// An initialized client of `codex app-server`.
pub(crate) fn app_server(place: &Place) -> Running {
    let mut server = place.start(&["app-server"]);
    let hello = json!({"id": 0, "method": "initialize", "params": {"clientInfo": {"name": "test", "version": "1"}}});
    server.send(&format!("{hello}\n"));
    assert_eq!(server.message()["id"], 0);
    server
}

/// Sends a request and gives its answer. Messages before it are skipped.
pub(crate) fn call(server: &mut Running, method: &str, params: Value) -> Value {
    server.send(&format!("{}\n", json!({"id": method, "method": method, "params": params})));
    loop {
        let message = server.message();
        if message["id"] == method {
            return message["result"].clone();
        }
    }
}

/// Reads up to a notification or request of a method, and returns the whole message.
pub(crate) fn told(server: &mut Running, method: &str) -> Value {
    loop {
        let message = server.message();
        if message["method"] == method {
            return message;
        }
    }
}

#[test]
fn clients_of_the_server_log_in_and_receive_their_own_notifications() {
    let issuer = FakeIssuer::serve();
    let place = Place::new()
        .file("home/config.toml", &format!("chatgpt_base_url = '{}'\n", issuer.url()))
        .variable("CODEX_APP_SERVER_LOGIN_ISSUER", issuer.url());
    let mut server = app_server(&place);
    let begun = call(&mut server, "account/login/start", json!({"type": "chatgptDeviceCode"}));
    assert_eq!((&begun["type"], &begun["userCode"]), (&json!("chatgptDeviceCode"), &json!("ABCD-1234")));
    assert_eq!(begun["verificationUrl"], format!("{}/codex/device", issuer.url()));
    let completed = json!({"loginId": begun["loginId"], "success": true, "error": null});
    assert_eq!(told(&mut server, "account/login/completed")["params"], completed);
    let updated = json!({"authMode": "chatgpt", "planType": "pro"});
    assert_eq!(told(&mut server, "account/updated")["params"], updated);
    let account = json!({"type": "chatgpt", "email": "user@example.com", "planType": "pro"});
    assert_eq!(call(&mut server, "account/read", json!({}))["account"], account);
    let limits = call(&mut server, "account/rateLimits/read", json!(null));
    let primary = json!({"usedPercent": 12, "windowDurationMins": 300, "resetsAt": 1_800_000_000});
    assert_eq!((&limits["rateLimits"]["primary"], &limits["accountId"]), (&primary, &json!("acct-1")));

    let status = call(&mut server, "getAuthStatus", json!({"includeToken": true}));
    let renewed = call(&mut server, "getAuthStatus", json!({"includeToken": true, "refreshToken": true}));
    assert_eq!((&status["authMethod"], issuer.renewals()), (&json!("chatgpt"), 1));
    assert!(renewed["authToken"].is_string() && renewed["authToken"] != status["authToken"]);
    call(&mut server, "account/logout", json!(null));
    assert_eq!(issuer.revoked().len(), 1);

    let _ports = LoginPorts::hold();
    let begun = call(&mut server, "loginChatGpt", json!(null));
    let sent = open(begun["authUrl"].as_str().expect("it has an address"));
    let back = sent.lines().find_map(|line| line.strip_prefix("location: ")).expect("it sends the browser back");
    open(back);
    let completed = json!({"loginId": begun["loginId"], "success": true, "error": null});
    assert_eq!(told(&mut server, "loginChatGptComplete")["params"], completed);
    assert_eq!(told(&mut server, "authStatusChange")["params"], json!({"authMethod": "chatgpt"}));
    assert_eq!(server.finish().code, Some(0));
}

#[test]
fn a_client_that_has_brought_tokens_is_asked_for_others_when_they_are_refused() {
    let refusal = r#"{"status": 401, "body": {"error": {"message": "expired"}}}"#;
    let model = FakeModel::start(&format!(r#"[{refusal}, {{"items": [{{"text": "Hi."}}]}}]"#));
    let place = Place::new().file("home/config.toml", &format!("chatgpt_base_url = '{}'\n", model.url()));
    let mut server = app_server(&place);
    let login = json!({"type": "chatgptAuthTokens", "accessToken": "canary-1", "chatgptAccountId": "acct-9"});
    call(&mut server, "account/login/start", login);
    let thread = call(&mut server, "thread/start", json!({}))["thread"]["id"].clone();
    let input = json!([{"type": "text", "text": "hello"}]);
    call(&mut server, "turn/start", json!({"threadId": thread, "input": input}));
    let asked = told(&mut server, "account/chatgptAuthTokens/refresh");
    assert_eq!(asked["params"], json!({"reason": "unauthorized", "previousAccountId": "acct-9"}));
    let tokens = json!({"accessToken": "canary-2", "chatgptAccountId": "acct-9", "chatgptPlanType": null});
    server.send(&format!("{}\n", json!({"id": asked["id"], "result": tokens})));
    assert_eq!(told(&mut server, "turn/completed")["params"]["turn"]["status"], "completed");
    let requests = model.requests();
    let tokens: Vec<_> = requests.iter().filter_map(|request| request.header("authorization")).collect();
    assert_eq!(tokens, ["Bearer canary-1", "Bearer canary-2"]);
    let ended = server.finish();
    let shown = ended.stderr + &everything_below(&place.path("home"));
    assert!(!shown.contains("canary") && !place.path("home/auth.json").exists());
}

#[test]
fn two_processes_with_fifty_threads_renew_a_login_once() {
    let issuer = FakeIssuer::serve();
    let model = FakeModel::start(r#"[{"items": [{"text": "Hi."}], "repeat": true}]"#);
    let place = Place::new().file("home/config.toml", &format!("chatgpt_base_url = '{}'\n", model.url()));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_secs();
    // The login is older than 80 % of its hour.
    issuer.set_now(now - 3000);
    let login = place.run(&["login", "--device-auth", "--experimental_issuer", issuer.url()], "");
    assert_eq!((login.code, issuer.renewals()), (Some(0), 0), "{}", login.stderr);
    issuer.set_now(now);

    let mut servers = [app_server(&place), app_server(&place)];
    for server in &mut servers {
        let threads: Vec<_> =
            (0..25).map(|_| call(server, "thread/start", json!({}))["thread"]["id"].clone()).collect();
        for (id, thread) in threads.iter().enumerate() {
            let params = json!({"threadId": thread, "input": [{"type": "text", "text": "hello"}]});
            server.send(&format!("{}\n", json!({"id": id, "method": "turn/start", "params": params})));
        }
    }
    for server in &mut servers {
        for _ in 0..25 {
            assert_eq!(told(server, "turn/completed")["params"]["turn"]["status"], "completed");
        }
    }
    let requests = model.requests();
    let tokens: BTreeSet<_> = requests.iter().filter_map(|request| request.header("authorization")).collect();
    assert_eq!((requests.len(), tokens.len(), issuer.renewals()), (50, 1, 1));
    for server in servers {
        assert_eq!(server.finish().code, Some(0));
    }
}
