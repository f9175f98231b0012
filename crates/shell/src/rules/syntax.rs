//! A parser for rules files: the Starlark calls that are in use, and nothing else of that language.

use std::fmt;

/// A position in a text, starting at 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// A syntax error and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub(super) place: Place,
    pub(super) problem: String,
}

impl SyntaxError {
    pub(super) fn new(place: Place, problem: impl fmt::Display) -> Self {
        Self { place, problem: problem.to_string() }
    }
}

/// The value of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    List(Vec<Located>),
    /// A number, `True`, `False` or `None`.
    Word(String),
}

impl Value {
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Word(_) => "a word",
        }
    }
}

/// A value and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Located {
    pub(super) value: Value,
    pub(super) place: Place,
}

/// A call with named arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) arguments: Vec<(String, Located)>,
    /// The call as written.
    pub(super) text: String,
    /// The trailing comment on the same line.
    pub(super) comment: Option<String>,
}

/// Parses all calls of a rules file.
pub(super) fn calls(text: &str) -> Result<Vec<Call>, SyntaxError> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    let mut calls = Vec::new();
    loop {
        reader.skip_blank();
        match reader.peek() {
            None => return Ok(calls),
            Some(';') if !calls.is_empty() => reader.at += 1,
            Some(_) => calls.push(reader.call()?),
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn place(&self) -> Place {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        Place { line, column: before.rsplit('\n').next().unwrap_or("").chars().count() + 1 }
    }

    fn error<T>(&self, problem: impl fmt::Display) -> Result<T, SyntaxError> {
        Err(SyntaxError::new(self.place(), problem))
    }

    fn skip_blank(&mut self) {
        while let Some(c) = self.peek() {
            if c == '#' {
                self.at += self.rest().find('\n').unwrap_or(self.rest().len());
            } else if c.is_ascii_whitespace() {
                self.at += 1;
            } else {
                break;
            }
        }
    }

    /// Consumes one character, and any blanks before it.
    fn take(&mut self, wanted: char) -> Result<(), SyntaxError> {
        self.skip_blank();
        match self.peek() {
            Some(c) if c == wanted => {
                self.at += c.len_utf8();
                Ok(())
            }
            Some(c) => self.error(format_args!("expected `{wanted}`, found `{}`", c.escape_debug())),
            None => self.error(format_args!("expected `{wanted}`, found the end of the file")),
        }
    }

    fn name(&mut self, what: &str) -> Result<&'a str, SyntaxError> {
        let rest = self.rest();
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let name = rest.get(..length).unwrap_or("");
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return self.error(format_args!("expected {what}"));
        }
        self.at += length;
        Ok(name)
    }

    fn call(&mut self) -> Result<Call, SyntaxError> {
        let (start, place) = (self.at, self.place());
        let name = self.name("a call such as `prefix_rule(…)`")?.to_owned();
        self.take('(')?;
        let mut arguments = Vec::new();
        loop {
            self.skip_blank();
            if self.peek() == Some(')') {
                self.at += 1;
                break;
            }
            let name_place = self.place();
            let argument = self.name("the name of an argument or `)`")?.to_owned();
            if arguments.iter().any(|(name, _)| *name == argument) {
                return Err(SyntaxError::new(name_place, format_args!("`{argument}` is given twice")));
            }
            self.take('=')?;
            arguments.push((argument, self.value()?));
            if !self.comma_or(')')? {
                break;
            }
        }
        let text = self.text.get(start..self.at).unwrap_or("").to_owned();
        self.end_of_statement()?;
        let line = self.rest().lines().next().unwrap_or("").trim_start();
        let comment = line.strip_prefix('#').map(|comment| comment.trim().to_owned());
        Ok(Call { name, place, arguments, text, comment })
    }

    /// Consumes a comma and returns true, or the closing character and returns false.
    fn comma_or(&mut self, close: char) -> Result<bool, SyntaxError> {
        self.skip_blank();
        if self.peek() == Some(',') {
            self.at += 1;
            return Ok(true);
        }
        self.take(close).map(|()| false)
    }

    /// Two calls must be on separate lines or separated by a semicolon.
    fn end_of_statement(&self) -> Result<(), SyntaxError> {
        let rest = self.rest().trim_start_matches([' ', '\t', '\r']);
        match rest.chars().next() {
            None | Some('\n' | '#' | ';') => Ok(()),
            Some(_) => self.error("expected the end of the line after the call"),
        }
    }

    fn value(&mut self) -> Result<Located, SyntaxError> {
        self.skip_blank();
        let place = self.place();
        let value = match self.peek() {
            Some('"' | '\'') => Value::Text(self.string(false)?),
            Some('r')
                if self.rest().starts_with(['r']) && matches!(self.rest().as_bytes().get(1), Some(b'"' | b'\'')) =>
            {
                self.at += 1;
                Value::Text(self.string(true)?)
            }
            Some('[') => Value::List(self.list()?),
            Some(c) if c.is_ascii_digit() => {
                let length = self.rest().find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest().len());
                let word = self.rest().get(..length).unwrap_or("").to_owned();
                self.at += length;
                Value::Word(word)
            }
            _ => match self.name("a string or a list")? {
                word @ ("True" | "False" | "None") => Value::Word(word.to_owned()),
                word => {
                    return Err(SyntaxError::new(place, format_args!("expected a string or a list, found `{word}`")));
                }
            },
        };
        Ok(Located { value, place })
    }

    fn list(&mut self) -> Result<Vec<Located>, SyntaxError> {
        self.depth += 1;
        if self.depth > 8 {
            return self.error("lists are nested too deeply");
        }
        self.take('[')?;
        let mut values = Vec::new();
        loop {
            self.skip_blank();
            if self.peek() == Some(']') {
                self.at += 1;
                break;
            }
            values.push(self.value()?);
            if !self.comma_or(']')? {
                break;
            }
        }
        self.depth -= 1;
        Ok(values)
    }

    fn string(&mut self, raw: bool) -> Result<String, SyntaxError> {
        let open = self.place();
        let rest = self.rest();
        let mark = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|mark| rest.starts_with(mark)).unwrap_or("\"");
        self.at += mark.len();
        let mut text = String::new();
        loop {
            if self.rest().starts_with(mark) {
                self.at += mark.len();
                return Ok(text);
            }
            match self.peek() {
                None => return Err(SyntaxError::new(open, "the string is not closed")),
                Some('\n') if mark.len() == 1 => return Err(SyntaxError::new(open, "the string is not closed")),
                Some('\\') if raw => {
                    let pair: Vec<_> = self.rest().chars().take(2).collect();
                    self.at += pair.iter().map(|c| c.len_utf8()).sum::<usize>();
                    text.extend(pair);
                }
                Some('\\') => text.extend(self.escape()?),
                Some(c) => {
                    text.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
    }

    /// Parses one escape; a backslash before a line break is ignored.
    fn escape(&mut self) -> Result<Option<char>, SyntaxError> {
        let rest = self.rest();
        let mut chars = rest.chars().skip(1);
        let (c, length) = match chars.next() {
            Some('\n') => (None, 2),
            Some('n') => (Some('\n'), 2),
            Some('t') => (Some('\t'), 2),
            Some('r') => (Some('\r'), 2),
            Some('a') => (Some('\x07'), 2),
            Some('b') => (Some('\x08'), 2),
            Some('f') => (Some('\x0c'), 2),
            Some('v') => (Some('\x0b'), 2),
            Some(c @ ('\\' | '\'' | '"')) => (Some(c), 2),
            Some(kind @ ('x' | 'u' | 'U')) => {
                let digits = match kind {
                    'x' => 2,
                    'u' => 4,
                    _ => 8,
                };
                let code = rest.get(2..2 + digits).filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()));
                let c = code.and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32);
                // `\x` above 7f would be a byte and not a character.
                let c = c.filter(|c| kind != 'x' || c.is_ascii());
                (Some(c.map_or_else(|| self.error("not a character"), Ok)?), 2 + digits)
            }
            _ => return self.error("unknown escape in a string"),
        };
        self.at += length;
        Ok(c)
    }
}
