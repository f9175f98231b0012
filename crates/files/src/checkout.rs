//! Whether a folder is the root of a git checkout.

use std::path::Path;

/// Whether a folder has its own `.git`. A sandbox placeholder does not count: those also appear in shared folders such
/// as `/tmp`.
#[must_use]
pub fn is_checkout(folder: &Path) -> bool {
    folder.join(".git").symlink_metadata().is_ok_and(|found| !is_placeholder(&found))
}

/// Whether a mode is that of a placeholder, whatever the umask removed: sticky, and writable by nobody.
#[cfg(unix)]
fn is_placeholder(found: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    found.is_dir() && found.permissions().mode() & 0o1222 == 0o1000
}

#[cfg(not(unix))]
fn is_placeholder(_: &std::fs::Metadata) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_name_that_a_sandbox_holds_is_no_repository() {
        let temp = tempfile::tempdir().unwrap();
        let git = temp.path().join(".git");
        assert!(!is_checkout(temp.path()));
        fs::create_dir(&git).unwrap();
        assert!(is_checkout(temp.path()));
        fs::set_permissions(&git, Permissions::from_mode(0o1555)).unwrap();
        assert!(!is_checkout(temp.path()));
        fs::remove_dir(&git).unwrap();
        fs::write(&git, "gitdir: elsewhere").unwrap();
        assert!(is_checkout(temp.path()));
    }
}
