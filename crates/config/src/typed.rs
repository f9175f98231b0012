//! The types of the keys that clients show, for validating a text before it is written.
//!
//! Some of these keys apply only in certain runs, such as those of a profile, so loading the configuration does not
//! find every wrong value.

use codex_wire::{
    policy::SandboxMode,
    reasoning::{ReasoningEffort, ReasoningSummary, Verbosity},
};

use crate::{Reader, SandboxConfig, ValueError, WebSearchMode};

/// Reads every key with its type.
pub(crate) fn check_types(root: &Reader<'_>) -> Result<(), ValueError> {
    texts(root, &["model", "review_model"])?;
    root.integer::<i64>("model_context_window", 1..)?;
    root.integer::<i64>("model_auto_compact_token_limit", 1..)?;
    texts(root, &["model_provider"])?;
    root.approval_policy()?;
    root.word::<WebSearchMode>("web_search")?;
    root.word::<SandboxMode>("sandbox_mode")?;
    SandboxConfig::read(root)?;
    texts(root, &["forced_login_method"])?;
    root.section("tools")?.bool("view_image")?;
    texts(root, &["profile"])?;
    root.map("profiles", |profiles, name| profile(&profiles.section(name)?).map(Some))?;
    texts(root, &["instructions", "developer_instructions", "compact_prompt"])?;
    reasoning(root)
}

fn profile(entry: &Reader<'_>) -> Result<(), ValueError> {
    texts(entry, &["model", "model_provider"])?;
    entry.approval_policy()?;
    entry.word::<WebSearchMode>("web_search")?;
    reasoning(entry)?;
    texts(entry, &["chatgpt_base_url"])
}

fn reasoning(table: &Reader<'_>) -> Result<(), ValueError> {
    table.word::<ReasoningEffort>("model_reasoning_effort")?;
    table.word::<ReasoningSummary>("model_reasoning_summary")?;
    table.word::<Verbosity>("model_verbosity")?;
    Ok(())
}

fn texts(table: &Reader<'_>, keys: &[&str]) -> Result<(), ValueError> {
    keys.iter().try_for_each(|key| table.str(key).map(drop))
}
