//! Collaboration modes and their settings. Members are in snake case everywhere.

use serde::{Deserialize, Serialize};

use crate::reasoning::ReasoningEffort;

spelled! {
    /// A collaboration mode.
    #[derive(Default)]
    pub open enum ModeKind {
        /// Nothing is changed before a plan is agreed on.
        "plan" => Plan,
        /// The default.
        #[default]
        "default" => Default,
    }
}

/// A collaboration mode with its settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct CollaborationMode {
    pub mode: ModeKind,
    pub settings: CollaborationSettings,
}

/// The settings of a mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct CollaborationSettings {
    /// The model; it stays as it is if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The reasoning effort.
    #[serde(default)]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Instructions for the mode; the built-in ones if unset.
    #[serde(default)]
    pub developer_instructions: Option<String>,
}

/// A collaboration mode without the settings that every thread has anyway.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mode {
    pub kind: ModeKind,
    /// Instructions for the mode; the built-in ones if unset.
    pub instructions: Option<String>,
}

impl Mode {
    /// A mode without instructions.
    #[must_use]
    pub fn of(mode: &CollaborationMode) -> Self {
        Self { kind: mode.mode.clone(), instructions: mode.settings.developer_instructions.clone() }
    }

    /// The mode with its settings.
    #[must_use]
    pub fn with(&self, model: String, reasoning_effort: Option<ReasoningEffort>) -> CollaborationMode {
        let developer_instructions = self.instructions.clone();
        let settings = CollaborationSettings { model: Some(model), reasoning_effort, developer_instructions };
        CollaborationMode { mode: self.kind.clone(), settings }
    }
}
