//! `CODEX_HOME`: the folder of everything that belongs to one user, and the names of its entries.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::Env;

/// The folder that contains configuration, login and threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
    user: Option<PathBuf>,
}

/// The reason why there is no home folder.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    #[error("CODEX_HOME points to {}, which does not exist", .path.display())]
    Missing { path: PathBuf },
    #[error("CODEX_HOME points to {}, which is not a directory", .path.display())]
    NotADirectory { path: PathBuf },
    #[error("CODEX_HOME points to {}, which could not be opened", .path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("neither CODEX_HOME nor HOME is set")]
    Unset,
    /// A relative `HOME` would put the login into whatever folder the program is started in.
    #[error("HOME is {}, which is not an absolute path", .path.display())]
    RelativeUserDir { path: PathBuf },
    /// A folder that has to be private belongs to another user.
    #[error("{} belongs to another user", .path.display())]
    Foreign { path: PathBuf },
    #[error("could not create {}", .path.display())]
    Create { path: PathBuf, source: io::Error },
}

impl HomeError {
    /// A hint, shown on its own line.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { path } => {
                Some(format!("create it with `mkdir -p {}`, or unset CODEX_HOME", path.display()))
            }
            Self::NotADirectory { .. } => Some("set CODEX_HOME to a directory, or unset it to use ~/.codex".to_owned()),
            Self::Unset => Some("set CODEX_HOME to an existing directory".to_owned()),
            Self::RelativeUserDir { .. } => Some("set HOME to an absolute path, or set CODEX_HOME".to_owned()),
            Self::Foreign { .. } => Some("remove it, or set CODEX_HOME to a directory of your own".to_owned()),
            Self::Open { .. } | Self::Create { .. } => None,
        }
    }
}

impl Home {
    /// Finds the home folder: `CODEX_HOME`, which must exist, else `~/.codex`, which need not.
    pub fn find(env: &Env) -> Result<Self, HomeError> {
        let user = env.get("HOME").map(PathBuf::from);
        if let Some(path) = env.get("CODEX_HOME").map(PathBuf::from) {
            let root = resolve(path)?;
            return Ok(Self { root, user: user.filter(|user| user.is_absolute()) });
        }
        let user = user.ok_or(HomeError::Unset)?;
        if user.is_relative() {
            return Err(HomeError::RelativeUserDir { path: user });
        }
        Ok(Self { root: user.join(".codex"), user: Some(user) })
    }

    /// Uses a folder without checking the environment.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), user: None }
    }

    /// Creates the folder if it is missing, accessible only to this user.
    pub fn ensure(&self) -> Result<(), HomeError> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.root).map_err(|source| HomeError::Create { path: self.root.clone(), source })
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// The user's own home folder, for paths that start with `~`.
    #[must_use]
    pub fn user_dir(&self) -> Option<&Path> {
        self.user.as_deref()
    }

    /// `config.toml`.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    /// The file of a profile that has its own.
    #[must_use]
    pub fn profile_file(&self, name: &str) -> PathBuf {
        self.root.join(format!("{name}.config.toml"))
    }

    /// `auth.json`.
    #[must_use]
    pub fn auth_file(&self) -> PathBuf {
        self.root.join("auth.json")
    }

    /// `.credentials.json`: the logins to MCP servers.
    #[must_use]
    pub fn mcp_credentials_file(&self) -> PathBuf {
        self.root.join(".credentials.json")
    }

    /// The folder of active rollouts.
    #[must_use]
    pub fn sessions(&self) -> PathBuf {
        self.root.join("sessions")
    }

    /// The folder of archived rollouts.
    #[must_use]
    pub fn archived_sessions(&self) -> PathBuf {
        self.root.join("archived_sessions")
    }

    /// The prompt history, one prompt per line.
    #[must_use]
    pub fn history_file(&self) -> PathBuf {
        self.root.join("history.jsonl")
    }

    /// The folder of texts that were typed and not sent.
    #[must_use]
    pub fn drafts(&self) -> PathBuf {
        self.root.join("drafts")
    }

    #[must_use]
    pub fn prompts(&self) -> PathBuf {
        self.root.join("prompts")
    }

    #[must_use]
    pub fn rules(&self) -> PathBuf {
        self.root.join("rules")
    }

    #[must_use]
    pub fn skills(&self) -> PathBuf {
        self.root.join("skills")
    }

    /// The folder of a running server: its socket, its token and its log.
    #[must_use]
    pub fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    /// The default socket of a server.
    #[must_use]
    pub fn server_socket(&self) -> PathBuf {
        self.run().join("app-server.sock")
    }

    /// The generated token of a server.
    #[must_use]
    pub fn server_token_file(&self) -> PathBuf {
        self.run().join("app-server.token")
    }

    /// The log of a background server.
    #[must_use]
    pub fn server_log(&self) -> PathBuf {
        self.run().join("app-server.log")
    }
}

/// Checks the value of `CODEX_HOME` and returns its absolute path.
fn resolve(path: PathBuf) -> Result<PathBuf, HomeError> {
    match path.canonicalize() {
        Ok(root) if root.is_dir() => Ok(root),
        Ok(_) => Err(HomeError::NotADirectory { path }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(HomeError::Missing { path }),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Err(HomeError::NotADirectory { path }),
        Err(source) => Err(HomeError::Open { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use tempfile::TempDir;

    use super::*;

    /// Finds the home with the given variables, in a folder that contains `dir/` and `file`; `@` is that folder.
    #[track_caller]
    fn check(variables: &[(&str, &str)], expected: Expect) {
        let temp = TempDir::new().unwrap();
        fs::create_dir(temp.path().join("dir")).unwrap();
        fs::write(temp.path().join("file"), "").unwrap();
        let at = temp.path().canonicalize().unwrap().display().to_string();
        let env: Env = variables.iter().map(|(name, value)| (*name, value.replace('@', &at))).collect();
        let shown = match Home::find(&env) {
            Ok(home) => format!("{} user {:?}", home.path().display(), home.user_dir()),
            Err(error) => format!("{error}\nhint: {}", error.hint().unwrap_or_default()),
        };
        expected.assert_eq(&shown.replace(&at, "@"));
    }

    #[test]
    fn the_variable_takes_precedence_over_the_default() {
        check(&[("CODEX_HOME", "@/dir"), ("HOME", "@")], expect![[r#"@/dir user Some("@")"#]]);
    }

    #[test]
    fn the_default_need_not_exist() {
        check(&[("HOME", "@")], expect![[r#"@/.codex user Some("@")"#]]);
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        check(&[("CODEX_HOME", ""), ("HOME", "@")], expect![[r#"@/.codex user Some("@")"#]]);
    }

    #[test]
    fn the_variable_must_name_something() {
        check(
            &[("CODEX_HOME", "@/nowhere"), ("HOME", "@")],
            expect![[r#"
                CODEX_HOME points to @/nowhere, which does not exist
                hint: create it with `mkdir -p @/nowhere`, or unset CODEX_HOME"#]],
        );
    }

    #[test]
    fn the_variable_must_name_a_directory() {
        check(
            &[("CODEX_HOME", "@/file")],
            expect![[r#"
                CODEX_HOME points to @/file, which is not a directory
                hint: set CODEX_HOME to a directory, or unset it to use ~/.codex"#]],
        );
        check(
            &[("CODEX_HOME", "@/file/below")],
            expect![[r#"
                CODEX_HOME points to @/file/below, which is not a directory
                hint: set CODEX_HOME to a directory, or unset it to use ~/.codex"#]],
        );
    }

    #[test]
    fn without_variables_there_is_no_home() {
        check(
            &[],
            expect![[r#"
                neither CODEX_HOME nor HOME is set
                hint: set CODEX_HOME to an existing directory"#]],
        );
    }

    #[test]
    fn a_relative_user_folder_is_refused() {
        check(
            &[("HOME", "here")],
            expect![[r#"
                HOME is here, which is not an absolute path
                hint: set HOME to an absolute path, or set CODEX_HOME"#]],
        );
        check(&[("HOME", "here"), ("CODEX_HOME", "@/dir")], expect!["@/dir user None"]);
    }

    #[cfg(unix)]
    #[test]
    fn ensure_creates_a_private_folder_once() {
        use std::os::unix::fs::PermissionsExt as _;

        let temp = TempDir::new().unwrap();
        let home = Home::at(temp.path().join(".codex"));
        home.ensure().unwrap();
        home.ensure().unwrap();
        assert_eq!(fs::metadata(home.path()).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn ensure_names_the_folder_it_could_not_create() {
        let temp = TempDir::new().unwrap();
        fs::write(temp.path().join("file"), "").unwrap();
        let error = Home::at(temp.path().join("file/below")).ensure().unwrap_err();
        assert_eq!(error.to_string(), format!("could not create {}/file/below", temp.path().display()));
    }

    #[test]
    fn every_path_is_below_the_folder() {
        let home = Home::at("/h");
        let all = [
            home.config_file(),
            home.auth_file(),
            home.sessions(),
            home.archived_sessions(),
            home.history_file(),
            home.prompts(),
            home.rules(),
            home.skills(),
            home.server_socket(),
            home.server_token_file(),
            home.server_log(),
        ];
        let shown: Vec<_> = all.iter().map(|path| path.display().to_string()).collect();
        expect!["/h/config.toml /h/auth.json /h/sessions /h/archived_sessions /h/history.jsonl /h/prompts /h/rules /h/skills /h/run/app-server.sock /h/run/app-server.token /h/run/app-server.log"].assert_eq(&shown.join(" "));
    }
}
