//! How the user and the agent work together, and what such a mode sets. Members are spelled in snake case everywhere.

use serde::{Deserialize, Serialize};

use crate::reasoning::ReasoningEffort;

spelled! {
    /// A way to work together.
    #[derive(Default)]
    pub open enum ModeKind {
        /// Nothing is changed before a plan is agreed on.
        "plan" => Plan,
        /// The usual way.
        #[default]
        "default" => Default,
    }
}

/// A way to work together, with what it sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct CollaborationMode {
    /// Which way.
    pub mode: ModeKind,
    /// What it sets.
    pub settings: CollaborationSettings,
}

/// What a mode sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct CollaborationSettings {
    /// The model.
    pub model: String,
    /// How hard it thinks.
    #[serde(default)]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// What it is told of the mode; none leaves that to this program.
    #[serde(default)]
    pub developer_instructions: Option<String>,
}

/// A way to work together, without what every thread has set anyway.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mode {
    /// Which way.
    pub kind: ModeKind,
    /// What the model is told of it; none leaves that to this program.
    pub instructions: Option<String>,
}

impl Mode {
    /// The way alone.
    #[must_use]
    pub fn of(mode: &CollaborationMode) -> Self {
        Self { kind: mode.mode.clone(), instructions: mode.settings.developer_instructions.clone() }
    }

    /// The way with what it sets.
    #[must_use]
    pub fn with(&self, model: String, reasoning_effort: Option<ReasoningEffort>) -> CollaborationMode {
        let developer_instructions = self.instructions.clone();
        let settings = CollaborationSettings { model, reasoning_effort, developer_instructions };
        CollaborationMode { mode: self.kind.clone(), settings }
    }
}
