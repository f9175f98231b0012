//! Packages that others can install: all have the version of the workspace, and need only packages that they can get.

use toml_edit::DocumentMut;

use crate::{no_complaints, root};

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect("the file can be read")
}

pub(crate) fn toml(path: &str) -> DocumentMut {
    read(path).parse().expect("the file is TOML")
}

/// The crates of the workspace by the names of their folders, with their manifests.
pub(crate) fn manifests() -> Vec<(String, DocumentMut)> {
    let folders = std::fs::read_dir(root().join("crates")).expect("the workspace has crates");
    let names = folders.map(|folder| folder.expect("an entry of a folder can be read").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names.map(|name| (name.clone(), toml(&format!("crates/{name}/Cargo.toml")))).collect()
}

/// Files of other languages that have to name the version, in these words.
const VERSIONS: &[(&str, &str)] = &[
    ("clients/typescript/package.json", "\"version\": \"VERSION\""),
    ("clients/typescript/src/version.js", "\"VERSION\""),
    ("clients/python/src/codex_embed/version.py", "\"VERSION\""),
    ("npm/package.json", "\"version\": \"VERSION\""),
];

#[test]
fn packages_have_one_version() {
    let workspace = toml("Cargo.toml");
    let version = workspace["workspace"]["package"]["version"].as_str().expect("there is a version");
    let dependencies = workspace["workspace"]["dependencies"].as_table().expect("there are dependencies").iter();
    let other = dependencies.filter(|(name, item)| {
        let named = item.get("version").and_then(toml_edit::Item::as_str);
        name.starts_with("codex-") && named.is_some_and(|named| named != version)
    });
    let mut complaints: Vec<String> =
        other.map(|(name, _)| format!("Cargo.toml: {name} has another version")).collect();
    for (path, words) in VERSIONS {
        if !read(path).contains(&words.replace("VERSION", version)) {
            complaints.push(format!("{path}: it does not name the version {version}"));
        }
    }
    no_complaints(complaints);
}

#[test]
fn published_crates_need_only_published_ones() {
    let workspace = toml("Cargo.toml");
    let mut complaints = Vec::new();
    let mut published = 0;
    for (name, manifest) in manifests() {
        if manifest["package"].get("publish").and_then(toml_edit::Item::as_bool) != Some(true) {
            continue;
        }
        published += 1;
        let needs = manifest["dependencies"].as_table().expect("there are dependencies").iter();
        for (need, _) in needs.filter(|(need, _)| need.starts_with("codex-")) {
            if workspace["workspace"]["dependencies"][need].get("version").is_none() {
                complaints.push(format!("{name}: {need} is not published"));
            }
        }
    }
    assert_eq!(published, 5, "the client and the crates that it needs");
    no_complaints(complaints);
}
