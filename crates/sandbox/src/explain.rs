//! Describes what is enforced for a profile on this host, and what is not.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::launch::SandboxLevel;
use crate::layout::Layout;
use crate::profile::Profile;
use codex_guard::names::SECRETS;

/// The effect of a profile on a level, as human-readable text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The level, in one line.
    pub level: String,
    pub enforced: Vec<String>,
    /// The folders that commands may write.
    pub writable: Vec<PathBuf>,
    /// The paths inside those folders that stay read-only, whether they exist or not.
    pub protected: Vec<PathBuf>,
    /// Restrictions that the policy implies but that are not enforced here.
    pub not_enforced: Vec<String>,
}

/// Explains the current effect of `profile` on `level`.
#[must_use]
pub fn explain(profile: &Profile, level: &SandboxLevel) -> Explanation {
    let layout = profile.layout();
    let mut explanation = Explanation {
        level: String::new(),
        enforced: Vec::new(),
        writable: layout.open().map(Path::to_owned).collect(),
        protected: layout.closed().map(Path::to_owned).collect(),
        not_enforced: layout.notes.clone(),
    };
    match level {
        SandboxLevel::Namespaces { landlock_abi } => on_namespaces(&mut explanation, profile, *landlock_abi),
        SandboxLevel::Landlock { abi } => on_landlock(&mut explanation, profile, &layout, *abi),
        SandboxLevel::Nothing { why } => {
            explanation.level = format!("no sandbox: {why}");
            explanation.writable.clear();
            explanation.not_enforced =
                vec!["anything: confined commands are refused, so the caller must ask".to_owned()];
        }
    }
    explanation
}

fn everywhere(explanation: &mut Explanation, profile: &Profile) {
    let lines = &mut explanation.enforced;
    if profile.network() {
        lines.push("network: IPv4 and IPv6 only; no Unix, netlink (but routes), vsock or packet sockets".to_owned());
    } else {
        lines.push("no network: no sockets of any family; only connected pairs of sockets".to_owned());
    }
    lines.push("no ptrace, io_uring, bpf, keyrings, perf, userfaultfd, new namespaces or mounts".to_owned());
    lines.push("no input injected into terminals, no inherited descriptors, no privileges to gain".to_owned());
    if !profile.secrets().paths().is_empty() {
        let names = SECRETS.join(", ");
        lines.push(format!("what is secret in {} cannot be read: {names}", profile.codex_home().display()));
    }
    lines.push("no process outlives the command or this program".to_owned());
    if !profile.workspaces().is_empty() {
        lines.push(
            "what a command changes is inspected when it has ended; what could run code outside is renamed".to_owned(),
        );
        let names: Vec<String> = profile.names().closed().map(|name| name.display().to_string()).collect();
        lines.push(format!("names that are renamed when a command creates them: {}", names.join(" ")));
        let limit = "names that a running command creates, until it has ended";
        explanation.not_enforced.push(limit.to_owned());
    }
}

fn on_namespaces(explanation: &mut Explanation, profile: &Profile, abi: u32) {
    let net = if profile.network() { "" } else { ", net" };
    let landlock = if abi == 0 { "no Landlock".to_owned() } else { format!("Landlock {abi}") };
    explanation.level = format!("namespaces (user, mount, pid, ipc, uts{net}), system call filter, {landlock}");
    explanation
        .enforced
        .push("everything is read-only but the writable folders; their protected names are closed".to_owned());
    explanation.enforced.push("processes and shared memory outside cannot be seen; small /dev and /proc".to_owned());
    everywhere(explanation, profile);
    if abi == 0 {
        explanation.not_enforced.push("the second line of defence: this kernel has no Landlock".to_owned());
    }
}

fn on_landlock(explanation: &mut Explanation, profile: &Profile, layout: &Layout, abi: u32) {
    explanation.level = format!("Landlock {abi} and system call filter; this host allows no user namespaces");
    explanation.enforced.push(
        "writes only to what is listed; nothing new directly in a folder that contains a protected name".to_owned(),
    );
    explanation
        .enforced
        .push("modes, owners and times change in there only, and there are no extended attributes".to_owned());
    explanation.enforced.push("so new files go into sub-folders, and git cannot commit here".to_owned());
    everywhere(explanation, profile);
    explanation.writable = granted(layout, profile);
    let not = &mut explanation.not_enforced;
    not.push("processes of the user can be listed".to_owned());
    if abi < SIGNALS_SINCE {
        not.push("signals to other processes of the user: this needs Landlock 6".to_owned());
    }
}

/// The first Landlock version that scopes signals.
const SIGNALS_SINCE: u32 = 6;

#[cfg(target_os = "linux")]
fn granted(layout: &Layout, profile: &Profile) -> Vec<PathBuf> {
    let opened = crate::linux::landlock::Opened::roots(profile.roots()).unwrap_or_default();
    crate::linux::landlock::apart(layout, &profile.secrets(), &opened).into_iter().map(|(path, _)| path).collect()
}

#[cfg(not(target_os = "linux"))]
fn granted(_: &Layout, _: &Profile) -> Vec<PathBuf> {
    Vec::new()
}

impl fmt::Display for Explanation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "sandbox: {}", self.level)?;
        list(out, "enforced", self.enforced.iter())?;
        list(out, "writable", self.writable.iter().map(|path| path.display()))?;
        list(out, "protected", self.protected.iter().map(|path| path.display()))?;
        list(out, "not enforced", self.not_enforced.iter())
    }
}

fn list<T: fmt::Display>(out: &mut fmt::Formatter<'_>, title: &str, lines: impl Iterator<Item = T>) -> fmt::Result {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        return writeln!(out, "{title}: nothing");
    }
    writeln!(out, "{title}:")?;
    for line in lines {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}
