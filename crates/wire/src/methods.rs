//! The one table of methods: what a client may ask, with what, and what comes back.
//!
//! Dispatch, the names in error messages and what is told of unsupported methods all come from here.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::rpc::ErrorObject;
use crate::v2::initialize::{InitializeParams, InitializeResponse};
use crate::v2::thread::{
    Empty, LoadedListResponse, PageParams, ThreadForkParams, ThreadListParams, ThreadListResponse, ThreadNameSetParams,
    ThreadOpened, ThreadParams, ThreadReadParams, ThreadResponse, ThreadResumeParams, ThreadRollbackParams,
    ThreadSettingsUpdateParams, ThreadShellCommandParams, ThreadStartParams, ThreadUnsubscribeResponse,
};
use crate::v2::turn::{
    ReviewStartParams, ReviewStartResponse, TurnInterruptParams, TurnStartParams, TurnStartResponse, TurnSteerParams,
    TurnSteerResponse,
};

/// A method of the table.
pub trait Method {
    /// What it is called.
    const NAME: &'static str;
    /// What it takes.
    type Params: DeserializeOwned;
    /// What it answers.
    type Response: Serialize;
}

/// In which order requests are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// At once, before the next line is read.
    Connection,
    /// Beside all others.
    Process,
    /// After earlier requests about the same thread.
    Thread,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// What the method is called.
    pub name: &'static str,
    /// What else it was called.
    pub aliases: &'static [&'static str],
    /// In which order its requests are served.
    pub scope: Scope,
    /// The first release that had it.
    pub since: &'static str,
}

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident = $method:literal $(| $alias:literal)* ($params:ty) -> $response:ty, $scope:ident, $since:literal;)*) => {
        /// The methods as types.
        pub mod call {
            use super::*;

            $($(#[$doc])*
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
            $($(#[$doc])* $name(Box<$params>),)*
        }

        /// All methods.
        pub const METHODS: &[Row] = &[
            $(Row { name: $method, aliases: &[$($alias),*], scope: Scope::$scope, since: $since },)*
        ];

        impl ClientRequest {
            /// Reads the parameters of a method. Missing ones count as `{}`.
            ///
            /// # Errors
            /// When there is no such method, or its parameters are wrong.
            pub fn read(method: &str, params: Option<&RawValue>) -> Result<Self, ErrorObject> {
                match method {
                    $($method $(| $alias)* => read_params(params).map(|params| Self::$name(Box::new(params))),)*
                    _ => Err(unknown(method)),
                }
            }
        }
    };
}

methods! {
    /// Opens the connection.
    Initialize = "initialize" (InitializeParams) -> InitializeResponse, Connection, "0.43";
    /// Starts a thread.
    ThreadStart = "thread/start" (ThreadStartParams) -> ThreadOpened, Process, "0.56";
    /// Goes on with a thread.
    ThreadResume = "thread/resume" (ThreadResumeParams) -> ThreadOpened, Process, "0.56";
    /// Copies a thread.
    ThreadFork = "thread/fork" (ThreadForkParams) -> ThreadOpened, Process, "0.85";
    /// Lists threads.
    ThreadList = "thread/list" (ThreadListParams) -> ThreadListResponse, Process, "0.56";
    /// Lists the threads that are loaded.
    ThreadLoadedList = "thread/loaded/list" (PageParams) -> LoadedListResponse, Connection, "0.105";
    /// Reads a thread.
    ThreadRead = "thread/read" (ThreadReadParams) -> ThreadResponse, Process, "0.105";
    /// Puts a thread away.
    ThreadArchive = "thread/archive" (ThreadParams) -> Empty, Thread, "0.56";
    /// Takes a thread back.
    ThreadUnarchive = "thread/unarchive" (ThreadParams) -> ThreadResponse, Thread, "0.105";
    /// Deletes a thread.
    ThreadDelete = "thread/delete" (ThreadParams) -> Empty, Thread, "0.166";
    /// Calls a thread something.
    ThreadNameSet = "thread/name/set" (ThreadNameSetParams) -> Empty, Thread, "0.105";
    /// Forgets the last turns of a thread.
    ThreadRollback = "thread/rollback" (ThreadRollbackParams) -> ThreadResponse, Thread, "0.85";
    /// Sums a conversation up.
    ThreadCompactStart = "thread/compact/start" | "thread/compact" (ThreadParams) -> Empty, Thread, "0.56";
    /// Changes what later turns run under.
    ThreadSettingsUpdate = "thread/settings/update" (ThreadSettingsUpdateParams) -> Empty, Thread, "0.166";
    /// Runs a command of the user's.
    ThreadShellCommand = "thread/shellCommand" (ThreadShellCommandParams) -> Empty, Thread, "0.166";
    /// Listens to a thread no more.
    ThreadUnsubscribe = "thread/unsubscribe" (ThreadParams) -> ThreadUnsubscribeResponse, Thread, "0.105";
    /// Says something to a thread.
    TurnStart = "turn/start" (TurnStartParams) -> TurnStartResponse, Thread, "0.56";
    /// Says something to a running turn.
    TurnSteer = "turn/steer" (TurnSteerParams) -> TurnSteerResponse, Thread, "0.105";
    /// Stops a running turn.
    TurnInterrupt = "turn/interrupt" (TurnInterruptParams) -> Empty, Thread, "0.56";
    /// Has changes reviewed.
    ReviewStart = "review/start" (ReviewStartParams) -> ReviewStartResponse, Thread, "0.59";
}

/// Beginnings of methods that other releases have and that need a cloud of their maker's.
const CLOUD: &[(&str, &str)] = &[
    ("plugin/", "plugins come from a marketplace service that this program does not talk to"),
    ("marketplace/", "plugins come from a marketplace service that this program does not talk to"),
    ("app/", "apps are connectors of a hosted service that this program does not talk to"),
    ("remoteControl/", "remote control goes through a hosted relay that this program does not talk to"),
    ("thread/realtime/", "speech needs a hosted realtime service that this program does not talk to"),
    ("account/rateLimitResetCredit/", "credits are kept by a hosted service that this program does not talk to"),
    ("account/sendAddCreditsNudgeEmail", "mail is sent by a hosted service that this program does not talk to"),
    ("account/workspaceMessages/", "workspace messages come from a hosted service that this program does not talk to"),
    ("windowsSandbox/", "this is not Windows"),
    ("userVerification/", "keys of the operating system are not used by this program"),
];

fn unknown(method: &str) -> ErrorObject {
    if let Some((_, why)) = CLOUD.iter().find(|(prefix, _)| method.starts_with(prefix)) {
        return ErrorObject::invalid(format!("unsupported method `{method}`: {why}"));
    }
    let hint = nearest(method).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
    ErrorObject::invalid(format!("Invalid request: unknown variant `{method}`{hint}"))
}

/// The method that a misspelled one may be: the same but for case and separators, or for its last word.
fn nearest(method: &str) -> Option<&'static str> {
    let plain = |name: &str| name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let wanted = plain(method);
    let names = || METHODS.iter().map(|row| row.name);
    let group = method.rsplit_once('/').map(|(group, _)| format!("{group}/"));
    let same = names().find(|name| plain(name) == wanted);
    same.or_else(|| group.and_then(|group| names().find(|name| name.starts_with(&group))))
}

fn read_params<P: DeserializeOwned>(params: Option<&RawValue>) -> Result<P, ErrorObject> {
    let text = params.map_or("{}", RawValue::get);
    serde_json::from_str(text).map_err(|error| ErrorObject::invalid(format!("Invalid request: {error}")))
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
    fn an_alias_is_the_method() {
        let request = read("thread/compact", r#"{"threadId":"x"}"#);
        assert!(matches!(request, Ok(ClientRequest::ThreadCompactStart(_))));
    }

    #[test]
    fn what_is_unknown_is_told_apart_from_what_is_unsupported() {
        let unknown = read("nonsense", "{}").unwrap_err();
        assert_eq!(unknown.message, "Invalid request: unknown variant `nonsense`");
        let misspelled = read("threadStart", "{}").unwrap_err();
        assert!(misspelled.message.ends_with("did you mean `thread/start`?"), "{misspelled:?}");
        let unsupported = read("plugin/list", "{}").unwrap_err();
        assert!(unsupported.message.contains("unsupported method"), "{unsupported:?}");
    }

    #[test]
    fn options_of_a_thread_are_read_in_every_spelling() {
        let request = read(
            "thread/start",
            r#"{"cwd":"/w","approvalPolicy":"unlessTrusted","sandbox":"readOnly","config":{"a.b":1},"unknown":[]}"#,
        );
        let Ok(ClientRequest::ThreadStart(start)) = request else { panic!("{request:?}") };
        assert_eq!(start.options.approval_policy, Some(crate::policy::AskForApproval::UnlessTrusted));
        assert_eq!(start.options.sandbox, Some(crate::policy::SandboxMode::ReadOnly));
    }
}
