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
            ConfigReadResponse, ConfigValueWriteParams, ConfigWriteErrorCode, ConfigWriteResponse, LayerOfUser,
            MergeStrategy, OverriddenMetadata, WriteStatus,
        },
        hidden::Hidden,
    },
};
use codex_wire::reasoning::ReasoningEffort;
use serde_json::Value as Json;
use toml_edit::DocumentMut;

use crate::{
    Config, ConfigError, EditError, Env, Home, KeyError, KeyPath, LayerError, Origin, Overrides, Reader, SkillSelector,
    Tree,
    edit::apply,
    effective::{effective, saved},
    json::{table_json, value_json, version},
    layers,
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
    pub fn read(&self, include_layers: bool) -> Result<ConfigReadResponse, ConfigError> {
        let layers = self.layers()?;
        let mut tree = layers.file.clone();
        tree.merge(layers.above.clone());
        let origins: BTreeMap<_, _> = tree
            .leaves()
            .into_iter()
            .map(|(path, node)| (path.segments().join("."), layers.metadata(&node.origin)))
            .collect();
        let config = effective(&Reader::new(&tree, self.home.user_dir()))?;
        Ok(ConfigReadResponse { config, origins, layers: include_layers.then(|| layers.list()) })
    }

    /// What the file itself says.
    pub fn saved(&self) -> Result<UserSavedConfig, ConfigError> {
        let file = layers::read_file(self.home)?;
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
            None => Reader::new(&layers::read_file(self.home)?, None).str("profile").map_err(ConfigError::from)?,
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
            let file = layers::read_file(self.home)?;
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
        let old = layers::read_text(self.home)?.unwrap_or_default();
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

    /// Reads a text as the engine would after a restart without overrides, and as clients would see it.
    fn check(&self, path: &Path, text: &str) -> Result<Tree, ConfigError> {
        let tree = Tree::parse(path, text)?;
        effective(&Reader::new(&tree, self.home.user_dir()))?;
        Config::of_layers(self.home, self.env, tree.clone(), Tree::new())?;
        Ok(tree)
    }

    /// What is in force for a key in place of what was written.
    fn overridden(&self, file: &Tree, key: &KeyPath, written: &Json) -> Option<OverriddenMetadata> {
        let above = self.overrides.layer().ok()?;
        let overriding_layer = ConfigLayerMetadata { name: ConfigLayerSource::SessionFlags, version: version(&above) };
        let mut tree = file.clone();
        tree.merge(above);
        let json = |tree: &Tree| tree.get(key.segments()).map(|node| value_json(&node.value));
        let (own, effective) = (json(file), json(&tree));
        if own == effective {
            return None;
        }
        let verb = if written.is_null() { "removed" } else { "written" };
        let message = format!("{key} was {verb}, but the command line sets it for this run");
        let effective_value = Hidden(effective.unwrap_or_default());
        Some(OverriddenMetadata { message, overriding_layer, effective_value })
    }

    fn layers(&self) -> Result<Layers, ConfigError> {
        let (file, above) = (layers::read_file(self.home)?, self.overrides.layer()?);
        let versions = [version(&file), version(&above)];
        Ok(Layers { path: self.home.config_file(), file, above, versions })
    }
}

/// The layers that there are, with their versions.
struct Layers {
    path: PathBuf,
    file: Tree,
    above: Tree,
    /// Of the file and of what lies above it.
    versions: [String; 2],
}

impl Layers {
    fn of_file(&self) -> ConfigLayerMetadata {
        let name = ConfigLayerSource::User(LayerOfUser { file: self.path.clone(), profile: None });
        let [version, _] = self.versions.clone();
        ConfigLayerMetadata { name, version }
    }

    fn of_flags(&self) -> ConfigLayerMetadata {
        let [_, version] = self.versions.clone();
        ConfigLayerMetadata { name: ConfigLayerSource::SessionFlags, version }
    }

    /// The layer that an origin is in.
    fn metadata(&self, origin: &Origin) -> ConfigLayerMetadata {
        match origin {
            Origin::File { .. } | Origin::Default => self.of_file(),
            Origin::Override(_) | Origin::Flag(_) | Origin::Request => self.of_flags(),
        }
    }

    /// All layers that say anything, and the file in any case; the one that wins first.
    fn list(&self) -> Vec<ConfigLayer> {
        let layer = |metadata: ConfigLayerMetadata, tree: &Tree| ConfigLayer {
            name: metadata.name,
            version: metadata.version,
            config: Hidden(Json::Object(table_json(tree.root()))),
            disabled_reason: None,
        };
        let flags = (!self.above.root().is_empty()).then(|| layer(self.of_flags(), &self.above));
        flags.into_iter().chain([layer(self.of_file(), &self.file)]).collect()
    }
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
