//! `.codex/config.toml` of a project: from the root of the repository down to the folder that the work takes place in.
//!
//! Invariants: nothing is read where the user has not said that the project is trusted, and then only files that lie inside
//! the project once links are resolved. What such a file may say is decided in [`crate::audit`].

use std::path::{Path, PathBuf};

use crate::{Home, Reader, Tree, TrustLevel, layers::MOST_BYTES, position::decode, project_doc::repository_root};

/// How many folders between the root and the working directory may have a file.
const MOST_FILES: usize = 16;

/// Whether a project's files count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trusted {
    /// They do.
    Yes,
    /// They do not, and why.
    No(&'static str),
}

/// The files of a project.
#[derive(Debug)]
pub struct ProjectFiles {
    cwd: PathBuf,
    root: PathBuf,
    /// The `.codex` folders with a file, that of the root first.
    folders: Vec<PathBuf>,
}

impl ProjectFiles {
    /// Looks for the files without opening any. The user's own home is no project.
    #[must_use]
    pub fn find(home: &Home, cwd: &Path) -> Self {
        let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
        let root = repository_root(&cwd).unwrap_or_else(|| cwd.clone());
        let inside = cwd.ancestors().take_while(|folder| folder.starts_with(&root));
        let dot_codex = inside.map(|folder| folder.join(".codex"));
        let is_there = |folder: &PathBuf| folder.join("config.toml").symlink_metadata().is_ok();
        let mut folders: Vec<PathBuf> = dot_codex.filter(is_there).take(MOST_FILES).collect();
        if !folders.is_empty() {
            let own = home.path().canonicalize().unwrap_or_else(|_| home.path().to_owned());
            folders.retain(|folder| folder.canonicalize().is_ok_and(|folder| folder != own));
        }
        folders.reverse();
        Self { cwd, root, folders }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.folders.is_empty()
    }

    /// The `.codex` folders with a file, that of the root first.
    pub(crate) fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Whether the user trusts the project, by what lies above and below its files.
    pub(crate) fn trust(&self, layers: &Tree) -> Trusted {
        let root = Reader::new(layers, None);
        let level = |folder: &Path| -> Option<TrustLevel> {
            let projects = root.section("projects").ok()?;
            let name = projects.keys().find(|name| Path::new(name) == folder)?;
            projects.section(name).ok()?.word("trust_level").ok()?
        };
        match level(&self.cwd).or_else(|| level(&self.root)) {
            Some(TrustLevel::Trusted) => Trusted::Yes,
            Some(TrustLevel::Untrusted) | None => Trusted::No("the project is not trusted"),
        }
    }

    /// Reads one of the files.
    pub(crate) fn read(&self, folder: &Path) -> Result<Tree, String> {
        let path = folder.join("config.toml");
        let real = path.canonicalize().map_err(|error| error.to_string())?;
        if !real.starts_with(&self.root) {
            return Err(format!("it is a link that leads out of {}", self.root.display()));
        }
        let bytes = codex_files::read(&real, MOST_BYTES).map_err(|error| error.to_string())?;
        let text = decode(&bytes).map_err(|(line, _)| format!("line {line} is not UTF-8"))?;
        Tree::parse(&path, text).map_err(|error| error.to_string())
    }
}
