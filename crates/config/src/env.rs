//! The environment of a run, passed in so that tests and embedding programs control it.
//!
//! Invariant: this is the only place in the crate that reads the process's variables.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// The maximum number of bytes read of the user database.
const PASSWD_BYTES: u64 = 1024 * 1024;

/// The variables that name a file of certificates; the first that is set counts.
const CA_VARIABLES: [&str; 2] = ["CODEX_CA_CERTIFICATE", "SSL_CERT_FILE"];

/// The visible variables: the process's own, or a fixed set.
#[derive(Clone)]
pub struct Env {
    fixed: Option<BTreeMap<String, OsString>>,
}

impl Env {
    /// The variables of this process, looked up on demand.
    #[must_use]
    pub fn process() -> Self {
        Self { fixed: None }
    }

    /// The value of a variable; an empty one counts as unset.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<OsString> {
        let value = match &self.fixed {
            Some(variables) => variables.get(name).cloned(),
            None => std::env::var_os(name),
        };
        let value = value.filter(|value| !value.is_empty());
        // Services are often started without it.
        if value.is_none() && name == "HOME" && self.fixed.is_none() { user_folder() } else { value }
    }

    /// The file of certificates to trust besides those of the system, for every connection of the program.
    #[must_use]
    pub fn ca_certificates(&self) -> Option<PathBuf> {
        CA_VARIABLES.iter().find_map(|name| self.text(name)).map(PathBuf::from)
    }

    /// The trimmed value of a variable; one that is blank or not UTF-8 counts as unset.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        let value = self.get(name)?.into_string().ok()?;
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }
}

/// The home of the user that this process runs as, from the user database.
fn user_folder() -> Option<OsString> {
    use std::os::unix::fs::MetadataExt as _;
    let user = std::fs::metadata("/proc/self").ok()?.uid();
    folder_of(user, &codex_files::read_text(Path::new("/etc/passwd"), PASSWD_BYTES).ok()?).map(OsString::from)
}

/// The home of a user in a user database: name, password, uid, gid, comment, home and shell in a line.
fn folder_of(user: u32, users: &str) -> Option<&str> {
    let mut entries = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let folder = entries.find_map(|entry| match entry[..] {
        [_, _, number, _, _, folder, ..] if number.parse() == Ok(user) => Some(folder),
        _ => None,
    });
    folder.filter(|folder| folder.starts_with('/'))
}

impl<K: Into<String>, V: Into<OsString>> FromIterator<(K, V)> for Env {
    /// A fixed set of variables; the process's own are not visible.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        let fixed = variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { fixed: Some(fixed) }
    }
}

impl fmt::Debug for Env {
    /// Shows only names: values may be keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fixed {
            Some(variables) => f.debug_set().entries(variables.keys()).finish(),
            None => f.write_str("Env(process)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_a_folder_without_a_variable() {
        let users =
            "# list\nroot:x:0:0:root:/root:/bin/sh\nann:x:1000:100:Ann, a:/home/ann:/bin/sh\nno:x:7:7::none:\nodd\n";
        let of = |user| folder_of(user, users);
        assert_eq!((of(0), of(1000), of(7), of(8)), (Some("/root"), Some("/home/ann"), None, None));
        // A fixed set is complete.
        assert_eq!(Env::from_iter([("HOME", "")]).get("HOME"), None);
    }

    #[test]
    fn empty_and_blank_variables_count_as_unset() {
        let env = Env::from_iter([("A", ""), ("B", " \n"), ("C", " x \n")]);
        assert_eq!(env.get("A"), None);
        assert_eq!(env.text("B"), None);
        assert_eq!(env.text("C"), Some("x".to_owned()));
        assert_eq!(env.text("D"), None);
    }

    #[test]
    fn debug_output_hides_values() {
        assert_eq!(format!("{:?}", Env::from_iter([("KEY", "sk-1")])), r#"{"KEY"}"#);
        assert_eq!(format!("{:?}", Env::process()), "Env(process)");
    }

    #[test]
    fn the_process_environment_is_not_seen_through_a_fixed_set() {
        assert!(Env::process().get("PATH").is_some());
        assert_eq!(Env::from_iter::<[(&str, &str); 0]>([]).get("PATH"), None);
    }
}
