//! Finds a patch in a command that a model wants to run.
//!
//! Invariant: a patch is found only where a shell would hand exactly this text to `apply_patch` and do nothing else.

use std::path::PathBuf;

/// A patch found in a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The text of the patch, not parsed yet.
    pub text: String,
    /// The folder that the command changes to first, as written.
    pub cwd: Option<PathBuf>,
}

/// Finds the patch in a command that calls `apply_patch` and does nothing else.
///
/// That is either the program with the patch as its argument, or a shell script that passes it a here-document, after
/// at most one `cd`. For any other command, `None` is returned.
#[must_use]
pub fn from_command(argv: &[String]) -> Option<Found> {
    match argv {
        [program, text] if is_apply_patch(program) => Some(Found { text: text.clone(), cwd: None }),
        [shell, option, script] if is_shell(shell) && (option == "-c" || option == "-lc") => from_script(script),
        _ => None,
    }
}

fn is_apply_patch(word: &str) -> bool {
    word == "apply_patch" || word == "applypatch"
}

fn is_shell(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    matches!(name, "bash" | "sh" | "zsh")
}

fn from_script(script: &str) -> Option<Found> {
    let script = script.trim_start_matches([' ', '\t', '\n']);
    let (cwd, call) = match script.strip_prefix("cd").filter(|rest| rest.starts_with([' ', '\t'])) {
        Some(rest) => {
            let (folder, rest) = plain_word(rest.trim_start_matches([' ', '\t']))?;
            if folder.is_empty() || folder.starts_with(['-', '~']) {
                return None;
            }
            let rest = rest.trim_start_matches([' ', '\t']).strip_prefix("&&")?;
            (Some(PathBuf::from(folder)), rest.trim_start_matches([' ', '\t', '\n']))
        }
        None => (None, script),
    };
    let (head, body) = call.split_once('\n')?;
    let (program, word) = head.split_once("<<")?;
    if !is_apply_patch(program.trim_matches([' ', '\t'])) {
        return None;
    }
    let (word, literal) = here_word(word.trim_matches([' ', '\t']))?;
    let text = here_body(body, word)?;
    // A shell would expand these in a here-document whose delimiter is not quoted.
    let expands = !literal && text.contains(['$', '`', '\\']);
    (!expands).then(|| Found { text: text.to_owned(), cwd })
}

/// The delimiter of a here-document, and whether its text is literal.
fn here_word(word: &str) -> Option<(&str, bool)> {
    let quoted = |quote| word.strip_prefix(quote).and_then(|word| word.strip_suffix(quote));
    let (word, literal) = quoted('\'').or_else(|| quoted('"')).map_or((word, false), |word| (word, true));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (!word.is_empty() && word.bytes().all(plain)).then_some((word, literal))
}

/// The text of a here-document that ends with `word`, if nothing follows it.
fn here_body<'a>(body: &'a str, word: &str) -> Option<&'a str> {
    let mut end = 0;
    for line in body.split_inclusive('\n') {
        if line.strip_suffix('\n').unwrap_or(line) == word {
            let rest = &body[end + line.len()..];
            return rest.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\n')).then(|| &body[..end]);
        }
        end += line.len();
    }
    None
}

/// The first word of a script and the rest; `None` if a shell would interpret the word.
fn plain_word(script: &str) -> Option<(&str, &str)> {
    for quote in ['\'', '"'] {
        if let Some(rest) = script.strip_prefix(quote) {
            let (word, rest) = rest.split_once(quote)?;
            let special = quote == '"' && word.contains(['$', '`', '\\', '!']);
            return (!special && !word.contains('\n') && rest.starts_with([' ', '\t', '&'])).then_some((word, rest));
        }
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./-+@:,%".contains(c);
    let end = script.find(|c| !plain(c))?;
    script[end..].starts_with([' ', '\t', '&']).then(|| script.split_at(end))
}
