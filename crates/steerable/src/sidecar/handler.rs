//! Which method is which: takes requests from the peer and answers what is irregular in the dialect's words.

use std::sync::Arc;

use outrigger_wire::peer::{
    Answer, BoxFuture, Call, Complaint, End, Farewell, Handler, Note, Outcome, Peer, Reaction,
};
use outrigger_wire::rpc::{Defect, ErrorObject};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::answer::{done, shown, soon, stored};
use super::life::Life;
use super::runtime::Runtime;
use super::{calls, chat, sessions, traces};
use crate::protocol::{Kind, with_data};

/// The child's end of the conversation.
pub(super) struct Desk {
    pub(super) runtime: Arc<Runtime>,
    pub(super) life: Arc<Life>,
}

impl Handler for Desk {
    fn request(&self, mut call: Call) -> Answer {
        let runtime = &self.runtime;
        let store = || runtime.store.clone();
        runtime.log.debug("steerable.rpc", format_args!("{} {}", call.method, call.id));
        match call.method.as_str() {
            "system.ping" => Answer::Now(Ok(runtime.health())),
            "system.shutdown" => self.shutdown(call.peer),
            "system.shutdown_now" => {
                self.life.now(runtime);
                call.peer.begin_close();
                Answer::Now(done())
            }
            "agent.session.create" => soon(sessions::create(store(), call.params.take())),
            "agent.session.resume" => soon(sessions::resume(store(), call.params.take())),
            "agent.session.list" => soon(sessions::list(store(), call.params.take())),
            "agent.session.messages" => soon(sessions::messages(store(), call.params.take())),
            "agent.session.fork" => soon(sessions::fork(store(), call.params.take())),
            "agent.chat.stream" => chat::stream(runtime, call),
            "agent.chat.cancel" => Answer::Now(chat::cancel(runtime, call.params.as_deref())),
            "agent.chat.steer" => Answer::Now(chat::steer(runtime, call.params.as_deref())),
            "agent.chat.compact" => Answer::Now(chat::compact(runtime, call.params.as_deref())),
            "tool.list" => Answer::Now(calls::list(runtime)),
            "tool.invoke" => soon(calls::invoke(Arc::clone(runtime), call.params.take())),
            "trace.fetch" => soon(traces::fetch(store(), call.params.take())),
            "trace.export" => soon(traces::export(Arc::clone(runtime), call.params.take())),
            "config.get" => Answer::Now(shown(&runtime.settings().shown(&runtime.options.version))),
            "config.set" => soon(set(Arc::clone(runtime), call.params.take())),
            unknown => Answer::Now(Err(no_such_method(unknown))),
        }
    }

    /// No method is served as a notification.
    fn notification(&self, note: Note) -> Option<BoxFuture<()>> {
        self.runtime.log.debug("steerable.rpc", format_args!("a notification is ignored: {}", note.method));
        None
    }

    fn complain(&self, complaint: &Complaint<'_>) -> Reaction {
        let message = complaint.to_error().message;
        let kind = match complaint {
            Complaint::Refused(refusal) => match refusal.defect {
                Defect::NotUtf8 | Defect::NotJson | Defect::DuplicateKey => Kind::Parse,
                Defect::TooDeep
                | Defect::NotAnObject
                | Defect::BatchUnsupported
                | Defect::BatchEmpty
                | Defect::BatchTooLarge
                | Defect::BadId
                | Defect::DuplicateId
                | Defect::BadVersion
                | Defect::BadMethod
                | Defect::Ambiguous
                | Defect::ReplyWithoutId
                | Defect::BadError => Kind::InvalidRequest,
            },
            Complaint::Defective(_) => Kind::Parse,
            Complaint::TooLong { .. } | Complaint::Busy { .. } => Kind::InvalidRequest,
            Complaint::Panicked | Complaint::ReplyTooLong { .. } => Kind::Internal,
            Complaint::Cancelled => Kind::Cancelled,
            Complaint::Blank
            | Complaint::NotificationDropped
            | Complaint::UnknownReply
            | Complaint::LateReply
            | Complaint::OrphanError(_) => {
                self.runtime.log.debug("steerable.rpc", format_args!("a line is ignored: {complaint:?}"));
                return Reaction::Ignore;
            }
        };
        self.runtime.log.debug("steerable.rpc", format_args!("a line is refused: {message}"));
        Reaction::Answer(kind.error(message))
    }

    fn farewell(&self, end: &End) -> Option<Farewell> {
        let params = to_raw_value(&json!({"reason": self.life.reason(end)})).ok()?;
        Some(Farewell { method: "lifecycle.shutdown".to_owned(), params: Some(params) })
    }
}

impl Desk {
    /// Answers when everything has ended and was told; then the conversation is closed.
    fn shutdown(&self, peer: Peer) -> Answer {
        let (runtime, life) = (Arc::clone(&self.runtime), Arc::clone(&self.life));
        // At once, so that a request behind this one finds it closed.
        runtime.streams.close();
        Answer::Later(Box::pin(async move {
            life.drain(&runtime, &peer, runtime.settings().grace_period).await;
            life.close();
            done()
        }))
    }
}

/// `config.set`: all are judged, then kept, then set.
async fn set(runtime: Arc<Runtime>, params: Option<Box<RawValue>>) -> Outcome {
    let _turn = runtime.setting.lock().await;
    let settings = runtime.settings().changed_by(params.as_deref())?;
    runtime.store.keep_settings(&settings.to_map()).await.map_err(|error| stored(&error))?;
    runtime.set(settings);
    done()
}

fn no_such_method(method: &str) -> ErrorObject {
    let shown: String = method.chars().take(200).collect();
    let error = Kind::MethodNotFound.error(format!("unknown method '{shown}'"));
    with_data(error, &json!({"method": shown}))
}
