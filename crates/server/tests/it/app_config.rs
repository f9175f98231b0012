//! `config/*` and the effects of a write.

use serde_json::json;

use crate::app_client::AppClient;

#[tokio::test]
async fn a_write_changes_the_file_and_keeps_its_comments() {
    let mut client = AppClient::start("# why\nmodel = 'one' # here\n").await;
    let written = client.ok("config/value/write", json!({"keyPath": "model", "value": "two"})).await;
    assert_eq!(written["status"], "ok");
    assert_eq!(written["filePath"], json!(client.home("config.toml")));
    let edits = json!([{"keyPath": "approval_policy", "value": "never"}, {"keyPath": "a.b", "value": 1}]);
    let batch = json!({"edits": edits, "expectedVersion": written["version"]});
    client.ok("config/batchWrite", batch).await;
    let text = std::fs::read_to_string(client.home("config.toml")).expect("it is there");
    assert!(text.starts_with("# why\nmodel = \"two\" # here\n"), "{text}");
    let read = client.ok("config/read", json!({"includeLayers": true})).await;
    assert_eq!((&read["config"]["model"], &read["config"]["approval_policy"]), (&json!("two"), &json!("never")));
    assert_eq!(read["layers"][0]["config"]["a"], json!({"b": 1}));
    client.end().await;
}

#[tokio::test]
async fn a_refused_write_has_an_error_code() {
    let mut client = AppClient::start("model = 'one'\n").await;
    let write = |change: serde_json::Value| {
        let mut params = json!({"keyPath": "model", "value": "two"});
        params.as_object_mut().expect("an object").extend(change.as_object().expect("an object").clone());
        params
    };
    for (change, code) in [
        (json!({"expectedVersion": "sha256:0"}), "configVersionConflict"),
        (json!({"filePath": "/somewhere/else.toml"}), "configLayerReadonly"),
        (json!({"keyPath": "approval_policy", "value": "whenever"}), "configValidationError"),
        (json!({"keyPath": "model.name"}), "configPathNotFound"),
    ] {
        let error = client.call("config/value/write", write(change)).await.expect_err("it is refused");
        assert_eq!((&error["code"], &error["data"]["config_write_error_code"]), (&json!(-32600), &json!(code)));
    }
    let read = client.ok("config/read", json!({})).await;
    assert_eq!(read["config"]["model"], "one");
    client.end().await;
}

/// The configuration is cached by the metadata of its file, and these writes follow each other faster than the clock of
/// a file system ticks.
#[tokio::test]
async fn threads_see_every_write_that_was_made_before_they_start() {
    let mut client = AppClient::start("model = 'model-0'\n").await;
    for number in 1..10 {
        let model = format!("model-{number}");
        client.ok("config/value/write", json!({"keyPath": "model", "value": model})).await;
        assert_eq!(client.ok("thread/start", json!({})).await["model"], json!(model));
        client.next_notification("thread/started").await;
    }
    client.end_unread().await;
}

#[tokio::test]
async fn requests_that_do_not_wait_are_served_in_order() {
    let mut client = AppClient::start("model = 'one'\n").await;
    let mut reads = Vec::new();
    for number in 0..20 {
        client.ask("config/value/write", json!({"keyPath": "model", "value": format!("m{number}")})).await;
        reads.push(client.ask("config/read", json!({})).await);
    }
    for (number, read) in reads.into_iter().enumerate() {
        client.answer(read - 1).await.expect("it is written");
        let read = client.answer(read).await.expect("it is read");
        assert_eq!(read["config"]["model"], json!(format!("m{number}")));
    }
    client.end().await;
}

#[tokio::test]
async fn older_clients_read_and_set_the_default_model() {
    let mut client = AppClient::start("model = 'one'\n").await;
    client.ok("setDefaultModel", json!({"model": "two", "reasoningEffort": "high"})).await;
    let saved = client.ok("getUserSavedConfig", json!(null)).await;
    assert_eq!((&saved["config"]["model"], &saved["config"]["modelReasoningEffort"]), (&json!("two"), &json!("high")));
    client.end().await;
}

#[tokio::test]
async fn nobody_demands_anything_and_a_reload_reads_the_file_again() {
    let mut client = AppClient::start("").await;
    assert_eq!(client.ok("configRequirements/read", json!(null)).await["requirements"], json!(null));
    assert_eq!(client.ok("config/mcpServer/reload", json!(null)).await, json!({}));
    std::fs::write(client.home("config.toml"), "model = [").expect("a file can be written");
    let (code, message) = client.refused("config/mcpServer/reload", json!(null)).await;
    assert!(code == -32600 && message.contains("config.toml:1"), "{message}");
    let (_, message) = client.refused("config/read", json!({})).await;
    assert!(message.contains("config.toml:1"), "{message}");
    client.end().await;
}

#[tokio::test]
async fn every_value_is_reported_with_its_origin() {
    let mut client = AppClient::start("model = 'one'\n[tools]\nweb_search = true\nview_image = false\n").await;
    let read = client.ok("config/read", json!({"includeLayers": true})).await;
    let tools = &read["config"]["tools"];
    assert_eq!((&tools["web_search"], &tools["view_image"]), (&json!(true), &json!(false)));
    for key in ["model", "tools.web_search", "tools.view_image"] {
        let origin = &read["origins"][key];
        assert_eq!(
            (&origin["name"]["type"], &origin["name"]["file"]),
            (&json!("user"), &json!(client.home("config.toml")))
        );
        assert_eq!(origin["version"], read["layers"][0]["version"]);
    }
    assert_eq!(
        (&read["layers"][0]["name"]["type"], &read["layers"][0]["config"]["model"]),
        (&json!("user"), &json!("one"))
    );
    // The tool cannot be disabled, and the provider of this test is not at the root of the file.
    client.next_notification("configWarning").await;
    client.end_unread().await;
}

#[tokio::test]
async fn keys_without_effect_are_reported_to_each_client_once() {
    let mut client = AppClient::start_new("modle = 'one'\nservice_tier = 'flex'\n").await;
    let file = client.home("config.toml");
    let warning = client.next_notification("configWarning").await;
    let summary = format!("{}:1: unknown key `modle`; did you mean `model`?", file.display());
    assert_eq!((&warning["summary"], &warning["path"]), (&json!(summary), &json!(file)));
    let warning = client.next_notification("configWarning").await;
    let summary = format!("{}:2: `service_tier` has no effect: this release does not support it", file.display());
    assert_eq!(warning["summary"], json!(summary));
    client.ok("thread/start", json!({"cwd": client.work("")})).await;
    client.next_notification("thread/started").await;
    let mut second = client.another().await;
    second.next_notification("configWarning").await;
    second.next_notification("configWarning").await;
    second.end_unread().await;
    client.end_unread().await;
}

#[tokio::test]
async fn a_trusted_project_is_a_layer_of_its_folder() {
    let mut client = AppClient::start_new("model = 'user'\n").await;
    let work = client.work("");
    std::fs::create_dir(work.join(".codex")).expect("a folder can be made");
    let file = "model = 'project'\napproval_policy = 'never'\n";
    std::fs::write(work.join(".codex/config.toml"), file).expect("a file can be written");
    let params = json!({"includeLayers": true, "cwd": work});
    let read = client.ok("config/read", params.clone()).await;
    assert_eq!(read["config"]["model"], "user");
    let folder = json!({"type": "project", "dotCodexFolder": work.join(".codex")});
    assert_eq!(read["layers"][0]["name"], folder);
    assert_eq!(
        (&read["layers"][0]["disabledReason"], &read["layers"][0]["config"]),
        (&json!("the project is not trusted"), &json!({}))
    );
    client.ok("thread/start", json!({"cwd": work})).await;
    client.next_notification("thread/started").await;
    let warning = client.next_notification("configWarning").await;
    let untrusted = format!("{}: not read: the project is not trusted", work.join(".codex/config.toml").display());
    assert_eq!(warning["summary"], json!(untrusted));

    let key = format!("projects.\"{}\".trust_level", work.display());
    client.ok("config/value/write", json!({"keyPath": key, "value": "trusted"})).await;
    let read = client.ok("config/read", params).await;
    assert_eq!((&read["config"]["model"], &read["config"]["approval_policy"]), (&json!("project"), &json!(null)));
    assert_eq!(read["origins"]["model"]["name"], folder);
    assert_eq!(read["layers"][0]["config"], json!({"model": "project", "approval_policy": "never"}));
    assert_eq!(read["origins"]["model"]["version"], read["layers"][0]["version"]);
    assert_eq!(client.ok("config/read", json!({"includeLayers": true})).await["config"]["model"], "user");
    let started = client.ok("thread/start", json!({"cwd": work})).await;
    assert_eq!((&started["model"], &started["approvalPolicy"]), (&json!("project"), &json!("on-request")));
    client.next_notification("thread/started").await;
    let warning = client.next_notification("configWarning").await;
    assert!(warning["summary"].as_str().is_some_and(|text| text.contains(":2: `approval_policy` is ignored: ")));
    client.end_unread().await;
}
