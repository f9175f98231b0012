//! The settings of logins to MCP servers, and the file with such logins.
//!
//! Invariant: the file is accessible only to this user, and no sandbox exposes it.

use std::io;

use serde_json::{Map, Value as Json};

use crate::replace::replace_secret;
use crate::{Config, CredentialsStore, Home, Reader, ValueError};

/// The largest file.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// The settings of logins to MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McpLoginConfig {
    /// `mcp_oauth_credentials_store`.
    pub store: CredentialsStore,
    /// `mcp_oauth_callback_port`: the port that a browser comes back to; any free one if unset.
    pub callback_port: Option<u16>,
}

impl Default for McpLoginConfig {
    fn default() -> Self {
        Self { store: CredentialsStore::Auto, callback_port: None }
    }
}

impl McpLoginConfig {
    pub(crate) fn read(root: &Reader<'_>) -> Result<Self, ValueError> {
        Ok(Self {
            store: root.word("mcp_oauth_credentials_store")?.unwrap_or(CredentialsStore::Auto),
            callback_port: root.integer("mcp_oauth_callback_port", 1..)?,
        })
    }
}

impl Config {
    /// The settings of logins to MCP servers.
    #[must_use]
    pub fn mcp_login(&self) -> McpLoginConfig {
        // They were read without an error before.
        McpLoginConfig::read(&Reader::new(&self.tree, None)).unwrap_or_default()
    }
}

/// The entries of `.credentials.json`; empty if there is no such file.
pub fn read_mcp_credentials(home: &Home) -> io::Result<Map<String, Json>> {
    match codex_files::read(&home.mcp_credentials_file(), MOST_BYTES) {
        // The message of the parser would show a part of the file.
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|_| io::Error::other("it is not a JSON object")),
        Err(error) if error.is_not_found() => Ok(Map::new()),
        Err(error) => Err(error.into()),
    }
}

/// Replaces `.credentials.json`; without entries there is no such file.
pub fn write_mcp_credentials(home: &Home, entries: &Map<String, Json>) -> io::Result<()> {
    let path = home.mcp_credentials_file();
    if entries.is_empty() {
        return match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    home.ensure().map_err(io::Error::other)?;
    replace_secret(&path, &serde_json::to_string_pretty(entries)?, &home.run())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::Tree;

    #[test]
    fn settings_are_read() {
        let read = |text: &str| {
            let tree = Tree::parse(Path::new("c"), text).unwrap();
            McpLoginConfig::read(&Reader::new(&tree, None)).map_err(|error| error.to_string())
        };
        assert_eq!(read(""), Ok(McpLoginConfig::default()));
        let set = McpLoginConfig { store: CredentialsStore::File, callback_port: Some(8080) };
        assert_eq!(read("mcp_oauth_credentials_store = 'file'\nmcp_oauth_callback_port = 8080"), Ok(set));
        assert!(read("mcp_oauth_callback_port = 70000").is_err());
        assert!(read("mcp_oauth_credentials_store = 'drawer'").unwrap_err().contains("file, keyring, auto"));
    }

    #[cfg(unix)]
    #[test]
    fn the_file_is_for_this_user_alone_and_goes_with_its_last_entry() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let path = home.mcp_credentials_file();
        assert!(read_mcp_credentials(&home).unwrap().is_empty());
        std::fs::write(&path, "{\"secret\": ").unwrap();
        assert_eq!(read_mcp_credentials(&home).unwrap_err().to_string(), "it is not a JSON object");
        let entries = Map::from_iter([("a".to_owned(), json!({"access_token": "t"}))]);
        write_mcp_credentials(&home, &entries).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read_mcp_credentials(&home).unwrap(), entries);
        write_mcp_credentials(&home, &Map::new()).unwrap();
        assert!(!path.exists());
    }
}
