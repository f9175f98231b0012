//! Answers that are given later, by the id of the question: for programs that show questions among other events.
//!
//! Invariant: each connection numbers its questions anew, so an answer to a question of one that has broken is for no
//! other question.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codex_wire::ids::RequestId;
use tokio::sync::oneshot;

use crate::approvals::{Approvals, Decision};

/// The answers of a person, by question. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Answers(Arc<Mutex<Given>>);

#[derive(Debug, Default)]
struct Given {
    /// The number of the connection.
    connection: u64,
    answers: Vec<(RequestId, Answer)>,
}

/// A question is asked beside everything else, so its answer may come before somebody waits for it.
#[derive(Debug)]
enum Answer {
    Awaited(oneshot::Sender<Decision>),
    Given(Decision),
}

impl Answers {
    /// The answers to the questions of a connection. Those of the one before it are void.
    #[must_use]
    pub fn approvals(&self, connection: u64) -> Approvals {
        *self.lock() = Given { connection, answers: Vec::new() };
        let answers = self.clone();
        Approvals::handler(move |ask| answers.clone().wait(connection, ask.id))
    }

    /// Answers a question of a connection.
    pub fn decide(&self, connection: u64, id: &RequestId, decision: Decision) {
        let mut given = self.lock();
        if given.connection != connection {
            return;
        }
        match given.take(id) {
            // The client may have given up at this moment.
            Some(Answer::Awaited(waiting)) => drop(waiting.send(decision)),
            Some(Answer::Given(_)) | None => given.answers.push((id.clone(), Answer::Given(decision))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Given> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn wait(self, connection: u64, id: RequestId) -> Decision {
        let answer = {
            let mut given = self.lock();
            if given.connection != connection {
                return Decision::deny("the connection is lost");
            }
            if let Some(Answer::Given(decision)) = given.take(&id) {
                return decision;
            }
            let (sender, answer) = oneshot::channel();
            given.answers.push((id, Answer::Awaited(sender)));
            answer
        };
        answer.await.unwrap_or_else(|_| Decision::deny("nobody answers any more"))
    }
}

impl Given {
    fn take(&mut self, id: &RequestId) -> Option<Answer> {
        let place = self.answers.iter().position(|(known, _)| known == id)?;
        Some(self.answers.swap_remove(place).1)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::approvals::Ask;

    const ID: RequestId = RequestId::Integer(7);

    async fn answer(approvals: &Approvals) -> Value {
        let method = "item/commandExecution/requestApproval".to_owned();
        let (answer, _) = approvals.answer(Ask { id: ID, method, params: json!({"threadId": "t"}) }).await;
        answer.unwrap_or_default()["decision"].take()
    }

    #[tokio::test]
    async fn an_answer_is_for_a_question_of_its_own_connection() {
        let answers = Answers::default();
        let first = answers.approvals(0);
        answers.decide(0, &ID, Decision::Allow);
        assert_eq!(answer(&first).await, json!("accept"), "it may come first");
        let asking = answers.clone();
        let (told, ()) = tokio::join!(answer(&first), async move {
            tokio::task::yield_now().await;
            asking.decide(0, &ID, Decision::Cancel);
        });
        assert_eq!(told, json!("cancel"));
        answers.decide(0, &ID, Decision::Allow);
        let second = answers.approvals(1);
        answers.decide(0, &ID, Decision::Allow);
        answers.decide(1, &ID, Decision::AllowForSession);
        assert_eq!(answer(&second).await, json!("acceptForSession"), "yes to the first question is no yes to this one");
        assert_eq!(answer(&first).await, json!("decline"), "its connection has broken");
    }
}
