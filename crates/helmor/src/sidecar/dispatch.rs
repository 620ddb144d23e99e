//! Which method is which. What takes no time is done before the next line is read, and in order; the rest begins in order and
//! goes on by itself.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};

use outrigger_wire::line::{Defective, Item, TooLong};
use serde_json::Value;
use serde_json::value::RawValue;

use super::conversation::{Refused, Takes};
use super::core::{Core, said};
use super::queries;
use super::reply::{Problem, Reply};
use super::turn;
use crate::protocol::{
    GenerateTitle, GetContextUsage, Incoming, ListModels, ListSlashCommands, MutateGoal, ParamError,
    PermissionResponse, ProviderName, SendMessage, SteerSession, StopSession, UpdateConfig,
    UserInputResponse,
};

/// How many characters of a bad line the host gets back.
const HEAD: usize = 100;

/// Does what a line says, or says why not.
pub(super) fn line(core: &Arc<Core>, item: &Item<'_>) {
    match item {
        // The policy checks the text, so it is text.
        Item::Line(line) => read(core, &line.text_lossy()),
        Item::TooLong(TooLong { limit, head, .. }) => {
            let why = format!("line is longer than {limit} bytes");
            invalid(core, None, &why, &String::from_utf8_lossy(head));
        }
        Item::Defective(Defective { defect, bytes }) => {
            let head = &bytes[..bytes.len().min(4 * HEAD)];
            invalid(core, None, &defect.to_string(), &String::from_utf8_lossy(head));
        }
    }
}

fn read(core: &Arc<Core>, line: &str) {
    match Incoming::read(line) {
        Incoming::Request { id, method, params } => {
            let takes = if NO_TIME.contains(&&*method) { Takes::NoTime } else { Takes::Time };
            let refused = |code: &str, message: &str| {
                let members = [("message", Value::from(message)), ("code", Value::from(code))];
                core.conversation.say(Some(&id), "error", &members);
            };
            match Reply::to(&core.conversation, &id, takes) {
                Ok(reply) => guarded(core, reply, &method, params),
                Err(Refused::Taken) => invalid(core, None, "a request in flight has this id", line),
                Err(Refused::Overloaded) => refused("overloaded", "too many requests are in flight"),
                Err(Refused::Closing) => refused("closing", "the sidecar is shutting down"),
            }
        }
        Incoming::HostResponse { callback_id, answer } => {
            let value = |raw: &RawValue| serde_json::from_str(raw.get()).map_err(|error| error.to_string());
            let answer = answer.and_then(|ok| ok.map_or(Ok(Value::Null), value));
            core.conversation.called_back(&callback_id, answer);
        }
        Incoming::Bad { id, why } => invalid(core, id.as_deref(), &why, line),
    }
}

fn invalid(core: &Core, id: Option<&str>, why: &str, line: &str) {
    let head: String = line.chars().take(HEAD).collect();
    let message = format!("Invalid request: {why} ({head})");
    core.conversation.say(id, "error", &[("message", Value::from(message))]);
}

/// A defect of ours, or of what a driver does before it waits, ends one request and not the sidecar.
fn guarded(core: &Arc<Core>, reply: Reply, method: &str, params: &RawValue) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| dispatch(core, reply, method, params))) {
        core.log.error(format_args!("a request of {method} panicked: {}", said(&*panic)));
    }
}

/// What is answered before the next line is read. Never too many of these are in flight.
const NO_TIME: [&str; 5] = ["ping", "stopSession", "permissionResponse", "userInputResponse", "shutdown"];

fn dispatch(core: &Arc<Core>, reply: Reply, method: &str, params: &RawValue) {
    core.log.debug(method);
    if let Some(replay) = &core.replay
        && !matches!(method, "ping" | "shutdown")
    {
        core.tasks.spawn(replay.play(reply, method));
        return;
    }
    match method {
        "ping" => reply.end("pong", &[]),
        "sendMessage" => given(core, reply, SendMessage::read(params), turn::send),
        "stopSession" => given(core, reply, StopSession::read(params), stop),
        "steerSession" => steer(core, reply, params),
        "permissionResponse" => given(core, reply, PermissionResponse::read(params), permit),
        "userInputResponse" => given(core, reply, UserInputResponse::read(params), answer),
        "generateTitle" => given(core, reply, GenerateTitle::read(params), queries::title),
        "listModels" => given(core, reply, ListModels::read(params), queries::models),
        "listSlashCommands" => given(core, reply, ListSlashCommands::read(params), queries::slash_commands),
        "getContextUsage" => given(core, reply, GetContextUsage::read(params), queries::context_usage),
        "updateConfig" => given(core, reply, UpdateConfig::read(params), queries::update_config),
        "mutateCodexGoal" => given(core, reply, MutateGoal::read(params), queries::mutate_goal),
        "shutdown" => shutdown(core, reply),
        _ => {
            let (code, message) = ("unknown_method", format!("Unknown method: {method}"));
            reply.fail(&Problem::Refused { code, message });
        }
    }
}

/// Goes on with the parameters, or says what is wrong with them.
fn given<P>(core: &Arc<Core>, reply: Reply, read: Result<P, ParamError>, then: fn(&Arc<Core>, Reply, P)) {
    match read {
        Ok(params) => then(core, reply, params),
        Err(error) => reply.fail(&Problem::Params(error.to_string())),
    }
}

fn stop(core: &Arc<Core>, reply: Reply, StopSession { session_id, provider }: StopSession) {
    if let ProviderName::Acp(_) = &provider
        && let Err(problem) = core.provider(&provider)
    {
        return reply.fail(&problem);
    }
    let key = (provider, session_id);
    if let Some(session) = core.sessions.get(&key) {
        turn::stop(&session, "user_requested");
    }
    reply.end("stopped", &[("sessionId", Value::from(key.1))]);
}

/// Never answered with an error: hosts wait for `steered`.
fn steer(core: &Arc<Core>, reply: Reply, params: &RawValue) {
    let (session_id, steered) = match SteerSession::read(params) {
        Ok(SteerSession { session_id, provider, steer }) => {
            let key = (provider, session_id);
            let session = core.sessions.get(&key);
            (key.1, Ok(turn::steer(session.as_deref(), steer)))
        }
        Err(error) => (SteerSession::session_of(params), Err(error.to_string())),
    };
    core.tasks.spawn(async move {
        let taken = match steered {
            Ok(steered) => steered.await,
            Err(why) => Err(why),
        };
        let session_id = ("sessionId", Value::from(session_id));
        match taken {
            Ok(()) => reply.end("steered", &[session_id, ("accepted", Value::from(true))]),
            Err(why) => {
                let accepted = ("accepted", Value::from(false));
                reply.end("steered", &[session_id, accepted, ("reason", Value::from(why))])
            }
        }
    });
}

fn permit(core: &Arc<Core>, reply: Reply, PermissionResponse { permission_id, verdict }: PermissionResponse) {
    let nobody = format!("No active waiter for permissionId={permission_id}");
    settle(reply, core.conversation.permit(permission_id, verdict), nobody);
}

fn answer(core: &Arc<Core>, reply: Reply, UserInputResponse { user_input_id, answer }: UserInputResponse) {
    let nobody = format!("No active waiter for userInputId={user_input_id}");
    settle(reply, core.conversation.answer(user_input_id, answer), nobody);
}

fn settle(reply: Reply, somebody_waited: bool, nobody: String) {
    if somebody_waited {
        reply.silence();
    } else {
        reply.fail(&Problem::Refused { code: "unknown_waiter", message: nobody });
    }
}

fn shutdown(core: &Core, reply: Reply) {
    core.conversation.close();
    *core.shutdown.lock().unwrap_or_else(PoisonError::into_inner) = Some(reply);
    core.shut_down.cancel();
}
