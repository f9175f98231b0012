//! Names with their values, and numbers for people.

use codex_terminal::{Row, Span, Style, printable};

/// A line with a name and a value.
#[must_use]
pub fn field(name: &str, value: &str) -> Row {
    vec![Span::new(Style::Hang, format!("{name:>11}  ")), Span::new(Style::Plain, printable(value).replace('\n', " "))]
}

/// A line above fields.
#[must_use]
pub fn heading(text: &str) -> Row {
    vec![Span::new(Style::Heading, text)]
}

/// A length of time in its largest units.
#[must_use]
pub fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// A part of a whole as a bar of ten cells.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is between 0 and 10")]
#[must_use]
pub fn bar(name: &str, part: f64, text: &str) -> Row {
    let full = (part.clamp(0.0, 1.0) * 10.0).round() as usize;
    let style = if part >= 0.9 {
        Style::Red
    } else if part >= 0.7 {
        Style::Yellow
    } else {
        Style::Green
    };
    vec![
        Span::new(Style::Hang, format!("{name:>11}  ")),
        Span::new(style, "█".repeat(full)),
        Span::new(Style::Dim, "░".repeat(10 - full)),
        Span::new(Style::Plain, format!(" {text}")),
    ]
}

/// A number with separators.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_times_are_short() {
        assert_eq!((grouped(0), grouped(1234), grouped(12_345_678)), ("0".into(), "1,234".into(), "12,345,678".into()));
        assert_eq!([59, 119, 7200, 172_800].map(span), ["59 s", "1 min", "2 h", "2 days"]);
    }

    #[test]
    fn a_bar_is_full_at_the_end_and_warns_before() {
        let shown = |part: f64| bar("x", part, "")[1].clone();
        assert_eq!((shown(0.04).text.chars().count(), shown(2.0).text.chars().count()), (0, 10));
        assert_eq!((shown(0.5).style, shown(0.7).style, shown(0.9).style), (Style::Green, Style::Yellow, Style::Red));
    }
}
