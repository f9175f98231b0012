//! The prices of models, if the user has set them in `[prices."<model>"]`.
//!
//! Invariant: no price is built in. Prices change, and a wrong one is worse than none.

use codex_wire::tokens::TokenUsage;

use crate::{Origin, Reader, ValueError};

const MILLION: f64 = 1_000_000.0;

/// The price of a model for a million tokens, in the user's currency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// `input`: tokens that are sent.
    pub input: f64,
    /// `cached`: sent tokens that the provider has cached; the same price as the others by default.
    pub cached: f64,
    /// `cache_write`: sent tokens that the provider puts into its cache; the same price as the others by default.
    pub cache_write: f64,
    /// `output`: tokens that are received, including reasoning.
    pub output: f64,
}

impl Price {
    /// Reads the entry of one model. A table without a price for both directions would count too little.
    pub(crate) fn read(prices: &Reader<'_>, model: &str) -> Result<Option<Self>, ValueError> {
        let entry = prices.section(model)?;
        let price = |key: &str| {
            entry.amount(key)?.ok_or_else(|| {
                let origin = prices.node(model).map_or(Origin::Default, |node| node.origin.clone());
                ValueError::new(origin, prices.path_of(model).to_string(), format!("{key} is missing"))
            })
        };
        let input = price("input")?;
        Ok(Some(Self {
            input,
            cached: entry.amount("cached")?.unwrap_or(input),
            cache_write: entry.amount("cache_write")?.unwrap_or(input),
            output: price("output")?,
        }))
    }

    /// The cost of these tokens. Those that were cached, and those that are now, are part of the input, and reasoning is part of
    /// the output.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "nobody uses so many tokens that the last one counts")]
    pub fn of(&self, used: &TokenUsage) -> f64 {
        let (cached, written) = (used.cached_input_tokens, used.cache_write_input_tokens);
        let fresh = (used.input_tokens - cached - written).max(0) as f64;
        let input = fresh * self.input + cached as f64 * self.cached + written as f64 * self.cache_write;
        (input + used.output_tokens as f64 * self.output) / MILLION
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use expect_test::{Expect, expect};

    use super::*;
    use crate::Tree;

    #[track_caller]
    fn check(text: &str, expected: Expect) {
        let tree = Tree::parse(Path::new("/h/config.toml"), text).unwrap();
        let prices = Reader::new(&tree, None).map("prices", Price::read);
        match prices {
            Ok(prices) => expected.assert_eq(&format!("{prices:?}")),
            Err(error) => expected.assert_eq(&error.to_string()),
        }
    }

    #[test]
    fn prices_are_what_the_user_has_set() {
        check("", expect!["{}"]);
        check(
            "[prices.'m-1.5']\ninput = 2\ncached = 0.25\ncache_write = 2.5\noutput = 10.5\n[prices.n]\ninput = 1\noutput = 3",
            expect![[
                r#"{"m-1.5": Price { input: 2.0, cached: 0.25, cache_write: 2.5, output: 10.5 }, "n": Price { input: 1.0, cached: 1.0, cache_write: 1.0, output: 3.0 }}"#
            ]],
        );
    }

    #[test]
    fn mistakes_are_named() {
        check("[prices.m]\ninput = 2", expect!["/h/config.toml:1: prices.m: output is missing"]);
        check(
            "[prices.m]\ninput = -2\noutput = 1",
            expect!["/h/config.toml:2: prices.m.input: expected a number of at least 0, found the integer -2"],
        );
        check(
            "[prices.m]\ninput = nan\noutput = 1",
            expect!["/h/config.toml:2: prices.m.input: expected a number of at least 0, found the float NaN"],
        );
        check("[prices]\nm = 3", expect!["/h/config.toml:2: prices.m: expected a table, found the integer 3"]);
    }

    #[test]
    fn cached_tokens_are_part_of_the_input() {
        let price = Price { input: 2.0, cached: 0.5, cache_write: 2.5, output: 10.0 };
        let mut used = TokenUsage { input_tokens: 3_000_000, output_tokens: 500_000, ..TokenUsage::default() };
        assert!((price.of(&used) - 11.0).abs() < 1e-9);
        used.cached_input_tokens = 1_000_000;
        assert!((price.of(&used) - 9.5).abs() < 1e-9);
        used.cache_write_input_tokens = 1_000_000;
        used.reasoning_output_tokens = 400_000;
        assert!((price.of(&used) - 10.0).abs() < 1e-9);
        assert!(price.of(&TokenUsage::default()).abs() < 1e-9);
    }
}
