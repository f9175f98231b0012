//! The pages of commands and keys.

use codex_terminal::keymap::Keymap;
use codex_terminal::slash::{HELP, MORE};
use codex_terminal::{Row, Span, Style, printable};

/// The least room next to a column of names. With less, each name has a line of its own.
const LEAST_ROOM: usize = 30;

/// A name and its meaning next to each other, or below each other if there is no room.
fn pair(name: &str, meaning: Row, column: usize, width: usize) -> Vec<Row> {
    if width < column + LEAST_ROOM {
        let below = std::iter::once(Span::new(Style::Hang, "      ")).chain(meaning).collect();
        return vec![vec![Span::new(Style::Bold, format!("  {name}"))], below];
    }
    let first = Span::new(Style::Hang, format!("  {name:<rest$} ", rest = column.saturating_sub(3)));
    vec![std::iter::once(first).chain(meaning).collect()]
}

/// All commands, and the keys.
#[must_use]
pub fn commands(keymap: &Keymap, width: usize) -> Vec<Row> {
    let all = HELP.iter().chain(MORE);
    let line = |(usage, means): &(&str, &str)| pair(usage, vec![Span::new(Style::Plain, *means)], 34, width);
    let mut lines: Vec<Row> = all.flat_map(line).collect();
    lines.push(Row::new());
    lines.extend(keys(keymap, width));
    lines
}

/// Every action with its keys, and mistakes in the configuration of them.
#[must_use]
pub fn keys(keymap: &Keymap, width: usize) -> Vec<Row> {
    let problem = |problem: &dyn ToString| vec![Span::new(Style::Yellow, printable(&problem.to_string()))];
    let mut lines: Vec<Row> = keymap.problems().iter().map(|known| problem(known)).collect();
    let mut context = None;
    for (action, keys) in keymap.lines() {
        if context.replace(action.context) != Some(action.context) {
            lines.push(vec![Span::new(Style::Bold, action.context.title())]);
        }
        let meaning = vec![
            Span::new(Style::Plain, format!("{} ", action.help)),
            Span::new(Style::Dim, format!("({})", action.name)),
        ];
        lines.extend(pair(&keys, meaning, 25, width));
    }
    lines
}

#[cfg(test)]
mod tests {
    use codex_terminal::wrap::rows;

    use super::*;

    #[test]
    fn names_are_above_their_meanings_on_a_narrow_screen() {
        let text = |width: usize| -> Vec<String> {
            let lines = commands(&Keymap::default(), width);
            let laid = lines.iter().flat_map(|line| rows(line, width));
            laid.map(|row| row.iter().map(|span| span.text.as_str()).collect()).collect()
        };
        assert_eq!(text(40)[..2], ["  /help", "      list the commands and keys"]);
        assert_eq!(text(80)[0], "  /help                           list the commands and keys");
    }
}
