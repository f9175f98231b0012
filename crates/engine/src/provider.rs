//! Creates the model of a configured provider.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use codex_config::{Config, Env, ProviderConfig, WireApi};
use codex_model::{
    Answer, HttpModel, Model, ModelError, Prompt, Provider, RecordedModel, ScriptError, ScriptedModel,
    SharedCredentials, WireKind,
};

use futures_util::future::BoxFuture;

use crate::credentials::CredentialsSource;

/// The script of the built-in offline model.
const OFFLINE_SCRIPT: &str = include_str!("../scripts/offline.json");

/// The variable that names a file of server-sent events, which replaces every answer of a provider with the Responses
/// API. Test programs of other projects set it; no configuration file can.
const RECORDED: &str = "CODEX_RS_SSE_FIXTURE";

/// The maximum size of a recorded answer or a script.
const RECORDED_BYTES: u64 = 32 * 1024 * 1024;

/// The reason why a provider cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The script of the offline model could not be read.
    #[error("model_providers.{id}.script: could not read {path}", path = .path.display())]
    ReadScript { id: String, path: PathBuf, source: std::io::Error },
    /// The script of the offline model is invalid.
    #[error("model_providers.{id}.script: {name} is not a script")]
    Script {
        id: String,
        /// The script's file, or a description of the built-in one.
        name: String,
        source: ScriptError,
    },
}

/// Creates the model of the configured provider. Nothing is sent. A missing key is reported by the first request, so
/// that a client can start and show the error in its interface.
///
/// # Errors
/// When the provider's configuration is invalid.
pub fn connect(
    config: &Config,
    credentials: &CredentialsSource,
    env: &Env,
    originator: &str,
) -> Result<Arc<dyn Model>, ConnectError> {
    let default = connect_provider(config, &config.provider, credentials, env, originator)?;
    Ok(Arc::new(Router {
        default,
        config: config.clone(),
        credentials: credentials.clone(),
        env: env.clone(),
        originator: originator.to_owned(),
        others: Mutex::default(),
    }))
}

/// The models of a configuration: a turn names its own by provider and model.
struct Router {
    default: Arc<dyn Model>,
    config: Config,
    credentials: CredentialsSource,
    env: Env,
    originator: String,
    /// The models of providers that a turn has named.
    others: Mutex<BTreeMap<String, Arc<dyn Model>>>,
}

impl Router {
    fn model(&self, provider: &ProviderConfig) -> Result<Arc<dyn Model>, ConnectError> {
        if provider.id == self.config.provider.id {
            return Ok(Arc::clone(&self.default));
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = others.get(&provider.id) {
            return Ok(Arc::clone(model));
        }
        let model = connect_provider(&self.config, provider, &self.credentials, &self.env, &self.originator)?;
        others.insert(provider.id.clone(), Arc::clone(&model));
        Ok(model)
    }
}

impl Model for Router {
    fn ask(&self, prompt: Prompt) -> Answer {
        let (provider, name) = self.config.model_of(&prompt.model);
        let (model, name) = (self.model(provider), name.to_owned());
        match model {
            Ok(model) => model.ask(Prompt { model: name, ..prompt }),
            Err(error) => Unavailable { message: error.to_string() }.ask(prompt),
        }
    }

    fn list_models(&self, within: Duration) -> BoxFuture<'_, Result<Vec<String>, ModelError>> {
        self.default.list_models(within)
    }
}

fn connect_provider(
    config: &Config,
    provider: &ProviderConfig,
    credentials: &CredentialsSource,
    env: &Env,
    originator: &str,
) -> Result<Arc<dyn Model>, ConnectError> {
    match provider.wire_api {
        WireApi::Responses => {
            let recorded = env.get(RECORDED).map(|path| recorded(&PathBuf::from(path)));
            Ok(recorded.unwrap_or_else(|| by_http(provider, credentials.find(config, provider), env, originator)))
        }
        WireApi::Chat | WireApi::Anthropic => {
            Ok(by_http(provider, credentials.find(config, provider), env, originator))
        }
        WireApi::Scripted => scripted(provider),
    }
}

/// The API of a provider; a script counts as one with the Responses API.
pub(crate) fn wire_kind(provider: &ProviderConfig) -> WireKind {
    match provider.wire_api {
        WireApi::Responses | WireApi::Scripted => WireKind::Responses,
        WireApi::Chat => WireKind::Chat,
        WireApi::Anthropic => WireKind::Anthropic,
    }
}

fn by_http(config: &ProviderConfig, credentials: SharedCredentials, env: &Env, originator: &str) -> Arc<dyn Model> {
    let fixed = config.http_headers.iter().map(|(name, value)| (name.clone(), value.reveal().to_owned()));
    let from_env = config.env_http_headers.iter().filter_map(|(name, var)| Some((name.clone(), env.text(var)?)));
    Arc::new(HttpModel::new(Provider {
        id: config.id.clone(),
        name: config.name.clone(),
        wire: wire_kind(config),
        traits: config.traits.clone(),
        base_url: config.base_url.clone().unwrap_or_default(),
        supports_websockets: config.supports_websockets,
        credentials,
        headers: fixed.chain(from_env).collect(),
        query: config.query_params.iter().map(|(name, value)| (name.clone(), value.reveal().to_owned())).collect(),
        request_max_retries: retries(config),
        connect_timeout: Duration::from_millis(config.connect_timeout_ms),
        stream_idle_timeout: Duration::from_millis(config.stream_idle_timeout_ms),
        ca_certificates: env.ca_certificates(),
        user_agent: codex_config::user_agent(originator, env),
        originator: originator.to_owned(),
    }))
}

fn recorded(path: &Path) -> Arc<dyn Model> {
    match codex_files::read_text(path, RECORDED_BYTES) {
        Ok(stream) => Arc::new(RecordedModel::new(&stream)),
        Err(error) => {
            Arc::new(Unavailable { message: format!("{RECORDED}: could not read {}: {error}", path.display()) })
        }
    }
}

fn scripted(config: &ProviderConfig) -> Result<Arc<dyn Model>, ConnectError> {
    let (name, text) = match &config.script {
        Some(path) => {
            let failed = |source| ConnectError::ReadScript { id: config.id.clone(), path: path.clone(), source };
            let text = codex_files::read_text(path, RECORDED_BYTES).map_err(|error| failed(error.into()))?;
            (path.display().to_string(), text)
        }
        None => ("the built-in script".to_owned(), OFFLINE_SCRIPT.to_owned()),
    };
    match ScriptedModel::from_json(&text) {
        Ok(model) => Ok(Arc::new(
            model
                .with_request_max_retries(retries(config))
                .with_idle_timeout(Duration::from_millis(config.stream_idle_timeout_ms)),
        )),
        Err(source) => Err(ConnectError::Script { id: config.id.clone(), name, source }),
    }
}

fn retries(config: &ProviderConfig) -> u32 {
    u32::try_from(config.request_max_retries).unwrap_or(u32::MAX)
}

/// A model that answers every request with the same error.
struct Unavailable {
    message: String,
}

impl Model for Unavailable {
    fn ask(&self, _: Prompt) -> Answer {
        let error = ModelError::Unavailable { message: self.message.clone() };
        Box::pin(futures_util::stream::iter([Err(error)]))
    }
}
