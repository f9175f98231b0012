//! The user's rules about commands, as every session has them.

use codex_config::Home;

pub use codex_shell::{Rules, RulesError, Verdict};

use crate::full_message;

/// The rules that are in force for whoever has this home.
///
/// # Errors
/// When they cannot be read, or one of them is wrong.
pub fn in_force(home: &Home) -> Result<Rules, RulesError> {
    Rules::load(&home.rules())
}

/// The rules that are in force. Ones that cannot be read allow nothing, and the user is told.
pub fn or_none(home: &Home, warnings: &mut Vec<String>) -> Rules {
    in_force(home).unwrap_or_else(|error| {
        warnings.push(format!("the rules are not in force: {}", full_message(&error)));
        Rules::empty()
    })
}
