//! What a run costs, where the user has said what its model costs.

use std::collections::BTreeMap;

use codex_config::Price;
use codex_dialects::exec::Usage;

use crate::failure::Hinted;

/// What a run has cost so far.
#[derive(Debug)]
pub(crate) struct Bill {
    prices: BTreeMap<String, Price>,
    /// What the model costs that was asked last.
    price: Option<Price>,
    /// What was used when it was counted last.
    counted: Usage,
    /// None once something was used that has no price.
    cost: Option<f64>,
}

impl Bill {
    /// Nothing was used yet.
    pub(crate) fn new(prices: BTreeMap<String, Price>) -> Self {
        Self { prices, price: None, counted: Usage::default(), cost: Some(0.0) }
    }

    /// Refuses a budget that could not be kept.
    pub(crate) fn check(&self, model: &str) -> Result<(), Hinted> {
        if self.prices.contains_key(model) {
            return Ok(());
        }
        let what = format!("--max-cost: no price is set for the model {model}");
        let hint = format!(
            "add a table [prices.{}] to config.toml, with what a million tokens cost: input = …, output = …",
            serde_json::Value::from(model)
        );
        Err(Hinted { what, hint })
    }

    /// A model is asked. What is counted from now on is its doing.
    pub(crate) fn asks(&mut self, model: &str) {
        self.price = self.prices.get(model).copied();
    }

    /// Takes note of what the run has used in all.
    pub(crate) fn count(&mut self, used: Usage) {
        let before = std::mem::replace(&mut self.counted, used);
        let input = used.input_tokens - before.input_tokens;
        let cached = used.cached_input_tokens - before.cached_input_tokens;
        let output = used.output_tokens - before.output_tokens;
        if (input, cached, output) != (0, 0, 0) {
            self.cost = self.cost.zip(self.price).map(|(cost, price)| cost + price.of(input, cached, output));
        }
    }

    /// What it has cost, if that is known.
    pub(crate) fn cost(&self) -> Option<f64> {
        // Without a price nothing is known, not even that nothing costs nothing.
        self.cost.filter(|_| self.price.is_some())
    }
}

/// An amount of money, with as many places as it needs to be more than nothing.
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
        // The same again is nothing new.
        bill.count(used(1_000_000, 500_000, 100_000));
        bill.count(used(2_000_000, 500_000, 100_000));
        assert_eq!(bill.cost().map(amount).as_deref(), Some("6.5000"));
    }

    #[test]
    fn what_has_no_price_makes_the_cost_unknown() {
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
