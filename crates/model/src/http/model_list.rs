//! The models that a provider lists: `GET {base_url}/models`.

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use serde_json::Value;

use super::body::ResponseBody;
use super::request_sender::{RequestSender, authorize, refused, request_url, without_url};
use crate::{ModelError, Provider};

/// The largest list that is read; the longest of real ones has about a megabyte.
const MOST_BYTES: usize = 8 * 1024 * 1024;

/// The number of models that are taken from a list.
const MOST_MODELS: usize = 2000;

/// The longest name of a model.
const LONGEST_NAME: usize = 200;

/// Parts of the names of models that hold no conversations.
const OTHER_USES: [&str; 11] =
    ["embed", "whisper", "tts", "dall-e", "moderation", "image", "audio", "realtime", "transcribe", "sora", "rerank"];

impl RequestSender {
    /// Asks a provider which models it has. One that is used with a login to another address has no list.
    pub(super) async fn list_models(&self, provider: &Provider) -> Result<Vec<String>, ModelError> {
        let used = provider.credentials.authorize().await?;
        if used.base_url.is_some() {
            return Ok(Vec::new());
        }
        let endpoint = self.endpoint(provider, &used)?;
        let url = request_url(provider, &provider.base_url, &["models"])?;
        let mut headers = authorize(&self.headers, &used, provider)?;
        headers.remove(CONTENT_TYPE);
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let failed = |error| ModelError::Connect { host: endpoint.host.clone(), source: without_url(error) };
        let response = endpoint.client.get(url).headers(headers).send().await.map_err(failed)?;
        if !response.status().is_success() {
            return Err(refused(provider, &endpoint, response, &used, 1).await);
        }
        let broken = |source| ModelError::Connect { host: endpoint.host.clone(), source };
        let (mut source, mut body) = (ResponseBody::new(response), Vec::new());
        while let Some(chunk) = source.chunk().await.map_err(broken)? {
            if body.len() + chunk.len() > MOST_BYTES {
                let source = format!("the list of models has more than {MOST_BYTES} bytes").into();
                return Err(ModelError::Connect { host: endpoint.host.clone(), source });
            }
            body.extend_from_slice(&chunk);
        }
        let list = serde_json::from_slice(&body);
        Ok(names(&list.map_err(|source| ModelError::Malformed { event: "models".to_owned(), source })?))
    }
}

/// The names in a list, each once, without those of models that hold no conversations.
fn names(list: &Value) -> Vec<String> {
    let models =
        [&list["data"], &list["models"]].into_iter().find_map(|models| models.as_array().filter(|m| !m.is_empty()));
    let name =
        |model: &Value| ["id", "slug", "name", "model"].iter().find_map(|key| model[key].as_str().map(str::to_owned));
    let mut names: Vec<String> = Vec::new();
    for name in models.into_iter().flatten().filter_map(name).take(MOST_MODELS) {
        let is_for_talk = !OTHER_USES.iter().any(|word| name.to_ascii_lowercase().contains(word));
        let is_name = !name.is_empty() && name.len() <= LONGEST_NAME && !name.chars().any(char::is_control);
        if is_for_talk && is_name && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_found_in_the_lists_of_all_providers() {
        let openai = json!({"object": "list", "data": [{"id": "gpt-5"}, {"id": "text-embedding-3"}, {"id": "gpt-5"}]});
        assert_eq!(names(&openai), ["gpt-5"]);
        let anthropic = json!({"data": [{"type": "model", "id": "claude-opus-4-7", "display_name": "Opus"}]});
        assert_eq!(names(&anthropic), ["claude-opus-4-7"]);
        let both = json!({"models": [{"name": "m.gguf"}], "data": [{"id": "qwen"}], "object": "list"});
        assert_eq!(names(&both), ["qwen"]);
        assert_eq!(names(&json!({"models": [{"slug": "a"}, {"name": "b"}, {"x": 1}, 7]})), ["a", "b"]);
        let odd = json!({"data": [{"id": ""}, {"id": "x".repeat(300)}, {"id": "a\u{1b}[2J"}]});
        assert_eq!(names(&odd), [""; 0]);
        assert_eq!(names(&json!("nothing")), [""; 0]);
    }
}
