//! Reviews: what the reviewer is asked, and what its answer says.

use codex_log::review::describe;
use codex_wire::review::{ReviewOutputEvent, ReviewTarget};

/// What the reviewer is told before anything else.
pub(crate) const INSTRUCTIONS: &str = include_str!("../prompts/review.md");

/// What the reviewer is asked.
pub(crate) fn prompt(target: &ReviewTarget) -> String {
    match target {
        ReviewTarget::UncommittedChanges => {
            "Review the changes that are not committed yet: staged, unstaged and untracked files.".to_owned()
        }
        ReviewTarget::BaseBranch(base) => format!(
            "Review what this branch changes against {branch}: run `git diff $(git merge-base HEAD {branch})`.",
            branch = base.branch
        ),
        ReviewTarget::Commit(commit) => {
            let title = commit.title.as_ref().map(|title| format!(" ({title})")).unwrap_or_default();
            format!("Review the commit {}{title}: run `git show {}`.", commit.sha, commit.sha)
        }
        ReviewTarget::Custom(custom) => custom.instructions.clone(),
        ReviewTarget::Other(_) => "Review the changes in this folder.".to_owned(),
    }
}

/// What to call a target in a few words.
#[must_use]
pub fn hint(target: &ReviewTarget) -> String {
    match target {
        ReviewTarget::UncommittedChanges => "current changes".to_owned(),
        ReviewTarget::BaseBranch(base) => format!("changes against '{}'", base.branch),
        ReviewTarget::Commit(commit) => {
            let short: String = commit.sha.chars().take(7).collect();
            commit.title.as_ref().map_or_else(|| format!("commit {short}"), |title| format!("commit {short}: {title}"))
        }
        ReviewTarget::Custom(custom) => custom.instructions.trim().to_owned(),
        ReviewTarget::Other(_) => "changes".to_owned(),
    }
}

/// Reads the reviewer's answer: JSON, JSON with words or a fence around it, or just words.
pub(crate) fn read(answer: &str) -> ReviewOutputEvent {
    let object = answer.find('{').zip(answer.rfind('}')).and_then(|(from, to)| answer.get(from..=to));
    let read = object.and_then(|text| serde_json::from_str::<ReviewOutputEvent>(text).ok());
    // Any object reads as a review, since every part of one may be missing; one without a word in it is no review.
    let is_review = |output: &ReviewOutputEvent| !output.findings.is_empty() || !output.overall_explanation.is_empty();
    read.filter(is_review)
        .unwrap_or_else(|| ReviewOutputEvent { overall_explanation: answer.to_owned(), ..ReviewOutputEvent::default() })
}

/// What the model that goes on afterwards is told.
pub(crate) fn report(output: Option<&ReviewOutputEvent>) -> String {
    let result = match output {
        Some(output) => format!("These are its results:\n\n{}", describe(output)),
        None => "It was stopped before it had results.".to_owned(),
    };
    format!("<user_action>\nThe person had a review made in a session of its own. {result}\n</user_action>")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = r#"{"findings": [{"title": "Wrong sign", "body": "The sign is wrong.", "confidence_score": 0.9,
        "priority": 1, "code_location": {"absolute_file_path": "/src/a.py", "line_range": {"start": 3, "end": 4}}}],
        "overall_correctness": "patch is incorrect", "overall_explanation": "One bug.", "overall_confidence_score": 0.8}"#;

    #[test]
    fn an_answer_is_read_with_and_without_words_around_it() {
        for answer in [ANSWER.to_owned(), format!("Here it is:\n```json\n{ANSWER}\n```\nDone.")] {
            let output = read(&answer);
            assert_eq!(output.findings.len(), 1, "{answer}");
            assert_eq!(
                describe(&output),
                "One bug.\n\nReview comment:\n\n- Wrong sign — /src/a.py:3-4\n  The sign is wrong."
            );
        }
    }

    #[test]
    fn an_answer_in_words_is_the_explanation() {
        for answer in ["All good.", r#"{"answer":42}"#, "{broken", "} {"] {
            let output = read(answer);
            assert_eq!((output.findings.len(), output.overall_explanation.as_str()), (0, answer));
        }
    }
}
