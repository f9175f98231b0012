//! Work on files, off the async threads.
//!
//! Invariant: every request is answered in time. Work that hangs, for example on a file system that does not respond,
//! occupies its thread until it ends; so work on files that clients choose has a bounded number of threads.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use codex_protocol::rpc::ErrorObject;
use codex_tools::images::check_pictures;
use codex_wire::input::UserInput;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The time limit of a request that works on files.
pub(crate) const USUAL: Duration = Duration::from_secs(30);
/// The time limit of a request that copies or removes whole folders.
pub(crate) const LONG: Duration = Duration::from_secs(600);

/// The number of jobs of each kind that all clients of a server may run at once.
#[derive(Debug)]
pub(crate) struct Places {
    /// Files that clients read and write.
    pub(crate) files: Arc<Semaphore>,
    /// Single searches.
    pub(crate) searches: Arc<Semaphore>,
    /// Sessions of searches.
    pub(crate) sessions: Arc<Semaphore>,
}

impl Default for Places {
    fn default() -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Self { files: places(32), searches: places(4), sessions: places(64) }
    }
}

/// Runs blocking work on files of the home folder.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ErrorObject> + Send + 'static,
) -> Result<T, ErrorObject> {
    within(USUAL, tokio::task::spawn_blocking(work)).await
}

/// Runs blocking work on files that a client chose, once there is a free slot.
pub(crate) async fn in_place<T: Send + 'static>(
    places: &Arc<Semaphore>,
    limit: Duration,
    work: impl FnOnce() -> Result<T, ErrorObject> + Send + 'static,
) -> Result<T, ErrorObject> {
    let places = Arc::clone(places);
    within(limit, async {
        // The semaphore is never closed.
        let place = places.acquire_owned().await.ok();
        let done = tokio::task::spawn_blocking(move || {
            let _place = place;
            work()
        });
        done.await
    })
    .await
}

async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<Result<T, ErrorObject>, tokio::task::JoinError>>,
) -> Result<T, ErrorObject> {
    match timeout(limit, work).await {
        Ok(done) => done.map_err(|error| ErrorObject::internal(error.to_string()))?,
        Err(_) => Err(ErrorObject::internal(format!("the files could not be reached within {} s", limit.as_secs()))),
    }
}

/// Checks the input of a turn: its folder must exist, and its images must not be too large.
pub(crate) async fn check_turn(
    places: &Arc<Semaphore>,
    cwd: Option<&Path>,
    usual_cwd: &Path,
    input: &[UserInput],
) -> Result<(), ErrorObject> {
    let pictures = input.iter().filter(|item| matches!(item, UserInput::LocalImage { .. }));
    let pictures: Vec<UserInput> = pictures.cloned().collect();
    let cwd = cwd.filter(|cwd| cwd.is_absolute()).map(Path::to_owned);
    if cwd.is_none() && pictures.is_empty() {
        return Ok(());
    }
    let usual_cwd = usual_cwd.to_owned();
    in_place(places, USUAL, move || {
        if let Some(cwd) = cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
            return Err(ErrorObject::invalid(format!("the working directory {} does not exist", cwd.display())));
        }
        check_pictures(&pictures, &cwd.unwrap_or(usual_cwd)).map_err(ErrorObject::invalid)
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_that_hangs_is_answered_in_time_and_keeps_its_place() {
        let places = Arc::new(Semaphore::new(1));
        let (going_on, end) = mpsc::channel::<()>();
        let stuck = tokio::spawn({
            let places = Arc::clone(&places);
            async move { in_place(&places, USUAL, move || Ok(end.recv().is_err())).await }
        });
        while places.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let waiting = tokio::spawn({
            let places = Arc::clone(&places);
            async move { in_place(&places, USUAL, || Ok(())).await }
        });
        tokio::task::yield_now().await;
        // Work of another kind is not affected.
        assert_eq!(blocking(|| Ok(1)).await, Ok(1));
        tokio::time::advance(USUAL).await;
        let late = ErrorObject::internal("the files could not be reached within 30 s");
        assert_eq!(stuck.await.unwrap(), Err(late.clone()));
        assert_eq!(waiting.await.unwrap(), Err(late));
        drop(going_on);
        assert_eq!(in_place(&places, USUAL, || Ok(2)).await, Ok(2));
    }
}
