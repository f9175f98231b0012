//! MCP servers that the file of a project configures.
//!
//! They are programs that run outside of the sandbox, and places that keys are sent to. So each one needs the user's
//! approval, which is for a hash of its whole table: one that changes in any way is not started until it is approved
//! again. The user's own servers cannot be changed from a project.

use std::path::{Path, PathBuf};

use crate::{ConfigEdit, KeyPath, Node, Table, Tree, Value, json::version, project_files::ProjectFiles};

/// An MCP server of a project.
#[derive(Debug, Clone)]
pub struct ProjectServer {
    pub name: String,
    /// The file that configures it.
    pub file: PathBuf,
    /// The hash of its table.
    pub hash: String,
    /// Its table.
    pub table: Table,
    pub state: ProjectServerState,
    /// The folder whose entry in `[projects]` holds the approval.
    root: PathBuf,
}

/// Whether a server of a project is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectServerState {
    /// The user has approved it as it is.
    Approved,
    /// The user has not approved it as it is.
    Unapproved,
    /// A server with this name is configured elsewhere.
    Hidden,
}

impl ProjectServer {
    /// The edit of the user's file that approves it.
    #[must_use]
    pub fn approval(&self) -> ConfigEdit {
        let path = ["projects", &self.root.display().to_string(), "approved_mcp_servers", &self.name];
        let path = path.into_iter().fold(KeyPath::default(), |path, name| path.join(name));
        ConfigEdit::set(path.to_string(), self.hash.as_str())
    }

    /// The reason why it is not used, if it is not.
    pub(crate) fn complaint(&self) -> Option<String> {
        let name = &self.name;
        match self.state {
            ProjectServerState::Approved => None,
            ProjectServerState::Unapproved => {
                Some(format!("the MCP server `{name}` is not started: approve it with `codex mcp approve {name}`"))
            }
            ProjectServerState::Hidden => {
                Some(format!("the MCP server `{name}` is not started: another one has this name"))
            }
        }
    }

    /// It as a tree of the configuration.
    pub(crate) fn tree(&self) -> Option<Tree> {
        let origin = self.table.values().next()?.origin.clone();
        let path = KeyPath::default().join("mcp_servers").join(&self.name);
        Some(Tree::leaf(&path, Node { value: Value::Table(self.table.clone()), origin }))
    }
}

/// The servers in one file of a project; `others` are all layers below it and the user's.
pub(crate) fn servers(tree: &Tree, folder: &Path, files: &ProjectFiles, others: &Tree) -> Vec<ProjectServer> {
    let Some(all) = tree.subtree(&["mcp_servers"]) else { return Vec::new() };
    let root = files.root();
    let approved = |name: &str| {
        let path = ["projects", &root.display().to_string(), "approved_mcp_servers", name];
        others.get(&path).map(|node| &node.value)
    };
    let found = all.root().iter().filter_map(|(name, node)| Some((name, node.value.as_table()?)));
    let servers = found.map(|(name, table)| {
        let hash = version(&Tree::from(table.clone()));
        let state = if others.get(&["mcp_servers", name]).is_some() {
            ProjectServerState::Hidden
        } else if matches!(approved(name), Some(Value::String(approved)) if *approved == hash) {
            ProjectServerState::Approved
        } else {
            ProjectServerState::Unapproved
        };
        let (name, file, root) = (name.clone(), folder.join("config.toml"), root.to_owned());
        ProjectServer { name, file, hash, table: table.clone(), state, root }
    });
    servers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Env, Home, Layers, Overrides, UserConfig, WriteRequest};

    struct Project {
        folder: tempfile::TempDir,
        env: Env,
    }

    impl Project {
        fn new(file: &str) -> Self {
            let folder = tempfile::tempdir().unwrap();
            for name in ["home", "work/.codex"] {
                std::fs::create_dir_all(folder.path().join(name)).unwrap();
            }
            let project = Self { folder, env: Env::from_iter::<[(&str, &str); 0]>([]) };
            project.write(file);
            let trust = format!("[projects.'{}']\ntrust_level = 'trusted'\n", project.work().display());
            std::fs::write(project.home().config_file(), trust).unwrap();
            project
        }

        fn work(&self) -> PathBuf {
            self.folder.path().join("work").canonicalize().unwrap()
        }

        fn home(&self) -> Home {
            Home::at(self.folder.path().join("home"))
        }

        fn write(&self, file: &str) {
            std::fs::write(self.folder.path().join("work/.codex/config.toml"), file).unwrap();
        }

        fn overrides(&self) -> Overrides {
            Overrides { cwd: Some(self.work()), ..Overrides::default() }
        }

        fn layers(&self) -> Layers {
            Layers::read(&self.home(), &self.env, &self.overrides()).unwrap()
        }

        /// The names of all servers that would be started, and the state of those of the project.
        fn servers(&self) -> (Vec<String>, Vec<ProjectServerState>) {
            let layers = self.layers();
            let config: Config = layers.config(&self.home(), &self.env).unwrap();
            let names = config.mcp_servers(None).into_iter().map(|server| server.name).collect();
            (names, layers.project_servers().iter().map(|server| server.state).collect())
        }

        fn approve(&self) {
            let edits = self.layers().project_servers().iter().map(ProjectServer::approval).collect::<Vec<_>>();
            let (home, overrides) = (self.home(), Overrides::default());
            UserConfig::new(&home, &self.env, &overrides).write(&WriteRequest::of(edits)).unwrap();
        }
    }

    const DOCS: &str = "[mcp_servers.docs]\ncommand = 'docs'\nargs = ['a']\nenv = { K = 'v' }\n";

    #[test]
    fn a_server_of_a_project_needs_an_approval_of_exactly_what_it_is() {
        let project = Project::new(DOCS);
        assert_eq!(project.servers(), (vec![], vec![ProjectServerState::Unapproved]));
        let warnings: Vec<String> = project.layers().warnings().iter().map(ToString::to_string).collect();
        assert!(warnings.iter().any(|warning| warning.contains("`codex mcp approve docs`")), "{warnings:?}");
        project.approve();
        assert_eq!(project.servers(), (vec!["docs".to_owned()], vec![ProjectServerState::Approved]));
        assert_eq!(project.layers().warnings().len(), 0);
        for changed in [
            DOCS.replace("'docs'", "'docz'"),
            DOCS.replace("'a'", "'b'"),
            DOCS.replace("'v'", "'w'"),
            format!("{DOCS}cwd = '/'\n"),
            format!("{DOCS}default_tools_approval_mode = 'approve'\n"),
        ] {
            project.write(&changed);
            assert_eq!(project.servers(), (vec![], vec![ProjectServerState::Unapproved]), "{changed}");
        }
        project.write(&format!("# a comment\n{DOCS}"));
        assert_eq!(project.servers().1, [ProjectServerState::Approved]);
    }

    #[test]
    fn a_project_that_is_not_trusted_has_no_servers() {
        let project = Project::new(DOCS);
        project.approve();
        let user = std::fs::read_to_string(project.home().config_file()).unwrap();
        std::fs::write(project.home().config_file(), user.replace("'trusted'", "'untrusted'")).unwrap();
        assert_eq!(project.servers(), (vec![], vec![]));
    }

    #[test]
    fn a_project_cannot_change_a_server_of_the_user() {
        let project = Project::new("[mcp_servers.docs]\nargs = ['evil']\n");
        project.approve();
        let user = std::fs::read_to_string(project.home().config_file()).unwrap();
        std::fs::write(project.home().config_file(), format!("{user}\n[mcp_servers.docs]\ncommand = 'mine'\n"))
            .unwrap();
        assert_eq!(project.servers(), (vec!["docs".to_owned()], vec![ProjectServerState::Hidden]));
        let config = project.layers().config(&project.home(), &project.env).unwrap();
        assert!(config.tree.get(&["mcp_servers", "docs", "args"]).is_none());
    }
}
