//! Which variables a command gets: `[shell_environment_policy]`.
//!
//! Invariant: a variable whose name tells of a secret, or that puts foreign code into programs, reaches a command only if the
//! user wrote that everything may.

use std::{collections::BTreeMap, ffi::OsString};

use crate::{Reader, ValueError, words::words};

words! {
    /// What of the program's own variables a command starts from.
    pub enum Inherit {
        /// Everything.
        "all" => All,
        /// What any program needs to work.
        "core" => Core,
        /// Nothing.
        "none" => None,
    }
}

/// The variables any program needs to work.
const CORE: &[&str] = &["HOME", "LOGNAME", "PATH", "SHELL", "USER", "USERNAME", "TMPDIR", "TEMP", "TMP"];

/// Names that tell of secrets.
const SECRETS: &[&str] = &["*KEY*", "*SECRET*", "*TOKEN*"];

/// What tells the loader to put foreign code into a program.
const LOADER: &[&str] = &["LD_*", "DYLD_*"];

/// The variable that holds the token of a server.
pub const SERVER_TOKEN_VARIABLE: &str = "CODEX_APP_SERVER_TOKEN";

/// Which variables a command gets. The steps are taken in the order of the fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellEnvironmentPolicy {
    /// `inherit`: what to start from.
    pub inherit: Inherit,
    /// `ignore_default_excludes`: keep names that tell of secrets or steer the loader. Unless set, they are kept only where
    /// the file says `inherit = "all"`.
    pub keep_secrets: bool,
    /// `exclude`: globs of names to leave out.
    pub exclude: Vec<String>,
    /// `set`: variables to set.
    pub set: BTreeMap<String, String>,
    /// `include_only`: if any, globs of the names to keep.
    pub include_only: Vec<String>,
}

impl ShellEnvironmentPolicy {
    pub(crate) fn read(root: &Reader<'_>) -> Result<Self, ValueError> {
        let table = root.section("shell_environment_policy")?;
        let inherit = table.word("inherit")?;
        let keep_secrets = table.bool("ignore_default_excludes")?;
        Ok(Self {
            inherit: inherit.unwrap_or(Inherit::All),
            keep_secrets: keep_secrets.unwrap_or(inherit == Some(Inherit::All)),
            exclude: table.strings("exclude")?.unwrap_or_default(),
            set: table.string_map("set")?,
            include_only: table.strings("include_only")?.unwrap_or_default(),
        })
    }

    /// The variables of a command, made from the program's own.
    pub fn apply(&self, own: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
        let mut variables: BTreeMap<OsString, OsString> =
            own.into_iter().filter(|(name, _)| self.inherits(name)).collect();
        variables.extend(self.set.iter().map(|(name, value)| (name.into(), value.into())));
        if !self.include_only.is_empty() {
            variables.retain(|name, _| matches_any(&self.include_only, &name.to_string_lossy()));
        }
        variables.into_iter().collect()
    }

    fn inherits(&self, name: &OsString) -> bool {
        let name = name.to_string_lossy();
        if name.eq_ignore_ascii_case(SERVER_TOKEN_VARIABLE) {
            // Whoever has it can have commands run outside of any sandbox.
            return false;
        }
        let inherited = match self.inherit {
            Inherit::All => true,
            Inherit::Core => CORE.iter().any(|core| core.eq_ignore_ascii_case(&name)),
            Inherit::None => false,
        };
        let is_withheld = matches_any(SECRETS, &name) || matches_any(LOADER, &name);
        inherited && (self.keep_secrets || !is_withheld) && !matches_any(&self.exclude, &name)
    }
}

fn matches_any<S: AsRef<str>>(globs: &[S], name: &str) -> bool {
    globs.iter().any(|glob| matches(glob.as_ref().as_bytes(), name.as_bytes()))
}

/// Whether a name fits a glob of `*` and `?`, whatever the case. It takes at most `glob × name` steps.
fn matches(glob: &[u8], name: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    // Where to go on when the present guess for the last star turns out too short.
    let mut star: Option<(usize, usize)> = None;
    while from < name.len() {
        match glob.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(b'?') => (at, from) = (at + 1, from + 1),
            Some(letter) if letter.eq_ignore_ascii_case(&name[from]) => (at, from) = (at + 1, from + 1),
            _ => match star {
                Some((place, guess)) => {
                    star = Some((place, guess + 1));
                    (at, from) = (place + 1, guess + 1);
                }
                None => return false,
            },
        }
    }
    glob[at..].iter().all(|letter| *letter == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tree;

    const OWN: &[(&str, &str)] = &[
        ("PATH", "/bin"),
        ("HOME", "/home/me"),
        ("FERN", "green"),
        ("OPENAI_API_KEY", "sk"),
        ("my_token", "t"),
        ("AWS_SECRET_ACCESS", "s"),
        ("LD_PRELOAD", "/x.so"),
        ("CODEX_APP_SERVER_TOKEN", "never"),
    ];

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let tree = Tree::parse("config.toml".as_ref(), text).unwrap();
        let policy = ShellEnvironmentPolicy::read(&Reader::new(&tree, None)).unwrap();
        let own = OWN.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let names: Vec<String> = policy
            .apply(own)
            .into_iter()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn secrets_and_foreign_code_stay_out_by_default() {
        check("", &["FERN=green", "HOME=/home/me", "PATH=/bin"]);
    }

    #[test]
    fn secrets_come_along_where_the_file_says_so() {
        let all = &[
            "AWS_SECRET_ACCESS=s",
            "FERN=green",
            "HOME=/home/me",
            "LD_PRELOAD=/x.so",
            "OPENAI_API_KEY=sk",
            "PATH=/bin",
            "my_token=t",
        ];
        check("shell_environment_policy.inherit = \"all\"", all);
        check("shell_environment_policy.ignore_default_excludes = true", all);
        let none = "shell_environment_policy = { inherit = \"all\", ignore_default_excludes = false }";
        check(none, &["FERN=green", "HOME=/home/me", "PATH=/bin"]);
    }

    #[test]
    fn the_steps_are_taken_in_order() {
        check(
            "shell_environment_policy = { exclude = [\"f*\"], set = { FERN = \"set\", MY_KEY = \"k\" } }",
            &["FERN=set", "HOME=/home/me", "MY_KEY=k", "PATH=/bin"],
        );
        check("shell_environment_policy = { inherit = \"core\", include_only = [\"P?TH\"] }", &["PATH=/bin"]);
        check("shell_environment_policy = { inherit = \"none\", set = { A = \"b\" } }", &["A=b"]);
    }

    #[test]
    fn globs() {
        for (glob, name, fits) in [
            ("*", "", true),
            ("*a*b", "xxaxxb", true),
            ("*a*b", "xxaxxbc", false),
            ("a?c", "ABC", true),
            ("a?c", "ac", false),
            ("a*a*a*a*a*a*b", &"a".repeat(200), false),
        ] {
            assert_eq!(matches(glob.as_bytes(), name.as_bytes()), fits, "{glob} {name}");
        }
    }
}
