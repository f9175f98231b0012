//! Parameters and responses without content.

use serde::{Deserialize, Serialize};

/// An object without members: the parameters of a method that takes none, or a response that only confirms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Empty {}
