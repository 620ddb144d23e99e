//! A run's own pages in a store, from async code: what is written down before what.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::outcome::ResumeError;
use super::store::{
    CallId, Entry, HoldError, Lease, PutError, Record, RunId, Store, StoreError, Ticket, value_of, value_text,
};
use crate::protocol::request::{Answer, HostError};

/// What to do with a call that a host had begun when it died: it may have happened, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// Make it again: at least once. Right for calls that only read, or that use the call's identity as an idempotency key.
    CallAgain,
    /// Let it throw an error with the code `interrupted` instead: at most once. Costs one more write for every call.
    Fail,
}

/// The journal of a run that this process holds.
#[derive(Clone, Debug)]
pub(super) struct Journal {
    store: Arc<dyn Store>,
    run: RunId,
    interrupted: Interrupted,
    /// Until the last clone is gone nobody else may run it.
    _lease: Arc<Lease>,
}

impl Journal {
    pub(super) async fn open(
        store: Arc<dyn Store>,
        run: RunId,
        interrupted: Interrupted,
    ) -> Result<Self, HoldError> {
        let held = {
            let (store, run) = (Arc::clone(&store), run.clone());
            blocking(move || store.hold(&run)).await
        };
        Ok(Self { store, run, interrupted, _lease: Arc::new(held?) })
    }

    /// The same with another answer to what was interrupted.
    pub(super) fn with(self, interrupted: Interrupted) -> Self {
        Self { interrupted, ..self }
    }

    /// Takes a ticket and makes it the run's first checkpoint, in an order in which no crash loses the run: the checkpoint is
    /// there before the ticket is used.
    pub(super) async fn take(&self, ticket: Ticket) -> Result<Record, ResumeError> {
        let (store, run) = (Arc::clone(&self.store), self.run.clone());
        blocking(move || {
            if store.latest(&run)?.is_some() {
                return Err(ResumeError::Unfinished { run });
            }
            let (record, _) = store.peek(&ticket)?;
            store.checkpoint(&record)?;
            store.take(&ticket).map_err(|error| {
                // It was used by somebody who has finished: what we just wrote is nobody's.
                match store.forget(&run) {
                    Ok(()) => error.into(),
                    Err(failed) => ResumeError::from(failed),
                }
            })
        })
        .await
    }

    pub(super) async fn latest(&self) -> Result<Option<Record>, StoreError> {
        let (store, run) = (Arc::clone(&self.store), self.run.clone());
        blocking(move || store.latest(&run)).await
    }

    pub(super) async fn checkpoint(&self, record: Record) -> Result<(), PutError> {
        let store = Arc::clone(&self.store);
        blocking(move || store.checkpoint(&record)).await
    }

    pub(super) async fn begin(&self, call: CallId) -> Result<(), StoreError> {
        match self.interrupted {
            Interrupted::CallAgain => Ok(()),
            Interrupted::Fail => {
                let (store, run) = (Arc::clone(&self.store), self.run.clone());
                blocking(move || store.begin(&run, call)).await
            }
        }
    }

    pub(super) async fn answer(&self, call: CallId, answer: &Answer) -> Result<(), PutError> {
        let payload = answer_text(answer);
        let (store, run) = (Arc::clone(&self.store), self.run.clone());
        blocking(move || store.answer(&run, call, &payload)).await
    }

    /// The answers that calls got in an earlier life.
    pub(super) async fn answers(&self) -> Result<BTreeMap<CallId, Answer>, StoreError> {
        let (store, run) = (Arc::clone(&self.store), self.run.clone());
        let noted = blocking(move || store.journal(&run)).await?;
        let mut answers = BTreeMap::new();
        for (call, entry) in noted {
            let answer = match entry {
                Entry::Answered(payload) => answer_of(&payload).ok_or_else(|| StoreError::Tampered {
                    name: format!("{}/{call}", self.run),
                    why: "its answer cannot be read",
                })?,
                Entry::Begun if self.interrupted == Interrupted::Fail => Answer::Error(interrupted_error()),
                Entry::Begun => continue,
            };
            answers.insert(call, answer);
        }
        Ok(answers)
    }

    /// Parks the run; its journal is then in the ticket.
    pub(super) async fn park(&self, record: Record) -> Result<Ticket, PutError> {
        let (store, run) = (Arc::clone(&self.store), self.run.clone());
        blocking(move || {
            let ticket = store.put(&record)?;
            store.forget(&run)?;
            Ok(ticket)
        })
        .await
    }

    pub(super) async fn forget(&self) -> Result<(), StoreError> {
        let (store, run) = (Arc::clone(&self.store), self.run.clone());
        blocking(move || store.forget(&run)).await
    }
}

/// Runs what blocks where it may. A panic in there is a panic here.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is being shut down, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}

fn interrupted_error() -> HostError {
    HostError {
        name: "Error".to_owned(),
        message: "the host died while this call was made; whether it happened is not known".to_owned(),
        code: Some("interrupted".to_owned()),
        details: None,
    }
}

/// An answer as it is in the journal.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stored {
    Value(String),
    Error { name: String, message: String, code: Option<String>, details: Option<String> },
}

fn answer_text(answer: &Answer) -> String {
    let stored = match answer {
        Answer::Value(value) => Stored::Value(value_text(value)),
        Answer::Error(HostError { name, message, code, details }) => Stored::Error {
            name: name.clone(),
            message: message.clone(),
            code: code.clone(),
            details: details.as_ref().map(value_text),
        },
    };
    // Only strings: JSON can say it.
    serde_json::to_string(&stored).unwrap_or_default()
}

fn answer_of(text: &str) -> Option<Answer> {
    Some(match serde_json::from_str(text).ok()? {
        Stored::Value(value) => Answer::Value(value_of(&value)?),
        Stored::Error { name, message, code, details } => {
            let details = match details {
                Some(details) => Some(value_of(&details)?),
                None => None,
            };
            Answer::Error(HostError { name, message, code, details })
        }
    })
}

#[cfg(test)]
mod tests {
    use outrigger_vm::boundary::Plain;

    use super::*;

    #[test]
    fn answers_come_back_from_the_journal_as_they_were() {
        let error = HostError {
            name: "TypeError".to_owned(),
            message: "no \"such\" thing".to_owned(),
            code: Some("E1".to_owned()),
            details: Some(Plain::Array(vec![Plain::Hole, Plain::Number(-0.0)])),
        };
        for answer in [
            Answer::Value(Plain::Object(vec![("k".to_owned(), Plain::String("\u{1F980}".to_owned()))])),
            Answer::Value(Plain::Undefined),
            Answer::Error(HostError { code: None, details: None, ..error.clone() }),
            Answer::Error(error),
        ] {
            assert_eq!(answer_of(&answer_text(&answer)), Some(answer));
        }
        assert_eq!(answer_of("{}"), None);
    }
}
