//! One field of a form: what it wants, what was entered, and whether that fits.

use serde_json::{Number, Value};

use crate::key::Key;
use crate::{Row, Span, Style, visible};

/// The longest text that can be entered.
const MOST_BYTES: usize = 16 * 1024;

/// The format that a text must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    Text,
    Email,
    Uri,
    Date,
    DateTime,
}

/// The kind of value that a field wants.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Text {
        wanted: Wanted,
        least: usize,
        most: usize,
        is_secret: bool,
    },
    Number {
        is_whole: bool,
        least: Option<f64>,
        most: Option<f64>,
    },
    Flag,
    /// One of several values. `has_other` allows a text instead.
    Choice {
        options: Vec<Choice>,
        has_other: bool,
    },
    /// Several of several values.
    Several {
        options: Vec<Choice>,
        least: usize,
        most: usize,
    },
}

/// A value to choose.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    pub value: Value,
    pub label: String,
    pub help: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub name: String,
    pub title: String,
    pub help: String,
    pub kind: Kind,
    pub is_required: bool,
    pub(super) entered: Entered,
}

/// The value that was entered so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Entered {
    pub(super) text: String,
    pub(super) flag: Option<bool>,
    /// The chosen options, by their numbers.
    pub(super) chosen: Vec<usize>,
    /// The option that keys act on.
    pub(super) row: usize,
}

impl Field {
    /// A field without a value.
    #[must_use]
    pub fn new(name: &str, kind: Kind, is_required: bool) -> Self {
        let (name, help) = (name.to_owned(), String::new());
        Self { title: name.clone(), name, help, kind, is_required, entered: Entered::default() }
    }

    pub(super) fn takes_no_rows(&self) -> bool {
        matches!(self.kind, Kind::Text { .. } | Kind::Number { .. } | Kind::Flag)
    }

    /// Whether the row with the focus is the text beside the options.
    fn is_at_other(&self) -> bool {
        matches!(&self.kind, Kind::Choice { options, has_other: true } if self.entered.row == options.len())
    }

    /// Handles a key; `false` if it has no meaning here.
    pub(super) fn press(&mut self, key: &Key) -> bool {
        let is_text = matches!(self.kind, Kind::Text { .. } | Kind::Number { .. }) || self.is_at_other();
        let count = match &self.kind {
            Kind::Choice { options, has_other } => options.len() + usize::from(*has_other),
            Kind::Several { options, .. } => options.len(),
            Kind::Text { .. } | Kind::Number { .. } | Kind::Flag => 0,
        };
        match key {
            Key::Up if count > 0 => self.entered.row = (self.entered.row + count - 1) % count,
            Key::Down if count > 0 => self.entered.row = (self.entered.row + 1) % count,
            Key::Char(c) if is_text => self.enter(&c.to_string()),
            Key::Paste(text) if is_text => self.enter(&text.replace(['\r', '\n'], " ")),
            Key::Backspace | Key::Ctrl('h') if is_text => drop(self.entered.text.pop()),
            Key::Ctrl('u') if is_text => self.entered.text.clear(),
            Key::Left | Key::Right | Key::Char(' ') if self.kind == Kind::Flag => {
                self.entered.flag = Some(!self.entered.flag.unwrap_or(false));
            }
            Key::Char('y' | 'Y') if self.kind == Kind::Flag => self.entered.flag = Some(true),
            Key::Char('n' | 'N') if self.kind == Kind::Flag => self.entered.flag = Some(false),
            Key::Char(' ') if count > 0 => self.toggle(self.entered.row),
            Key::Char(c) => match c.to_digit(10).and_then(|digit| (digit as usize).checked_sub(1)) {
                Some(row) if row < count => {
                    self.entered.row = row;
                    self.toggle(row);
                }
                _ => return false,
            },
            _ => return false,
        }
        true
    }

    pub(super) fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Text { is_secret: true, .. })
    }

    /// Enters a whole line; an empty one leaves the value as it is. The error is for people.
    pub(super) fn enter_line(&mut self, line: &str) -> Result<(), String> {
        let before = self.entered.clone();
        if !line.trim().is_empty() {
            self.read_line(line.trim())?;
        }
        self.value().map(drop).inspect_err(|_| self.entered = before)
    }

    fn read_line(&mut self, line: &str) -> Result<(), String> {
        match &self.kind {
            Kind::Text { .. } | Kind::Number { .. } => self.entered.text = crate::printable(line).into_owned(),
            Kind::Flag => {
                self.entered.flag = Some(match line.to_lowercase().as_str() {
                    "y" | "yes" | "true" => true,
                    "n" | "no" | "false" => false,
                    _ => return Err("type y or n".to_owned()),
                });
            }
            Kind::Choice { options, has_other } => match place(options, line) {
                Some(row) => self.entered.chosen = vec![row],
                None if *has_other => {
                    self.entered.chosen.clear();
                    self.entered.text = crate::printable(line).into_owned();
                }
                None => return Err(format!("type a number from 1 to {}", options.len())),
            },
            Kind::Several { options, .. } => {
                let words = line.split([',', ' ']).filter(|word| !word.is_empty());
                let rows: Option<Vec<usize>> = words.map(|word| place(options, word)).collect();
                let mut rows = rows.ok_or_else(|| format!("type numbers from 1 to {}, with commas", options.len()))?;
                rows.sort_unstable();
                rows.dedup();
                self.entered.chosen = rows;
            }
        }
        Ok(())
    }

    /// The field for a screen that appends lines.
    pub(super) fn spoken(&self) -> Vec<Row> {
        let need = if self.is_required { " (required)" } else { "" };
        let how = match &self.kind {
            Kind::Choice { has_other: true, .. } => ", type a number or another answer".to_owned(),
            Kind::Choice { .. } => ", type a number".to_owned(),
            Kind::Several { .. } => ", type numbers with commas".to_owned(),
            Kind::Text { .. } | Kind::Number { .. } | Kind::Flag => self.limits(),
        };
        let mut lines =
            vec![vec![Span::new(Style::Bold, one(&self.title)), Span::new(Style::Dim, format!("{need}{how}"))]];
        if !self.help.is_empty() {
            lines.push(vec![Span::new(Style::Dim, format!("    {}", one(&self.help)))]);
        }
        if let Kind::Choice { options, .. } | Kind::Several { options, .. } = &self.kind {
            for (number, option) in options.iter().enumerate() {
                let chosen = if self.entered.chosen.contains(&number) { " (chosen)" } else { "" };
                let help = if option.help.is_empty() { String::new() } else { format!(": {}", one(&option.help)) };
                let text = format!("    {}. {}{help}{chosen}", number + 1, one(&option.label));
                lines.push(vec![Span::new(Style::Plain, text)]);
            }
        } else if let Ok(Some(value)) = self.value() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            lines.push(vec![Span::new(Style::Dim, format!("    now: {}, Enter keeps it", one(&value)))]);
        }
        lines
    }

    fn enter(&mut self, text: &str) {
        if self.entered.text.len() + text.len() <= MOST_BYTES {
            self.entered.text.push_str(&crate::printable(text));
        }
        if let Kind::Choice { .. } = self.kind {
            self.entered.chosen.clear();
        }
    }

    fn toggle(&mut self, row: usize) {
        let chosen = &mut self.entered.chosen;
        let was = chosen.contains(&row);
        match &self.kind {
            Kind::Choice { options, .. } if row < options.len() => {
                *chosen = if was { Vec::new() } else { vec![row] };
            }
            Kind::Several { .. } if was => chosen.retain(|other| *other != row),
            Kind::Several { .. } => {
                chosen.push(row);
                chosen.sort_unstable();
            }
            _ => {}
        }
    }

    /// The value: `None` if nothing was entered and nothing has to be. The error is for people.
    pub fn value(&self) -> Result<Option<Value>, String> {
        let missing = || if self.is_required { Err("a value is required".to_owned()) } else { Ok(None) };
        let text = self.entered.text.as_str();
        match &self.kind {
            Kind::Text { .. } if text.is_empty() => missing(),
            Kind::Text { wanted, least, most, .. } => {
                fits(text, *wanted, *least, *most)?;
                Ok(Some(text.into()))
            }
            Kind::Number { .. } if text.trim().is_empty() => missing(),
            Kind::Number { is_whole, least, most } => number(text.trim(), *is_whole, *least, *most).map(Some),
            Kind::Flag => self.entered.flag.map_or_else(missing, |flag| Ok(Some(flag.into()))),
            Kind::Choice { options, has_other } => {
                match self.entered.chosen.first().and_then(|row| options.get(*row)) {
                    Some(choice) => Ok(Some(choice.value.clone())),
                    None if *has_other && !text.trim().is_empty() => Ok(Some(text.into())),
                    None => missing(),
                }
            }
            Kind::Several { options, least, most } => {
                let values: Vec<Value> =
                    self.entered.chosen.iter().filter_map(|row| Some(options.get(*row)?.value.clone())).collect();
                match values.len() {
                    0 if *least == 0 || !self.is_required => missing(),
                    count if count < *least => Err(format!("choose at least {least}")),
                    count if count > *most => Err(format!("choose at most {most}")),
                    _ => Ok(Some(values.into())),
                }
            }
        }
    }

    /// The lines of the field, and the number of the one with the focus.
    pub(super) fn lines(&self, is_here: bool) -> (Vec<Row>, usize) {
        let mark = if is_here { "» " } else { "  " };
        let need = if self.is_required { " (required)" } else { "" };
        let mut lines = vec![vec![
            Span::new(Style::Hang, mark),
            Span::new(Style::Bold, one(&self.title)),
            Span::new(Style::Dim, format!("{need}{}", self.limits())),
        ]];
        if !self.help.is_empty() {
            lines.push(vec![Span::new(Style::Hang, "    "), Span::new(Style::Dim, one(&self.help))]);
        }
        let focus = lines.len();
        let typed = |is_there: bool| {
            let cursor = if is_here && is_there { "▏" } else { "" };
            let is_secret = matches!(self.kind, Kind::Text { is_secret: true, .. });
            let text =
                if is_secret { "•".repeat(self.entered.text.chars().count()) } else { one(&self.entered.text) };
            format!("{text}{cursor}")
        };
        let row = |text: String| vec![Span::new(Style::Hang, "    "), Span::new(Style::Plain, text)];
        match &self.kind {
            Kind::Text { .. } | Kind::Number { .. } => lines.push(row(format!("> {}", typed(true)))),
            Kind::Flag => {
                let text = match self.entered.flag {
                    Some(true) => "[x] yes",
                    Some(false) => "[ ] no",
                    None => "[ ] not chosen",
                };
                let style = if is_here { Style::Selected } else { Style::Plain };
                lines.push(vec![Span::new(Style::Hang, "    "), Span::new(style, text)]);
            }
            Kind::Choice { options, has_other } => {
                lines.extend(self.option_rows(options, ("(•)", "( )"), is_here));
                if *has_other {
                    let mark = if self.is_at_other() { "»" } else { " " };
                    lines.push(row(format!("{mark} other: {}", typed(self.is_at_other()))));
                }
            }
            Kind::Several { options, .. } => lines.extend(self.option_rows(options, ("[x]", "[ ]"), is_here)),
        }
        (lines, focus + if self.takes_no_rows() { 0 } else { self.entered.row })
    }

    fn option_rows<'a>(
        &'a self,
        options: &'a [Choice],
        (on, off): (&'static str, &'static str),
        is_here: bool,
    ) -> impl Iterator<Item = Row> + 'a {
        options.iter().enumerate().map(move |(number, option)| {
            let mark = if self.entered.chosen.contains(&number) { on } else { off };
            let style = if is_here && number == self.entered.row { Style::Selected } else { Style::Plain };
            vec![
                Span::new(Style::Hang, "    "),
                Span::new(style, format!("{mark} {}. {}", number + 1, one(&option.label))),
                Span::new(Style::Dim, format!("  {}", one(&option.help)).trim_end().to_owned()),
            ]
        })
    }

    /// The limits of a value, in words.
    fn limits(&self) -> String {
        let number = |number: f64| Number::from_f64(number).map(|number| number.to_string()).unwrap_or_default();
        match &self.kind {
            Kind::Text { wanted, .. } => match wanted {
                Wanted::Text => String::new(),
                Wanted::Email => " · an e-mail address".to_owned(),
                Wanted::Uri => " · an address with a scheme, such as https:".to_owned(),
                Wanted::Date => " · YYYY-MM-DD".to_owned(),
                Wanted::DateTime => " · YYYY-MM-DDThh:mm:ssZ".to_owned(),
            },
            Kind::Number { is_whole, least, most } => {
                let kind = if *is_whole { "a whole number" } else { "a number" };
                let least = least.map(|least| format!(", at least {}", number(least))).unwrap_or_default();
                let most = most.map(|most| format!(", at most {}", number(most))).unwrap_or_default();
                format!(" · {kind}{least}{most}")
            }
            Kind::Several { .. } => " · Space or a number chooses".to_owned(),
            Kind::Choice { .. } => " · Space or a number chooses one".to_owned(),
            Kind::Flag => " · y or n".to_owned(),
        }
    }
}

/// The option with a number, counted from 1, or with a label.
fn place(options: &[Choice], word: &str) -> Option<usize> {
    let number = word.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let by_label = || options.iter().position(|option| option.label.eq_ignore_ascii_case(word));
    number.filter(|number| *number < options.len()).or_else(by_label)
}

/// Foreign text on one line, with everything invisible escaped.
fn one(text: &str) -> String {
    visible(text).replace('\n', "\\n")
}

fn fits(text: &str, wanted: Wanted, least: usize, most: usize) -> Result<(), String> {
    let count = text.chars().count();
    if count < least {
        return Err(format!("at least {least} characters"));
    }
    if count > most {
        return Err(format!("at most {most} characters"));
    }
    let is_right = match wanted {
        Wanted::Text => true,
        Wanted::Email => {
            text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'))
                && !text.contains(char::is_whitespace)
        }
        Wanted::Uri => {
            let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
            scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && !text.contains(char::is_whitespace)
        }
        Wanted::Date => is_date(text),
        Wanted::DateTime => is_date_time(text),
    };
    let what = match wanted {
        Wanted::Text => "a text",
        Wanted::Email => "an e-mail address",
        Wanted::Uri => "an address with a scheme",
        Wanted::Date => "a date as YYYY-MM-DD",
        Wanted::DateTime => "a time as YYYY-MM-DDThh:mm:ssZ",
    };
    if is_right { Ok(()) } else { Err(format!("this is not {what}")) }
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let is_number = |part: &str, length: usize| part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit());
    let [year, month, day] = parts[..] else { return false };
    let within = |part: &str, most: u32| part.parse::<u32>().is_ok_and(|number| (1..=most).contains(&number));
    is_number(year, 4) && is_number(month, 2) && is_number(day, 2) && within(month, 12) && within(day, 31)
}

fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    let (clock, zone) = match time.find(['Z', 'z', '+', '-']) {
        Some(at) => time.split_at(at),
        None => return false,
    };
    let whole = clock.split('.').next().unwrap_or_default();
    let parts: Vec<&str> = whole.split(':').collect();
    let fits = |part: &&str, most: u32| part.len() == 2 && part.parse::<u32>().is_ok_and(|number| number <= most);
    let is_clock = parts.len() == 3 && fits(&parts[0], 23) && fits(&parts[1], 59) && fits(&parts[2], 60);
    let is_zone = matches!(zone, "Z" | "z") || (zone.len() == 6 && zone.as_bytes()[3] == b':');
    is_date(date) && is_clock && is_zone
}

fn number(text: &str, is_whole: bool, least: Option<f64>, most: Option<f64>) -> Result<Value, String> {
    let whole = text.parse::<i64>().ok();
    let value = text.parse::<f64>().ok().filter(|number| number.is_finite());
    let value = value.filter(|_| !is_whole || whole.is_some());
    let Some(value) = value else {
        return Err(if is_whole { "this is not a whole number" } else { "this is not a number" }.to_owned());
    };
    if let Some(least) = least.filter(|least| value < *least) {
        return Err(format!("at least {least}"));
    }
    if let Some(most) = most.filter(|most| value > *most) {
        return Err(format!("at most {most}"));
    }
    let number = whole.map(Number::from).or_else(|| Number::from_f64(value));
    number.map(Value::Number).ok_or_else(|| "this is not a number".to_owned())
}
