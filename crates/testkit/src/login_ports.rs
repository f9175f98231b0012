//! The two ports that a browser comes back to after a login. The issuer knows them, so every test that begins a login as
//! users do needs them.

use std::fs::File;

/// The right to use the ports, among all tests of this machine. It ends when this is dropped.
#[derive(Debug)]
pub struct LoginPorts(File);

impl LoginPorts {
    /// Waits until no other test has them, in this process or another.
    ///
    /// # Panics
    /// If the lock file cannot be used.
    #[must_use]
    pub fn hold() -> Self {
        let path = std::env::temp_dir().join("codex-test-login-ports.lock");
        // A file of another user can be locked too.
        let made = File::options().create(true).truncate(false).write(true).open(&path);
        let file = made.or_else(|_| File::open(&path));
        let file = file.unwrap_or_else(|error| panic!("{} can be opened: {error}", path.display()));
        file.lock().unwrap_or_else(|error| panic!("{} can be locked: {error}", path.display()));
        Self(file)
    }
}

impl Drop for LoginPorts {
    fn drop(&mut self) {
        // Closing the file would do the same, unless a child of this process has inherited it.
        let _: std::io::Result<()> = self.0.unlock();
    }
}
