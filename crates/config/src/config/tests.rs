use std::fs;

use expect_test::{Expect, expect};
use tempfile::TempDir;

use super::*;

pub(crate) fn values(texts: &[&str]) -> Overrides {
    Overrides { values: texts.iter().map(|text| (*text).to_owned()).collect(), ..Overrides::default() }
}

pub(crate) fn load(file: impl AsRef<[u8]>, overrides: &Overrides) -> (TempDir, Result<Config, ConfigError>) {
    let temp = TempDir::new().unwrap();
    let home = Home::at(temp.path());
    fs::write(home.config_file(), file).unwrap();
    let env = Env::from_iter::<[(&str, &str); 0]>([]);
    let config = Config::load(&home, &env, overrides);
    (temp, config)
}

/// Loads a file with overrides and prints a part of the configuration, or the error; `@` stands for the home.
#[track_caller]
pub(crate) fn check<T: std::fmt::Debug>(file: &str, overrides: &Overrides, part: fn(&Config) -> T, expected: Expect) {
    let (temp, config) = load(file, overrides);
    let shown = match config {
        Ok(config) => format!("{:?}", part(&config)),
        Err(error) => {
            let cause = std::error::Error::source(&error).map(|cause| format!("\ncaused by: {cause}"));
            let hint = error.hint().map(|hint| format!("\nhint: {hint}"));
            format!("{error}{}{}", cause.unwrap_or_default(), hint.unwrap_or_default())
        }
    };
    expected.assert_eq(&shown.replace(&temp.path().display().to_string(), "@"));
}

#[track_caller]
pub(crate) fn check_error(file: &str, texts: &[&str], expected: Expect) {
    check(file, &values(texts), |_| "no error", expected);
}

/// Every group of the configuration on a separate line.
fn groups(config: &Config) -> String {
    let limit = ("tool_output_token_limit", config.tool_output_token_limit);
    let lines = [
        format!("{:?}", config.model),
        format!("provider {}", config.provider.id),
        format!("{:?} {:?}", config.approval_policy, config.sandbox),
        format!("{limit:?}"),
        format!("{:?}", config.instructions),
        format!("{:?} {:?}", config.reasoning, config.chat.history),
        format!("{:?} {:?} {:?}", config.features, config.projects, config.profile),
    ];
    lines.join("\n")
}

#[test]
fn without_a_file_the_defaults_apply() {
    let temp = TempDir::new().unwrap();
    let env = Env::from_iter::<[(&str, &str); 0]>([]);
    let config = Config::load(&Home::at(temp.path()), &env, &Overrides::default()).unwrap();
    assert_eq!(config.approval_policy(), AskForApproval::OnRequest);
    assert_eq!(config.sandbox_policy(), SandboxPolicy::ReadOnly);
    expect![[r#"
        ModelConfig { name: "gpt-5.1-codex", review: None, local_server: None, catalogue: None, context_window: None, auto_compact_token_limit: None, reasoning_effort: None, reasoning_summary: Auto, verbosity: None, corrections: {}, waits_for_limits: false, turn_requests: 1000 }
        provider openai
        None SandboxConfig { mode: None, workspace_write: WorkspaceWrite { writable_roots: [], network_access: false, exclude_tmpdir_env_var: false, exclude_slash_tmp: false }, most_processes: 4096, most_memory: None, protected_names: [], unprotected_names: [] }
        ("tool_output_token_limit", None)
        InstructionsConfig { user: None, developer: None, base_file: None, project_doc_max_bytes: 32768, project_doc_fallback_filenames: [] }
        ReasoningDisplay { hide: false, raw: false } HistoryConfig { persistence: SaveAll, max_bytes: None }
        {} {} None"#]].assert_eq(&groups(&config));
}

#[test]
fn every_key_is_read() {
    let file = r#"
        model = "m"
        review_model = "r"
        model_provider = "scripted"
        model_context_window = 1000
        model_auto_compact_token_limit = 900
        tool_output_token_limit = 800
        model_reasoning_effort = "high"
        model_reasoning_summary = "detailed"
        model_verbosity = "low"
        max_turn_requests = 7
        approval_policy = "untrusted"
        sandbox_mode = "workspace-write"
        project_doc_max_bytes = 10
        project_doc_fallback_filenames = ["CLAUDE.md"]
        instructions = "be brief"
        developer_instructions = "be kind"
        experimental_instructions_file = "base.md"
        hide_agent_reasoning = true
        show_raw_agent_reasoning = true
        unknown_key = "ignored"
        [sandbox_workspace_write]
        writable_roots = ["/w"]
        network_access = true
        exclude_tmpdir_env_var = true
        exclude_slash_tmp = true
        protected_names = ["x"]
        unprotected_names = [".idea"]
        [history]
        persistence = "none"
        max_bytes = 5
        [features]
        undo = false
        [projects."/a/b.c"]
        trust_level = "trusted"
        [projects."/d"]
        [mcp_servers.docs]
        command = "docs"
    "#;
    let (temp, config) = load(file, &Overrides::default());
    let config = config.unwrap();
    assert!(config.tree.get(&["mcp_servers", "docs", "command"]).is_some());
    assert_eq!(config.sandbox_policy(), SandboxPolicy::WorkspaceWrite(config.sandbox.workspace_write.clone()));
    expect![[r#"
        ModelConfig { name: "m", review: Some("r"), local_server: None, catalogue: None, context_window: Some(1000), auto_compact_token_limit: Some(900), reasoning_effort: Some(High), reasoning_summary: Detailed, verbosity: Some(Low), corrections: {}, waits_for_limits: false, turn_requests: 7 }
        provider scripted
        Some(UnlessTrusted) SandboxConfig { mode: Some(WorkspaceWrite), workspace_write: WorkspaceWrite { writable_roots: ["/w"], network_access: true, exclude_tmpdir_env_var: true, exclude_slash_tmp: true }, most_processes: 4096, most_memory: None, protected_names: ["x"], unprotected_names: [".idea"] }
        ("tool_output_token_limit", Some(800))
        InstructionsConfig { user: Some("be brief"), developer: Some("be kind"), base_file: Some("@/base.md"), project_doc_max_bytes: 10, project_doc_fallback_filenames: ["CLAUDE.md"] }
        ReasoningDisplay { hide: true, raw: true } HistoryConfig { persistence: None, max_bytes: Some(5) }
        {"undo": false} {"/a/b.c": Trusted} None"#]].assert_eq(&groups(&config).replace(&temp.path().display().to_string(), "@"));
}

#[test]
fn providers_must_exist_and_have_an_address() {
    check_error(
        "model_provider = 'mock'\n[model_providers.other]",
        &[],
        expect![[r#"
            @/config.toml:1: model_provider: no provider named "mock"; known providers: anthropic, deepseek, gemini, groq, llamacpp, lmstudio, mistral, ollama, openai, openrouter, other, scripted, vllm
            hint: choose another, or add a table [model_providers.mock] with a base_url"#]],
    );
    check_error(
        "",
        &["model_provider=mock"],
        expect![[r#"
            -c model_provider: no provider named "mock"; known providers: anthropic, deepseek, gemini, groq, llamacpp, lmstudio, mistral, ollama, openai, openrouter, scripted, vllm
            hint: choose another, or add a table [model_providers.mock] with a base_url"#]],
    );
    check_error(
        "model_provider = 'mock'\n[model_providers.mock]\nname = 'Mock'",
        &[],
        expect![[r#"
            @/config.toml:2: model_providers.mock: base_url is missing
            hint: add base_url = "https://…" to the table [model_providers.mock]"#]],
    );
    check_error(
        "model_provider = 'mock'\n[model_providers.mock]\nwire_api = 'scripted'",
        &[],
        expect![[r#""no error""#]],
    );
}

#[test]
fn bad_values_are_reported_with_file_line_and_key() {
    check_error("model = 3", &[], expect!["@/config.toml:1: model: expected a string, found the integer 3"]);
    check_error(
        "\n\n[model_providers.mock]\nrequest_max_retries = \"four\"",
        &[],
        expect![[
            r#"@/config.toml:4: model_providers.mock.request_max_retries: expected an integer, found the string "four""#
        ]],
    );
    check_error(
        "[profiles.p]\nmodel = []",
        &["profile=p"],
        expect!["@/config.toml:2: model: expected a string, found an array"],
    );
    check_error(
        "sandbox_mode = 'open'",
        &[],
        expect![
            "@/config.toml:1: sandbox_mode: unknown value `open`, expected one of read-only, workspace-write, danger-full-access"
        ],
    );
    check_error(
        "[features]\nundo = 'yes'",
        &[],
        expect![[r#"@/config.toml:2: features.undo: expected a boolean, found the string "yes""#]],
    );
    check_error(
        "[projects.'/a']\ntrust_level = 'very'",
        &[],
        expect![[
            r#"@/config.toml:2: projects."/a".trust_level: unknown value `very`, expected one of trusted, untrusted"#
        ]],
    );
    check_error("history = true", &[], expect!["@/config.toml:1: history: expected a table, found the boolean true"]);
    check_error(
        "model_context_window = 0",
        &[],
        expect!["@/config.toml:1: model_context_window: expected an integer of at least 1, found the integer 0"],
    );
    check_error("a = ", &[], expect!["@/config.toml:1:5: string values must be quoted, expected literal string"]);
}

#[test]
fn bad_overrides_are_reported_with_their_key() {
    check_error(
        "",
        &["model=3"],
        expect![[r#"
            -c model: expected a string, found the integer 3
            hint: put the value into quotes to pass it as a string: -c 'key="…"'"#]],
    );
    check_error(
        "",
        &["model"],
        expect![[r#"
            -c model: expected KEY=VALUE, found no `=`
            hint: write the key, `=` and the value, as in -c model=gpt-5"#]],
    );
    check_error(
        "",
        &["=3"],
        expect![[r#"
            -c =…: bad key
            caused by: the key is empty
            hint: separate segments with dots, and quote one that contains a dot: projects."/a.b".trust_level"#]],
    );
    check_error(
        "",
        &["model_providers.m={request_max_retries=-1}"],
        expect![
            "-c model_providers.m: model_providers.m.request_max_retries: expected an integer of at least 0, found the integer -1"
        ],
    );
    check_error(
        "",
        &["approval_policy=always"],
        expect!["-c approval_policy: unknown value `always`, expected one of untrusted, on-failure, on-request, never"],
    );
}

#[test]
fn secrets_are_not_in_debug_output_or_errors() {
    let file = "[model_providers.m]\nexperimental_bearer_token = 'sk-1'\nhttp_headers.Authorization = 'sk-2'\n";
    let (_temp, config) = load(file, &values(&["model_providers.m.query_params.key=sk-3"]));
    assert!(!format!("{:#?}", config.unwrap()).contains("sk-"));
    check_error(
        "",
        &["model_providers.m.experimental_bearer_token=['sk-1']"],
        expect!["-c model_providers.m.experimental_bearer_token: expected a string, found an array"],
    );
    check_error(
        "model_providers.m.http_headers.Authorization = 'sk-2\n",
        &[],
        expect!["@/config.toml:1:53: invalid literal string, expected `'`"],
    );
}

#[test]
fn the_limit_of_processes_is_read() {
    check("[limits]\nprocesses = 200", &values(&[]), |config| config.sandbox.most_processes, expect!["200"]);
    check_error(
        "[limits]\nprocesses = 1",
        &[],
        expect!["@/config.toml:2: limits.processes: expected an integer of at least 16, found the integer 1"],
    );
}

#[test]
fn the_limit_of_memory_is_read() {
    let memory = |value: &str, expected: Expect| {
        check(&format!("[limits]\nmemory = {value}"), &values(&[]), |config| config.sandbox.most_memory, expected);
    };
    memory("'4GiB'", expect!["Some(4294967296)"]);
    memory("'512 MiB'", expect!["Some(536870912)"]);
    memory("'67108864'", expect!["Some(67108864)"]);
    memory("100000000", expect!["Some(100000000)"]);
    for value in ["'4GB'", "'MiB'", "'99999999999TiB'", "1000", "-1", "true"] {
        let (_temp, config) = load(format!("limits.memory = {value}"), &values(&[]));
        let error = config.unwrap_err().to_string();
        let expected = "limits.memory: expected a number of bytes such as \"4GiB\", of at least 64MiB, found the ";
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_model_may_name_its_provider() {
    let (_temp, config) = load("", &Overrides::default());
    let config = config.unwrap();
    for (model, expected) in [
        ("gpt-5.1", ("openai", "gpt-5.1")),
        ("anthropic:claude-opus-4-7", ("anthropic", "claude-opus-4-7")),
        ("ollama:gpt-oss:20b", ("ollama", "gpt-oss:20b")),
        ("gpt-oss:20b", ("openai", "gpt-oss:20b")),
        ("openai:x", ("openai", "x")),
    ] {
        let (provider, name) = config.model_of(model);
        assert_eq!((provider.id.as_str(), name), expected, "{model}");
    }
}

#[test]
fn the_web_is_searched_as_the_newest_key_says() {
    let access =
        |file: &str, texts: &[&str], expected| check(file, &values(texts), |config| config.web_search, expected);
    access("web_search = 'live'", &[], expect!["Some(Live)"]);
    access("web_search = 'live'", &["web_search=\"cached\""], expect!["Some(Cached)"]);
    access("web_search = 'disabled'\n[tools]\nweb_search = true", &[], expect!["None"]);
    access("[tools]\nweb_search = true", &[], expect!["Some(Usual)"]);
    access("profile = 'p'\n[profiles.p]\nweb_search = 'cached'", &[], expect!["Some(Cached)"]);
    check_error(
        "\nweb_search = true",
        &[],
        expect!["@/config.toml:2: web_search: expected a string, found the boolean true"],
    );
    check_error(
        "",
        &["web_search=fast"],
        expect!["-c web_search: unknown value `fast`, expected one of disabled, cached, live"],
    );
}

#[test]
fn a_granular_approval_policy_comes_from_every_layer() {
    let policy = |file: &str, texts: &[&str], expected| {
        let shown = |config: &Config| serde_json::to_string(&config.approval_policy).unwrap();
        check(file, &values(texts), shown, expected);
    };
    let given = "approval_policy={granular={sandbox_approval=true,rules=true,mcp_elicitations=false}}";
    policy(
        "",
        &[given],
        expect![[
            r#""{\"granular\":{\"sandbox_approval\":true,\"rules\":true,\"skill_approval\":false,\"request_permissions\":false,\"mcp_elicitations\":false}}""#
        ]],
    );
    policy(
        &format!("profile = 'p'\n[profiles.p]\n{given}"),
        &[],
        expect![[
            r#""{\"granular\":{\"sandbox_approval\":true,\"rules\":true,\"skill_approval\":false,\"request_permissions\":false,\"mcp_elicitations\":false}}""#
        ]],
    );
    policy(
        given,
        &["approval_policy.granular.rules=false"],
        expect![[
            r#""{\"granular\":{\"sandbox_approval\":true,\"rules\":false,\"skill_approval\":false,\"request_permissions\":false,\"mcp_elicitations\":false}}""#
        ]],
    );
    policy(given, &["approval_policy=\"never\""], expect![[r#""\"never\"""#]]);
    policy(
        "approval_policy = 'never'",
        &[given],
        expect![[
            r#""{\"granular\":{\"sandbox_approval\":true,\"rules\":true,\"skill_approval\":false,\"request_permissions\":false,\"mcp_elicitations\":false}}""#
        ]],
    );
    check_error(
        "",
        &["approval_policy={granular={rules=true}}"],
        expect!["-c approval_policy: approval_policy.granular: missing field `sandbox_approval`"],
    );
}
