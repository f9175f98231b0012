//! Chooses the rule to offer in an approval request.

use crate::rules::too_broad;
use crate::safe::command_is_safe;
use crate::understand::{Understood, script, understand};

/// The words of a rule that would have allowed a command, if one is worth offering.
///
/// For a plain command it is the command itself, without harmless ones next to it; for a script that is not understood,
/// the script as a whole. Nothing is offered for a dangerous command or one that would need more than one rule.
#[must_use]
pub fn propose_amendment(argv: &[String]) -> Option<Vec<String>> {
    let proposal = match understand(argv) {
        Understood::Commands(mut commands) => {
            if commands.len() > 1 {
                commands.retain(|command| !command_is_safe(command));
                commands.dedup();
            }
            <[_; 1]>::try_from(commands).ok().map(|[only]| only)?
        }
        Understood::No(reason) if reason.is_limit() => return None,
        Understood::No(_) => {
            script(argv)?;
            argv.to_vec()
        }
    };
    too_broad(&proposal).is_none().then_some(proposal)
}
