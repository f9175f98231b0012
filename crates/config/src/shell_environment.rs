//! The variables of commands: `[shell_environment_policy]`.
//!
//! Invariants: a variable whose name suggests a secret, or that loads foreign code into programs, reaches a command
//! only if the user has allowed everything. One that the configuration names as the location of a key reaches only the
//! user's own commands.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
};

use crate::{Reader, ValueError, store_config::URL_VARIABLE, words::words};

words! {
    /// The inherited variables that a command starts with.
    pub enum Inherit {
        /// Everything.
        "all" => All,
        /// The variables that any program needs.
        "core" => Core,
        /// Nothing.
        "none" => None,
    }
}

/// The variables that any program needs.
const CORE: &[&str] = &["HOME", "LOGNAME", "PATH", "SHELL", "USER", "USERNAME", "TMPDIR", "TEMP", "TMP"];

/// Names that suggest secrets.
const SECRETS: &[&str] = &["*KEY*", "*SECRET*", "*TOKEN*"];

/// Variables that make the loader load foreign code into a program.
const LOADER: &[&str] = &["LD_*", "DYLD_*"];

/// Keeps programs from opening a pager, in which somebody could type a command. Programs without a pager print
/// everything.
const WITHOUT_PAGER: &[(&str, &str)] = &[
    ("AWS_PAGER", "cat"),
    ("BAT_PAGER", "cat"),
    ("DELTA_PAGER", "cat"),
    ("GH_PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("LESSSECURE", "1"),
    ("MANPAGER", "cat"),
    ("PAGER", "cat"),
    ("PSQL_PAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
    ("SYSTEMD_PAGERSECURE", "1"),
];

/// Files that a shell runs before anything else. A relative path may lead to a file of the project.
const SHELL_START: &[&str] = &["BASH_ENV", "ENV"];

/// The origin of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runner {
    /// The model.
    Model,
    /// A client, or a person who tries the sandbox.
    Client,
    /// The user, in a thread and outside of any sandbox.
    User,
}

/// The variable that holds the token of a server.
pub const SERVER_TOKEN_VARIABLE: &str = "CODEX_APP_SERVER_TOKEN";

/// The policy for a command's variables. The steps are applied in the order of the fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellEnvironmentPolicy {
    /// `inherit`: the initial set.
    pub inherit: Inherit,
    /// `ignore_default_excludes`: keep names that suggest secrets or control the loader. By default, they are kept only
    /// if the file says `inherit = "all"`.
    pub keep_secrets: bool,
    /// `exclude`: globs of names to remove.
    pub exclude: Vec<String>,
    /// `set`: variables to set.
    pub set: BTreeMap<String, String>,
    /// `include_only`: if any, globs of the names to keep.
    pub include_only: Vec<String>,
    /// The variables with the keys of providers and MCP servers.
    pub key_places: BTreeSet<String>,
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
            key_places: key_places(root),
        })
    }

    /// Computes the variables of a command from the program's own.
    pub fn apply(
        &self,
        own: impl IntoIterator<Item = (OsString, OsString)>,
        runner: Runner,
    ) -> Vec<(OsString, OsString)> {
        let own = own.into_iter().filter(|(name, value)| self.inherits(name) && self.may_have(name, value, runner));
        let mut variables: BTreeMap<OsString, OsString> = own.collect();
        variables.extend(self.set.iter().map(|(name, value)| (name.into(), value.into())));
        if !self.include_only.is_empty() {
            variables.retain(|name, _| matches_any(&self.include_only, &name.to_string_lossy()));
        }
        if runner == Runner::Model {
            let unset = WITHOUT_PAGER.iter().filter(|(name, _)| !self.set.contains_key(*name));
            variables.extend(unset.map(|(name, value)| (name.into(), value.into())));
        }
        variables.into_iter().collect()
    }

    /// Whether a command may have a variable, whatever the user allows others.
    fn may_have(&self, name: &OsStr, value: &OsStr, runner: Runner) -> bool {
        let name = name.to_string_lossy();
        let holds_key = self.key_places.iter().any(|place| place.eq_ignore_ascii_case(&name));
        let starts_shell = SHELL_START.contains(&&*name) && !std::path::Path::new(value).is_absolute();
        match runner {
            Runner::Model => !holds_key && !starts_shell,
            Runner::Client => !holds_key,
            Runner::User => true,
        }
    }

    fn inherits(&self, name: &OsString) -> bool {
        let name = name.to_string_lossy();
        if [SERVER_TOKEN_VARIABLE, URL_VARIABLE].iter().any(|secret| name.eq_ignore_ascii_case(secret)) {
            // A process with the token of a server can run commands outside of any sandbox, and one with the URL of the
            // store can read all threads.
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

/// The variables that hold keys, according to the entries of providers and MCP servers. Errors in an entry are reported
/// where it is used.
fn key_places(root: &Reader<'_>) -> BTreeSet<String> {
    let entries = |group: &str| {
        let group = root.section(group).ok();
        let names: Vec<_> = group.iter().flat_map(Reader::keys).collect();
        names.into_iter().filter_map(|name| group.as_ref()?.section(name).ok()).collect::<Vec<_>>()
    };
    let mut places = BTreeSet::new();
    for entry in entries("model_providers").iter().chain(&entries("mcp_servers")) {
        let named = ["env_key", "bearer_token_env_var"].map(|key| entry.str(key).ok().flatten());
        places.extend(named.into_iter().flatten());
        places.extend(entry.string_map("env_http_headers").into_iter().flat_map(BTreeMap::into_values));
        // A server's variable may be anything; one that every program needs is not a key.
        let given =
            entry.section("env").ok().into_iter().flat_map(|env| env.keys().map(str::to_owned).collect::<Vec<_>>());
        let passed = entry.strings("env_vars").ok().flatten().unwrap_or_default();
        places.extend(given.chain(passed).filter(|name| !CORE.iter().any(|core| core.eq_ignore_ascii_case(name))));
    }
    places.extend(root.section("store").ok().and_then(|store| store.str("password_env_var").ok().flatten()));
    places.remove("");
    places
}

fn matches_any<S: AsRef<str>>(globs: &[S], name: &str) -> bool {
    globs.iter().any(|glob| matches(glob.as_ref().as_bytes(), name.as_bytes()))
}

/// Whether a name matches a glob of `*` and `?`, ignoring case. It takes at most `glob × name` steps.
fn matches(glob: &[u8], name: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    // The position at which to continue when the current guess for the last star turns out too short.
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
        check_for(Runner::Client, text, expected);
    }

    #[track_caller]
    fn check_for(runner: Runner, text: &str, expected: &[&str]) {
        let tree = Tree::parse("config.toml".as_ref(), text).unwrap();
        let policy = ShellEnvironmentPolicy::read(&Reader::new(&tree, None)).unwrap();
        let own = OWN.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let names: Vec<String> = policy
            .apply(own, runner)
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
    fn secrets_are_inherited_if_the_file_allows_them() {
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
    fn a_command_of_the_model_opens_no_pager_unless_the_user_sets_one() {
        let policy = "shell_environment_policy = { inherit = \"none\", set = { PAGER = \"more\" } }";
        check(policy, &["PAGER=more"]);
        let mut expected: Vec<String> = WITHOUT_PAGER.iter().map(|(name, value)| format!("{name}={value}")).collect();
        expected.iter_mut().filter(|it| it.starts_with("PAGER=")).for_each(|it| *it = "PAGER=more".to_owned());
        check_for(Runner::Model, policy, &expected.iter().map(String::as_str).collect::<Vec<_>>());
    }

    #[test]
    fn a_shell_of_the_model_starts_with_no_file_of_the_project() {
        let names = |runner| {
            let tree = Tree::parse("config.toml".as_ref(), "").unwrap();
            let policy = ShellEnvironmentPolicy::read(&Reader::new(&tree, None)).unwrap();
            let own = [("BASH_ENV", ".bash_env"), ("ENV", "/etc/env")].map(|(name, value)| (name.into(), value.into()));
            let names = policy.apply(own, runner).into_iter().map(|(name, _)| name.into_string().unwrap());
            names.filter(|name| name.ends_with("ENV")).collect::<Vec<_>>()
        };
        assert_eq!(names(Runner::Model), ["ENV"]);
        assert_eq!(names(Runner::User), ["BASH_ENV", "ENV"]);
    }

    #[test]
    fn key_variables_reach_only_the_users_own_commands() {
        for entry in [
            "[model_providers.other]\nenv_key = 'FERN'",
            "[model_providers.other]\nenv_http_headers = { x-key = 'fern' }",
            "[mcp_servers.s]\nbearer_token_env_var = 'FERN'",
            "[mcp_servers.s]\nenv_http_headers = { x-key = 'FERN' }",
            "[mcp_servers.s]\nenv = { FERN = 'x', PATH = 'y' }",
            "[mcp_servers.s]\nenv_vars = ['FERN', 'HOME']",
        ] {
            check(entry, &["HOME=/home/me", "PATH=/bin"]);
            check_for(Runner::User, entry, &["FERN=green", "HOME=/home/me", "PATH=/bin"]);
            let all = format!("shell_environment_policy.include_only = ['FERN']\n{entry}");
            check(&all, &[]);
            let set = format!("shell_environment_policy = {{ inherit = 'all', include_only = ['F*'] }}\n{entry}");
            check(&set, &[]);
        }
        let wrong = "[model_providers.other]\nenv_key = 7\n[mcp_servers]\ns = 'x'";
        check(wrong, &["FERN=green", "HOME=/home/me", "PATH=/bin"]);
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
