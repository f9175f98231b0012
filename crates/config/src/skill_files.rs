//! Skills: folders with a `SKILL.md` that tells a model how to do something.

use std::path::Path;

use codex_wire::skill::{SkillErrorInfo, SkillMetadata, SkillScope};

use crate::front_matter::FrontMatter;

/// The maximum size of `SKILL.md`.
pub const MOST_SKILL_BYTES: u64 = 1024 * 1024;

/// The maximum depth of a skill below the skills folder.
const DEPTH: usize = 3;

/// The maximum number of folders that are visited.
const MOST_FOLDERS: usize = 2000;

/// The skills in a folder, and the errors of those that cannot be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Skills {
    /// The skills, by name.
    pub skills: Vec<SkillMetadata>,
    pub errors: Vec<SkillErrorInfo>,
}

/// Searches for skills. A missing folder has none; links are not followed, so a folder cannot lead out of itself.
#[must_use]
pub fn find_skills(folder: &Path, scope: &SkillScope) -> Skills {
    let mut found = Skills::default();
    let mut folders = vec![(folder.to_owned(), 0)];
    let mut looked_at = 0;
    while let Some((folder, depth)) = folders.pop() {
        looked_at += 1;
        let file = folder.join("SKILL.md");
        if file.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
            match read(&file, scope) {
                Ok(skill) => found.skills.push(skill),
                Err(message) => found.errors.push(SkillErrorInfo { path: file, message }),
            }
        } else if depth < DEPTH && looked_at < MOST_FOLDERS {
            let entries = folder.read_dir().into_iter().flatten().flatten();
            let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            folders.extend(below.map(|entry| (entry.path(), depth + 1)));
        }
    }
    found.skills.sort_by(|a, b| a.name.cmp(&b.name));
    found.errors.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn read(file: &Path, scope: &SkillScope) -> Result<SkillMetadata, String> {
    let text = codex_files::read_text(file, MOST_SKILL_BYTES).map_err(|error| error.to_string())?;
    let matter = FrontMatter::split(&text);
    let field = |name: &str| matter.field(name).ok_or_else(|| format!("`{name}` is missing between the `---` lines"));
    Ok(SkillMetadata {
        name: field("name")?,
        description: field("description")?,
        short_description: matter.field("short_description"),
        path: file.to_owned(),
        scope: scope.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_with_a_description_are_skills_and_others_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("sew/SKILL.md", "---\nname: sew\ndescription: Sews a button\n---\nTake thread.\n");
        write("kitchen/cook/SKILL.md", "---\nname: \"cook\"\ndescription: Cooks\n---\n");
        write("broken/SKILL.md", "no front matter\n");
        write("notes.txt", "");
        std::os::unix::fs::symlink("/", folder.path().join("out")).unwrap();
        let found = find_skills(folder.path(), &SkillScope::User);
        let names: Vec<&str> = found.skills.iter().map(|skill| skill.name.as_str()).collect();
        assert_eq!(names, ["cook", "sew"]);
        assert_eq!(found.errors.len(), 1);
        assert_eq!(found.errors[0].message, "`name` is missing between the `---` lines");
        assert_eq!(find_skills(&folder.path().join("missing"), &SkillScope::User), Skills::default());
    }

    #[test]
    fn an_endless_description_is_not_a_skill() {
        use codex_files::testing::{Endless, soon};

        for kind in Endless::ALL {
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir(folder.path().join("sew")).unwrap();
            kind.make(&folder.path().join("sew/SKILL.md")).unwrap();
            let root = folder.path().to_owned();
            let found = soon(move || find_skills(&root, &SkillScope::User)).unwrap();
            assert!(found.skills.is_empty(), "{kind:?}");
            // Links and pipes do not count as skills at all.
            let told: Vec<&str> = found.errors.iter().map(|error| error.message.as_str()).collect();
            let expected = (kind == Endless::Sparse).then(|| kind.complaint(Some(MOST_SKILL_BYTES)));
            assert_eq!(told, Vec::from_iter(expected));
        }
    }
}
