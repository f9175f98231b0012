use std::path::Path;

use expect_test::{Expect, expect};

use super::*;
use crate::Tree;

/// Reads the providers of a file and prints one of them.
#[track_caller]
fn check(text: &str, id: &str, variables: &[(&str, &str)], expected: Expect) {
    let tree = Tree::parse(Path::new("/h/config.toml"), text).unwrap();
    let env = variables.iter().copied().collect();
    match read_providers(&Reader::new(&tree, None), &env) {
        Ok(providers) => expected.assert_debug_eq(&providers[id]),
        Err(error) => expected.assert_eq(&error.to_string()),
    }
}

#[test]
fn openai_is_built_in() {
    check(
        "",
        "openai",
        &[],
        expect![[r#"
            ProviderConfig {
                id: "openai",
                name: "OpenAI",
                base_url: Some(
                    "https://api.openai.com/v1",
                ),
                env_key: Some(
                    "OPENAI_API_KEY",
                ),
                env_key_instructions: None,
                experimental_bearer_token: None,
                auth: None,
                wire_api: Responses,
                query_params: {},
                http_headers: {},
                env_http_headers: {},
                request_max_retries: 4,
                stream_max_retries: 5,
                connect_timeout_ms: 20000,
                stream_idle_timeout_ms: 300000,
                supports_websockets: false,
                models_timeout_ms: 5000,
                requires_openai_auth: true,
                script: None,
                traits: ProviderTraits {
                    key_header: None,
                    api_version: None,
                    custom_tools: true,
                    hosted_tools: true,
                    tool_name_length: 64,
                    tool_name_characters: "_-",
                    schemas: Strict,
                    reasoning: Object,
                    thoughts: Summary,
                    returns_thoughts: false,
                    stream_usage: true,
                    cache: Key,
                    store: false,
                },
            }
        "#]],
    );
}

#[test]
fn scripted_is_built_in_and_takes_a_script() {
    check(
        "model_providers.scripted.script = 'talk.json'",
        "scripted",
        &[],
        expect![[r#"
            ProviderConfig {
                id: "scripted",
                name: "Scripted",
                base_url: None,
                env_key: None,
                env_key_instructions: None,
                experimental_bearer_token: None,
                auth: None,
                wire_api: Scripted,
                query_params: {},
                http_headers: {},
                env_http_headers: {},
                request_max_retries: 4,
                stream_max_retries: 5,
                connect_timeout_ms: 20000,
                stream_idle_timeout_ms: 300000,
                supports_websockets: false,
                models_timeout_ms: 5000,
                requires_openai_auth: false,
                script: Some(
                    "/h/talk.json",
                ),
                traits: ProviderTraits {
                    key_header: None,
                    api_version: None,
                    custom_tools: true,
                    hosted_tools: true,
                    tool_name_length: 64,
                    tool_name_characters: "_-",
                    schemas: Strict,
                    reasoning: Object,
                    thoughts: Summary,
                    returns_thoughts: false,
                    stream_usage: true,
                    cache: Key,
                    store: false,
                },
            }
        "#]],
    );
}

#[test]
fn a_user_entry_has_every_field() {
    let text = r#"
        [model_providers.mock]
        name = "Mock"
        base_url = "http://127.0.0.1:1/v1"
        env_key = "MOCK_KEY"
        env_key_instructions = "ask the admin"
        experimental_bearer_token = "sk-token"
        wire_api = "chat"
        query_params = { api-version = "2025" }
        http_headers = { X-Key = "sk-header" }
        env_http_headers = { X-Org = "MOCK_ORG" }
        request_max_retries = 0
        stream_max_retries = 1
        stream_idle_timeout_ms = 2
        requires_openai_auth = false
        unknown = "ignored"
    "#;
    check(
        text,
        "mock",
        &[],
        expect![[r#"
            ProviderConfig {
                id: "mock",
                name: "Mock",
                base_url: Some(
                    "http://127.0.0.1:1/v1",
                ),
                env_key: Some(
                    "MOCK_KEY",
                ),
                env_key_instructions: Some(
                    "ask the admin",
                ),
                experimental_bearer_token: Some(
                    ***,
                ),
                auth: None,
                wire_api: Chat,
                query_params: {
                    "api-version": ***,
                },
                http_headers: {
                    "X-Key": ***,
                },
                env_http_headers: {
                    "X-Org": "MOCK_ORG",
                },
                request_max_retries: 0,
                stream_max_retries: 1,
                connect_timeout_ms: 20000,
                stream_idle_timeout_ms: 2,
                supports_websockets: false,
                models_timeout_ms: 5000,
                requires_openai_auth: false,
                script: None,
                traits: ProviderTraits {
                    key_header: None,
                    api_version: None,
                    custom_tools: false,
                    hosted_tools: false,
                    tool_name_length: 64,
                    tool_name_characters: "_-",
                    schemas: Full,
                    reasoning: None,
                    thoughts: Raw,
                    returns_thoughts: false,
                    stream_usage: false,
                    cache: None,
                    store: false,
                },
            }
        "#]],
    );
}

#[test]
fn a_user_entry_changes_a_built_in_field_by_field() {
    check(
        "model_providers.openai.stream_max_retries = 9",
        "openai",
        &[],
        expect![[r#"
            ProviderConfig {
                id: "openai",
                name: "OpenAI",
                base_url: Some(
                    "https://api.openai.com/v1",
                ),
                env_key: Some(
                    "OPENAI_API_KEY",
                ),
                env_key_instructions: None,
                experimental_bearer_token: None,
                auth: None,
                wire_api: Responses,
                query_params: {},
                http_headers: {},
                env_http_headers: {},
                request_max_retries: 4,
                stream_max_retries: 9,
                connect_timeout_ms: 20000,
                stream_idle_timeout_ms: 300000,
                supports_websockets: false,
                models_timeout_ms: 5000,
                requires_openai_auth: true,
                script: None,
                traits: ProviderTraits {
                    key_header: None,
                    api_version: None,
                    custom_tools: true,
                    hosted_tools: true,
                    tool_name_length: 64,
                    tool_name_characters: "_-",
                    schemas: Strict,
                    reasoning: Object,
                    thoughts: Summary,
                    returns_thoughts: false,
                    stream_usage: true,
                    cache: Key,
                    store: false,
                },
            }
        "#]],
    );
}

#[test]
fn the_base_url_variable_moves_openai_unless_the_file_does() {
    let moved = |text: &str| {
        let tree = Tree::parse(Path::new("c.toml"), text).unwrap();
        let env = [("OPENAI_BASE_URL", "http://env/v1")].into_iter().collect();
        let providers = read_providers(&Reader::new(&tree, None), &env).unwrap();
        providers.values().map(|provider| format!("{} {:?}", provider.id, provider.base_url)).collect::<Vec<_>>()
    };
    expect![[r#"
        [
            "anthropic Some(\"https://api.anthropic.com/v1\")",
            "deepseek Some(\"https://api.deepseek.com/v1\")",
            "gemini Some(\"https://generativelanguage.googleapis.com/v1beta/openai\")",
            "groq Some(\"https://api.groq.com/openai/v1\")",
            "llamacpp Some(\"http://localhost:8080/v1\")",
            "lmstudio Some(\"http://localhost:1234/v1\")",
            "mistral Some(\"https://api.mistral.ai/v1\")",
            "ollama Some(\"http://localhost:11434/v1\")",
            "openai Some(\"http://env/v1\")",
            "openrouter Some(\"https://openrouter.ai/api/v1\")",
            "own None",
            "proxy Some(\"http://env/v1\")",
            "scripted None",
            "vllm Some(\"http://localhost:8000/v1\")",
        ]
    "#]]
    .assert_debug_eq(&moved("[model_providers.proxy]\nrequires_openai_auth = true\n[model_providers.own]"));
    expect![[r#"
        [
            "anthropic Some(\"https://api.anthropic.com/v1\")",
            "deepseek Some(\"https://api.deepseek.com/v1\")",
            "gemini Some(\"https://generativelanguage.googleapis.com/v1beta/openai\")",
            "groq Some(\"https://api.groq.com/openai/v1\")",
            "llamacpp Some(\"http://localhost:8080/v1\")",
            "lmstudio Some(\"http://localhost:1234/v1\")",
            "mistral Some(\"https://api.mistral.ai/v1\")",
            "ollama Some(\"http://localhost:11434/v1\")",
            "openai Some(\"http://file/v1\")",
            "openrouter Some(\"https://openrouter.ai/api/v1\")",
            "scripted None",
            "vllm Some(\"http://localhost:8000/v1\")",
        ]
    "#]]
    .assert_debug_eq(&moved("model_providers.openai.base_url = 'http://file/v1'"));
    expect![[r#"
        [
            "anthropic Some(\"https://api.anthropic.com/v1\")",
            "deepseek Some(\"https://api.deepseek.com/v1\")",
            "gemini Some(\"https://generativelanguage.googleapis.com/v1beta/openai\")",
            "groq Some(\"https://api.groq.com/openai/v1\")",
            "llamacpp Some(\"http://localhost:8080/v1\")",
            "lmstudio Some(\"http://localhost:1234/v1\")",
            "mistral Some(\"https://api.mistral.ai/v1\")",
            "ollama Some(\"http://localhost:11434/v1\")",
            "openai Some(\"http://key/v1\")",
            "openrouter Some(\"https://openrouter.ai/api/v1\")",
            "scripted None",
            "vllm Some(\"http://localhost:8000/v1\")",
        ]
    "#]]
    .assert_debug_eq(&moved("openai_base_url = 'http://key/v1'"));
}

#[test]
fn servers_on_this_machine_are_built_in_and_variables_move_them() {
    let found = |text: &str, id: &str, variables: &[(&str, &str)]| {
        let tree = Tree::parse(Path::new("c.toml"), text).unwrap();
        let providers = read_providers(&Reader::new(&tree, None), &variables.iter().copied().collect()).unwrap();
        let ProviderConfig { name, base_url, wire_api, env_key, requires_openai_auth, .. } = providers[id].clone();
        assert_eq!((wire_api, env_key, requires_openai_auth), (WireApi::Responses, None, false));
        (name, base_url.unwrap())
    };
    let pair = |name: &str, url: &str| (name.to_owned(), url.to_owned());
    assert_eq!(found("", "ollama", &[]), pair("Ollama", "http://localhost:11434/v1"));
    assert_eq!(found("", "lmstudio", &[]), pair("LM Studio", "http://localhost:1234/v1"));
    let port = ("CODEX_OSS_PORT", "81");
    assert_eq!(found("", "ollama", &[port]), pair("Ollama", "http://localhost:81/v1"));
    let url = ("CODEX_OSS_BASE_URL", "http://far/v1");
    assert_eq!(found("", "lmstudio", &[port, url]), pair("LM Studio", "http://far/v1"));
    let own = "model_providers.ollama.base_url = 'http://own/v1'";
    assert_eq!(found(own, "ollama", &[url]), pair("Ollama", "http://own/v1"));
}

#[test]
fn an_invalid_field_is_an_error_with_its_location() {
    check(
        "[model_providers.m]\nrequest_max_retries = 'four'",
        "m",
        &[],
        expect![[
            r#"/h/config.toml:2: model_providers.m.request_max_retries: expected an integer, found the string "four""#
        ]],
    );
    check(
        "[model_providers.m]\nstream_idle_timeout_ms = 0",
        "m",
        &[],
        expect![
            "/h/config.toml:2: model_providers.m.stream_idle_timeout_ms: expected an integer of at least 1, found the integer 0"
        ],
    );
    check(
        "[model_providers.'a b']\nwire_api = 'soap'",
        "m",
        &[],
        expect![[
            r#"/h/config.toml:2: model_providers."a b".wire_api: unknown value `soap`, expected one of responses, chat, anthropic, scripted"#
        ]],
    );
    check(
        "[model_providers]\nm = 'x'",
        "m",
        &[],
        expect![[r#"/h/config.toml:2: model_providers.m: expected a table, found the string "x""#]],
    );
    check(
        "[model_providers.m.http_headers]\nAuthorization = 12345",
        "m",
        &[],
        expect!["/h/config.toml:2: model_providers.m.http_headers.Authorization: expected a string, found an integer"],
    );
}
