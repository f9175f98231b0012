//! What all connections share: the home folder, the configuration, the models and the loaded threads.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};

use codex_config::{
    Config, ConfigWarning, Env, Home, Layers, Overrides, ProjectFiles, ProviderConfig, WireApi, config_files,
};
use codex_engine::{Beginning, Model, Setup, connect};
use codex_files::Stamp;
use codex_log::store::ThreadStore;
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::thread::ThreadOptions;
use codex_thread::ClientProfile;
use codex_wire::rollout::SessionSource;
use serde_json::{Map, Value};

use super::connection::{Client, Connection, lock};
use super::disk::Places;
use super::hearing::Dialect;
use super::loaded::Loaded;
use codex_dialects::Vintage;

/// How the server was started.
#[derive(Debug, Clone)]
pub struct Start {
    /// The home folder.
    pub home: Home,
    /// Who keeps the threads.
    pub store: Arc<dyn ThreadStore>,
    /// The variables.
    pub env: Env,
    /// What the command line says of the configuration.
    pub overrides: Overrides,
    /// Where threads work that name no folder.
    pub cwd: PathBuf,
    /// A folder of programs that commands find before all others.
    pub programs: Option<PathBuf>,
    /// The name this program gives itself to providers.
    pub originator: String,
    /// How many bytes of what each thread said last are kept for clients that were cut off.
    pub recent_bytes: usize,
    /// What kind of program threads come from.
    pub source: SessionSource,
    /// Which release's ways are followed; found out from the configuration if unset.
    pub vintage: Option<Vintage>,
    /// The dialect of clients that choose none; found out from how they ask if unset.
    pub dialect: Option<Dialect>,
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) start: Start,
    pub(crate) loaded: Loaded,
    /// Who keeps the threads.
    pub(crate) store: Arc<dyn ThreadStore>,
    config: Mutex<Option<(Vec<Stamp>, Arc<Config>)>>,
    /// What a client has switched on or off until the server ends, by name.
    switches: Mutex<BTreeMap<String, bool>>,
    /// Where a client wants skills to be looked for besides the usual places, until the server ends.
    skill_roots: Mutex<Vec<PathBuf>>,
    models: Mutex<Vec<SharedModel>>,
    /// How much the clients may have done at once.
    pub(crate) places: Places,
    /// The clients that are there.
    connections: Mutex<Vec<Weak<Connection>>>,
}

/// A model that several threads ask.
struct SharedModel {
    provider: ProviderConfig,
    /// Who its requests say they come from.
    originator: String,
    model: Arc<dyn Model>,
}

impl std::fmt::Debug for SharedModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedModel")
    }
}

impl Host {
    pub(crate) fn new(start: Start) -> Self {
        let store = Arc::clone(&start.store);
        let (config, models, switches) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (skill_roots, connections, places) = (Mutex::default(), Mutex::default(), Places::default());
        Self { start, loaded: Loaded::default(), store, config, switches, skill_roots, models, places, connections }
    }

    /// Notes that a client is there.
    pub(crate) fn welcome(&self, connection: &Arc<Connection>) {
        let mut connections = lock(&self.connections);
        connections.retain(|connection| connection.strong_count() > 0);
        connections.push(Arc::downgrade(connection));
    }

    /// The clients that are there.
    pub(crate) fn connections(&self) -> Vec<Arc<Connection>> {
        let connections = lock(&self.connections);
        connections.iter().filter_map(Weak::upgrade).collect()
    }

    /// Forgets what was read of the configuration and of the login, because this program has written one of them: two
    /// writes may follow each other faster than a file's time tells.
    pub(crate) fn forget(&self) {
        *lock(&self.config) = None;
        lock(&self.models).clear();
    }

    /// Switches something on or off for threads that start from now on.
    pub(crate) fn switch(&self, switches: BTreeMap<String, bool>) {
        lock(&self.switches).extend(switches);
        self.forget();
    }

    /// Looks for skills in these folders too from now on; false if it did already.
    pub(crate) fn look_for_skills_in(&self, roots: Vec<PathBuf>) -> bool {
        let before = std::mem::replace(&mut *lock(&self.skill_roots), roots.clone());
        self.forget();
        before != roots
    }

    /// The configuration without any wishes of a client or a project. Read again only when one of its files has changed.
    pub(crate) fn config(&self) -> Result<Arc<Config>, ErrorObject> {
        let Start { home, env, overrides, .. } = &self.start;
        let stamps = config_files(home, env).iter().map(|file| Stamp::of(file)).collect();
        let mut known = lock(&self.config);
        match &*known {
            Some((of, config)) if *of == stamps => Ok(Arc::clone(config)),
            _ => {
                let config = Arc::new(self.load(&Overrides { cwd: None, ..overrides.clone() })?);
                *known = Some((stamps, Arc::clone(&config)));
                Ok(config)
            }
        }
    }

    /// What the user should know of the configuration in a folder. What cannot be read at all is told to who asks for it.
    pub(crate) fn config_warnings(&self, cwd: PathBuf) -> Vec<ConfigWarning> {
        let Start { home, env, overrides, .. } = &self.start;
        let overrides = Overrides { cwd: Some(cwd), strict: false, ..overrides.clone() };
        Layers::read(home, env, &overrides).map(|layers| layers.warnings()).unwrap_or_default()
    }

    fn load(&self, overrides: &Overrides) -> Result<Config, ErrorObject> {
        let switches = lock(&self.switches).clone();
        let mut overrides = overrides.clone();
        for (name, is_on) in switches {
            // What a request says of the same switch goes before.
            overrides.request.entry(format!("features.{name}")).or_insert(Value::Bool(is_on));
        }
        let mut config = Config::load(&self.start.home, &self.start.env, &overrides).map_err(|error| {
            let hint = error.hint().map(|hint| format!("\n{hint}")).unwrap_or_default();
            ErrorObject::invalid(format!("failed to load configuration: {error}{hint}"))
        })?;
        config.skills.extra_roots.clone_from(&lock(&self.skill_roots));
        Ok(config)
    }

    /// Which release's ways are followed. A home that names a catalogue of models was written for the newer ones.
    pub(crate) fn vintage(&self) -> Vintage {
        self.start.vintage.unwrap_or_else(|| {
            let config = self.config().ok();
            let names_catalogue = config.is_some_and(|config| config.model.catalogue.is_some());
            if names_catalogue { Vintage::V0166 } else { Vintage::V077 }
        })
    }

    /// Who requests on behalf of a client say they come from: the client, unless a variable says otherwise or 0.77 is
    /// emulated, which had one name for all.
    pub(crate) fn originator<'a>(&'a self, client: &'a str) -> &'a str {
        let Start { originator, env, vintage, .. } = &self.start;
        let is_given = *vintage == Some(Vintage::V077) || env.text("CODEX_INTERNAL_ORIGINATOR_OVERRIDE").is_some();
        if is_given { originator } else { client }
    }

    /// What a thread is made of. It reads files; run it off the async threads.
    pub(crate) fn setup(&self, options: &ThreadOptions, client: Option<&Client>) -> Result<Setup, ErrorObject> {
        let profile = profile(client.map(|client| client.vintage).unwrap_or_default());
        let Start { home, env, cwd, programs, overrides, .. } = &self.start;
        let originator = client.map_or(&*self.start.originator, |client| self.originator(&client.name));
        let cwd = options.cwd.as_ref().map_or_else(|| cwd.clone(), |wish| cwd.join(wish));
        if !cwd.is_dir() {
            return Err(ErrorObject::invalid(format!("the working directory {} does not exist", cwd.display())));
        }
        let cwd = cwd.canonicalize().unwrap_or(cwd);
        let request = wishes(options);
        let config = if request.is_empty() && ProjectFiles::find(home, &cwd).is_empty() {
            self.config()?
        } else {
            Arc::new(self.load(&Overrides { request, cwd: Some(cwd.clone()), ..overrides.clone() })?)
        };
        home.ensure().map_err(|error| ErrorObject::internal(error.to_string()))?;
        Ok(Setup {
            model: self.model(&config, originator)?,
            config,
            home: home.clone(),
            store: Arc::clone(&self.store),
            originator: originator.to_owned(),
            source: self.start.source.clone(),
            shell: env.text("SHELL"),
            programs: programs.clone(),
            profile,
            base_instructions: options.base_instructions.as_deref().map(Arc::from),
            beginning: Beginning::New,
            recent_bytes: self.start.recent_bytes,
            cwd,
        })
    }

    /// The model of a configuration. Threads with the same provider share its connections.
    fn model(&self, config: &Config, originator: &str) -> Result<Arc<dyn Model>, ErrorObject> {
        let Start { home, env, .. } = &self.start;
        let make = || connect(config, home, env, originator).map_err(|error| ErrorObject::invalid(error.to_string()));
        if config.provider.wire_api == WireApi::Scripted {
            return make();
        }
        let mut models = lock(&self.models);
        let is_same = |known: &&SharedModel| known.originator == originator && known.provider == config.provider;
        if let Some(known) = models.iter().find(is_same) {
            return Ok(Arc::clone(&known.model));
        }
        let model = make()?;
        let (provider, originator) = (config.provider.clone(), originator.to_owned());
        models.push(SharedModel { provider, originator, model: Arc::clone(&model) });
        Ok(model)
    }
}

/// What clients of a release expect.
fn profile(vintage: Vintage) -> ClientProfile {
    match vintage {
        Vintage::V077 => ClientProfile::V077,
        Vintage::V0166 => ClientProfile::V0166,
    }
}

/// The wishes of a client as values that go over those of the configuration.
fn wishes(options: &ThreadOptions) -> Map<String, Value> {
    let mut wishes = options.config.clone().unwrap_or_default();
    let mut wish = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            wishes.insert(key.to_owned(), Value::String(value));
        }
    };
    wish("model", options.model.clone());
    wish("model_provider", options.model_provider.clone());
    wish("approval_policy", options.approval_policy.map(|word| word.to_string()));
    wish("approvals_reviewer", options.approvals_reviewer.as_ref().map(|word| word.as_str().to_owned()));
    wish("sandbox_mode", options.sandbox.map(|word| word.to_string()));
    wish("developer_instructions", options.developer_instructions.clone());
    wishes
}
