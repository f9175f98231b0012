//! The settings of the store of threads.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Env, Reader, Secret, ValueError};

/// The variable with the URL of the database, which takes precedence over `store.url`.
pub(crate) const URL_VARIABLE: &str = "CODEX_STORE_URL";

/// The default of `store.patience_sec`.
const PATIENCE: Duration = Duration::from_secs(30);

/// The maximum size of a file with a password.
const MOST_PASSWORD: u64 = 4096;

/// `[store]`: the place of the threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreConfig {
    /// `url`: a database that servers share. Without one, threads are files in the home.
    pub url: Option<Secret>,
    /// `password_file`: a file with the password of the database.
    pub password_file: Option<PathBuf>,
    /// `password_env_var`: the name of a variable with the password.
    pub password_variable: Option<String>,
    /// `schema`: the schema of the tables, so that several teams can use one database.
    pub schema: Option<String>,
    /// `server_name`: the name of this server, for people.
    pub server_name: Option<String>,
    /// `patience_sec`: the time that a call waits for a database that cannot be reached.
    pub patience: Duration,
    /// `advertise`: the address of this server at which the others pass on requests.
    pub advertise: Option<String>,
    /// `token_file`: a file with the token that all servers of the database have in common.
    pub token_file: Option<PathBuf>,
    /// `drain_sec`: the time that running turns have to finish when the server is told to end.
    pub drain: Duration,
    /// `plain_sql`: whether to do without advisory locks and notifications, which some databases do not have.
    pub plain_sql: bool,
    /// `keep_days`: the number of days after which threads that nobody has changed are deleted.
    pub keep_days: Option<u64>,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            url: None,
            password_file: None,
            password_variable: None,
            schema: None,
            server_name: None,
            patience: PATIENCE,
            advertise: None,
            token_file: None,
            drain: Duration::ZERO,
            plain_sql: false,
            keep_days: None,
        }
    }
}

impl StoreConfig {
    pub(crate) fn read(root: &Reader<'_>, env: &Env) -> Result<Self, ValueError> {
        let store = root.section("store")?;
        let written = store.secret("url")?;
        Ok(Self {
            url: env.text(URL_VARIABLE).map(Secret::new).or(written),
            password_file: store.path("password_file")?,
            password_variable: store.str("password_env_var")?,
            schema: store.str("schema")?,
            server_name: store.str("server_name")?,
            patience: store.integer("patience_sec", 1..=3600)?.map_or(PATIENCE, Duration::from_secs),
            advertise: store.str("advertise")?,
            token_file: store.path("token_file")?,
            drain: store.integer("drain_sec", 0..=3600)?.map_or(Duration::ZERO, Duration::from_secs),
            plain_sql: store.bool("plain_sql")?.unwrap_or(false),
            keep_days: store.integer("keep_days", 1..=36500)?,
        })
    }

    /// The password of the database, if it is not in the URL.
    ///
    /// # Errors
    /// When the file cannot be read, or the variable is not set.
    pub fn password(&self, env: &Env) -> Result<Option<Secret>, String> {
        if let Some(name) = &self.password_variable {
            let value = env.text(name).ok_or_else(|| format!("store.password_env_var: {name} is not set"))?;
            return Ok(Some(Secret::new(value)));
        }
        self.password_file.as_deref().map(read).transpose()
    }
}

fn read(path: &Path) -> Result<Secret, String> {
    let text = codex_files::read_text(path, MOST_PASSWORD);
    let text = text.map_err(|error| format!("store.password_file: could not read {}: {error}", path.display()))?;
    let password = text.lines().next().unwrap_or_default();
    if password.is_empty() {
        return Err(format!("store.password_file: {} is empty", path.display()));
    }
    Ok(Secret::new(password))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Home, Overrides};

    fn config(file: &str, variables: &[(&str, &str)]) -> (tempfile::TempDir, Config, Env) {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("config.toml"), file).unwrap();
        std::fs::write(home.path().join("password"), "canary\n").unwrap();
        let env: Env = variables.iter().copied().collect();
        let config = Config::load(&Home::at(home.path()), &env, &Overrides::default()).unwrap();
        (home, config, env)
    }

    #[test]
    fn the_variable_takes_precedence_and_nothing_shows_the_secrets() {
        let file = "[store]\nurl = 'postgres://u:canary@h/x'\npassword_file = 'password'\nschema = 'team'\n";
        let (_home, config, env) = config(file, &[("CODEX_STORE_URL", "postgres://v:canary@h/x")]);
        let store = &config.store(&env);
        assert!(store.url.as_ref().unwrap().reveal().starts_with("postgres://v:"));
        assert_eq!(store.password(&env).unwrap().unwrap().reveal(), "canary");
        assert_eq!((store.schema.as_deref(), store.patience), (Some("team"), PATIENCE));
        let shown = format!("{config:?} {store:?}");
        assert!(!shown.contains("canary"), "{shown}");
    }

    #[test]
    fn a_password_that_is_not_there_is_an_error() {
        let (_home, config, env) = config("[store]\npassword_env_var = 'NOWHERE'", &[]);
        assert_eq!(config.store(&env).password(&env).unwrap_err(), "store.password_env_var: NOWHERE is not set");
        let (home, config, env) = self::config("[store]\npassword_file = 'empty'", &[]);
        std::fs::write(home.path().join("empty"), "").unwrap();
        assert!(config.store(&env).password(&env).unwrap_err().ends_with("empty is empty"));
    }

    #[test]
    fn a_project_cannot_set_the_store() {
        let home = tempfile::tempdir().unwrap();
        let project = home.path().join("project");
        std::fs::create_dir_all(project.join(".codex")).unwrap();
        codex_files::testing::make_git_folder(&project.join(".git")).unwrap();
        std::fs::write(project.join(".codex/config.toml"), "[store]\nurl = 'postgres://evil'\nschema = 'x'\n").unwrap();
        let trusted = format!("[projects.'{}']\ntrust_level = 'trusted'\n", project.display());
        std::fs::write(home.path().join("config.toml"), trusted).unwrap();
        let overrides = Overrides { cwd: Some(project), ..Overrides::default() };
        let env = Env::from_iter::<[(&str, &str); 0]>([]);
        let config = Config::load(&Home::at(home.path()), &env, &overrides).unwrap();
        assert_eq!(config.store(&env), StoreConfig::default());
    }
}
