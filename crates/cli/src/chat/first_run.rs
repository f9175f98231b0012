//! The first run: there is no key and no configured provider, so the user chooses how to start.
//!
//! Invariant: a key is stored by the same code as in `codex login`, and other choices are written by the code with which
//! clients change the configuration.

use std::time::Duration;

use codex_config::{Config, ConfigEdit, Overrides, UserConfig, WriteRequest, default_model};
use codex_dialogue::first_run::{Choice, Server};
use codex_login::LoginStore;

use super::setup::ChatEnvironment;
use crate::local;

/// The time limit for a local server to answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// Whether no model was configured yet.
pub(crate) fn is_first(config: &Config) -> bool {
    config.tree.get(&["model_provider"]).is_none()
}

/// Saves the choice, and reports it.
pub(crate) fn keep(choice: Choice, place: &mut ChatEnvironment) -> anyhow::Result<String> {
    Ok(match choice {
        Choice::SearchAgain => String::new(),
        Choice::Key(key) => {
            let store = LoginStore::of(&place.home, &place.config()?.login());
            store.store_api_key(&key)?;
            format!("The key is stored in {}.\n", store.place())
        }
        Choice::Local(server) => {
            keep_server(&server, place)?;
            format!("Using {} from now on: {}.\n", server.describe(), place.home.config_file().display())
        }
        Choice::Offline => {
            place.overrides.values.push("model_provider=\"scripted\"".to_owned());
            "Offline: answers come from a script. The next run asks again.\n".to_owned()
        }
    })
}

fn keep_server(server: &Server, place: &ChatEnvironment) -> anyhow::Result<()> {
    place.home.ensure()?;
    let edits = [ConfigEdit::set("model_provider", &*server.id), ConfigEdit::set("model", &*server.model)];
    UserConfig::new(&place.home, &place.env, &Overrides::default()).write(&WriteRequest::of(edits))?;
    Ok(())
}

/// The local servers that answer, with the model that each would be used with.
pub(crate) async fn find_servers(place: &ChatEnvironment) -> anyhow::Result<Vec<Server>> {
    let config = place.config()?;
    let search = local::Place { home: &place.home, env: &place.env, overrides: &place.overrides };
    let found = search.servers(&config, PATIENCE).await?;
    Ok(found.into_iter().map(server).collect())
}

fn server(local::Server { provider, models }: local::Server) -> Server {
    let usual = default_model(&provider.id).to_owned();
    let model = models.first().filter(|_| !models.contains(&usual)).cloned().unwrap_or(usual);
    Server { id: provider.id, name: provider.name, model }
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_is_a_key_for_every_known_server() {
        let env = codex_config::Env::from_iter::<[(&str, &str); 0]>([]);
        assert_eq!(codex_config::local_providers(&env).len(), codex_dialogue::first_run::LETTERS.len());
    }
}
