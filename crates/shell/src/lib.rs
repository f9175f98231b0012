//! Analyses command lines: what they run, whether that is harmless, what the user's rules say about it, and whether to
//! run it, ask, or refuse.
//!
//! Invariants: nothing is run, and nothing but rules files is read or written. A command counts as understood only if
//! every word of it is literal and means the same in sh, bash and zsh; as harmless only if program and arguments
//! together are known to be; and anything too large or too deep to check counts as neither.

mod actions;
mod amendment;
mod danger;
mod judge;
mod limits;
mod plain;
mod reach;
mod reason;
mod redirection;
mod rules;
mod safe;
mod script;
mod tree;
mod understand;
mod unwrap;
mod writes;

pub use actions::{parsed_commands, parsed_commands_or_whole};
pub use amendment::propose_amendment;
pub use danger::{Danger, Move, danger, moves};
pub use judge::{Answer, Question, SandboxState, judge, judge_typed};
pub use reason::Reason;
pub use rules::{Decision, Match, Rules, RulesError, Scope, Verdict, append_allow, remove_rule};
pub use safe::{Checkout, is_known_safe};
pub use understand::{Understood, understand};
pub use writes::written_files;
