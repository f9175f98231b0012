//! The cost of a run, if the user has configured the model's price.

use std::collections::BTreeMap;

use codex_config::Price;
use codex_dialects::exec::Usage;

use crate::failure::ErrorWithHint;

/// The cost of a run so far.
#[derive(Debug)]
pub(crate) struct Bill {
    prices: BTreeMap<String, Price>,
    /// The price of the latest model.
    price: Option<Price>,
    /// The usage at the last count.
    counted: Usage,
    /// `None` once something without a price was used.
    cost: Option<f64>,
}

impl Bill {
    pub(crate) fn new(prices: BTreeMap<String, Price>) -> Self {
        Self { prices, price: None, counted: Usage::default(), cost: Some(0.0) }
    }

    /// Refuses a budget that could not be enforced.
    pub(crate) fn check(&self, model: &str) -> Result<(), ErrorWithHint> {
        if self.prices.contains_key(model) {
            return Ok(());
        }
        let what = format!("--max-cost: no price is set for the model {model}");
        let hint = format!(
            "add a table [prices.{}] to config.toml, with what a million tokens cost: input = …, output = …",
            serde_json::Value::from(model)
        );
        Err(ErrorWithHint { what, hint })
    }

    /// Switches to a model: usage from now on is charged at its price.
    pub(crate) fn asks(&mut self, model: &str) {
        self.price = self.prices.get(model).copied();
    }

    /// Updates the total usage of the run.
    pub(crate) fn count(&mut self, used: Usage) {
        let before = std::mem::replace(&mut self.counted, used);
        let input = used.input_tokens - before.input_tokens;
        let cached = used.cached_input_tokens - before.cached_input_tokens;
        let output = used.output_tokens - before.output_tokens;
        if (input, cached, output) != (0, 0, 0) {
            self.cost = self.cost.zip(self.price).map(|(cost, price)| cost + price.of(input, cached, output));
        }
    }

    /// The cost, if it is known.
    pub(crate) fn cost(&self) -> Option<f64> {
        // Without a price nothing is known, not even that nothing costs nothing.
        self.cost.filter(|_| self.price.is_some())
    }
}

/// Formats an amount of money, with enough digits to be more than zero.
pub(crate) fn amount(cost: f64) -> String {
    if cost > 0.0 && cost < 0.01 { format!("{cost:.6}") } else { format!("{cost:.4}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(input_tokens: i64, cached_input_tokens: i64, output_tokens: i64) -> Usage {
        Usage { input_tokens, cached_input_tokens, output_tokens, ..Usage::default() }
    }

    fn bill() -> Bill {
        let price = |input, output| Price { input, cached: input / 2.0, output };
        Bill::new(BTreeMap::from([("a".to_owned(), price(2.0, 10.0)), ("b".to_owned(), price(4.0, 20.0))]))
    }

    #[test]
    fn each_answer_costs_what_its_model_costs() {
        let mut bill = bill();
        assert_eq!(bill.cost(), None);
        bill.asks("a");
        bill.count(used(1_000_000, 500_000, 100_000));
        assert_eq!(bill.cost().map(amount).as_deref(), Some("2.5000"));
        bill.asks("b");
        // The same total again changes nothing.
        bill.count(used(1_000_000, 500_000, 100_000));
        bill.count(used(2_000_000, 500_000, 100_000));
        assert_eq!(bill.cost().map(amount).as_deref(), Some("6.5000"));
    }

    #[test]
    fn a_model_without_a_price_makes_the_cost_unknown() {
        let mut bill = bill();
        bill.asks("c");
        bill.count(used(10, 0, 10));
        assert_eq!(bill.cost(), None);
        bill.asks("a");
        bill.count(used(20, 0, 20));
        assert_eq!(bill.cost(), None);
        assert!(bill.check("a").is_ok());
        assert!(bill.check("c").is_err());
    }

    #[test]
    fn small_amounts_are_not_nothing() {
        assert_eq!([amount(0.0), amount(0.000_12), amount(1.5)], ["0.0000", "0.000120", "1.5000"]);
    }
}
