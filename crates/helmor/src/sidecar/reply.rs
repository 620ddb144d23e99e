//! One request, and what is said to it: any number of events, and one last. Who forgets the last one has it said for him.

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::conversation::{Conversation, Last, Refused, Spoken, Takes, Ticket};
use super::object::{Speaker, write_under};
use super::spell::event;
use crate::provider::{Failure, FailureCode};

pub(super) struct Reply {
    pub(super) conversation: Arc<Conversation>,
    pub(super) ticket: Ticket,
    over: CancellationToken,
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// A provider says why.
    Failed(Failure),
    /// The parameters are wrong.
    Params(String),
    /// It is busy, or too much, or too late.
    Refused { code: &'static str, message: String },
    /// We are wrong.
    Internal(String),
}

impl Reply {
    /// Takes a request on.
    pub(super) fn to(conversation: &Arc<Conversation>, id: &str, takes: Takes) -> Result<Self, Refused> {
        let ticket = conversation.begin(id, takes)?;
        Ok(Self { conversation: Arc::clone(conversation), ticket, over: CancellationToken::new() })
    }

    /// Passes on what an agent says.
    pub(super) fn pass(&self, object: &str) -> Spoken {
        let mut passed = true;
        let spoken = self.conversation.say_of(&self.ticket, Last::No, |line| {
            passed = write_under(object, Speaker::Agent, &self.ticket.quoted, line);
        });
        if passed { spoken } else { Spoken::Nonsense }
    }

    /// An event of ours.
    pub(super) fn tell(&self, kind: &str, members: &[(&str, Value)]) -> Spoken {
        let id = Some(&*self.ticket.quoted);
        self.conversation.say_of(&self.ticket, Last::No, |line| event(line, id, kind, members))
    }

    /// The last event, unless there was one already.
    pub(super) fn end(&self, kind: &str, members: &[(&str, Value)]) {
        let id = Some(&*self.ticket.quoted);
        self.conversation.say_of(&self.ticket, Last::Yes, |line| event(line, id, kind, members));
        self.over.cancel();
    }

    /// The last event: it did not work.
    pub(super) fn fail(&self, problem: &Problem) {
        let error = |message: &str, rest: (&'static str, Value)| {
            self.end("error", &[("message", Value::from(message)), rest])
        };
        let code = |code: &'static str| ("code", Value::from(code));
        match problem {
            Problem::Failed(Failure { code: word, message }) => error(message, code(word.word())),
            Problem::Params(message) => error(message, code("invalid_params")),
            Problem::Refused { code: word, message } => error(message, code(word)),
            Problem::Internal(what) => {
                error(&format!("Internal sidecar error: {what}"), ("internal", Value::from(true)))
            }
        }
    }

    /// There is nothing to say.
    pub(super) fn silence(self) {
        self.conversation.over(&self.ticket);
        self.over.cancel();
    }

    /// Cancelled when the last event was said.
    pub(super) fn over(&self) -> &CancellationToken {
        &self.over
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if !self.over.is_cancelled() {
            self.fail(&Problem::Internal("it was forgotten".to_owned()));
        }
    }
}

impl Problem {
    pub(super) fn closing() -> Self {
        Self::Refused { code: "closing", message: "the sidecar is shutting down".to_owned() }
    }

    pub(super) fn timeout(what: &str) -> Self {
        Self::Failed(Failure::new(FailureCode::Timeout, format!("{what} took too long")))
    }

    pub(super) fn message(&self) -> String {
        match self {
            Self::Failed(failure) => failure.message.clone(),
            Self::Params(message) | Self::Refused { message, .. } => message.clone(),
            Self::Internal(what) => format!("Internal sidecar error: {what}"),
        }
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
