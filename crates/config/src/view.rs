//! The configuration in force with where each value came from.

use std::collections::BTreeMap;

use crate::{LayerSource, Layers, Origin, Tree, json::version, layers::Layer};

/// What is in force and where it came from.
#[derive(Debug, Clone)]
pub struct ConfigView {
    /// All layers in one. The selected profile is named and not laid over the rest, and types are not checked.
    pub tree: Tree,
    /// The layer that each value came from, by dotted key.
    pub origins: BTreeMap<String, LayerVersion>,
    /// All layers that say anything, and the user's file in any case; the one that wins first.
    pub layers: Vec<ListedLayer>,
}

/// A layer, and which version of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerVersion {
    /// Where the layer comes from.
    pub source: LayerSource,
    /// A hash of what it says.
    pub version: String,
}

/// One layer as it was written.
#[derive(Debug, Clone)]
pub struct ListedLayer {
    /// Which one it is.
    pub layer: LayerVersion,
    /// What it says.
    pub tree: Tree,
    /// Why it does not count, if it does not.
    pub disabled: Option<String>,
}

impl LayerVersion {
    pub(crate) fn of(layer: &Layer) -> Self {
        Self { source: layer.source.clone(), version: version(&layer.tree) }
    }
}

impl ConfigView {
    pub(crate) fn of(layers: &Layers) -> Self {
        let tree = layers.merged();
        let listed = |layer: &Layer| ListedLayer {
            layer: LayerVersion::of(layer),
            tree: layer.tree.clone(),
            disabled: layer.disabled.clone(),
        };
        let layers: Vec<ListedLayer> = layers.list().iter().rev().map(listed).collect();
        let leaves = tree.leaves().into_iter();
        let origins = leaves
            .filter_map(|(path, node)| Some((path.segments().join("."), find(&layers, &node.origin)?.clone())))
            .collect();
        Self { tree, origins, layers }
    }
}

/// The layer that an origin is in; the lowest, should two be in one file.
fn find<'a>(layers: &'a [ListedLayer], origin: &Origin) -> Option<&'a LayerVersion> {
    let file = match origin {
        Origin::File { path, .. } => Some(path.to_path_buf()),
        Origin::Override(_) | Origin::Flag(_) | Origin::Request | Origin::Default => None,
    };
    layers.iter().rev().map(|listed| &listed.layer).find(|layer| layer.source.file() == file)
}
