//! User errors: nothing on standard output, the problem and its place on standard error, exit status 1.

use expect_test::{Expect, expect};

use crate::program::Place;

#[track_caller]
fn check_at(place: &Place, args: &[&str], expected: Expect) {
    let run = place.run(args, "");
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{}", run.stderr);
    expected.assert_eq(&place.without_path(&run.stderr));
}

/// Runs `codex proto` with a `config.toml` and compares its standard error.
#[track_caller]
fn check(config: &str, args: &[&str], expected: Expect) {
    check_at(&Place::new().file("home/config.toml", config), &[&["proto"], args].concat(), expected);
}

#[test]
fn a_file_that_is_not_toml() {
    check(
        "model = 'a'\nmodel_provider = \n",
        &[],
        expect![[r#"
        error: TEMP/home/config.toml:2:18: string values must be quoted, expected literal string
    "#]],
    );
}

#[test]
fn a_value_of_the_wrong_kind() {
    check(
        "\n[model_providers.m]\nstream_max_retries = 'many'\n",
        &[],
        expect![[r#"
        error: TEMP/home/config.toml:3: model_providers.m.stream_max_retries: expected an integer, found the string "many"
    "#]],
    );
}

#[test]
fn an_unknown_word() {
    check(
        "approval_policy = 'sometimes'\n",
        &[],
        expect![[r#"
        error: TEMP/home/config.toml:1: approval_policy: unknown value `sometimes`, expected one of untrusted, on-failure, on-request, never
    "#]],
    );
}

#[test]
fn an_unknown_provider() {
    check(
        "model_provider = 'nowhere'\n",
        &[],
        expect![[r#"
            error: TEMP/home/config.toml:1: model_provider: no provider named "nowhere"; known providers: anthropic, deepseek, gemini, groq, llamacpp, lmstudio, mistral, ollama, openai, openrouter, scripted, vllm
            hint: choose another, or add a table [model_providers.nowhere] with a base_url
        "#]],
    );
    check(
        "",
        &["-c", "model_provider=nowhere"],
        expect![[r#"
            error: -c model_provider: no provider named "nowhere"; known providers: anthropic, deepseek, gemini, groq, llamacpp, lmstudio, mistral, ollama, openai, openrouter, scripted, vllm
            hint: choose another, or add a table [model_providers.nowhere] with a base_url
        "#]],
    );
}

#[test]
fn a_provider_without_an_address() {
    check(
        "model_provider = 'm'\n[model_providers.m]\nname = 'M'\n",
        &[],
        expect![[r#"
        error: TEMP/home/config.toml:2: model_providers.m: base_url is missing
        hint: add base_url = "https://…" to the table [model_providers.m]
    "#]],
    );
}

#[test]
fn an_unknown_profile() {
    check(
        "[profiles.fast]\nmodel = 'o3'\n",
        &["--profile", "slow"],
        expect![[r#"
        error: --profile: no profile named "slow"; known profiles: fast
        hint: choose another, or add a table [profiles.slow] to TEMP/home/config.toml
    "#]],
    );
}

#[test]
fn a_wire_that_is_not_spoken() {
    let config = "model_provider = 'm'\n[model_providers.m]\nbase_url = 'http://127.0.0.1:1/v1'\nwire_api = 'smoke'\n";
    check(
        config,
        &[],
        expect![[r#"
        error: TEMP/home/config.toml:4: model_providers.m.wire_api: unknown value `smoke`, expected one of responses, chat, anthropic, scripted
    "#]],
    );
}

#[test]
fn an_override_without_a_value() {
    check(
        "",
        &["-c", "model"],
        expect![[r#"
        error: -c model: expected KEY=VALUE, found no `=`
        hint: write the key, `=` and the value, as in -c model=gpt-5
    "#]],
    );
}

#[test]
fn a_script_that_is_missing_or_broken() {
    let place = Place::new().file("home/bad.json", "[{\"items\": [{\"smell\": 1}]}]");
    for (name, expected) in [
        (
            "gone.json",
            expect![[r#"
        error: model_providers.scripted.script: could not read TEMP/home/gone.json: No such file or directory (os error 2)
    "#]],
        ),
        (
            "bad.json",
            expect![[r#"
        error: model_providers.scripted.script: TEMP/home/bad.json is not a script: entry 1 of the script: item 1: of no known kind: {"smell":1}
    "#]],
        ),
    ] {
        let script = format!("model_providers.scripted.script={}", place.path("home").join(name).display());
        check_at(&place, &["proto", "-c", "model_provider=scripted", "-c", &script], expected);
    }
}

#[test]
fn a_working_directory_that_does_not_exist() {
    check(
        "model_provider = 'scripted'\n",
        &["-C", "gone"],
        expect![[r#"
        error: the working directory TEMP/project/gone does not exist
    "#]],
    );
}

#[test]
fn a_home_that_does_not_exist() {
    let place = Place::new();
    let gone = place.path("gone").display().to_string();
    check_at(
        &place.variable("CODEX_HOME", &gone),
        &["proto"],
        expect![[r#"
        error: CODEX_HOME points to TEMP/gone, which does not exist
        hint: create it with `mkdir -p TEMP/gone`, or unset CODEX_HOME
    "#]],
    );
}

#[test]
fn an_unknown_command_is_a_usage_error() {
    // A single word may be a prompt, but there is no terminal.
    let run = Place::new().run(&["dance"], "");
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert_eq!(
        run.stderr,
        "error: the chat needs a terminal; `codex exec` works without one\n\
         hint: `dance` is not a command; see `codex --help`\n"
    );
    let run = Place::new().run(&["dance", "tango"], "");
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.starts_with("error: unrecognized subcommand 'dance'\n"), "{}", run.stderr);
}
