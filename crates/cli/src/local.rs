//! `--oss` and `--local-provider`: finds a model server on this machine, chooses a model, and has Ollama download it.
//!
//! Invariant: only loopback addresses, or those that the user has configured, are asked, each with a deadline.

use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use codex_config::{Config, Env, Home, Overrides, ProviderConfig, default_model, local_providers, start_command};
use codex_engine::connect;
use codex_model::{ModelError, ollama};
use tokio::task::JoinHandle;

use crate::console;
use crate::host;
use crate::proto::ORIGINATOR;

/// The time limit for a server to list its models.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// The one server that gets models by itself.
const OLLAMA: &str = "ollama";

/// The options for local servers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalRequest<'a> {
    pub(crate) server: Option<&'static str>,
    pub(crate) model: Option<&'a str>,
}

/// A list of models that is being asked for.
type Listing = JoinHandle<Result<Vec<String>, ModelError>>;

/// A server that answers.
pub(crate) struct Server {
    pub(crate) provider: ProviderConfig,
    pub(crate) models: Vec<String>,
}

/// Chooses a server and a model; returns them as configuration overrides.
pub(crate) fn choose(
    request: LocalRequest<'_>,
    home: &Home,
    env: &Env,
    overrides: &Overrides,
) -> anyhow::Result<Vec<String>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let place = Place { home, env, overrides };
        let server = place.server(request.server).await?;
        let model = place.model(&server, request.model).await?;
        let set = |key: &str, value: &str| format!("{key}={}", serde_json::Value::from(value));
        Ok(vec![set("model_provider", &server.provider.id), set("model", &model)])
    })
}

/// The environment of the search.
pub(crate) struct Place<'a> {
    pub(crate) home: &'a Home,
    pub(crate) env: &'a Env,
    pub(crate) overrides: &'a Overrides,
}

impl Place<'_> {
    /// The server that is named, on the command line or by `oss_provider`, else the first that answers.
    async fn server(&self, named: Option<&str>) -> anyhow::Result<Server> {
        let own = Config::load(self.home, self.env, self.overrides)?;
        if let Some(id) = named.or(own.model.local_server.as_deref()) {
            let provider = own.providers.get(id);
            let provider = provider.ok_or_else(|| anyhow!("oss_provider: no provider named {id:?}"))?;
            return self.probe(provider).await;
        }
        let usual = start_command(OLLAMA).unwrap_or_default();
        let none = || anyhow!("no local model server answers; start one, for example with `{usual}`");
        self.servers(&own, PROBE_TIMEOUT).await?.into_iter().next().ok_or_else(none)
    }

    /// The servers that answer within this time, each address once.
    pub(crate) async fn servers(&self, own: &Config, within: Duration) -> anyhow::Result<Vec<Server>> {
        let mut candidates: Vec<(ProviderConfig, Listing)> = Vec::new();
        for known in local_providers(self.env) {
            let provider = own.providers.get(&known.id).cloned().unwrap_or(known);
            if !candidates.iter().any(|(other, _)| other.base_url == provider.base_url) {
                let listing = self.ask(&provider, within)?;
                candidates.push((provider, listing));
            }
        }
        // All are being asked by now, so this takes no longer than the slowest.
        let mut servers = Vec::new();
        for (provider, listing) in candidates {
            if let Ok(Ok(models)) = listing.await {
                servers.push(Server { provider, models });
            }
        }
        Ok(servers)
    }

    /// The models of one server.
    async fn probe(&self, provider: &ProviderConfig) -> anyhow::Result<Server> {
        match self.ask(provider, PROBE_TIMEOUT)?.await? {
            Ok(models) => Ok(Server { provider: provider.clone(), models }),
            Err(ModelError::Connect { .. } | ModelError::Idle { .. }) => Err(silent(provider)),
            Err(error) => Err(error).with_context(|| format!("{} lists no models", provider.name)),
        }
    }

    /// Begins to ask a server for its models.
    fn ask(&self, provider: &ProviderConfig, within: Duration) -> anyhow::Result<Listing> {
        let mut overrides = self.overrides.clone();
        overrides.values.push(format!("model_provider={}", serde_json::Value::from(&*provider.id)));
        let config = Config::load(self.home, self.env, &overrides)?;
        let model = connect(&config, &host::credentials(self.home, &config, self.env), self.env, ORIGINATOR)?;
        Ok(tokio::spawn(async move { model.list_models(within).await }))
    }

    /// The model that is named, else the usual one, else the first of the list. Ollama downloads one that it lacks.
    async fn model(&self, server: &Server, named: Option<&str>) -> anyhow::Result<String> {
        let Server { provider, models } = server;
        let usual = default_model(&provider.id);
        let wanted = match (named, models.first()) {
            (Some(named), _) => named,
            (None, Some(first)) if !has(models, usual) => first,
            (None, Some(_)) => usual,
            (None, None) if provider.id == OLLAMA => usual,
            (None, None) => bail!("{} has no model; load one there, or name it with --model", provider.name),
        };
        if provider.id == OLLAMA && !has(models, wanted) {
            self.download(provider.base_url.as_deref().unwrap_or_default(), wanted).await?;
        }
        Ok(wanted.to_owned())
    }

    /// Downloads a model, and prints how far it is at every tenth.
    async fn download(&self, base_url: &str, model: &str) -> anyhow::Result<()> {
        console::note(format_args!("downloading {model} with Ollama; Ctrl-C stops it"));
        let mut shown = 0;
        let certificates = self.env.ca_certificates();
        let pulled = ollama::pull(base_url, model, certificates.as_deref(), |progress| {
            let tenths = progress.completed.saturating_mul(10).checked_div(progress.total).unwrap_or(0);
            if tenths > shown {
                shown = tenths;
                console::note(format_args!("downloading {model}: {} % of {}", tenths * 10, amount(progress.total)));
            }
        });
        pulled.await.with_context(|| format!("{model} is not installed"))
    }
}

/// Whether a server has a model; Ollama may leave out `:latest`.
fn has(models: &[String], name: &str) -> bool {
    models.iter().any(|model| model == name || model.strip_suffix(":latest") == Some(name))
}

fn silent(provider: &ProviderConfig) -> anyhow::Error {
    let url = provider.base_url.as_deref().unwrap_or_default();
    let start = start_command(&provider.id).map(|command| format!("; start it with `{command}`")).unwrap_or_default();
    anyhow!("{} does not answer at {url}{start}", provider.name)
}

/// A number of bytes for people.
fn amount(bytes: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", bytes / unit, bytes % unit * 10 / unit);
    match bytes {
        1_000_000_000.. => format!("{} GB", tenths(1_000_000_000)),
        1_000_000.. => format!("{} MB", tenths(1_000_000)),
        _ => format!("{} kB", tenths(1_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short() {
        assert_eq!(amount(13_793_000_000), "13.7 GB");
        assert_eq!(amount(2_050_000), "2.0 MB");
        assert_eq!(amount(4_000), "4.0 kB");
    }

    #[test]
    fn the_latest_of_a_model_may_be_named_without_saying_so() {
        let models = ["qwen3:latest".to_owned(), "gemma3:4b".to_owned()];
        assert!(has(&models, "qwen3") && has(&models, "qwen3:latest") && has(&models, "gemma3:4b"));
        assert!(!has(&models, "gemma3") && !has(&models, "qwen"));
    }
}
