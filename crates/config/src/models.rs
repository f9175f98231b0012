//! What is known of models: by their names, or from a catalogue of the user's.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

/// The largest catalogue.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// What is known of a model. An unknown one has no known window, is not asked to reason, and calls one tool at a
/// time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelInfo {
    /// How many tokens fit.
    pub context_window: Option<i64>,
    /// Whether it takes an effort and sums up its reasoning.
    pub reasons: bool,
    /// Whether it may be told to make several calls in one answer.
    pub calls_in_parallel: bool,
    /// Whether it runs its commands in terminals.
    pub has_terminals: bool,
}

/// Beginnings of names, the more specific ones first.
const KNOWN: &[(&str, ModelInfo)] = &[
    (
        "gpt-5",
        ModelInfo { context_window: Some(272_000), reasons: true, calls_in_parallel: true, has_terminals: false },
    ),
    (
        "codex-mini",
        ModelInfo { context_window: Some(200_000), reasons: true, calls_in_parallel: false, has_terminals: false },
    ),
    (
        "codex-",
        ModelInfo { context_window: Some(272_000), reasons: true, calls_in_parallel: true, has_terminals: false },
    ),
    ("o3", ModelInfo { context_window: Some(200_000), reasons: true, calls_in_parallel: false, has_terminals: false }),
    (
        "o4-mini",
        ModelInfo { context_window: Some(200_000), reasons: true, calls_in_parallel: false, has_terminals: false },
    ),
    (
        "gpt-4.1",
        ModelInfo { context_window: Some(1_047_576), reasons: false, calls_in_parallel: true, has_terminals: false },
    ),
    (
        "gpt-4o",
        ModelInfo { context_window: Some(128_000), reasons: false, calls_in_parallel: true, has_terminals: false },
    ),
    (
        "gpt-oss",
        ModelInfo { context_window: Some(131_072), reasons: true, calls_in_parallel: false, has_terminals: false },
    ),
];

impl ModelInfo {
    /// Looks a model up by its name alone.
    fn of(name: &str) -> Self {
        let known = KNOWN.iter().find(|(beginning, _)| name.starts_with(beginning));
        known.map_or_else(Self::default, |(_, info)| *info)
    }
}

/// The models of a `model_catalog_json`, which newer releases read too.
#[derive(Debug, Default)]
pub struct Catalogue {
    models: HashMap<String, ModelInfo>,
}

#[derive(Deserialize)]
struct CatalogueFile {
    models: Vec<CatalogueModel>,
}

#[derive(Deserialize)]
struct CatalogueModel {
    slug: String,
    #[serde(default)]
    shell_type: Option<String>,
    #[serde(default)]
    context_window: Option<i64>,
    #[serde(default)]
    supports_parallel_tool_calls: bool,
    #[serde(default = "yes")]
    supports_reasoning_summaries: bool,
}

fn yes() -> bool {
    true
}

impl Catalogue {
    /// Reads a catalogue. One that cannot be read says why, and the thread goes on without.
    pub fn read(path: &Path) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| format!("model_catalog_json: {}: {error}", path.display());
        let text = codex_files::read_text(path, MOST_BYTES).map_err(|error| failed(&error))?;
        let file: CatalogueFile = serde_json::from_str(&text).map_err(|error| failed(&error))?;
        let info = |model: CatalogueModel| {
            let info = ModelInfo {
                context_window: model.context_window,
                reasons: model.supports_reasoning_summaries,
                calls_in_parallel: model.supports_parallel_tool_calls,
                has_terminals: model.shell_type.as_deref() == Some("unified_exec"),
            };
            (model.slug, info)
        };
        Ok(Self { models: file.models.into_iter().map(info).collect() })
    }

    /// Looks a model up.
    #[must_use]
    pub fn info(&self, name: &str) -> ModelInfo {
        self.models.get(name).copied().unwrap_or_else(|| ModelInfo::of(name))
    }
}

#[cfg(test)]
mod tests {
    use codex_files::testing::{Endless, soon};

    use super::*;

    #[test]
    fn a_catalogue_that_never_ends_says_why_it_is_not_read() {
        for kind in Endless::ALL {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("models.json");
            kind.make(&path).unwrap();
            let error = soon(move || Catalogue::read(&path).err()).unwrap().unwrap();
            assert!(error.ends_with(&format!("models.json: {}", kind.complaint(Some(MOST_BYTES)))), "{error}");
        }
    }
}
