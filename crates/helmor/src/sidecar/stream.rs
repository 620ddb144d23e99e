//! The stream of a turn: what its driver tells and asks reaches the host here, until the turn is over for the host.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::conversation::{Question, ROOM, Sender, Spoken};
use super::log::Log;
use super::reply::{Problem, Reply};
use super::spell::event;
use crate::BoxFuture;
use crate::protocol::Steer;
use crate::provider::{Answer, Asked, Desk, InputAsk, PermissionAsk, Verdict};

/// How long the host may take to answer a call.
const HOST_CALL: Duration = Duration::from_secs(60);

/// Words that only the sidecar says, because they end a stream.
const TERMINAL: [&str; 3] = ["end", "aborted", "error"];

pub(super) struct Stream {
    pub(super) reply: Arc<Reply>,
    pub(super) session_id: String,
    pub(super) log: Log,
}

impl Stream {
    fn spoken(&self, spoken: Spoken) {
        match spoken {
            Spoken::Said | Spoken::Over => {}
            Spoken::Nonsense => self.log.error("a driver passes on what is no object"),
            Spoken::TooMuch => {
                let what = "its driver says more than the host reads, and does not wait".to_owned();
                self.reply.fail(&Problem::Internal(what));
            }
        }
    }

    fn ask<T>(
        &self,
        question: Question,
        (sender, answer): (Sender, oneshot::Receiver<T>),
        kind: &str,
        members: &[(&str, Value)],
    ) -> Asked<T> {
        let (conversation, ticket) = (&self.reply.conversation, &self.reply.ticket);
        let write = |line: &mut Vec<u8>| {
            event(line, Some(&ticket.quoted), kind, members);
        };
        let asked = conversation.ask(ticket, question.clone(), sender, write);
        let conversation = Arc::clone(conversation);
        Asked::new(answer, move || {
            if let Some(serial) = asked {
                conversation.withdraw(&question, serial);
            }
        })
    }
}

impl Desk for Stream {
    fn pass(&self, object: &str) {
        let spoken = self.reply.pass(object);
        self.spoken(spoken);
    }

    fn tell(&self, kind: &str, members: &[(&str, Value)]) {
        if TERMINAL.contains(&kind) {
            // How a stream ends is what a turn returns.
            self.log.error(format_args!("a driver tells `{kind}`, which is not for it to say"));
            return;
        }
        let spoken = self.reply.tell(kind, members);
        self.spoken(spoken);
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        if self.reply.conversation.waiting() <= ROOM {
            return Box::pin(std::future::ready(()));
        }
        Box::pin(async {
            tokio::select! {
                () = self.reply.conversation.room(ROOM) => {}
                // What is told from here on is dropped, so there is room for all of it.
                () = self.reply.over().cancelled() => {}
            }
        })
    }

    fn ask_permission(&self, ask: PermissionAsk) -> Asked<Verdict> {
        let (sender, answer) = oneshot::channel();
        let mut members = vec![
            ("permissionId", Value::from(ask.id.as_str())),
            ("toolName", Value::from(ask.tool_name)),
            ("toolInput", Value::Object(ask.tool_input)),
        ];
        members.extend(ask.call_id.map(|call| ("callId", Value::from(call))));
        members.extend(ask.title.map(|title| ("title", Value::from(title))));
        members.extend(ask.description.map(|description| ("description", Value::from(description))));
        if !ask.suggestions.is_empty() {
            members.push(("suggestions", Value::from(ask.suggestions)));
        }
        if !ask.required {
            members.push(("required", Value::from(false)));
        }
        let question = Question::Permission(ask.id);
        self.ask(question, (Sender::Permission(sender), answer), "permissionRequest", &members)
    }

    fn ask_input(&self, ask: InputAsk) -> Asked<Answer> {
        let (sender, answer) = oneshot::channel();
        let members = [
            ("userInputId", Value::from(ask.id.as_str())),
            ("source", Value::from(ask.source)),
            ("message", Value::from(ask.message)),
            ("payload", ask.payload),
        ];
        self.ask(Question::Input(ask.id), (Sender::Input(sender), answer), "userInputRequest", &members)
    }

    fn steered(&self, steer: &Steer) {
        let mut members = vec![("text", Value::from(steer.prompt.as_str())), ("steer", Value::from(true))];
        for (name, said) in [("files", &steer.files), ("images", &steer.images)] {
            if !said.is_empty() {
                members.push((name, Value::from(said.as_slice())));
            }
        }
        let spoken = self.reply.tell("user_prompt", &members);
        self.spoken(spoken);
    }

    fn context_lost(&self, resume: &str, reason: &str) {
        let members = [
            ("sessionId", Value::from(self.session_id.as_str())),
            ("resume", Value::from(resume)),
            ("reason", Value::from(reason)),
        ];
        let spoken = self.reply.tell("contextReset", &members);
        self.spoken(spoken);
    }

    fn host_call<'a>(&'a self, method: &'a str, params: Value) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async move {
            if self.reply.over().is_cancelled() {
                return Err("the turn is over".to_owned());
            }
            let (name, answer) = self.reply.conversation.call(method, &params);
            let answer = tokio::select! {
                answer = timeout(HOST_CALL, answer) => match answer {
                    Ok(answer) => answer.unwrap_or_else(|_| Err("the host will not answer".to_owned())),
                    Err(_) => Err(format!("the host did not answer {method} within {HOST_CALL:?}")),
                },
                () = self.reply.over().cancelled() => Err("the turn is over".to_owned()),
            };
            self.reply.conversation.forget(&name);
            answer
        })
    }

    fn log(&self, message: &str) {
        self.log.info(message);
    }
}
