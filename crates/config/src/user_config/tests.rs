use std::fs;

use expect_test::{Expect, expect};
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::config::tests::values;

/// A home with a `config.toml`, and the overrides of the command line.
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

    /// Prints the reason why nothing was written; `@` is the home.
    fn show(&self, error: &ConfigWriteError) -> String {
        let cause = std::error::Error::source(error).map(|cause| format!("\n{cause}"));
        let shown = format!("{:?}: {error}{}", error.fault().unwrap(), cause.unwrap_or_default());
        shown.replace(&self.temp.path().display().to_string(), "@")
    }

    fn write(&self, key: &str, value: Json) -> Result<Written, ConfigWriteError> {
        self.config().write(&one(key, value))
    }

    /// Whether the file has no value of the wrong type.
    fn is_well_typed(&self) -> bool {
        check_types(&Reader::new(&self.config().file().unwrap(), None)).is_ok()
    }
}

fn one(key: &str, value: Json) -> WriteRequest {
    WriteRequest::of([ConfigEdit::set(key, value)])
}

const RECORDED: &str = "# a comment\nmodel = \"mock-model\" # another\nmodel_reasoning_effort = \"high\"\n\
    approval_policy = \"never\"\n\n[profiles.fast]\nmodel = \"fast-model\"\n";

/// The case `v2-config-write` as recorded with 0.77.
#[test]
fn the_recorded_writes_give_the_recorded_file() {
    let fixture = Fixture::new(RECORDED, &[]);
    let first = fixture.write("model", json!("other-model")).unwrap();
    assert_eq!(first.overridden, None);
    assert_eq!(first.file, fixture.home.config_file());

    let stale = WriteRequest { expected_version: Some("sha256:0000".into()), ..one("model", json!("third")) };
    let stale = fixture.config().write(&stale).unwrap_err();
    assert_eq!(stale.fault(), Some(WriteFault::VersionConflict));

    let limits = ConfigEdit::set("sandbox_workspace_write", json!({"network_access": true}));
    let batch = WriteRequest::of([
        ConfigEdit::set("approval_policy", "on-request"),
        ConfigEdit { merge: Merge::Upsert, ..limits },
        ConfigEdit::set("model_reasoning_effort", Json::Null),
    ]);
    let batch = WriteRequest { expected_version: Some(first.version.clone()), ..batch };
    let second = fixture.config().write(&batch).unwrap();
    assert_ne!(second.version, first.version);

    let bad = fixture.write("approval_policy", json!("whenever")).unwrap_err();
    expect![[r#"
        Invalid: the configuration would be invalid
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

    let read = fixture.config().read(None).unwrap();
    assert!(read.origins.values().all(|origin| origin.version == second.version));
    let origins: Vec<_> = read.origins.keys().map(String::as_str).collect();
    assert_eq!(origins, ["approval_policy", "model", "profiles.fast.model", "sandbox_workspace_write.network_access"]);
}

#[test]
fn overrides_are_a_layer_of_their_own_above_the_file() {
    let fixture = Fixture::new("model = 'file'\nprofile = 'p'\n[profiles.p]\nmodel = 'profile'\n", &["model='flag'"]);
    let read = fixture.config().read(None).unwrap();
    let root = Reader::new(&read.tree, None);
    assert_eq!(root.str("model").unwrap().as_deref(), Some("flag"));
    assert_eq!(root.str("profile").unwrap().as_deref(), Some("p"));
    let user = LayerSource::User(fixture.home.config_file());
    let layers: Vec<_> = read.layers.iter().map(|listed| &listed.layer.source).collect();
    assert_eq!(layers, [&LayerSource::Flags, &user]);
    assert_eq!(read.origins["model"].source, LayerSource::Flags);
    assert_eq!(read.origins["profile"].source, user);
}

#[test]
fn a_value_that_the_command_line_overrides_is_written_and_reported() {
    let fixture = Fixture::new("", &["model='flag'", "sandbox_workspace_write.network_access=true"]);
    let overridden = fixture.write("model", json!("mine")).unwrap().overridden.unwrap();
    assert_eq!(overridden.message, "model was written, but the command line sets it for this run");
    assert_eq!((overridden.layer.source, overridden.value), (LayerSource::Flags, Some(Value::String("flag".into()))));
    let below = fixture.write("sandbox_workspace_write", json!({"exclude_slash_tmp": true})).unwrap();
    assert_ne!(below.overridden, None);
    assert_eq!(fixture.write("model", json!("flag")).unwrap().overridden, None);
    assert_eq!(fixture.write("review_model", json!("r")).unwrap().overridden, None);
}

/// Makes one write that must fail and leave the file unchanged.
#[track_caller]
fn check_refused(file: &str, key: &str, value: Json, expected: Expect) {
    let fixture = Fixture::new(file, &[]);
    let refused = fixture.write(key, value).unwrap_err();
    expected.assert_eq(&fixture.show(&refused));
    assert_eq!(fixture.file(), file);
}

#[test]
fn edits_that_break_the_configuration_are_refused() {
    check_refused(
        "",
        "model",
        json!(5),
        expect![[r#"
            Invalid: the configuration would be invalid
            @/config.toml:1: model: expected a string, found the integer 5"#]],
    );
    check_refused(
        "",
        "profile",
        json!("none"),
        expect![[r#"
            Invalid: the configuration would be invalid
            @/config.toml:1: profile: no profile named "none"; there are no profiles"#]],
    );
    check_refused(
        "",
        "model_provider",
        json!("none"),
        expect![[r#"
            Invalid: the configuration would be invalid
            @/config.toml:1: model_provider: no provider named "none"; known providers: anthropic, deepseek, gemini, groq, llamacpp, lmstudio, mistral, ollama, openai, openrouter, scripted, vllm"#]],
    );
    check_refused(
        "",
        "profiles.p.approval_policy",
        json!("x"),
        expect![[r#"
            Invalid: the configuration would be invalid
            @/config.toml:2: profiles.p.approval_policy: unknown value `x`, expected one of untrusted, on-failure, on-request, never"#]],
    );
    check_refused(
        "",
        "tools.view_image",
        json!("yes"),
        expect![[r#"
            Invalid: the configuration would be invalid
            @/config.toml:2: tools.view_image: expected a boolean, found the string "yes""#]],
    );
    check_refused(
        "",
        "model_providers.x.experimental_bearer_token",
        json!(["sk-1"]),
        expect![[r#"
            Invalid: the configuration would be invalid
            @/config.toml:2: model_providers.x.experimental_bearer_token: expected a string, found an array"#]],
    );
    check_refused(
        "model = 'a'\n",
        "model.name",
        json!("b"),
        expect!["PathNotFound: model is a string, which has no keys below it"],
    );
    check_refused(
        "",
        "a..b",
        json!(1),
        expect![[r#"
            Invalid: bad key "a..b"
            a segment between the dots of the key is empty"#]],
    );
    check_refused(
        "model = \n",
        "model",
        json!("b"),
        expect![[r#"
            Invalid: the configuration would be invalid
            @/config.toml:1:9: string values must be quoted, expected literal string"#]],
    );
}

#[test]
fn a_write_may_mend_a_value_that_was_wrong() {
    let fixture = Fixture::new("approval_policy = 'bad'\n", &[]);
    assert!(!fixture.is_well_typed());
    fixture.write("approval_policy", json!("never")).unwrap();
    assert!(fixture.is_well_typed());
    assert_eq!(fixture.file(), "approval_policy = \"never\"\n");
}

#[test]
fn several_edits_are_made_together_or_not_at_all() {
    let fixture = Fixture::new("model = 'a'\n", &[]);
    let batch = WriteRequest::of([ConfigEdit::set("model", "b"), ConfigEdit::set("sandbox_mode", "loose")]);
    assert!(fixture.config().write(&batch).is_err());
    assert_eq!(fixture.file(), "model = 'a'\n");
}

#[test]
fn only_the_users_own_file_is_written() {
    let fixture = Fixture::new("", &[]);
    fs::create_dir(fixture.temp.path().join("sub")).unwrap();
    let at = |path: PathBuf| WriteRequest { file: Some(path), ..one("model", json!("m")) };
    for wrong in ["other.toml", "sub/config.toml", "sub/../../etc/config.toml", "auth.json"] {
        let refused = fixture.config().write(&at(fixture.temp.path().join(wrong))).unwrap_err();
        assert_eq!(refused.fault(), Some(WriteFault::ReadOnlyFile), "{wrong}");
        assert!(wrong == "sub/config.toml" || !fixture.temp.path().join(wrong).exists());
    }
    fixture.config().write(&at(fixture.home.config_file())).unwrap();
    fixture.config().write(&at(fixture.temp.path().join("sub/../config.toml"))).unwrap();
    assert_eq!(fixture.file(), "model = \"m\"\n");
}

#[test]
fn a_home_that_is_not_there_yet_is_made() {
    let temp = TempDir::new().unwrap();
    let home = Home::at(temp.path().join("new"));
    let (env, overrides) = (Env::from_iter::<[(&str, &str); 0]>([]), Overrides::default());
    let config = UserConfig::new(&home, &env, &overrides);
    assert_eq!(config.file().unwrap(), Tree::new());
    config.write(&one("model", json!("m"))).unwrap();
    assert_eq!(fs::read_to_string(home.config_file()).unwrap(), "model = \"m\"\n");
}

/// The case `v1-config` as recorded with 0.77.
#[test]
fn the_default_model_is_set_in_the_selected_profile() {
    let file = "model = \"mock-model\"\nprofile = \"fast\"\n\n\
        [profiles.fast]\nmodel = \"fast-model\"\napproval_policy = \"never\"\n";
    let fixture = Fixture::new(file, &[]);
    fixture.config().set_default_model(Some("other-model"), Some(&ReasoningEffort::High)).unwrap();
    let saved = fixture.config().file().unwrap();
    let text = |path: &[&str]| saved.get(path).map(|node| value_json(&node.value));
    assert_eq!(text(&["model"]), Some(json!("mock-model")));
    assert_eq!(text(&["profiles", "fast", "model"]), Some(json!("other-model")));
    assert_eq!(text(&["profiles", "fast", "model_reasoning_effort"]), Some(json!("high")));

    fixture.config().set_default_model(None, None).unwrap();
    assert_eq!(fixture.file(), file.replace("model = \"fast-model\"\n", ""));
}

#[test]
fn the_default_model_is_set_at_the_root_without_a_profile() {
    let fixture = Fixture::new("# mine\n", &[]);
    fixture.config().set_default_model(Some("m"), None).unwrap();
    let file = fixture.file();
    assert!(file.contains("# mine") && file.contains("model = \"m\""), "{file}");
}

#[test]
fn debug_text_of_errors_and_answers_shows_no_secret() {
    let fixture = Fixture::new("[model_providers.x]\nexperimental_bearer_token = 'sk-1'\n", &["a='sk-2'"]);
    let read = fixture.config().read(None).unwrap();
    let written = fixture.write("a", json!("sk-3"));
    let refused = fixture.write("model_providers.x.http_headers", json!("sk-4"));
    let request = one("a", json!("sk-5"));
    let shown = format!("{read:?} {written:?} {refused:?} {request:?} {}", fixture.show(refused.as_ref().unwrap_err()));
    assert!(!shown.contains("sk-"), "{shown}");
}

#[test]
fn concurrent_writers_lose_nothing() {
    let fixture = Fixture::new("", &[]);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let config = fixture.config();
            scope.spawn(move || {
                for number in 0..10 {
                    config.write(&one(&format!("x.t{thread}_{number}"), json!(number))).unwrap();
                }
            });
        }
    });
    let tree = fixture.config().read(None).unwrap().tree;
    assert_eq!(tree.subtree(&["x"]).unwrap().root().len(), 40);
}

#[test]
fn administrator_settings_override_written_ones() {
    let mut fixture = Fixture::new("", &[]);
    let managed = fixture.temp.path().join("managed.toml");
    fs::write(&managed, "model_reasoning_effort = 'high'\n").unwrap();
    fixture.env = Env::from_iter([("CODEX_MANAGED_CONFIG_PATH", &managed)]);
    let overridden = fixture.write("model_reasoning_effort", json!("low")).unwrap().overridden.unwrap();
    let message = format!("model_reasoning_effort was written, but {} sets it", managed.display());
    assert_eq!((overridden.message, overridden.layer.source), (message, LayerSource::Managed(managed)));
}
