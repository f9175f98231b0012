//! Wrappers that run a command unchanged, so that a rule that allows the command also allows it through them.

use crate::understand::{Understood, is_shell, script, understand};

/// The command behind a wrapper; `None` if there is no wrapper or it changes what the command does.
///
/// Only unambiguous forms are unwrapped: `env` with assignments, `sudo` and `xargs` are not.
pub(crate) fn unwrap(command: &[String]) -> Option<Vec<String>> {
    let (program, arguments) = command.split_first()?;
    if is_shell(program) {
        script(command)?;
        return match understand(command) {
            Understood::Commands(commands) => <[_; 1]>::try_from(commands).ok().map(|[only]| only),
            Understood::No(_) => None,
        };
    }
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let inner = match (program.as_str(), arguments) {
        ("nohup" | "command" | "builtin" | "env" | "time" | "setsid" | "exec", inner) => inner,
        ("nice", [option, level, inner @ ..]) if option == "-n" && number(level) => inner,
        ("nice", inner) => inner,
        ("timeout", [limit, inner @ ..]) if number(limit.trim_end_matches(['s', 'm', 'h', 'd'])) => inner,
        _ => return None,
    };
    let first = inner.first()?;
    (!first.starts_with('-') && !first.contains('=')).then(|| inner.to_vec())
}
