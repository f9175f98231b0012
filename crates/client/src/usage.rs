//! Tokens, their cost, and the limits of an account with the times at which they are restored.

use std::time::Duration;

use serde_json::Value;

/// The tokens of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// All answers added up.
    pub total: Tokens,
    /// The newest answer alone.
    pub last: Tokens,
    /// The size of the model's window.
    pub window: Option<u64>,
    /// The cost of the latest turn and of the thread, if the server knows the prices.
    pub turn_cost: Option<f64>,
    pub thread_cost: Option<f64>,
}

/// Tokens by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    pub total: u64,
    /// Tokens sent, cached ones included.
    pub input: u64,
    /// The part of the input that the provider had cached.
    pub cached: u64,
    /// The part of the input that the provider added to its cache.
    pub cache_write: u64,
    /// Tokens received, reasoning included.
    pub output: u64,
    pub reasoning: u64,
}

/// Prices for a million tokens, for programs whose server knows none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    pub input: f64,
    pub cached: f64,
    pub cache_write: f64,
    pub output: f64,
}

/// The limits of an account.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limits {
    /// The short window.
    pub primary: Option<Window>,
    /// The long window.
    pub secondary: Option<Window>,
    pub plan: Option<String>,
    /// The remaining credits, as the provider writes them.
    pub credits: Option<String>,
}

/// A window of time with a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    pub used_percent: f64,
    pub length: Option<Duration>,
    /// The time of the reset, in seconds of Unix time.
    pub resets_at: Option<u64>,
}

/// The first of some members.
fn member<'a>(value: &'a Value, names: [&str; 2]) -> Option<&'a Value> {
    names.iter().find_map(|name| value.get(name).filter(|member| !member.is_null()))
}

impl Usage {
    /// Reads the usage of [`Thread::usage`](crate::state::Thread::usage); `None` before the first answer.
    #[must_use]
    pub fn read(usage: &Value) -> Option<Self> {
        let cost = |names| member(usage, names).and_then(Value::as_f64);
        usage.as_object().map(|_| Self {
            total: Tokens::read(usage.get("total").unwrap_or(&Value::Null)),
            last: Tokens::read(usage.get("last").unwrap_or(&Value::Null)),
            window: member(usage, ["modelContextWindow", "model_context_window"]).and_then(Value::as_u64),
            turn_cost: cost(["turnCost", "turn_cost"]),
            thread_cost: cost(["threadCost", "thread_cost"]),
        })
    }

    /// The part of the model's window that is free, from 0 to 1.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "no window is so large that one token counts")]
    pub fn window_left(&self) -> Option<f64> {
        let window = self.window.filter(|window| *window > 0)?;
        Some((1.0 - self.last.total as f64 / window as f64).clamp(0.0, 1.0))
    }
}

impl Tokens {
    fn read(counts: &Value) -> Self {
        let count = |names| member(counts, names).and_then(Value::as_u64).unwrap_or_default();
        Self {
            total: count(["totalTokens", "total_tokens"]),
            input: count(["inputTokens", "input_tokens"]),
            cached: count(["cachedInputTokens", "cached_input_tokens"]),
            cache_write: count(["cacheWriteInputTokens", "cache_write_input_tokens"]),
            output: count(["outputTokens", "output_tokens"]),
            reasoning: count(["reasoningOutputTokens", "reasoning_output_tokens"]),
        }
    }

    /// The cost of these tokens.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "nobody uses so many tokens that the last one counts")]
    pub fn cost(&self, prices: &Prices) -> f64 {
        let fresh = self.input.saturating_sub(self.cached).saturating_sub(self.cache_write);
        let of = |tokens: u64, price: f64| tokens as f64 * price / 1_000_000.0;
        of(fresh, prices.input)
            + of(self.cached, prices.cached)
            + of(self.cache_write, prices.cache_write)
            + of(self.output, prices.output)
    }
}

impl Limits {
    /// Reads limits that arrived at this second of Unix time, in the shape of any release.
    #[must_use]
    pub fn read(limits: &Value, now: u64) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Self {
            primary: limits.get("primary").and_then(|window| Window::read(window, now)),
            secondary: limits.get("secondary").and_then(|window| Window::read(window, now)),
            plan: member(limits, ["planType", "plan_type"]).and_then(text),
            credits: limits.get("credits").and_then(|credits| text(credits.get("balance")?)),
        }
    }

    /// The time until all exhausted windows are restored; `None` if none is exhausted.
    #[must_use]
    pub fn wait(&self, now: u64) -> Option<Duration> {
        let exhausted =
            [self.primary, self.secondary].into_iter().flatten().filter(|window| window.used_percent >= 100.0);
        exhausted.filter_map(|window| window.resets_in(now)).max()
    }
}

impl Window {
    fn read(window: &Value, now: u64) -> Option<Self> {
        let minutes = member(window, ["windowDurationMins", "window_minutes"]).and_then(Value::as_u64);
        // The first releases told the seconds that were left.
        let left = member(window, ["resetsInSeconds", "resets_in_seconds"]).and_then(Value::as_u64);
        let at = member(window, ["resetsAt", "resets_at"]).and_then(Value::as_u64);
        Some(Self {
            used_percent: member(window, ["usedPercent", "used_percent"])?.as_f64()?,
            length: minutes.map(|minutes| Duration::from_secs(minutes.saturating_mul(60))),
            resets_at: at.or(left.map(|left| now.saturating_add(left))),
        })
    }

    /// The time until the reset; nothing if it is over.
    #[must_use]
    pub fn resets_in(&self, now: u64) -> Option<Duration> {
        self.resets_at.map(|at| Duration::from_secs(at.saturating_sub(now)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn usage_is_read_in_both_spellings() {
        let camel = json!({
            "total": {"totalTokens": 1100, "inputTokens": 1000, "cachedInputTokens": 400, "outputTokens": 100},
            "last": {"totalTokens": 250}, "modelContextWindow": 1000, "threadCost": 0.5,
        });
        let usage = Usage::read(&camel).unwrap_or_default();
        assert_eq!((usage.total.input, usage.total.cached, usage.window_left()), (1000, 400, Some(0.75)));
        assert_eq!((usage.thread_cost, usage.turn_cost), (Some(0.5), None));
        let snake = Tokens::read(&json!({"input_tokens": 7, "reasoning_output_tokens": 3}));
        assert_eq!((snake.input, snake.reasoning), (7, 3));
        assert_eq!(Usage::read(&Value::Null), None);
        let prices = Prices { input: 10.0, cached: 1.0, cache_write: 12.0, output: 100.0 };
        let cost = usage.total.cost(&prices);
        assert!((cost - 0.0164).abs() < 1e-9, "600 fresh, 400 cached and 100 received cost {cost}");
    }

    #[test]
    fn a_reset_is_a_time_in_every_release() {
        let newer =
            json!({"primary": {"usedPercent": 100, "windowDurationMins": 300, "resetsAt": 1060}, "planType": "pro"});
        let older = json!({"primary": {"used_percent": 100.0, "window_minutes": 300, "resets_in_seconds": 60}});
        for limits in [&newer, &older].map(|limits| Limits::read(limits, 1000)) {
            assert_eq!(limits.primary.and_then(|window| window.resets_at), Some(1060));
            assert_eq!(limits.primary.and_then(|window| window.length), Some(Duration::from_secs(300 * 60)));
            assert_eq!(limits.wait(1000), Some(Duration::from_secs(60)));
            assert_eq!(limits.wait(2000), Some(Duration::ZERO), "a reset in the past is no wait");
        }
        let half = Limits::read(&json!({"primary": {"usedPercent": 50, "resetsAt": 1060}, "secondary": null}), 1000);
        assert_eq!((half.wait(1000), half.secondary), (None, None));
        assert_eq!(Limits::read(&json!("odd"), 0), Limits::default());
    }
}
