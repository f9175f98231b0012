//! The configuration of a long-running program: read on demand, and again when a file has changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use codex_files::Stamp;
use serde_json::{Map, Value};

use crate::{Config, ConfigError, ConfigWarning, Env, Home, Layers, Overrides, ProjectFiles, config_files};

/// The number of configurations with overrides that are looked up before one is read again.
const MOST_SHARED: usize = 64;

/// A configuration with the overrides of clients. Most clients start all their threads with the same ones, so threads
/// share it as long as one of them uses it.
#[derive(Debug)]
struct SharedConfig {
    stamps: Vec<Stamp>,
    wishes: Map<String, Value>,
    cwd: PathBuf,
    config: Weak<Config>,
}

/// The source of the configuration in a long-running program.
#[derive(Debug)]
pub struct ConfigSource {
    home: Home,
    env: Env,
    overrides: Overrides,
    known: Mutex<Option<(Vec<Stamp>, Arc<Config>)>>,
    /// Configurations with overrides, the latest last.
    shared: Mutex<Vec<SharedConfig>>,
    /// Features that a client has enabled or disabled until the program exits, by name.
    switches: Mutex<BTreeMap<String, bool>>,
    /// Additional folders of skills that a client has set until the program exits.
    skill_roots: Mutex<Vec<PathBuf>>,
    /// The number of times that the cache was cleared.
    generation: AtomicU64,
}

impl ConfigSource {
    /// The configuration of a home, with the overrides of the command line. Nothing is read yet.
    #[must_use]
    pub fn new(home: Home, env: Env, overrides: Overrides) -> Self {
        let (known, shared, switches, skill_roots) = <(Mutex<_>, Mutex<_>, Mutex<_>, Mutex<_>)>::default();
        Self { home, env, overrides, known, shared, switches, skill_roots, generation: AtomicU64::default() }
    }

    #[must_use]
    pub fn home(&self) -> &Home {
        &self.home
    }

    #[must_use]
    pub fn env(&self) -> &Env {
        &self.env
    }

    #[must_use]
    pub fn overrides(&self) -> &Overrides {
        &self.overrides
    }

    /// The configuration without overrides of a client or a project. Read again only when one of its files has changed.
    ///
    /// # Errors
    /// When it cannot be read or parsed.
    pub fn config(&self) -> Result<Arc<Config>, ConfigError> {
        let stamps = self.stamps();
        let mut known = lock(&self.known);
        match &*known {
            Some((of, config)) if *of == stamps => Ok(Arc::clone(config)),
            _ => {
                let config = Arc::new(self.load(Overrides { cwd: None, ..self.overrides.clone() })?);
                *known = Some((stamps, Arc::clone(&config)));
                Ok(config)
            }
        }
    }

    /// The configuration in a folder, with the overrides of a client.
    ///
    /// # Errors
    /// As above.
    pub fn config_for(&self, wishes: Map<String, Value>, cwd: &Path) -> Result<Arc<Config>, ConfigError> {
        let request = wishes.clone();
        let load = || {
            let overrides = Overrides { request, cwd: Some(cwd.to_owned()), ..self.overrides.clone() };
            self.load(overrides).map(Arc::new)
        };
        if !ProjectFiles::find(&self.home, cwd).is_empty() {
            return load();
        }
        if wishes.is_empty() {
            return self.config();
        }
        let stamps = self.stamps();
        let is_same = |known: &&SharedConfig| known.stamps == stamps && known.wishes == wishes && known.cwd == cwd;
        if let Some(config) = lock(&self.shared).iter().find(is_same).and_then(|known| known.config.upgrade()) {
            return Ok(config);
        }
        let config = load()?;
        let mut shared = lock(&self.shared);
        shared.retain(|known| known.config.strong_count() > 0);
        if shared.len() == MOST_SHARED {
            shared.remove(0);
        }
        shared.push(SharedConfig { stamps, wishes, cwd: cwd.to_owned(), config: Arc::downgrade(&config) });
        Ok(config)
    }

    fn stamps(&self) -> Vec<Stamp> {
        config_files(&self.home, &self.env).iter().map(|file| Stamp::of(file)).collect()
    }

    /// The warnings about the configuration in a folder. Code that needs a file reports that it cannot be read.
    #[must_use]
    pub fn warnings(&self, cwd: PathBuf) -> Vec<ConfigWarning> {
        let overrides = Overrides { cwd: Some(cwd), strict: false, ..self.overrides.clone() };
        Layers::read(&self.home, &self.env, &overrides).map(|layers| layers.warnings()).unwrap_or_default()
    }

    /// Clears the cache, because this program has written the configuration or the login: two writes may follow each
    /// other faster than the resolution of file times.
    pub fn forget(&self) {
        *lock(&self.known) = None;
        lock(&self.shared).clear();
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Increases whenever the cache is cleared, for code that caches derived data.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Enables or disables features from now on.
    pub fn switch(&self, switches: BTreeMap<String, bool>) {
        lock(&self.switches).extend(switches);
        self.forget();
    }

    /// Searches for skills in these folders too from now on; false if it already does.
    pub fn look_for_skills_in(&self, roots: Vec<PathBuf>) -> bool {
        let before = std::mem::replace(&mut *lock(&self.skill_roots), roots.clone());
        self.forget();
        before != roots
    }

    fn load(&self, mut overrides: Overrides) -> Result<Config, ConfigError> {
        for (name, is_on) in lock(&self.switches).clone() {
            // The same feature in a request takes precedence.
            overrides.request.entry(format!("features.{name}")).or_insert(Value::Bool(is_on));
        }
        let mut config = Config::load(&self.home, &self.env, &overrides)?;
        config.skills.extra_roots.clone_from(&lock(&self.skill_roots));
        Ok(config)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is one assignment, so a panic cannot have left it incomplete.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(folder: &Path) -> ConfigSource {
        let env = Env::from_iter::<[(&str, &str); 0]>([]);
        ConfigSource::new(Home::at(folder), env, Overrides::default())
    }

    fn write(folder: &Path, text: &str) {
        std::fs::write(folder.join("config.toml"), text).expect("the file can be written");
    }

    #[test]
    fn only_changed_files_are_read_again() {
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        write(folder.path(), "model = 'one'");
        let source = source(folder.path());
        let first = source.config().expect("it is right");
        assert!(Arc::ptr_eq(&first, &source.config().expect("it is right")));
        write(folder.path(), "model = 'another'");
        assert_eq!(source.config().expect("it is right").model.name, "another");
        assert_eq!(first.model.name, "one");
    }

    #[test]
    fn threads_with_the_same_overrides_share_a_configuration() {
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        write(folder.path(), "model = 'one'");
        let source = source(folder.path());
        let config = |policy: &str| {
            let wishes = Map::from_iter([("approval_policy".to_owned(), Value::from(policy))]);
            source.config_for(wishes, &folder.path().join("project")).expect("it is right")
        };
        let first = config("never");
        assert!(Arc::ptr_eq(&first, &config("never")));
        assert!(!Arc::ptr_eq(&first, &config("untrusted")));
        write(folder.path(), "model = 'another'");
        assert_eq!(config("never").model.name, "another");
        source.forget();
        assert_eq!(lock(&source.shared).len(), 0);
    }

    #[test]
    fn overrides_of_a_request_take_precedence_over_enabled_features() {
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        let source = source(folder.path());
        let before = source.generation();
        source.switch(BTreeMap::from([("goals".to_owned(), false)]));
        assert!(source.generation() > before);
        assert_eq!(source.config().expect("it is right").features.get("goals"), Some(&false));
        let wishes = Map::from_iter([("features.goals".to_owned(), Value::Bool(true))]);
        let config = source.config_for(wishes, folder.path()).expect("it is right");
        assert_eq!(config.features.get("goals"), Some(&true));
    }

    #[test]
    fn folders_of_skills_are_new_once() {
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        let source = source(folder.path());
        let roots = vec![folder.path().join("more")];
        assert!(source.look_for_skills_in(roots.clone()));
        assert!(!source.look_for_skills_in(roots.clone()));
        assert_eq!(source.config().expect("it is right").skills.extra_roots, roots);
    }
}
