//! Syntax trees of scripts.

use std::ops::{ControlFlow, Range};
use std::time::Instant;

use tree_sitter::{Node, ParseOptions, Parser, Tree};

use crate::limits;
use crate::plain::{self, PlainCommand};
use crate::reason::{Reason, ReasonKind};

/// Parses a script; `None` if it is too large or takes too long.
pub(crate) fn parse(script: &str) -> Option<Tree> {
    let bars = script.bytes().filter(|byte| *byte == b'|').count();
    if script.len() > limits::SCRIPT_BYTES || bars > limits::BARS {
        return None;
    }
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    let started = Instant::now();
    let mut late = |_: &tree_sitter::ParseState| started.elapsed() > limits::PARSE_TIME;
    let options = ParseOptions::new().progress_callback(&mut late);
    // To a shell every byte outside ASCII is part of a word. The grammar treats some of these characters as blanks, and
    // its scanner reads out of bounds for others, so they are replaced by letters.
    let bytes: Vec<u8> = script.bytes().map(|byte| if byte.is_ascii() { byte } else { b'x' }).collect();
    parser.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options))
}

/// The children of a node, named or not.
pub(crate) fn children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).collect()
}

/// The text of a node.
pub(crate) fn text<'a>(node: Node<'_>, script: &'a str) -> &'a str {
    script.get(node.byte_range()).unwrap_or("")
}

/// Parses a script as commands of literal words, if the bash grammar finds the same words in the same places.
pub(crate) fn plain_commands(script: &str) -> Result<Vec<PlainCommand>, Reason> {
    let commands = plain::commands(script)?;
    let tree = parse(script).ok_or(Reason::new(ReasonKind::TooLong))?;
    let mut seen = Vec::new();
    if let ControlFlow::Break(reason) = collect(tree.root_node(), script, 0, &mut seen) {
        return Err(reason);
    }
    for (at, command) in commands.iter().enumerate() {
        let same = seen.get(at).is_some_and(|seen| seen.iter().eq(command.words.iter().map(|word| &word.span)));
        if !same {
            let start = command.words.first().map_or(0, |word| word.span.start);
            return Err(Reason::at(ReasonKind::Disagreement, script, start));
        }
    }
    if seen.len() == commands.len() { Ok(commands) } else { Err(Reason::new(ReasonKind::Disagreement)) }
}

/// Collects the positions of the words of each plain command.
fn collect(node: Node<'_>, script: &str, depth: usize, seen: &mut Vec<Vec<Range<usize>>>) -> ControlFlow<Reason> {
    let refuse = |node: Node<'_>| ControlFlow::Break(Reason::at(ReasonKind::Disagreement, script, node.start_byte()));
    if depth > limits::TREE_DEPTH {
        return ControlFlow::Break(Reason::new(ReasonKind::TooDeep));
    }
    if node.is_error() || node.is_missing() {
        return refuse(node);
    }
    match node.kind() {
        "program" | "list" | "pipeline" => {
            for child in children(node) {
                collect(child, script, depth + 1, seen)?;
            }
            ControlFlow::Continue(())
        }
        "command" => {
            let words = children(node);
            let literal = ["command_name", "word", "number", "string", "raw_string", "concatenation"];
            if let Some(odd) = words.iter().find(|word| !literal.contains(&word.kind()) || word.has_error()) {
                return refuse(*odd);
            }
            seen.push(words.iter().map(Node::byte_range).collect());
            ControlFlow::Continue(())
        }
        "&&" | "||" | "|" | ";" | "\n" => ControlFlow::Continue(()),
        _ => refuse(node),
    }
}
