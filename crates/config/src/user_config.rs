//! The user's configuration as clients read and change it.
//!
//! Invariants: only the user's own `config.toml` is written, atomically, and only with a text that the engine can read.
//! Several edits are made together or not at all. Comments and order stay.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use codex_wire::reasoning::ReasoningEffort;
use serde_json::Value as Json;
use toml_edit::DocumentMut;

use crate::{
    ConfigError, ConfigView, EditError, Env, Home, KeyError, KeyPath, LayerError, LayerSource, LayerVersion, Merge,
    Overrides, Reader, SkillSelector, Tree, Value,
    edit::apply,
    json::{value_json, version},
    layers::{Layer, Layers, read_file, read_text},
    position::Lines,
    replace::replace_file,
    skills,
    typed::check_types,
};

/// One write at a time: each reads the file, changes the text and writes it back.
static WRITING: Mutex<()> = Mutex::new(());

/// The user's `config.toml` with the overrides of the command line.
#[derive(Debug, Clone, Copy)]
pub struct UserConfig<'a> {
    home: &'a Home,
    env: &'a Env,
    overrides: &'a Overrides,
}

/// A new value of a key.
#[derive(Clone, PartialEq)]
pub struct ConfigEdit {
    pub key: String,
    /// The new value; `null` removes the key.
    pub value: Json,
    /// The way to combine it with an existing value.
    pub merge: Merge,
}

impl ConfigEdit {
    /// Replaces any existing value.
    pub fn set(key: impl Into<String>, value: impl Into<Json>) -> Self {
        Self { key: key.into(), value: value.into(), merge: Merge::Replace }
    }
}

impl fmt::Debug for ConfigEdit {
    /// Omits the value: it may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigEdit").field("key", &self.key).field("merge", &self.merge).finish_non_exhaustive()
    }
}

/// A request to write.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WriteRequest {
    /// The edits, in order; all of them are made or none.
    pub edits: Vec<ConfigEdit>,
    /// The file; the user's own by default.
    pub file: Option<PathBuf>,
    /// The version that the edits are based on; any if unset.
    pub expected_version: Option<String>,
}

impl WriteRequest {
    /// Edits of the user's own file, whatever its version.
    pub fn of(edits: impl Into<Vec<ConfigEdit>>) -> Self {
        Self { edits: edits.into(), ..Self::default() }
    }
}

/// The result of a write.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    pub file: PathBuf,
    /// The new version of the file.
    pub version: String,
    /// The effective value, if it differs from a written one.
    pub overridden: Option<Overridden>,
}

/// The effective value in place of a written one.
#[derive(Debug, Clone, PartialEq)]
pub struct Overridden {
    /// A description of it.
    pub message: String,
    /// The layer that wins.
    pub layer: LayerVersion,
    /// The effective value, if there is one.
    pub value: Option<Value>,
}

/// The reason why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum ConfigWriteError {
    /// The client named another file.
    #[error("only {} can be written, not {}", .own.display(), .asked.display())]
    NotTheUsersFile { own: PathBuf, asked: PathBuf },
    /// The file has changed since the client read it.
    #[error("{} has changed since it was read: expected version {expected}, found {found}", .path.display())]
    VersionConflict { path: PathBuf, expected: String, found: String },
    #[error("bad key {key:?}")]
    Key { key: String, source: KeyError },
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The current or the new file is not a valid configuration.
    #[error("the configuration would be invalid")]
    Invalid(#[from] ConfigError),
    #[error("could not write {}", .path.display())]
    Write { path: PathBuf, source: std::io::Error },
}

/// The kind of a write error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteFault {
    /// The file is not the user's own.
    ReadOnlyFile,
    /// The file has changed since the client read it.
    VersionConflict,
    PathNotFound,
    Invalid,
}

impl ConfigWriteError {
    /// The kind of a request error; `None` for a failure of the system.
    #[must_use]
    pub fn fault(&self) -> Option<WriteFault> {
        match self {
            Self::NotTheUsersFile { .. } => Some(WriteFault::ReadOnlyFile),
            Self::VersionConflict { .. } => Some(WriteFault::VersionConflict),
            Self::Edit(EditError::NotATable { .. }) => Some(WriteFault::PathNotFound),
            Self::Invalid(ConfigError::Read { .. }) | Self::Write { .. } => None,
            Self::Key { .. } | Self::Edit(_) | Self::Invalid(_) => Some(WriteFault::Invalid),
        }
    }

    /// A hint, shown on its own line.
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
    /// The configuration of a home, with the server's overrides.
    #[must_use]
    pub fn new(home: &'a Home, env: &'a Env, overrides: &'a Overrides) -> Self {
        Self { home, env, overrides }
    }

    /// The effective configuration and its origins. With a folder, it includes the layers of its project.
    pub fn read(&self, cwd: Option<&Path>) -> Result<ConfigView, ConfigError> {
        let overrides = Overrides { cwd: cwd.map(Path::to_owned), ..self.overrides.clone() };
        Ok(ConfigView::of(&Layers::read(self.home, self.env, &overrides)?))
    }

    /// The contents of the file itself.
    pub fn file(&self) -> Result<Tree, ConfigError> {
        Ok(read_file(&self.home.config_file())?.unwrap_or_default())
    }

    /// Sets the model and its effort, in the selected profile if there is one; a missing value is removed.
    pub fn set_default_model(
        &self,
        model: Option<&str>,
        effort: Option<&ReasoningEffort>,
    ) -> Result<(), ConfigWriteError> {
        let profile = match &self.overrides.profile {
            Some(profile) => Some(profile.clone()),
            None => Reader::new(&self.file()?, None).str("profile").map_err(ConfigError::from)?,
        };
        let table = profile.map_or_else(KeyPath::default, |name| KeyPath::default().join("profiles").join(&name));
        let edit = |key: &str, value: Option<&str>| ConfigEdit::set(table.join(key).to_string(), value);
        let effort = effort.map(ReasoningEffort::as_str);
        self.write(&WriteRequest::of([edit("model", model), edit("model_reasoning_effort", effort)])).map(drop)
    }

    /// Enables or disables a skill. Another process may write at the same time, so the file is read again.
    pub fn switch_skill(&self, which: &SkillSelector, enabled: bool) -> Result<(), ConfigWriteError> {
        for is_last in [false, false, true] {
            let file = self.file()?;
            let entries = match file.get(&["skills", "config"]).map(|node| value_json(&node.value)) {
                Some(Json::Array(entries)) => entries,
                // Anything else is invalid, which is reported by the write.
                Some(_) | None => Vec::new(),
            };
            let edit = ConfigEdit::set("skills.config", skills::switch(entries, which, enabled));
            let request = WriteRequest { expected_version: Some(version(&file)), ..WriteRequest::of([edit]) };
            match self.write(&request) {
                Err(ConfigWriteError::VersionConflict { .. }) if !is_last => {}
                written => return written.map(drop),
            }
        }
        Ok(())
    }

    /// Makes all edits or none.
    pub fn write(&self, request: &WriteRequest) -> Result<Written, ConfigWriteError> {
        let path = self.home.config_file();
        if let Some(asked) = request.file.as_ref().filter(|asked| !is_same_file(asked, &path)) {
            return Err(ConfigWriteError::NotTheUsersFile { own: path, asked: asked.clone() });
        }
        let edits = request.edits.iter().map(parse_key).collect::<Result<Vec<_>, _>>()?;
        let writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        let old = read_text(&path)?.unwrap_or_default();
        let found = version(&Tree::parse(&path, &old).map_err(ConfigError::from)?);
        if let Some(expected) = request.expected_version.as_ref().filter(|expected| **expected != found) {
            return Err(ConfigWriteError::VersionConflict { path, expected: expected.clone(), found });
        }
        let mut document: DocumentMut = old.parse().map_err(|error| syntax_error(&path, &old, &error))?;
        for (key, edit) in &edits {
            apply(&mut document, key, &edit.value, edit.merge)?;
        }
        let new = document.to_string();
        let tree = self.check(&path, &new)?;
        if new != old {
            let failed = |source| ConfigWriteError::Write { path: path.clone(), source };
            self.home.ensure().map_err(|error| failed(std::io::Error::other(error)))?;
            replace_file(&path, &new).map_err(failed)?;
        }
        drop(writing);
        let overridden = edits.iter().find_map(|(key, edit)| self.overridden(&tree, key, &edit.value));
        Ok(Written { version: version(&tree), file: path, overridden })
    }

    /// Parses a text as the engine would after a restart without overrides, and as clients would see it.
    fn check(&self, path: &Path, text: &str) -> Result<Tree, ConfigError> {
        let tree = Tree::parse(path, text)?;
        check_types(&Reader::new(&tree, self.home.user_dir()))?;
        Layers::over(self.home, self.env, &Overrides::default(), tree.clone())?.config(self.home, self.env)?;
        Ok(tree)
    }

    /// The effective value of a key in place of the written one.
    fn overridden(&self, file: &Tree, key: &KeyPath, written: &Json) -> Option<Overridden> {
        let overrides = Overrides { cwd: None, strict: false, ..self.overrides.clone() };
        let layers = Layers::over(self.home, self.env, &overrides, file.clone()).ok()?;
        let says = |layer: &&Layer| layer.counted().get(key.segments()).is_some();
        let mut above = layers.list().iter().rev().take_while(|layer| !matches!(layer.source, LayerSource::User(_)));
        let overriding = above.find(says)?;
        let merged = layers.merged();
        let [own, effective] = [file, &merged].map(|tree| tree.get(key.segments()).map(|node| &node.value));
        if own.map(value_json) == effective.map(value_json) {
            return None;
        }
        let verb = if written.is_null() { "removed" } else { "written" };
        let message = match overriding.source.file() {
            None => format!("{key} was {verb}, but the command line sets it for this run"),
            Some(file) => format!("{key} was {verb}, but {} sets it", file.display()),
        };
        Some(Overridden { message, layer: LayerVersion::of(overriding), value: effective.cloned() })
    }
}

fn parse_key(edit: &ConfigEdit) -> Result<(KeyPath, &ConfigEdit), ConfigWriteError> {
    match KeyPath::parse(&edit.key) {
        Ok(key) => Ok((key, edit)),
        Err(source) => Err(ConfigWriteError::Key { key: edit.key.clone(), source }),
    }
}

/// The text is parsed as a layer before it is edited, so this is for errors that only the editor reports.
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
