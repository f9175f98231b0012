//! Lists for pickers, skills, searches, the repository.

use serde_json::json;

use crate::app_client::AppClient;

#[tokio::test]
async fn models_come_in_pages() {
    let mut client = AppClient::start("model = 'mine'\n").await;
    let first = client.ok("model/list", json!({"limit": 2})).await;
    assert_eq!((first["data"].as_array().map(Vec::len), &first["nextCursor"]), (Some(2), &json!("2")));
    assert_eq!((&first["data"][0]["model"], &first["data"][0]["isDefault"]), (&json!("mine"), &json!(true)));
    let all = client.ok("model/list", json!({"limit": 100})).await;
    assert_eq!(all["nextCursor"], json!(null));
    let (mut one_by_one, mut cursor) = (Vec::new(), json!(null));
    loop {
        let page = client.ok("model/list", json!({"limit": 1, "cursor": cursor})).await;
        one_by_one.extend(page["data"].as_array().cloned().unwrap_or_default());
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(json!(one_by_one), all["data"]);
    let (code, message) = client.refused("model/list", json!({"cursor": "nonsense"})).await;
    assert_eq!((code, message.as_str()), (-32600, "invalid cursor: nonsense"));
    client.end().await;
}

#[tokio::test]
async fn a_switch_counts_until_the_server_ends_and_leaves_the_file_alone() {
    let mut client = AppClient::start_new("").await;
    let file = std::fs::read_to_string(client.home("config.toml")).expect("it is there");
    let wish = json!({"enablement": {"web_search_request": true}});
    assert_eq!(client.ok("experimentalFeature/enablement/set", wish.clone()).await, wish);
    let list = client.ok("experimentalFeature/list", json!({})).await;
    assert_eq!((&list["data"][0]["enabled"], &list["data"][0]["defaultEnabled"]), (&json!(true), &json!(false)));
    let wish = json!({"enablement": {"nonsense": true, "goals": true}});
    let known = json!({"enablement": {"goals": true}});
    assert_eq!(client.ok("experimentalFeature/enablement/set", wish).await, known);
    assert_eq!(std::fs::read_to_string(client.home("config.toml")).expect("it is there"), file);
    client.end().await;
}

#[tokio::test]
async fn existing_entries_are_listed() {
    let config = "[mcp_servers.one]\ncommand = 'x'\n";
    let mut client = AppClient::start_new(&format!("model_provider = 'openai'\n{config}")).await;
    assert_eq!(client.ok("collaborationMode/list", json!({})).await["data"][0]["mode"], "plan");
    let permissions = client.ok("permissionProfile/list", json!({"limit": 1})).await;
    assert_eq!((&permissions["data"][0]["id"], &permissions["nextCursor"]), (&json!("read-only"), &json!("1")));
    for name in ["mcpServerStatus/list", "mcpServers/list"] {
        assert_eq!(client.ok(name, json!({})).await["data"][0]["name"], "one");
    }
    let can = json!({"imageGeneration": false, "webSearch": true, "namespaceTools": true});
    assert_eq!(client.ok("modelProvider/capabilities/read", json!({})).await, can);
    let hooks = client.ok("hooks/list", json!({"cwds": ["/w"]})).await;
    assert_eq!(hooks["data"], json!([{"cwd": "/w", "hooks": [], "warnings": [], "errors": []}]));
    client.end().await;
}

#[tokio::test]
async fn skills_of_a_project_count_only_where_it_is_trusted() {
    let mut client = AppClient::start("").await;
    let skill = |name: &str| format!("---\nname: {name}\ndescription: Does it.\n---\n");
    for (path, text) in [
        (client.home("skills/cook/SKILL.md"), skill("cook")),
        (client.home("skills/broken/SKILL.md"), "nothing".to_owned()),
        (client.work(".codex/skills/sew/SKILL.md"), skill("sew")),
    ] {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
        std::fs::write(path, text).expect("a file can be written");
    }
    let work = client.work("");
    let shown = |list: &serde_json::Value| {
        let skills = list["data"][0]["skills"].as_array().expect("a list").clone();
        skills
            .iter()
            .map(|skill| format!("{} {} {}", skill["name"], skill["scope"], skill["enabled"]))
            .collect::<Vec<_>>()
    };
    let list = client.ok("skills/list", json!({"cwds": [work]})).await;
    assert_eq!(shown(&list), [r#""cook" "user" true"#, r#""sew" "repo" false"#]);
    assert_eq!(list["data"][0]["errors"][0]["path"], json!(client.home("skills/broken/SKILL.md")));
    let key = format!("projects.{}.trust_level", json!(work.to_string_lossy().trim_end_matches('/')));
    client.ok("config/value/write", json!({"keyPath": key, "value": "trusted"})).await;
    let list = client.ok("skills/list", json!({})).await;
    assert_eq!(shown(&list), [r#""cook" "user" true"#, r#""sew" "repo" true"#]);
    client.end().await;
}

#[tokio::test]
async fn files_are_found_at_once_or_while_the_user_types() {
    let mut client = AppClient::start_new("").await;
    for name in ["alpha.txt", "beta.txt"] {
        std::fs::write(client.work(name), "").expect("a file can be written");
    }
    let roots = json!([client.work("")]);
    let found = client.ok("fuzzyFileSearch", json!({"query": "alp", "roots": roots, "cancellationToken": "t"})).await;
    assert_eq!((&found["files"][0]["path"], found["files"].as_array().map(Vec::len)), (&json!("alpha.txt"), Some(1)));
    // The client need not wait for one answer before it sends the next request.
    let start = client.ask("fuzzyFileSearch/sessionStart", json!({"sessionId": "s", "roots": roots})).await;
    let update = client.ask("fuzzyFileSearch/sessionUpdate", json!({"sessionId": "s", "query": "bet"})).await;
    for id in [start, update] {
        assert_eq!(client.answer(id).await, Ok(json!({})));
    }
    let updated = client.next_notification("fuzzyFileSearch/sessionUpdated").await;
    assert_eq!((&updated["query"], &updated["files"][0]["path"]), (&json!("bet"), &json!("beta.txt")));
    let completed = client.next_notification("fuzzyFileSearch/sessionCompleted").await;
    assert_eq!(completed, json!({"sessionId": "s"}));
    client.ok("fuzzyFileSearch/sessionStop", json!({"sessionId": "s"})).await;
    let (code, message) =
        client.refused("fuzzyFileSearch/sessionUpdate", json!({"sessionId": "s", "query": "b"})).await;
    assert_eq!((code, message.as_str()), (-32600, "fuzzy file search session not found: s"));
    // A session that is still open ends with the connection.
    client.ok("fuzzyFileSearch/sessionStart", json!({"sessionId": "t", "roots": roots})).await;
    client.end().await;
}

#[tokio::test]
async fn a_folder_outside_of_a_repository_has_no_changes_to_show() {
    let mut client = AppClient::start("").await;
    let (code, message) = client.refused("gitDiffToRemote", json!({"cwd": client.work("")})).await;
    assert!(code == -32600 && message.starts_with("failed to compute git diff to remote for cwd:"), "{message}");
    client.end().await;
}

#[tokio::test]
async fn feedback_stays_on_this_machine_with_the_log() {
    let mut client = AppClient::start("").await;
    let thread = client.ok("thread/start", json!({})).await["thread"]["id"].clone();
    client.next_notification("thread/started").await;
    std::fs::write(client.work("extra.log"), "more").expect("a file can be written");
    let params = json!({"classification": "bug", "reason": "slow", "threadId": thread, "includeLogs": true,
        "extraLogFiles": [client.work("extra.log"), "/no/such/file"]});
    let kept = client.ok("feedback/upload", params.clone()).await;
    assert_eq!(kept["threadId"], thread);
    let folder = std::path::PathBuf::from(kept["savedPath"].as_str().expect("a path"));
    assert!(folder.starts_with(client.home("feedback")));
    let said: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("feedback.json")).expect("it is there")).expect("JSON");
    assert_eq!((&said["reason"], &said["leftOut"][0]["file"]), (&json!("slow"), &json!("/no/such/file")));
    assert_eq!(std::fs::read_to_string(folder.join("0-extra.log")).expect("it is there"), "more");
    let log = std::fs::read_to_string(folder.join("thread.jsonl")).expect("it is there");
    assert!(log.contains(thread.as_str().expect("a name")), "{log}");
    let mut elsewhere = params;
    elsewhere["savePath"] = json!(client.work("bundle"));
    assert_eq!(client.ok("feedback/save", elsewhere.clone()).await["savedPath"], json!(client.work("bundle")));
    let (_, message) = client.refused("feedback/save", elsewhere).await;
    assert!(message.ends_with("exists already"), "{message}");
    client.end_unread().await;
}
