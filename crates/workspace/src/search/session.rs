//! A search whose query changes while the user types: the tree is walked once and matched again for each query.

use std::{
    io,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::{
    Match, Scope,
    ranking::Ranking,
    walk::{Entry, Walk},
};

/// The maximum size of a cached tree. A larger one is walked again for each query.
const MAX_REMEMBERED_BYTES: usize = 64 * 1024 * 1024;

/// The time limit for walking the tree. Entries not reached by then are not found.
const WALK_TIME: Duration = Duration::from_secs(60);

/// The interval at which a slow query reports its results so far.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// A report of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// The best matches so far.
    Updated {
        query: String,
        /// Best first.
        files: Vec<Match>,
    },
    /// Everything was searched for the latest query.
    Completed,
}

/// A search whose query can be changed. Dropping it stops it.
#[derive(Debug)]
pub struct Session {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Increases with each query, so that the worker notices without a lock.
    newest: AtomicU64,
    wish: Mutex<PendingQuery>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct PendingQuery {
    /// The latest query and its number, until the worker takes it.
    query: Option<(u64, String)>,
    stopped: bool,
}

impl Shared {
    fn wish(&self) -> MutexGuard<'_, PendingQuery> {
        self.wish.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next query; `None` when the session is over.
    fn next(&self) -> Option<(u64, String)> {
        let mut wish = self.wish();
        loop {
            if wish.stopped {
                return None;
            }
            match wish.query.take() {
                Some(query) => return Some(query),
                None => wish = self.changed.wait(wish).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn is_newest(&self, number: u64) -> bool {
        self.newest.load(Ordering::Acquire) == number
    }
}

impl Session {
    /// Starts a session on a separate thread. Nothing is read before the first query.
    ///
    /// `report` is called from that thread, and never after the session was stopped or for a query that is no longer
    /// the latest. It must not call the session, which waits for it.
    pub fn start(scope: Scope, report: impl FnMut(Report) + Send + 'static) -> io::Result<Self> {
        Self::start_remembering(scope, MAX_REMEMBERED_BYTES, report)
    }

    fn start_remembering(scope: Scope, most: usize, report: impl FnMut(Report) + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let tree = Tree { walk: Some(Walk::new(&scope, WALK_TIME)), entries: Vec::new(), bytes: 0, most };
        let mut worker = Worker { shared: shared.clone(), scope, tree, report };
        thread::Builder::new().name("file-search".to_owned()).spawn(move || worker.run())?;
        Ok(Self { shared })
    }

    /// Changes the query.
    pub fn update(&self, query: impl Into<String>) {
        let mut wish = self.shared.wish();
        let number = self.shared.newest.fetch_add(1, Ordering::AcqRel) + 1;
        wish.query = Some((number, query.into()));
        self.shared.changed.notify_one();
    }

    /// Ends the session; nothing is reported after this returns.
    pub fn stop(&self) {
        let mut wish = self.shared.wish();
        wish.stopped = true;
        self.shared.newest.fetch_add(1, Ordering::AcqRel);
        self.shared.changed.notify_one();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The known part of the tree.
struct Tree {
    /// The rest of the walk; `None` when everything is known.
    walk: Option<Walk>,
    entries: Vec<Entry>,
    bytes: usize,
    most: usize,
}

impl Tree {
    /// The next unknown entry. A tree that is too large to cache is dropped, and stays unknown.
    fn explore(&mut self) -> Option<Entry> {
        let entry = self.walk.as_mut()?.next();
        match &entry {
            Some(entry) => {
                self.bytes += entry.path.len() + size_of::<Entry>();
                if self.bytes <= self.most {
                    self.entries.push(entry.clone());
                } else {
                    self.entries = Vec::new();
                }
            }
            None => self.walk = None,
        }
        entry
    }

    fn is_too_large(&self) -> bool {
        self.bytes > self.most
    }
}

struct Worker<R> {
    shared: Arc<Shared>,
    scope: Scope,
    tree: Tree,
    report: R,
}

impl<R: FnMut(Report)> Worker<R> {
    fn run(&mut self) {
        while let Some((number, query)) = self.shared.next() {
            let Some(mut ranking) = Ranking::new(&query, self.scope.limit) else {
                self.report(number, &query, Vec::new());
                self.complete(number);
                continue;
            };
            if self.look(number, &query, &mut ranking) {
                let files = ranking.results(&self.scope.roots);
                self.report(number, &query, files);
                self.complete(number);
            }
        }
    }

    /// Searches everything and returns whether the query is still the latest.
    fn look(&mut self, number: u64, query: &str, ranking: &mut Ranking) -> bool {
        if self.tree.is_too_large() {
            self.tree.walk = Some(Walk::new(&self.scope, WALK_TIME));
        }
        for entry in &self.tree.entries {
            if !self.shared.is_newest(number) {
                return false;
            }
            ranking.consider(entry);
        }
        let mut shown = Instant::now();
        while let Some(entry) = self.tree.explore() {
            if !self.shared.is_newest(number) {
                return false;
            }
            ranking.consider(&entry);
            if shown.elapsed() >= REPORT_EVERY {
                let files = ranking.results(&self.scope.roots);
                self.report(number, query, files);
                shown = Instant::now();
            }
        }
        true
    }

    fn report(&mut self, number: u64, query: &str, files: Vec<Match>) {
        self.say(number, Report::Updated { query: query.to_owned(), files });
    }

    fn complete(&mut self, number: u64) {
        self.say(number, Report::Completed);
    }

    /// Reports under the lock, so that nothing is reported after a newer query or the end.
    fn say(&mut self, number: u64, report: Report) {
        let _wish = self.shared.wish();
        if self.shared.is_newest(number) {
            (self.report)(report);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, num::NonZeroUsize, path::Path, sync::mpsc};

    use tempfile::TempDir;

    use super::*;

    /// Sends a query and returns the paths of its last report.
    fn ask(session: &Session, reports: &mpsc::Receiver<Report>, query: &str) -> Vec<String> {
        session.update(query);
        let mut last = None;
        for report in reports {
            match (report, last.take()) {
                (Report::Updated { query: of, files }, _) if of == query => {
                    last = Some(files.into_iter().map(|file| file.path).collect());
                }
                (Report::Completed, Some(files)) => return files,
                // About the previous query.
                (Report::Updated { .. } | Report::Completed, _) => {}
            }
        }
        panic!("the session ended without an answer")
    }

    #[track_caller]
    fn start(folder: &Path, most: usize) -> (Session, mpsc::Receiver<Report>) {
        let (sender, reports) = mpsc::channel();
        let scope = Scope::files(vec![folder.to_owned()]);
        let session = Session::start_remembering(scope, most, move |report| drop(sender.send(report)));
        (session.expect("a thread starts"), reports)
    }

    fn tree() -> TempDir {
        let temp = TempDir::new().expect("a folder can be made");
        for name in ["alpha.txt", "beta.txt", "alpine.md"] {
            fs::write(temp.path().join(name), "").expect("a file can be made");
        }
        temp
    }

    #[test]
    fn the_tree_is_walked_once() {
        let temp = tree();
        let (session, reports) = start(temp.path(), MAX_REMEMBERED_BYTES);
        assert_eq!(ask(&session, &reports, "alp"), ["alpha.txt", "alpine.md"]);
        fs::write(temp.path().join("alps"), "").unwrap();
        assert_eq!(ask(&session, &reports, "bet"), ["beta.txt"]);
        assert_eq!(ask(&session, &reports, "alp"), ["alpha.txt", "alpine.md"]);
        assert_eq!(ask(&session, &reports, ""), [""; 0]);
    }

    #[test]
    fn a_tree_that_is_too_large_is_walked_again() {
        let temp = tree();
        let (session, reports) = start(temp.path(), 100);
        assert_eq!(ask(&session, &reports, "alp"), ["alpha.txt", "alpine.md"]);
        fs::write(temp.path().join("alps"), "").unwrap();
        assert_eq!(ask(&session, &reports, "alp"), ["alpha.txt", "alpine.md", "alps"]);
    }

    #[test]
    fn only_the_newest_query_completes() {
        let temp = tree();
        let (session, reports) = start(temp.path(), MAX_REMEMBERED_BYTES);
        for number in 0..100 {
            session.update(format!("x{number}"));
        }
        assert_eq!(ask(&session, &reports, "bet"), ["beta.txt"]);
    }

    #[test]
    fn nothing_is_reported_after_the_stop() {
        let temp = tree();
        let (session, reports) = start(temp.path(), MAX_REMEMBERED_BYTES);
        session.update("alp");
        session.stop();
        let before = reports.try_iter().count();
        assert!(before <= 2, "{before}");
        // The worker drops its end when it is done, so this waits for it.
        assert_eq!(reports.iter().count(), 0);
    }

    #[test]
    fn dropping_a_session_ends_its_thread() {
        let temp = tree();
        let (session, reports) = start(temp.path(), MAX_REMEMBERED_BYTES);
        drop(session);
        assert_eq!(reports.iter().count(), 0);
    }

    #[test]
    fn results_are_limited() {
        let temp = tree();
        let (sender, reports) = mpsc::channel();
        let scope = Scope { limit: NonZeroUsize::MIN, ..Scope::files(vec![temp.path().to_owned()]) };
        let session = Session::start(scope, move |report| drop(sender.send(report))).unwrap();
        assert_eq!(ask(&session, &reports, "alp"), ["alpha.txt"]);
    }
}
