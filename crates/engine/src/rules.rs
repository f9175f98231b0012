//! The user's rules about commands, as every session has them.

use codex_config::Home;

pub use codex_shell::{Rules, RulesError, Verdict};

/// The rules that are in force for whoever has this home.
///
/// # Errors
/// When they cannot be read, or one of them is wrong.
pub fn in_force(home: &Home) -> Result<Rules, RulesError> {
    Rules::load(&home.rules())
}
