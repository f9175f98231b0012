//! A review in words.

use codex_wire::review::{ReviewFinding, ReviewOutputEvent};

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
