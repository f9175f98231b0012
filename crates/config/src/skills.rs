//! Enabled and disabled skills: `[[skills.config]]`, one entry for each changed skill.

use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use crate::json::value_json;
use crate::{Reader, ValueError};

/// The maximum number of entries.
const MOST_SWITCHES: usize = 500;

/// The user's settings for skills.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillsConfig {
    /// The settings of single skills. If two are about the same skill, the later counts.
    switches: Vec<SkillSwitch>,
    /// Additional folders of skills. No file sets these; clients do.
    pub extra_roots: Vec<PathBuf>,
}

/// A skill, on or off.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SkillSwitch {
    which: SkillSelector,
    enabled: bool,
}

/// Identifies a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkillSelector {
    /// Its name, wherever it is.
    Name(String),
    /// Its `SKILL.md`, or the folder of that.
    Path(PathBuf),
}

impl SkillSelector {
    fn read(entry: &Json) -> Option<Self> {
        let text = |key: &str| entry.get(key).and_then(Json::as_str);
        match (text("name"), text("path")) {
            (Some(name), None) => Some(Self::Name(name.to_owned())),
            (None, Some(path)) => Some(Self::Path(PathBuf::from(path))),
            (Some(_), Some(_)) | (None, None) => None,
        }
    }

    fn is(&self, name: &str, path: &Path) -> bool {
        match self {
            Self::Name(selected) => selected == name,
            Self::Path(selected) => {
                let resolve = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
                let (selected, path) = (resolve(selected), resolve(path));
                selected == path || path.parent() == Some(&selected)
            }
        }
    }

    fn json(&self, enabled: bool) -> Json {
        match self {
            Self::Name(name) => json!({"name": name, "enabled": enabled}),
            Self::Path(path) => json!({"path": path, "enabled": enabled}),
        }
    }
}

impl SkillsConfig {
    pub(crate) fn read(root: &Reader<'_>) -> Result<Self, ValueError> {
        let section = root.section("skills")?;
        let Some(node) = section.node("config") else { return Ok(Self::default()) };
        let wrong = |problem: &str| section.error("config", node, problem.to_owned());
        let Json::Array(entries) = value_json(&node.value) else { return Err(wrong("expected an array of tables")) };
        if entries.len() > MOST_SWITCHES {
            return Err(wrong("has more than 500 entries"));
        }
        let switch = |entry: &Json| {
            let which = SkillSelector::read(entry);
            let which = which.ok_or_else(|| wrong("each entry needs a name or a path, and not both"))?;
            let enabled = entry.get("enabled").and_then(Json::as_bool);
            Ok(SkillSwitch {
                which,
                enabled: enabled.ok_or_else(|| wrong("each entry needs enabled = true or false"))?,
            })
        };
        let switches = entries.iter().map(switch).collect::<Result<_, _>>()?;
        Ok(Self { switches, extra_roots: Vec::new() })
    }

    /// Whether a skill is enabled, which is the default.
    #[must_use]
    pub fn is_enabled(&self, name: &str, path: &Path) -> bool {
        let said = self.switches.iter().rev().find(|switch| switch.which.is(name, path));
        said.is_none_or(|switch| switch.enabled)
    }
}

/// Switches a skill in a list of entries. An earlier entry with the same selector is removed; the other entries stay.
/// Returns `None` for an empty list.
pub(crate) fn switch(mut entries: Vec<Json>, which: &SkillSelector, enabled: bool) -> Json {
    entries.retain(|entry| SkillSelector::read(entry).as_ref() != Some(which));
    // A skill is on by default, unless another entry covers it too.
    let is_off_elsewhere = entries.iter().any(|entry| entry["enabled"] == false);
    if !enabled || is_off_elsewhere {
        entries.push(which.json(enabled));
    }
    if entries.is_empty() { Json::Null } else { Json::Array(entries) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Tree;

    fn read(text: &str) -> Result<SkillsConfig, String> {
        let tree = Tree::parse(Path::new("config.toml"), text).unwrap();
        SkillsConfig::read(&Reader::new(&tree, None)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_last_entry_of_a_skill_counts() {
        let skills = read(
            "[[skills.config]]\nname = 'sew'\nenabled = false\n[[skills.config]]\npath = '/s/cook'\nenabled = false\n\
             [[skills.config]]\npath = '/s/sew/SKILL.md'\nenabled = true\nother = 1\n",
        )
        .unwrap();
        assert!(skills.is_enabled("sew", Path::new("/s/sew/SKILL.md")));
        assert!(!skills.is_enabled("sew", Path::new("/t/sew/SKILL.md")));
        assert!(!skills.is_enabled("cook", Path::new("/s/cook/SKILL.md")));
        assert!(skills.is_enabled("bake", Path::new("/s/bake/SKILL.md")));
        assert_eq!(read("").unwrap(), SkillsConfig::default());
    }

    #[test]
    fn unreadable_parts_are_reported_with_their_place() {
        for (text, problem) in [
            ("[skills]\nconfig = 1", "config.toml:2: skills.config: expected an array of tables"),
            ("[skills]\nconfig = [1]", "config.toml:2: skills.config: each entry needs a name or a path, and not both"),
            (
                "[skills]\nconfig = [{ name = 'a' }]",
                "config.toml:2: skills.config: each entry needs enabled = true or false",
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), problem);
        }
    }

    #[test]
    fn nothing_is_left_of_a_skill_that_is_on_again() {
        let (name, path) = (SkillSelector::Name("sew".to_owned()), SkillSelector::Path(PathBuf::from("/s/sew")));
        let Json::Array(off) = switch(Vec::new(), &name, false) else { panic!("an entry is written") };
        assert_eq!(off, [json!({"name": "sew", "enabled": false})]);
        assert_eq!(switch(off.clone(), &name, true), Json::Null);
        let written = json!([{"name": "sew", "enabled": false}, {"path": "/s/sew", "enabled": true}]);
        assert_eq!(switch(off, &path, true), written);
        let others = vec![json!({"name": "cook", "enabled": true, "other": 1})];
        let both = json!([{"name": "cook", "enabled": true, "other": 1}, {"name": "sew", "enabled": false}]);
        assert_eq!(switch(others, &name, false), both);
    }
}
