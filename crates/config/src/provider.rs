//! Where models are: the built-in providers and those of `[model_providers.<id>]`.

use std::{collections::BTreeMap, path::PathBuf};

use codex_wire::provider_traits::ProviderTraits;

use self::table::{Row, traits_of};
use crate::{Env, KeyCommand, Reader, Secret, ValueError, words::words};

mod table;

const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";

words! {
    /// The protocol a provider speaks.
    pub enum WireApi {
        /// The Responses API.
        "responses" => Responses,
        /// The Chat Completions API.
        "chat" => Chat,
        /// The Messages API of Anthropic.
        "anthropic" => Anthropic,
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
    /// Instructions for a user who has not set that variable.
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
    /// How long a connection may take to come about.
    pub connect_timeout_ms: u64,
    /// How long a stream may be silent, before its first byte and within it.
    pub stream_idle_timeout_ms: u64,
    /// Whether the Responses API is also available over WebSockets.
    pub supports_websockets: bool,
    /// How long the list of its models may take.
    pub models_timeout_ms: u64,
    /// Whether the login in `auth.json` is used.
    pub requires_openai_auth: bool,
    /// The file with the answers of [`WireApi::Scripted`]; without one a script inside the program is played.
    pub script: Option<PathBuf>,
    pub traits: ProviderTraits,
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
            connect_timeout_ms: 20_000,
            stream_idle_timeout_ms: 300_000,
            supports_websockets: false,
            models_timeout_ms: 5_000,
            requires_openai_auth: false,
            script: None,
            traits: ProviderTraits::responses(),
        }
    }

    /// A provider of the table. `base_url` is where it is, if it is elsewhere than the table says.
    fn built_in(row: &Row, base_url: String) -> Self {
        Self {
            name: row.name.to_owned(),
            base_url: Some(base_url),
            env_key: (!row.env_key.is_empty()).then(|| row.env_key.to_owned()),
            wire_api: row.wire,
            requires_openai_auth: row.id == "openai",
            traits: (row.traits)(),
            ..Self::new(row.id)
        }
    }

    /// The offline model.
    fn scripted() -> Self {
        Self { name: "Scripted".to_owned(), wire_api: WireApi::Scripted, ..Self::new("scripted") }
    }

    /// Reads one entry field by field over what is known already.
    fn read(self, entry: &Reader<'_>, openai: &str) -> Result<Self, ValueError> {
        let requires_openai_auth = entry.bool("requires_openai_auth")?.unwrap_or(self.requires_openai_auth);
        let openai = requires_openai_auth.then(|| openai.to_owned());
        let wire_api = entry.word("wire_api")?.unwrap_or(self.wire_api);
        let base_url = entry.str("base_url")?.or(self.base_url).or(openai);
        let is_listed = table::row(&self.id).is_some_and(|row| !row.base_url.is_empty());
        let known =
            if is_listed && wire_api == self.wire_api { self.traits } else { traits_of(wire_api, base_url.as_deref()) };
        Ok(Self {
            name: entry.str("name")?.unwrap_or(self.name),
            base_url,
            env_key: entry.str("env_key")?.or(self.env_key),
            env_key_instructions: entry.str("env_key_instructions")?.or(self.env_key_instructions),
            experimental_bearer_token: entry.secret("experimental_bearer_token")?.or(self.experimental_bearer_token),
            auth: KeyCommand::read(entry)?.or(self.auth),
            wire_api,
            query_params: entry.secret_map("query_params")?,
            http_headers: entry.secret_map("http_headers")?,
            env_http_headers: entry.string_map("env_http_headers")?,
            request_max_retries: entry.integer("request_max_retries", 0..)?.unwrap_or(self.request_max_retries),
            stream_max_retries: entry.integer("stream_max_retries", 0..)?.unwrap_or(self.stream_max_retries),
            connect_timeout_ms: entry.integer("connect_timeout_ms", 1..)?.unwrap_or(self.connect_timeout_ms),
            stream_idle_timeout_ms: entry
                .integer("stream_idle_timeout_ms", 1..)?
                .unwrap_or(self.stream_idle_timeout_ms),
            supports_websockets: entry.bool("supports_websockets")?.unwrap_or(self.supports_websockets),
            models_timeout_ms: entry.integer("models_timeout_ms", 1..)?.unwrap_or(self.models_timeout_ms),
            requires_openai_auth,
            script: entry.path("script")?.or(self.script),
            traits: table::corrected(known, entry)?,
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

/// The servers on this machine that are known without configuration. `CODEX_OSS_PORT` and `CODEX_OSS_BASE_URL` say
/// where they are, if that is elsewhere than usual.
#[must_use]
pub fn local_providers(env: &Env) -> Vec<ProviderConfig> {
    table::ROWS.iter().filter(|row| row.start.is_some()).map(|row| local(row.id, env)).collect()
}

/// The command that starts a server on this machine.
#[must_use]
pub fn start_command(provider: &str) -> Option<&'static str> {
    table::row(provider)?.start
}

fn local(id: &str, env: &Env) -> ProviderConfig {
    let Some(row) = table::row(id) else { return ProviderConfig::new(id) };
    let moved = env.text("CODEX_OSS_PORT").map(|port| format!("http://localhost:{port}/v1"));
    let url = env.text("CODEX_OSS_BASE_URL").or(moved).unwrap_or_else(|| row.base_url.to_owned());
    ProviderConfig::built_in(row, url)
}

/// The address of the default provider. The configuration takes precedence over the environment.
fn openai_base_url(root: &Reader<'_>, env: &Env) -> Result<String, ValueError> {
    let moved = root.str("openai_base_url")?.or_else(|| env.text("OPENAI_BASE_URL"));
    Ok(moved.unwrap_or_else(|| OPENAI_BASE_URL.to_owned()))
}

/// The built-in providers, changed and joined by the entries of `[model_providers]`.
pub(crate) fn read_providers(root: &Reader<'_>, env: &Env) -> Result<BTreeMap<String, ProviderConfig>, ValueError> {
    let openai = openai_base_url(root, env)?;
    let listed = table::ROWS.iter().filter(|row| !row.base_url.is_empty());
    let built_in = listed.map(|row| match row.id {
        "openai" => ProviderConfig::built_in(row, openai.clone()),
        id if row.start.is_some() => local(id, env),
        _ => ProviderConfig::built_in(row, row.base_url.to_owned()),
    });
    let built_in = built_in.chain([ProviderConfig::scripted()]);
    let mut providers: BTreeMap<_, _> = built_in.map(|provider| (provider.id.clone(), provider)).collect();
    let entries = root.section("model_providers")?;
    for id in entries.keys() {
        let known = providers.remove(id).unwrap_or_else(|| ProviderConfig::new(id));
        providers.insert(id.to_owned(), known.read(&entries.section(id)?, &openai)?);
    }
    Ok(providers)
}

#[cfg(test)]
mod tests;
