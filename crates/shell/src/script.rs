//! Finds everything in a script that may run, understood or not.
//!
//! Invariant: nothing that the grammar finds is left out, whether it is in a loop, a function, a substitution or after
//! an error. Words that are known only at run time keep their places as unknown.

use tree_sitter::Node;

use crate::limits;
use crate::plain::{self, PlainCommand};
use crate::redirection::{Redirection, redirection};
use crate::tree;

/// A word of a command, as far as it can be determined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    /// Exactly this text.
    Literal(String),
    /// This text after the shell has expanded patterns, braces and tildes in it.
    Pattern(String),
    /// Known only at run time.
    Unknown,
}

impl Word {
    /// The text, unless it is known only at run time.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Literal(text) | Self::Pattern(text) => Some(text),
            Self::Unknown => None,
        }
    }

    /// The text, if nothing in it is expanded.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            Self::Pattern(_) | Self::Unknown => None,
        }
    }
}

/// One command of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScriptCommand {
    pub(crate) words: Vec<Word>,
    /// Whether it reads the output of another command.
    pub(crate) piped: bool,
}

/// Everything found in a script.
#[derive(Debug, Default)]
pub(crate) struct ScriptCommands {
    pub(crate) commands: Vec<ScriptCommand>,
    /// The texts of here-documents and here-strings.
    pub(crate) documents: Vec<String>,
    /// The targets of output redirections.
    pub(crate) targets: Vec<Word>,
    /// Files that a redirection leaves empty.
    pub(crate) emptied: Vec<Word>,
    /// Whether it contains syntax that the grammar does not know.
    pub(crate) broken: bool,
    /// Whether a limit was exceeded.
    pub(crate) too_much: bool,
}

/// Finds everything in a script that may run.
pub(crate) fn look(script: &str) -> ScriptCommands {
    let mut found = ScriptCommands::default();
    match plain::commands(script) {
        Ok(commands) => {
            // The plain subset is parsed without the grammar, which sometimes joins two lines.
            let seen = |command: PlainCommand| ScriptCommand {
                words: command.words.into_iter().map(|word| Word::Literal(word.text)).collect(),
                piped: command.piped,
            };
            found.commands.extend(commands.into_iter().map(seen));
            return found;
        }
        Err(reason) => found.too_much = reason.is_limit(),
    }
    if found.too_much {
        return found;
    }
    let Some(tree) = tree::parse(script) else {
        found.too_much = true;
        return found;
    };
    let mut waiting = vec![(tree.root_node(), 0, false)];
    while let Some((node, depth, piped)) = waiting.pop() {
        if depth > limits::TREE_DEPTH * 4 || found.commands.len() > limits::LOOKS {
            found.too_much = true;
            break;
        }
        found.broken |= node.is_error() || node.is_missing();
        if matches!(node.kind(), "redirected_statement" | "command") {
            let Redirection { command: words, emptied } = redirection(node, script);
            found.commands.extend((!words.is_empty()).then_some(ScriptCommand { words, piped }));
            found.emptied.extend(emptied);
        }
        match node.kind() {
            "command" => {
                let commands = commands_in(node, script).into_iter();
                found.commands.extend(commands.map(|words| ScriptCommand { words, piped }));
            }
            "declaration_command" | "unset_command" | "test_command" => {
                found.commands.push(ScriptCommand { words: loose_words(node, script), piped });
            }
            "heredoc_body" | "herestring_redirect" => found.documents.push(document(node, script)),
            "file_redirect" => {
                found.targets.extend(node.child_by_field_name("destination").map(|to| word(to, script)));
            }
            _ => {}
        }
        let into_pipe = matches!(node.kind(), "pipeline" | "heredoc_redirect");
        let open = node.kind() == "heredoc_redirect";
        for (at, child) in tree::children(node).into_iter().enumerate() {
            let reads = piped || (into_pipe && (at > 0 || open));
            waiting.push((child, depth + 1, reads));
        }
    }
    found
}

/// The steps of a script that consists only of commands joined by operators; `None` for any other script.
///
/// Each step records whether it reads the output of the previous one.
pub(crate) fn steps(script: &str) -> Option<Vec<ScriptCommand>> {
    let tree = tree::parse(script)?;
    let mut steps = Vec::new();
    let mut waiting = vec![(tree.root_node(), false)];
    while let Some((node, piped)) = waiting.pop() {
        if node.is_error() || node.is_missing() || steps.len() > limits::COMMANDS {
            return None;
        }
        match node.kind() {
            "program" | "list" | "pipeline" => {
                let into_pipe = node.kind() == "pipeline";
                let children = tree::children(node).into_iter().enumerate();
                waiting.extend(children.map(|(at, child)| (child, piped || (into_pipe && at > 0))).rev());
            }
            "command" => {
                let children = tree::children(node);
                if children.iter().any(|child| child.kind() == "variable_assignment" || child.has_error()) {
                    return None;
                }
                let words = command_words(node, script);
                if words.len() != children.len() || words.iter().any(|word| shown(word).is_none()) {
                    return None;
                }
                steps.push(ScriptCommand { words, piped });
            }
            "&&" | "||" | "|" | ";" | "\n" => {}
            _ => return None,
        }
    }
    Some(steps)
}

/// The text of a word for display, unless braces expand it to several words.
fn shown(word: &Word) -> Option<&str> {
    word.text().filter(|text| word.literal().is_some() || !text.contains('{'))
}

/// The words of a command, without leading assignments and redirections.
pub(crate) fn command_words(node: Node<'_>, script: &str) -> Vec<Word> {
    tree::children(node).into_iter().filter(|child| is_word(*child)).map(|child| word(child, script)).collect()
}

fn is_word(child: Node<'_>) -> bool {
    let around = child.kind().ends_with("redirect") || child.kind() == "variable_assignment";
    child.is_named() && !around || matches!(child.kind(), "$" | "==" | "=~")
}

/// The words of a command; of several, if the grammar has joined what a line break or an operator separates.
fn commands_in(node: Node<'_>, script: &str) -> Vec<Vec<Word>> {
    let mut commands = vec![Vec::new()];
    let mut end = node.start_byte();
    for child in tree::children(node) {
        let gap = script.get(end..child.start_byte()).unwrap_or("").replace("\\\n", "");
        end = child.end_byte();
        if gap.contains(['\n', ';', '&', '|']) {
            commands.push(Vec::new());
        }
        if let Some(last) = commands.last_mut().filter(|_| is_word(child)) {
            last.push(word(child, script));
        }
    }
    commands
}

/// The words of a command that the grammar parses specially, such as `export` and `[`.
fn loose_words(node: Node<'_>, script: &str) -> Vec<Word> {
    let children = tree::children(node);
    let words = children.iter().map(|child| match child.kind() {
        "variable_name" | "variable_assignment" | "test_operator" => {
            Word::Literal(tree::text(*child, script).to_owned())
        }
        kind if !child.is_named() => Word::Literal(kind.to_owned()),
        _ => word(*child, script),
    });
    words.collect()
}

fn document(node: Node<'_>, script: &str) -> String {
    if node.kind() == "heredoc_body" {
        return tree::text(node, script).to_owned();
    }
    let texts = tree::children(node).into_iter().filter(Node::is_named).map(|child| match word(child, script) {
        Word::Literal(text) | Word::Pattern(text) => text,
        Word::Unknown => tree::text(child, script).to_owned(),
    });
    texts.collect()
}

/// Parses one word as far as it is literal.
pub(crate) fn word(node: Node<'_>, script: &str) -> Word {
    let text = tree::text(node, script);
    match node.kind() {
        "command_name" => match tree::children(node).as_slice() {
            [only] => word(*only, script),
            _ => Word::Unknown,
        },
        "word" | "number" => bare(text),
        "raw_string" => Word::Literal(text.trim_matches('\'').to_owned()),
        "string" => double_quoted(node, script),
        "concatenation" => {
            let mut whole = String::new();
            let mut expands = false;
            for part in tree::children(node) {
                match word(part, script) {
                    Word::Literal(text) => whole.push_str(&text),
                    Word::Pattern(text) => {
                        expands = true;
                        whole.push_str(&text);
                    }
                    Word::Unknown => return Word::Unknown,
                }
            }
            // `{a,b}` comes in parts, none of which is marked as a brace.
            let braced = text.contains('{') && text.contains(',') || text.contains("..");
            if expands || braced && text != "{}" { Word::Pattern(whole) } else { Word::Literal(whole) }
        }
        "brace_expression" => Word::Pattern(text.to_owned()),
        _ => Word::Unknown,
    }
}

/// Removes the backslashes from unquoted text and determines whether the shell would expand the rest.
fn bare(text: &str) -> Word {
    let mut whole = String::with_capacity(text.len());
    let mut expands = text.starts_with('~') || text.starts_with('=');
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('\n') | None => {}
                Some(next) => whole.push(next),
            },
            // A blank in a word is a parse error of the grammar.
            '$' | '`' | ' ' | '\t' | '\n' => return Word::Unknown,
            _ => {
                expands |= matches!(c, '*' | '?' | '[');
                whole.push(c);
            }
        }
    }
    if expands { Word::Pattern(whole) } else { Word::Literal(whole) }
}

fn double_quoted(node: Node<'_>, script: &str) -> Word {
    let children = tree::children(node);
    if children.iter().any(|child| child.is_named() && child.kind() != "string_content") {
        return Word::Unknown;
    }
    // The quotes are cut off here rather than taken from the children, which may omit blanks.
    let text = tree::text(node, script);
    let inside = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let mut whole = String::with_capacity(inside.len());
    let mut chars = inside.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some('\n')) => _ = chars.next(),
            ('\\', Some('$' | '`' | '"' | '\\')) => whole.extend(chars.next()),
            _ => whole.push(c),
        }
    }
    Word::Literal(whole)
}
