//! Tokens, cost and limits: of the thread, of its turns, and of the account.

use codex_client::Event;
use codex_client::usage::{Limits, Tokens, Usage, Window};
use serde_json::Value;

use crate::{Row, Span, Style, amount};
use codex_views::fields::{bar, field, grouped, heading, span};

/// The most turns that are remembered.
const MOST_TURNS: usize = 1000;

/// The tokens of the turns that this chat has seen.
#[derive(Debug, Default)]
pub(in crate::full) struct Ledger {
    turns: Vec<Spent>,
}

#[derive(Debug)]
struct Spent {
    turn: String,
    /// The tokens of the thread before the turn, and now.
    before: Tokens,
    now: Tokens,
    cost: Option<f64>,
}

impl Ledger {
    /// Takes note of an event of the open thread; `usage` is what was known before it.
    pub(in crate::full) fn event(&mut self, event: &Event, usage: &Value) {
        let known = Usage::read(usage).unwrap_or_default();
        match event {
            Event::TurnStarted { turn, .. } if self.turns.last().is_none_or(|last| last.turn != *turn) => {
                if self.turns.len() == MOST_TURNS {
                    self.turns.remove(0);
                }
                self.turns.push(Spent { turn: turn.clone(), before: known.total, now: known.total, cost: None });
            }
            Event::Usage { usage, .. } => {
                if let (Some(last), Some(usage)) = (self.turns.last_mut(), Usage::read(usage)) {
                    (last.now, last.cost) = (usage.total, usage.turn_cost);
                }
            }
            _ => {}
        }
    }

    pub(in crate::full) fn clear(&mut self) {
        self.turns.clear();
    }

    /// One line for each turn, the latest first.
    fn lines(&self) -> Vec<Row> {
        if self.turns.is_empty() {
            return vec![vec![Span::new(Style::Dim, "  none in this chat yet")]];
        }
        let line = |(at, spent): (usize, &Spent)| {
            let part = |of: fn(&Tokens) -> u64| grouped(of(&spent.now).saturating_sub(of(&spent.before)));
            let cost = spent.cost.map(|cost| format!("  cost {}", amount(cost))).unwrap_or_default();
            let (input, cached, output) =
                (part(|tokens| tokens.input), part(|tokens| tokens.cached), part(|tokens| tokens.output));
            vec![
                Span::new(Style::Hang, format!("{:>11}  ", format!("turn {}", at + 1))),
                Span::new(Style::Plain, format!("{input:>11} in {cached:>11} cached {output:>9} out{cost}")),
            ]
        };
        self.turns.iter().enumerate().rev().map(line).collect()
    }
}

/// The lines of the page: totals, the cache, the window of the model, the limits of the account, and turns.
pub(in crate::full) fn lines(usage: &Value, limits: &Value, ledger: &Ledger, now: i64) -> Vec<Row> {
    let known = Usage::read(usage).unwrap_or_default();
    let mut lines = vec![heading("Thread"), tokens("all calls", &known.total), tokens("last call", &known.last)];
    let Tokens { input, cached, cache_write, .. } = known.total;
    if let Some(percent) = cached.saturating_mul(100).checked_div(input) {
        let written = if cache_write > 0 { format!(", {} written", grouped(cache_write)) } else { String::new() };
        lines.push(field("cache", &format!("{percent}% of the input came from the cache{written}")));
    }
    if let Some((window, left)) = known.window.zip(known.window_left()) {
        let text = format!("{:.0}% of {} used", (1.0 - left) * 100.0, grouped(window));
        lines.push(bar("context", 1.0 - left, &text));
    }
    let cost = [known.turn_cost.map(|cost| format!("{} for the last turn", amount(cost)))];
    let cost: Vec<String> = known
        .thread_cost
        .map(|cost| format!("{} in all", amount(cost)))
        .into_iter()
        .chain(cost.into_iter().flatten())
        .collect();
    if !cost.is_empty() {
        lines.push(field("cost", &cost.join(", ")));
    }
    lines.extend([Row::new(), heading("Limits of the account")]);
    let before = lines.len();
    let limits = Limits::read(limits, u64::try_from(now).unwrap_or(0));
    lines.extend(limits.plan.as_deref().map(|plan| field("plan", plan)));
    lines.extend(limits.primary.map(|window| limit("short", &window, now)));
    lines.extend(limits.secondary.map(|window| limit("long", &window, now)));
    lines.extend(limits.credits.as_deref().map(|credits| field("credits", credits)));
    if lines.len() == before {
        lines.push(vec![Span::new(Style::Dim, "  not reported by the provider")]);
    }
    lines.extend([Row::new(), heading("Turns")]);
    lines.extend(ledger.lines());
    lines
}

fn tokens(name: &str, tokens: &Tokens) -> Row {
    let Tokens { input, cached, output, reasoning, .. } = *tokens;
    let thought = if reasoning > 0 { format!(" ({} reasoning)", grouped(reasoning)) } else { String::new() };
    field(name, &format!("{} in ({} cached), {} out{thought}", grouped(input), grouped(cached), grouped(output)))
}

/// A window of a limit with the time at which it is restored.
fn limit(name: &str, window: &Window, now: i64) -> Row {
    let of = window.length.map(|length| format!(" of {}", span(length.as_secs()))).unwrap_or_default();
    let at = window.resets_at.and_then(|at| i64::try_from(at).ok());
    let reset = at.and_then(|at| Some((at, chrono::DateTime::from_timestamp(at, 0)?)));
    let reset = reset.map_or_else(String::new, |(at, time)| {
        let time = time.with_timezone(&chrono::Local).format("%Y-%m-%d %H:%M");
        format!(", resets {time} (in {})", span(u64::try_from(at - now).unwrap_or(0)))
    });
    bar(name, window.used_percent / 100.0, &format!("{:.0}% used{of}{reset}", window.used_percent))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn turns_are_told_apart() {
        let started = |turn: &str| Event::TurnStarted { thread: "t".to_owned(), turn: turn.to_owned() };
        let usage =
            |input: u64, cost: f64| json!({"total": {"inputTokens": input, "outputTokens": 10}, "turnCost": cost});
        let told = |input, cost| Event::Usage { thread: "t".to_owned(), usage: usage(input, cost) };
        let mut ledger = Ledger::default();
        ledger.event(&started("a"), &usage(1000, 0.0));
        ledger.event(&told(3500, 0.5), &usage(1000, 0.0));
        ledger.event(&started("b"), &usage(3500, 0.5));
        ledger.event(&told(3600, 0.25), &usage(3500, 0.5));
        let text: Vec<String> = ledger.lines().iter().map(|row| row[1].text.clone()).collect();
        assert_eq!(text.len(), 2);
        assert!(text[0].starts_with("        100 in") && text[0].ends_with("cost 0.2500"), "{text:?}");
        assert!(text[1].starts_with("      2,500 in"), "{text:?}");
    }
}
