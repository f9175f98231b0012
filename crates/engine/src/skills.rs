//! The skills a thread knows, and how the model hears of them.
//!
//! Invariant: skills of a project count only where the user trusts it; a checkout cannot bring instructions along.

use std::fmt::Write;
use std::path::Path;

use codex_config::{Config, Home, TrustLevel};
use codex_config::{Skills, find_skills};
use codex_wire::skill::{SkillMetadata, SkillScope, SkillsListEntry};

use codex_config::project_doc::repository_root;

/// How many bytes of a skill the model is given when the user names it.
const MOST_BYTES: usize = 64 * 1024;

/// Finds the skills for a folder that the user wants. It reads files; run it off the async threads.
#[must_use]
pub fn list(config: &Config, home: &Home, cwd: &Path) -> SkillsListEntry {
    let Skills { mut skills, errors } = find(config, home, cwd);
    skills.retain(|skill| is_wanted(config, skill));
    SkillsListEntry { cwd: cwd.to_owned(), skills, errors }
}

/// Finds the skills for a folder, those too that the user has switched off. It reads files; run it off the async threads.
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

/// Whether the user wants a skill.
#[must_use]
pub fn is_wanted(config: &Config, skill: &SkillMetadata) -> bool {
    config.skills.is_enabled(&skill.name, &skill.path)
}

/// Whether the user has said that the project of a folder is not trusted. Nobody may have been asked yet, which is not
/// the same.
pub(crate) fn is_distrusted(config: &Config, cwd: &Path) -> bool {
    let root = repository_root(cwd).unwrap_or_else(|| cwd.to_owned());
    config.projects.get(&root) == Some(&TrustLevel::Untrusted)
}

/// Finds the skills of a project that the user does not trust. No model hears of them, but a person may want to know
/// what trusting the project would bring. It reads files; run it off the async threads.
#[must_use]
pub fn untrusted(config: &Config, cwd: &Path) -> Skills {
    let root = repository_root(cwd).unwrap_or_else(|| cwd.to_owned());
    match config.projects.get(&root) {
        Some(TrustLevel::Trusted) => Skills::default(),
        Some(_) | None => find_skills(&root.join(".codex/skills"), &SkillScope::Repo),
    }
}

/// What the model is told of the skills; none when there are none.
pub(crate) fn describe(skills: &[SkillMetadata]) -> Option<String> {
    if skills.is_empty() {
        return None;
    }
    let mut text =
        "## Skills\nA skill is a file of instructions for one kind of task. When a task fits a description, or \
                    the person names a skill, read its file first and follow it.\n"
            .to_owned();
    for SkillMetadata { name, description, path, .. } in skills {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "- {name}: {description} (file: {})", path.display());
    }
    Some(text)
}

/// The text of a skill that the user names, if it is one that the thread knows.
pub(crate) fn read(skills: &[SkillMetadata], name: &str, path: &Path) -> Option<String> {
    let known = skills.iter().find(|skill| skill.name == name && skill.path == path)?;
    let mut text = codex_files::read_text(&known.path, codex_config::MOST_SKILL_BYTES).ok()?;
    let fits = (0..=MOST_BYTES.min(text.len())).rev().find(|at| text.is_char_boundary(*at))?;
    text.truncate(fits);
    Some(format!("<skill>\n<name>{name}</name>\n<path>{}</path>\n{text}\n</skill>", path.display()))
}
