//! The delays between attempts.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(30);

/// Delays that double from 200 ms up to 30 s, each up to a tenth longer or shorter, so that clients do not retry at
/// the same time.
#[derive(Debug, Clone)]
pub struct Backoff {
    rng: fastrand::Rng,
}

impl Backoff {
    /// A backoff that differs from process to process.
    #[must_use]
    pub fn new() -> Self {
        Self { rng: fastrand::Rng::new() }
    }

    /// A backoff with the same delays for the same seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self { rng: fastrand::Rng::with_seed(seed) }
    }

    /// The delay before an attempt, where 1 is the first one after a failure.
    pub fn delay(&mut self, attempt: u32) -> Duration {
        let doubled = 2_u32.checked_pow(attempt.saturating_sub(1)).and_then(|factor| FIRST.checked_mul(factor));
        let delay = doubled.unwrap_or(LONGEST).min(LONGEST);
        delay.mul_f64(0.9 + 0.2 * self.rng.f64())
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_with_jitter_up_to_the_cap() {
        let mut backoff = Backoff::seeded(1);
        for (attempt, middle) in [(0, 200), (1, 200), (2, 400), (3, 800), (8, 25_600), (9, 30_000), (u32::MAX, 30_000)]
        {
            for _ in 0..100 {
                let delay = backoff.delay(attempt).as_millis();
                assert!(delay * 10 >= middle * 9 - 10 && delay * 10 <= middle * 11, "{attempt}: {delay}");
            }
        }
    }

    #[test]
    fn same_seed_same_delays() {
        let delays = |seed| {
            let mut backoff = Backoff::seeded(seed);
            (1..6).map(|attempt| backoff.delay(attempt)).collect::<Vec<_>>()
        };
        assert_eq!(delays(7), delays(7));
        assert_ne!(delays(7), delays(8));
    }
}
