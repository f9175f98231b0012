//! The rules as clients see them.

use codex_wire::permissions::{CommandRule, RuleDecision};

use super::rule::Rule;
use super::{Decision, Match, Rules, Scope, Verdict};

impl From<Decision> for RuleDecision {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Allow => Self::Allow,
            Decision::Prompt => Self::Prompt,
            Decision::Forbidden => Self::Forbidden,
        }
    }
}

impl Rules {
    /// All rules, in the order of their files.
    #[must_use]
    pub fn listed(&self) -> Vec<CommandRule> {
        self.rules.iter().map(listed).collect()
    }

    /// The rules behind a verdict, the strictest first.
    #[must_use]
    pub fn behind(&self, verdict: &Verdict) -> Vec<CommandRule> {
        let is = |rule: &&Rule, found: &Match| rule.file == found.file && rule.line == found.line;
        let found = verdict.matched.iter().filter_map(|found| self.rules.iter().find(|rule| is(rule, found)));
        let mut rules: Vec<CommandRule> = found.map(listed).collect();
        rules.dedup();
        rules
    }
}

fn listed(rule: &Rule) -> CommandRule {
    CommandRule {
        decision: rule.decision.into(),
        text: rule.text.clone(),
        file: rule.file.clone(),
        line: u32::try_from(rule.line).unwrap_or(u32::MAX),
        sandbox_only: rule.scope == Scope::Confined,
        justification: rule.justification.clone(),
    }
}
