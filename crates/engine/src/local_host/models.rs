//! Models that several threads ask.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use codex_config::{Config, ConfigSource, ProviderConfig, WireApi};
use codex_model::Model;

use super::lock;
use crate::credentials::CredentialsSource;
use crate::provider::{ConnectError, connect};

/// The models that threads share, and with them their connections.
#[derive(Debug, Default)]
pub(super) struct SharedModels {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Of which configuration and login they were made.
    generation: u64,
    models: Vec<SharedModel>,
}

struct SharedModel {
    provider: ProviderConfig,
    /// All that turns may ask for.
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
    /// The model of a configuration. Threads with the same provider share its connections.
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
