//! Scores paths against a query, and keeps the best.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
};

use nucleo_matcher::{
    Config, Matcher, Utf32Str,
    pattern::{AtomKind, CaseMatching, Normalization, Pattern},
};

use super::{Match, walk::Entry};

/// The rest of a longer query is ignored: nobody types it, and matching costs its length times the path's.
const MAX_QUERY: usize = 512;

/// The best matches of one query so far.
pub(crate) struct Ranking {
    pattern: Pattern,
    matcher: Matcher,
    limit: NonZeroUsize,
    /// The worst of the best is on top.
    best: BinaryHeap<Reverse<Ranked>>,
    buffer: Vec<char>,
}

impl Ranking {
    /// Starts empty; `None` for a query without letters.
    pub(crate) fn new(query: &str, limit: NonZeroUsize) -> Option<Self> {
        let query: String = query.trim().chars().take(MAX_QUERY).collect();
        let pattern = Pattern::new(&query, CaseMatching::Smart, Normalization::Smart, AtomKind::Fuzzy);
        let matcher = Matcher::new(Config::DEFAULT);
        let ranking = || Self { pattern, matcher, limit, best: BinaryHeap::new(), buffer: Vec::new() };
        (!query.is_empty()).then(ranking)
    }

    /// Adds an entry if it matches better than the worst of the best.
    pub(crate) fn consider(&mut self, entry: &Entry) {
        let path = Utf32Str::new(&entry.path, &mut self.buffer);
        let Some(score) = self.pattern.score(path, &mut self.matcher) else { return };
        let ranked = Ranked { score, path: entry.path.clone(), root: entry.root, folder: entry.folder };
        if self.best.len() < self.limit.get() {
            self.best.push(Reverse(ranked));
        } else if let Some(mut worst) = self.best.peek_mut()
            && ranked > worst.0
        {
            *worst = Reverse(ranked);
        }
    }

    /// The best matches so far, best first.
    pub(crate) fn results(&mut self, roots: &[PathBuf]) -> Vec<Match> {
        let mut best: Vec<_> = self.best.iter().map(|Reverse(ranked)| ranked.clone()).collect();
        best.sort_by(|one, other| other.cmp(one));
        best.into_iter().filter_map(|ranked| Some(self.result(&ranked, roots.get(ranked.root)?))).collect()
    }

    fn result(&mut self, ranked: &Ranked, root: &Path) -> Match {
        let mut indices = Vec::new();
        let path = Utf32Str::new(&ranked.path, &mut self.buffer);
        self.pattern.indices(path, &mut self.matcher, &mut indices);
        // The words of a query are matched one by one and may share letters.
        indices.sort_unstable();
        indices.dedup();
        Match {
            root: root.to_owned(),
            path: ranked.path.to_string(),
            is_folder: ranked.folder,
            file_name: ranked.path.rsplit('/').next().unwrap_or_default().to_owned(),
            score: ranked.score,
            indices,
        }
    }
}

/// A match. The greater one is better: by score, then alphabetically, then by the order of the roots.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ranked {
    score: u32,
    path: Arc<str>,
    root: usize,
    folder: bool,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_name = || other.path.cmp(&self.path);
        self.score.cmp(&other.score).then_with(by_name).then_with(|| other.root.cmp(&self.root))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
