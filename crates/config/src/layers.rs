//! The order of the layers: file, selected profile, `-c` overrides, request.

use std::fmt;

use serde_json::{Map, Value as Json};

use crate::{ConfigError, Home, KeyPath, LayerError, Node, Origin, Reader, Tree, Value, position::decode};

/// The largest `config.toml`.
const MOST_BYTES: u64 = 1024 * 1024;

/// What the command line or a request says over the file.
#[derive(Clone, Default)]
pub struct Overrides {
    /// The argument of `--profile`.
    pub profile: Option<String>,
    /// The arguments of `-c`, in order; a later one wins.
    pub values: Vec<String>,
    /// The `config` object of a client's request, with dotted names.
    pub request: Map<String, Json>,
}

/// All layers in one tree, and the name of the profile among them.
pub(crate) fn read(home: &Home, overrides: &Overrides) -> Result<(Tree, Option<String>), ConfigError> {
    merge(home, read_file(home)?, overrides.layer()?)
}

/// The layer of the file with the selected profile and the overrides over it, and the profile's name.
pub(crate) fn merge(home: &Home, mut tree: Tree, above: Tree) -> Result<(Tree, Option<String>), ConfigError> {
    // The overrides may select a profile and even define one, so they are looked at before it is laid below them.
    let mut all = tree.clone();
    all.merge(above.clone());
    let profile = select_profile(&all, home)?;
    if let Some(name) = &profile {
        let mut layer = all.subtree(&["profiles", name]).unwrap_or_default();
        // A profile that selects profiles would leave a tree that contradicts the choice made here.
        layer.remove("profile");
        layer.remove("profiles");
        tree.merge(layer);
    }
    tree.merge(above);
    Ok((tree, profile))
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
    /// Leaves the values out: any of them may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (values, request) = (self.values.len(), self.request.len());
        write!(f, "Overrides {{ profile: {:?}, values: {values}, request: {request} }}", self.profile)
    }
}

/// The layer of `config.toml`; a missing file says nothing.
pub(crate) fn read_file(home: &Home) -> Result<Tree, ConfigError> {
    match read_text(home)? {
        Some(text) => Ok(Tree::parse(&home.config_file(), &text)?),
        None => Ok(Tree::new()),
    }
}

/// The text of `config.toml`, if there is such a file.
pub(crate) fn read_text(home: &Home) -> Result<Option<String>, ConfigError> {
    let path = home.config_file();
    let bytes = match codex_files::read(&path, MOST_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(ConfigError::Read { path, source: error.into() }),
    };
    match decode(&bytes) {
        Ok(text) => Ok(Some(text.to_owned())),
        Err((line, column)) => Err(LayerError::Syntax { path, line, column, message: "invalid UTF-8".into() }.into()),
    }
}

/// The name under `profile`, which must be one of `[profiles]`.
fn select_profile(tree: &Tree, home: &Home) -> Result<Option<String>, ConfigError> {
    let root = Reader::new(tree, None);
    let Some(name) = root.str("profile")? else { return Ok(None) };
    let profiles = root.section("profiles")?;
    if profiles.node(&name).is_some() {
        profiles.section(&name)?;
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
