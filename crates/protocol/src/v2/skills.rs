//! `skills/*`: the skills of folders, in the spelling of this dialect.

use std::path::PathBuf;

use codex_wire::skill::{self, SkillErrorInfo, SkillScope};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lenient::or_default;

/// The parameters of `skills/list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SkillsListParams {
    /// The folders; by default, the working directory of the server.
    #[serde(default, deserialize_with = "or_default")]
    pub cwds: Vec<PathBuf>,
    /// Whether to read folders again.
    #[serde(default, deserialize_with = "or_default")]
    pub force_reload: bool,
}

/// The answer of `skills/list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SkillsListResponse {
    /// The skills of each folder, in the requested order.
    pub data: Vec<SkillsListEntry>,
}

/// The skills that apply to one folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "v2_SkillsListEntry"))]
pub struct SkillsListEntry {
    /// The folder.
    pub cwd: PathBuf,
    /// The skills.
    #[serde(default)]
    pub skills: Vec<SkillMetadata>,
    /// The files that could not be read as skills.
    #[serde(default)]
    pub errors: Vec<SkillErrorInfo>,
}

/// The metadata of a skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "v2_SkillMetadata"))]
#[serde(rename_all = "camelCase")]
pub struct SkillMetadata {
    /// Its name.
    pub name: String,
    /// Its intended use.
    pub description: String,
    /// A short form of it.
    #[serde(default, alias = "short_description", skip_serializing_if = "Option::is_none")]
    pub short_description: Option<String>,
    /// Its appearance: name, icons, colour, first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependencies: Option<Value>,
    /// Its `SKILL.md`.
    pub path: PathBuf,
    /// Its owner.
    pub scope: SkillScope,
    /// Whether it is enabled; absent in 0.77.
    #[serde(default = "enabled")]
    pub enabled: bool,
}

fn enabled() -> bool {
    true
}

impl From<skill::SkillsListEntry> for SkillsListEntry {
    fn from(entry: skill::SkillsListEntry) -> Self {
        let skills = entry.skills.into_iter().map(Into::into).collect();
        Self { cwd: entry.cwd, skills, errors: entry.errors }
    }
}

impl From<skill::SkillMetadata> for SkillMetadata {
    fn from(skill: skill::SkillMetadata) -> Self {
        let skill::SkillMetadata { name, description, short_description, path, scope } = skill;
        let (interface, dependencies) = (None, None);
        Self { name, description, short_description, interface, dependencies, path, scope, enabled: enabled() }
    }
}

/// The parameters of `skills/config/write`: a skill by name or by file, and whether it is enabled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SkillsConfigWriteParams {
    /// Its name.
    #[serde(default)]
    pub name: Option<String>,
    /// Its `SKILL.md`.
    #[serde(default)]
    pub path: Option<PathBuf>,
    /// Whether it counts.
    pub enabled: bool,
}

/// The answer of `skills/config/write`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SkillsConfigWriteResponse {
    /// Whether it counts now.
    pub effective_enabled: bool,
}

/// The parameters of `skills/extraRoots/set`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SkillsExtraRootsSetParams {
    /// Folders to search for skills, in addition to the default ones.
    pub extra_roots: Vec<PathBuf>,
}
