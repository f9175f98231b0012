//! The built-in table of providers. All knowledge about providers is here; a table in `[model_providers]` corrects it.

use codex_wire::provider_traits::{CacheForm, ProviderTraits, ReasoningField, SchemaForm, Thoughts};

use super::WireApi;
use crate::{Reader, ValueError};

/// A known provider.
pub(super) struct Row {
    /// Its key in `[model_providers]`.
    pub(super) id: &'static str,
    /// Its name for people.
    pub(super) name: &'static str,
    pub(super) wire: WireApi,
    /// Its address; empty if every user has another.
    pub(super) base_url: &'static str,
    /// The suffix of its host, which identifies a user's own entry for it; empty for servers without a fixed host.
    host: &'static str,
    /// The variable that holds its key.
    pub(super) env_key: &'static str,
    /// The command that starts it, if it is a local server.
    pub(super) start: Option<&'static str>,
    pub(super) traits: fn() -> ProviderTraits,
}

/// The providers.
#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row { id: "openai", name: "OpenAI", wire: WireApi::Responses, base_url: "https://api.openai.com/v1", host: "api.openai.com", env_key: "OPENAI_API_KEY", start: None, traits: ProviderTraits::responses },
    Row { id: "anthropic", name: "Anthropic", wire: WireApi::Anthropic, base_url: "https://api.anthropic.com/v1", host: "api.anthropic.com", env_key: "ANTHROPIC_API_KEY", start: None, traits: anthropic },
    Row { id: "gemini", name: "Gemini", wire: WireApi::Chat, base_url: "https://generativelanguage.googleapis.com/v1beta/openai", host: "generativelanguage.googleapis.com", env_key: "GEMINI_API_KEY", start: None, traits: gemini },
    Row { id: "openrouter", name: "OpenRouter", wire: WireApi::Chat, base_url: "https://openrouter.ai/api/v1", host: "openrouter.ai", env_key: "OPENROUTER_API_KEY", start: None, traits: openrouter },
    Row { id: "mistral", name: "Mistral", wire: WireApi::Chat, base_url: "https://api.mistral.ai/v1", host: "api.mistral.ai", env_key: "MISTRAL_API_KEY", start: None, traits: counting },
    Row { id: "deepseek", name: "DeepSeek", wire: WireApi::Chat, base_url: "https://api.deepseek.com/v1", host: "api.deepseek.com", env_key: "DEEPSEEK_API_KEY", start: None, traits: deepseek },
    Row { id: "groq", name: "Groq", wire: WireApi::Chat, base_url: "https://api.groq.com/openai/v1", host: "api.groq.com", env_key: "GROQ_API_KEY", start: None, traits: counting },
    Row { id: "ollama", name: "Ollama", wire: WireApi::Responses, base_url: "http://localhost:11434/v1", host: "", env_key: "", start: Some("ollama serve"), traits: ProviderTraits::responses },
    Row { id: "lmstudio", name: "LM Studio", wire: WireApi::Responses, base_url: "http://localhost:1234/v1", host: "", env_key: "", start: Some("lms server start"), traits: ProviderTraits::responses },
    Row { id: "llamacpp", name: "llama.cpp", wire: WireApi::Chat, base_url: "http://localhost:8080/v1", host: "", env_key: "", start: Some("llama-server --jinja -m MODEL.gguf"), traits: counting },
    Row { id: "vllm", name: "vLLM", wire: WireApi::Chat, base_url: "http://localhost:8000/v1", host: "", env_key: "", start: Some("vllm serve MODEL"), traits: counting },
    Row { id: "azure", name: "Azure OpenAI", wire: WireApi::Responses, base_url: "", host: ".openai.azure.com", env_key: "AZURE_OPENAI_API_KEY", start: None, traits: azure },
    Row { id: "openai-chat", name: "OpenAI", wire: WireApi::Chat, base_url: "", host: "api.openai.com", env_key: "OPENAI_API_KEY", start: None, traits: openai_chat },
    Row { id: "azure-chat", name: "Azure OpenAI", wire: WireApi::Chat, base_url: "", host: ".openai.azure.com", env_key: "AZURE_OPENAI_API_KEY", start: None, traits: azure_chat },
];

fn anthropic() -> ProviderTraits {
    ProviderTraits { schemas: SchemaForm::Strict, ..ProviderTraits::anthropic() }
}

/// A server of the Chat Completions API that reports token usage in its streams.
fn counting() -> ProviderTraits {
    ProviderTraits { stream_usage: true, ..ProviderTraits::unknown() }
}

fn openai_chat() -> ProviderTraits {
    let (schemas, reasoning, cache) = (SchemaForm::Strict, ReasoningField::Effort, CacheForm::Key);
    ProviderTraits { schemas, reasoning, cache, ..counting() }
}

fn gemini() -> ProviderTraits {
    let (schemas, reasoning, thoughts) = (SchemaForm::Simple, ReasoningField::Effort, Thoughts::Summary);
    ProviderTraits { schemas, reasoning, thoughts, ..counting() }
}

fn openrouter() -> ProviderTraits {
    ProviderTraits { reasoning: ReasoningField::Object, ..counting() }
}

fn deepseek() -> ProviderTraits {
    ProviderTraits { returns_thoughts: true, ..counting() }
}

/// It stores answers, and expects the ids of their items back.
fn azure() -> ProviderTraits {
    let (key_header, api_version) = (Some("api-key".to_owned()), Some("preview".to_owned()));
    ProviderTraits { key_header, api_version, store: true, ..ProviderTraits::responses() }
}

fn azure_chat() -> ProviderTraits {
    let (key_header, api_version) = (Some("api-key".to_owned()), Some("preview".to_owned()));
    ProviderTraits { key_header, api_version, ..openai_chat() }
}

/// The row with an id.
pub(super) fn row(id: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.id == id)
}

/// The traits of a provider that the user defined: those of the row with its host, or the minimum of its API.
pub(super) fn traits_of(wire: WireApi, base_url: Option<&str>) -> ProviderTraits {
    let host = base_url.map(host).unwrap_or_default();
    let is_at = |row: &&Row| {
        let suffix = row.host;
        !suffix.is_empty() && (host == suffix || suffix.starts_with('.') && host.ends_with(suffix))
    };
    match (ROWS.iter().filter(|row| row.wire == wire).find(is_at), wire) {
        (Some(row), _) => (row.traits)(),
        (None, WireApi::Responses | WireApi::Scripted) => ProviderTraits::responses(),
        (None, WireApi::Chat) => ProviderTraits::unknown(),
        (None, WireApi::Anthropic) => ProviderTraits::anthropic(),
    }
}

/// The host of an address.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    authority.split(':').next().unwrap_or_default()
}

/// The traits of a provider, corrected by the user.
pub(super) fn corrected(known: ProviderTraits, entry: &Reader<'_>) -> Result<ProviderTraits, ValueError> {
    Ok(ProviderTraits {
        key_header: entry.str("key_header")?.map_or(known.key_header, |name| (name != "bearer").then_some(name)),
        api_version: entry.str("api_version")?.or(known.api_version),
        custom_tools: entry.bool("custom_tools")?.unwrap_or(known.custom_tools),
        hosted_tools: entry.bool("hosted_tools")?.unwrap_or(known.hosted_tools),
        tool_name_length: entry.integer("tool_name_length", 16..=1024)?.unwrap_or(known.tool_name_length),
        tool_name_characters: entry.str("tool_name_characters")?.unwrap_or(known.tool_name_characters),
        schemas: entry.word("schemas")?.unwrap_or(known.schemas),
        reasoning: entry.word("reasoning")?.unwrap_or(known.reasoning),
        thoughts: entry.word("thoughts")?.unwrap_or(known.thoughts),
        returns_thoughts: entry.bool("returns_thoughts")?.unwrap_or(known.returns_thoughts),
        stream_usage: entry.bool("stream_usage")?.unwrap_or(known.stream_usage),
        cache: entry.word("cache")?.unwrap_or(known.cache),
        store: entry.bool("store")?.unwrap_or(known.store),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_consistent() {
        for row in ROWS {
            assert_eq!(ROWS.iter().filter(|other| other.id == row.id).count(), 1, "{}", row.id);
            assert!(row.base_url.is_empty() || row.host.is_empty() || host(row.base_url) == row.host, "{}", row.id);
            let traits = (row.traits)();
            assert_eq!(traits.cache == CacheForm::Marks, row.wire == WireApi::Anthropic, "{}", row.id);
            assert!(row.wire == WireApi::Responses || !traits.custom_tools && !traits.store, "{}", row.id);
            assert!((16..=1024).contains(&traits.tool_name_length), "{}", row.id);
        }
    }

    #[test]
    fn a_provider_is_known_by_its_host_and_wire() {
        let at = |wire, url| traits_of(wire, Some(url));
        assert_eq!(at(WireApi::Responses, "https://me.openai.azure.com:443/openai/v1"), azure());
        assert_eq!(at(WireApi::Chat, "https://me.openai.azure.com/openai/v1"), azure_chat());
        assert_eq!(at(WireApi::Chat, "https://user@api.openai.com/v1"), openai_chat());
        assert_eq!(at(WireApi::Anthropic, "https://api.anthropic.com/v1"), anthropic());
        for url in ["http://127.0.0.1:8080/v1", "https://openai.azure.com.example.com", "https://evil/api.openai.com"] {
            assert_eq!(at(WireApi::Chat, url), ProviderTraits::unknown(), "{url}");
        }
        assert_eq!(traits_of(WireApi::Anthropic, None), ProviderTraits::anthropic());
    }
}
