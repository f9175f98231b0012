//! The user's ignore file for all repositories: `core.excludesFile` of git's configuration.

use std::env;
use std::path::{Path, PathBuf};

use ignore::gitignore::Gitignore;

use super::ignored;

/// The rules of the user's own file, relative to the working directory of the program.
pub(crate) fn rules() -> Gitignore {
    let rules = || Some(ignored::read(&env::current_dir().ok()?, &file()?));
    rules().unwrap_or_else(Gitignore::empty)
}

/// The path of the file, whether it exists or not.
fn file() -> Option<PathBuf> {
    let home = env::home_dir();
    let settings = variable("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
    let system = || Some(variable("GIT_CONFIG_SYSTEM").unwrap_or_else(|| "/etc/gitconfig".into()));
    let configurations = [
        variable("GIT_CONFIG_GLOBAL"),
        home.as_ref().map(|home| home.join(".gitconfig")),
        settings.as_ref().map(|settings| settings.join("git/config")),
        system(),
    ];
    let named = configurations.into_iter().flatten().find_map(|path| named_in(&path, home.as_deref()));
    named.or_else(|| Some(settings?.join("git/ignore")))
}

fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The file that a git configuration names.
fn named_in(configuration: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let bytes = codex_files::read(configuration, ignored::MOST_BYTES).ok()?;
    excludes_file(&String::from_utf8_lossy(&bytes), home)
}

fn excludes_file(text: &str, home: Option<&Path>) -> Option<PathBuf> {
    let values = text.lines().filter_map(|line| line.split_once('='));
    let mut named = values.filter(|(key, _)| key.trim().eq_ignore_ascii_case("excludesfile"));
    let name = named.find_map(|(_, value)| {
        let value = value.trim().trim_matches('"').trim();
        (!value.is_empty() && !value.contains(char::is_whitespace)).then_some(value)
    })?;
    match (name.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => Some(home.join(below)),
        (None, _) | (_, None) => Some(name.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(excludes_file(text, Some(Path::new("/home/me"))), expected.map(PathBuf::from), "{text}");
    }

    #[test]
    fn the_file_is_named_in_the_configuration_of_git() {
        check("[core]\n\texcludesFile = ~/.ignored\n", Some("/home/me/.ignored"));
        check("[core]\nEXCLUDESFILE=\"/etc/ignored\"\n", Some("/etc/ignored"));
        check("[core]\n# excludesFile = x\n\tbare = true\n", None);
        check("excludesfile =\n", None);
    }
}
