//! The thread of a request.

use std::path::Path;

use codex_wire::ids::ThreadId;

use crate::v1::conversation::{
    ArchiveConversationParams, ForkConversationParams, GetConversationSummaryParams, ResumeConversationParams,
};
use crate::v1::turn::{
    AddConversationListenerParams, InterruptConversationParams, RemoveConversationListenerParams,
    SendUserMessageParams, SendUserTurnParams,
};
use crate::v2::attachment::{ThreadAttachmentAddParams, ThreadAttachmentListParams, ThreadAttachmentRemoveParams};
use crate::v2::goal::{ThreadGoalClearParams, ThreadGoalGetParams, ThreadGoalSetParams};
use crate::v2::metadata::ThreadMetadataUpdateParams;
use crate::v2::pending::ServerRequestListParams;
use crate::v2::queue::{
    ThreadQueueAddParams, ThreadQueueDeleteParams, ThreadQueueListParams, ThreadQueueReorderParams,
    ThreadQueueStartParams, ThreadQueueUpdateParams,
};
use crate::v2::read_state::ThreadReadStateUpdateParams;
use crate::v2::section::ThreadSectionMoveParams;
use crate::v2::subscribe::ThreadSubscribeParams;
use crate::v2::terminals::{ThreadBackgroundTerminalsListParams, ThreadBackgroundTerminalsTerminateParams};
use crate::v2::thread::{
    ThreadForkParams, ThreadNameSetParams, ThreadParams, ThreadReadParams, ThreadResumeParams, ThreadRevertParams,
    ThreadRollbackParams, ThreadSettingsUpdateParams, ThreadShellCommandParams,
};
use crate::v2::thread_permissions::{
    ThreadPermissionsCheckParams, ThreadPermissionsRevokeParams, ThreadPermissionsRuleDeleteParams,
};
use crate::v2::thread_search::ThreadSearchOccurrencesParams;
use crate::v2::turn::{ReviewStartParams, TurnInterruptParams, TurnStartParams, TurnSteerParams};
use crate::v2::turn_list::{ThreadInjectItemsParams, ThreadItemsListParams, ThreadTurnsListParams};

/// The thread id of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadName<'a> {
    /// By an id that may be invalid.
    Text(&'a str),
    /// By its id.
    Id(ThreadId),
    /// By its file.
    Path(&'a Path),
    /// By its file, relative to the home folder.
    PathInHome(&'a Path),
    /// By a listener that the client has added.
    Listener(&'a str),
    /// It names none: the request supplies a conversation, or is refused.
    New,
}

/// Parameters of a request about one thread. Methods of scope [`Thread`](super::Scope::Thread) take no others.
pub trait NamesThread {
    /// The thread.
    fn thread(&self) -> ThreadName<'_>;
}

macro_rules! by_thread_id {
    ($($params:ty),* $(,)?) => {
        $(impl NamesThread for $params {
            fn thread(&self) -> ThreadName<'_> {
                ThreadName::Text(&self.thread_id)
            }
        })*
    };
}

macro_rules! by_conversation_id {
    ($($params:ty),* $(,)?) => {
        $(impl NamesThread for $params {
            fn thread(&self) -> ThreadName<'_> {
                ThreadName::Id(self.conversation_id)
            }
        })*
    };
}

by_thread_id! {
    ReviewStartParams, ServerRequestListParams, ThreadAttachmentAddParams, ThreadAttachmentListParams,
    ThreadAttachmentRemoveParams, ThreadBackgroundTerminalsListParams, ThreadBackgroundTerminalsTerminateParams,
    ThreadSearchOccurrencesParams, ThreadGoalClearParams, ThreadGoalGetParams, ThreadGoalSetParams,
    ThreadInjectItemsParams, ThreadItemsListParams, ThreadMetadataUpdateParams, ThreadNameSetParams, ThreadParams,
    ThreadQueueAddParams, ThreadQueueDeleteParams, ThreadQueueListParams, ThreadQueueReorderParams,
    ThreadQueueStartParams, ThreadQueueUpdateParams, ThreadPermissionsCheckParams, ThreadPermissionsRevokeParams, ThreadPermissionsRuleDeleteParams,
    ThreadReadParams, ThreadReadStateUpdateParams, ThreadRevertParams, ThreadRollbackParams, ThreadSectionMoveParams,
    ThreadSettingsUpdateParams, ThreadShellCommandParams, ThreadSubscribeParams, ThreadTurnsListParams,
    TurnInterruptParams, TurnStartParams, TurnSteerParams,
}

by_conversation_id! {
    AddConversationListenerParams, ArchiveConversationParams, InterruptConversationParams, SendUserMessageParams,
    SendUserTurnParams,
}

impl NamesThread for RemoveConversationListenerParams {
    fn thread(&self) -> ThreadName<'_> {
        ThreadName::Listener(&self.subscription_id)
    }
}

impl NamesThread for ThreadResumeParams {
    fn thread(&self) -> ThreadName<'_> {
        match (&self.history, &self.path) {
            (Some(_), _) => ThreadName::New,
            (None, Some(path)) => ThreadName::Path(path),
            (None, None) => ThreadName::Text(&self.thread_id),
        }
    }
}

impl NamesThread for ThreadForkParams {
    fn thread(&self) -> ThreadName<'_> {
        self.path.as_deref().map_or(ThreadName::Text(&self.thread_id), ThreadName::Path)
    }
}

/// A file goes before an id.
fn conversation(path: Option<&Path>, id: Option<ThreadId>) -> ThreadName<'_> {
    match (path, id) {
        (Some(path), _) => ThreadName::PathInHome(path),
        (None, Some(id)) => ThreadName::Id(id),
        (None, None) => ThreadName::New,
    }
}

impl NamesThread for ResumeConversationParams {
    fn thread(&self) -> ThreadName<'_> {
        if self.history.is_some() { ThreadName::New } else { conversation(self.path.as_deref(), self.conversation_id) }
    }
}

impl NamesThread for ForkConversationParams {
    fn thread(&self) -> ThreadName<'_> {
        conversation(self.path.as_deref(), self.conversation_id)
    }
}

impl NamesThread for GetConversationSummaryParams {
    fn thread(&self) -> ThreadName<'_> {
        conversation(self.rollout_path.as_deref(), self.conversation_id)
    }
}
