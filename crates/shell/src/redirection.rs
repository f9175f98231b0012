//! Redirections: the files that one leaves empty, and the words of a command that come after one.
//!
//! Writing a file is ordinary work. A redirection destroys data if its command prints nothing, as in `: > f`, `> f` and
//! `cat /dev/null > f`.

use tree_sitter::Node;

use crate::script::{Word, command_words, word};
use crate::tree;
use crate::understand::base_name;

/// The maximum number of commands analysed in one group.
const GROUP: usize = 64;

/// The effect of the redirections of one statement.
#[derive(Debug, Default)]
pub(crate) struct Redirection {
    /// The whole command, if the grammar has mistaken some of its words for targets; otherwise empty.
    pub(crate) command: Vec<Word>,
    /// The files that are empty afterwards.
    pub(crate) emptied: Vec<Word>,
}

/// One redirection as written.
struct Arrow<'a> {
    operator: &'a str,
    target: Word,
    /// Words after the target belong to the command, although the grammar parses them as further targets.
    more: Vec<Word>,
}

/// Parses the redirections of a statement or command.
pub(crate) fn redirection(node: Node<'_>, script: &str) -> Redirection {
    let mut arrows: Vec<_> = arrows(node, script);
    let body = node.child_by_field_name("body").map(redirected);
    let simple = match node.kind() {
        "command" => Some(node),
        _ => body.filter(|body| body.kind() == "command"),
    };
    if let Some(body) = body.filter(|body| body.kind() == "command") {
        arrows.extend(self::arrows(body, script));
    }
    let documents: Vec<_> = tree::children(node).into_iter().filter(|it| it.kind() == "heredoc_redirect").collect();
    arrows.extend(documents.iter().flat_map(|document| self::arrows(*document, script)));
    if arrows.is_empty() {
        return Redirection::default();
    }
    let mut words = simple.map(|command| command_words(command, script)).unwrap_or_default();
    let before = words.len();
    words.extend(arrows.iter_mut().flat_map(|arrow| std::mem::take(&mut arrow.more)));
    let reads_nothing = documents.iter().any(|document| is_blank(*document, script))
        || arrows.iter().any(|arrow| arrow.operator == "<" && arrow.target.text() == Some("/dev/null"));
    let is_silent = match body {
        Some(body) if simple.is_none() => group_is_silent(body, script),
        _ => is_silent(&words, reads_nothing),
    };
    let mut emptied: Vec<_> = if is_silent { arrows.iter().filter_map(emptied).collect() } else { Vec::new() };
    if reads_nothing && words.first().and_then(Word::text).map(base_name) == Some("tee") {
        emptied.extend(words.iter().skip(1).filter(|word| !is_option(word)).cloned());
    }
    Redirection { command: if words.len() > before { words } else { Vec::new() }, emptied }
}

/// The part of a statement that its redirection applies to: the last of a list.
fn redirected(body: Node<'_>) -> Node<'_> {
    let mut body = body;
    while matches!(body.kind(), "list" | "pipeline" | "negated_command") {
        let Some(last) = tree::children(body).into_iter().rfind(Node::is_named) else { break };
        body = last;
    }
    body
}

fn arrows<'a>(node: Node<'_>, script: &'a str) -> Vec<Arrow<'a>> {
    let redirects = tree::children(node).into_iter().filter(|child| child.kind() == "file_redirect");
    let read = redirects.filter_map(|redirect| {
        let parts = tree::children(redirect);
        let operator = parts.iter().find(|part| !part.is_named())?;
        let mut words =
            parts.iter().filter(|part| part.is_named() && part.kind() != "file_descriptor").map(|it| word(*it, script));
        Some(Arrow { operator: tree::text(*operator, script), target: words.next()?, more: words.collect() })
    });
    read.collect()
}

/// The file that a redirection leaves empty if nothing is written to it.
fn emptied(arrow: &Arrow<'_>) -> Option<Word> {
    let is_file = |text: &str| {
        let is_descriptor = arrow.operator == ">&" && (text == "-" || text.bytes().all(|byte| byte.is_ascii_digit()));
        !text.starts_with("/dev/") && !is_descriptor
    };
    let writes = matches!(arrow.operator, ">" | ">|" | "&>" | ">&");
    (writes && arrow.target.text().is_none_or(is_file)).then(|| arrow.target.clone())
}

/// Whether all commands of a group print nothing.
fn group_is_silent(body: Node<'_>, script: &str) -> bool {
    let mut waiting = vec![body];
    let mut looked = 0;
    while let Some(node) = waiting.pop() {
        looked += 1;
        let speaks = node.kind() == "command" && !is_silent(&command_words(node, script), false);
        if speaks || looked > GROUP || matches!(node.kind(), "declaration_command" | "command_substitution") {
            return false;
        }
        waiting.extend(tree::children(node));
    }
    true
}

/// Whether a command is known to print nothing.
fn is_silent(words: &[Word], reads_nothing: bool) -> bool {
    let Some((program, arguments)) = words.split_first() else { return true };
    let mut texts = arguments.iter().map(Word::literal);
    match program.text().map(base_name) {
        Some("" | ":" | "true" | "false") => true,
        // Alone it redirects what follows it, which is usually nothing.
        Some("exec") => arguments.is_empty(),
        Some("cat") => (reads_nothing || !arguments.is_empty()) && texts.all(|text| text == Some("/dev/null")),
        Some("echo") => texts.all(|text| matches!(text, Some("" | "-n" | "-e" | "-E" | "-ne" | "-en"))),
        Some("printf") => texts.all(|text| matches!(text, Some("" | "%s" | "--"))),
        _ => false,
    }
}

/// Whether a here-document is empty.
fn is_blank(document: Node<'_>, script: &str) -> bool {
    let body = tree::children(document).into_iter().find(|part| part.kind() == "heredoc_body");
    body.is_none_or(|body| tree::text(body, script).trim().is_empty())
}

fn is_option(word: &Word) -> bool {
    word.text().is_some_and(|text| text.starts_with('-'))
}
