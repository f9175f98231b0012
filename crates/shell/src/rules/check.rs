//! Evaluates the rules for a command line.

use std::path::PathBuf;

use codex_wire::command_line::display;
use serde_json::{Map, Value, json};

use super::rule::{Fit, Rule};
use super::{Decision, Rules, Scope};
use crate::reach::{Reach, reach};
use crate::safe::{Checkout, command_is_safe, obeys};
use crate::script::Word;
use crate::understand::{Understood, base_name, script, understand};
use crate::unwrap::unwrap;

/// The verdict of the rules on a command line, and the rules behind it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The strictest decision of all matching rules; `None` if no rule matches.
    pub decision: Option<Decision>,
    /// The matching rules, the strictest first.
    pub matched: Vec<Match>,
}

/// A matching rule, and what it matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// The rule as written.
    pub rule: String,
    pub file: PathBuf,
    /// The line number, starting at 1.
    pub line: usize,
    pub decision: Decision,
    /// The words it matched.
    pub prefix: Vec<String>,
    /// The command it matched, for display.
    pub command: String,
    /// The rule's own justification, if it has one.
    pub justification: Option<String>,
}

impl Verdict {
    /// The verdict in the format of `codex execpolicy check`.
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

    /// The first rule with the final decision, for a sentence about it.
    #[must_use]
    pub fn decisive(&self) -> Option<&Match> {
        self.matched.iter().find(|found| Some(found.decision) == self.decision)
    }
}

/// The circumstances of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunContext {
    /// Whether it runs in the sandbox.
    pub(crate) confined: bool,
    /// Whether the settings around the working directory belong to the thread's own checkout.
    pub(crate) checkout: Checkout,
}

impl Rules {
    /// Evaluates the rules for a command line that runs in the sandbox.
    #[must_use]
    pub fn check(&self, argv: &[String]) -> Verdict {
        self.check_in(argv, RunContext { confined: true, checkout: Checkout::Own })
    }

    /// Evaluates the rules for a command line. A rule that allows only sandboxed runs does not apply to others.
    pub(crate) fn check_in(&self, argv: &[String], circumstances: RunContext) -> Verdict {
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

    /// Rules that forbid or ask, checked against everything that the command line may run.
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

    /// Rules that allow, and whether they allow the whole command line.
    fn allows(&self, argv: &[String], circumstances: RunContext) -> (bool, Vec<Match>) {
        let RunContext { confined, checkout } = circumstances;
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
                // A rule can allow a shell to run one script, never any script.
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

/// Whether a command needs no rule of its own next to allowed ones.
///
/// Changing to a folder outside this one is not neutral, because the other commands then run there.
fn is_neutral(command: &[String]) -> bool {
    let leaves = match command {
        [cd, folder] if cd == "cd" => folder.starts_with('/') || folder.split('/').any(|part| part == ".."),
        _ => false,
    };
    command_is_safe(command) && !leaves
}

/// Whether a rule names a whole script, not a shell with any script.
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
