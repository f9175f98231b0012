//! The questions of the chat that only the program around it can answer.

use std::ffi::OsString;
use std::path::PathBuf;

use codex_wire::policy::{SandboxMode, SandboxPolicy};

/// The program around a chat: its configuration and its stored threads.
pub trait ChatContext: Send + Sync {
    /// Finds the id of a thread by its id, the start of its id, or its name. The error is for people. It may read files,
    /// so it is called off the async threads.
    fn find_thread(&self, word: &str) -> Result<String, String>;

    /// The policy of a sandbox mode, with the configured folders.
    fn sandbox_policy(&self, mode: SandboxMode) -> SandboxPolicy;

    /// The folder of the project.
    fn project(&self) -> PathBuf;

    /// The user's answer to the question whether the project is trusted.
    fn trust(&self) -> Option<&'static str>;

    /// The user's configuration file, which may not exist.
    fn config_file(&self) -> PathBuf;

    /// The socket of the background server, which may not run; none if the chat is with a server elsewhere.
    fn server_socket(&self) -> Option<PathBuf>;

    /// The draft with a name, if one was kept. It may read a file.
    fn draft(&self, _name: &str) -> Option<String> {
        None
    }

    /// Keeps a draft by its name, or removes it. The error is for people.
    fn keep_draft(&self, _name: &str, _draft: Option<&str>) -> Result<(), String> {
        Ok(())
    }

    /// Lets the person write a text in a program of theirs, which has the terminal until it ends. The error is for
    /// people.
    fn write(&self, _text: &str) -> Result<String, String> {
        Err("there is no program to write in".to_owned())
    }

    /// A variable of the environment.
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    /// The folders of programs, as a value of `PATH`: none that commands of the model could write.
    fn programs(&self) -> OsString {
        OsString::new()
    }

    /// Keeps a picture for a message, and returns its file. The error is for people.
    fn keep_picture(&self, _picture: &[u8]) -> Result<PathBuf, String> {
        Err("pictures cannot be kept".to_owned())
    }

    /// Nothing has happened for a moment: memory that is not needed to wait can be given back.
    fn rest(&self) {}

    /// Writes a text to a new file in the folder of the chat, and returns its path. The error is for people. It writes a
    /// file, so it is called off the async threads.
    fn export(&self, name: Option<&str>, text: &str) -> Result<PathBuf, String>;

    /// Whether the server is elsewhere, where the folders of this machine mean nothing.
    fn is_elsewhere(&self) -> bool {
        self.server_socket().is_none()
    }
}
