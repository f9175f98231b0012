//! `.codex/config.toml` of a project: from the root of the repository down to the working directory.
//!
//! Invariants: nothing is read unless the user trusts the project, and then only files that are inside the project once
//! links are resolved. [`crate::audit`] decides what such a file may set.

use std::path::{Path, PathBuf};

use crate::{Home, Reader, Tree, TrustLevel, layers::MOST_BYTES, position::decode, project_doc::repository_root};

/// The maximum number of folders with a file between the root and the working directory.
const MOST_FILES: usize = 16;

/// Whether a project's files are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trusted {
    /// They are.
    Yes,
    /// They are not, and why.
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
    /// Finds the files without opening any. The user's own home is not a project.
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

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.folders.is_empty()
    }

    /// The folder of the project.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The `.codex` folders with a file, that of the root first.
    pub(crate) fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Whether the user trusts the project, according to the layers above and below its files.
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
