//! A program that prints the key of a provider.

use std::{path::PathBuf, time::Duration};

use crate::{Reader, ValueError};

/// The default time limit of the program.
const TIMEOUT_MS: u64 = 10_000;
/// The default time for which its key is used.
const REFRESH_INTERVAL_MS: u64 = 300_000;

/// `[model_providers.<id>.auth]`: the program whose output is the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyCommand {
    /// The program: a name that is looked up in `PATH`, or a path.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The time limit.
    pub timeout: Duration,
    /// The time for which a key is used before the program runs again; `None` means forever.
    pub refresh_interval: Option<Duration>,
    /// The working directory.
    pub cwd: Option<PathBuf>,
}

impl KeyCommand {
    /// Reads `auth` of a provider.
    pub(crate) fn read(provider: &Reader<'_>) -> Result<Option<Self>, ValueError> {
        let auth = provider.section("auth")?;
        let refresh = auth.integer::<u64>("refresh_interval_ms", 0..)?.unwrap_or(REFRESH_INTERVAL_MS);
        let (args, timeout) = (auth.strings("args")?, auth.integer("timeout_ms", 1..)?.unwrap_or(TIMEOUT_MS));
        let (command, cwd) = (auth.str("command")?, auth.path("cwd")?);
        let Some(node) = provider.node("auth") else { return Ok(None) };
        let Some(command) = command.filter(|command| !command.trim().is_empty()) else {
            return Err(provider.error("auth", node, "the command is missing".to_owned()));
        };
        if provider.node("env_key").is_some() || provider.node("experimental_bearer_token").is_some() {
            let problem = "a provider has either a key or a command that prints it".to_owned();
            return Err(provider.error("auth", node, problem));
        }
        Ok(Some(Self {
            command,
            args: args.unwrap_or_default(),
            timeout: Duration::from_millis(timeout),
            refresh_interval: (refresh > 0).then(|| Duration::from_millis(refresh)),
            cwd,
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Tree;

    fn read(text: &str) -> Result<Option<KeyCommand>, String> {
        let tree = Tree::parse(Path::new("/h/c"), text).unwrap();
        KeyCommand::read(&Reader::new(&tree, None)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_command_with_its_limits() {
        assert_eq!(read("").unwrap(), None);
        let whole = "auth = { command = 'say', args = ['a'], timeout_ms = 5, refresh_interval_ms = 0, cwd = 'x' }";
        let command = KeyCommand {
            command: "say".to_owned(),
            args: vec!["a".to_owned()],
            timeout: Duration::from_millis(5),
            refresh_interval: None,
            cwd: Some("/h/x".into()),
        };
        assert_eq!(read(whole).unwrap(), Some(command));
        let usual = read("auth.command = 'say'").unwrap().unwrap();
        assert_eq!((usual.timeout.as_secs(), usual.refresh_interval.map(|span| span.as_secs())), (10, Some(300)));
    }

    #[test]
    fn a_command_excludes_a_key() {
        assert_eq!(read("auth = { args = [] }").unwrap_err(), "/h/c:1: auth: the command is missing");
        let both = read("auth.command = 'say'\nenv_key = 'K'").unwrap_err();
        assert!(both.ends_with("auth: a provider has either a key or a command that prints it"), "{both}");
    }
}
