//! `agent.chat.*`: opens streams, stops and steers them.

use std::path::Path;
use std::sync::Arc;

use outrigger_wire::peer::{Answer, Call, Outcome};
use outrigger_wire::rpc::ErrorObject;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::answer::{done, shown, shutting_down};
use super::outlet::{Named, Outlet};
use super::plain;
use super::runtime::Runtime;
use super::streams::{MAX_LIVE, Refused, Steered, TurnNames};
use super::turn::{self, Plan, steer_mode};
use crate::agent;
use crate::model::{CacheMarks, Patience, Provider, Request, Script};
use crate::protocol::{Kind, Settings, Steer, StreamParams, read_stream_id};
use crate::store::{TraceHead, fresh_id};

/// `agent.chat.stream`: judges the params, opens the stream, and answers with its name. The stream begins to speak when the
/// answer has been written.
pub(super) fn stream(runtime: &Arc<Runtime>, call: Call) -> Answer {
    let (written, answered) = oneshot::channel();
    match open(runtime, call, answered) {
        Ok(stream_id) => Answer::Receipted { outcome: shown(&json!({"streamId": stream_id})), written },
        Err(error) => Answer::Now(Err(error)),
    }
}

/// `agent.chat.cancel`.
pub(super) fn cancel(runtime: &Runtime, params: Option<&RawValue>) -> Outcome {
    runtime.streams.cancel(&read_stream_id(params)?);
    done()
}

/// `agent.chat.steer`.
pub(super) fn steer(runtime: &Runtime, params: Option<&RawValue>) -> Outcome {
    let Steer { stream_id, content, mode } = Steer::read(params)?;
    let say = agent::Steer::Say { content, mode: mode.map(steer_mode) };
    steered(runtime.streams.steer(&stream_id, say))
}

/// `agent.chat.compact`.
pub(super) fn compact(runtime: &Runtime, params: Option<&RawValue>) -> Outcome {
    steered(runtime.streams.steer(&read_stream_id(params)?, agent::Steer::Compact))
}

fn steered(steered: Steered) -> Outcome {
    shown(&match steered {
        Steered::Heard => json!({"ok": true}),
        Steered::NotActive => json!({"ok": false, "reason": "stream_not_active"}),
        Steered::TooMany => json!({"ok": false, "reason": "too_many_messages"}),
    })
}

fn open(runtime: &Arc<Runtime>, call: Call, answered: oneshot::Receiver<()>) -> Result<String, ErrorObject> {
    let params = StreamParams::read(call.params.as_deref(), runtime.unsaid)?;
    if runtime.streams.is_closed() {
        return Err(shutting_down());
    }
    let (stream_id, named) = match params.stream_id.clone() {
        Some(id) => (id, Named::ByHost),
        None => (fresh_id("str_"), Named::ByUs),
    };
    if runtime.streams.is_live(&stream_id) {
        return Err(refused(Refused::Taken));
    }
    let plan = match params.turn.clone() {
        Some(turn) => Some(Plan::new(runtime, *turn)?),
        None => None,
    };
    if plan.as_ref().is_some_and(|plan| runtime.streams.is_written(plan.record.as_str())) {
        return Err(refused(Refused::RecordTaken));
    }
    let request = request(params, runtime.settings())?;
    let outlet = Outlet::new(call.peer, &stream_id, answered, named);
    let cancel = runtime.stop.child_token();
    let head = TraceHead {
        stream_id: Some(stream_id.clone()),
        user_id: plan.as_ref().and_then(Plan::user_id),
        chat_id: plan.as_ref().and_then(Plan::chat_id),
        session_id: plan.as_ref().map(|plan| plan.record.as_str().to_owned()),
        model_id: Some(request.model.clone()),
    };
    let runtime = Arc::clone(runtime);
    match plan {
        None => {
            let place = runtime.streams.open(stream_id.clone(), cancel).map_err(refused)?;
            let tracer = runtime.store.begin_trace(head);
            tokio::spawn(plain::run(runtime, place, request, tracer, outlet));
        }
        Some(plan) => {
            let tracer = runtime.store.begin_trace(head);
            let names =
                TurnNames { trace_id: tracer.id().to_owned(), record_id: plan.record.as_str().to_owned() };
            let opened = runtime.streams.open_turn(stream_id.clone(), cancel, names);
            let (place, steering) = opened.map_err(refused)?;
            tokio::spawn(turn::run(runtime, place, request, plan, tracer, steering, outlet));
        }
    }
    Ok(stream_id)
}

fn refused(refused: Refused) -> ErrorObject {
    match refused {
        Refused::Taken => Kind::InvalidParams.error("streamId must be the name of no live stream"),
        Refused::RecordTaken => {
            Kind::InvalidParams.error("recordId must be the name of a transcript that no live turn writes to")
        }
        Refused::TooMany => {
            Kind::InvalidRequest.error(format!("there are {MAX_LIVE} live streams, and no more are opened"))
        }
        Refused::ShuttingDown => shutting_down(),
    }
}

/// What the model is asked, with the settings where the stream does not say.
fn request(params: StreamParams, settings: Settings) -> Result<Request, ErrorObject> {
    let unknown = || Kind::InvalidParams.error(format!("provider must be one we know: {}", params.provider));
    let provider = Provider::from_word(&params.provider).ok_or_else(unknown)?;
    if provider == Provider::Scripted {
        // A script is a file of ours to read, so what is wrong with it can be told before anything is promised.
        let path = params.base_url.as_deref().unwrap_or_default();
        Script::open(Path::new(path))
            .map_err(|error| Kind::InvalidParams.error(format!("baseUrl: {error}")))?;
    }
    let patience = Patience {
        connect: params.connect_timeout.unwrap_or(settings.connect_timeout),
        idle: params.idle_timeout.unwrap_or(settings.idle_timeout),
        total: params.total_timeout.unwrap_or(settings.total_timeout),
        attempts: params.retry_max_attempts.unwrap_or(settings.retry_max_attempts),
        ..Patience::STANDARD
    };
    Ok(Request {
        base_url: params.base_url,
        api_key: params.api_key,
        tools: params.tools,
        temperature: params.temperature,
        max_tokens: params.max_tokens,
        reasoning_effort: params.reasoning_effort,
        options: params.provider_options,
        cache: if params.cache_control { CacheMarks::Send } else { CacheMarks::Omit },
        patience,
        ..Request::new(provider, params.model, params.messages)
    })
}
