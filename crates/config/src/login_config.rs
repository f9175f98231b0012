//! The settings of logins with `ChatGPT`, and the address that receives them.

use crate::{Reader, Value, ValueError, words::words};

/// The default address of `ChatGPT`.
const CHATGPT_BASE_URL: &str = "https://chatgpt.com/backend-api";

words! {
    /// The place where a login is stored.
    pub enum CredentialsStore {
        /// In `auth.json`.
        "file" => File,
        /// In the system keyring.
        "keyring" => Keyring,
        /// In the keyring if there is one, otherwise in `auth.json`.
        "auto" => Auto,
    }
}

/// The settings of logins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginConfig {
    /// `chatgpt_base_url`, without a trailing slash: the only address that tokens of `ChatGPT` are sent to.
    pub chatgpt_base_url: String,
    /// `cli_auth_credentials_store`.
    pub store: CredentialsStore,
    /// `forced_chatgpt_workspace_id`: the allowed workspaces of a login; empty allows any.
    pub forced_workspaces: Vec<String>,
}

impl Default for LoginConfig {
    fn default() -> Self {
        let chatgpt_base_url = CHATGPT_BASE_URL.to_owned();
        Self { chatgpt_base_url, store: CredentialsStore::File, forced_workspaces: Vec::new() }
    }
}

impl LoginConfig {
    pub(crate) fn read(root: &Reader<'_>) -> Result<Self, ValueError> {
        let usual = Self::default();
        let address = root.str("chatgpt_base_url")?.map(|url| url.trim().trim_end_matches('/').to_owned());
        Ok(Self {
            chatgpt_base_url: address.filter(|url| !url.is_empty()).unwrap_or(usual.chatgpt_base_url),
            store: root.word("cli_auth_credentials_store")?.unwrap_or(usual.store),
            forced_workspaces: match root.node("forced_chatgpt_workspace_id").map(|node| &node.value) {
                Some(Value::Array(_)) => root.strings("forced_chatgpt_workspace_id")?.unwrap_or_default(),
                _ => root.str("forced_chatgpt_workspace_id")?.into_iter().collect(),
            },
        })
    }

    /// The base address of model requests with a login, to which paths such as `/responses` are added.
    #[must_use]
    pub fn models_url(&self) -> String {
        format!("{}{}", self.chatgpt_base_url, if self.is_backend() { "/codex" } else { "/api/codex" })
    }

    /// The address of the account's rate limits.
    #[must_use]
    pub fn usage_url(&self) -> String {
        format!("{}{}", self.chatgpt_base_url, if self.is_backend() { "/wham/usage" } else { "/api/codex/usage" })
    }

    /// Whether the address is that of the web site itself, which has different paths.
    fn is_backend(&self) -> bool {
        self.chatgpt_base_url.contains("/backend-api")
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Tree;

    fn read(text: &str) -> Result<LoginConfig, String> {
        let tree = Tree::parse(Path::new("c"), text).unwrap();
        LoginConfig::read(&Reader::new(&tree, None)).map_err(|error| error.to_string())
    }

    #[test]
    fn addresses_follow_the_base() {
        let config = read("").unwrap();
        assert_eq!(config, LoginConfig::default());
        assert_eq!(config.models_url(), "https://chatgpt.com/backend-api/codex");
        assert_eq!(config.usage_url(), "https://chatgpt.com/backend-api/wham/usage");
        let config = read("chatgpt_base_url = 'http://127.0.0.1:1/'").unwrap();
        assert_eq!(config.models_url(), "http://127.0.0.1:1/api/codex");
        assert_eq!(config.usage_url(), "http://127.0.0.1:1/api/codex/usage");
    }

    #[test]
    fn one_workspace_or_several() {
        let workspaces = |text: &str| read(text).unwrap().forced_workspaces;
        assert_eq!(workspaces("forced_chatgpt_workspace_id = 'a'"), ["a"]);
        assert_eq!(workspaces("forced_chatgpt_workspace_id = ['a', 'b']"), ["a", "b"]);
        assert!(read("cli_auth_credentials_store = 'drawer'").unwrap_err().contains("file, keyring, auto"));
    }
}
