//! The one table of methods: the name, the parameters and the response of each.
//!
//! Dispatch ([`for_each_method!`](crate::for_each_method)), the names in error messages, the errors for unsupported
//! methods and `docs/methods.md` all come from here.

mod absent;
mod names_thread;
mod params;
mod row;

use codex_wire::permissions::CommandForecast;
use serde_json::value::RawValue;

pub use self::names_thread::{NamesThread, ThreadName};
use self::params::read_params;
pub use self::row::{Method, Row, Scope};
use crate::rpc::ErrorObject;
use crate::v1::auth::{
    CancelLoginChatGptParams, GetAuthStatusParams, GetAuthStatusResponse, LoginApiKeyParams, LoginChatGptResponse,
};
use crate::v1::conversation::{
    ArchiveConversationParams, ConversationResumed, ForkConversationParams, GetConversationSummaryParams,
    GetConversationSummaryResponse, ListConversationsParams, ListConversationsResponse, NewConversationParams,
    NewConversationResponse, ResumeConversationParams,
};
use crate::v1::git::{GitDiffToRemoteParams, GitDiffToRemoteResponse};
use crate::v1::saved_config::{GetUserSavedConfigResponse, SetDefaultModelParams};
use crate::v1::turn::{
    AddConversationListenerParams, AddConversationListenerResponse, InterruptConversationParams,
    InterruptConversationResponse, RemoveConversationListenerParams, SendUserMessageParams, SendUserTurnParams,
};
use crate::v1::user::{GetUserAgentResponse, UserInfoResponse};
use crate::v2::account::{
    CancelLoginAccountParams, CancelLoginAccountResponse, GetAccountParams, GetAccountRateLimitsResponse,
    GetAccountResponse, LoginAccountParams, LoginAccountResponse,
};
use crate::v2::attachment::{
    ThreadAttachmentAddParams, ThreadAttachmentAddResponse, ThreadAttachmentListParams, ThreadAttachmentListResponse,
    ThreadAttachmentOwnerListParams, ThreadAttachmentOwnerListResponse, ThreadAttachmentRemoveParams,
};
use crate::v2::command_exec::{
    CommandExecParams, CommandExecResizeParams, CommandExecResponse, CommandExecTerminateParams, CommandExecWriteParams,
};
use crate::v2::config::{
    ConfigBatchWriteParams, ConfigReadParams, ConfigReadResponse, ConfigRequirementsReadResponse,
    ConfigValueWriteParams, ConfigWriteResponse,
};
use crate::v2::empty::Empty;
use crate::v2::features::{
    CollaborationModeListResponse, ExperimentalFeatureEnablement, ExperimentalFeatureListParams,
    ExperimentalFeatureListResponse,
};
use crate::v2::feedback::{FeedbackSaveParams, FeedbackSaveResponse, FeedbackUploadParams, FeedbackUploadResponse};
use crate::v2::fs::{
    FsCopyParams, FsCreateDirectoryParams, FsGetMetadataParams, FsGetMetadataResponse, FsReadDirectoryParams,
    FsReadDirectoryResponse, FsReadFileParams, FsReadFileResponse, FsRemoveParams, FsUnwatchParams, FsWatchParams,
    FsWatchResponse, FsWriteFileParams,
};
use crate::v2::goal::{
    ThreadGoalClearParams, ThreadGoalClearResponse, ThreadGoalGetParams, ThreadGoalGetResponse, ThreadGoalSetParams,
    ThreadGoalSetResponse,
};
use crate::v2::hooks::{HooksListParams, HooksListResponse};
use crate::v2::initialize::{InitializeParams, InitializeResponse};
use crate::v2::mcp_status::{
    CustomPromptListParams, CustomPromptListResponse, ListMcpServerStatusParams, ListMcpServerStatusResponse,
    McpResourceReadParams, McpResourceReadResponse, McpServerOauthLoginParams, McpServerOauthLoginResponse,
    McpServerRestartParams, McpServerToolCallParams, McpServerToolCallResponse,
};
use crate::v2::metadata::ThreadMetadataUpdateParams;
use crate::v2::model::{ModelListParams, ModelListResponse, ProviderCapabilities};
use crate::v2::nothing_there::{
    AppsListResponse, ExternalAgentConfigDetectResponse, MarketplaceUpgradeParams, MarketplaceUpgradeResponse,
    PluginListResponse, ThreadMemoryModeSetParams,
};
use crate::v2::pending::{ServerRequestListParams, ServerRequestListResponse};
use crate::v2::permissions::{PermissionProfileListParams, PermissionProfileListResponse};
use crate::v2::queue::{
    QueuedSubmissionResponse, ThreadQueueAddParams, ThreadQueueDeleteParams, ThreadQueueDeleteResponse,
    ThreadQueueListParams, ThreadQueueListResponse, ThreadQueueReorderParams, ThreadQueueStartParams,
    ThreadQueueStartResponse, ThreadQueueUpdateParams,
};
use crate::v2::read_state::{ThreadReadResponse, ThreadReadStateUpdateParams, ThreadReadStateUpdateResponse};
use crate::v2::search::{
    FuzzyFileSearchParams, FuzzyFileSearchResponse, FuzzyFileSearchSessionStartParams,
    FuzzyFileSearchSessionStopParams, FuzzyFileSearchSessionUpdateParams,
};
use crate::v2::section::{
    ThreadSectionCreateParams, ThreadSectionDeleteParams, ThreadSectionListResponse, ThreadSectionMoveParams,
    ThreadSectionResponse, ThreadSectionUpdateParams,
};
use crate::v2::skills::{
    SkillsConfigWriteParams, SkillsConfigWriteResponse, SkillsExtraRootsSetParams, SkillsListParams, SkillsListResponse,
};
use crate::v2::subscribe::{ThreadSubscribeParams, ThreadSubscribeResponse};
use crate::v2::terminals::{
    ThreadBackgroundTerminalsListParams, ThreadBackgroundTerminalsListResponse,
    ThreadBackgroundTerminalsTerminateParams, ThreadBackgroundTerminalsTerminateResponse,
};
use crate::v2::thread::{
    LoadedListResponse, PageParams, ThreadForkParams, ThreadNameSetParams, ThreadOpened, ThreadParams,
    ThreadReadParams, ThreadResponse, ThreadResumeParams, ThreadRevertParams, ThreadRollbackParams,
    ThreadSettingsUpdateParams, ThreadShellCommandParams, ThreadStartParams, ThreadUnsubscribeResponse,
};
use crate::v2::thread_agents::ThreadAgentsReadResponse;
use crate::v2::thread_list::{ThreadListParams, ThreadListResponse};
use crate::v2::thread_permissions::{
    ThreadPermissionsCheckParams, ThreadPermissionsReadResponse, ThreadPermissionsRevokeParams,
    ThreadPermissionsRevokeResponse, ThreadPermissionsRuleDeleteParams,
};
use crate::v2::thread_search::{
    ThreadSearchOccurrencesParams, ThreadSearchOccurrencesResponse, ThreadSearchParams, ThreadSearchResponse,
};
use crate::v2::turn::{
    ReviewStartParams, ReviewStartResponse, TurnInterruptParams, TurnStartParams, TurnStartResponse, TurnSteerParams,
    TurnSteerResponse,
};
use crate::v2::turn_list::{
    ThreadInjectItemsParams, ThreadItemsListParams, ThreadItemsListResponse, ThreadTurnsListParams,
    ThreadTurnsListResponse,
};

macro_rules! thread_of {
    (Thread $params:ident) => {
        Some(NamesThread::thread(&**$params))
    };
    ($scope:ident $params:ident) => {{
        let _: &Box<_> = $params;
        None
    }};
}

macro_rules! methods {
    ($dollar:tt $($(#[doc = $about:literal])* $name:ident = $method:literal $(| $alias:literal)* ($params:ty) -> $response:ty, $scope:ident, $since:literal;)*) => {
        /// The methods as types.
        pub mod call {
            use super::*;

            $($(#[doc = $about])*
            #[derive(Debug, Clone, Copy)]
            pub struct $name;

            impl Method for $name {
                const NAME: &'static str = $method;
                type Params = $params;
                type Response = $response;
            })*
        }

        /// A request that was understood.
        #[derive(Debug, Clone)]
        pub enum ClientRequest {
            $($(#[doc = $about])* $name(Box<$params>),)*
        }

        /// All methods.
        pub const METHODS: &[Row] = &[
            $(Row {
                name: $method,
                aliases: &[$($alias),*],
                scope: Scope::$scope,
                since: $since,
                about: concat!($($about),*).trim_ascii(),
            },)*
        ];

        /// Passes every method of the table to a macro, as `Name Scope,`. A server builds one match from it, so a
        /// method without a handler does not compile.
        #[macro_export]
        macro_rules! for_each_method {
            ($dollar macro:ident) => {
                $dollar macro! { $($name $scope,)* }
            };
        }

        #[cfg(feature = "schema")]
        pub(crate) fn describe(tables: &mut impl crate::schema::Tables) {
            let mut rows = METHODS.iter();
            $(tables.method::<$params, $response>(stringify!($name), rows.next());)*
        }

        impl ClientRequest {
            /// The order in which it is served.
            #[must_use]
            pub fn scope(&self) -> Scope {
                match self {
                    $(Self::$name(_) => Scope::$scope,)*
                }
            }

            /// The thread that it is about, if its scope is a thread.
            #[must_use]
            pub fn thread(&self) -> Option<ThreadName<'_>> {
                match self {
                    $(Self::$name(params) => thread_of!($scope params),)*
                }
            }

            /// Decodes the parameters of a method. Missing ones count as `{}`.
            ///
            /// # Errors
            /// If there is no such method, or its parameters are invalid.
            pub fn read(method: &str, params: Option<&RawValue>) -> Result<Self, ErrorObject> {
                match method {
                    $($method $(| $alias)* => read_params(params).map(|params| Self::$name(Box::new(params))),)*
                    _ => Err(absent::refusal(method)),
                }
            }
        }
    };
}

methods! { $
    /// Opens the connection.
    Initialize = "initialize" (InitializeParams) -> InitializeResponse, Connection, "0.43";
    /// Starts a thread.
    ThreadStart = "thread/start" (ThreadStartParams) -> ThreadOpened, Process, "0.56";
    /// Resumes a thread.
    ThreadResume = "thread/resume" (ThreadResumeParams) -> ThreadOpened, Thread, "0.56";
    /// Forks a thread.
    ThreadFork = "thread/fork" (ThreadForkParams) -> ThreadOpened, Thread, "0.85";
    /// Lists threads.
    ThreadList = "thread/list" (ThreadListParams) -> ThreadListResponse, Process, "0.56";
    /// Lists the threads that are loaded.
    ThreadLoadedList = "thread/loaded/list" (PageParams) -> LoadedListResponse, Connection, "0.105";
    /// Searches the messages and commands of threads.
    ThreadSearch = "thread/search" (ThreadSearchParams) -> ThreadSearchResponse, Process, "0.166";
    /// Searches the messages and commands of one thread.
    ThreadSearchOccurrences = "thread/searchOccurrences" (ThreadSearchOccurrencesParams) -> ThreadSearchOccurrencesResponse, Thread, "0.166";
    /// Reads a thread.
    ThreadRead = "thread/read" (ThreadReadParams) -> ThreadReadResponse, Thread, "0.105";
    /// Lists the turns of a thread.
    ThreadTurnsList = "thread/turns/list" (ThreadTurnsListParams) -> ThreadTurnsListResponse, Thread, "0.166";
    /// Lists the items of a thread.
    ThreadItemsList = "thread/items/list" (ThreadItemsListParams) -> ThreadItemsListResponse, Thread, "0.166";
    /// Archives a thread.
    ThreadArchive = "thread/archive" (ThreadParams) -> Empty, Thread, "0.56";
    /// Restores an archived thread.
    ThreadUnarchive = "thread/unarchive" (ThreadParams) -> ThreadResponse, Thread, "0.105";
    /// Deletes a thread.
    ThreadDelete = "thread/delete" (ThreadParams) -> Empty, Thread, "0.166";
    /// Names a thread.
    ThreadNameSet = "thread/name/set" (ThreadNameSetParams) -> Empty, Thread, "0.105";
    /// Marks a thread as read or unread.
    ThreadReadStateUpdate = "thread/readState/update" (ThreadReadStateUpdateParams) -> ThreadReadStateUpdateResponse, Thread, "0.166";
    /// Changes the repository information of a thread.
    ThreadMetadataUpdate = "thread/metadata/update" (ThreadMetadataUpdateParams) -> ThreadResponse, Thread, "0.117";
    /// Adds an attachment to a thread.
    ThreadAttachmentAdd = "thread/attachment/add" (ThreadAttachmentAddParams) -> ThreadAttachmentAddResponse, Thread, "0.166";
    /// Lists the attachments of a thread.
    ThreadAttachmentList = "thread/attachment/list" (ThreadAttachmentListParams) -> ThreadAttachmentListResponse, Thread, "0.166";
    /// Removes an attachment from a thread.
    ThreadAttachmentRemove = "thread/attachment/remove" (ThreadAttachmentRemoveParams) -> Empty, Thread, "0.166";
    /// Lists the threads with an attachment.
    ThreadAttachmentOwnerList = "thread/attachmentOwner/list" (ThreadAttachmentOwnerListParams) -> ThreadAttachmentOwnerListResponse, Process, "0.166";
    /// Moves a thread into a section, or out of one.
    ThreadSectionMove = "thread/section/move" (ThreadSectionMoveParams) -> Empty, Thread, "0.166";
    /// Lists sections.
    ThreadSectionList = "threadSection/list" (PageParams) -> ThreadSectionListResponse, Connection, "0.166";
    /// Creates a section.
    ThreadSectionCreate = "threadSection/create" (ThreadSectionCreateParams) -> ThreadSectionResponse, Connection, "0.166";
    /// Renames a section, or changes its appearance.
    ThreadSectionUpdate = "threadSection/update" (ThreadSectionUpdateParams) -> ThreadSectionResponse, Connection, "0.166";
    /// Deletes a section.
    ThreadSectionDelete = "threadSection/delete" (ThreadSectionDeleteParams) -> Empty, Connection, "0.166";
    /// Rolls back the last turns of a thread.
    ThreadRollback = "thread/rollback" (ThreadRollbackParams) -> ThreadResponse, Thread, "0.85";
    /// Rolls back a turn of a thread and all after it.
    ThreadRevert = "thread/revert" (ThreadRevertParams) -> ThreadResponse, Thread, "0.166";
    /// Compacts a conversation.
    ThreadCompactStart = "thread/compact/start" | "thread/compact" (ThreadParams) -> Empty, Thread, "0.56";
    /// Changes the settings of later turns.
    ThreadSettingsUpdate = "thread/settings/update" (ThreadSettingsUpdateParams) -> Empty, Thread, "0.166";
    /// Runs a command of the user in a thread.
    ThreadShellCommand = "thread/shellCommand" (ThreadShellCommandParams) -> Empty, Thread, "0.166";
    /// Lists the terminals that outlive the calls that started them.
    ThreadBackgroundTerminalsList = "thread/backgroundTerminals/list" (ThreadBackgroundTerminalsListParams) -> ThreadBackgroundTerminalsListResponse, Thread, "0.166";
    /// Ends the command of such a terminal.
    ThreadBackgroundTerminalsTerminate = "thread/backgroundTerminals/terminate" (ThreadBackgroundTerminalsTerminateParams) -> ThreadBackgroundTerminalsTerminateResponse, Thread, "0.166";
    /// Ends the commands of all such terminals.
    ThreadBackgroundTerminalsClean = "thread/backgroundTerminals/clean" (ThreadParams) -> Empty, Thread, "0.166";
    /// Returns the policies, rules and approvals that the commands of a thread are judged by.
    ThreadPermissionsRead = "thread/permissions/read" (ThreadParams) -> ThreadPermissionsReadResponse, Thread, "0.200";
    /// Tells what would happen to a command of the model now: run, ask or refuse, and why.
    ThreadPermissionsCheck = "thread/permissions/check" (ThreadPermissionsCheckParams) -> CommandForecast, Thread, "0.200";
    /// Takes back an approval that was given for the rest of the session.
    ThreadPermissionsRevoke = "thread/permissions/revoke" (ThreadPermissionsRevokeParams) -> ThreadPermissionsRevokeResponse, Thread, "0.200";
    /// Deletes a rule about commands from its file.
    ThreadPermissionsRuleDelete = "thread/permissions/rule/delete" (ThreadPermissionsRuleDeleteParams) -> Empty, Thread, "0.200";
    /// Lists the agents below a thread, with the mail that they have not read.
    ThreadAgentsRead = "thread/agents/read" (ThreadParams) -> ThreadAgentsReadResponse, Thread, "0.200";
    /// Adds items to the conversation with the model.
    ThreadInjectItems = "thread/inject_items" (ThreadInjectItemsParams) -> Empty, Thread, "0.166";
    /// Sets or changes the goal of a thread.
    ThreadGoalSet = "thread/goal/set" (ThreadGoalSetParams) -> ThreadGoalSetResponse, Thread, "0.166";
    /// Returns the goal of a thread.
    ThreadGoalGet = "thread/goal/get" (ThreadGoalGetParams) -> ThreadGoalGetResponse, Thread, "0.166";
    /// Removes the goal of a thread.
    ThreadGoalClear = "thread/goal/clear" (ThreadGoalClearParams) -> ThreadGoalClearResponse, Thread, "0.166";
    /// Queues input that starts a turn when the running one is complete.
    ThreadQueueAdd = "thread/queue/add" (ThreadQueueAddParams) -> QueuedSubmissionResponse, Thread, "0.166";
    /// Lists the queue of a thread.
    ThreadQueueList = "thread/queue/list" (ThreadQueueListParams) -> ThreadQueueListResponse, Thread, "0.166";
    /// Replaces the input of an entry of the queue.
    ThreadQueueUpdate = "thread/queue/update" (ThreadQueueUpdateParams) -> QueuedSubmissionResponse, Thread, "0.166";
    /// Removes an entry from the queue.
    ThreadQueueDelete = "thread/queue/delete" (ThreadQueueDeleteParams) -> ThreadQueueDeleteResponse, Thread, "0.166";
    /// Orders the entries of the queue.
    ThreadQueueReorder = "thread/queue/reorder" (ThreadQueueReorderParams) -> Empty, Thread, "0.166";
    /// Starts an entry of the queue, and resumes a queue that is paused.
    ThreadQueueStart = "thread/queue/start" (ThreadQueueStartParams) -> ThreadQueueStartResponse, Thread, "0.166";
    /// Subscribes to a thread by event numbers, from where the client stopped.
    ThreadSubscribe = "thread/subscribe" (ThreadSubscribeParams) -> ThreadSubscribeResponse, Thread, "0.200";
    /// Lists the open requests to the client about a thread.
    ServerRequestList = "serverRequest/list" (ServerRequestListParams) -> ServerRequestListResponse, Thread, "0.200";
    /// Unsubscribes from a thread.
    ThreadUnsubscribe = "thread/unsubscribe" (ThreadParams) -> ThreadUnsubscribeResponse, Thread, "0.105";
    /// Starts a turn with the user's input.
    TurnStart = "turn/start" (TurnStartParams) -> TurnStartResponse, Thread, "0.56";
    /// Adds input to a running turn.
    TurnSteer = "turn/steer" (TurnSteerParams) -> TurnSteerResponse, Thread, "0.105";
    /// Stops a running turn.
    TurnInterrupt = "turn/interrupt" (TurnInterruptParams) -> Empty, Thread, "0.56";
    /// Starts a review.
    ReviewStart = "review/start" (ReviewStartParams) -> ReviewStartResponse, Thread, "0.59";

    // Threads in the methods of 2025.

    /// Starts a conversation.
    NewConversation = "newConversation" (NewConversationParams) -> NewConversationResponse, Process, "0.42";
    /// Resumes a conversation.
    ResumeConversation = "resumeConversation" (ResumeConversationParams) -> ConversationResumed, Thread, "0.42";
    /// Forks a conversation.
    ForkConversation = "forkConversation" (ForkConversationParams) -> ConversationResumed, Thread, "0.85";
    /// Lists conversations.
    ListConversations = "listConversations" (ListConversationsParams) -> ListConversationsResponse, Process, "0.42";
    /// Returns the summary of a conversation.
    GetConversationSummary = "getConversationSummary" (GetConversationSummaryParams) -> GetConversationSummaryResponse, Thread, "0.58";
    /// Archives a conversation.
    ArchiveConversation = "archiveConversation" (ArchiveConversationParams) -> Empty, Thread, "0.42";
    /// Sends input to a conversation.
    SendUserMessage = "sendUserMessage" (SendUserMessageParams) -> Empty, Thread, "0.42";
    /// Sends input to a conversation, with settings for the turn.
    SendUserTurn = "sendUserTurn" (SendUserTurnParams) -> Empty, Thread, "0.42";
    /// Stops a running turn.
    InterruptConversation = "interruptConversation" (InterruptConversationParams) -> InterruptConversationResponse, Thread, "0.42";
    /// Adds a listener to a conversation.
    AddConversationListener = "addConversationListener" (AddConversationListenerParams) -> AddConversationListenerResponse, Thread, "0.42";
    /// Removes a listener from a conversation.
    RemoveConversationListener = "removeConversationListener" (RemoveConversationListenerParams) -> Empty, Thread, "0.42";

    // Methods that are not about threads.

    /// Reads the configuration.
    ConfigRead = "config/read" (ConfigReadParams) -> ConfigReadResponse, Connection, "0.65";
    /// Writes one value of the configuration.
    ConfigValueWrite = "config/value/write" (ConfigValueWriteParams) -> ConfigWriteResponse, Connection, "0.65";
    /// Writes several values of the configuration.
    ConfigBatchWrite = "config/batchWrite" (ConfigBatchWriteParams) -> ConfigWriteResponse, Connection, "0.65";
    /// Reads the administrator's requirements.
    ConfigRequirementsRead = "configRequirements/read" (Empty) -> ConfigRequirementsReadResponse, Connection, "0.105";
    /// Reloads the configured MCP servers.
    ConfigMcpServerReload = "config/mcpServer/reload" (Empty) -> Empty, Connection, "0.105";
    /// Reads the user's configuration file.
    GetUserSavedConfig = "getUserSavedConfig" (Empty) -> GetUserSavedConfigResponse, Connection, "0.42";
    /// Sets the default model.
    SetDefaultModel = "setDefaultModel" (SetDefaultModelParams) -> Empty, Connection, "0.42";
    /// Lists models.
    ModelList = "model/list" (ModelListParams) -> ModelListResponse, Connection, "0.56";
    /// Returns the capabilities of the provider.
    ModelProviderCapabilitiesRead = "modelProvider/capabilities/read" (Empty) -> ProviderCapabilities, Connection, "0.166";
    /// Lists features.
    ExperimentalFeatureList = "experimentalFeature/list" (ExperimentalFeatureListParams) -> ExperimentalFeatureListResponse, Connection, "0.105";
    /// Enables or disables features until the server ends.
    ExperimentalFeatureEnablementSet = "experimentalFeature/enablement/set" (ExperimentalFeatureEnablement) -> ExperimentalFeatureEnablement, Connection, "0.166";
    /// Lists apps, of which there are none.
    AppList = "app/list" (Empty) -> AppsListResponse, Connection, "0.166";
    /// Lists plugins, of which there are none.
    PluginList = "plugin/list" | "plugin/installed" (Empty) -> PluginListResponse, Connection, "0.166";
    /// Updates marketplaces of plugins, of which there are none.
    MarketplaceUpgrade = "marketplace/upgrade" (MarketplaceUpgradeParams) -> MarketplaceUpgradeResponse, Connection, "0.166";
    /// Looks for settings of other agents, and finds none.
    ExternalAgentConfigDetect = "externalAgentConfig/detect" (Empty) -> ExternalAgentConfigDetectResponse, Connection, "0.166";
    /// Forgets all memories, of which there are none.
    MemoryReset = "memory/reset" (Empty) -> Empty, Connection, "0.166";
    /// Sets whether memories are made from a thread, which they never are.
    ThreadMemoryModeSet = "thread/memoryMode/set" (ThreadMemoryModeSetParams) -> Empty, Connection, "0.166";
    /// Lists collaboration modes.
    CollaborationModeList = "collaborationMode/list" (Empty) -> CollaborationModeListResponse, Connection, "0.105";
    /// Lists permission profiles.
    PermissionProfileList = "permissionProfile/list" (PermissionProfileListParams) -> PermissionProfileListResponse, Connection, "0.166";
    /// Lists MCP servers.
    McpServerStatusList = "mcpServerStatus/list" | "mcpServers/list" (ListMcpServerStatusParams) -> ListMcpServerStatusResponse, Process, "0.65";
    /// Begins a login to an MCP server. `mcpServer/oauthLogin/completed` tells how it ends.
    McpServerOauthLogin = "mcpServer/oauth/login" (McpServerOauthLoginParams) -> McpServerOauthLoginResponse, Process, "0.65";
    /// Restarts an MCP server in all threads that use it. Calls that it has not answered fail.
    McpServerRestart = "mcpServer/restart" (McpServerRestartParams) -> Empty, Process, "0.200";
    /// Lists the prompts of the user and of the MCP servers of a thread.
    CustomPromptList = "customPrompt/list" (CustomPromptListParams) -> CustomPromptListResponse, Process, "0.200";
    /// Calls a tool of an MCP server of a thread. The model does not see it.
    McpServerToolCall = "mcpServer/tool/call" (McpServerToolCallParams) -> McpServerToolCallResponse, Process, "0.105";
    /// Reads a resource of an MCP server.
    McpResourceRead = "mcpServer/resource/read" (McpResourceReadParams) -> McpResourceReadResponse, Process, "0.105";
    /// Lists skills.
    SkillsList = "skills/list" (SkillsListParams) -> SkillsListResponse, Process, "0.75";
    /// Enables or disables a skill.
    SkillsConfigWrite = "skills/config/write" (SkillsConfigWriteParams) -> SkillsConfigWriteResponse, Connection, "0.105";
    /// Adds folders to search for skills, until the server ends.
    SkillsExtraRootsSet = "skills/extraRoots/set" (SkillsExtraRootsSetParams) -> Empty, Connection, "0.166";
    /// Lists hooks.
    HooksList = "hooks/list" (HooksListParams) -> HooksListResponse, Connection, "0.166";
    /// Returns the account that is logged in.
    AccountRead = "account/read" (GetAccountParams) -> GetAccountResponse, Connection, "0.56";
    /// Logs in.
    AccountLoginStart = "account/login/start" (LoginAccountParams) -> LoginAccountResponse, Connection, "0.56";
    /// Cancels a login that is not complete.
    AccountLoginCancel = "account/login/cancel" (CancelLoginAccountParams) -> CancelLoginAccountResponse, Connection, "0.56";
    /// Logs out.
    AccountLogout = "account/logout" (Empty) -> Empty, Connection, "0.56";
    /// Returns the rate limits of the account.
    AccountRateLimitsRead = "account/rateLimits/read" (Empty) -> GetAccountRateLimitsResponse, Connection, "0.56";
    /// Returns the kind of login.
    GetAuthStatus = "getAuthStatus" (GetAuthStatusParams) -> GetAuthStatusResponse, Connection, "0.42";
    /// Logs in with a key.
    LoginApiKey = "loginApiKey" (LoginApiKeyParams) -> Empty, Connection, "0.42";
    /// Starts a login with `ChatGPT`.
    LoginChatGpt = "loginChatGpt" (Empty) -> LoginChatGptResponse, Connection, "0.42";
    /// Cancels a login with `ChatGPT`.
    CancelLoginChatGpt = "cancelLoginChatGpt" (CancelLoginChatGptParams) -> Empty, Connection, "0.42";
    /// Logs out.
    LogoutChatGpt = "logoutChatGpt" (Empty) -> Empty, Connection, "0.42";
    /// Returns the user agent.
    GetUserAgent = "getUserAgent" (Empty) -> GetUserAgentResponse, Connection, "0.42";
    /// Returns the known data of the user.
    UserInfo = "userInfo" (Empty) -> UserInfoResponse, Connection, "0.42";
    /// Stores the user's feedback about a thread.
    FeedbackUpload = "feedback/upload" (FeedbackUploadParams) -> FeedbackUploadResponse, Process, "0.58";
    /// Writes the user's feedback about a thread to a path of the client's choice.
    FeedbackSave = "feedback/save" (FeedbackSaveParams) -> FeedbackSaveResponse, Process, "0.166";
    /// Searches files by name.
    FuzzyFileSearch = "fuzzyFileSearch" (FuzzyFileSearchParams) -> FuzzyFileSearchResponse, Process, "0.46";
    /// Starts a search session, for searching while the user types.
    FuzzyFileSearchSessionStart = "fuzzyFileSearch/sessionStart" (FuzzyFileSearchSessionStartParams) -> Empty, Connection, "0.105";
    /// Changes the query of a search session.
    FuzzyFileSearchSessionUpdate = "fuzzyFileSearch/sessionUpdate" (FuzzyFileSearchSessionUpdateParams) -> Empty, Connection, "0.105";
    /// Ends a search session.
    FuzzyFileSearchSessionStop = "fuzzyFileSearch/sessionStop" (FuzzyFileSearchSessionStopParams) -> Empty, Connection, "0.105";
    /// Returns the diff to the latest commit that a remote has.
    GitDiffToRemote = "gitDiffToRemote" (GitDiffToRemoteParams) -> GitDiffToRemoteResponse, Process, "0.42";
    /// Runs a command that belongs to no thread.
    CommandExec = "command/exec" | "execOneOffCommand" (CommandExecParams) -> CommandExecResponse, Connection, "0.42";
    /// Writes to a command's input.
    CommandExecWrite = "command/exec/write" (CommandExecWriteParams) -> Empty, Connection, "0.166";
    /// Changes the size of a command's terminal.
    CommandExecResize = "command/exec/resize" (CommandExecResizeParams) -> Empty, Connection, "0.166";
    /// Ends a command.
    CommandExecTerminate = "command/exec/terminate" (CommandExecTerminateParams) -> Empty, Connection, "0.166";
    /// Reads a file.
    FsReadFile = "fs/readFile" (FsReadFileParams) -> FsReadFileResponse, Process, "0.166";
    /// Writes a file.
    FsWriteFile = "fs/writeFile" (FsWriteFileParams) -> Empty, Process, "0.166";
    /// Creates a folder.
    FsCreateDirectory = "fs/createDirectory" (FsCreateDirectoryParams) -> Empty, Process, "0.166";
    /// Returns the metadata of a path.
    FsGetMetadata = "fs/getMetadata" (FsGetMetadataParams) -> FsGetMetadataResponse, Process, "0.166";
    /// Lists a folder.
    FsReadDirectory = "fs/readDirectory" (FsReadDirectoryParams) -> FsReadDirectoryResponse, Process, "0.166";
    /// Removes a file or folder.
    FsRemove = "fs/remove" (FsRemoveParams) -> Empty, Process, "0.166";
    /// Copies a file or folder.
    FsCopy = "fs/copy" (FsCopyParams) -> Empty, Process, "0.166";
    /// Watches a path for changes.
    FsWatch = "fs/watch" (FsWatchParams) -> FsWatchResponse, Connection, "0.166";
    /// Stops watching a path.
    FsUnwatch = "fs/unwatch" (FsUnwatchParams) -> Empty, Connection, "0.166";
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &str, params: &str) -> Result<ClientRequest, ErrorObject> {
        let params = serde_json::value::RawValue::from_string(params.to_owned()).unwrap();
        ClientRequest::read(method, Some(&params))
    }

    #[test]
    fn every_name_is_there_once() {
        let mut names: Vec<_> = METHODS.iter().flat_map(|row| row.aliases.iter().chain([&row.name])).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn missing_parameters_count_as_none() {
        assert!(matches!(ClientRequest::read("thread/list", None), Ok(ClientRequest::ThreadList(_))));
        let error = ClientRequest::read("turn/start", None).unwrap_err();
        assert_eq!(error.message, "Invalid request: missing field `threadId` at line 1 column 2");
    }

    #[test]
    fn no_complaint_shows_a_key() {
        for (method, params) in [
            ("loginApiKey", r#""sk-1""#),
            ("loginApiKey", r#"{"apiKey":{"key":"sk-1"}}"#),
            ("loginApiKey", r#"{"apiKey":5551}"#),
            ("account/login/start", r#"{"type":"apiKey","apiKey":["sk-1"]}"#),
            ("account/login/start", r#"{"type":"apiKey","apiKey":5551}"#),
        ] {
            let error = read(method, params).unwrap_err();
            assert!(!error.message.contains("sk-1") && !error.message.contains("5551"), "{error:?}");
        }
        let good = read("loginApiKey", r#"{"apiKey":"sk-1"}"#);
        assert!(!format!("{good:?}").contains("sk-1"), "{good:?}");
    }

    #[test]
    fn an_alias_is_the_method() {
        let request = read("thread/compact", r#"{"threadId":"x"}"#);
        assert!(matches!(request, Ok(ClientRequest::ThreadCompactStart(_))));
    }

    #[test]
    fn unknown_methods_differ_from_unsupported_ones() {
        let unknown = read("nonsense", "{}").unwrap_err();
        assert_eq!(unknown.message, "Invalid request: unknown variant `nonsense`");
        let misspelled = read("threadStart", "{}").unwrap_err();
        assert!(misspelled.message.ends_with("did you mean `thread/start`?"), "{misspelled:?}");
        let unsupported = read("plugin/read", "{}").unwrap_err();
        assert!(unsupported.message.contains("unsupported method"), "{unsupported:?}");
    }

    #[test]
    fn options_of_a_thread_are_read_in_every_spelling() {
        let request = read(
            "thread/start",
            r#"{"cwd":"/w","approvalPolicy":"unlessTrusted","sandbox":"readOnly","config":{"a.b":1},"unknown":[]}"#,
        );
        let Ok(ClientRequest::ThreadStart(start)) = request else { panic!("{request:?}") };
        assert_eq!(start.options.approval_policy, Some(codex_wire::policy::AskForApproval::UnlessTrusted));
        assert_eq!(start.options.sandbox, Some(codex_wire::policy::SandboxMode::ReadOnly));
    }
}
