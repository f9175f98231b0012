//! Parameters and answers that say nothing.

use serde::{Deserialize, Serialize};

/// An object without members: the parameters of a method that takes none, or an answer that only says "done".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Empty {}
