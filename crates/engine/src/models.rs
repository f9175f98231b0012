//! What is known of models by their names.

/// What is known of a model. An unknown one has no known window, is not asked to reason, and calls one tool at a
/// time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ModelInfo {
    /// How many tokens fit.
    pub(crate) context_window: Option<i64>,
    /// Whether it takes an effort and sums up its reasoning.
    pub(crate) reasons: bool,
    /// Whether it may be told to make several calls in one answer.
    pub(crate) calls_in_parallel: bool,
}

/// Beginnings of names, the more specific ones first.
const KNOWN: &[(&str, ModelInfo)] = &[
    ("gpt-5", ModelInfo { context_window: Some(272_000), reasons: true, calls_in_parallel: true }),
    ("codex-mini", ModelInfo { context_window: Some(200_000), reasons: true, calls_in_parallel: false }),
    ("codex-", ModelInfo { context_window: Some(272_000), reasons: true, calls_in_parallel: true }),
    ("o3", ModelInfo { context_window: Some(200_000), reasons: true, calls_in_parallel: false }),
    ("o4-mini", ModelInfo { context_window: Some(200_000), reasons: true, calls_in_parallel: false }),
    ("gpt-4.1", ModelInfo { context_window: Some(1_047_576), reasons: false, calls_in_parallel: true }),
    ("gpt-4o", ModelInfo { context_window: Some(128_000), reasons: false, calls_in_parallel: true }),
    ("gpt-oss", ModelInfo { context_window: Some(131_072), reasons: true, calls_in_parallel: false }),
];

impl ModelInfo {
    /// Looks a model up.
    pub(crate) fn of(name: &str) -> Self {
        let known = KNOWN.iter().find(|(beginning, _)| name.starts_with(beginning));
        known.map_or_else(Self::default, |(_, info)| *info)
    }
}
