//! What the rules say about a command line.

use std::path::PathBuf;

use codex_wire::command_line::display;
use serde_json::{Map, Value, json};

use super::rule::{Fit, Rule};
use super::{Decision, Rules, Scope};
use crate::reach::{Reach, reach};
use crate::safe::{Checkout, command_is_safe, obeys};
use crate::sight::Word;
use crate::understand::{Understood, base_name, script, understand};
use crate::unwrap::unwrap;

/// What the rules say about a command line, and which of them made it so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The strictest word of all rules that match; none if no rule speaks.
    pub decision: Option<Decision>,
    /// The rules that match, the strictest first.
    pub matched: Vec<Match>,
}

/// A rule that matches, and what it matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// The rule as it was written.
    pub rule: String,
    /// The file it is in.
    pub file: PathBuf,
    /// The line of the file, counted from 1.
    pub line: usize,
    /// What it says.
    pub decision: Decision,
    /// The words it matched.
    pub prefix: Vec<String>,
    /// The command that it matched, as it may be shown.
    pub command: String,
    /// Why the rule is there, if it says so.
    pub justification: Option<String>,
}

impl Verdict {
    /// The verdict as `codex execpolicy check` prints it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let matched = self.matched.iter().map(|found| {
            let mut members = Map::from_iter([
                ("matchedPrefix".to_owned(), json!(found.prefix)),
                ("decision".to_owned(), json!(found.decision.word())),
            ]);
            if let Some(justification) = &found.justification {
                members.insert("justification".to_owned(), json!(justification));
            }
            json!({"prefixRuleMatch": members})
        });
        let mut verdict = Map::from_iter([("matchedRules".to_owned(), matched.collect())]);
        if let Some(decision) = self.decision {
            verdict.insert("decision".to_owned(), json!(decision.word()));
        }
        Value::Object(verdict)
    }

    /// The first rule that says what was decided, for a sentence about it.
    #[must_use]
    pub fn decisive(&self) -> Option<&Match> {
        self.matched.iter().find(|found| Some(found.decision) == self.decision)
    }
}

/// How a command would run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Circumstances {
    /// Whether in the sandbox.
    pub(crate) confined: bool,
    /// Whose settings a program finds where it starts.
    pub(crate) checkout: Checkout,
}

impl Rules {
    /// Finds out what the rules say about a command line that runs in the sandbox.
    #[must_use]
    pub fn check(&self, argv: &[String]) -> Verdict {
        self.check_in(argv, Circumstances { confined: true, checkout: Checkout::Own })
    }

    /// Finds out what the rules say about a command line. One that allows runs in the sandbox only says nothing of others.
    pub(crate) fn check_in(&self, argv: &[String], circumstances: Circumstances) -> Verdict {
        if self.is_empty() {
            return Verdict::default();
        }
        let mut matched = self.strict(argv);
        let stricter = matched.iter().map(|found| found.decision).max();
        let (allowed, allows) = self.allows(argv, circumstances);
        matched.extend(allows);
        let decision = stricter.or(allowed.then_some(Decision::Allow));
        matched.sort_by_key(|found| std::cmp::Reverse(found.decision));
        Verdict { decision, matched }
    }

    /// Rules that forbid or ask, looked for in everything that the command line may come to run.
    fn strict(&self, argv: &[String]) -> Vec<Match> {
        let reach = reach(argv);
        let mut matched: Vec<Match> = Vec::new();
        for rule in self.rules.iter().filter(|rule| rule.decision != Decision::Allow) {
            let found = reach.commands.iter().filter(|command| !command.words.is_empty());
            let found = found.flat_map(|command| without_git_options(&command.words));
            let best = found.map(|words| (rule.fit(&words), words)).filter(|(fit, _)| *fit != Fit::No);
            // A rule may also name a whole script.
            let best = best.chain(names_script(rule, argv).then(|| (Fit::Yes, literal(argv))));
            let best = best.reduce(|best, next| if next.0 == Fit::Yes && best.0 != Fit::Yes { next } else { best });
            match best {
                Some((Fit::Yes, words)) => matched.push(Match::of(rule, rule.decision, &words)),
                Some((_, words)) => matched.push(Match::of(rule, Decision::Prompt, &words)),
                None if is_unseen(&reach) => matched.push(Match::of(rule, Decision::Prompt, &literal(argv))),
                None => {}
            }
        }
        matched
    }

    /// Rules that allow, and whether they allow all of the command line.
    fn allows(&self, argv: &[String], circumstances: Circumstances) -> (bool, Vec<Match>) {
        let Circumstances { confined, checkout } = circumstances;
        let counts = |rule: &&Rule| rule.decision == Decision::Allow && (confined || rule.scope == Scope::Anywhere);
        let commands = match understand(argv) {
            Understood::Commands(commands) => commands,
            Understood::No(_) => vec![argv.to_vec()],
        };
        let checkout = checkout.after(&commands);
        let mut matched = Vec::new();
        let mut all = true;
        for command in &commands {
            let layers: Vec<_> = std::iter::successors(Some(command.clone()), |command| unwrap(command)).collect();
            let mut found = layers.iter().flat_map(|words| {
                let rules = self.rules.iter().filter(counts);
                // A shell is allowed to run one script, never any script.
                let fits = |rule: &&Rule| rule.matches(words) && (script(words).is_none() || names_script(rule, words));
                rules.filter(fits).map(|rule| Match::of(rule, Decision::Allow, &literal(words)))
            });
            let first = found.next();
            all &= first.is_some() || is_neutral(command) && !obeys(command, checkout);
            matched.extend(first);
            matched.extend(found);
        }
        (all && !matched.is_empty(), matched)
    }
}

/// Tells whether a command needs no rule of its own beside others that are allowed.
///
/// Changing to a folder outside this one is not neutral, since the others then work there.
fn is_neutral(command: &[String]) -> bool {
    let leaves = match command {
        [cd, folder] if cd == "cd" => folder.starts_with('/') || folder.split('/').any(|part| part == ".."),
        _ => false,
    };
    command_is_safe(command) && !leaves
}

/// Tells whether a rule speaks about a script as a whole, not about a shell with any script.
fn names_script(rule: &Rule, command: &[String]) -> bool {
    script(command).is_some() && rule.prefix_of(command).len() == command.len() && rule.matches(command)
}

fn literal(words: &[String]) -> Vec<Word> {
    words.iter().cloned().map(Word::Literal).collect()
}

fn is_unseen(reach: &Reach) -> bool {
    reach.too_much || !reach.opaque.is_empty() || !reach.unread.is_empty()
}

/// A command, and for `git -C folder push` also `git push`.
fn without_git_options(words: &[Word]) -> Vec<Vec<Word>> {
    let mut forms = vec![words.to_vec()];
    let [git, arguments @ ..] = words else { return forms };
    if git.text().map(base_name) != Some("git") {
        return forms;
    }
    let mut at = 0;
    while let Some(option) = arguments.get(at).and_then(Word::text).filter(|text| text.starts_with('-')) {
        let valued = matches!(
            option,
            "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" | "--config-env" | "--attr-source"
        );
        at += if valued { 2 } else { 1 };
    }
    if at > 0 {
        forms.push(std::iter::once(git).chain(arguments.get(at..).unwrap_or_default()).cloned().collect());
    }
    forms
}

impl Match {
    fn of(rule: &Rule, decision: Decision, words: &[Word]) -> Self {
        let texts: Vec<_> = words.iter().map(|word| word.text().unwrap_or("…").to_owned()).collect();
        Self {
            rule: rule.text.clone(),
            file: rule.file.clone(),
            line: rule.line,
            decision,
            prefix: rule.prefix_of(&texts).to_vec(),
            command: display(&texts),
            justification: rule.justification.clone(),
        }
    }
}
