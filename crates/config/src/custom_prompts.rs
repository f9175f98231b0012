//! Custom prompts: Markdown files that the user calls by name.

use std::io;
use std::path::Path;

use codex_wire::prompt::CustomPrompt;

use crate::front_matter::FrontMatter;

/// The maximum size of a prompt, and of all of them together.
const MOST_BYTES: u64 = 1 << 20;
const MOST_BYTES_TOGETHER: u64 = 16 << 20;

/// The maximum number of folder entries that are listed.
const MOST_ENTRIES: usize = 10_000;

/// The prompts in a folder, by name. Files that are not readable text are skipped; a missing folder has none.
pub fn custom_prompts(folder: &Path) -> io::Result<Vec<CustomPrompt>> {
    let entries = match folder.read_dir() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut left = MOST_BYTES_TOGETHER;
    let mut prompts = Vec::new();
    for entry in entries.take(MOST_ENTRIES) {
        if let Some(prompt) = entry.ok().and_then(|entry| read(&entry.path(), left.min(MOST_BYTES))) {
            left -= prompt.content.len() as u64;
            prompts.push(prompt);
        }
    }
    prompts.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(prompts)
}

fn read(path: &Path, limit: u64) -> Option<CustomPrompt> {
    if path.extension()? != "md" {
        return None;
    }
    let text = codex_files::read_text(path, limit).ok()?;
    let matter = FrontMatter::split(&text);
    Some(CustomPrompt {
        name: path.file_stem()?.to_str()?.to_owned(),
        path: path.to_owned(),
        description: matter.field("description"),
        argument_hint: matter.field("argument_hint"),
        content: matter.content.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_files_are_prompts_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
        write("sew.md", b"Sew a button.\n");
        write("cook.md", b"---\ndescription: \"Makes a meal\"\nargument-hint: DISH\n---\nCook $1.\n");
        write("notes.txt", b"no");
        write("binary.md", &[0xff, 0xfe]);
        std::fs::create_dir(folder.path().join("folder.md")).unwrap();
        let prompts = custom_prompts(folder.path()).unwrap();
        let names: Vec<&str> = prompts.iter().map(|prompt| prompt.name.as_str()).collect();
        assert_eq!(names, ["cook", "sew"]);
        assert_eq!(prompts[0].description.as_deref(), Some("Makes a meal"));
        assert_eq!(prompts[0].argument_hint.as_deref(), Some("DISH"));
        assert_eq!(prompts[0].content, "Cook $1.\n");
        assert_eq!(prompts[1].content, "Sew a button.\n");
        assert_eq!(custom_prompts(&folder.path().join("missing")).unwrap(), []);
    }

    #[test]
    fn a_prompt_that_never_ends_is_passed_over() {
        use codex_files::testing::{Endless, soon};

        for kind in Endless::ALL {
            let folder = tempfile::tempdir().unwrap();
            kind.make(&folder.path().join("endless.md")).unwrap();
            std::fs::write(folder.path().join("sew.md"), "Sew.").unwrap();
            let root = folder.path().to_owned();
            let prompts = soon(move || custom_prompts(&root)).unwrap().unwrap();
            assert_eq!(prompts.len(), 1, "{kind:?}");
        }
    }

    #[test]
    fn prompts_are_bounded_together() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..20 {
            let path = folder.path().join(format!("{number}.md"));
            std::fs::write(path, "x".repeat(usize::try_from(MOST_BYTES).unwrap())).unwrap();
        }
        assert_eq!(custom_prompts(folder.path()).unwrap().len(), 16);
    }
}
