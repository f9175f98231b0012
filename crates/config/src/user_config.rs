//! The user's configuration as clients read and change it: `config/read`, `config/value/write`,
//! `config/batchWrite`, `getUserSavedConfig`, `setDefaultModel`.
//!
//! Invariants: only the user's own `config.toml` is written, as a whole, and only with a text that the engine can
//! read. Several edits are made together or not at all. Comments and order stay.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use codex_protocol::{
    v1::saved_config::{SetDefaultModelParams, UserSavedConfig},
    v2::{
        config::{
            ConfigBatchWriteParams, ConfigEdit, ConfigLayer, ConfigLayerMetadata, ConfigLayerSource,
            ConfigReadResponse, ConfigValueWriteParams, ConfigWriteErrorCode, ConfigWriteResponse, LayerFile,
            LayerOfProject, LayerOfUser, MergeStrategy, OverriddenMetadata, WriteStatus,
        },
        hidden::Hidden,
    },
};
use codex_wire::reasoning::ReasoningEffort;
use serde_json::Value as Json;
use toml_edit::DocumentMut;

use crate::{
    ConfigError, EditError, Env, Home, KeyError, KeyPath, LayerError, Origin, Overrides, Reader, SkillSelector, Tree,
    edit::apply,
    effective::{effective, saved},
    json::{table_json, value_json, version},
    layers::{Layer, Layers, Source, read_file, read_text},
    position::Lines,
    replace::replace_file,
    skills,
};

/// One write at a time: each reads the file, changes the text and puts it back.
static WRITING: Mutex<()> = Mutex::new(());

/// The user's `config.toml` below what the command line says.
#[derive(Debug, Clone, Copy)]
pub struct UserConfig<'a> {
    home: &'a Home,
    env: &'a Env,
    overrides: &'a Overrides,
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum ConfigWriteError {
    /// The client named a file that is not its own.
    #[error("only {} can be written, not {}", .own.display(), .asked.display())]
    NotTheUsersFile {
        /// The user's file.
        own: PathBuf,
        /// What was asked for.
        asked: PathBuf,
    },
    /// The file says something else than the client has seen.
    #[error("{} has changed since it was read: expected version {expected}, found {found}", .path.display())]
    VersionConflict {
        /// The file.
        path: PathBuf,
        /// What the client has seen.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A key cannot be read.
    #[error("bad key {key:?}")]
    Key {
        /// The key.
        key: String,
        /// What is wrong with it.
        source: KeyError,
    },
    /// An edit cannot be made.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The file, as it is or as it would be, is no configuration.
    #[error("the configuration would be invalid")]
    Invalid(#[from] ConfigError),
    /// The file could not be put in place.
    #[error("could not write {}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl ConfigWriteError {
    /// The code that clients tell errors apart by; nothing for a failure of the system.
    #[must_use]
    pub fn code(&self) -> Option<ConfigWriteErrorCode> {
        match self {
            Self::NotTheUsersFile { .. } => Some(ConfigWriteErrorCode::ConfigLayerReadonly),
            Self::VersionConflict { .. } => Some(ConfigWriteErrorCode::ConfigVersionConflict),
            Self::Edit(EditError::NotATable { .. }) => Some(ConfigWriteErrorCode::ConfigPathNotFound),
            Self::Invalid(ConfigError::Read { .. }) | Self::Write { .. } => None,
            Self::Key { .. } | Self::Edit(_) | Self::Invalid(_) => Some(ConfigWriteErrorCode::ConfigValidationError),
        }
    }

    /// A next step for the person, shown on a line of its own.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::VersionConflict { .. } => Some("read the configuration again and repeat the change".to_owned()),
            Self::Invalid(error) => error.hint(),
            Self::NotTheUsersFile { .. } | Self::Key { .. } | Self::Edit(_) | Self::Write { .. } => None,
        }
    }
}

impl<'a> UserConfig<'a> {
    /// The configuration of a home, below the overrides that the server was started with.
    #[must_use]
    pub fn new(home: &'a Home, env: &'a Env, overrides: &'a Overrides) -> Self {
        Self { home, env, overrides }
    }

    /// What is in force and where it came from; with its layers, the one that wins first, if they are wanted.
    ///
    /// The selected profile is named and not laid over the rest: clients do that, as `profiles` is in the answer.
    /// With a folder, those of its project are among them.
    pub fn read(&self, include_layers: bool, cwd: Option<&Path>) -> Result<ConfigReadResponse, ConfigError> {
        let overrides = Overrides { cwd: cwd.map(Path::to_owned), ..self.overrides.clone() };
        let layers = Layers::read(self.home, self.env, &overrides)?;
        let tree = layers.merged();
        let listed = Listed::of(&layers);
        let origins: BTreeMap<_, _> = tree
            .leaves()
            .into_iter()
            .filter_map(|(path, node)| Some((path.segments().join("."), listed.metadata(&node.origin)?)))
            .collect();
        let config = effective(&Reader::new(&tree, self.home.user_dir()))?;
        Ok(ConfigReadResponse { config, origins, layers: include_layers.then(|| listed.list()) })
    }

    /// What the file itself says.
    pub fn saved(&self) -> Result<UserSavedConfig, ConfigError> {
        let file = self.file()?;
        Ok(saved(&Reader::new(&file, self.home.user_dir()))?)
    }

    /// Writes one value.
    pub fn write_value(&self, params: ConfigValueWriteParams) -> Result<ConfigWriteResponse, ConfigWriteError> {
        let ConfigValueWriteParams { key_path, value, merge_strategy, file_path, expected_version } = params;
        let edits = vec![ConfigEdit { key_path, value, merge_strategy }];
        self.write(&edits, file_path.as_deref(), expected_version.as_deref())
    }

    /// Writes several values, all or none.
    pub fn write_batch(&self, params: &ConfigBatchWriteParams) -> Result<ConfigWriteResponse, ConfigWriteError> {
        self.write(&params.edits, params.file_path.as_deref(), params.expected_version.as_deref())
    }

    /// Sets the model and its effort, in the selected profile if there is one; what is absent is taken out.
    pub fn set_default_model(&self, params: &SetDefaultModelParams) -> Result<(), ConfigWriteError> {
        let profile = match &self.overrides.profile {
            Some(profile) => Some(profile.clone()),
            None => Reader::new(&self.file()?, None).str("profile").map_err(ConfigError::from)?,
        };
        let table = profile.map_or_else(KeyPath::default, |name| KeyPath::default().join("profiles").join(&name));
        let edit = |key: &str, value: Json| ConfigEdit {
            key_path: table.join(key).to_string(),
            value: Hidden(value),
            merge_strategy: MergeStrategy::Replace,
        };
        let effort = params.reasoning_effort.as_ref().map(ReasoningEffort::as_str);
        let edits = [edit("model", params.model.clone().into()), edit("model_reasoning_effort", effort.into())];
        self.write(&edits, None, None).map(|_| ())
    }

    /// Switches a skill on or off. Another process may write at the same time, so what it says is read again then.
    pub fn switch_skill(&self, which: &SkillSelector, enabled: bool) -> Result<(), ConfigWriteError> {
        for is_last in [false, false, true] {
            let file = self.file()?;
            let entries = match file.get(&["skills", "config"]).map(|node| value_json(&node.value)) {
                Some(Json::Array(entries)) => entries,
                // Whatever else is there is no configuration, and is told so when it would be written.
                Some(_) | None => Vec::new(),
            };
            let edit = ConfigEdit {
                key_path: "skills.config".to_owned(),
                value: Hidden(skills::switch(entries, which, enabled)),
                merge_strategy: MergeStrategy::Replace,
            };
            match self.write(&[edit], None, Some(&version(&file))) {
                Err(ConfigWriteError::VersionConflict { .. }) if !is_last => {}
                written => return written.map(|_| ()),
            }
        }
        Ok(())
    }

    fn write(
        &self,
        edits: &[ConfigEdit],
        file: Option<&Path>,
        expected: Option<&str>,
    ) -> Result<ConfigWriteResponse, ConfigWriteError> {
        let path = self.home.config_file();
        if let Some(asked) = file.filter(|asked| !is_same_file(asked, &path)) {
            return Err(ConfigWriteError::NotTheUsersFile { own: path, asked: asked.to_owned() });
        }
        let edits = edits.iter().map(parse_key).collect::<Result<Vec<_>, _>>()?;
        let writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        let old = read_text(&path)?.unwrap_or_default();
        let found = version(&Tree::parse(&path, &old).map_err(ConfigError::from)?);
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            return Err(ConfigWriteError::VersionConflict { path, expected: expected.to_owned(), found });
        }
        let mut document: DocumentMut = old.parse().map_err(|error| syntax_error(&path, &old, &error))?;
        for (key, edit) in &edits {
            apply(&mut document, key, &edit.value.0, edit.merge_strategy)?;
        }
        let new = document.to_string();
        let tree = self.check(&path, &new)?;
        if new != old {
            let failed = |source| ConfigWriteError::Write { path: path.clone(), source };
            self.home.ensure().map_err(|error| failed(std::io::Error::other(error)))?;
            replace_file(&path, &new).map_err(failed)?;
        }
        drop(writing);
        let overridden_metadata = edits.iter().find_map(|(key, edit)| self.overridden(&tree, key, &edit.value.0));
        let status = if overridden_metadata.is_some() { WriteStatus::OkOverridden } else { WriteStatus::Ok };
        Ok(ConfigWriteResponse { status, version: version(&tree), file_path: path, overridden_metadata })
    }

    /// What the user's own file says.
    fn file(&self) -> Result<Tree, ConfigError> {
        Ok(read_file(&self.home.config_file())?.unwrap_or_default())
    }

    /// Reads a text as the engine would after a restart without overrides, and as clients would see it.
    fn check(&self, path: &Path, text: &str) -> Result<Tree, ConfigError> {
        let tree = Tree::parse(path, text)?;
        effective(&Reader::new(&tree, self.home.user_dir()))?;
        Layers::over(self.home, self.env, &Overrides::default(), tree.clone())?.config(self.home, self.env)?;
        Ok(tree)
    }

    /// What is in force for a key in place of what was written.
    fn overridden(&self, file: &Tree, key: &KeyPath, written: &Json) -> Option<OverriddenMetadata> {
        let overrides = Overrides { cwd: None, strict: false, ..self.overrides.clone() };
        let layers = Layers::over(self.home, self.env, &overrides, file.clone()).ok()?;
        let json = |tree: &Tree| tree.get(key.segments()).map(|node| value_json(&node.value));
        let says = |layer: &&Layer| layer.counted().get(key.segments()).is_some();
        let mut above = layers.list().iter().rev().take_while(|layer| !matches!(layer.source, Source::User(_)));
        let overriding = above.find(says)?;
        let (own, effective) = (json(file), json(&layers.merged()));
        if own == effective {
            return None;
        }
        let verb = if written.is_null() { "removed" } else { "written" };
        let message = match overriding.source.file() {
            None => format!("{key} was {verb}, but the command line sets it for this run"),
            Some(file) => format!("{key} was {verb}, but {} sets it", file.display()),
        };
        let overriding_layer = metadata(overriding);
        Some(OverriddenMetadata { message, overriding_layer, effective_value: Hidden(effective.unwrap_or_default()) })
    }
}

/// Layers as clients see them.
struct Listed<'a>(Vec<(&'a Layer, ConfigLayerMetadata)>);

impl<'a> Listed<'a> {
    fn of(layers: &'a Layers) -> Self {
        Self(layers.list().iter().map(|layer| (layer, metadata(layer))).collect())
    }

    /// The layer that an origin is in.
    fn metadata(&self, origin: &Origin) -> Option<ConfigLayerMetadata> {
        let file = match origin {
            Origin::File { path, .. } => Some(path.to_path_buf()),
            Origin::Override(_) | Origin::Flag(_) | Origin::Request | Origin::Default => None,
        };
        let found = self.0.iter().find(|(layer, _)| layer.source.file() == file);
        found.map(|(_, metadata)| metadata.clone())
    }

    /// All layers that say anything, and the user's file in any case; the one that wins first.
    fn list(&self) -> Vec<ConfigLayer> {
        let layer = |(layer, metadata): &(&Layer, ConfigLayerMetadata)| ConfigLayer {
            name: metadata.name.clone(),
            version: metadata.version.clone(),
            config: Hidden(Json::Object(table_json(layer.tree.root()))),
            disabled_reason: layer.disabled.clone(),
        };
        self.0.iter().rev().map(layer).collect()
    }
}

fn metadata(layer: &Layer) -> ConfigLayerMetadata {
    let name = match layer.source.clone() {
        Source::System(file) => ConfigLayerSource::System(LayerFile { file }),
        Source::User(file) => ConfigLayerSource::User(LayerOfUser { file, profile: None }),
        Source::Profile(name, file) => ConfigLayerSource::User(LayerOfUser { file, profile: Some(name) }),
        Source::Project(folder) => ConfigLayerSource::Project(LayerOfProject { dot_codex_folder: folder }),
        Source::Flags => ConfigLayerSource::SessionFlags,
        Source::Managed(file) => ConfigLayerSource::LegacyManagedConfigTomlFromFile(LayerFile { file }),
    };
    ConfigLayerMetadata { name, version: version(&layer.tree) }
}

fn parse_key(edit: &ConfigEdit) -> Result<(KeyPath, &ConfigEdit), ConfigWriteError> {
    match KeyPath::parse(&edit.key_path) {
        Ok(key) => Ok((key, edit)),
        Err(source) => Err(ConfigWriteError::Key { key: edit.key_path.clone(), source }),
    }
}

/// The text is read as a layer before it is edited, so this is for what only the editor refuses.
fn syntax_error(path: &Path, text: &str, error: &toml_edit::TomlError) -> ConfigError {
    let (line, column) = Lines::new(text).line_column(error.span().map_or(0, |span| span.start));
    LayerError::Syntax { path: path.to_owned(), line, column, message: error.message().to_owned() }.into()
}

/// Whether two paths name one file, whatever links lead to its folder.
fn is_same_file(asked: &Path, own: &Path) -> bool {
    let resolve = |path: &Path| Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    asked == own || resolve(asked).is_some_and(|asked| resolve(own) == Some(asked))
}

#[cfg(test)]
mod tests;
