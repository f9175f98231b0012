//! Colours of code, by the words and marks of its language.
//!
//! A lexer of a few lines for each family of languages is enough to tell comments, texts, numbers and keywords apart. It
//! needs no tables at the start and no memory, and text that is not code in its language is merely coloured oddly.

use crate::style::add;
use crate::{Row, Style};

/// A family of languages.
struct Language {
    /// The start of a comment up to the end of its line.
    line_comments: &'static [&'static str],
    /// The start and the end of a comment over several lines.
    block_comment: Option<(&'static str, &'static str)>,
    quotes: &'static [char],
    keywords: &'static [&'static str],
}

const RUST: Language = Language {
    line_comments: &["//"],
    block_comment: Some(("/*", "*/")),
    quotes: &['"'],
    keywords: &[
        "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "extern", "false", "fn",
        "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref", "return", "self",
        "Self", "static", "struct", "super", "trait", "true", "type", "unsafe", "use", "where", "while",
    ],
};

const C_LIKE: Language = Language {
    line_comments: &["//"],
    block_comment: Some(("/*", "*/")),
    quotes: &['"', '\'', '`'],
    keywords: &[
        "abstract",
        "async",
        "await",
        "bool",
        "boolean",
        "break",
        "case",
        "catch",
        "chan",
        "char",
        "class",
        "const",
        "continue",
        "default",
        "defer",
        "delete",
        "do",
        "double",
        "else",
        "enum",
        "export",
        "extends",
        "false",
        "final",
        "finally",
        "float",
        "for",
        "from",
        "func",
        "function",
        "go",
        "if",
        "implements",
        "import",
        "in",
        "instanceof",
        "int",
        "interface",
        "let",
        "long",
        "map",
        "namespace",
        "new",
        "nil",
        "null",
        "nullptr",
        "of",
        "package",
        "private",
        "protected",
        "public",
        "range",
        "readonly",
        "return",
        "select",
        "static",
        "string",
        "struct",
        "super",
        "switch",
        "template",
        "this",
        "throw",
        "true",
        "try",
        "type",
        "typename",
        "typeof",
        "undefined",
        "unsigned",
        "using",
        "var",
        "virtual",
        "void",
        "while",
        "yield",
    ],
};

const PYTHON: Language = Language {
    line_comments: &["#"],
    block_comment: Some(("\"\"\"", "\"\"\"")),
    quotes: &['"', '\''],
    keywords: &[
        "and", "as", "assert", "async", "await", "begin", "break", "class", "continue", "def", "del", "do", "elif",
        "else", "elsif", "end", "ensure", "except", "False", "finally", "for", "from", "global", "if", "import", "in",
        "is", "lambda", "match", "module", "nil", "None", "nonlocal", "not", "or", "pass", "raise", "require",
        "rescue", "return", "self", "then", "True", "true", "false", "try", "unless", "until", "while", "with",
        "yield",
    ],
};

const SHELL: Language = Language {
    line_comments: &["#"],
    block_comment: None,
    quotes: &['"', '\''],
    keywords: &[
        "case", "do", "done", "elif", "else", "esac", "exit", "export", "fi", "for", "function", "if", "in", "local",
        "return", "set", "then", "true", "false", "until", "while",
    ],
};

const DATA: Language = Language {
    line_comments: &["#"],
    block_comment: None,
    quotes: &['"', '\''],
    keywords: &["true", "false", "null", "yes", "no"],
};

const SQL: Language = Language {
    line_comments: &["--"],
    block_comment: Some(("/*", "*/")),
    quotes: &['\'', '"'],
    keywords: &[
        "alter", "and", "as", "by", "create", "delete", "drop", "from", "group", "having", "in", "index", "insert",
        "into", "is", "join", "key", "left", "limit", "not", "null", "on", "or", "order", "primary", "select", "set",
        "table", "union", "update", "values", "where", "with",
    ],
};

fn language(name: &str) -> Option<&'static Language> {
    Some(match name.to_ascii_lowercase().as_str() {
        "rust" | "rs" => &RUST,
        "c" | "h" | "cpp" | "c++" | "cc" | "hpp" | "cs" | "csharp" | "java" | "kotlin" | "kt" | "swift" | "go"
        | "javascript" | "js" | "jsx" | "mjs" | "typescript" | "ts" | "tsx" | "php" | "scala" | "dart" | "zig"
        | "css" | "scss" | "proto" => &C_LIKE,
        "python" | "py" | "ruby" | "rb" | "elixir" | "ex" => &PYTHON,
        "sh" | "bash" | "zsh" | "fish" | "shell" | "console" | "make" | "makefile" | "dockerfile" => &SHELL,
        "json" | "jsonc" | "toml" | "yaml" | "yml" | "ini" | "hcl" | "nix" => &DATA,
        "sql" => &SQL,
        _ => return None,
    })
}

/// The lines of some code, coloured if its language is known.
#[must_use]
pub fn code(name: &str, text: &str) -> Vec<Row> {
    code_within(name, text, &mut false)
}

/// The same for a part of some code, which may begin and end within a comment.
pub(crate) fn code_within(name: &str, text: &str, is_comment: &mut bool) -> Vec<Row> {
    let Some(language) = language(name) else {
        return text.lines().map(|line| vec![crate::Span::new(Style::Code, line)]).collect();
    };
    text.lines().map(|line| coloured(language, line, is_comment)).collect()
}

fn coloured(language: &Language, line: &str, is_comment: &mut bool) -> Row {
    let (mut row, mut rest) = (Row::new(), line);
    while !rest.is_empty() {
        let (length, style) = next(language, rest, is_comment);
        let (piece, after) = rest.split_at(length);
        add(&mut row, style, piece);
        rest = after;
    }
    row
}

/// The next piece of a line: its length, which is not zero, and its style.
fn next(language: &Language, rest: &str, is_comment: &mut bool) -> (usize, Style) {
    if let Some((start, end)) = language.block_comment {
        if *is_comment {
            let found = rest.find(end);
            *is_comment = found.is_none();
            return (found.map_or(rest.len(), |at| at + end.len()), Style::Comment);
        }
        if let Some(after) = rest.strip_prefix(start) {
            let found = after.find(end);
            *is_comment = found.is_none();
            return (found.map_or(rest.len(), |at| start.len() + at + end.len()), Style::Comment);
        }
    }
    if language.line_comments.iter().any(|mark| rest.starts_with(mark)) {
        return (rest.len(), Style::Comment);
    }
    let Some(first) = rest.chars().next() else { return (rest.len(), Style::Plain) };
    if language.quotes.contains(&first) {
        return (quoted(rest, first), Style::Quoted);
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    if is_word(first) {
        let word = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
        let style = if first.is_ascii_digit() {
            Style::Number
        } else if is_keyword(language, word) {
            Style::Keyword
        } else {
            Style::Plain
        };
        return (word.len(), style);
    }
    (first.len_utf8(), Style::Plain)
}

fn is_keyword(language: &Language, word: &str) -> bool {
    // The words of SQL are written in any case.
    let is_sql = language.line_comments == SQL.line_comments;
    language.keywords.iter().any(|keyword| *keyword == word || is_sql && keyword.eq_ignore_ascii_case(word))
}

/// The length of a text in quotes, up to its end or that of the line.
fn quoted(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn letters(name: &str, text: &str) -> String {
        let letter = |style| match style {
            Style::Keyword => 'k',
            Style::Quoted => 'q',
            Style::Comment => 'c',
            Style::Number => 'n',
            Style::Code => 'x',
            _ => '.',
        };
        let line = |row: Row| -> String {
            row.iter().flat_map(|span| span.text.chars().map(|_| letter(span.style))).collect()
        };
        code(name, text).into_iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn words_texts_numbers_and_comments_are_told_apart() {
        assert_eq!(letters("rust", r#"let x = "a\"b"; // no"#), "kkk.....qqqqqq..ccccc");
        assert_eq!(letters("py", "def f(): return 1 # x"), "kkk......kkkkkk.n.ccc");
        assert_eq!(letters("c", "/* a\nb */ int"), "cccc\ncccc.kkk");
        assert_eq!(letters("SQL", "SELECT 1"), "kkkkkk.n");
        assert_eq!(letters("unknown", "let x"), "xxxxx");
    }

    proptest! {
        /// No character is lost.
        #[test]
        fn all_text_is_shown(name in "(rust|c|py|sh|json|sql|x)", text in "[a-c\"'/*#\\\\é 1\n]{0,60}") {
            let shown: Vec<String> =
                code(&name, &text).iter().map(|row| row.iter().map(|span| span.text.as_str()).collect()).collect();
            prop_assert_eq!(shown, text.lines().map(str::to_owned).collect::<Vec<_>>());
        }
    }
}
