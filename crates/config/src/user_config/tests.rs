use std::fs;

use expect_test::{Expect, expect};
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::config::tests::values;

/// A home with a `config.toml`, and the command line over it.
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
        Self { temp, home, env: Env::from_iter::<[(&str, &str); 0]>([]), overrides: values(overrides) }
    }

    fn config(&self) -> UserConfig<'_> {
        UserConfig::new(&self.home, &self.env, &self.overrides)
    }

    fn file(&self) -> String {
        fs::read_to_string(self.home.config_file()).unwrap()
    }

    /// Shows an answer or an error, without hashes; `@` is the home.
    fn show(&self, result: &Result<ConfigWriteResponse, ConfigWriteError>) -> String {
        let shown = match result {
            Ok(response) => {
                let mut json = serde_json::to_value(response).unwrap();
                json["version"].take();
                if let Some(layer) = json.pointer_mut("/overriddenMetadata/overridingLayer/version") {
                    layer.take();
                }
                json.to_string()
            }
            Err(error) => {
                let code = error.code().map_or("no code", |code| code.as_str());
                let cause = std::error::Error::source(error).map(|cause| format!("\n{cause}"));
                format!("{code}: {error}{}", cause.unwrap_or_default())
            }
        };
        shown.replace(&self.temp.path().display().to_string(), "@")
    }

    fn write(&self, key: &str, value: Json) -> Result<ConfigWriteResponse, ConfigWriteError> {
        self.config().write_value(value_write(key, value))
    }
}

fn value_write(key: &str, value: Json) -> ConfigValueWriteParams {
    serde_json::from_value(json!({"keyPath": key, "value": value, "mergeStrategy": "replace"})).unwrap()
}

const RECORDED: &str = "# a comment\nmodel = \"mock-model\" # another\nmodel_reasoning_effort = \"high\"\n\
    approval_policy = \"never\"\n\n[profiles.fast]\nmodel = \"fast-model\"\n";

/// The case `v2-config-write` as 0.77 played it.
#[test]
fn the_recorded_writes_give_the_recorded_file() {
    let fixture = Fixture::new(RECORDED, &[]);
    let first = fixture.write("model", json!("other-model")).unwrap();
    assert_eq!(first.status, WriteStatus::Ok);
    assert_eq!(first.file_path, fixture.home.config_file());

    let stale =
        ConfigValueWriteParams { expected_version: Some("sha256:0000".into()), ..value_write("model", json!("third")) };
    let stale = fixture.config().write_value(stale).unwrap_err();
    assert_eq!(stale.code(), Some(ConfigWriteErrorCode::ConfigVersionConflict));

    let batch = serde_json::from_value(json!({
        "expectedVersion": first.version,
        "edits": [
            {"keyPath": "approval_policy", "value": "on-request", "mergeStrategy": "replace"},
            {"keyPath": "sandbox_workspace_write", "value": {"network_access": true}, "mergeStrategy": "upsert"},
            {"keyPath": "model_reasoning_effort", "value": null, "mergeStrategy": "replace"},
        ],
    }));
    let second = fixture.config().write_batch(&batch.unwrap()).unwrap();
    assert_ne!(second.version, first.version);

    let bad = fixture.write("approval_policy", json!("whenever"));
    expect![[r#"
        configValidationError: the configuration would be invalid
        @/config.toml:3: approval_policy: unknown value `whenever`, expected one of untrusted, on-failure, on-request, never"#]].assert_eq(&fixture.show(&bad));
    expect![[r#"
        # a comment
        model = "other-model" # another
        approval_policy = "on-request"

        [profiles.fast]
        model = "fast-model"

        [sandbox_workspace_write]
        network_access = true
    "#]]
    .assert_eq(&fixture.file());

    let read = fixture.config().read(false, None).unwrap();
    assert!(read.origins.values().all(|origin| origin.version == second.version));
    let origins: Vec<_> = read.origins.keys().map(String::as_str).collect();
    assert_eq!(origins, ["approval_policy", "model", "profiles.fast.model", "sandbox_workspace_write.network_access"]);
}

/// The case `v2-config-read` as 0.77 played it, without the members that only 0.166 names.
#[test]
fn the_configuration_is_read_as_recorded() {
    let file = "model = \"mock-model\"\nmodel_provider = \"mock\"\napproval_policy = \"never\"\n\
        sandbox_mode = \"danger-full-access\"\nmodel_reasoning_effort = \"high\"\n\
        sandbox_workspace_write.network_access = true\n\
        [model_providers.mock]\nname = \"mock\"\nbase_url = \"http://m/v1\"\nwire_api = \"responses\"\n\
        request_max_retries = 0\nstream_max_retries = 0\n[profiles.fast]\nmodel = \"fast-model\"\n";
    let fixture = Fixture::new(file, &[]);
    let mut read = serde_json::to_value(fixture.config().read(true, None).unwrap()).unwrap();
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
    let read = fixture.config().read(true, None).unwrap();
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
    let below = fixture.write("sandbox_workspace_write", json!({"exclude_slash_tmp": true})).unwrap();
    assert_eq!(below.status, WriteStatus::OkOverridden);
    let same = fixture.write("model", json!("flag")).unwrap();
    assert_eq!(same.status, WriteStatus::Ok);
    let other = fixture.write("review_model", json!("r")).unwrap();
    assert_eq!(other.status, WriteStatus::Ok);
}

/// Makes one write that must fail and finds the file as it was.
#[track_caller]
fn check_refused(file: &str, key: &str, value: Json, expected: Expect) {
    let fixture = Fixture::new(file, &[]);
    let refused = fixture.write(key, value);
    expected.assert_eq(&fixture.show(&refused));
    assert_eq!(fixture.file(), file);
}

#[test]
fn what_would_make_the_configuration_unreadable_is_refused() {
    check_refused(
        "",
        "model",
        json!(5),
        expect![[r#"
            configValidationError: the configuration would be invalid
            @/config.toml:1: model: expected a string, found the integer 5"#]],
    );
    check_refused(
        "",
        "profile",
        json!("none"),
        expect![[r#"
            configValidationError: the configuration would be invalid
            @/config.toml:1: profile: no profile named "none"; there are no profiles"#]],
    );
    check_refused(
        "",
        "model_provider",
        json!("none"),
        expect![[r#"
            configValidationError: the configuration would be invalid
            @/config.toml:1: model_provider: no provider named "none"; known providers: lmstudio, ollama, openai, scripted"#]],
    );
    check_refused(
        "",
        "profiles.p.approval_policy",
        json!("x"),
        expect![[r#"
            configValidationError: the configuration would be invalid
            @/config.toml:2: profiles.p.approval_policy: unknown value `x`, expected one of untrusted, on-failure, on-request, never"#]],
    );
    check_refused(
        "",
        "tools.view_image",
        json!("yes"),
        expect![[r#"
            configValidationError: the configuration would be invalid
            @/config.toml:2: tools.view_image: expected a boolean, found the string "yes""#]],
    );
    check_refused(
        "",
        "model_providers.x.experimental_bearer_token",
        json!(["sk-1"]),
        expect![[r#"
            configValidationError: the configuration would be invalid
            @/config.toml:2: model_providers.x.experimental_bearer_token: expected a string, found an array"#]],
    );
    check_refused(
        "model = 'a'\n",
        "model.name",
        json!("b"),
        expect!["configPathNotFound: model is a string, which has no keys below it"],
    );
    check_refused(
        "",
        "a..b",
        json!(1),
        expect![[r#"
            configValidationError: bad key "a..b"
            a segment between the dots of the key is empty"#]],
    );
    check_refused(
        "model = \n",
        "model",
        json!("b"),
        expect![[r#"
            configValidationError: the configuration would be invalid
            @/config.toml:1:9: string values must be quoted, expected literal string"#]],
    );
}

#[test]
fn a_write_may_mend_a_value_that_was_wrong() {
    let fixture = Fixture::new("approval_policy = 'bad'\n", &[]);
    assert!(fixture.config().read(false, None).is_err());
    fixture.write("approval_policy", json!("never")).unwrap();
    assert_eq!(fixture.file(), "approval_policy = \"never\"\n");
}

#[test]
fn several_edits_are_made_together_or_not_at_all() {
    let fixture = Fixture::new("model = 'a'\n", &[]);
    let batch = json!({"edits": [{"keyPath": "model", "value": "b"}, {"keyPath": "sandbox_mode", "value": "loose"}]});
    assert!(fixture.config().write_batch(&serde_json::from_value(batch).unwrap()).is_err());
    assert_eq!(fixture.file(), "model = 'a'\n");
}

#[test]
fn only_the_users_own_file_is_written() {
    let fixture = Fixture::new("", &[]);
    fs::create_dir(fixture.temp.path().join("sub")).unwrap();
    let at = |path: PathBuf| ConfigValueWriteParams { file_path: Some(path), ..value_write("model", json!("m")) };
    for wrong in ["other.toml", "sub/config.toml", "sub/../../etc/config.toml", "auth.json"] {
        let refused = fixture.config().write_value(at(fixture.temp.path().join(wrong))).unwrap_err();
        assert_eq!(refused.code(), Some(ConfigWriteErrorCode::ConfigLayerReadonly), "{wrong}");
        assert!(wrong == "sub/config.toml" || !fixture.temp.path().join(wrong).exists());
    }
    fixture.config().write_value(at(fixture.home.config_file())).unwrap();
    fixture.config().write_value(at(fixture.temp.path().join("sub/../config.toml"))).unwrap();
    assert_eq!(fixture.file(), "model = \"m\"\n");
}

#[test]
fn a_home_that_is_not_there_yet_is_made() {
    let temp = TempDir::new().unwrap();
    let home = Home::at(temp.path().join("new"));
    let (env, overrides) = (Env::from_iter::<[(&str, &str); 0]>([]), Overrides::default());
    let config = UserConfig::new(&home, &env, &overrides);
    assert_eq!(config.saved().unwrap(), UserSavedConfig::default());
    config.write_value(value_write("model", json!("m"))).unwrap();
    assert_eq!(fs::read_to_string(home.config_file()).unwrap(), "model = \"m\"\n");
}

/// The case `v1-config` as 0.77 played it.
#[test]
fn the_default_model_is_set_in_the_selected_profile() {
    let file = "model = \"mock-model\"\nprofile = \"fast\"\n\n[sandbox_workspace_write]\n\
        writable_roots = [\"/tmp\"]\nnetwork_access = true\n\n[tools]\nview_image = true\n\n\
        [profiles.fast]\nmodel = \"fast-model\"\napproval_policy = \"never\"\n";
    let fixture = Fixture::new(file, &[]);
    let saved = serde_json::to_value(fixture.config().saved().unwrap()).unwrap();
    assert_eq!(
        saved["sandboxSettings"],
        json!({
            "writableRoots": ["/tmp"], "networkAccess": true, "excludeTmpdirEnvVar": false, "excludeSlashTmp": false,
        })
    );
    assert_eq!(saved["tools"], json!({"webSearch": null, "viewImage": true}));

    let params = json!({"model": "other-model", "reasoningEffort": "high"});
    fixture.config().set_default_model(&serde_json::from_value(params).unwrap()).unwrap();
    let saved = fixture.config().saved().unwrap();
    assert_eq!(saved.model.as_deref(), Some("mock-model"));
    assert_eq!(saved.profiles["fast"].model.as_deref(), Some("other-model"));
    assert_eq!(saved.profiles["fast"].model_reasoning_effort.as_ref().unwrap().as_str(), "high");

    fixture.config().set_default_model(&SetDefaultModelParams::default()).unwrap();
    assert_eq!(fixture.file(), file.replace("model = \"fast-model\"\n", ""));
}

#[test]
fn the_default_model_is_set_at_the_root_without_a_profile() {
    let fixture = Fixture::new("# mine\n", &[]);
    let params = serde_json::from_value(json!({"model": "m"})).unwrap();
    fixture.config().set_default_model(&params).unwrap();
    assert_eq!(fixture.config().saved().unwrap().model.as_deref(), Some("m"));
    assert!(fixture.file().contains("# mine"), "{}", fixture.file());
}

#[test]
fn debug_text_of_errors_and_answers_shows_no_secret() {
    let fixture = Fixture::new("[model_providers.x]\nexperimental_bearer_token = 'sk-1'\n", &["a='sk-2'"]);
    let read = fixture.config().read(true, None).unwrap();
    let written = fixture.write("a", json!("sk-3"));
    let refused = fixture.write("model_providers.x.http_headers", json!("sk-4"));
    let shown = format!("{read:?} {written:?} {refused:?} {}", fixture.show(&refused));
    assert!(!shown.contains("sk-"), "{shown}");
}

#[test]
fn writers_side_by_side_lose_nothing() {
    let fixture = Fixture::new("", &[]);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let config = fixture.config();
            scope.spawn(move || {
                for number in 0..10 {
                    config.write_value(value_write(&format!("x.t{thread}_{number}"), json!(number))).unwrap();
                }
            });
        }
    });
    let read = fixture.config().read(false, None).unwrap();
    assert_eq!(read.config.additional.0["x"].as_object().unwrap().len(), 40);
}

#[test]
fn what_an_administrator_has_set_is_listed_and_goes_over_what_is_written() {
    let mut fixture = Fixture::new("model = 'user'\n", &["review_model=flag"]);
    let [system, managed] = ["system.toml", "managed.toml"].map(|name| fixture.temp.path().join(name));
    fs::write(&system, "model = 'system'\nmodel_verbosity = 'low'\n").unwrap();
    fs::write(&managed, "model_reasoning_effort = 'high'\n").unwrap();
    fixture.env = Env::from_iter([("CODEX_SYSTEM_CONFIG_PATH", &system), ("CODEX_MANAGED_CONFIG_PATH", &managed)]);
    let read = serde_json::to_value(fixture.config().read(true, None).unwrap()).unwrap();
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
