//! Models that threads share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use codex_config::{Config, ConfigSource, ProviderConfig, WireApi};
use codex_model::Model;
use tokio::time::Instant;

use super::lock;
use crate::credentials::CredentialsSource;
use crate::provider::{ConnectError, connect};

/// The time for which a list of models is cached.
const LIST_LIFE: Duration = Duration::from_secs(5 * 60);

/// The time before a provider that failed to return its list is asked again.
const RETRY_DELAY: Duration = Duration::from_secs(30);

/// The models that threads share.
#[derive(Debug, Default)]
pub(super) struct SharedModels {
    known: Mutex<Known>,
    /// The list of the latest provider. A request for it during a query waits for the answer.
    list: tokio::sync::Mutex<Option<List>>,
}

/// The models of a provider.
#[derive(Debug)]
struct List {
    of: ProviderConfig,
    /// The configuration and login at that time.
    generation: u64,
    expires: Instant,
    names: Vec<String>,
}

#[derive(Debug, Default)]
struct Known {
    /// The configuration and login from which the models were created.
    generation: u64,
    models: Vec<SharedModel>,
}

struct SharedModel {
    provider: ProviderConfig,
    /// All models that turns may name.
    providers: BTreeMap<String, ProviderConfig>,
    /// The client name in its requests.
    originator: String,
    model: Arc<dyn Model>,
}

impl std::fmt::Debug for SharedModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedModel")
    }
}

impl SharedModels {
    /// The names of the models that the configured provider lists; empty if it does not list them.
    pub(super) async fn listed(
        &self,
        (source, credentials): (&ConfigSource, &CredentialsSource),
        originator: &str,
    ) -> Vec<String> {
        // Every user of the configuration reports that it cannot be read.
        let Ok(config) = source.config() else { return Vec::new() };
        let generation = source.generation();
        let mut list = self.list.lock().await;
        let is_known = |list: &&List| list.of == config.provider && list.generation == generation;
        if let Some(known) = list.as_ref().filter(is_known).filter(|list| Instant::now() < list.expires) {
            return known.names.clone();
        }
        let Ok(model) = self.model((source, credentials), &config, originator) else { return Vec::new() };
        let within = Duration::from_millis(config.provider.models_timeout_ms);
        let (names, life) = match model.list_models(within).await {
            Ok(names) => (names, LIST_LIFE),
            Err(_) => (Vec::new(), RETRY_DELAY),
        };
        let expires = Instant::now() + life;
        *list = Some(List { of: config.provider.clone(), generation, expires, names: names.clone() });
        names
    }

    /// The model of a configuration. Threads with the same provider share it.
    pub(super) fn model(
        &self,
        (source, credentials): (&ConfigSource, &CredentialsSource),
        config: &Config,
        originator: &str,
    ) -> Result<Arc<dyn Model>, ConnectError> {
        let make = || connect(config, credentials, source.env(), originator);
        // A script restarts with every thread.
        if config.provider.wire_api == WireApi::Scripted {
            return make();
        }
        let mut known = lock(&self.known);
        let generation = source.generation();
        if known.generation != generation {
            *known = Known { generation, models: Vec::new() };
        }
        let is_same = |known: &&SharedModel| {
            known.originator == originator && known.provider == config.provider && known.providers == config.providers
        };
        if let Some(known) = known.models.iter().find(is_same) {
            return Ok(Arc::clone(&known.model));
        }
        let model = make()?;
        let (provider, originator) = (config.provider.clone(), originator.to_owned());
        let providers = config.providers.clone();
        known.models.push(SharedModel { provider, providers, originator, model: Arc::clone(&model) });
        Ok(model)
    }
}
