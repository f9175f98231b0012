//! The recorded cases `v2-config-read` and `v1-config`, and behaviour that only clients see.

use std::fs;

use codex_config::{ConfigEdit, Env, Home, Overrides, Reader, UserConfig, WriteRequest};
use codex_protocol::v1::saved_config::UserSavedConfig;
use codex_protocol::v2::config::{
    Config as WireConfig, ConfigLayerSource, ConfigReadResponse, ConfigWriteResponse, ProfileV2, WriteStatus,
};
use expect_test::expect;
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use super::*;

/// A home with a `config.toml`, and options of the command line.
struct Fixture {
    temp: TempDir,
    home: Home,
    env: Env,
    overrides: Overrides,
}

impl Fixture {
    fn new(file: &str, overrides: &[&str]) -> Self {
        let temp = TempDir::new().unwrap();
        let home = Home::at(temp.path());
        fs::write(home.config_file(), file).unwrap();
        let values = overrides.iter().map(|text| (*text).to_owned()).collect();
        let overrides = Overrides { values, ..Overrides::default() };
        Self { temp, home, env: Env::from_iter::<[(&str, &str); 0]>([]), overrides }
    }

    fn config(&self) -> UserConfig<'_> {
        UserConfig::new(&self.home, &self.env, &self.overrides)
    }

    fn read(&self) -> ConfigReadResponse {
        read(self.config().read(None).unwrap(), self.home.user_dir(), true).unwrap()
    }

    fn saved(&self) -> UserSavedConfig {
        saved(&Reader::new(&self.config().file().unwrap(), None)).unwrap()
    }

    fn write(&self, key: &str, value: Json) -> ConfigWriteResponse {
        let params = json!({"keyPath": key, "value": value, "mergeStrategy": "replace"});
        let request = one_edit(serde_json::from_value(params).unwrap());
        self.config().write(&request).map(written).unwrap()
    }

    /// Prints an answer without hashes; `@` is the home.
    fn show(&self, response: &ConfigWriteResponse) -> String {
        let mut json = serde_json::to_value(response).unwrap();
        json["version"].take();
        if let Some(layer) = json.pointer_mut("/overriddenMetadata/overridingLayer/version") {
            layer.take();
        }
        json.to_string().replace(&self.temp.path().display().to_string(), "@")
    }
}

/// The recorded case `v2-config-read` of 0.77, without the members that only 0.166 names.
#[test]
fn the_configuration_is_read_as_recorded() {
    let file = "model = \"mock-model\"\nmodel_provider = \"mock\"\napproval_policy = \"never\"\n\
        sandbox_mode = \"danger-full-access\"\nmodel_reasoning_effort = \"high\"\n\
        sandbox_workspace_write.network_access = true\n\
        [model_providers.mock]\nname = \"mock\"\nbase_url = \"http://m/v1\"\nwire_api = \"responses\"\n\
        request_max_retries = 0\nstream_max_retries = 0\n[profiles.fast]\nmodel = \"fast-model\"\n";
    let fixture = Fixture::new(file, &[]);
    let mut read = serde_json::to_value(fixture.read()).unwrap();
    let config = read["config"].as_object_mut().unwrap();
    for key in ["approvals_reviewer", "web_search", "service_tier", "analytics", "browser_use", "computer_use"] {
        assert_eq!(config.shift_remove(key), Some(Json::Null), "{key}");
    }
    config.shift_remove("model_auto_compact_token_limit_scope");
    config.shift_remove("desktop");
    let provider = json!({
        "base_url": "http://m/v1", "name": "mock", "request_max_retries": 0, "stream_max_retries": 0,
        "wire_api": "responses",
    });
    assert_eq!(
        read["config"],
        json!({
            "model": "mock-model", "review_model": null, "model_context_window": null,
            "model_auto_compact_token_limit": null, "model_provider": "mock", "approval_policy": "never",
            "sandbox_mode": "danger-full-access",
            "sandbox_workspace_write": {
                "writable_roots": [], "network_access": true, "exclude_tmpdir_env_var": false,
                "exclude_slash_tmp": false,
            },
            "forced_chatgpt_workspace_id": null, "forced_login_method": null, "tools": null, "profile": null,
            "profiles": {"fast": {
                "model": "fast-model", "model_provider": null, "approval_policy": null,
                "model_reasoning_effort": null, "model_reasoning_summary": null, "model_verbosity": null,
                "chatgpt_base_url": null,
            }},
            "instructions": null, "developer_instructions": null, "compact_prompt": null,
            "model_reasoning_effort": "high", "model_reasoning_summary": null, "model_verbosity": null,
            "model_providers": {"mock": provider},
        })
    );
    let layer = &read["layers"][0];
    assert_eq!(layer["name"], json!({"type": "user", "file": fixture.home.config_file(), "profile": null}));
    assert_eq!(layer["config"]["model_providers"]["mock"], provider);
    assert_eq!(read["origins"]["model_providers.mock.base_url"]["version"], layer["version"]);
    assert_eq!(read["layers"].as_array().unwrap().len(), 1);
}

#[test]
fn overrides_are_a_layer_of_their_own_above_the_file() {
    let fixture = Fixture::new("model = 'file'\nprofile = 'p'\n[profiles.p]\nmodel = 'profile'\n", &["model='flag'"]);
    let read = fixture.read();
    assert_eq!(read.config.model.as_deref(), Some("flag"));
    assert_eq!(read.config.profile.as_deref(), Some("p"));
    let layers: Vec<_> = read.layers.unwrap().iter().map(|layer| layer.name.kind().to_owned()).collect();
    assert_eq!(layers, ["sessionFlags", "user"]);
    assert_eq!(read.origins["model"].name, ConfigLayerSource::SessionFlags);
    assert_eq!(read.origins["profile"].name.kind(), "user");
}

#[test]
fn a_value_that_the_command_line_overrides_is_written_and_reported() {
    let fixture = Fixture::new("", &["model='flag'", "sandbox_workspace_write.network_access=true"]);
    let written = fixture.write("model", json!("mine"));
    expect![[r#"{"status":"okOverridden","version":null,"filePath":"@/config.toml","overriddenMetadata":{"message":"model was written, but the command line sets it for this run","overridingLayer":{"name":{"type":"sessionFlags"},"version":null},"effectiveValue":"flag"}}"#]].assert_eq(&fixture.show(&written));
    let below = fixture.write("sandbox_workspace_write", json!({"exclude_slash_tmp": true}));
    assert_eq!(below.status, WriteStatus::OkOverridden);
    let same = fixture.write("model", json!("flag"));
    assert_eq!(same.status, WriteStatus::Ok);
    let other = fixture.write("review_model", json!("r"));
    assert_eq!(other.status, WriteStatus::Ok);
}

/// The recorded case `v1-config` of 0.77.
#[test]
fn the_saved_configuration_is_read_as_recorded() {
    let file = "model = \"mock-model\"\nprofile = \"fast\"\n\n[sandbox_workspace_write]\n\
        writable_roots = [\"/tmp\"]\nnetwork_access = true\n\n[tools]\nview_image = true\n\n\
        [profiles.fast]\nmodel = \"fast-model\"\napproval_policy = \"never\"\n";
    let fixture = Fixture::new(file, &[]);
    let saved = serde_json::to_value(fixture.saved()).unwrap();
    assert_eq!(
        saved["sandboxSettings"],
        json!({
            "writableRoots": ["/tmp"], "networkAccess": true, "excludeTmpdirEnvVar": false, "excludeSlashTmp": false,
        })
    );
    assert_eq!(saved["tools"], json!({"webSearch": null, "viewImage": true}));
    assert_eq!(saved["profiles"]["fast"]["model"], "fast-model");
    assert_eq!(Fixture::new("", &[]).saved(), UserSavedConfig::default());
}

#[test]
fn a_value_of_the_wrong_type_is_not_shown() {
    let fixture = Fixture::new("[profiles.p]\napproval_policy = 'bad'\n", &[]);
    let error = read(fixture.config().read(None).unwrap(), None, false).unwrap_err().to_string();
    assert!(error.contains("config.toml:2: profiles.p.approval_policy: unknown value `bad`"), "{error}");
}

/// A write checks the same types that an answer has.
#[test]
fn every_written_value_can_be_shown() {
    let names = |shown: Result<Json, serde_json::Error>| -> Vec<String> {
        shown.unwrap().as_object().unwrap().keys().cloned().collect()
    };
    let mut keys = names(serde_json::to_value(WireConfig::default()));
    let of_profile = names(serde_json::to_value(ProfileV2::default()));
    keys.extend(of_profile.iter().map(|key| format!("profiles.p.{key}")));
    keys.extend(["tools.view_image", "tools.web_search", "sandbox_workspace_write.network_access"].map(str::to_owned));
    let fixture = Fixture::new("", &[]);
    for key in keys {
        for value in [json!(true), json!(5), json!("x"), json!([]), json!({})] {
            fs::write(fixture.home.config_file(), "").unwrap();
            if fixture.config().write(&WriteRequest::of([ConfigEdit::set(key.as_str(), value.clone())])).is_ok() {
                let shown = read(fixture.config().read(None).unwrap(), None, false);
                assert!(shown.is_ok(), "{key} = {value}: {shown:?}");
            }
        }
    }
}

#[test]
fn several_edits_use_their_merge_strategies() {
    let fixture = Fixture::new("a = {x = 1}\nb = {x = 1}\n", &[]);
    let edits = json!([
        {"keyPath": "a", "value": {"y": 2}, "mergeStrategy": "upsert"},
        {"keyPath": "b", "value": {"y": 2}, "mergeStrategy": "replace"},
    ]);
    let request = several_edits(serde_json::from_value(json!({"edits": edits})).unwrap());
    fixture.config().write(&request).unwrap();
    let read = fixture.read().config.additional.0;
    assert_eq!((&read["a"], &read["b"]), (&json!({"x": 1, "y": 2}), &json!({"y": 2})));
}

#[test]
fn debug_text_of_answers_shows_no_secret() {
    let fixture = Fixture::new("[model_providers.x]\nexperimental_bearer_token = 'sk-1'\n", &["a='sk-2'"]);
    let shown = format!("{:?} {:?}", fixture.read(), fixture.write("a", json!("sk-3")));
    assert!(!shown.contains("sk-"), "{shown}");
}

#[test]
fn administrator_settings_are_listed_and_override_written_ones() {
    let mut fixture = Fixture::new("model = 'user'\n", &["review_model=flag"]);
    let [system, managed] = ["system.toml", "managed.toml"].map(|name| fixture.temp.path().join(name));
    fs::write(&system, "model = 'system'\nmodel_verbosity = 'low'\n").unwrap();
    fs::write(&managed, "model_reasoning_effort = 'high'\n").unwrap();
    fixture.env = Env::from_iter([("CODEX_SYSTEM_CONFIG_PATH", &system), ("CODEX_MANAGED_CONFIG_PATH", &managed)]);
    let read = serde_json::to_value(fixture.read()).unwrap();
    let kinds = |values: Vec<&Json>| values.iter().map(|name| name["type"].to_string()).collect::<Vec<_>>().join(" ");
    let layers = read["layers"].as_array().unwrap().iter().map(|layer| &layer["name"]).collect();
    assert_eq!(kinds(layers), r#""legacyManagedConfigTomlFromFile" "sessionFlags" "user" "system""#);
    let keys = ["model", "model_verbosity", "review_model", "model_reasoning_effort"];
    let origins = keys.map(|key| &read["origins"][key]["name"]).to_vec();
    assert_eq!(kinds(origins), r#""user" "system" "sessionFlags" "legacyManagedConfigTomlFromFile""#);
    assert_eq!(read["layers"][0]["name"]["file"], json!(managed));
    let written = fixture.write("model_reasoning_effort", json!("low"));
    let shown = fixture.show(&written);
    assert!(shown.contains("model_reasoning_effort was written, but @/managed.toml sets it"), "{shown}");
    assert!(shown.contains(r#""effectiveValue":"high""#), "{shown}");
    assert!(fixture.show(&fixture.write("model", json!("other"))).contains(r#""status":"ok""#));
}
