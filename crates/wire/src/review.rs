//! Reviews of changes: their targets and findings.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

tagged! {
    /// The target of a review.
    pub enum ReviewTarget by "type" {
        /// All uncommitted changes.
        "uncommittedChanges" | "uncommitted_changes" => UncommittedChanges,
        /// The changes since a base branch.
        "baseBranch" | "base_branch" => BaseBranch(BaseBranchTarget),
        /// One commit.
        "commit" => Commit(CommitTarget),
        /// Custom instructions.
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

/// The base branch of a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct BaseBranchTarget {
    /// Its name.
    pub branch: String,
}

/// The commit that is reviewed.
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

/// A review with custom instructions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct CustomTarget {
    /// The instructions.
    pub instructions: String,
}

/// A request for a review. It is also read in the form of 0.42, `{prompt, user_facing_hint}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ReviewRequest {
    pub target: ReviewTarget,
    /// The description shown to the user.
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
    pub target: ReviewTarget,
    /// The description shown to the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_facing_hint: Option<String>,
    /// The instructions of the reviewer, for clients that do not know targets.
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

/// Both forms of a request at once.
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
    /// The findings; missing if the review was interrupted.
    #[serde(default)]
    pub review_output: Option<ReviewOutputEvent>,
}

/// The findings of a review.
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
    /// The reason.
    pub overall_explanation: String,
    /// The reviewer's confidence, from 0 to 1.
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::any_score()"))]
    pub overall_confidence_score: f64,
}

/// One finding of a review.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ReviewFinding {
    /// Its title.
    pub title: String,
    /// Its full text.
    pub body: String,
    /// The reviewer's confidence, from 0 to 1.
    #[serde(default)]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::any_score()"))]
    pub confidence_score: f64,
    /// The priority; 0 is the highest.
    #[serde(default)]
    pub priority: i32,
    /// Its location.
    pub code_location: ReviewCodeLocation,
}

/// The location of a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ReviewCodeLocation {
    /// The file.
    pub absolute_file_path: PathBuf,
    /// The lines.
    pub line_range: ReviewLineRange,
}

/// Lines of a file, counted from 1, including both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ReviewLineRange {
    /// The first line.
    pub start: u32,
    /// The last line.
    pub end: u32,
}
