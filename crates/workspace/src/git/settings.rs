//! A parser for git's configuration files that follows nothing: no includes, no conditions, values only.

/// The values of one file, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Settings(Vec<Setting>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Setting {
    section: String,
    subsection: String,
    name: String,
    value: String,
}

impl Settings {
    /// Parses what it understands and skips other lines.
    pub(crate) fn parse(text: &str) -> Self {
        let mut settings = Vec::new();
        let (mut section, mut subsection) = (String::new(), String::new());
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let mut line = line.trim_start().to_owned();
            // A value may follow a header on the same line.
            if let Some((header, rest)) = line.strip_prefix('[').and_then(split_header) {
                (section, subsection) = header;
                line = rest;
            }
            while line.ends_with('\\') && !line.ends_with("\\\\") {
                line.pop();
                line.push_str(lines.next().unwrap_or_default());
            }
            if let Some((name, value)) = split_value(&line) {
                let (section, subsection) = (section.clone(), subsection.clone());
                settings.push(Setting { section, subsection, name, value });
            }
        }
        Self(settings)
    }

    /// The last value of a key. Sections and names are case-insensitive, subsections are not.
    pub(crate) fn get(&self, section: &str, subsection: &str, name: &str) -> Option<&str> {
        let found = self.0.iter().rev().find(|setting| {
            setting.section == section && setting.subsection == subsection && setting.name.eq_ignore_ascii_case(name)
        });
        found.map(|setting| setting.value.as_str())
    }
}

/// Splits `section "subsection"] rest`.
fn split_header(text: &str) -> Option<((String, String), String)> {
    let mut quoted = false;
    let mut escaped = false;
    let end = text.char_indices().find_map(|(at, c)| {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            ']' if !quoted => return Some(at),
            _ => {}
        }
        None
    })?;
    let (header, rest) = (text.get(..end)?, text.get(end + 1..)?);
    let (section, subsection) = header.split_once(char::is_whitespace).unwrap_or((header, ""));
    let subsection = subsection.trim().trim_matches('"').replace("\\\"", "\"").replace("\\\\", "\\");
    Some(((section.trim().to_ascii_lowercase(), subsection), rest.trim_start().to_owned()))
}

/// Splits `name = value # comment`; a name alone is a boolean that is true.
fn split_value(line: &str) -> Option<(String, String)> {
    if line.is_empty() || line.starts_with(['#', ';']) {
        return None;
    }
    let Some((name, rest)) = line.split_once('=') else {
        return Some((line.trim().to_owned(), "true".to_owned()));
    };
    let mut value = String::new();
    let (mut quoted, mut kept) = (false, 0);
    let mut characters = rest.trim_start().chars();
    while let Some(c) = characters.next() {
        match c {
            '"' => quoted = !quoted,
            '\\' => value.push(match characters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some(other) => other,
                None => break,
            }),
            '#' | ';' if !quoted => break,
            c => value.push(c),
        }
        // Trailing white space counts only within quotes.
        if quoted || !c.is_whitespace() {
            kept = value.len();
        }
    }
    value.truncate(kept);
    Some((name.trim().to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, key: (&str, &str, &str), expected: Option<&str>) {
        assert_eq!(Settings::parse(text).get(key.0, key.1, key.2), expected, "{text}");
    }

    const URL: (&str, &str, &str) = ("remote", "origin", "url");

    #[test]
    fn values_are_found_as_git_finds_them() {
        check("[remote \"origin\"]\n\turl = https://h/r.git # mine\n", URL, Some("https://h/r.git"));
        check("[Remote \"origin\"]\nURL=\"a b\"  ; x\n", URL, Some("a b"));
        check("[remote \"origin\"] url = one\n[remote \"origin\"]\nurl = two\n", URL, Some("two"));
        check("[remote \"Origin\"]\nurl = x\n", URL, None);
        check("[remote \"a]b\\\"c\"]\nurl = x\n", ("remote", "a]b\"c", "url"), Some("x"));
        check("[core]\nbare\n", ("core", "", "bare"), Some("true"));
        check("[core]\nx = a\\\nb\n", ("core", "", "x"), Some("ab"));
        check("[core]\nx = \"a # b \" c  \n", ("core", "", "x"), Some("a # b  c"));
    }

    #[test]
    fn nothing_is_obeyed_and_nothing_panics() {
        check("[include]\npath = /etc/passwd\n", URL, None);
        for broken in ["[", "[a", "[a \"b]", "=", "[a]\n=\n", "[a]\nx = \\", "\u{feff}[a]\nx"] {
            check(broken, URL, None);
        }
    }
}
