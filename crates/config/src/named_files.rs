//! The files that the configuration names, whatever for: programs of MCP servers, of keys, of notifications, scripts in
//! their arguments, modules of Python.
//!
//! Invariant: every text in the configuration counts, so that no key can be forgotten.

use std::path::{Path, PathBuf};

use crate::Config;
use crate::tree::{Node, Value};

/// The maximum number of files.
const MAX_FILES: usize = 200;

impl Config {
    /// The existing files that some text of the configuration names, relative to `cwd`.
    #[must_use]
    pub fn named_files(&self, cwd: &Path) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for node in self.tree.root().values() {
            add(node, cwd, &mut files);
        }
        let real: Vec<PathBuf> = files.iter().filter_map(|file| file.canonicalize().ok()).collect();
        files.extend(real);
        files.sort();
        files.dedup();
        files
    }
}

fn add(node: &Node, cwd: &Path, files: &mut Vec<PathBuf>) {
    match &node.value {
        Value::String(text) => add_text(text, cwd, files),
        Value::Array(nodes) => {
            for (index, node) in nodes.iter().enumerate() {
                let before = index.checked_sub(1).and_then(|index| nodes.get(index)).map(|node| &node.value);
                match (&node.value, before) {
                    (Value::String(module), Some(Value::String(option))) if option == "-m" => {
                        add_module(module, cwd, files);
                    }
                    _ => add(node, cwd, files),
                }
            }
        }
        Value::Table(table) => {
            // A program is found from its own folder.
            let own = match table.get("cwd").map(|node| &node.value) {
                Some(Value::String(folder)) => cwd.join(folder),
                _ => cwd.to_owned(),
            };
            for node in table.values() {
                add(node, &own, files);
            }
        }
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {}
    }
}

/// A text may be a path, or a command line with paths in it.
fn add_text(text: &str, cwd: &Path, files: &mut Vec<PathBuf>) {
    let words = text.split(|c: char| c.is_whitespace() || "'\"=;|&()<>".contains(c));
    for word in std::iter::once(text).chain(words).filter(|word| !word.is_empty()) {
        let path = match (word.strip_prefix("~/"), std::env::home_dir()) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => cwd.join(word),
        };
        if files.len() < MAX_FILES && path.is_file() {
            files.push(path.components().collect());
        }
    }
}

fn add_module(name: &str, cwd: &Path, files: &mut Vec<PathBuf>) {
    let path: PathBuf = name.split('.').collect();
    let around = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    let packages = around.map(|folder| folder.join("__init__.py"));
    let own = [path.with_extension("py"), path.join("__init__.py"), path.join("__main__.py")];
    for file in packages.chain(own).map(|file| cwd.join(file)).filter(|file| file.is_file()) {
        files.push(file);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, Env, Home, Overrides};

    #[test]
    fn programs_scripts_and_modules_are_named_wherever_they_stand() {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join("work");
        for name in ["tools/x.py", "pkg/__init__.py", "pkg/run.py", "other", "sub/key", "line.sh"] {
            std::fs::create_dir_all(work.join(name).parent().unwrap()).unwrap();
            std::fs::write(work.join(name), "").unwrap();
        }
        let home = Home::at(folder.path().to_owned());
        let text = "notify = ['python3', 'tools/x.py']\n[mcp_servers.a]\ncommand = 'python3'\nargs = ['-m', 'pkg.run']\n\
            [mcp_servers.b]\ncommand = 'sh'\nargs = ['-c', 'exec ./line.sh --now']\n\
            [model_providers.m]\nname = 'm'\nbase_url = 'http://127.0.0.1'\n\
            [model_providers.m.auth]\ncommand = './key'\ncwd = 'sub'\n";
        std::fs::write(home.config_file(), text).unwrap();
        let env = Env::from_iter::<[(&str, &str); 0]>([]);
        let config = Config::load(&home, &env, &Overrides::default()).unwrap();
        let named = config.named_files(&work);
        let paths: Vec<_> = named.iter().map(|file| file.strip_prefix(&work).unwrap().display().to_string()).collect();
        assert_eq!(paths, ["line.sh", "pkg/__init__.py", "pkg/run.py", "sub/key", "tools/x.py"]);
    }
}
