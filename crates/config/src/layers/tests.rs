use std::fs;

use codex_files::testing::{Endless, soon};
use expect_test::expect;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::{
    Config, Env,
    config::tests::{check, check_error, load, values},
};

/// The model and where it was set.
fn model(config: &Config) -> (String, String) {
    let origin = config.tree.get(&["model"]).map_or_else(String::new, |node| node.origin.to_string());
    (config.model.name.clone(), origin)
}

#[test]
fn profiles_override_the_file_and_overrides_both() {
    let file = "model = 'file'\n[profiles.p]\nmodel = 'profile'\n";
    let profile = |name: &str| Overrides { profile: Some(name.to_owned()), ..Overrides::default() };
    check(file, &Overrides::default(), model, expect![[r#"("file", "@/config.toml:1")"#]]);
    check(file, &profile("p"), model, expect![[r#"("profile", "@/config.toml:3")"#]]);
    check(file, &values(&["profile=p"]), model, expect![[r#"("profile", "@/config.toml:3")"#]]);
    check(
        &format!("profile = 'p'\n{file}"),
        &Overrides::default(),
        model,
        expect![[r#"("profile", "@/config.toml:4")"#]],
    );
    check(
        file,
        &Overrides { values: vec!["model=arg".to_owned()], ..profile("p") },
        model,
        expect![[r#"("arg", "-c model")"#]],
    );
}

#[test]
fn later_overrides_win_and_requests_win_over_them() {
    check("", &values(&["model=a", "model=b"]), model, expect![[r#"("b", "-c model")"#]]);
    let request = json!({"model": "c", "features.undo": true}).as_object().cloned().unwrap();
    check("", &Overrides { request, ..values(&["model=a"]) }, model, expect![[r#"("c", "config in the request")"#]]);
}

#[test]
fn the_flag_selects_the_profile_before_any_other_setting() {
    let file = "profile = 'a'\n[profiles.a]\nmodel = 'a'\n[profiles.b]\nmodel = 'b'\n[profiles.c]\nmodel = 'c'\n";
    check(file, &values(&["profile=b"]), model, expect![[r#"("b", "@/config.toml:5")"#]]);
    check(
        file,
        &Overrides { profile: Some("c".to_owned()), ..values(&["profile=b"]) },
        model,
        expect![[r#"("c", "@/config.toml:7")"#]],
    );
}

#[test]
fn overrides_may_define_a_profile() {
    check("", &values(&["profile=p", "profiles.p.model=m"]), model, expect![[r#"("m", "-c profiles.p.model")"#]]);
}

#[test]
fn a_profile_cannot_select_another() {
    let file = "profile = 'a'\n[profiles.a]\nprofile = 'b'\n[profiles.b]\n";
    check(file, &Overrides::default(), |config| config.profile.clone(), expect![[r#"Some("a")"#]]);
}

#[test]
fn unknown_profiles_are_named_with_the_known() {
    check_error(
        "\nprofile = 'fast'\n[profiles.slow]\n[profiles.cheap]\n",
        &[],
        expect![[r#"
            @/config.toml:2: profile: no profile named "fast"; known profiles: cheap, slow
            hint: choose another, or add a table [profiles.fast] to @/config.toml"#]],
    );
    check_error(
        "",
        &["profile=fast"],
        expect![[r#"
            -c profile: no profile named "fast"; there are no profiles
            hint: choose another, or add a table [profiles.fast] to @/config.toml"#]],
    );
    let flag = Overrides { profile: Some("fast".to_owned()), ..Overrides::default() };
    check(
        "[profiles.slow]",
        &flag,
        |_| (),
        expect![[r#"
            --profile: no profile named "fast"; known profiles: slow
            hint: choose another, or add a table [profiles.fast] to @/config.toml"#]],
    );
    check_error(
        "profile = 'p'\nprofiles.p = 3",
        &[],
        expect!["@/config.toml:2: profiles.p: expected a table, found the integer 3"],
    );
}

#[test]
fn a_file_that_is_not_text_is_an_error_with_a_place() {
    let (temp, config) = load(b"model = 'a'\nb = '\xff'", &Overrides::default());
    let shown = config.unwrap_err().to_string().replace(&temp.path().display().to_string(), "@");
    expect!["@/config.toml:2:6: invalid UTF-8"].assert_eq(&shown);
}

#[test]
fn a_file_that_cannot_be_read_is_an_error() {
    let temp = TempDir::new().unwrap();
    let home = Home::at(temp.path());
    fs::create_dir(home.config_file()).unwrap();
    let error = Config::load(&home, &Env::process(), &Overrides::default()).unwrap_err();
    assert_eq!(error.to_string(), format!("could not read {}/config.toml", temp.path().display()));
}

#[test]
fn debug_output_of_overrides_hides_values() {
    let shown = format!("{:?}", values(&["model_providers.m.experimental_bearer_token=sk-1"]));
    expect!["Overrides { profile: None, values: 1, request: 0 }"].assert_eq(&shown);
}

#[test]
fn a_configuration_that_never_ends_is_an_error() {
    for kind in Endless::ALL {
        let temp = TempDir::new().unwrap();
        let home = Home::at(temp.path());
        kind.make(&home.config_file()).unwrap();
        let error = soon(move || read_text(&home.config_file())).unwrap().unwrap_err();
        assert!(
            matches!(&error, ConfigError::Read { path, source }
            if path.ends_with("config.toml") && source.to_string() == kind.complaint(Some(MOST_BYTES))),
            "{error:?}"
        );
    }
}
