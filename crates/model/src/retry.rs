//! Retries of a request whose answer has not begun.

use crate::{Backoff, ModelError};

/// Runs an attempt until it succeeds, fails permanently, or has been repeated `max` times.
///
/// A wait that the provider requests is honoured; otherwise the delays of [`Backoff`] apply.
pub(crate) async fn with_retries<T, F>(max: u32, mut attempt: impl FnMut() -> F) -> Result<T, ModelError>
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
        let delay = error.asked_to_wait().unwrap_or_else(|| backoff.delay(retries));
        tracing::debug!(retry = retries, most = max, wait = ?delay, %error, "the request is sent again");
        tokio::time::sleep(delay).await;
    }
}
