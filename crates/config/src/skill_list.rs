//! The effective skills in a folder.
//!
//! Invariant: skills of a project are used only if the user trusts it; a checkout cannot bring its own instructions.

use std::path::Path;

use codex_wire::skill::{SkillMetadata, SkillScope, SkillsListEntry};

use crate::project_doc::repository_root;
use crate::{Config, Home, Skills, TrustLevel, find_skills};

/// The enabled skills for a folder. It reads files; run it off the async threads.
#[must_use]
pub fn list(config: &Config, home: &Home, cwd: &Path) -> SkillsListEntry {
    let Skills { mut skills, errors } = find(config, home, cwd);
    skills.retain(|skill| is_wanted(config, skill));
    SkillsListEntry { cwd: cwd.to_owned(), skills, errors }
}

/// The skills for a folder, including disabled ones. It reads files; run it off the async threads.
#[must_use]
pub fn find(config: &Config, home: &Home, cwd: &Path) -> Skills {
    let mut found = find_skills(&home.skills(), &SkillScope::User);
    let mut look_into = |folder: &Path, scope: SkillScope| {
        let Skills { skills, errors } = find_skills(folder, &scope);
        let is_new = |skill: &SkillMetadata| !found.skills.iter().any(|known| known.path == skill.path);
        let skills: Vec<SkillMetadata> = skills.into_iter().filter(is_new).collect();
        found.skills.extend(skills);
        found.errors.extend(errors);
    };
    for root in &config.skills.extra_roots {
        look_into(root, SkillScope::User);
    }
    let root = repository_root(cwd).unwrap_or_else(|| cwd.to_owned());
    if config.projects.get(&root) == Some(&TrustLevel::Trusted) {
        look_into(&root.join(".codex/skills"), SkillScope::Repo);
    }
    found
}

/// Whether a skill is enabled.
#[must_use]
pub fn is_wanted(config: &Config, skill: &SkillMetadata) -> bool {
    config.skills.is_enabled(&skill.name, &skill.path)
}

/// Whether the user has marked the project of a folder as untrusted. That differs from not having been asked yet.
#[must_use]
pub fn is_distrusted(config: &Config, cwd: &Path) -> bool {
    let root = repository_root(cwd).unwrap_or_else(|| cwd.to_owned());
    config.projects.get(&root) == Some(&TrustLevel::Untrusted)
}

/// The skills of an untrusted project. No model sees them, but a person may want to know what trusting the project
/// would bring. It reads files; run it off the async threads.
#[must_use]
pub fn untrusted(config: &Config, cwd: &Path) -> Skills {
    let root = repository_root(cwd).unwrap_or_else(|| cwd.to_owned());
    match config.projects.get(&root) {
        Some(TrustLevel::Trusted) => Skills::default(),
        Some(_) | None => find_skills(&root.join(".codex/skills"), &SkillScope::Repo),
    }
}
