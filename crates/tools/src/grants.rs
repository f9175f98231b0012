//! State that earlier calls of a thread leave for later ones: approvals, and open terminals.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use codex_config::Home;
use codex_log::Body;
use codex_shell::{Rules, Scope};
use codex_wire::policy::SandboxPolicy;

use crate::command::{CommandRequest, OpenTerminal, PollOutput};
use crate::context::ToolContext;
use crate::{full_message, rules};

/// An approval.
#[derive(Debug)]
pub enum Grant {
    /// This command, without asking again in this thread.
    Command(Approved),
    /// Anything that is typed into a terminal.
    Typing(u64),
    /// Commands with this prefix, from here on and in later threads.
    Rule {
        prefix: Vec<String>,
        /// The runs that the rule allows.
        scope: Scope,
    },
    /// A tool of a server, as long as neither it nor its server changes: the digest of both.
    Tool(Box<str>),
    /// Patches below a folder, as long as the policy stays the same.
    Folder { policy: SandboxPolicy, root: PathBuf },
}

/// Exactly what was approved. Another folder or another policy is another question.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Approved {
    argv: Vec<String>,
    cwd: PathBuf,
    policy: SandboxPolicy,
    is_escalated: bool,
}

impl Approved {
    /// The approval of a command.
    pub(crate) fn of(request: &CommandRequest, cx: &ToolContext) -> Self {
        Self {
            argv: request.argv.clone(),
            cwd: request.cwd.clone(),
            policy: cx.settings.sandbox_policy.clone(),
            is_escalated: request.is_escalated,
        }
    }
}

/// A terminal that outlives its call, or its output.
#[derive(Debug)]
pub enum Background {
    /// A terminal stays open.
    Terminal(Box<OpenTerminal>),
    /// An open terminal was polled.
    PollOutput { process: u64, shown: PollOutput },
}

/// The state left by earlier calls.
#[derive(Debug)]
pub struct Grants {
    pub(crate) rules: Rules,
    approved: HashSet<Approved>,
    /// Tools of servers that may run, by the digest of the tool and its server.
    tools: HashSet<Box<str>>,
    /// Folders below which patches may write, each with the policy under which a person has granted it.
    roots: Vec<(SandboxPolicy, PathBuf)>,
    /// The open terminals, by the number that the model uses.
    pub(crate) terminals: BTreeMap<u64, OpenTerminal>,
}

impl Grants {
    /// The initial state, with only the rules.
    #[must_use]
    pub fn by(rules: Rules) -> Self {
        Self { rules, approved: HashSet::new(), tools: HashSet::new(), roots: Vec::new(), terminals: BTreeMap::new() }
    }

    /// Whether a person has already allowed exactly this.
    pub(crate) fn allows(&self, approved: &Approved) -> bool {
        self.approved.contains(approved)
    }

    /// Whether a person has already allowed this tool.
    #[must_use]
    pub fn allows_tool(&self, digest: &str) -> bool {
        self.tools.contains(digest)
    }

    /// The folders that people have granted under a policy.
    pub(crate) fn roots(&self, policy: &SandboxPolicy) -> Vec<PathBuf> {
        let granted = self.roots.iter().filter(|(under, _)| under == policy);
        granted.map(|(_, root)| root.clone()).collect()
    }

    /// Records an approval, and returns the warnings for the user.
    pub(crate) fn add(&mut self, grant: Grant, home: &Home) -> Vec<Body> {
        match grant {
            Grant::Command(approved) => {
                self.approved.insert(approved);
            }
            Grant::Typing(process) => {
                if let Some(open) = self.terminals.get_mut(&process) {
                    open.vouch();
                }
            }
            Grant::Tool(digest) => {
                self.tools.insert(digest);
            }
            Grant::Folder { policy, root } => self.roots.push((policy, root)),
            Grant::Rule { prefix, scope } => return self.amend(&prefix, scope, home),
        }
        Vec::new()
    }

    /// Adds a rule. If that fails, the command still runs once, as approved.
    fn amend(&mut self, prefix: &[String], scope: Scope, home: &Home) -> Vec<Body> {
        let mut warnings = Vec::new();
        match codex_shell::append_allow(&home.rules(), prefix, scope) {
            Ok(()) => self.rules = rules::or_none(home, &mut warnings),
            Err(error) => warnings.push(format!("the rule was not added: {}", full_message(&error))),
        }
        warnings.into_iter().map(|message| Body::Warning { message }).collect()
    }

    /// Records a terminal, and returns the events for the log.
    pub(crate) fn keep(&mut self, background: Background) -> Vec<Body> {
        match background {
            Background::Terminal(open) => {
                self.terminals.extend(open.process().map(|process| (process, *open)));
                Vec::new()
            }
            Background::PollOutput { process, shown } => self.shown(process, &shown),
        }
    }

    /// Adds the output of a terminal.
    pub(crate) fn shown(&mut self, process: u64, shown: &PollOutput) -> Vec<Body> {
        let Some(open) = self.terminals.get_mut(&process) else { return Vec::new() };
        let mut told: Vec<Body> = open.take(shown).into_iter().collect();
        if let Some(exit_code) = shown.exit_code
            && let Some(open) = self.terminals.remove(&process)
        {
            told.push(Body::ItemCompleted(open.end(exit_code)));
        }
        told
    }
}
