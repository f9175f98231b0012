//! The built-in table of models. All knowledge about models is here.

use codex_wire::provider_traits::{PatchForm, ShellForm, ThinkingForm};
use codex_wire::reasoning::ReasoningEffort::{self, High, Low, Medium, Minimal, XHigh};

/// Whether a picker shows a model that is not the configured one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    Always,
    OnRequest,
    /// It represents all models with this prefix.
    Never,
}

/// A known model. It also applies to longer names with this prefix that have no row.
pub(super) struct Row {
    pub(super) id: &'static str,
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    /// The size of the context window in tokens.
    pub(super) window: i64,
    /// The supported efforts, lowest first; empty for a model that does not reason. The default is medium.
    pub(super) efforts: &'static [ReasoningEffort],
    /// Whether it may make several calls in one answer.
    pub(super) parallel: bool,
    pub(super) images: bool,
    /// The maximum length of its answers, for APIs that require it.
    pub(super) most_output: Option<u32>,
    pub(super) trained: Trained,
    pub(super) shown: Shown,
}

/// The tools that a model was trained on.
#[derive(Clone, Copy)]
pub(super) struct Trained {
    pub(super) patch: PatchForm,
    pub(super) shell: ShellForm,
    pub(super) thinking: ThinkingForm,
}

/// Patches and commands as arguments of functions.
const PLAIN: Trained = Trained { patch: PatchForm::Function, shell: ShellForm::Shell, thinking: ThinkingForm::None };
/// Patches as free text, and commands as one line.
const CODEX: Trained =
    Trained { patch: PatchForm::Freeform, shell: ShellForm::ShellCommand, thinking: ThinkingForm::None };
/// A model of the Messages API with adaptive reasoning.
const ADAPTIVE: Trained = Trained { thinking: ThinkingForm::Adaptive, ..PLAIN };
/// An older model of the Messages API, with a reasoning budget.
const BUDGET: Trained = Trained { thinking: ThinkingForm::Budget, ..PLAIN };

/// The default effort of a model that reasons.
pub(super) const DEFAULT_EFFORT: ReasoningEffort = Medium;

/// The models, the recommended ones first. Pickers do not show the older ones.
#[rustfmt::skip]
pub(super) const MODELS: &[Row] = &[
    Row { id: "gpt-5.1-codex", name: "GPT-5.1 Codex", description: "The default for work on code, from quick edits to long tasks.", window: 272_000, efforts: &[Low, Medium, High], parallel: true, images: true, most_output: None, trained: CODEX, shown: Shown::Always },
    Row { id: "gpt-5.1-codex-mini", name: "GPT-5.1 Codex mini", description: "Smaller and cheaper, for simple changes and many of them.", window: 272_000, efforts: &[Medium, High], parallel: true, images: true, most_output: None, trained: CODEX, shown: Shown::Always },
    Row { id: "gpt-5.2", name: "GPT-5.2", description: "A broad model with good judgement beyond code.", window: 272_000, efforts: &[Low, Medium, High, XHigh], parallel: true, images: true, most_output: None, trained: CODEX, shown: Shown::OnRequest },
    Row { id: "gpt-5.1-codex-max", name: "GPT-5.1 Codex max", description: "For the hardest tasks on code, with the most patience.", window: 272_000, efforts: &[Low, Medium, High, XHigh], parallel: true, images: true, most_output: None, trained: CODEX, shown: Shown::OnRequest },
    Row { id: "gpt-5.1", name: "GPT-5.1", description: "A broad model of the generation before 5.2.", window: 272_000, efforts: &[Low, Medium, High], parallel: true, images: true, most_output: None, trained: CODEX, shown: Shown::OnRequest },
    Row { id: "gpt-5-codex", name: "GPT-5 Codex", description: "The first model of this family that was made for code.", window: 272_000, efforts: &[Low, Medium, High], parallel: true, images: true, most_output: None, trained: CODEX, shown: Shown::OnRequest },
    Row { id: "gpt-5", name: "GPT-5", description: "The broad model that this family began with.", window: 272_000, efforts: &[Minimal, Low, Medium, High], parallel: true, images: true, most_output: None, trained: PLAIN, shown: Shown::OnRequest },
    Row { id: "codex-mini-latest", name: "Codex mini", description: "A small model for code of an older generation.", window: 200_000, efforts: &[Low, Medium, High], parallel: false, images: true, most_output: None, trained: PLAIN, shown: Shown::OnRequest },
    Row { id: "o3", name: "o3", description: "An older model that reasons at length.", window: 200_000, efforts: &[Low, Medium, High], parallel: false, images: true, most_output: None, trained: PLAIN, shown: Shown::OnRequest },
    Row { id: "o4-mini", name: "o4-mini", description: "An older small model that reasons.", window: 200_000, efforts: &[Low, Medium, High], parallel: false, images: true, most_output: None, trained: PLAIN, shown: Shown::OnRequest },
    Row { id: "gpt-4.1", name: "GPT-4.1", description: "An older model with a very large window that answers at once.", window: 1_047_576, efforts: &[], parallel: true, images: true, most_output: None, trained: PLAIN, shown: Shown::OnRequest },
    Row { id: "gpt-oss-120b", name: "gpt-oss 120B", description: "An open model for large machines of one's own.", window: 131_072, efforts: &[Low, Medium, High], parallel: false, images: false, most_output: None, trained: PLAIN, shown: Shown::OnRequest },
    Row { id: "gpt-oss-20b", name: "gpt-oss 20B", description: "An open model for smaller machines of one's own.", window: 131_072, efforts: &[Low, Medium, High], parallel: false, images: false, most_output: None, trained: PLAIN, shown: Shown::OnRequest },
    Row { id: "codex-", name: "", description: "", window: 272_000, efforts: &[Low, Medium, High], parallel: true, images: true, most_output: None, trained: CODEX, shown: Shown::Never },
    Row { id: "codex-mini", name: "", description: "", window: 200_000, efforts: &[Low, Medium, High], parallel: false, images: true, most_output: None, trained: PLAIN, shown: Shown::Never },
    Row { id: "gpt-4o", name: "", description: "", window: 128_000, efforts: &[], parallel: true, images: true, most_output: None, trained: PLAIN, shown: Shown::Never },
    Row { id: "gpt-oss", name: "", description: "", window: 131_072, efforts: &[Low, Medium, High], parallel: false, images: false, most_output: None, trained: PLAIN, shown: Shown::Never },
    Row { id: "claude-", name: "", description: "", window: 200_000, efforts: &[Low, Medium, High, XHigh], parallel: true, images: true, most_output: Some(64_000), trained: ADAPTIVE, shown: Shown::Never },
    Row { id: "claude-opus-4-6", name: "", description: "", window: 200_000, efforts: &[Low, Medium, High, XHigh], parallel: true, images: true, most_output: Some(128_000), trained: ADAPTIVE, shown: Shown::Never },
    Row { id: "claude-sonnet-4-6", name: "", description: "", window: 200_000, efforts: &[Low, Medium, High, XHigh], parallel: true, images: true, most_output: Some(64_000), trained: ADAPTIVE, shown: Shown::Never },
    Row { id: "claude-opus-4-7", name: "", description: "", window: 200_000, efforts: &[Low, Medium, High, XHigh], parallel: true, images: true, most_output: Some(128_000), trained: ADAPTIVE, shown: Shown::Never },
    Row { id: "claude-opus-4-0", name: "", description: "", window: 200_000, efforts: &[Low, Medium, High], parallel: true, images: true, most_output: Some(32_000), trained: BUDGET, shown: Shown::Never },
    Row { id: "claude-opus-4-1", name: "", description: "", window: 200_000, efforts: &[Low, Medium, High], parallel: true, images: true, most_output: Some(32_000), trained: BUDGET, shown: Shown::Never },
    Row { id: "claude-opus-4-2025", name: "", description: "", window: 200_000, efforts: &[Low, Medium, High], parallel: true, images: true, most_output: Some(32_000), trained: BUDGET, shown: Shown::Never },
    Row { id: "claude-opus-4-5", name: "", description: "", window: 200_000, efforts: &[Low, Medium, High], parallel: true, images: true, most_output: Some(64_000), trained: BUDGET, shown: Shown::Never },
    Row { id: "claude-sonnet-4-0", name: "", description: "", window: 200_000, efforts: &[Low, Medium, High], parallel: true, images: true, most_output: Some(64_000), trained: BUDGET, shown: Shown::Never },
    Row { id: "claude-sonnet-4-2025", name: "", description: "", window: 200_000, efforts: &[Low, Medium, High], parallel: true, images: true, most_output: Some(64_000), trained: BUDGET, shown: Shown::Never },
    Row { id: "claude-sonnet-4-5", name: "", description: "", window: 200_000, efforts: &[Low, Medium, High], parallel: true, images: true, most_output: Some(64_000), trained: BUDGET, shown: Shown::Never },
    Row { id: "claude-haiku-4-5", name: "", description: "", window: 200_000, efforts: &[Low, Medium, High], parallel: true, images: true, most_output: Some(64_000), trained: BUDGET, shown: Shown::Never },
    Row { id: "claude-3-7", name: "", description: "", window: 200_000, efforts: &[Low, Medium, High], parallel: true, images: true, most_output: Some(64_000), trained: BUDGET, shown: Shown::Never },
    Row { id: "claude-3", name: "", description: "", window: 200_000, efforts: &[], parallel: true, images: true, most_output: Some(8_192), trained: PLAIN, shown: Shown::Never },
    Row { id: "claude-3-haiku", name: "", description: "", window: 200_000, efforts: &[], parallel: true, images: true, most_output: Some(4_096), trained: PLAIN, shown: Shown::Never },
    Row { id: "gemini-", name: "", description: "", window: 1_048_576, efforts: &[Low, Medium, High], parallel: true, images: true, most_output: Some(65_536), trained: PLAIN, shown: Shown::Never },
];

/// The row of a model: its own, or the one with the longest matching prefix.
pub(super) fn row(name: &str) -> Option<&'static Row> {
    MODELS.iter().filter(|row| name.starts_with(row.id)).max_by_key(|row| row.id.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DEFAULT_MODEL;

    #[test]
    fn the_table_is_consistent() {
        assert!(MODELS.iter().any(|row| row.id == DEFAULT_MODEL && row.shown == Shown::Always));
        for row in MODELS {
            assert!(row.efforts.is_empty() || row.efforts.contains(&DEFAULT_EFFORT), "{}", row.id);
            assert_eq!(MODELS.iter().filter(|other| other.id == row.id).count(), 1, "{}", row.id);
            assert_eq!(row.name.is_empty(), row.shown == Shown::Never, "{}", row.id);
        }
    }

    #[test]
    fn the_row_with_the_longest_name_counts() {
        let id = |name: &str| row(name).map(|row| row.id);
        for (name, expected) in [
            ("gpt-5.1-codex", Some("gpt-5.1-codex")),
            ("gpt-5.1-codex-mini-2026", Some("gpt-5.1-codex-mini")),
            ("gpt-5.9-unheard-of", Some("gpt-5")),
            ("codex-mini-2025", Some("codex-mini")),
            ("codex-large", Some("codex-")),
            ("gpt-oss:20b", Some("gpt-oss")),
            ("gpt-4o-mini", Some("gpt-4o")),
            ("claude-opus-4-20250514", Some("claude-opus-4-2025")),
            ("claude-opus-4-6-fast", Some("claude-opus-4-6")),
            ("claude-opus-4-8", Some("claude-")),
            ("claude-opus-5", Some("claude-")),
            ("claude-3-5-haiku", Some("claude-3")),
            ("mock-model", None),
            ("", None),
        ] {
            assert_eq!(id(name), expected, "{name}");
        }
    }
}
