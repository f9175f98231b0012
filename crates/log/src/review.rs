//! Reviews as text: the description of a target, the findings in a reviewer's answer, and their text.

use codex_wire::review::{ReviewFinding, ReviewOutputEvent, ReviewTarget};

/// The prefix of the ids of items that contain the request to a reviewer.
pub const ASKED: &str = "review:";

/// A short description of a target.
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

/// Parses the reviewer's answer: JSON, JSON surrounded by text or a code fence, or plain text.
#[must_use]
pub fn read(answer: &str) -> ReviewOutputEvent {
    let object = answer.find('{').zip(answer.rfind('}')).and_then(|(from, to)| answer.get(from..=to));
    let read = object.and_then(|text| serde_json::from_str::<ReviewOutputEvent>(text).ok());
    // Any object parses as a review, because all its members are optional; one without text is not a review.
    let is_review = |output: &ReviewOutputEvent| !output.findings.is_empty() || !output.overall_explanation.is_empty();
    read.filter(is_review)
        .unwrap_or_else(|| ReviewOutputEvent { overall_explanation: answer.to_owned(), ..ReviewOutputEvent::default() })
}

/// The findings as text.
#[must_use]
pub fn describe(output: &ReviewOutputEvent) -> String {
    let mut parts = Vec::new();
    if !output.overall_explanation.trim().is_empty() {
        parts.push(output.overall_explanation.trim().to_owned());
    }
    if !output.findings.is_empty() {
        let heading = if output.findings.len() == 1 { "Review comment:" } else { "Full review comments:" };
        parts.push(heading.to_owned());
        parts.extend(output.findings.iter().map(describe_finding));
    }
    if parts.is_empty() { "Reviewer failed to output a response.".to_owned() } else { parts.join("\n\n") }
}

fn describe_finding(finding: &ReviewFinding) -> String {
    let place = &finding.code_location;
    let body = finding.body.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n");
    format!(
        "- {} — {}:{}-{}\n{body}",
        finding.title,
        place.absolute_file_path.display(),
        place.line_range.start,
        place.line_range.end
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = r#"{"findings": [{"title": "Wrong sign", "body": "The sign is wrong.", "confidence_score": 0.9,
        "priority": 1, "code_location": {"absolute_file_path": "/src/a.py", "line_range": {"start": 3, "end": 4}}}],
        "overall_correctness": "patch is incorrect", "overall_explanation": "One bug.", "overall_confidence_score": 0.8}"#;

    #[test]
    fn an_answer_is_parsed_with_and_without_text_around_it() {
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
    fn a_plain_text_answer_is_the_explanation() {
        for answer in ["All good.", r#"{"answer":42}"#, "{broken", "} {"] {
            let output = read(answer);
            assert_eq!((output.findings.len(), output.overall_explanation.as_str()), (0, answer));
        }
    }
}
