//! A command as one line of text that a shell parses to the same words.

use std::fmt::Write as _;

/// Joins words into one line with as little quoting as is safe, the way the recorded transcripts show commands.
///
/// Line breaks and other control characters stay as they are; [`display`] is for showing to people.
#[must_use]
pub fn join(argv: &[String]) -> String {
    argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// Joins words into one line that makes every character visible.
///
/// Like [`join`], but a word with control characters, bidirectional marks, unusual spaces or invisible characters is
/// written as `$'…'` with escapes, so that nothing in it is hidden and `bash` still parses it to the same word.
#[must_use]
pub fn display(argv: &[String]) -> String {
    let shown = argv.iter().map(|word| if word.chars().any(is_deceptive) { escaped(word) } else { quoted(word) });
    shown.collect::<Vec<_>>().join(" ")
}

/// The kinds of quoting that a part of a word allows.
#[derive(Clone, Copy)]
struct Quoting {
    bare: bool,
    single: bool,
    double: bool,
}

impl Quoting {
    const ALL: Self = Self { bare: true, single: true, double: true };

    const fn and(self, other: Self) -> Self {
        Self { bare: self.bare && other.bare, single: self.single && other.single, double: self.double && other.double }
    }

    const fn none(self) -> bool {
        !self.bare && !self.single && !self.double
    }

    /// The kinds of quoting that a character allows, which may be the `first` of its part.
    ///
    /// Not every shell takes a backslash in single quotes literally. A circumflex starts a separate part, because
    /// interactive shells may take `^a^b` for a substitution.
    const fn of(c: char, first: bool) -> Self {
        Self {
            bare: matches!(c, '+' | '-' | '.' | '/' | ':' | '@' | ']' | '_' | '0'..='9' | 'A'..='Z' | 'a'..='z'),
            single: c != '\'' && c != '\\' && (c != '^' || first),
            double: !matches!(c, '`' | '$' | '!' | '^'),
        }
    }
}

fn quoted(word: &str) -> String {
    if word.is_empty() {
        return "''".to_owned();
    }
    let mut text = String::with_capacity(word.len() + 2);
    let mut rest = word;
    while !rest.is_empty() {
        let mut ways = Quoting::ALL;
        let mut end = rest.len();
        for (at, c) in rest.char_indices() {
            let narrower = ways.and(Quoting::of(c, at == 0));
            if narrower.none() {
                end = at;
                break;
            }
            ways = narrower;
        }
        let (stretch, after) = rest.split_at(end);
        push_stretch(&mut text, stretch, ways);
        rest = after;
    }
    text
}

fn push_stretch(text: &mut String, stretch: &str, ways: Quoting) {
    if ways.bare {
        text.push_str(stretch);
    } else if ways.single {
        text.extend(["'", stretch, "'"]);
    } else {
        text.push('"');
        for c in stretch.chars() {
            if matches!(c, '"' | '\\') {
                text.push('\\');
            }
            text.push(c);
        }
        text.push('"');
    }
}

fn escaped(word: &str) -> String {
    let mut text = "$'".to_owned();
    for c in word.chars() {
        match c {
            '\'' | '\\' => text.extend(['\\', c]),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\x1b' => text.push_str("\\e"),
            _ if !is_deceptive(c) => text.push(c),
            // Writing to a string cannot fail.
            _ if c.is_ascii() => _ = write!(text, "\\x{:02x}", c as u32),
            _ if (c as u32) < 0x1_0000 => _ = write!(text, "\\u{:04x}", c as u32),
            _ => _ = write!(text, "\\U{:08x}", c as u32),
        }
    }
    text.push('\'');
    text
}

/// Whether a character could hide text or make a line look like another.
#[must_use]
pub fn is_deceptive(c: char) -> bool {
    let invisible = matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}');
    c.is_control() || invisible || (c.is_whitespace() && c != ' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(list: &[&str]) -> Vec<String> {
        list.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn words_are_quoted_as_little_as_possible() {
        let script = words(&["bash", "-lc", "sed -n '1,$p' a.txt", "", "a=b", "ünï", "it's", "a^b", "$(x)`y`!"]);
        let shown = r#"bash -lc "sed -n '1,"'$p'"' a.txt" '' 'a=b' 'ünï' "it's" a'^b' '$(x)`y`!'"#;
        assert_eq!(join(&script), shown);
        assert_eq!(display(&script), shown);
    }

    #[test]
    fn deceptive_characters_are_escaped() {
        let words = words(&["ls\x1b[2K", "a\nb\t'\\", "x\u{202e}y", "n\u{a0}b", "\u{7f}", "\u{e0041}"]);
        assert_eq!(display(&words), r"$'ls\e[2K' $'a\nb\t\'\\' $'x\u202ey' $'n\u00a0b' $'\x7f' $'\U000e0041'");
    }
}
