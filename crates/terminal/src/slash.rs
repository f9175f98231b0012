//! The chat's own commands: lines that start with a slash.

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slash {
    Help,
    New,
    Model(Option<String>),
    Approvals(Vec<String>),
    Compact,
    Diff,
    Status,
    /// Lists the child agents.
    Agents,
    Init,
    /// Reviews the uncommitted changes, or those that the words name.
    Review(Option<String>),
    Resume(Option<String>),
    Quit,
    /// An unknown command.
    Unknown(String),
}

/// The commands, for display.
pub const HELP: &[(&str, &str)] = &[
    ("/help", "list the commands and keys"),
    ("/new", "start a new thread"),
    ("/resume [THREAD]", "resume another thread"),
    ("/status", "show the model, policies, tokens and limits"),
    ("/agents", "list the agents that this one has started"),
    ("/model [NAME]", "list the models, or switch to one"),
    ("/approvals [POLICY] [SANDBOX]", "show or change when you are asked and what commands may touch"),
    ("/review [BRANCH|COMMIT|TEXT]", "review uncommitted changes, a branch, a commit, or what you describe"),
    ("/diff", "show uncommitted changes"),
    ("/init", "write an AGENTS.md for this project"),
    ("/compact", "summarize the conversation to free context"),
    ("/quit", "quit; so do Ctrl-D on an empty line and Ctrl-C twice"),
    ("!COMMAND", "run a command yourself, without the sandbox; the model sees its output"),
];

/// The commands of the full screen besides those.
pub const MORE: &[(&str, &str)] = &[
    ("/fork", "continue in a copy of this thread"),
    ("/rename NAME", "name this thread"),
    ("/usage", "show tokens, cost and limits"),
    ("/timeline [TEXT]", "list the items of this thread, or those with a text"),
    ("/mcp", "show MCP servers and their tools"),
    ("/ps", "show background terminals"),
    ("/diff turn", "show the changes of the latest turn"),
    ("/diff thread", "show the changes of all turns"),
    ("/copy", "copy the last answer"),
    ("/copy code", "copy the last block of code"),
    ("/export [FILE]", "write the conversation as Markdown"),
    ("/archive", "archive this thread and start another"),
    ("/queue", "edit, drop or send queued messages"),
    ("/stop", "stop the turn; without one, all background terminals"),
    ("/fold", "show commands only, a preview, or all output"),
    ("/theme [NAME]", "choose the colours"),
    ("/keys", "list the keys"),
    ("/vim", "switch the keys of vi on or off"),
    ("/back", "go back to before an earlier message"),
    ("/forward", "after going back, return to the newer conversation"),
];

/// Other names of commands, as other releases have them.
const SAME: &[(&str, &str)] = &[
    ("permissions", "approvals"),
    ("clear", "new"),
    ("sessions", "resume"),
    ("undo", "back"),
    ("context", "usage"),
    ("agent", "agents"),
    ("subagents", "agents"),
    ("keymap", "keys"),
    ("raw", "fold"),
];

/// A line with the name of this release for its command.
#[must_use]
pub fn renamed(text: &str) -> String {
    let line = text.trim();
    let found = SAME.iter().find(|(other, _)| {
        line.strip_prefix('/')
            .and_then(|rest| rest.strip_prefix(other))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    });
    found.map_or_else(|| text.to_owned(), |(other, name)| line.replacen(other, name, 1))
}

/// The commands that a word could become, with their help: first those that begin with it, then those that have it inside.
/// One that needs words behind it ends with a space.
#[must_use]
pub fn completions(word: &str) -> Vec<(String, String)> {
    let Some(inside) = word.strip_prefix('/') else { return Vec::new() };
    let known = HELP.iter().chain(MORE).map(|(usage, help)| (typed(usage), (*help).to_owned()));
    let (first, rest): (Vec<_>, Vec<_>) = known.partition(|(name, _)| name.starts_with(word));
    let has_inside = |(name, _): &(String, String)| name.starts_with('/') && name.contains(inside);
    first.into_iter().chain(rest.into_iter().filter(has_inside)).collect()
}

/// The part of a usage that is typed as it is.
fn typed(usage: &str) -> String {
    let is_literal = |word: &&str| word.starts_with('/') || word.chars().all(|c| c.is_ascii_lowercase());
    let words: Vec<&str> = usage.split(' ').take_while(is_literal).collect();
    let needs_more = usage.split(' ').nth(words.len()).is_some_and(|word| !word.starts_with('['));
    words.join(" ") + if needs_more { " " } else { "" }
}

/// The keys, for display.
pub const KEYS: &[(&str, &str)] = &[
    ("Enter", "send; while the model works, what you send joins its turn"),
    ("Ctrl-J, Alt-Enter", "new line"),
    ("Up, Down", "earlier prompts"),
    ("Ctrl-A E U K W Y", "start, end of line; cut before, after, word; paste it back"),
    ("Esc", "stop the turn"),
    ("Ctrl-C", "stop the turn; again, quit"),
    ("Ctrl-Z", "suspend; `fg` continues"),
    ("Ctrl-L", "clear the screen"),
];

/// Parses a line; `None` if it is for the model. Neither a path nor a comment is a command.
#[must_use]
pub fn read(line: &str) -> Option<Slash> {
    let line = line.trim();
    let word = line.strip_prefix('/')?;
    let (name, rest) = word.split_once(char::is_whitespace).unwrap_or((word, ""));
    if name.is_empty() || line.contains('\n') || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        return None;
    }
    let rest = rest.trim();
    let argument = || (!rest.is_empty()).then(|| rest.to_owned());
    Some(match name {
        "help" => Slash::Help,
        "new" => Slash::New,
        "model" => Slash::Model(argument()),
        "approvals" => Slash::Approvals(rest.split_whitespace().map(str::to_owned).collect()),
        "compact" => Slash::Compact,
        "diff" => Slash::Diff,
        "status" => Slash::Status,
        "agents" => Slash::Agents,
        "init" => Slash::Init,
        "review" => Slash::Review(argument()),
        "resume" => Slash::Resume(argument()),
        "quit" | "exit" => Slash::Quit,
        other => Slash::Unknown(other.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_becomes_what_is_typed() {
        let names = |word: &str| completions(word).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names("/co"), ["/compact", "/copy", "/copy code"]);
        assert_eq!(names("/diff"), ["/diff", "/diff turn", "/diff thread"]);
        assert_eq!(names("/name"), ["/rename "], "it is found by its middle, and needs a name");
        assert_eq!(names("/theme"), ["/theme"]);
        assert!(names("co").is_empty() && names("/COMMAND").is_empty() && names("/").len() > 25);
        assert!(names("/").iter().all(|name| read(name).is_some()));
    }

    #[test]
    fn commands_are_distinguished_from_messages() {
        assert_eq!(read("/model  o3 "), Some(Slash::Model(Some("o3".to_owned()))));
        assert_eq!(read(" /quit"), Some(Slash::Quit));
        assert_eq!(
            read("/approvals never read-only"),
            Some(Slash::Approvals(vec!["never".into(), "read-only".into()]))
        );
        assert_eq!(read("/hepl"), Some(Slash::Unknown("hepl".to_owned())));
        for text in ["hello", "/usr/bin/env is missing", "/", "// comment", "/help\nme", "a /help"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
