//! How well paths match a query, and the best of them.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
    num::NonZeroUsize,
    sync::Arc,
};

use codex_protocol::v2::search::{FuzzyFileSearchMatchType, FuzzyFileSearchResult};
use nucleo_matcher::{
    Config, Matcher, Utf32Str,
    pattern::{AtomKind, CaseMatching, Normalization, Pattern},
};

use crate::Scope;
use crate::walk::Entry;

/// The rest of a longer query is not looked at: nobody types it, and matching costs its length times the path's.
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
    /// Begins with nothing; there is nothing to rank for a query without letters.
    pub(crate) fn new(query: &str, limit: NonZeroUsize) -> Option<Self> {
        let query: String = query.trim().chars().take(MAX_QUERY).collect();
        let pattern = Pattern::new(&query, CaseMatching::Smart, Normalization::Smart, AtomKind::Fuzzy);
        let matcher = Matcher::new(Config::DEFAULT);
        let ranking = || Self { pattern, matcher, limit, best: BinaryHeap::new(), buffer: Vec::new() };
        (!query.is_empty()).then(ranking)
    }

    /// Takes an entry in if it matches better than the worst of the best.
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

    /// The best matches so far, the best first.
    pub(crate) fn results(&mut self, scope: &Scope) -> Vec<FuzzyFileSearchResult> {
        let mut best: Vec<_> = self.best.iter().map(|Reverse(ranked)| ranked.clone()).collect();
        best.sort_by(|one, other| other.cmp(one));
        best.into_iter().filter_map(|ranked| self.result(&ranked, scope)).collect()
    }

    fn result(&mut self, ranked: &Ranked, scope: &Scope) -> Option<FuzzyFileSearchResult> {
        let root = scope.roots.get(ranked.root)?;
        let kind = if ranked.folder { FuzzyFileSearchMatchType::Directory } else { FuzzyFileSearchMatchType::File };
        let mut indices = Vec::new();
        let path = Utf32Str::new(&ranked.path, &mut self.buffer);
        self.pattern.indices(path, &mut self.matcher, &mut indices);
        // Words of a query are matched one by one and may meet in the same letters.
        indices.sort_unstable();
        indices.dedup();
        Some(FuzzyFileSearchResult {
            root: root.clone(),
            path: ranked.path.to_string(),
            // Who wants files alone knows what everything is.
            match_type: scope.folders.then_some(kind),
            file_name: ranked.path.rsplit('/').next().unwrap_or_default().to_owned(),
            score: ranked.score,
            indices: Some(indices),
        })
    }
}

/// A match. The greater one is the better one: by score, then by the alphabet, then by the order of the roots.
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
