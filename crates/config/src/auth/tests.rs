use std::fs;

use codex_files::testing::{Endless, soon};
use expect_test::{Expect, expect};
use tempfile::TempDir;

use super::*;

fn show_error(error: &AuthError) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!("\ncaused by: {cause}"));
    let hint = error.hint().map(|hint| format!("\nhint: {hint}"));
    format!("{error}{}{}", cause.unwrap_or_default(), hint.unwrap_or_default())
}

/// Loads a home with this `auth.json`; `@` stands for the home.
#[track_caller]
fn check_file(text: impl AsRef<[u8]>, expected: Expect) {
    let temp = TempDir::new().unwrap();
    let home = Home::at(temp.path());
    fs::write(home.auth_file(), text).unwrap();
    let shown = match Auth::load(&home) {
        Ok(auth) => format!("{auth:#?}"),
        Err(error) => show_error(&error),
    };
    assert!(!shown.contains("sk-"), "a secret is shown: {shown}");
    expected.assert_eq(&shown.replace(&temp.path().display().to_string(), "@"));
}

const BOTH: &str = r#"{"OPENAI_API_KEY":"sk-file","tokens":{"access_token":"sk-login","account_id":"acc"}}"#;
const LOGIN: &str = r#"{"OPENAI_API_KEY":null,"tokens":{"access_token":"sk-login","account_id":"acc"}}"#;

/// The token of a provider with this `auth.json` and these variables.
#[track_caller]
fn check_bearer(provider: &ProviderConfig, auth: &str, variables: &[(&str, &str)], expected: Expect) {
    let auth = Auth::parse(Path::new("auth.json"), auth).unwrap();
    let env = variables.iter().copied().collect();
    let shown = match auth.bearer(provider, &env) {
        Ok(Some(Bearer { token, source })) => format!("{} from {source:?}", token.reveal()),
        Ok(None) => "no token".to_owned(),
        Err(error) => show_error(&error),
    };
    expected.assert_eq(&shown);
}

fn openai() -> ProviderConfig {
    ProviderConfig {
        name: "OpenAI".to_owned(),
        env_key: Some("OPENAI_API_KEY".to_owned()),
        requires_openai_auth: true,
        ..ProviderConfig::new("openai")
    }
}

fn with_env_key() -> ProviderConfig {
    ProviderConfig { env_key: Some("MOCK_KEY".to_owned()), ..ProviderConfig::new("mock") }
}

#[test]
fn a_missing_file_is_an_empty_login() {
    let temp = TempDir::new().unwrap();
    assert_eq!(Auth::load(&Home::at(temp.path())).unwrap(), Auth::default());
}

#[test]
fn a_login_is_read_completely() {
    check_file(
        r#"{
          "auth_mode": "chatgpt",
          "OPENAI_API_KEY": null,
          "tokens": {"id_token": "sk-1", "access_token": "sk-2", "refresh_token": "sk-3", "account_id": "acc"},
          "last_refresh": "2025-09-26T10:00:00Z",
          "agent_identity": {"later": true}
        }"#,
        expect![[r#"
            Auth {
                mode: Some(
                    "chatgpt",
                ),
                api_key: None,
                tokens: Some(
                    Tokens {
                        id_token: Some(
                            ***,
                        ),
                        access_token: ***,
                        refresh_token: Some(
                            ***,
                        ),
                        account_id: Some(
                            "acc",
                        ),
                    },
                ),
                last_refresh: Some(
                    "2025-09-26T10:00:00Z",
                ),
                plan: None,
            }"#]],
    );
    check_file(
        r#"{"OPENAI_API_KEY": " sk-1\n"}"#,
        expect![[r#"
            Auth {
                mode: None,
                api_key: Some(
                    ***,
                ),
                tokens: None,
                last_refresh: None,
                plan: None,
            }"#]],
    );
    check_file(
        r#"{"OPENAI_API_KEY": ""}"#,
        expect![[r#"
            Auth {
                mode: None,
                api_key: None,
                tokens: None,
                last_refresh: None,
                plan: None,
            }"#]],
    );
}

#[test]
fn broken_json_has_line_and_column() {
    check_file(
        "{\n  \"OPENAI_API_KEY\": \"sk-1\n}",
        expect![[r#"
            @/auth.json:2:25: control character (\u0000-\u001F) found while parsing a string
            hint: fix the file, or remove it and set OPENAI_API_KEY"#]],
    );
    check_file(
        "{\n  \"OPENAI_API_KEY\": sk-1\n}",
        expect![[r#"
            @/auth.json:2:21: expected value
            hint: fix the file, or remove it and set OPENAI_API_KEY"#]],
    );
    check_file(
        "",
        expect![[r#"
            @/auth.json:1:1: EOF while parsing a value
            hint: fix the file, or remove it and set OPENAI_API_KEY"#]],
    );
    check_file(
        b"{\"OPENAI_API_KEY\": \"\xff",
        expect![[r#"
            @/auth.json:1:21: invalid UTF-8
            hint: fix the file, or remove it and set OPENAI_API_KEY"#]],
    );
}

#[test]
fn wrong_members_are_named_but_never_shown() {
    check_file(
        "{\n\n\"OPENAI_API_KEY\": [\"sk-1\"]}",
        expect![[r#"
            @/auth.json:3: OPENAI_API_KEY: expected a string, found an array
            hint: fix the file, or remove it and set OPENAI_API_KEY"#]],
    );
    check_file(
        "{\"tokens\": {\n\"access_token\": 5}}",
        expect![[r#"
            @/auth.json:2: tokens.access_token: expected a string, found a number
            hint: fix the file, or remove it and set OPENAI_API_KEY"#]],
    );
    check_file(
        "{\n\"tokens\": {\"id_token\": \"sk-1\"}}",
        expect![[r#"
            @/auth.json:2: tokens.access_token: missing
            hint: fix the file, or remove it and set OPENAI_API_KEY"#]],
    );
    check_file(
        "{\n\"tokens\": \"sk-1\"}",
        expect![[r#"
            @/auth.json:2: tokens: expected an object, found a string
            hint: fix the file, or remove it and set OPENAI_API_KEY"#]],
    );
    check_file(
        "\n\"sk-1\"",
        expect![[r#"
            @/auth.json:2: the file: expected an object, found a string
            hint: fix the file, or remove it and set OPENAI_API_KEY"#]],
    );
}

#[test]
fn a_file_that_cannot_be_read_is_an_error() {
    let temp = TempDir::new().unwrap();
    let home = Home::at(temp.path());
    fs::create_dir(home.auth_file()).unwrap();
    let shown = show_error(&Auth::load(&home).unwrap_err());
    expect![[r#"
        could not read @/auth.json
        caused by: Is a directory (os error 21)"#]]
    .assert_eq(&shown.replace(&temp.path().display().to_string(), "@"));
}

#[test]
fn openai_takes_variables_before_the_file() {
    let all = [("CODEX_API_KEY", "codex"), ("OPENAI_API_KEY", "openai")];
    check_bearer(&openai(), BOTH, &all, expect![[r#"codex from Variable("CODEX_API_KEY")"#]]);
    check_bearer(&openai(), BOTH, &all[1..], expect![[r#"openai from Variable("OPENAI_API_KEY")"#]]);
    check_bearer(&openai(), BOTH, &[("OPENAI_API_KEY", " ")], expect!["sk-file from ApiKey"]);
    check_bearer(&openai(), LOGIN, &[], expect![[r#"sk-login from Login { account_id: Some("acc") }"#]]);
    check_bearer(
        &openai(),
        "{}",
        &[],
        expect![[r#"
            OpenAI needs a login or an API key
            hint: set OPENAI_API_KEY to your key"#]],
    );
}

#[test]
fn a_later_login_takes_precedence_over_an_older_key() {
    check_bearer(
        &openai(),
        &BOTH.replacen('{', r#"{"auth_mode":"chatgpt","#, 1),
        &[],
        expect![[r#"sk-login from Login { account_id: Some("acc") }"#]],
    );
    check_bearer(
        &openai(),
        r#"{"auth_mode":"chatgpt","OPENAI_API_KEY":"sk-file"}"#,
        &[],
        expect!["sk-file from ApiKey"],
    );
}

#[test]
fn other_providers_never_get_the_openai_login() {
    let openai_keys = [("CODEX_API_KEY", "codex"), ("OPENAI_API_KEY", "openai")];
    check_bearer(&ProviderConfig::new("local"), BOTH, &openai_keys, expect!["no token"]);
    check_bearer(
        &with_env_key(),
        BOTH,
        &openai_keys,
        expect![[r#"
            mock needs a key in the variable MOCK_KEY, which is not set
            hint: set MOCK_KEY to your key"#]],
    );
}

#[test]
fn a_providers_variable_takes_precedence_over_its_token() {
    let with_both = ProviderConfig { experimental_bearer_token: Some(Secret::new("config")), ..with_env_key() };
    check_bearer(&with_both, "{}", &[("MOCK_KEY", "env")], expect![[r#"env from Variable("MOCK_KEY")"#]]);
    check_bearer(&with_both, "{}", &[], expect!["config from Config"]);
}

#[test]
fn a_missing_variable_is_explained_by_the_configuration() {
    let explained = ProviderConfig { env_key_instructions: Some("ask the admin".to_owned()), ..with_env_key() };
    check_bearer(
        &explained,
        "{}",
        &[],
        expect![[r#"
            mock needs a key in the variable MOCK_KEY, which is not set
            hint: ask the admin"#]],
    );
}

#[test]
fn a_login_that_never_ends_is_an_error() {
    for kind in Endless::ALL {
        let temp = TempDir::new().unwrap();
        let home = Home::at(temp.path());
        kind.make(&home.auth_file()).unwrap();
        let error = soon(move || Auth::load(&home)).unwrap().unwrap_err();
        let shown = show_error(&error).replace(&temp.path().display().to_string(), "@");
        assert_eq!(shown, format!("could not read @/auth.json\ncaused by: {}", kind.complaint(Some(MOST_BYTES))));
    }
}
