//! Conversion between the requests and answers of `config/*` and the types of the configuration.

use std::path::Path;

use codex_config::{
    ConfigEdit, ConfigView, LayerSource, LayerVersion, ListedLayer, Merge, Overridden, Reader, ValueError, WriteFault,
    WriteRequest, Written, table_json, value_json,
};
use codex_protocol::v2::config::{
    self as wire, ConfigBatchWriteParams, ConfigLayer, ConfigLayerMetadata, ConfigLayerSource, ConfigReadResponse,
    ConfigValueWriteParams, ConfigWriteErrorCode, ConfigWriteResponse, LayerFile, LayerOfProject, LayerOfUser,
    MergeStrategy, OverriddenMetadata, WriteStatus,
};
use codex_protocol::v2::hidden::Hidden;
use serde_json::Value as Json;

use super::effective::effective;

/// The answer of `config/read`. Clients apply the selected profile themselves.
pub fn read(view: ConfigView, user_dir: Option<&Path>, with_layers: bool) -> Result<ConfigReadResponse, ValueError> {
    let ConfigView { tree, origins, layers } = view;
    Ok(ConfigReadResponse {
        config: effective(&Reader::new(&tree, user_dir))?,
        origins: origins.into_iter().map(|(key, layer)| (key, metadata(layer))).collect(),
        layers: with_layers.then(|| layers.into_iter().map(layer).collect()),
    })
}

fn layer(listed: ListedLayer) -> ConfigLayer {
    let ConfigLayerMetadata { name, version } = metadata(listed.layer);
    let config = Hidden(Json::Object(table_json(listed.tree.root())));
    ConfigLayer { name, version, config, disabled_reason: listed.disabled }
}

fn metadata(layer: LayerVersion) -> ConfigLayerMetadata {
    let name = match layer.source {
        LayerSource::System(file) => ConfigLayerSource::System(LayerFile { file }),
        LayerSource::User(file) => ConfigLayerSource::User(LayerOfUser { file, profile: None }),
        LayerSource::Profile(name, file) => ConfigLayerSource::User(LayerOfUser { file, profile: Some(name) }),
        LayerSource::Project(folder) => ConfigLayerSource::Project(LayerOfProject { dot_codex_folder: folder }),
        LayerSource::Flags => ConfigLayerSource::SessionFlags,
        LayerSource::Managed(file) => ConfigLayerSource::LegacyManagedConfigTomlFromFile(LayerFile { file }),
    };
    ConfigLayerMetadata { name, version: layer.version }
}

/// The edit of `config/value/write`.
#[must_use]
pub fn one_edit(params: ConfigValueWriteParams) -> WriteRequest {
    let ConfigValueWriteParams { key_path, value, merge_strategy, file_path, expected_version } = params;
    let edits = vec![edit(wire::ConfigEdit { key_path, value, merge_strategy })];
    WriteRequest { edits, file: file_path, expected_version }
}

/// The edits of `config/batchWrite`.
pub fn several_edits(params: ConfigBatchWriteParams) -> WriteRequest {
    let ConfigBatchWriteParams { edits, file_path, expected_version, reload_user_config: _ } = params;
    WriteRequest { edits: edits.into_iter().map(edit).collect(), file: file_path, expected_version }
}

fn edit(edit: wire::ConfigEdit) -> ConfigEdit {
    let merge = match edit.merge_strategy {
        MergeStrategy::Replace => Merge::Replace,
        MergeStrategy::Upsert => Merge::Upsert,
    };
    ConfigEdit { key: edit.key_path, value: edit.value.0, merge }
}

/// The answer to a write.
#[must_use]
pub fn written(written: Written) -> ConfigWriteResponse {
    let Written { file, version, overridden } = written;
    let status = if overridden.is_some() { WriteStatus::OkOverridden } else { WriteStatus::Ok };
    let metadata_of = |Overridden { message, layer, value }| OverriddenMetadata {
        message,
        overriding_layer: metadata(layer),
        effective_value: Hidden(value.as_ref().map(value_json).unwrap_or_default()),
    };
    ConfigWriteResponse { status, version, file_path: file, overridden_metadata: overridden.map(metadata_of) }
}

/// The error code that clients check.
#[must_use]
pub fn code(fault: WriteFault) -> ConfigWriteErrorCode {
    match fault {
        WriteFault::ReadOnlyFile => ConfigWriteErrorCode::ConfigLayerReadonly,
        WriteFault::VersionConflict => ConfigWriteErrorCode::ConfigVersionConflict,
        WriteFault::PathNotFound => ConfigWriteErrorCode::ConfigPathNotFound,
        WriteFault::Invalid => ConfigWriteErrorCode::ConfigValidationError,
    }
}
