//! `agent.session.*`.

use outrigger_wire::peer::Outcome;
use outrigger_wire::rpc::ErrorObject;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::answer::{shown, stored};
use crate::protocol::{
    ForkUntil, Kind, SessionCreate, SessionFork, SessionList, not_found, read_record_id, read_session_id,
    write_message,
};
use crate::store::{
    Filter, Fork, ForkError, ForkPoint, NewSession, RecordId, Seq, Store, Stored, Which, fresh_id,
};

pub(super) async fn create(store: Store, params: Option<Box<RawValue>>) -> Outcome {
    let asked = SessionCreate::read(params.as_deref())?;
    let new = NewSession {
        session_id: asked.session_id.unwrap_or_else(|| fresh_id("sess_")),
        user_id: asked.user_id,
        chat_id: asked.chat_id,
        current_stage: asked.current_stage,
        scenario: asked.scenario,
        stage_data: asked.stage_data,
        project_id: asked.project_id,
    };
    shown(&store.create_session(new).await.map_err(|error| stored(&error))?)
}

pub(super) async fn resume(store: Store, params: Option<Box<RawValue>>) -> Outcome {
    let id = read_session_id(params.as_deref())?;
    match store.session(&id).await.map_err(|error| stored(&error))? {
        Some(session) => shown(&session),
        None => Err(not_found(format!("session not found: {id}"))),
    }
}

pub(super) async fn list(store: Store, params: Option<Box<RawValue>>) -> Outcome {
    let SessionList { user_id, chat_id, active_only, limit } = SessionList::read(params.as_deref())?;
    let filter = Filter {
        user_id,
        chat_id,
        which: if active_only { Which::Active } else { Which::All },
        limit: limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
    };
    shown(&store.sessions(filter).await.map_err(|error| stored(&error))?)
}

pub(super) async fn messages(store: Store, params: Option<Box<RawValue>>) -> Outcome {
    let record = RecordId::new(read_record_id(params.as_deref())?);
    if !store.has_record(&record).await.map_err(|error| stored(&error))? {
        return Err(not_found(format!("record not found: {}", record.as_str())));
    }
    let messages = store.history(&record).await.map_err(|error| stored(&error))?;
    let message = |Stored { seq: Seq(seq), message }: Stored| {
        let mut members = Map::new();
        members.insert("seq".into(), seq.into());
        write_message(&mut members, &message);
        Value::Object(members)
    };
    let messages: Vec<Value> = messages.into_iter().map(message).collect();
    shown(&json!({"recordId": record.as_str(), "messages": messages}))
}

pub(super) async fn fork(store: Store, params: Option<Box<RawValue>>) -> Outcome {
    let asked = SessionFork::read(params.as_deref())?;
    let fork = Fork {
        source: RecordId::new(asked.record_id),
        until: match asked.until {
            ForkUntil::End => ForkPoint::End,
            ForkUntil::Seq(seq) => ForkPoint::Until(Seq(seq)),
            ForkUntil::BeforeLastUser => ForkPoint::BeforeLastUser,
            ForkUntil::BeforeUserIndex(index) => {
                ForkPoint::BeforeUser(usize::try_from(index).unwrap_or(usize::MAX))
            }
        },
        new_record: asked.new_record_id.map(RecordId::new),
        label: asked.label,
    };
    let forked = store.fork(fork).await.map_err(|error| refused(&error))?;
    shown(&json!({
        "recordId": forked.record.as_str(),
        "sourceRecordId": forked.source.as_str(),
        "sourceUntilSeq": forked.source_until.0,
        "label": forked.label,
        "seedMessages": forked.seed_messages,
    }))
}

fn refused(error: &ForkError) -> ErrorObject {
    match error {
        ForkError::Store(error) => stored(error),
        ForkError::Taken { .. } | ForkError::BeyondEnd { .. } | ForkError::NoUserMessage { .. } => {
            Kind::InvalidParams.error(error.to_string())
        }
    }
}
