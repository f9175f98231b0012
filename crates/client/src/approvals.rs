//! Answers to the questions of a server.
//!
//! Invariant: each question gets exactly one answer. A handler that panics, is too late or cannot read the question
//! has denied it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use codex_protocol::rpc::ErrorObject;
use codex_wire::ids::RequestId;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::router::thread_id;

/// The default time limit of a handler.
pub const DEADLINE: Duration = Duration::from_secs(10 * 60);
/// JSON-RPC: there is no such method.
const NO_METHOD: i64 = -32601;

/// A question of the server.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    pub id: RequestId,
    pub method: String,
    pub params: Value,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Yes, this once.
    Allow,
    /// Yes, and the same is not asked again in this session.
    AllowForSession,
    /// Yes, and commands that begin with these words are not asked about again. Without a word it is a denial: every
    /// command begins with nothing.
    AllowWithAmendment(Vec<String>),
    /// No; the model is told and goes on. The protocol has no room for the reason: it is for logs of the program.
    Deny { reason: String },
    /// No, and the turn ends.
    Cancel,
    /// The result of a question that is no approval, as its method defines it.
    Result(Value),
}

impl Decision {
    /// A denial.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny { reason: reason.into() }
    }

    /// The result of a tool that the program supplies (`item/tool/call`), as text.
    pub fn tool_result(text: impl Into<String>, success: bool) -> Self {
        Self::Result(json!({"contentItems": [{"type": "inputText", "text": text.into()}], "success": success}))
    }

    /// Everything that a question asks for (`item/permissions/requestApproval`), for the turn or for the session.
    #[must_use]
    pub fn grant(ask: &Ask, for_session: bool) -> Self {
        let scope = if for_session { "session" } else { "turn" };
        let permissions = ask.params.get("permissions").cloned().unwrap_or_else(|| json!({}));
        Self::Result(json!({"permissions": permissions, "scope": scope}))
    }
}

/// A question on its way to the part of a program that decides. Dropped without an answer, it is denied.
#[derive(Debug)]
pub struct Question {
    pub ask: Ask,
    answer: oneshot::Sender<Decision>,
}

impl Question {
    /// Answers it.
    pub fn answer(self, decision: Decision) {
        // The client may have given up at this moment.
        let _: Result<(), Decision> = self.answer.send(decision);
    }
}

type Deciding = Pin<Box<dyn Future<Output = Decision> + Send>>;

/// Who answers questions. There is no default: a program chooses a handler or names a policy.
#[derive(Clone)]
pub struct Approvals {
    decide: Arc<dyn Fn(Ask) -> Deciding + Send + Sync>,
    deadline: Duration,
}

impl std::fmt::Debug for Approvals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Approvals").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

impl Approvals {
    /// Asks a handler, which may take its time up to the deadline. The connection goes on meanwhile.
    pub fn handler<H, F>(handler: H) -> Self
    where
        H: Fn(Ask) -> F + Send + Sync + 'static,
        F: Future<Output = Decision> + Send + 'static,
    {
        Self { decide: Arc::new(move |ask| Box::pin(handler(ask))), deadline: DEADLINE }
    }

    /// Passes questions on to another part of the program, up to `most` at once. A question that is dropped, or that
    /// nobody receives, is denied.
    #[must_use]
    pub fn channel(most: usize) -> (Self, mpsc::Receiver<Question>) {
        let (sender, questions) = mpsc::channel(most.max(1));
        let approvals = Self::handler(move |ask| {
            let sender = sender.clone();
            async move {
                let (answer, decision) = oneshot::channel();
                if sender.send(Question { ask, answer }).await.is_err() {
                    return Decision::deny("nobody receives questions");
                }
                decision.await.unwrap_or_else(|_| Decision::deny("the question was dropped"))
            }
        });
        (approvals, questions)
    }

    /// Denies everything.
    #[must_use]
    pub fn deny_all() -> Self {
        Self::handler(|_| std::future::ready(Decision::deny("the policy of this program is to deny")))
    }

    /// Allows every command and every change of files: only for servers whose sandbox is trusted, or in a container.
    /// Questions that are no approvals are denied.
    #[must_use]
    pub fn allow_all() -> Self {
        Self::handler(|ask| {
            let is_approval = matches!(Kind::of(&ask.method), Kind::Second | Kind::First);
            std::future::ready(if is_approval { Decision::Allow } else { Decision::deny("this is no approval") })
        })
    }

    /// The same with another deadline.
    #[must_use]
    pub fn within(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The answer to a question, and the reason for a note if it cannot be read or the handler has failed.
    pub(crate) async fn answer(&self, ask: Ask) -> (Result<Value, ErrorObject>, Option<String>) {
        let (method, decide) = (ask.method.clone(), Arc::clone(&self.decide));
        if !is_readable(&ask) {
            let note = format!("{method}: the question cannot be read");
            return (encode(&method, Decision::deny("the question cannot be read")), Some(note));
        }
        // A task of its own, so that a panic ends only it. It also covers a handler that panics before it waits.
        let mut deciding = tokio::spawn(async move { decide(ask).await });
        let (decision, note) = match tokio::time::timeout(self.deadline, &mut deciding).await {
            Ok(Ok(decision)) => (decision, None),
            Ok(Err(_)) => {
                (Decision::deny("the handler has failed"), Some(format!("{method}: the handler has panicked")))
            }
            Err(_) => {
                deciding.abort();
                let note = format!("{method}: no decision within {:?}", self.deadline);
                (Decision::deny("the handler is too late"), Some(note))
            }
        };
        (encode(&method, decision), note)
    }
}

/// The words in which a question is answered.
enum Kind {
    /// `item/*/requestApproval`.
    Second,
    /// `execCommandApproval`, `applyPatchApproval`.
    First,
    Elicitation,
    Permissions,
    Other,
}

impl Kind {
    fn of(method: &str) -> Self {
        match method {
            "item/commandExecution/requestApproval" | "item/fileChange/requestApproval" => Self::Second,
            "execCommandApproval" | "applyPatchApproval" => Self::First,
            "mcpServer/elicitation/request" => Self::Elicitation,
            "item/permissions/requestApproval" => Self::Permissions,
            _ => Self::Other,
        }
    }
}

/// Whether an approval says which thread it is for. A policy that allows everything must not allow what nobody can read.
#[must_use]
pub fn is_readable(ask: &Ask) -> bool {
    matches!(Kind::of(&ask.method), Kind::Elicitation | Kind::Other) || !thread_id(&ask.params).is_empty()
}

/// A decision in the spelling of the question's dialect.
pub fn encode(method: &str, decision: Decision) -> Result<Value, ErrorObject> {
    let decision = match decision {
        Decision::Result(result) => return Ok(result),
        Decision::AllowWithAmendment(words) if words.is_empty() => Decision::deny("the amendment has no words"),
        decision => decision,
    };
    match Kind::of(method) {
        Kind::Second => Ok(json!({"decision": match decision {
            Decision::Allow => json!("accept"),
            Decision::AllowForSession => json!("acceptForSession"),
            Decision::AllowWithAmendment(words) => {
                json!({"acceptWithExecpolicyAmendment": {"execpolicy_amendment": words}})
            }
            Decision::Cancel => json!("cancel"),
            Decision::Deny { .. } | Decision::Result(_) => json!("decline"),
        }})),
        Kind::First => Ok(json!({"decision": match decision {
            Decision::Allow => json!("approved"),
            Decision::AllowForSession => json!("approved_for_session"),
            Decision::AllowWithAmendment(words) => {
                json!({"approved_execpolicy_amendment": {"proposed_execpolicy_amendment": words}})
            }
            Decision::Cancel => json!("abort"),
            Decision::Deny { .. } | Decision::Result(_) => json!("denied"),
        }})),
        Kind::Elicitation => Ok(match decision {
            Decision::Allow | Decision::AllowWithAmendment(_) => json!({"action": "accept", "content": {}}),
            Decision::AllowForSession => json!({"action": "accept", "content": {}, "_meta": {"persist": "session"}}),
            Decision::Cancel => json!({"action": "cancel", "content": null}),
            Decision::Deny { .. } | Decision::Result(_) => json!({"action": "decline", "content": null}),
        }),
        // Nothing is granted unless a handler says what.
        Kind::Permissions => Ok(json!({"permissions": {}, "scope": "turn"})),
        Kind::Other => {
            let message = format!("this client does not answer {method}");
            Err(ErrorObject { code: NO_METHOD, message, data: None })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMAND: &str = "item/commandExecution/requestApproval";

    fn ask(method: &str) -> Ask {
        Ask { id: RequestId::Integer(1), method: method.to_owned(), params: json!({"threadId": "t"}) }
    }

    #[test]
    fn decisions_are_told_in_the_words_of_the_question() {
        let amendment = || Decision::AllowWithAmendment(vec!["npm".to_owned()]);
        for (method, decision, expected) in [
            (COMMAND, Decision::Allow, json!({"decision": "accept"})),
            (COMMAND, Decision::deny("no"), json!({"decision": "decline"})),
            (COMMAND, Decision::Cancel, json!({"decision": "cancel"})),
            (
                COMMAND,
                amendment(),
                json!({"decision": {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["npm"]}}}),
            ),
            ("execCommandApproval", Decision::AllowForSession, json!({"decision": "approved_for_session"})),
            ("applyPatchApproval", Decision::deny(""), json!({"decision": "denied"})),
            ("mcpServer/elicitation/request", Decision::deny(""), json!({"action": "decline", "content": null})),
            (
                "item/tool/call",
                Decision::tool_result("seven", true),
                json!({"contentItems": [{"type": "inputText", "text": "seven"}], "success": true}),
            ),
            ("item/permissions/requestApproval", Decision::Allow, json!({"permissions": {}, "scope": "turn"})),
            (
                "item/permissions/requestApproval",
                Decision::grant(&Ask { params: json!({"permissions": {"network": {}}}), ..ask("") }, true),
                json!({"permissions": {"network": {}}, "scope": "session"}),
            ),
        ] {
            assert_eq!(encode(method, decision), Ok(expected), "{method}");
        }
        assert_eq!(encode("from/the/future", Decision::Allow).map_err(|error| error.code), Err(NO_METHOD));
    }

    #[tokio::test]
    async fn a_handler_that_panics_has_denied() {
        let approvals = Approvals::handler(|_| async { panic!("a mistake in the program") });
        let (answer, note) = approvals.answer(ask(COMMAND)).await;
        assert_eq!(answer, Ok(json!({"decision": "decline"})));
        assert!(note.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_handler_that_hangs_has_denied() {
        let approvals = Approvals::handler(|_| std::future::pending()).within(Duration::from_secs(3));
        let (answer, note) = approvals.answer(ask("execCommandApproval")).await;
        assert_eq!(answer, Ok(json!({"decision": "denied"})));
        assert!(note.is_some_and(|note| note.contains("3s")));
    }

    #[tokio::test]
    async fn a_question_that_is_dropped_or_received_by_nobody_is_denied() {
        let (approvals, mut questions) = Approvals::channel(1);
        let deciding = async {
            if let Some(question) = questions.recv().await {
                question.answer(Decision::AllowForSession);
            }
            drop(questions.recv().await);
            drop(questions);
        };
        let asking = async {
            let mut answers = Vec::new();
            for _ in 0..3 {
                answers.push(approvals.answer(ask(COMMAND)).await);
            }
            answers
        };
        let ((), answers) = tokio::join!(deciding, asking);
        let expected = ["acceptForSession", "decline", "decline"].map(|word| (Ok(json!({"decision": word})), None));
        assert_eq!(answers, expected);
    }

    #[tokio::test]
    async fn a_policy_to_allow_answers_no_other_questions() {
        let (answer, _) = Approvals::allow_all().answer(ask("mcpServer/elicitation/request")).await;
        assert_eq!(answer, Ok(json!({"action": "decline", "content": null})));
        let (answer, _) = Approvals::deny_all().answer(ask(COMMAND)).await;
        assert_eq!(answer, Ok(json!({"decision": "decline"})));
    }
}
