//! The cost of a run, if the user has configured the model's price.

use codex_config::Config;

use crate::failure::ErrorWithHint;

/// Refuses a budget that could not be enforced.
pub(crate) fn check(config: &Config, model: &str) -> Result<(), ErrorWithHint> {
    if config.price_of(model).is_some() {
        return Ok(());
    }
    let what = format!("--max-cost: no price is set for the model {model}");
    let hint = format!(
        "add a table [prices.{}] to config.toml, with what a million tokens cost: input = …, output = …",
        serde_json::Value::from(model)
    );
    Err(ErrorWithHint { what, hint })
}
