//! Retries of a request whose answer has not begun.

use crate::{Backoff, ModelError, Pace};

/// Runs an attempt until it succeeds, fails permanently, or has been repeated `max` times.
///
/// A wait that the provider requests is honoured, together with other requests if there is a pace; otherwise the delays
/// of [`Backoff`] apply.
pub(crate) async fn with_retries<T, F>(
    max: u32,
    pace: Option<&dyn Pace>,
    mut attempt: impl FnMut() -> F,
) -> Result<T, ModelError>
where
    F: Future<Output = Result<T, ModelError>>,
{
    let mut backoff = Backoff::new();
    let mut retries = 0;
    loop {
        let error = match attempt().await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if retries == max || !error.is_worth_resending() {
            return Err(error);
        }
        retries += 1;
        let asked = error.asked_to_wait();
        let delay = asked.unwrap_or_else(|| backoff.delay(retries));
        tracing::debug!(retry = retries, most = max, wait = ?delay, %error, "the request is sent again");
        match pace.filter(|_| asked.is_some()) {
            Some(pace) => pace.wait(delay).await,
            None => tokio::time::sleep(delay).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use futures_util::future::BoxFuture;
    use tokio::time::Instant;

    use super::*;

    /// Waits as long as it is told to, and remembers that.
    #[derive(Debug, Default)]
    struct Waits(Mutex<Vec<Duration>>);

    impl Pace for Waits {
        fn wait(&self, delay: Duration) -> BoxFuture<'_, ()> {
            self.0.lock().unwrap().push(delay);
            Box::pin(std::future::ready(()))
        }
    }

    fn refused(after: Option<Duration>) -> ModelError {
        ModelError::Status { status: 429, message: String::new(), after }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pace_decides_how_long_a_request_waits_for_its_provider() {
        let (pace, begun) = (Waits::default(), Instant::now());
        let delays = Mutex::new(vec![None, Some(Duration::from_secs(40)), Some(Duration::from_secs(20))]);
        let attempt = || async { delays.lock().unwrap().pop().map_or(Ok(()), |after| Err(refused(after))) };
        with_retries(4, Some(&pace), attempt).await.unwrap();
        assert_eq!(*pace.0.lock().unwrap(), [20, 40].map(Duration::from_secs), "only the provider makes others wait");
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }
}
