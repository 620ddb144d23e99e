//! The rules, in the order in which they are tried.

use outrigger_wire::conformance::{Rule, Verdict, Weight};

use super::conversation::Conversation;
use super::suite::Suite;
use super::{life, lines, methods, streams};
use crate::chat::BoxFuture;

/// Tries a rule within a conversation that goes on.
pub(super) type Judge = for<'a> fn(&'a Suite<'_>, &'a mut Conversation) -> BoxFuture<'a, Verdict>;

/// Tries a rule with children of its own.
pub(super) type LifeJudge = for<'a> fn(&'a mut Suite<'_>) -> BoxFuture<'a, Verdict>;

const fn must(name: &'static str, words: &'static str, mend: &'static str) -> Rule {
    Rule { name, words, mend, weight: Weight::Must }
}

const fn should(name: &'static str, words: &'static str, mend: &'static str) -> Rule {
    Rule { name, words, mend, weight: Weight::Should }
}

pub(super) const STARTS: Rule = must(
    "starts",
    "it starts and answers a ping",
    "look at its log: it must read requests from standard input and answer on standard output",
);
pub(super) const MARKER: Rule = must(
    "ready_marker",
    "a line of standard error is `__SIDECAR_READY__:` and a health",
    "write the marker with the health as compact JSON, one line, flushed, before the first frame; hosts wait for it for 15 s",
);
pub(super) const READY_FIRST: Rule = must(
    "ready_first",
    "the first line on standard output is `lifecycle.ready` with version, protocolVersion, pid and listenInfo",
    "send the notification before anything else is written",
);
pub(super) const FRAMES: Rule = must(
    "stdout_frames",
    "nothing but JSON-RPC 2.0 frames is on standard output",
    "send logs, banners and prints of libraries to standard error, and put \"jsonrpc\":\"2.0\" into every frame",
);

pub(super) const CONVERSATION: &[(Rule, Judge)] = &[
    (
        must(
            "ping_health",
            "`system.ping` answers with a health",
            "send status, version, protocolVersion, uptimeMs, pid, platform, loadedTools and activeTraces, of the right types",
        ),
        |s, c| Box::pin(methods::ping(s, c)),
    ),
    (
        must(
            "id_echo",
            "an answer has the id of its request, whatever JSON value that is",
            "echo the id as it came: numbers stay numbers, strings strings, null null",
        ),
        |s, c| Box::pin(lines::id_echo(s, c)),
    ),
    (
        should(
            "explicit_null",
            "a success without a value has \"result\":null, and an answer to no one \"id\":null",
            "do not drop null members when a response is written",
        ),
        |s, c| Box::pin(lines::explicit_null(s, c)),
    ),
    (
        must(
            "parse_error",
            "a line that is not JSON is answered with -32700, and the sidecar goes on",
            "catch the error of the JSON parser, answer with id null, read on",
        ),
        |s, c| Box::pin(lines::parse_error(s, c)),
    ),
    (
        must(
            "invalid_request",
            "JSON that is no request is answered with -32600, and the sidecar goes on",
            "check that a frame is an object with a method before it is dispatched",
        ),
        |s, c| Box::pin(lines::invalid_request(s, c)),
    ),
    (
        must(
            "jsonrpc_member",
            "a request without `jsonrpc` is served, one with another version is answered with -32600",
            "check the member only if it is there",
        ),
        |s, c| Box::pin(lines::jsonrpc_member(s, c)),
    ),
    (
        must(
            "unknown_method",
            "an unknown method is answered with -32601 and data.method",
            "answer with code -32601 and data {\"method\": …}",
        ),
        |s, c| Box::pin(lines::unknown_method(s, c)),
    ),
    (
        must(
            "error_kinds",
            "every error has the stable `kind` that hosts branch on",
            "add kind to the error object: parse, invalid_request, method_not_found, invalid_params, …",
        ),
        |s, c| Box::pin(lines::error_kinds(s, c)),
    ),
    (
        must(
            "batch",
            "an array of requests is answered with an array of answers",
            "answer the requests of a batch in one array, none for notifications; an empty array is -32600",
        ),
        |s, c| Box::pin(lines::batch(s, c)),
    ),
    (
        must(
            "notification",
            "a request without an id does nothing and is not answered",
            "dispatch only frames that have an id",
        ),
        |s, c| Box::pin(lines::notification(s, c)),
    ),
    (
        must(
            "white_space",
            "CRLF, blanks around a frame and blank lines are fine",
            "strip a line before it is parsed, and skip it if it is empty",
        ),
        |s, c| Box::pin(lines::white_space(s, c)),
    ),
    (
        must(
            "invalid_utf8",
            "a line that is not UTF-8 is answered with -32700, and the sidecar goes on",
            "read bytes, decode each line by itself, and answer if that fails",
        ),
        |s, c| Box::pin(lines::invalid_utf8(s, c)),
    ),
    (
        must(
            "deep_nesting",
            "a line nested 100,000 deep is answered with an error, and the sidecar goes on",
            "bound the depth before or while parsing; recursion overflows the stack",
        ),
        |s, c| Box::pin(lines::deep_nesting(s, c)),
    ),
    (
        must(
            "long_line",
            "a line of 16 MiB is served, a longer one answered with -32600, and the sidecar goes on",
            "read with a limit of your own instead of that of your line reader, and skip to the next newline",
        ),
        |s, c| Box::pin(lines::long_line(s, c)),
    ),
    (
        must(
            "order",
            "a thousand pings that are written at once are all answered, in order",
            "answer quick requests in the order in which they came",
        ),
        |s, c| Box::pin(lines::order(s, c)),
    ),
    (
        must(
            "session_create",
            "`agent.session.create` answers with a whole session",
            "send sessionId, userId, chatId, currentStage, isActive, createdAt and updatedAt, with the documented defaults",
        ),
        |s, c| Box::pin(methods::session_create(s, c)),
    ),
    (
        must(
            "session_resume",
            "`agent.session.resume` answers with the same session, and -32004 if there is none",
            "make it a pure read; answer an unknown id with code -32004",
        ),
        |s, c| Box::pin(methods::session_resume(s, c)),
    ),
    (
        must(
            "session_list",
            "`agent.session.list` filters, and has the last updated first",
            "sort by updatedAt, newest first, and compare userId and chatId exactly",
        ),
        |s, c| Box::pin(methods::session_list(s, c)),
    ),
    (
        must(
            "tool_list",
            "`tool.list` answers with OpenAI tool objects",
            "wrap each tool: {\"type\":\"function\",\"function\":{name, description, parameters}}",
        ),
        |s, c| Box::pin(methods::tool_list(s, c)),
    ),
    (
        must(
            "tool_invoke",
            "a tool that is not there is a result with success:false, not an error",
            "answer with {\"success\":false,\"error\":…,\"terminal\":false,\"needsFollowup\":false}",
        ),
        |s, c| Box::pin(methods::tool_invoke(s, c)),
    ),
    (
        must(
            "config",
            "`config.get` shows what `config.set` set",
            "answer with logLevel, gracePeriodSeconds, version and protocolVersion, and keep what is set",
        ),
        |s, c| Box::pin(methods::config(s, c)),
    ),
    (
        should(
            "config_checked",
            "`config.set` refuses unknown keys and bad values, and then sets nothing",
            "judge all keys before any is set, and answer -32602 naming the key",
        ),
        |s, c| Box::pin(methods::config_checked(s, c)),
    ),
    (
        must(
            "params_checked",
            "params that are missing or no object are answered with -32602",
            "check params by hand instead of letting an exception become -32603",
        ),
        |s, c| Box::pin(methods::params_checked(s, c)),
    ),
    (
        must(
            "stream_params",
            "a stream whose params are wrong is refused with -32602 before it begins",
            "check provider, model and messages before the answer",
        ),
        |s, c| Box::pin(streams::params(s, c)),
    ),
    (
        must(
            "stream_text",
            "a stream is answered with its id; then its text comes, in order and whole; then one stream.done",
            "send the answer first, decode across the boundaries of reads, and end every stream exactly once",
        ),
        |s, c| Box::pin(streams::text(s, c)),
    ),
    (
        should(
            "stream_usage",
            "what a stream cost is told",
            "ask the provider for it (stream_options.include_usage) and pass it on as usage",
        ),
        |s, c| Box::pin(streams::usage(s, c)),
    ),
    (
        must(
            "stream_tool_calls",
            "a tool call is one whole chunk, before the finish reason",
            "collect the fragments by index, and send each call once, with its arguments as an object",
        ),
        |s, c| Box::pin(streams::tool_calls(s, c)),
    ),
    (
        must(
            "stream_error",
            "a provider's refusal ends the stream with one stream.error",
            "end with stream.error {kind, message}, and no stream.done after it",
        ),
        |s, c| Box::pin(streams::error(s, c)),
    ),
    (
        should(
            "stream_error_kind",
            "the kind of a stream.error is one of the stable words",
            "use transport, rate_limit, context_overflow, auth, invalid_request, server, timeout, cancelled or unknown",
        ),
        |s, c| Box::pin(streams::error_kind(s, c)),
    ),
    (
        must(
            "stream_cancel",
            "a cancelled stream ends soon with stream.done, ok:false and cancelled:true",
            "abort the HTTP request when the cancel comes, and answer it at once",
        ),
        |s, c| Box::pin(streams::cancel(s, c)),
    ),
    (
        must(
            "stream_interleaves",
            "a stream that waits delays neither pings nor other streams",
            "run every stream in a task of its own",
        ),
        |s, c| Box::pin(streams::interleaves(s, c)),
    ),
    (
        should(
            "stream_id_taken",
            "the id of a live stream is refused with -32602",
            "look the id up before a stream is begun",
        ),
        |s, c| Box::pin(streams::id_taken(s, c)),
    ),
];

pub(super) const LIFE: &[(Rule, LifeJudge)] = &[
    (
        must(
            "shutdown_drains",
            "`system.shutdown` ends live streams as cancelled, then answers null, then says goodbye, then exits with 0",
            "cancel the streams and wait for their terminals before the answer; lifecycle.shutdown is the last frame",
        ),
        |s| Box::pin(life::shutdown(s)),
    ),
    (
        must(
            "shutdown_now",
            "`system.shutdown_now` is answered, says goodbye and exits with 0",
            "answer, send lifecycle.shutdown {\"reason\":\"normal\"}, exit",
        ),
        |s| Box::pin(life::shutdown_now(s)),
    ),
    (
        must(
            "eof",
            "it leaves with 0 when its input ends, and says goodbye with reason eof",
            "treat the end of standard input as a shutdown",
        ),
        |s| Box::pin(life::eof(s)),
    ),
    (
        must(
            "sigterm",
            "it leaves with 0 when it gets SIGTERM, and says goodbye",
            "handle SIGTERM like system.shutdown_now",
        ),
        |s| Box::pin(life::sigterm(s)),
    ),
    (
        should(
            "quiet_ready",
            "`--quiet-ready` leaves out the marker and nothing else",
            "skip only the line on standard error",
        ),
        |s| Box::pin(life::quiet_ready(s)),
    ),
    (
        should(
            "bad_flag",
            "a flag that it does not know ends it with 2, without a marker",
            "let the parser of your arguments refuse it before anything is started",
        ),
        |s| Box::pin(life::bad_flag(s)),
    ),
];
