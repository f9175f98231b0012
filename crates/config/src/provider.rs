//! Where models are: the built-in providers and those of `[model_providers.<id>]`.

use std::{collections::BTreeMap, path::PathBuf};

use crate::{Env, KeyCommand, Reader, Secret, ValueError, words::words};

const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";

words! {
    /// The protocol a provider speaks.
    pub enum WireApi {
        /// The Responses API.
        "responses" => Responses,
        /// The Chat Completions API.
        "chat" => Chat,
        /// No network: answers come from a script.
        "scripted" => Scripted,
    }
}

/// How to reach one provider and how patient to be with it.
///
/// Headers and query parameters are kept as secrets, because that is where some services take their key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderConfig {
    /// The key in `[model_providers]`.
    pub id: String,
    /// The name shown to people.
    pub name: String,
    /// The address that paths such as `/responses` are added to.
    pub base_url: Option<String>,
    /// The variable that holds the key.
    pub env_key: Option<String>,
    /// What to tell a user who has not set that variable.
    pub env_key_instructions: Option<String>,
    /// A token written into the configuration itself.
    pub experimental_bearer_token: Option<Secret>,
    /// The program that says the key.
    pub auth: Option<KeyCommand>,
    /// The protocol.
    pub wire_api: WireApi,
    /// Added to the query of every request.
    pub query_params: BTreeMap<String, Secret>,
    /// Added to the headers of every request.
    pub http_headers: BTreeMap<String, Secret>,
    /// Headers whose value is in a variable: header name to variable name.
    pub env_http_headers: BTreeMap<String, String>,
    /// How often a failed request is sent again.
    pub request_max_retries: u64,
    /// How often a broken stream is asked for again.
    pub stream_max_retries: u64,
    /// How long a stream may be silent.
    pub stream_idle_timeout_ms: u64,
    /// Whether the login in `auth.json` is used.
    pub requires_openai_auth: bool,
    /// The file with the answers of [`WireApi::Scripted`]; without one a script inside the program is played.
    pub script: Option<PathBuf>,
}

impl ProviderConfig {
    /// A provider about which nothing is known but its id. `wire_api` is Responses, as in current releases
    /// (up to 0.77 it was Chat).
    #[must_use]
    pub fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            name: id.to_owned(),
            base_url: None,
            env_key: None,
            env_key_instructions: None,
            experimental_bearer_token: None,
            auth: None,
            wire_api: WireApi::Responses,
            query_params: BTreeMap::new(),
            http_headers: BTreeMap::new(),
            env_http_headers: BTreeMap::new(),
            request_max_retries: 4,
            stream_max_retries: 5,
            stream_idle_timeout_ms: 300_000,
            requires_openai_auth: false,
            script: None,
        }
    }

    /// The default provider; `openai_base_url` and `OPENAI_BASE_URL` move it.
    fn openai(base_url: String) -> Self {
        Self {
            name: "OpenAI".to_owned(),
            base_url: Some(base_url),
            env_key: Some("OPENAI_API_KEY".to_owned()),
            requires_openai_auth: true,
            ..Self::new("openai")
        }
    }

    /// A server on this machine. `CODEX_OSS_PORT` and `CODEX_OSS_BASE_URL` say where it is, if it is elsewhere than usual.
    fn local(id: &str, name: &str, port: u16, env: &Env) -> Self {
        let port = env.text("CODEX_OSS_PORT").unwrap_or_else(|| port.to_string());
        let url = env.text("CODEX_OSS_BASE_URL").unwrap_or_else(|| format!("http://localhost:{port}/v1"));
        Self { name: name.to_owned(), base_url: Some(url), ..Self::new(id) }
    }

    /// The offline model.
    fn scripted() -> Self {
        Self { name: "Scripted".to_owned(), wire_api: WireApi::Scripted, ..Self::new("scripted") }
    }

    /// Reads one entry field by field over what is known already.
    fn read(self, entry: &Reader<'_>, openai: &str) -> Result<Self, ValueError> {
        let requires_openai_auth = entry.bool("requires_openai_auth")?.unwrap_or(self.requires_openai_auth);
        let openai = requires_openai_auth.then(|| openai.to_owned());
        Ok(Self {
            name: entry.str("name")?.unwrap_or(self.name),
            base_url: entry.str("base_url")?.or(self.base_url).or(openai),
            env_key: entry.str("env_key")?.or(self.env_key),
            env_key_instructions: entry.str("env_key_instructions")?.or(self.env_key_instructions),
            experimental_bearer_token: entry.secret("experimental_bearer_token")?.or(self.experimental_bearer_token),
            auth: KeyCommand::read(entry)?.or(self.auth),
            wire_api: entry.word("wire_api")?.unwrap_or(self.wire_api),
            query_params: entry.secret_map("query_params")?,
            http_headers: entry.secret_map("http_headers")?,
            env_http_headers: entry.string_map("env_http_headers")?,
            request_max_retries: entry.integer("request_max_retries", 0..)?.unwrap_or(self.request_max_retries),
            stream_max_retries: entry.integer("stream_max_retries", 0..)?.unwrap_or(self.stream_max_retries),
            stream_idle_timeout_ms: entry
                .integer("stream_idle_timeout_ms", 1..)?
                .unwrap_or(self.stream_idle_timeout_ms),
            requires_openai_auth,
            script: entry.path("script")?.or(self.script),
            id: self.id,
        })
    }
}

/// The model to ask where none is set: the usual one of the provider.
#[must_use]
pub fn default_model(provider: &str) -> &'static str {
    match provider {
        "ollama" => "gpt-oss:20b",
        "lmstudio" => "openai/gpt-oss-20b",
        _ => crate::DEFAULT_MODEL,
    }
}

/// The servers on this machine that are known without configuration.
#[must_use]
pub fn local_providers(env: &Env) -> [ProviderConfig; 2] {
    [ProviderConfig::local("ollama", "Ollama", 11434, env), ProviderConfig::local("lmstudio", "LM Studio", 1234, env)]
}

/// Where the default provider is. What the user has written goes before what the shell happens to hold.
fn openai_base_url(root: &Reader<'_>, env: &Env) -> Result<String, ValueError> {
    let moved = root.str("openai_base_url")?.or_else(|| env.text("OPENAI_BASE_URL"));
    Ok(moved.unwrap_or_else(|| OPENAI_BASE_URL.to_owned()))
}

/// The built-in providers, changed and joined by the entries of `[model_providers]`.
pub(crate) fn read_providers(root: &Reader<'_>, env: &Env) -> Result<BTreeMap<String, ProviderConfig>, ValueError> {
    let openai = openai_base_url(root, env)?;
    let built_in = [ProviderConfig::openai(openai.clone()), ProviderConfig::scripted()];
    let built_in = built_in.into_iter().chain(local_providers(env));
    let mut providers: BTreeMap<_, _> = built_in.map(|provider| (provider.id.clone(), provider)).collect();
    let entries = root.section("model_providers")?;
    for id in entries.keys() {
        let known = providers.remove(id).unwrap_or_else(|| ProviderConfig::new(id));
        providers.insert(id.to_owned(), known.read(&entries.section(id)?, &openai)?);
    }
    Ok(providers)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use expect_test::{Expect, expect};

    use super::*;
    use crate::Tree;

    /// Reads the providers of a file and shows one of them.
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
                    stream_idle_timeout_ms: 300000,
                    requires_openai_auth: true,
                    script: None,
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
                    stream_idle_timeout_ms: 300000,
                    requires_openai_auth: false,
                    script: Some(
                        "/h/talk.json",
                    ),
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
                    stream_idle_timeout_ms: 2,
                    requires_openai_auth: false,
                    script: None,
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
                    stream_idle_timeout_ms: 300000,
                    requires_openai_auth: true,
                    script: None,
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
                "lmstudio Some(\"http://localhost:1234/v1\")",
                "ollama Some(\"http://localhost:11434/v1\")",
                "openai Some(\"http://env/v1\")",
                "own None",
                "proxy Some(\"http://env/v1\")",
                "scripted None",
            ]
        "#]]
        .assert_debug_eq(&moved("[model_providers.proxy]\nrequires_openai_auth = true\n[model_providers.own]"));
        expect![[r#"
            [
                "lmstudio Some(\"http://localhost:1234/v1\")",
                "ollama Some(\"http://localhost:11434/v1\")",
                "openai Some(\"http://file/v1\")",
                "scripted None",
            ]
        "#]]
        .assert_debug_eq(&moved("model_providers.openai.base_url = 'http://file/v1'"));
        expect![[r#"
            [
                "lmstudio Some(\"http://localhost:1234/v1\")",
                "ollama Some(\"http://localhost:11434/v1\")",
                "openai Some(\"http://key/v1\")",
                "scripted None",
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
    fn bad_fields_say_where_they_are() {
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
                r#"/h/config.toml:2: model_providers."a b".wire_api: unknown value `soap`, expected one of responses, chat, scripted"#
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
            expect![
                "/h/config.toml:2: model_providers.m.http_headers.Authorization: expected a string, found an integer"
            ],
        );
    }
}
