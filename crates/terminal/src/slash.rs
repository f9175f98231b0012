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
