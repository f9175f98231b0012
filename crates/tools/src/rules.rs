//! The user's rules about commands.

use codex_config::Home;

pub use codex_shell::{Rules, RulesError, Verdict};

use crate::full_message;

/// Loads the rules of a home.
///
/// # Errors
/// When they cannot be read, or one of them is wrong.
pub fn in_force(home: &Home) -> Result<Rules, RulesError> {
    Rules::load(&home.rules())
}

/// Loads the rules. If they cannot be read, they allow nothing, and the user is warned.
pub fn or_none(home: &Home, warnings: &mut Vec<String>) -> Rules {
    in_force(home).unwrap_or_else(|error| {
        warnings.push(format!("the rules are not in force: {}", full_message(&error)));
        Rules::empty()
    })
}
