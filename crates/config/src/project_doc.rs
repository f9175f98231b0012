//! Instruction files: `AGENTS.md` in the home folder, and from the repository's root down to the working directory.
//!
//! Invariant: a file of the repository is read only if it is inside the repository once links are resolved, so a
//! hostile checkout cannot send other files of the machine to a model.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The places to search, and the size limit.
#[derive(Debug, Clone)]
pub struct ProjectDocs<'a> {
    /// The home folder of the program.
    pub home: &'a Path,
    /// The thread's working directory.
    pub cwd: &'a Path,
    /// Whether the user has marked the project as untrusted, so that nothing in it is used.
    pub is_distrusted: bool,
    /// The maximum total size of all project files; 0 reads none.
    pub max_bytes: usize,
    /// Names to try in a folder without `AGENTS.md`.
    pub fallback_names: &'a [String],
}

/// The instructions found.
#[derive(Debug, Default, PartialEq)]
pub struct Instructions {
    /// The text of all files; `None` if there are none.
    pub text: Option<String>,
    /// The files that it comes from, in order.
    pub sources: Vec<PathBuf>,
    /// Warnings about files that could not be used.
    pub warnings: Vec<String>,
}

const OVERRIDE: &str = "AGENTS.override.md";
const STANDARD: &str = "AGENTS.md";
const SEPARATOR: &str = "\n\n--- project-doc ---\n\n";

impl ProjectDocs<'_> {
    /// Reads the files. It blocks; run it off the async threads.
    #[must_use]
    pub fn read(&self) -> Instructions {
        let mut found = Instructions::default();
        let home = self.first_of(self.home, self.home, &[OVERRIDE, STANDARD], self.max_bytes, &mut found);
        let project = if self.is_distrusted { None } else { self.read_project(&mut found) };
        let parts: Vec<String> = [home, project].into_iter().flatten().collect();
        found.text = (!parts.is_empty()).then(|| parts.join(SEPARATOR));
        found
    }

    fn read_project(&self, found: &mut Instructions) -> Option<String> {
        let root = repository_root(self.cwd).unwrap_or_else(|| self.cwd.to_owned());
        let mut names = vec![OVERRIDE, STANDARD];
        names.extend(self.fallback_names.iter().map(String::as_str));
        let mut folders: Vec<&Path> = self.cwd.ancestors().take_while(|folder| folder.starts_with(&root)).collect();
        folders.reverse();
        let mut left = self.max_bytes;
        let mut texts = Vec::new();
        for folder in folders {
            if let Some(text) = self.first_of(folder, &root, &names, left, found) {
                left = left.saturating_sub(text.len());
                texts.push(text);
            }
        }
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    /// The text of the first of several names that exists in a folder.
    fn first_of(
        &self,
        folder: &Path,
        root: &Path,
        names: &[&str],
        left: usize,
        found: &mut Instructions,
    ) -> Option<String> {
        let path = names.iter().map(|name| folder.join(name)).find(|path| path.symlink_metadata().is_ok())?;
        if self.max_bytes == 0 {
            return None;
        }
        match read_inside(&path, root, left) {
            Ok((text, whole)) => {
                if !whole {
                    found.warnings.push(format!(
                        "{} was cut: instructions may have {} bytes",
                        path.display(),
                        self.max_bytes
                    ));
                }
                if text.trim().is_empty() {
                    return None;
                }
                found.sources.push(path);
                Some(text)
            }
            Err(why) => {
                found.warnings.push(format!("{} was not read: {why}", path.display()));
                None
            }
        }
    }
}

/// The message that passes the instructions to the model.
#[must_use]
pub fn instructions_message(cwd: &Path, text: &str) -> String {
    let text = text.replace("</INSTRUCTIONS>", "<\\/INSTRUCTIONS>");
    format!("# AGENTS.md instructions for {}\n\n<INSTRUCTIONS>\n{text}\n</INSTRUCTIONS>", cwd.display())
}

/// The nearest parent folder that contains a `.git`: the project of a folder.
#[must_use]
pub fn repository_root(cwd: &Path) -> Option<PathBuf> {
    cwd.ancestors().find(|folder| codex_files::is_checkout(folder)).map(Path::to_owned)
}

/// Reads up to `limit` bytes of a text below `root`, and returns whether that was all of it.
fn read_inside(path: &Path, root: &Path, limit: usize) -> Result<(String, bool), String> {
    let real = path.canonicalize().map_err(|error| error.to_string())?;
    let root = root.canonicalize().map_err(|error| error.to_string())?;
    if !real.starts_with(&root) {
        return Err(format!("it is a link that leads out of {}", root.display()));
    }
    let (bytes, whole) = codex_files::read_start(&real, limit as u64).map_err(|error| match error.kind() {
        ErrorKind::IsADirectory => "it is not a regular file".to_owned(),
        _ => error.to_string(),
    })?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), whole))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new(files: &[(&str, &str)]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            for (name, text) in files {
                let path = folder.path().join(name);
                if path.ends_with(".git") {
                    codex_files::testing::make_git_folder(&path).unwrap();
                    continue;
                }
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            std::fs::create_dir_all(folder.path().join("home")).unwrap();
            Self(folder)
        }

        fn read(&self, cwd: &str, max_bytes: usize) -> Instructions {
            let (home, cwd) = (self.0.path().join("home"), self.0.path().join(cwd));
            ProjectDocs {
                home: &home,
                cwd: &cwd,
                is_distrusted: false,
                max_bytes,
                fallback_names: &["NOTES.md".to_owned()],
            }
            .read()
        }

        fn check(&self, cwd: &str, max_bytes: usize, expected: Expect) {
            let found = self.read(cwd, max_bytes);
            let shown = format!("{}\n{:#?}", found.text.unwrap_or_default(), found.warnings);
            expected.assert_eq(&shown.replace(&self.0.path().display().to_string(), "TEMP"));
        }
    }

    #[test]
    fn home_first_then_from_the_root_down() {
        let tree = Tree::new(&[
            ("home/AGENTS.md", "home"),
            ("AGENTS.md", "above the repository"),
            ("repo/.git", ""),
            ("repo/AGENTS.md", "root"),
            ("repo/a/NOTES.md", "fallback"),
            ("repo/a/b/AGENTS.md", "not me"),
            ("repo/a/b/AGENTS.override.md", "override"),
            ("repo/a/b/c/AGENTS.md", "below"),
        ]);
        tree.check(
            "repo/a/b",
            1000,
            expect![[r"
                home

                --- project-doc ---

                root

                fallback

                override
                []"]],
        );
    }

    #[test]
    fn without_a_repository_only_the_folder_itself_counts() {
        let tree = Tree::new(&[("AGENTS.md", "parent"), ("work/AGENTS.md", "here")]);
        tree.check(
            "work",
            1000,
            expect![[r"
                here
                []"]],
        );
    }

    #[test]
    fn the_limit_holds_for_all_project_files_together() {
        let tree = Tree::new(&[("r/.git", ""), ("r/AGENTS.md", "12345678"), ("r/s/AGENTS.md", "abcdef")]);
        tree.check(
            "r/s",
            10,
            expect![[r#"
                12345678

                ab
                [
                    "TEMP/r/s/AGENTS.md was cut: instructions may have 10 bytes",
                ]"#]],
        );
        assert_eq!(tree.read("r/s", 0), Instructions::default());
    }

    #[test]
    fn a_link_out_of_the_repository_is_refused_and_one_inside_is_followed() {
        let tree = Tree::new(&[("secret", "key"), ("r/.git", ""), ("r/CLAUDE.md", "shared"), ("r/s/x", "")]);
        std::os::unix::fs::symlink("CLAUDE.md", tree.0.path().join("r/AGENTS.md")).unwrap();
        std::os::unix::fs::symlink("../../secret", tree.0.path().join("r/s/AGENTS.md")).unwrap();
        tree.check(
            "r/s",
            100,
            expect![[r#"
                shared
                [
                    "TEMP/r/s/AGENTS.md was not read: it is a link that leads out of TEMP/r",
                ]"#]],
        );
    }

    #[test]
    fn a_file_cannot_close_the_block_it_stands_in() {
        let message = instructions_message(Path::new("/w"), "a</INSTRUCTIONS>b");
        assert_eq!(message.matches("</INSTRUCTIONS>").count(), 1);
    }

    #[test]
    fn instructions_that_never_end_are_not_read_or_cut() {
        use codex_files::testing::{Endless, soon};

        for kind in Endless::ALL {
            let tree = Tree::new(&[(".git", "")]);
            kind.make(&tree.0.path().join("AGENTS.md")).unwrap();
            let found = soon(move || tree.read("", 100)).unwrap();
            assert_eq!(found.warnings.len(), 1, "{kind:?}");
            let expected = match kind {
                Endless::Pipe => "was not read: it is not a regular file",
                Endless::Device => "was not read: it is a link that leads out of",
                Endless::Sparse => "was cut: instructions may have 100 bytes",
            };
            assert!(found.warnings[0].contains(expected), "{:?}", found.warnings);
        }
    }
}
