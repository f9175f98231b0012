//! Providers of models: the built-in ones and those of `[model_providers.<id>]`.

use std::{collections::BTreeMap, path::PathBuf};

use codex_wire::provider_traits::ProviderTraits;

use self::table::{Row, traits_of};
use crate::{Env, KeyCommand, Reader, Secret, ValueError, words::words};

mod table;

const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";

words! {
    /// The API of a provider.
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

/// The address, the credentials and the limits of one provider.
///
/// Headers and query parameters are secrets, because some services expect their key there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderConfig {
    /// The key in `[model_providers]`.
    pub id: String,
    /// The name shown to people.
    pub name: String,
    /// The base address, to which paths such as `/responses` are added.
    pub base_url: Option<String>,
    /// The variable that holds the key.
    pub env_key: Option<String>,
    /// Instructions for a user who has not set that variable.
    pub env_key_instructions: Option<String>,
    /// A token written into the configuration itself.
    pub experimental_bearer_token: Option<Secret>,
    /// The program that prints the key.
    pub auth: Option<KeyCommand>,
    pub wire_api: WireApi,
    /// Added to the query of every request.
    pub query_params: BTreeMap<String, Secret>,
    /// Added to the headers of every request.
    pub http_headers: BTreeMap<String, Secret>,
    /// Headers whose value is in a variable: header name to variable name.
    pub env_http_headers: BTreeMap<String, String>,
    /// The maximum number of retries of a failed request.
    pub request_max_retries: u64,
    /// The maximum number of retries of a broken stream.
    pub stream_max_retries: u64,
    /// The time limit for establishing a connection.
    pub connect_timeout_ms: u64,
    /// The maximum time between two chunks of a stream, and before the first.
    pub stream_idle_timeout_ms: u64,
    /// Whether the Responses API is also available over WebSockets.
    pub supports_websockets: bool,
    /// The time limit for listing its models.
    pub models_timeout_ms: u64,
    /// Whether the login in `auth.json` is used.
    pub requires_openai_auth: bool,
    /// The file with the answers of [`WireApi::Scripted`]; without one, a built-in script is played.
    pub script: Option<PathBuf>,
    pub traits: ProviderTraits,
}

impl ProviderConfig {
    /// A provider of which only the id is known. `wire_api` is Responses, as in current releases (up to 0.77 it was
    /// Chat).
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

    /// A provider of the table. `base_url` replaces the address in the table.
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

    /// Reads the fields of an entry over the known values.
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

/// The default model of the provider.
#[must_use]
pub fn default_model(provider: &str) -> &'static str {
    match provider {
        "ollama" => "gpt-oss:20b",
        "lmstudio" => "openai/gpt-oss-20b",
        _ => crate::DEFAULT_MODEL,
    }
}

/// The local servers that are known without configuration. `CODEX_OSS_PORT` and `CODEX_OSS_BASE_URL` change their
/// address.
#[must_use]
pub fn local_providers(env: &Env) -> Vec<ProviderConfig> {
    table::ROWS.iter().filter(|row| row.start.is_some()).map(|row| local(row.id, env)).collect()
}

/// The command that starts a local server.
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

/// The built-in providers, modified and extended by the entries of `[model_providers]`.
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
