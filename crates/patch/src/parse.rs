//! Parses the text of a patch.
//!
//! Models are forgiven for anything unambiguous: white space around markers, empty lines without a prefix, carriage
//! returns on every line, a here-document around the whole, hunk headers with line numbers, and the remark about a
//! missing newline at the end. Anything else is an error that names the line.

use std::path::PathBuf;

use crate::grammar::{Chunk, Line, LineKind, Operation, Patch};

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// The maximum number of characters of a line in an error.
const SHOWN: usize = 80;

/// The reason why a text is not a patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The first line is wrong.
    #[error("invalid patch: The first line of the patch must be '*** Begin Patch'")]
    NoBegin,
    /// The last line is wrong.
    #[error("invalid patch: The last line of the patch must be '*** End Patch'")]
    NoEnd,
    /// It contains no operation.
    #[error("invalid patch: line {line}: expected {FIRST}, found '{END}'")]
    NothingToDo {
        /// The number of the last line, starting at 1.
        line: usize,
    },
    /// A line that should name an operation and a file does not.
    #[error("invalid patch: line {line}: expected {OPERATION}, found '{found}'")]
    NoOperation {
        /// The line number, starting at 1.
        line: usize,
        /// The line, shortened.
        found: String,
    },
    /// An update that changes nothing.
    #[error("invalid patch: line {line}: the update of '{path}' has no lines", path = .path.display())]
    EmptyUpdate {
        /// The line number of its header, starting at 1.
        line: usize,
        path: PathBuf,
    },
    /// A line is invalid in its place.
    #[error("invalid patch: line {line}: expected {expected}, found '{found}'")]
    Unexpected {
        /// The line number, starting at 1.
        line: usize,
        expected: &'static str,
        /// The line, shortened.
        found: String,
    },
}

const FIRST: &str = "'*** Add File: PATH', '*** Delete File: PATH' or '*** Update File: PATH'";
const OPERATION: &str = "'*** Add File: PATH', '*** Delete File: PATH', '*** Update File: PATH' or '*** End Patch'";
const PATH: &str = "a path";
const NEXT_CHUNK: &str = "'@@' or '***'";
const CHUNK_LINE: &str = "a line that begins with ' ', '-' or '+'";

/// Parses a patch.
pub fn parse(text: &str) -> Result<Patch, ParseError> {
    let mut parser = Parser::new(text)?;
    let mut operations = Vec::new();
    loop {
        parser.skip_blank();
        if parser.line().is_none() {
            break;
        }
        operations.push(parser.operation()?);
    }
    if operations.is_empty() {
        Err(ParseError::NothingToDo { line: parser.number() })
    } else {
        Ok(Patch { operations })
    }
}

/// The lines between the first and the last marker, and the position.
struct Parser<'a> {
    lines: Vec<&'a str>,
    next: usize,
    /// The number of lines of the text before the first of `lines`.
    before: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Self, ParseError> {
        let all: Vec<&str> = text.trim_start_matches('\u{feff}').split('\n').collect();
        let (mut first, mut last) = (0, all.len());
        trim_blank(&all, &mut first, &mut last);
        let word = all.get(first).and_then(|line| here_document(line));
        if last > first + 1 && word == Some(all[last - 1].trim()) {
            (first, last) = (first + 1, last - 1);
            trim_blank(&all, &mut first, &mut last);
        }
        if first == last || all[first].trim() != BEGIN {
            return Err(ParseError::NoBegin);
        }
        if last - first < 2 || all[last - 1].trim() != END {
            return Err(ParseError::NoEnd);
        }
        let mut lines = all[first + 1..last - 1].to_vec();
        if all[first].ends_with('\r') {
            for line in &mut lines {
                *line = line.strip_suffix('\r').unwrap_or(line);
            }
        }
        Ok(Self { lines, next: 0, before: first + 1 })
    }

    fn line(&self) -> Option<&'a str> {
        self.lines.get(self.next).copied()
    }

    fn skip_blank(&mut self) {
        while self.line().is_some_and(is_blank) {
            self.next += 1;
        }
    }

    fn unexpected(&self, expected: &'static str) -> ParseError {
        ParseError::Unexpected { line: self.number(), expected, found: self.found() }
    }

    /// The number of the next line of the text, starting at 1.
    fn number(&self) -> usize {
        self.before + self.next + 1
    }

    /// The next line, shortened for an error.
    fn found(&self) -> String {
        let found = self.line().unwrap_or(END).trim_end().chars().take(SHOWN);
        found.map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
    }

    /// Parses the path after a marker, if the next line is that marker.
    fn marker(&mut self, marker: &str) -> Result<Option<PathBuf>, ParseError> {
        let Some(path) = self.line().and_then(|line| line.trim().strip_prefix(marker)) else { return Ok(None) };
        let path = path.trim();
        if path.is_empty() || path.contains('\0') {
            return Err(self.unexpected(PATH));
        }
        self.next += 1;
        Ok(Some(PathBuf::from(path)))
    }

    fn operation(&mut self) -> Result<Operation, ParseError> {
        let line = self.number();
        if let Some(path) = self.marker(ADD)? {
            Ok(Operation::Add { path, content: self.added_lines() })
        } else if let Some(path) = self.marker(DELETE)? {
            Ok(Operation::Delete { path })
        } else if let Some(path) = self.marker(UPDATE)? {
            let move_to = self.marker(MOVE)?;
            let chunks = self.chunks()?;
            if chunks.is_empty() && move_to.is_none() {
                return Err(ParseError::EmptyUpdate { line, path });
            }
            Ok(Operation::Update { path, move_to, chunks })
        } else {
            Err(ParseError::NoOperation { line, found: self.found() })
        }
    }

    /// Parses the content of a new file. An empty line between lines of content is part of it.
    fn added_lines(&mut self) -> String {
        let mut content = String::new();
        loop {
            let blank = self.lines[self.next..].iter().take_while(|line| line.trim_end().is_empty()).count();
            match self.lines.get(self.next + blank) {
                Some(line) if line.starts_with('+') => {
                    content.extend(std::iter::repeat_n('\n', blank));
                    content.push_str(&line[1..]);
                    content.push('\n');
                    self.next += blank + 1;
                }
                Some(line) if blank == 0 && is_no_newline(line) && !content.is_empty() => {
                    content.pop();
                    self.next += 1;
                    return content;
                }
                _ => return content,
            }
        }
    }

    fn chunks(&mut self) -> Result<Vec<Chunk>, ParseError> {
        let mut chunks = Vec::new();
        while let Some(line) = self.line() {
            if line.starts_with("***") {
                break;
            }
            let chunk = self.chunk(chunks.is_empty())?;
            // Empty lines between the parts of a patch are not an edit.
            if !(chunk.anchors.is_empty() && chunk.lines.iter().all(|line| line.bare)) {
                chunks.push(chunk);
            }
        }
        Ok(chunks)
    }

    /// Parses one chunk; only the first of a file may lack `@@`.
    fn chunk(&mut self, first: bool) -> Result<Chunk, ParseError> {
        let mut chunk = Chunk::default();
        let mut headed = false;
        while let Some(header) = self.line().and_then(|line| line.strip_prefix("@@")) {
            let anchor = anchor(header.strip_suffix('\r').unwrap_or(header));
            chunk.anchors.extend((!anchor.trim().is_empty()).then(|| anchor.to_owned()));
            headed = true;
            self.next += 1;
        }
        if !headed && !first && self.line().is_some_and(|line| !is_blank(line)) {
            return Err(self.unexpected(NEXT_CHUNK));
        }
        while let Some(line) = self.line() {
            if line.starts_with("@@") {
                break;
            } else if line.starts_with("***") {
                if line.trim_end() == END_OF_FILE {
                    chunk.end_of_file = true;
                    self.next += 1;
                }
                break;
            } else if is_no_newline(line) && !chunk.lines.is_empty() {
                note_no_newline(&mut chunk);
            } else {
                chunk.lines.push(chunk_line(line).ok_or_else(|| self.unexpected(CHUNK_LINE))?);
            }
            self.next += 1;
        }
        if headed && chunk.lines.is_empty() { Err(self.unexpected(CHUNK_LINE)) } else { Ok(chunk) }
    }
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

fn trim_blank(lines: &[&str], first: &mut usize, last: &mut usize) {
    while *first < *last && is_blank(lines[*first]) {
        *first += 1;
    }
    while *first < *last && is_blank(lines[*last - 1]) {
        *last -= 1;
    }
}

/// The delimiter of a here-document, if the line starts one.
fn here_document(line: &str) -> Option<&str> {
    let word = line.trim().strip_prefix("<<")?.trim_start();
    let quoted = |quote| word.strip_prefix(quote).and_then(|word| word.strip_suffix(quote));
    let word = quoted('\'').or_else(|| quoted('"')).unwrap_or(word);
    (!word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')).then_some(word)
}

/// The anchor after `@@`, without the line numbers of other diff formats.
fn anchor(header: &str) -> &str {
    let header = header.strip_prefix(' ').unwrap_or(header);
    let Some((numbers, rest)) = header.split_once("@@") else { return header };
    let is_range = |word: &str, sign| {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let range = word.strip_prefix(sign);
        range.is_some_and(|range| range.split_once(',').map_or_else(|| digits(range), |(a, b)| digits(a) && digits(b)))
    };
    match numbers.split_whitespace().collect::<Vec<_>>()[..] {
        [old, new] if is_range(old, '-') && is_range(new, '+') => rest.strip_prefix(' ').unwrap_or(rest),
        _ => header,
    }
}

/// Whether a line is the remark that the previous line has no newline.
fn is_no_newline(line: &str) -> bool {
    line.trim_end() == "\\ No newline at end of file"
}

/// Applies the remark: the side of the last line ends without a newline, the other with one.
fn note_no_newline(chunk: &mut Chunk) {
    chunk.end_of_file = true;
    match chunk.lines.last().map(|line| line.kind) {
        Some(LineKind::Remove) => chunk.final_newline = chunk.final_newline.or(Some(true)),
        Some(LineKind::Context | LineKind::Add) => chunk.final_newline = Some(false),
        None => {}
    }
}

fn chunk_line(line: &str) -> Option<Line> {
    let (line, carriage_return) = line.strip_suffix('\r').map_or((line, false), |line| (line, true));
    let kind = match line.bytes().next() {
        None => return Some(Line { kind: LineKind::Context, text: String::new(), carriage_return, bare: true }),
        Some(b' ') => LineKind::Context,
        Some(b'-') => LineKind::Remove,
        Some(b'+') => LineKind::Add,
        Some(_) => return None,
    };
    Some(Line { kind, text: line[1..].to_owned(), carriage_return, bare: false })
}
