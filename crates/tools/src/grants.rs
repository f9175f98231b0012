//! State that earlier calls of a thread leave for later ones: approvals, and open terminals.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Instant;

use codex_config::Home;
use codex_log::Body;
use codex_shell::{Rules, Scope};
use codex_wire::command_line::display;
use codex_wire::permissions::{CommandRule, GrantKind, Permissions, SessionGrant};
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
    Tool { digest: Box<str>, name: String },
    /// Patches below a folder, as long as the policy stays the same.
    Folder { policy: SandboxPolicy, root: PathBuf },
}

/// Exactly what was approved. Another folder, another policy or another content of a script is another question.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Approved {
    /// The files that its words name and that may be run, with the fingerprint of their content.
    scripts: Vec<(PathBuf, u64)>,
    argv: Vec<String>,
    cwd: PathBuf,
    policy: SandboxPolicy,
    is_escalated: bool,
}

impl Approved {
    /// The approval of a command.
    pub(crate) fn of(request: &CommandRequest, cx: &ToolContext) -> Self {
        Self {
            scripts: scripts(&request.argv, &request.cwd),
            argv: request.argv.clone(),
            cwd: request.cwd.clone(),
            policy: cx.settings.sandbox_policy.clone(),
            is_escalated: request.is_escalated,
        }
    }
}

/// Programs whose arguments are files that they run.
const INTERPRETERS: &[&str] = &[
    "sh", "bash", "zsh", "dash", "ksh", "fish", "python", "python3", "node", "deno", "bun", "ruby", "perl", "php",
    "lua", "Rscript", "make", "just", "source", ".", "env", "sudo", "nohup", "time", "xargs", "npx", "tsx", "ts-node",
];
/// The maximum number of scripts of one command, and the maximum size of one that is read.
const MAX_SCRIPTS: usize = 32;
const MAX_SCRIPT: u64 = 4 * 1024 * 1024;

/// The scripts that a command line names. Programs of the system do not change; those of a workspace are named by a path,
/// or by an interpreter.
fn scripts(argv: &[String], cwd: &Path) -> Vec<(PathBuf, u64)> {
    let is_line = argv.get(1).is_some_and(|option| option.starts_with('-') && option.contains('c'));
    let own = if is_line { argv.get(1..).unwrap_or_default() } else { argv };
    let is_end = |c: char| c.is_whitespace() || "'\";=|&()<>".contains(c);
    let words: Vec<&str> = own.iter().flat_map(|word| word.split(is_end)).filter(|word| !word.is_empty()).collect();
    let is_interpreter = |word: &&str| INTERPRETERS.contains(&word.rsplit('/').next().unwrap_or(word));
    let has_interpreter = words.iter().any(is_interpreter);
    let modules =
        words.windows(2).filter(|pair| pair[0] == "-m").map(|pair| format!("{}.py", pair[1].replace('.', "/")));
    let paths = words.iter().filter(|word| has_interpreter || word.contains('/')).map(|word| (*word).to_owned());
    let files = paths.chain(modules).map(|name| cwd.join(name)).filter(|path| path.is_file()).take(MAX_SCRIPTS);
    let fingerprint = |path: PathBuf| {
        let content = codex_files::read(&path, MAX_SCRIPT).map(|content| KEY.hash_one(content));
        // Nobody knows whether one that cannot be read has changed.
        (path, content.unwrap_or_else(|_| KEY.hash_one(Instant::now())))
    };
    files.map(fingerprint).collect()
}

static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

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
    /// Commands, each with its number among all approvals.
    approved: HashMap<Approved, u64>,
    /// Tools of servers that may run, by the digest of the tool and its server, with their numbers and names.
    tools: HashMap<Box<str>, (u64, String)>,
    /// Folders below which patches may write, each with the policy under which a person has granted it.
    roots: Vec<(u64, SandboxPolicy, PathBuf)>,
    /// The number of the next approval.
    next: u64,
    /// The open terminals, by the number that the model uses.
    pub(crate) terminals: BTreeMap<u64, OpenTerminal>,
}

impl Grants {
    /// The initial state, with only the rules.
    #[must_use]
    pub fn by(rules: Rules) -> Self {
        let (approved, tools) = (HashMap::new(), HashMap::new());
        Self { rules, approved, tools, roots: Vec::new(), next: 1, terminals: BTreeMap::new() }
    }

    /// Whether a person has already allowed exactly this.
    pub(crate) fn allows(&self, approved: &Approved) -> bool {
        self.approved.contains_key(approved)
    }

    /// Whether a person has already allowed this tool.
    #[must_use]
    pub fn allows_tool(&self, digest: &str) -> bool {
        self.tools.contains_key(digest)
    }

    /// The folders that people have granted under a policy.
    pub(crate) fn roots(&self, policy: &SandboxPolicy) -> Vec<PathBuf> {
        let granted = self.roots.iter().filter(|(_, under, _)| under == policy);
        granted.map(|(_, _, root)| root.clone()).collect()
    }

    /// Records an approval, and returns the warnings for the user.
    pub(crate) fn add(&mut self, grant: Grant, home: &Home) -> Vec<Body> {
        let number = self.next;
        self.next += 1;
        match grant {
            Grant::Command(approved) => {
                self.approved.entry(approved).or_insert(number);
            }
            Grant::Typing(process) => {
                if let Some(open) = self.terminals.get_mut(&process) {
                    open.vouch();
                }
            }
            Grant::Tool { digest, name } => {
                self.tools.entry(digest).or_insert((number, name));
            }
            Grant::Folder { policy, root } => self.roots.push((number, policy, root)),
            Grant::Rule { prefix, scope } => return self.amend(&prefix, scope, home),
        }
        Vec::new()
    }

    /// The rules and the approvals, for people.
    pub(crate) fn listed(&self) -> Permissions {
        let command = |(approved, number): (&Approved, &u64)| {
            let place = if approved.is_escalated { ", outside the sandbox" } else { "" };
            let text = format!("{} in {}{place}", display(&approved.argv), approved.cwd.display());
            (*number, GrantKind::Command, text)
        };
        let mut grants: Vec<(u64, GrantKind, String)> = self.approved.iter().map(command).collect();
        grants.extend(self.tools.values().map(|(number, name)| (*number, GrantKind::Tool, name.clone())));
        grants.extend(self.roots.iter().map(|(n, _, root)| (*n, GrantKind::Folder, root.display().to_string())));
        grants.sort_unstable_by_key(|(number, ..)| *number);
        let grant =
            |(number, kind, text): (u64, GrantKind, String)| SessionGrant { id: number.to_string(), kind, text };
        Permissions { rules: self.rules.listed(), grants: grants.into_iter().map(grant).collect() }
    }

    /// Takes an approval back; `false` if there is none with this id.
    pub(crate) fn revoke(&mut self, id: &str) -> bool {
        let Ok(id) = id.parse::<u64>() else { return false };
        let before = self.approved.len() + self.tools.len() + self.roots.len();
        self.approved.retain(|_, number| *number != id);
        self.tools.retain(|_, (number, _)| *number != id);
        self.roots.retain(|(number, ..)| *number != id);
        before != self.approved.len() + self.tools.len() + self.roots.len()
    }

    /// Removes a rule from its file.
    pub(crate) fn remove_rule(&mut self, rule: &CommandRule, home: &Home) -> Result<(), String> {
        codex_shell::remove_rule(&home.rules(), rule).map_err(|error| full_message(&error))?;
        self.rules = rules::in_force(home).map_err(|error| full_message(&error))?;
        Ok(())
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
