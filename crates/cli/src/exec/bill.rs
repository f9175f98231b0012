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

/// Formats an amount of money, with enough digits to be more than zero.
pub(crate) fn amount(cost: f64) -> String {
    if cost > 0.0 && cost < 0.01 { format!("{cost:.6}") } else { format!("{cost:.4}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_amounts_are_not_nothing() {
        assert_eq!([amount(0.0), amount(0.000_12), amount(1.5)], ["0.0000", "0.000120", "1.5000"]);
    }
}
