//! The commands of the person who operates a store.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use codex_log::store::StoreError;

use crate::store::PostgresStore;

/// A command of `codex store`.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Show the database, its size and its servers
    Status,
    /// Check that no line is missing, changed or out of order
    ///
    /// With a home, the lines of its files are compared with those of the database too.
    Check { home: Option<PathBuf> },
    /// Copy the threads of this home, or of another one, into the database; can be repeated
    Import { home: Option<PathBuf> },
    /// Write all threads as files of a home, which other releases can read
    Export { home: PathBuf },
    /// Create or migrate the tables
    Migrate {
        /// The database was restored from a backup: servers that knew it before have to open their threads again
        #[arg(long)]
        restored: bool,
    },
}

/// The result of a command.
#[derive(Debug)]
pub struct Report {
    /// The text for the person.
    pub text: String,
    /// Whether there are no problems.
    pub is_good: bool,
}

impl PostgresStore {
    /// Performs a command for the owner of a home.
    ///
    /// # Errors
    /// When the database or the home cannot be used.
    pub fn perform(&self, command: &StoreCommand, user_home: &Path) -> Result<Report, StoreError> {
        if let StoreCommand::Migrate { restored: true } = command {
            self.declare_restored()?;
        }
        Ok(match command {
            StoreCommand::Check { home } => {
                let mut checked = self.check()?;
                if let Some(home) = home {
                    checked.problems.extend(self.compare_home(home)?.problems);
                }
                Report { text: checked.to_string(), is_good: checked.problems.is_empty() }
            }
            StoreCommand::Import { home } => self.import_home(home.as_deref().unwrap_or(user_home))?.into(),
            StoreCommand::Export { home } => self.export_home(home)?.into(),
            StoreCommand::Status | StoreCommand::Migrate { .. } => {
                Report { text: self.status()?.to_string(), is_good: true }
            }
        })
    }
}

impl From<crate::home::Copied> for Report {
    fn from(copied: crate::home::Copied) -> Self {
        Self { text: copied.to_string(), is_good: copied.problems.is_empty() }
    }
}
