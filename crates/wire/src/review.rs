//! Reviews of changes: what is asked and what was found.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

tagged! {
    /// What a review looks at.
    pub enum ReviewTarget by "type" {
        /// Whatever is not committed yet.
        "uncommittedChanges" | "uncommitted_changes" => UncommittedChanges,
        /// What this branch adds to another.
        "baseBranch" | "base_branch" => BaseBranch(BaseBranchTarget),
        /// One commit.
        "commit" => Commit(CommitTarget),
        /// Whatever the text says.
        "custom" => Custom(CustomTarget),
    }
}

impl ReviewTarget {
    /// A review that follows the given text.
    #[must_use]
    pub fn custom(instructions: impl Into<String>) -> Self {
        Self::Custom(CustomTarget { instructions: instructions.into() })
    }
}

/// The branch a review compares with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct BaseBranchTarget {
    /// Its name.
    pub branch: String,
}

/// The commit a review looks at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct CommitTarget {
    /// Its hash.
    pub sha: String,
    /// Its first line, for people.
    #[serde(default)]
    pub title: Option<String>,
}

/// A review in the user's own words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct CustomTarget {
    /// The words.
    pub instructions: String,
}

/// A wish for a review. It is also read in the form of 0.42, `{prompt, user_facing_hint}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ReviewRequest {
    /// What to look at.
    pub target: ReviewTarget,
    /// What to call it in front of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_facing_hint: Option<String>,
}

impl<'de> Deserialize<'de> for ReviewRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let AnyRequest { target, prompt, user_facing_hint } = AnyRequest::deserialize(deserializer)?;
        let target = target.or_else(|| prompt.map(ReviewTarget::custom));
        Ok(Self { target: target.ok_or_else(|| D::Error::missing_field("target"))?, user_facing_hint })
    }
}

/// Marks the start of a review. The form of 0.42, `{prompt, user_facing_hint}`, is read too.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct EnteredReviewModeEvent {
    /// What is looked at.
    pub target: ReviewTarget,
    /// What to call it in front of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_facing_hint: Option<String>,
    /// What the reviewer was told, for clients that know no target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

impl<'de> Deserialize<'de> for EnteredReviewModeEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let AnyRequest { target, prompt, user_facing_hint } = AnyRequest::deserialize(deserializer)?;
        let target = target.or_else(|| prompt.clone().map(ReviewTarget::custom));
        Ok(Self { target: target.ok_or_else(|| D::Error::missing_field("target"))?, user_facing_hint, prompt })
    }
}

/// Both forms of a wish at once.
#[derive(Deserialize)]
struct AnyRequest {
    target: Option<ReviewTarget>,
    prompt: Option<String>,
    user_facing_hint: Option<String>,
}

/// Marks the end of a review.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ExitedReviewModeEvent {
    /// What was found; absent if the review was broken off.
    #[serde(default)]
    pub review_output: Option<ReviewOutputEvent>,
}

/// What a review found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ReviewOutputEvent {
    /// The findings, worst first.
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::few()"))]
    pub findings: Vec<ReviewFinding>,
    /// The verdict in a few words.
    pub overall_correctness: String,
    /// Why.
    pub overall_explanation: String,
    /// How sure the reviewer is, from 0 to 1.
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::any_score()"))]
    pub overall_confidence_score: f64,
}

/// One thing a review found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ReviewFinding {
    /// It in a line.
    pub title: String,
    /// It in full.
    pub body: String,
    /// How sure the reviewer is, from 0 to 1.
    #[serde(default)]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::any_score()"))]
    pub confidence_score: f64,
    /// How bad it is; 0 is worst.
    #[serde(default)]
    pub priority: i32,
    /// Where it is.
    pub code_location: ReviewCodeLocation,
}

/// Where a finding is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ReviewCodeLocation {
    /// The file.
    pub absolute_file_path: PathBuf,
    /// The lines.
    pub line_range: ReviewLineRange,
}

/// Lines of a file, counted from 1, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ReviewLineRange {
    /// The first line.
    pub start: u32,
    /// The last line.
    pub end: u32,
}
