//! The effective configuration with the origin of each value.

use std::collections::BTreeMap;

use crate::{LayerSource, Layers, Origin, Tree, json::version, layers::Layer};

/// The effective configuration and its origins.
#[derive(Debug, Clone)]
pub struct ConfigView {
    /// All layers in one. The selected profile is named but not merged, and types are not checked.
    pub tree: Tree,
    /// The layer of each value, by dotted key.
    pub origins: BTreeMap<String, LayerVersion>,
    /// All non-empty layers, and the user's file in any case; the winning one first.
    pub layers: Vec<ListedLayer>,
}

/// A layer and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerVersion {
    pub source: LayerSource,
    /// A hash of its contents.
    pub version: String,
}

/// One layer as written.
#[derive(Debug, Clone)]
pub struct ListedLayer {
    pub layer: LayerVersion,
    pub tree: Tree,
    /// The reason why it is not used, if it is not.
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

/// The layer of an origin; the lowest, if two are in one file.
fn find<'a>(layers: &'a [ListedLayer], origin: &Origin) -> Option<&'a LayerVersion> {
    let file = match origin {
        Origin::File { path, .. } => Some(path.to_path_buf()),
        Origin::Override(_) | Origin::Flag(_) | Origin::Request | Origin::Default => None,
    };
    layers.iter().rev().map(|listed| &listed.layer).find(|layer| layer.source.file() == file)
}
