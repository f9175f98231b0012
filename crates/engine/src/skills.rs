//! The description of a thread's skills for the model.

use std::fmt::Write;
use std::path::Path;

use codex_config::MOST_SKILL_BYTES;
use codex_wire::skill::SkillMetadata;

/// The maximum number of bytes of a skill that are sent when the user names it.
const MOST_BYTES: usize = 64 * 1024;

/// The description of the skills for the model, if there are any.
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

/// The text of a skill that the user names, if the thread has it.
pub(crate) fn read(skills: &[SkillMetadata], name: &str, path: &Path) -> Option<String> {
    let known = skills.iter().find(|skill| skill.name == name && skill.path == path)?;
    let mut text = codex_files::read_text(&known.path, MOST_SKILL_BYTES).ok()?;
    let fits = (0..=MOST_BYTES.min(text.len())).rev().find(|at| text.is_char_boundary(*at))?;
    text.truncate(fits);
    Some(format!("<skill>\n<name>{name}</name>\n<path>{}</path>\n{text}\n</skill>", path.display()))
}
