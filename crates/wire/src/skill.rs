//! Skills: folders of instructions that a model reads when it needs them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

spelled! {
    /// The scope of a skill.
    pub open enum SkillScope {
        "user" => User,
        "repo" => Repo,
        "system" => System,
        "admin" => Admin,
    }
}

/// The skills of one folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct SkillsListEntry {
    /// The folder.
    pub cwd: PathBuf,
    /// The skills.
    #[serde(default)]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::few()"))]
    pub skills: Vec<SkillMetadata>,
    /// Files that could not be read as skills.
    #[serde(default)]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::few()"))]
    pub errors: Vec<SkillErrorInfo>,
}

/// The metadata of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct SkillMetadata {
    /// Its name.
    pub name: String,
    /// Its intended use.
    pub description: String,
    /// A short form of it.
    #[serde(default)]
    pub short_description: Option<String>,
    /// Its `SKILL.md`.
    pub path: PathBuf,
    /// Its owner.
    pub scope: SkillScope,
}

/// A file that could not be read as a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct SkillErrorInfo {
    /// The file.
    pub path: PathBuf,
    pub message: String,
}
