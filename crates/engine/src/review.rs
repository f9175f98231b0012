//! Reviews: what the reviewer is asked, and what its answer says.

use codex_log::review::describe;
pub(crate) use codex_log::review::{ASKED, hint, read};
use codex_wire::review::{ReviewOutputEvent, ReviewTarget};

/// The instructions of the reviewer.
pub(crate) const INSTRUCTIONS: &str = include_str!("../prompts/review.md");

/// The request to the reviewer.
pub(crate) fn prompt(target: &ReviewTarget) -> String {
    match target {
        ReviewTarget::UncommittedChanges => {
            "Review the current code changes (staged, unstaged, and untracked files) and provide prioritized findings."
                .to_owned()
        }
        ReviewTarget::BaseBranch(base) => format!(
            "Review the code changes of this branch against {branch}: run `git diff $(git merge-base HEAD {branch})`. \
             Provide prioritized, actionable findings.",
            branch = base.branch
        ),
        ReviewTarget::Commit(commit) => {
            let title = commit.title.as_ref().map(|title| format!(" (\"{title}\")")).unwrap_or_default();
            let sha = &commit.sha;
            format!(
                "Review the code changes introduced by commit {sha}{title}. Provide prioritized, actionable findings."
            )
        }
        ReviewTarget::Custom(custom) => custom.instructions.clone(),
        ReviewTarget::Other(_) => "Review the changes in this folder.".to_owned(),
    }
}

/// The report for the model that continues afterwards.
pub(crate) fn report(output: Option<&ReviewOutputEvent>) -> String {
    let result = match output {
        Some(output) => format!("These are its results:\n\n{}", describe(output)),
        None => "It was stopped before it had results.".to_owned(),
    };
    format!("<user_action>\nThe person had a review made in a session of its own. {result}\n</user_action>")
}
