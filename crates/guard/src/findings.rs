//! Findings of inspections, and the warnings about them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The maximum number of paths in a message.
const NAMED: usize = 8;
/// The maximum number of findings that wait until the model can be told.
const MAX_UNTOLD: usize = 1000;

/// Something that a command has left behind and that was disarmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its original path.
    pub path: PathBuf,
    /// A description of the finding and its treatment.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", printable(&format!("{}: {}", self.path.display(), self.what)))
    }
}

/// Escapes unprintable characters: the names come from commands.
fn printable(text: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_unicode().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

/// The result of inspections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    pub findings: Vec<Finding>,
    /// Changed files that are run by builds, tests or services.
    pub changed: Vec<PathBuf>,
}

impl Report {
    /// A warning that lists what was disarmed, if anything.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let all = self.findings.len();
        let lines: Vec<String> = self.findings.iter().take(NAMED).map(|finding| format!("\n- {finding}")).collect();
        let more = if all > NAMED { format!("\n- and {} more", all - NAMED) } else { String::new() };
        let what = "sandboxed commands left files that could run code outside the sandbox";
        (all > 0).then(|| format!("{what}:{}{more}", lines.concat()))
    }

    /// A warning that lists the changed files that the user may run, if any. Paths are relative to `workspace`.
    #[must_use]
    pub fn notice(&self, workspace: &Path) -> Option<String> {
        let short = |path: &PathBuf| printable(&path.strip_prefix(workspace).unwrap_or(path).display().to_string());
        let names: Vec<String> = self.changed.iter().take(NAMED).map(short).collect();
        let more = self.changed.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let what = "commands changed files that git, builds, tests or CI run or read; review before using them";
        (!names.is_empty()).then(|| format!("{what}: {}{more}", names.join(", ")))
    }
}

/// A shared collector of reports. Clones refer to the same one.
#[derive(Debug, Clone, Default)]
pub struct Findings(Arc<Mutex<Collected>>);

#[derive(Debug, Default)]
struct Collected {
    report: Report,
    /// The findings that the model was not told of.
    untold: Vec<Finding>,
}

impl Findings {
    /// Takes the reports so far.
    #[must_use]
    pub fn take(&self) -> Report {
        std::mem::take(&mut self.lock().report)
    }

    /// A line for the model about the findings that it was not told of, if there are any.
    #[must_use]
    pub fn take_for_model(&self) -> Option<String> {
        let untold = std::mem::take(&mut self.lock().untold);
        let shown: Vec<String> = untold.iter().take(NAMED).map(ToString::to_string).collect();
        let more = untold.len().saturating_sub(NAMED);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        (!shown.is_empty()).then(|| format!("[sandbox: disarmed after a command or patch: {}{more}]", shown.join("; ")))
    }

    /// Adds a report, without duplicates.
    pub fn add(&self, report: &Report) {
        let mut collected = self.lock();
        let new = report.findings.iter().filter(|finding| !collected.report.findings.contains(finding));
        let new: Vec<Finding> = new.cloned().collect();
        let room = MAX_UNTOLD.saturating_sub(collected.untold.len());
        collected.untold.extend(new.iter().take(room).cloned());
        let reported = &mut collected.report;
        reported.findings.extend(new);
        let new: Vec<PathBuf> =
            report.changed.iter().filter(|path| !reported.changed.contains(path)).cloned().collect();
        reported.changed.extend(new);
    }

    /// Whether both share the same reports.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn lock(&self) -> MutexGuard<'_, Collected> {
        // Every critical section leaves the reports consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_a_few_and_counts_the_rest() {
        let finding = |number: usize| Finding { path: format!("/w/{number}").into(), what: "a hook".to_owned() };
        let report = Report { findings: (0..10).map(finding).collect(), changed: vec!["/w/a/Makefile".into()] };
        let warning = report.warning().unwrap();
        assert!(warning.ends_with("\n- /w/7: a hook\n- and 2 more"), "{warning}");
        let notice = report.notice(Path::new("/w")).unwrap();
        assert!(notice.ends_with(": a/Makefile"), "{notice}");
        let findings = Findings::default();
        findings.add(&report);
        let line = findings.take_for_model().unwrap();
        assert!(line.ends_with("; /w/7: a hook; and 2 more]") && !line.contains('\n'), "{line}");
        assert_eq!(findings.take_for_model(), None);
        assert_eq!(Report::default().warning(), None);
        assert_eq!(Report::default().notice(Path::new("/w")), None);
    }
}
