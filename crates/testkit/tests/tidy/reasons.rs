//! A crate exists for a reason, and the description in its manifest ends with it.
//!
//! There are four: others install it (`API`), it keeps a large dependency away from the rest (`dependency NAME`), it
//! holds what differs between systems (`platform`), or two crates need it (`second consumer NAME`).

use toml_edit::{DocumentMut, Item, TableLike};

use crate::packages::manifests;
use crate::{known, no_complaints};

/// The manifest of a crate.
struct Manifest {
    name: String,
    text: DocumentMut,
}

impl Manifest {
    fn package(&self, key: &str) -> Option<&Item> {
        self.text.get("package")?.get(key)
    }

    /// The dependencies of a table, those of the workspace without their prefix.
    fn names(table: Option<&Item>) -> Vec<&str> {
        let table = table.and_then(Item::as_table_like);
        let names = table.into_iter().flat_map(TableLike::iter);
        names.map(|(name, _)| name.strip_prefix("codex-").unwrap_or(name)).collect()
    }

    /// Whether it needs another crate, be it for its tests.
    fn uses(&self, name: &str) -> bool {
        let tables = ["dependencies", "dev-dependencies"];
        tables.iter().any(|table| Self::names(self.text.get(table)).contains(&name))
    }

    /// The reason at the end of its description.
    fn reason(&self) -> Option<&str> {
        let (_, reason) = self.package("description")?.as_str()?.rsplit_once(" (reason: ")?;
        reason.strip_suffix(')')
    }

    fn is_installed(&self) -> bool {
        let is_published = self.package("publish").and_then(Item::as_bool) == Some(true);
        is_published || self.text.contains_key("bin")
    }
}

/// Whether the reason of a crate is true.
fn is_true(manifest: &Manifest, all: &[Manifest]) -> bool {
    let Some(reason) = manifest.reason() else { return false };
    let (kind, name) = reason.rsplit_once(' ').unwrap_or((reason, ""));
    match kind {
        "API" => manifest.is_installed(),
        "platform" => manifest.text.contains_key("target"),
        "dependency" => Manifest::names(manifest.text.get("dependencies")).contains(&name),
        "second consumer" => {
            let mut consumers = all.iter().filter(|other| other.uses(&manifest.name));
            consumers.clone().count() > 1 && consumers.any(|other| other.name == name)
        }
        _ => false,
    }
}

/// The crates without a reason, or with one that is not true.
fn without(all: &[Manifest]) -> Vec<String> {
    all.iter().filter(|manifest| !is_true(manifest, all)).map(|manifest| manifest.name.clone()).collect()
}

#[test]
fn each_crate_says_why_it_exists() {
    let all = manifests().into_iter().map(|(name, text)| Manifest { name, text });
    let all: Vec<Manifest> = all.collect();
    let mute = all.iter().filter(|manifest| manifest.package("description").is_none());
    let mute = mute.map(|manifest| format!("{}: its manifest has no description", manifest.name));
    no_complaints(mute.chain(known::complaints("reason", &known::counted(without(&all)))).collect());
}

#[test]
fn a_crate_without_a_true_reason_is_noticed() {
    let manifest = |name: &str, reason: &str, rest: &str| {
        let text = format!("[package]\ndescription = \"Words{reason}\"\n{rest}");
        Manifest { name: name.to_owned(), text: text.parse().expect("it is TOML") }
    };
    let all = [
        manifest("api", " (reason: API)", "publish = true\n"),
        manifest("private", " (reason: API)", ""),
        manifest("tree", " (reason: dependency syn)", "[dependencies]\nsyn.workspace = true\n"),
        manifest("shared", " (reason: second consumer tree)", "[dependencies]\n"),
        manifest("one", "", "[dependencies]\ncodex-shared.workspace = true\ncodex-lonely.workspace = true\n"),
        manifest("lonely", " (reason: second consumer one)", "[dependencies]\ncodex-api.workspace = true\n"),
        manifest("system", " (reason: platform)", "[dependencies]\n[target.'cfg(unix)'.dependencies]\n"),
    ];
    assert_eq!(without(&all), ["private", "shared", "one", "lonely"]);
}
