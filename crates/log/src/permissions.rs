//! Wider permissions for commands: those that a model asks for, and those that a person grants.

use std::path::PathBuf;

/// Permissions beyond those of the sandbox policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Folders below which commands may write.
    pub write: Vec<PathBuf>,
    /// Whether commands may use the network.
    pub network: bool,
}

/// The time for which permissions are granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantScope {
    /// Until the turn ends.
    Turn,
    /// As long as the thread is loaded.
    Session,
}

impl Permissions {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.write.is_empty() && !self.network
    }

    /// The part that was asked for: an answer never grants more than the question.
    #[must_use]
    pub fn within(&self, asked: &Self) -> Self {
        let write = asked.write.iter().filter(|folder| self.write.contains(folder)).cloned().collect();
        Self { write, network: self.network && asked.network }
    }

    /// Both together.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let more = other.write.iter().filter(|folder| !self.write.contains(folder));
        Self { write: self.write.iter().chain(more).cloned().collect(), network: self.network || other.network }
    }

    /// The request in the form of a command that no shell has, for clients that can only approve commands.
    #[must_use]
    pub fn argv(&self) -> Vec<String> {
        let folders = self.write.iter().map(|folder| format!("write:{}", folder.display()));
        let network = self.network.then(|| "network".to_owned());
        std::iter::once("request-permissions".to_owned()).chain(folders).chain(network).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_grants_no_more_than_was_asked_for() {
        let folders = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let asked = Permissions { write: folders(&["/a", "/b"]), network: false };
        let given = Permissions { write: folders(&["/b", "/", "/a/c"]), network: true };
        assert_eq!(given.within(&asked), Permissions { write: folders(&["/b"]), network: false });
        assert!(given.within(&Permissions::default()).is_empty());
        assert_eq!(asked.and(&given).write.len(), 4);
        assert_eq!(asked.argv(), ["request-permissions", "write:/a", "write:/b"]);
    }
}
