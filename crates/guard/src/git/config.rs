//! A parser of git's configuration that follows git's own.
//!
//! Invariant: a file that git would reject is marked as broken.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::plain;

/// One line of a configuration: `section.subsection.key = value`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Entry {
    /// In lower case.
    pub section: String,
    /// As written; in lower case for the deprecated dot syntax.
    pub subsection: Option<Vec<u8>>,
    /// In lower case.
    pub key: String,
    /// `None` for a key without a value, which means true.
    pub value: Option<Vec<u8>>,
}

impl Entry {
    /// Whether this is the given key, in any subsection.
    #[must_use]
    pub fn is(&self, section: &str, key: &str) -> bool {
        self.section == section && self.key == key
    }

    /// The value as a path, with the home folder expanded. A key without a value is no path.
    #[must_use]
    pub fn path(&self, base: &Path) -> Option<PathBuf> {
        resolve(self.value.as_deref()?, base)
    }
}

/// A path in a value or in a command, relative to `base`.
#[must_use]
pub fn resolve(value: &[u8], base: &Path) -> Option<PathBuf> {
    let value = os_string(value)?;
    if value.is_empty() {
        return None;
    }
    let path = match Path::new(&value).strip_prefix("~") {
        Ok(rest) => std::env::home_dir()?.join(rest),
        Err(_) => base.join(value),
    };
    Some(plain(&path))
}

#[cfg(unix)]
fn os_string(bytes: &[u8]) -> Option<OsString> {
    use std::os::unix::ffi::OsStrExt as _;

    (!bytes.contains(&0)).then(|| std::ffi::OsStr::from_bytes(bytes).to_owned())
}

#[cfg(not(unix))]
fn os_string(bytes: &[u8]) -> Option<OsString> {
    String::from_utf8(bytes.to_vec()).ok().map(OsString::from)
}

/// A parsed configuration.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    pub entries: Vec<Entry>,
    /// Whether git would reject the file. Then the entries are those before the error, which git still applies.
    pub is_broken: bool,
}

/// Parses text as git does.
#[must_use]
pub fn parse(text: &[u8]) -> Parsed {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut source = Source { text, at: 0 };
    let mut parsed = Parsed::default();
    let mut heading = Vec::new();
    while let Some(byte) = source.next() {
        let read = match byte {
            b' ' | b'\t' | b'\r' | b'\n' => Some(()),
            b'#' | b';' => {
                source.skip_line();
                Some(())
            }
            b'[' => source.heading().map(|read| heading = read),
            byte if byte.is_ascii_alphabetic() => {
                source.variable(byte).map(|(key, value)| parsed.entries.extend(entry(&heading, key, value)))
            }
            _ => None,
        };
        if read.is_none() {
            parsed.is_broken = true;
            break;
        }
    }
    parsed
}

/// Splits the name as git does: at the first and at the last dot. A key outside of all sections is ignored.
fn entry(heading: &[u8], key: String, value: Option<Vec<u8>>) -> Option<Entry> {
    let (section, subsection) = match heading.iter().position(|byte| *byte == b'.') {
        Some(dot) => (heading.get(..dot)?, heading.get(dot + 1..).map(<[u8]>::to_vec)),
        None => (heading, None),
    };
    let section = String::from_utf8(section.to_vec()).ok()?;
    (!section.is_empty()).then_some(Entry { section, subsection, key, value })
}

struct Source<'a> {
    text: &'a [u8],
    at: usize,
}

impl Source<'_> {
    /// The next character, with CRLF as one newline.
    fn next(&mut self) -> Option<u8> {
        let rest = self.text.get(self.at..)?;
        let (byte, length) = match rest {
            [b'\r', b'\n', ..] => (b'\n', 2),
            [byte, ..] => (*byte, 1),
            [] => return None,
        };
        self.at += length;
        Some(byte)
    }

    /// The next character; the end of the text also ends a line.
    fn next_in_line(&mut self) -> u8 {
        self.next().unwrap_or(b'\n')
    }

    fn skip_line(&mut self) {
        while self.next_in_line() != b'\n' {}
    }

    /// The heading between brackets, with a dot before the subsection.
    fn heading(&mut self) -> Option<Vec<u8>> {
        let mut name = Vec::new();
        loop {
            match self.next()? {
                b']' => return Some(name),
                byte if is_space(byte) => return self.subsection(name, byte),
                byte if is_key(byte) || byte == b'.' => name.push(byte.to_ascii_lowercase()),
                _ => return None,
            }
        }
    }

    fn subsection(&mut self, mut name: Vec<u8>, mut byte: u8) -> Option<Vec<u8>> {
        while is_space(byte) {
            if byte == b'\n' {
                return None;
            }
            byte = self.next()?;
        }
        if byte != b'"' {
            return None;
        }
        name.push(b'.');
        loop {
            match self.next()? {
                b'\n' => return None,
                b'"' => break,
                b'\\' => match self.next()? {
                    b'\n' => return None,
                    byte => name.push(byte),
                },
                byte => name.push(byte),
            }
        }
        (self.next()? == b']').then_some(name)
    }

    fn variable(&mut self, first: u8) -> Option<(String, Option<Vec<u8>>)> {
        let mut key = String::from(char::from(first.to_ascii_lowercase()));
        let mut byte = self.next_in_line();
        while is_key(byte) {
            key.push(char::from(byte.to_ascii_lowercase()));
            byte = self.next_in_line();
        }
        while matches!(byte, b' ' | b'\t') {
            byte = self.next_in_line();
        }
        match byte {
            b'\n' => Some((key, None)),
            b'=' => self.value().map(|value| (key, Some(value))),
            _ => None,
        }
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let (mut value, mut is_quoted) = (Vec::new(), false);
        // The length without trailing white space.
        let mut trimmed = None;
        loop {
            let byte = self.next_in_line();
            match byte {
                b'\n' if is_quoted => return None,
                b'\n' => break,
                byte if is_space(byte) && !is_quoted => {
                    trimmed.get_or_insert(value.len());
                    if !value.is_empty() {
                        value.push(byte);
                    }
                    continue;
                }
                b'#' | b';' if !is_quoted => {
                    self.skip_line();
                    break;
                }
                _ => trimmed = None,
            }
            match byte {
                b'"' => is_quoted = !is_quoted,
                b'\\' => match self.next_in_line() {
                    b'\n' => {}
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    b'n' => value.push(b'\n'),
                    byte @ (b'\\' | b'"') => value.push(byte),
                    _ => return None,
                },
                byte => value.push(byte),
            }
        }
        value.truncate(trimmed.unwrap_or(value.len()));
        Some(value)
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

/// Formats entries so that git reads exactly them.
#[must_use]
pub fn print(entries: &[Entry]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut heading = Vec::new();
    for entry in entries {
        let mut own = format!("[{}", entry.section).into_bytes();
        if let Some(subsection) = &entry.subsection {
            own.extend_from_slice(b" \"");
            for byte in subsection {
                if matches!(byte, b'"' | b'\\') {
                    own.push(b'\\');
                }
                own.push(*byte);
            }
            own.push(b'"');
        }
        own.extend_from_slice(b"]\n");
        if own != heading {
            text.extend_from_slice(&own);
            heading = own;
        }
        text.push(b'\t');
        text.extend_from_slice(entry.key.as_bytes());
        if let Some(value) = &entry.value {
            text.extend_from_slice(b" = ");
            text.extend(quoted(value));
        }
        text.push(b'\n');
    }
    text
}

fn quoted(value: &[u8]) -> Vec<u8> {
    let mut text = vec![b'"'];
    for byte in value {
        match byte {
            b'"' | b'\\' => text.extend_from_slice(&[b'\\', *byte]),
            b'\n' => text.extend_from_slice(b"\\n"),
            b'\t' => text.extend_from_slice(b"\\t"),
            8 => text.extend_from_slice(b"\\b"),
            byte => text.push(*byte),
        }
    }
    text.push(b'"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prints the parsed entries, one per line.
    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let parsed = parse(text.as_bytes());
        assert_eq!(shown(&parsed), expected, "{text:?}");
        if !parsed.is_broken {
            assert_eq!(parse(&print(&parsed.entries)).entries, parsed.entries, "{text:?} is printed as it was");
        }
    }

    fn shown(parsed: &Parsed) -> Vec<String> {
        let lossy = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        let show = |entry: &Entry| {
            let subsection = entry.subsection.as_ref().map(|it| format!(".{}", lossy(it))).unwrap_or_default();
            let value = entry.value.as_ref().map(|it| format!("={}", lossy(it))).unwrap_or_default();
            format!("{}{subsection}.{}{value}", entry.section, entry.key)
        };
        let broken = parsed.is_broken.then(|| "broken".to_owned());
        parsed.entries.iter().map(show).chain(broken).collect()
    }

    #[test]
    fn comments_quotes_escapes_and_continuations() {
        check("[core]\n\thooksPath = .githooks # ours\n\tbare\n; x = y\n", &["core.hookspath=.githooks", "core.bare"]);
        check("[core] a = \" # no \" ; c\n[core]b=1", &["core.a= # no ", "core.b=1"]);
        check("[core]\n a = x\\\n  y \\\n z\\t\\n\\\"\n", &["core.a=x  y  z\t\n\""]);
        check("[a \"B.c \\\" \\d\"] Key=V\n[A.B.C]k", &["a.B.c \" d.key=V", "a.b.c.k"]);
        check("\u{feff}[x]\r\ny = 1\r\n[x]z\r\n", &["x.y=1", "x.z"]);
        check("key = outside\n[x]\ny = \n", &["x.y="]);
    }

    #[test]
    fn failures_of_git_are_recognised() {
        check("[a]\nb = 1\nc = \"open\nd = 2\n", &["a.b=1", "broken"]);
        check("[a]\nb = \\x\n", &["broken"]);
        check("[a b]\n", &["broken"]);
        check("[a]\n= 1\n", &["broken"]);
        check("[a\nb]\n", &["broken"]);
        check("[a]\nb_c = 1\n", &["broken"]);
    }

    /// We read every entry that git reads from a text.
    #[test]
    fn texts_are_read_as_git_reads_them() {
        let base = tempfile::tempdir().unwrap();
        let file = base.path().join("config");
        let pieces =
            ["[", "]", "a", "B", ".", " ", "\t", "\n", "\r\n", "\"", "\\", "=", "#", ";", "-", "[s]\n", "k = ", "1"];
        let mut state = 7_u64;
        for _ in 0..300 {
            let mut text = "[x]\n".to_owned();
            for _ in 0..12 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.push_str(pieces[usize::try_from(state >> 33).unwrap() % pieces.len()]);
            }
            std::fs::write(&file, &text).unwrap();
            let mut command = std::process::Command::new("git");
            let Ok(run) = command.args(["config", "--null", "--list", "--file"]).arg(&file).output() else { return };
            let parsed = parse(text.as_bytes());
            assert_eq!(run.status.success(), !parsed.is_broken, "{text:?} {}", String::from_utf8_lossy(&run.stderr));
            if parsed.is_broken {
                continue;
            }
            let told = String::from_utf8_lossy(&run.stdout).replace('\n', "=");
            let theirs: Vec<&str> = told.split_terminator('\0').filter(|line| line.contains('.')).collect();
            let ours: Vec<String> = shown(&parsed).iter().map(|line| line.replace('\n', "=")).collect();
            assert_eq!(ours, theirs, "{text:?}");
        }
    }
}
