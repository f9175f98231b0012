//! The errors of this crate, classified for callers of a store.

use codex_log::store::{StoreError, StoreErrorKind};

use crate::export::{ExportError, ImportError};
use crate::index::{IndexError, StoredThreadError};
use crate::prompt_file::PromptHistoryError;
use crate::rollout::{ForkError, ReadError};
use crate::rollout_file::RolloutError;
use crate::thread_metadata::MetadataError;
use crate::threads::PlaceError;

impl From<RolloutError> for StoreError {
    fn from(error: RolloutError) -> Self {
        let kind = match &error {
            RolloutError::Locked { .. } => StoreErrorKind::Locked,
            RolloutError::Moved { .. } => StoreErrorKind::Moved,
            RolloutError::Encode { .. } => StoreErrorKind::Unencodable,
            RolloutError::Folder { .. }
            | RolloutError::Create { .. }
            | RolloutError::Open { .. }
            | RolloutError::Write { .. } => StoreErrorKind::Unwritable,
        };
        Self::new(kind, error)
    }
}

impl From<ReadError> for StoreError {
    fn from(error: ReadError) -> Self {
        Self::new(StoreErrorKind::Unreadable, error)
    }
}

impl From<ForkError> for StoreError {
    fn from(error: ForkError) -> Self {
        match error {
            ForkError::Read(error) => error.into(),
            ForkError::Write(error) => error.into(),
            ForkError::Store(error) => error,
        }
    }
}

impl From<PlaceError> for StoreError {
    fn from(error: PlaceError) -> Self {
        Self::new(StoreErrorKind::Refused, error)
    }
}

impl From<MetadataError> for StoreError {
    fn from(error: MetadataError) -> Self {
        if let MetadataError::Store(error) = error {
            return error;
        }
        let kind = if error.is_mistake() { StoreErrorKind::Refused } else { StoreErrorKind::Metadata };
        Self::new(kind, error)
    }
}

impl From<IndexError> for StoreError {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::Metadata(error) => error.into(),
            error @ IndexError::Cursor { .. } => Self::new(StoreErrorKind::Refused, error),
            error @ (IndexError::Database { .. } | IndexError::Read { .. }) => Self::new(StoreErrorKind::Failed, error),
        }
    }
}

impl From<StoredThreadError> for StoreError {
    fn from(error: StoredThreadError) -> Self {
        let kind = match error {
            StoredThreadError::Index(error) => return error.into(),
            StoredThreadError::Place(error) => return error.into(),
            StoredThreadError::Metadata(error) => return error.into(),
            StoredThreadError::Missing { .. } => StoreErrorKind::Missing,
            StoredThreadError::InUse { .. } => StoreErrorKind::Locked,
            StoredThreadError::Exists { .. } => StoreErrorKind::Refused,
            StoredThreadError::Move { .. } | StoredThreadError::Delete { .. } | StoredThreadError::Name { .. } => {
                StoreErrorKind::Unwritable
            }
        };
        Self::new(kind, error)
    }
}

impl From<ExportError> for StoreError {
    fn from(error: ExportError) -> Self {
        let kind = match error {
            ExportError::Read(error) => return error.into(),
            ExportError::NotAThread { .. } => StoreErrorKind::Refused,
            ExportError::Write(_) => StoreErrorKind::Unwritable,
        };
        Self::new(kind, error)
    }
}

impl From<ImportError> for StoreError {
    fn from(error: ImportError) -> Self {
        let kind = match error {
            ImportError::Write(error) => return error.into(),
            ImportError::Index(error) => return error.into(),
            ImportError::Name(error) => return error.into(),
            ImportError::Read(_) => StoreErrorKind::Unreadable,
            ImportError::Place { .. } => StoreErrorKind::Unwritable,
            ImportError::NotABundle
            | ImportError::Version { .. }
            | ImportError::BadLine { .. }
            | ImportError::OtherThread
            | ImportError::Incomplete { .. }
            | ImportError::MissingThreads { .. } => StoreErrorKind::Refused,
        };
        Self::new(kind, error)
    }
}

impl From<PromptHistoryError> for StoreError {
    fn from(error: PromptHistoryError) -> Self {
        let kind = match &error {
            PromptHistoryError::Locked { .. } => StoreErrorKind::Locked,
            PromptHistoryError::Write { .. } => StoreErrorKind::Unwritable,
        };
        Self::new(kind, error)
    }
}
