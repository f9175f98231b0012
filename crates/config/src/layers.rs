//! The order of the layers, the lowest first: the machine's file, the user's, those of the project, the selected
//! profile, the command line and the request, and the managed file.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value as Json};

use crate::{
    AuditedKey, Config, ConfigError, ConfigWarning, Env, Home, KeyPath, LayerError, Node, Origin, Reader, Tree, Value,
    Verdict,
    audit::{allowed, audit},
    position::decode,
    project_files::{ProjectFiles, Trusted},
    project_servers::{ProjectServer, servers},
};

/// The maximum size of `config.toml`.
pub(crate) const MOST_BYTES: u64 = 1024 * 1024;

/// The administrator's settings for all users.
const SYSTEM_FILE: &str = "/etc/codex/config.toml";

/// The administrator's enforced settings for all users.
const MANAGED_FILE: &str = "/etc/codex/managed_config.toml";

/// The overrides of the command line or a request, and the working directory.
#[derive(Clone, Default)]
pub struct Overrides {
    /// The argument of `--profile`.
    pub profile: Option<String>,
    /// The arguments of `-c`, in order; a later one wins.
    pub values: Vec<String>,
    /// The `config` object of a client's request, with dotted names.
    pub request: Map<String, Json>,
    /// The folder whose project may have its own files; without one no project is considered.
    pub cwd: Option<PathBuf>,
    /// `--strict-config`: whether a key without effect is an error.
    pub strict: bool,
}

impl Overrides {
    /// The overrides as one layer.
    pub(crate) fn layer(&self) -> Result<Tree, LayerError> {
        let mut layer = Tree::new();
        for text in &self.values {
            layer.merge(Tree::from_override(text)?);
        }
        if let Some(name) = &self.profile {
            let name = Node { value: Value::String(name.clone()), origin: Origin::Flag("--profile") };
            layer.merge(Tree::leaf(&KeyPath::default().join("profile"), name));
        }
        layer.merge(Tree::from_request(&self.request)?);
        Ok(layer)
    }
}

impl fmt::Debug for Overrides {
    /// Omits the values: any of them may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (values, request) = (self.values.len(), self.request.len());
        write!(f, "Overrides {{ profile: {:?}, values: {values}, request: {request} }}", self.profile)
    }
}

/// The origin of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayerSource {
    /// The machine's file.
    System(PathBuf),
    /// The user's file.
    User(PathBuf),
    /// The file of a profile: its name, and the file.
    Profile(String, PathBuf),
    /// The `.codex` folder of a project, or of a folder in it.
    Project(PathBuf),
    /// The command line and the request.
    Flags,
    /// The administrator's file, which overrides everything else.
    Managed(PathBuf),
}

impl LayerSource {
    pub(crate) fn file(&self) -> Option<PathBuf> {
        match self {
            Self::System(file) | Self::User(file) | Self::Profile(_, file) | Self::Managed(file) => Some(file.clone()),
            Self::Project(folder) => Some(folder.join("config.toml")),
            Self::Flags => None,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub(crate) source: LayerSource,
    /// Its contents.
    pub(crate) tree: Tree,
    /// The allowed part, if not everything is allowed.
    pub(crate) allowed: Option<Tree>,
    /// The part that the user has approved.
    approved: Tree,
    /// The reason why it was not read, if it was not.
    pub(crate) disabled: Option<String>,
}

impl Layer {
    fn new(source: LayerSource, tree: Tree) -> Self {
        Self { source, tree, allowed: None, approved: Tree::new(), disabled: None }
    }

    /// The effective part.
    pub(crate) fn counted(&self) -> &Tree {
        self.allowed.as_ref().unwrap_or(&self.tree)
    }
}

/// All layers of a run.
#[derive(Debug)]
pub struct Layers {
    /// The lowest first. The profile of a file has its place below the flags, and one that is a table has no layer.
    list: Vec<Layer>,
    /// Warnings about files that were not read.
    unread: Vec<ConfigWarning>,
    project_servers: Vec<ProjectServer>,
}

impl Layers {
    /// Reads the existing files.
    ///
    /// # Errors
    /// A file that exists but cannot be read, and under `strict` a key without effect.
    pub fn read(home: &Home, env: &Env, overrides: &Overrides) -> Result<Self, ConfigError> {
        Self::over(home, env, overrides, read_file(&home.config_file())?.unwrap_or_default())
    }

    /// All layers, with the given text as the user's file.
    pub(crate) fn over(home: &Home, env: &Env, overrides: &Overrides, user: Tree) -> Result<Self, ConfigError> {
        let mut layers = Self { list: Vec::new(), unread: Vec::new(), project_servers: Vec::new() };
        let system = system_file(env);
        if let Some(tree) = read_file(&system)? {
            layers.list.push(Layer::new(LayerSource::System(system), tree));
        }
        layers.list.push(Layer::new(LayerSource::User(home.config_file()), user));
        let flags = overrides.layer()?;
        if !flags.root().is_empty() {
            layers.list.push(Layer::new(LayerSource::Flags, flags));
        }
        for managed in managed_files(home, env) {
            if let Some(tree) = read_file(&managed)? {
                layers.list.push(Layer::new(LayerSource::Managed(managed), tree));
                break;
            }
        }
        layers.add_profile_file(home)?;
        if let Some(cwd) = &overrides.cwd {
            layers.add_project(home, cwd);
        }
        if overrides.strict {
            let mistakes: Vec<_> = layers.warnings().into_iter().filter(|warning| warning.is_mistake).collect();
            if !mistakes.is_empty() {
                return Err(ConfigError::Strict { mistakes });
            }
        }
        Ok(layers)
    }

    /// The position right below the flags.
    fn below_flags(&self) -> usize {
        let is_above = |layer: &Layer| matches!(layer.source, LayerSource::Flags | LayerSource::Managed(_));
        self.list.iter().position(is_above).unwrap_or(self.list.len())
    }

    /// A profile that is not a table of `[profiles]` may be a separate file, as newer releases write them.
    fn add_profile_file(&mut self, home: &Home) -> Result<(), ConfigError> {
        let tree = self.merged();
        let Some(Node { value: Value::String(name), .. }) = tree.get(&["profile"]) else { return Ok(()) };
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        if !is_name || tree.get(&["profiles", name]).is_some() {
            return Ok(());
        }
        let file = home.profile_file(name);
        if let Some(tree) = read_file(&file)? {
            let at = self.below_flags();
            self.list.insert(at, Layer::new(LayerSource::Profile(name.clone(), file), tree));
        }
        Ok(())
    }

    fn add_project(&mut self, home: &Home, cwd: &Path) {
        let files = ProjectFiles::find(home, cwd);
        if files.is_empty() {
            return;
        }
        // The user's settings for this run override those of the project.
        let is_above = |layer: &Layer| {
            matches!(layer.source, LayerSource::Profile(..) | LayerSource::Flags | LayerSource::Managed(_))
        };
        let start = self.list.iter().position(is_above).unwrap_or(self.list.len());
        let trusted = files.trust(&self.merged());
        for (at, folder) in (start..).zip(files.folders()) {
            let source = LayerSource::Project(folder.clone());
            let read = match trusted {
                Trusted::Yes => files.read(folder).map_err(|why| (why, true)),
                Trusted::No(why) => Err((why.to_owned(), false)),
            };
            let layer = match read {
                Ok(tree) => self.project_layer(source, tree, folder, &files),
                Err((why, is_mistake)) => {
                    let message = format!("not read: {why}");
                    self.unread.push(ConfigWarning::of_file(&folder.join("config.toml"), message, is_mistake));
                    Layer { disabled: Some(why), ..Layer::new(source, Tree::new()) }
                }
            };
            self.list.insert(at, layer);
        }
    }

    /// The layer of a project's file, with the allowed part and the servers that the user has approved.
    fn project_layer(&mut self, source: LayerSource, tree: Tree, folder: &Path, files: &ProjectFiles) -> Layer {
        let (mut allowed, mut approved) = (allowed(&tree, &self.merged()), Tree::new());
        for server in servers(&tree, folder, files, &self.merged()) {
            match server.complaint() {
                Some(why) => self.unread.push(ConfigWarning::of_file(&server.file, why, false)),
                None => server.tree().into_iter().for_each(|server| approved.merge(server)),
            }
            self.project_servers.push(server);
        }
        allowed.merge(approved.clone());
        Layer { allowed: Some(allowed), approved, ..Layer::new(source, tree) }
    }

    /// The MCP servers of the project, used or not.
    #[must_use]
    pub fn project_servers(&self) -> &[ProjectServer] {
        &self.project_servers
    }

    /// The layers, the lowest first.
    pub(crate) fn list(&self) -> &[Layer] {
        &self.list
    }

    /// All layers in one tree, without the profile that is a table.
    pub(crate) fn merged(&self) -> Tree {
        let mut tree = Tree::new();
        for layer in &self.list {
            tree.merge(layer.counted().clone());
        }
        tree
    }

    /// All layers in one tree, and the name of the selected profile.
    pub(crate) fn merge(&self, home: &Home) -> Result<(Tree, Option<String>), ConfigError> {
        // Higher layers may select a profile and even define one, so they are read before the profile is inserted below
        // them.
        let all = self.merged();
        let has_file = self.list.iter().any(|layer| matches!(layer.source, LayerSource::Profile(..)));
        let profile = select_profile(&all, home, has_file)?;
        let Some(mut table) = profile.as_ref().and_then(|name| all.subtree(&["profiles", name])) else {
            return Ok((all, profile));
        };
        // A profile that selects profiles would leave a tree that contradicts the choice made here.
        table.remove("profile");
        table.remove("profiles");
        let (below, above) = self.list.split_at(self.below_flags());
        let mut tree = Tree::new();
        let (below, above) = (below.iter().map(Layer::counted), above.iter().map(Layer::counted));
        for layer in below.chain([&table]).chain(above) {
            tree.merge(layer.clone());
        }
        Ok((tree, profile))
    }

    /// The verdict on each key in the files and on the command line, in the order of the layers and their lines.
    #[must_use]
    pub fn audit(&self) -> Vec<AuditedKey> {
        let keys = self.list.iter().flat_map(|layer| {
            let mut keys = audit(&layer.tree, layer.allowed.as_ref());
            let approved = audit(&layer.approved, None);
            keys.retain(|key| !approved.iter().any(|approved| approved.key == key.key));
            keys.extend(approved);
            keys.sort_by_key(|key| match &key.origin {
                Origin::File { line, .. } => *line,
                Origin::Override(_) | Origin::Flag(_) | Origin::Request | Origin::Default => 0,
            });
            keys
        });
        // A client learns the effect of its request from the response.
        keys.filter(|key| key.origin != Origin::Request).collect()
    }

    /// The warnings for the user.
    #[must_use]
    pub fn warnings(&self) -> Vec<ConfigWarning> {
        // A server of a project is reported as a whole.
        let is_of_server = |key: &AuditedKey| {
            self.project_servers.iter().any(|server| key.key.starts_with(&format!("mcp_servers.{}.", server.name)))
        };
        let keys = self.audit().into_iter().filter(|key| key.verdict != Verdict::Refused || !is_of_server(key));
        let mut warnings: Vec<_> = keys.filter_map(|key| key.warning()).collect();
        warnings.extend(self.unread.iter().cloned());
        let user = self.list.iter().find(|layer| matches!(layer.source, LayerSource::User(_)));
        let hooks = user.and_then(|layer| layer.source.file()).map(|file| file.with_file_name("hooks.json"));
        if let Some(hooks) = hooks.filter(|hooks| hooks.exists()) {
            let message = "not read: hooks are not supported yet".to_owned();
            warnings.push(ConfigWarning::of_file(&hooks, message, false));
        }
        warnings
    }

    /// The findings that need no value of the configuration.
    #[must_use]
    pub fn findings(&self) -> ConfigFindings {
        let names_catalogue = |layer: &Layer| layer.counted().get(&["model_catalog_json"]).is_some();
        ConfigFindings { warnings: self.warnings(), names_catalogue: self.list.iter().any(names_catalogue) }
    }

    /// The resulting configuration.
    pub fn config(&self, home: &Home, env: &Env) -> Result<Config, ConfigError> {
        let (tree, profile) = self.merge(home)?;
        Config::from_tree(tree, profile, home.user_dir(), env)
    }
}

/// The findings about a configuration that need no value of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigFindings {
    /// The warnings for the user.
    pub warnings: Vec<ConfigWarning>,
    /// Whether a model catalogue is named.
    pub names_catalogue: bool,
}

/// A path in a variable. A relative one would depend on the folder that the program is started in.
fn named(env: &Env, variable: &str) -> Option<PathBuf> {
    env.get(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The machine's file.
fn system_file(env: &Env) -> PathBuf {
    named(env, "CODEX_SYSTEM_CONFIG_PATH").unwrap_or_else(|| SYSTEM_FILE.into())
}

/// The possible paths of the administrator's file; the first that exists counts.
fn managed_files(home: &Home, env: &Env) -> Vec<PathBuf> {
    // Tests of other releases use the longer name.
    let named = ["CODEX_MANAGED_CONFIG_PATH", "CODEX_APP_SERVER_MANAGED_CONFIG_PATH"].map(|name| named(env, name));
    match named.into_iter().flatten().next() {
        Some(file) => vec![file],
        None => vec![MANAGED_FILE.into(), home.path().join("managed_config.toml")],
    }
}

/// The files that a configuration without a project depends on, for caching.
#[must_use]
pub fn config_files(home: &Home, env: &Env) -> Vec<PathBuf> {
    let mut files = vec![home.config_file(), system_file(env)];
    files.extend(managed_files(home, env));
    files
}

/// The layer of a file; a missing one is empty.
pub(crate) fn read_file(path: &Path) -> Result<Option<Tree>, ConfigError> {
    match read_text(path)? {
        Some(text) => Ok(Some(Tree::parse(path, &text)?)),
        None => Ok(None),
    }
}

/// The text of a file, if it exists.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, ConfigError> {
    let bytes = match codex_files::read(path, MOST_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(ConfigError::Read { path: path.to_owned(), source: error.into() }),
    };
    match decode(&bytes) {
        Ok(text) => Ok(Some(text.to_owned())),
        Err((line, column)) => {
            let path = path.to_owned();
            Err(LayerError::Syntax { path, line, column, message: "invalid UTF-8".into() }.into())
        }
    }
}

/// The name under `profile`, which must be one of `[profiles]` unless the profile is a file.
fn select_profile(tree: &Tree, home: &Home, has_file: bool) -> Result<Option<String>, ConfigError> {
    let root = Reader::new(tree, None);
    let Some(name) = root.str("profile")? else { return Ok(None) };
    let profiles = root.section("profiles")?;
    if profiles.node(&name).is_some() {
        profiles.section(&name)?;
        return Ok(Some(name));
    }
    if has_file {
        return Ok(Some(name));
    }
    let origin = root.node("profile").map(|node| node.origin.clone());
    Err(ConfigError::UnknownProfile {
        origin: origin.unwrap_or(Origin::Default),
        known: profiles.keys().map(str::to_owned).collect(),
        name,
        file: home.config_file(),
    })
}

#[cfg(test)]
mod tests;
