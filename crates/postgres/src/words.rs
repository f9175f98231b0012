//! Words of texts and queries, as the index of the file store cuts them: runs of letters, digits and `_`, without case
//! and accents.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The longest word that is indexed. PostgreSQL accepts up to 2046 bytes.
const LONGEST_WORD: usize = 200;

/// The limits of PostgreSQL on positions: their number for a word, and the greatest one.
const MOST_POSITIONS: usize = 255;
const LAST_POSITION: usize = 16_383;

/// The number of words around a match in a snippet.
const SNIPPET_WORDS: usize = 16;

/// Letters with accents, and the letters without.
const ACCENTS: &[(&str, char)] = &[
    ("àáâãäåāăą", 'a'),
    ("çćĉċč", 'c'),
    ("ďđ", 'd'),
    ("èéêëēĕėęě", 'e'),
    ("ĝğġģ", 'g'),
    ("ĥ", 'h'),
    ("ìíîïĩīĭį", 'i'),
    ("ĵ", 'j'),
    ("ķ", 'k'),
    ("ĺļľ", 'l'),
    ("ñńņň", 'n'),
    ("òóôõöōŏő", 'o'),
    ("ŕŗř", 'r'),
    ("śŝşš", 's'),
    ("ţť", 't'),
    ("ùúûüũūŭůűų", 'u'),
    ("ŵ", 'w'),
    ("ýÿŷ", 'y'),
    ("źżž", 'z'),
];

/// A word, and where it is in its text.
struct Word {
    text: String,
    start: usize,
    end: usize,
}

fn is_part(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

fn folded(word: &str) -> String {
    if word.is_ascii() {
        return word[..word.len().min(LONGEST_WORD / 4)].to_ascii_lowercase();
    }
    let plain =
        |char: char| ACCENTS.iter().find(|(accented, _)| accented.contains(char)).map_or(char, |(_, plain)| *plain);
    let all = word.chars().flat_map(char::to_lowercase).map(plain);
    all.take(LONGEST_WORD / 4).collect()
}

fn words(text: &str) -> impl Iterator<Item = Word> + '_ {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + text[rest..].find(is_part)?;
        let end = text[start..].find(|char| !is_part(char)).map_or(text.len(), |length| start + length);
        rest = end;
        Some(Word { text: folded(&text[start..end]), start, end })
    })
}

/// A word in quotes, for a vector or a query of words.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\\', "\\\\").replace('\'', "''"))
}

/// The words of a text with their positions, as a literal of a vector of words.
pub(crate) fn vector(text: &str) -> String {
    let mut positions: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (number, word) in words(text).enumerate() {
        let known = positions.entry(word.text).or_default();
        if known.len() < MOST_POSITIONS {
            known.push((number + 1).min(LAST_POSITION));
        }
    }
    let mut vector = String::new();
    for (word, mut positions) in positions {
        positions.dedup();
        let positions: Vec<String> = positions.iter().map(ToString::to_string).collect();
        // Writing to a text cannot fail.
        let _ = write!(vector, "{}:{} ", quoted(&word), positions.join(","));
    }
    vector
}

/// A query for texts with all of some words; the last one may be a prefix. A word with marks inside is a phrase. Empty if
/// there is nothing to look for.
pub(crate) fn query(text: &str) -> String {
    let mut phrases: Vec<Vec<String>> = Vec::new();
    for phrase in text.split_whitespace() {
        let phrase: Vec<String> = words(phrase).map(|word| quoted(&word.text)).collect();
        if !phrase.is_empty() {
            phrases.push(phrase);
        }
    }
    if let Some(last) = phrases.last_mut().and_then(|phrase| phrase.last_mut()) {
        last.push_str(":*");
    }
    let phrases: Vec<String> = phrases.into_iter().map(|phrase| format!("({})", phrase.join(" <-> "))).collect();
    phrases.join(" & ")
}

/// An excerpt of a text around the first word of a query.
pub(crate) fn snippet(text: &str, query: &str) -> String {
    let wanted: Vec<String> = words(query).map(|word| word.text).collect();
    let is_wanted = |word: &Word| wanted.iter().any(|wanted| word.text.starts_with(wanted.as_str()));
    let (mut all, mut hit) = (Vec::new(), None);
    for word in words(text) {
        hit = hit.or_else(|| is_wanted(&word).then_some(all.len()));
        all.push(word);
        // One more word than can be shown tells that the text goes on.
        if hit.is_some_and(|hit| all.len() > hit + SNIPPET_WORDS) {
            break;
        }
    }
    let hit = hit.unwrap_or(0);
    let first = hit.saturating_sub(SNIPPET_WORDS / 2).min(all.len().saturating_sub(SNIPPET_WORDS));
    let last = (first + SNIPPET_WORDS).min(all.len());
    let (Some(from), Some(to)) = (all.get(first), all.get(last.saturating_sub(1))) else { return String::new() };
    let start = if first == 0 { 0 } else { from.start };
    let end = if last == all.len() { text.trim_end().len().max(to.end) } else { to.end };
    let (before, after) = (if first == 0 { "" } else { "…" }, if last == all.len() { "" } else { "…" });
    format!("{before}{}{after}", &text[start..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_and_folded_as_in_files() {
        assert_eq!(vector("Mend the LAMP, the lámp!"), "'lamp':3,5 'mend':1 'the':2,4 ");
        assert_eq!(vector("a_b c-d /usr/bin it's \\"), "'a_b':1 'bin':5 'c':2 'd':3 'it':6 's':7 'usr':4 ");
        assert_eq!(vector(""), "");
    }

    #[test]
    fn nothing_in_a_query_is_an_operator() {
        assert_eq!(query("fix c-d Lam"), "('fix') & ('c' <-> 'd') & ('lam':*)");
        assert_eq!(query("a & !b | ( ' :*"), "('a') & ('b':*)");
        assert_eq!(query(" ?! "), "");
    }

    #[test]
    fn a_snippet_shows_the_match() {
        let text = (0..40).map(|number| format!("w{number}")).collect::<Vec<_>>().join(" ");
        let shown = snippet(&text, "w20");
        assert!(shown.starts_with("…w12 ") && shown.ends_with(" w27…"), "{shown}");
        let shown = snippet(&text, "W3");
        assert!(shown.starts_with("w0 ") && shown.ends_with(" w15…"), "{shown}");
        let shown = snippet(&text, "w38");
        assert!(shown.starts_with("…w24 ") && shown.ends_with(" w39"), "{shown}");
        assert!(snippet(&text, "absent").ends_with(" w15…"));
        assert_eq!(snippet("sew a button\n", "but"), "sew a button");
    }
}
