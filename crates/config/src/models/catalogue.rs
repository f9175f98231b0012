//! The user's own catalogue of models, which newer releases read too.

use std::path::Path;

use codex_wire::reasoning::ReasoningEffort;
use serde::Deserialize;

/// The maximum size of a catalogue.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

#[derive(Deserialize)]
struct CatalogueFile {
    models: Vec<CatalogueModel>,
}

/// A model as the user describes it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct CatalogueModel {
    pub(super) slug: String,
    #[serde(default)]
    pub(super) display_name: Option<String>,
    #[serde(default)]
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) visibility: Option<String>,
    #[serde(default)]
    pub(super) shell_type: Option<String>,
    #[serde(default)]
    pub(super) apply_patch_tool_type: Option<String>,
    #[serde(default)]
    pub(super) context_window: Option<i64>,
    #[serde(default)]
    pub(super) supported_reasoning_levels: Option<Vec<Level>>,
    #[serde(default)]
    pub(super) default_reasoning_level: Option<ReasoningEffort>,
    #[serde(default)]
    pub(super) input_modalities: Option<Vec<String>>,
    #[serde(default)]
    pub(super) multi_agent_version: Option<String>,
    #[serde(default)]
    pub(super) supports_parallel_tool_calls: bool,
    #[serde(default = "yes")]
    pub(super) supports_reasoning_summaries: bool,
}

/// A reasoning effort that a model supports.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Level {
    pub(super) effort: ReasoningEffort,
}

fn yes() -> bool {
    true
}

/// Reads a catalogue, or returns the reason why it cannot be read.
pub(super) fn read(path: &Path) -> Result<Vec<CatalogueModel>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("model_catalog_json: {}: {error}", path.display());
    let text = codex_files::read_text(path, MOST_BYTES).map_err(|error| failed(&error))?;
    let file: CatalogueFile = serde_json::from_str(&text).map_err(|error| failed(&error))?;
    Ok(file.models)
}

#[cfg(test)]
mod tests {
    use codex_files::testing::{Endless, soon};

    use super::*;

    #[test]
    fn an_endless_catalogue_is_reported() {
        for kind in Endless::ALL {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("models.json");
            kind.make(&path).unwrap();
            let error = soon(move || read(&path).err()).unwrap().unwrap();
            assert!(error.ends_with(&format!("models.json: {}", kind.complaint(Some(MOST_BYTES)))), "{error}");
        }
    }
}
