//! The waits between the starts of a server that ends on its own.

use std::time::Duration;

/// The wait before each restart, in seconds; later ones are as long as the last.
const WAITS: [u64; 6] = [1, 2, 4, 8, 16, 30];
/// The number of restarts in a row.
pub const MOST_RESTARTS: u32 = 10;
/// A server that ran this long counts as healthy, and the waits begin anew.
pub const HEALTHY: Duration = Duration::from_secs(60);

/// Counts restarts.
#[derive(Debug, Default)]
pub struct Backoff {
    restarts: u32,
}

impl Backoff {
    /// The number of the next restart and the wait before it, after a server has run for some time; `None` if it has
    /// been restarted often enough. `chance` is from 0 to 1 and shortens the wait by up to a fifth, so that many
    /// clients do not all come back at once.
    pub fn next(&mut self, ran: Duration, chance: f64) -> Option<(u32, Duration)> {
        if ran >= HEALTHY {
            self.restarts = 0;
        }
        if self.restarts == MOST_RESTARTS {
            return None;
        }
        let step = usize::try_from(self.restarts).unwrap_or(WAITS.len()).min(WAITS.len() - 1);
        self.restarts += 1;
        let wait = Duration::from_secs(WAITS[step]).mul_f64(1.0 - chance.clamp(0.0, 1.0) / 5.0);
        Some((self.restarts, wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_their_end_and_begin_anew_after_a_healthy_minute() {
        let mut backoff = Backoff::default();
        let waits: Vec<u64> =
            std::iter::from_fn(|| backoff.next(Duration::ZERO, 0.0)).map(|(_, wait)| wait.as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30, 30, 30, 30]);
        assert_eq!(backoff.next(HEALTHY.mul_f64(0.99), 0.0), None);
        assert_eq!(backoff.next(HEALTHY, 0.0), Some((1, Duration::from_secs(1))));
    }

    #[test]
    fn chance_shortens_a_wait_by_at_most_a_fifth() {
        for (chance, wait) in [(0.0, 1000), (0.5, 900), (1.0, 800), (7.0, 800), (-7.0, 1000)] {
            let next = Backoff::default().next(Duration::ZERO, chance);
            assert_eq!(next, Some((1, Duration::from_millis(wait))), "{chance}");
        }
    }
}
