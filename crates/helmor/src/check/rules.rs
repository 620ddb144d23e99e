//! The rules, in the order in which they are tried.

use outrigger_wire::conformance::{Rule, Verdict, Weight};

use super::conversation::Conversation;
use super::suite::Suite;
use super::{life, lines, methods, turns};
use crate::BoxFuture;

/// Tries a rule within a conversation that goes on.
pub(super) type Judge = for<'a> fn(&'a mut Suite<'_>, &'a mut Conversation) -> BoxFuture<'a, Verdict>;

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
    "it starts and says that it is ready",
    "look at its log: it must write {\"type\":\"ready\",\"version\":1} as soon as it can be asked",
);
pub(super) const READY_FIRST: Rule = must(
    "ready_first",
    "the first line on standard output is `ready`, version 1",
    "write it before anything else; hosts wait for exactly this line",
);
pub(super) const FRAMES: Rule = must(
    "stdout_frames",
    "nothing but JSON objects with a `type` is on standard output",
    "send logs, banners and prints of libraries to standard error",
);

pub(super) const CONVERSATION: &[(Rule, Judge)] = &[
    (must("ping", "`ping` is answered with `pong`", "answer on the id of the request"), |s, c| {
        Box::pin(lines::ping(s, c))
    }),
    (
        must(
            "not_json",
            "a line that is not JSON is answered with an `error`, and the sidecar goes on",
            "catch the error of the JSON parser, answer without an id, read on",
        ),
        |s, c| Box::pin(lines::not_json(s, c)),
    ),
    (
        must(
            "bad_envelope",
            "JSON without a string `id`, a string `method` and an object `params` is answered with an `error`",
            "check all three before a request is dispatched",
        ),
        |s, c| Box::pin(lines::bad_envelope(s, c)),
    ),
    (
        must(
            "invalid_request",
            "such an error says `Invalid request` and shows the beginning of the line",
            "put the first 100 characters of the line into the message",
        ),
        |s, c| Box::pin(lines::invalid_words(s, c)),
    ),
    (
        should(
            "envelope_id",
            "such an error has the id of the line, if that is a string",
            "echo it, or whoever asked waits for ever",
        ),
        |s, c| Box::pin(lines::envelope_id(s, c)),
    ),
    (
        must(
            "invalid_utf8",
            "a line that is not UTF-8 is answered with an `error`, and the sidecar goes on",
            "read bytes, decode each line by itself, and answer if that fails",
        ),
        |s, c| Box::pin(lines::invalid_utf8(s, c)),
    ),
    (
        must(
            "white_space",
            "CRLF, blanks around a request and blank lines are fine",
            "strip a line before it is parsed, and skip it if it is empty",
        ),
        |s, c| Box::pin(lines::white_space(s, c)),
    ),
    (
        must(
            "unknown_method",
            "an unknown method is answered with an `error` that names it",
            "answer on the id with \"Unknown method: NAME\"",
        ),
        |s, c| Box::pin(lines::unknown_method(s, c)),
    ),
    (
        must(
            "parameters",
            "a parameter of the wrong type is answered with an `error` that names it",
            "answer on the id with \"params.NAME must be a string\"",
        ),
        |s, c| Box::pin(methods::parameters(s, c)),
    ),
    (
        must(
            "unknown_provider",
            "an unknown provider is answered with an `error` that names it",
            "answer on the id with \"unknown provider: WORD\"",
        ),
        |s, c| Box::pin(methods::unknown_provider(s, c)),
    ),
    (
        should(
            "error_codes",
            "errors have a stable `code`",
            "add unknown_method, invalid_params, unknown_waiter, …",
        ),
        |s, c| Box::pin(methods::error_codes(s, c)),
    ),
    (
        must(
            "one_end",
            "a `sendMessage` that cannot work has exactly one end, the last event of its id",
            "let one place write ends, and let nothing pass it afterwards",
        ),
        |s, c| Box::pin(methods::one_end(s, c)),
    ),
    (
        must(
            "stop_unknown",
            "a stop of a session that nobody knows is answered with `stopped`",
            "what does not run is stopped already",
        ),
        |s, c| Box::pin(methods::stop_unknown(s, c)),
    ),
    (
        must(
            "steer_unknown",
            "a steer without a turn is answered with `steered`, `accepted:false` and a reason",
            "a steer is never answered with an error",
        ),
        |s, c| Box::pin(methods::steer_unknown(s, c)),
    ),
    (
        should(
            "permission_to_nobody",
            "an answer to a permission that nobody waits for is an `error` on its own id",
            "say so, or the host believes that it was heard",
        ),
        |s, c| Box::pin(methods::permission_to_nobody(s, c)),
    ),
    (
        must(
            "input_to_nobody",
            "an answer to a question that nobody waits for is an `error` that names it",
            "answer with \"No active waiter for userInputId=ID\"",
        ),
        |s, c| Box::pin(methods::input_to_nobody(s, c)),
    ),
    (
        must("update_config", "`updateConfig` is answered with `pong`", "a key that is no string clears it"),
        |s, c| Box::pin(methods::update_config(s, c)),
    ),
    (
        must(
            "host_response",
            "a `hostResponse` to nothing is ignored",
            "look for `type` before the envelope is checked",
        ),
        |s, c| Box::pin(lines::stray_response(s, c)),
    ),
    (
        must(
            "order",
            "a thousand pings at once are answered in their order",
            "handle what needs no wait as it comes",
        ),
        |s, c| Box::pin(methods::order(s, c)),
    ),
    (
        must("long_line", "a line of 8 MiB is served", "prompts with pictures in them are that long"),
        |s, c| Box::pin(lines::long_line(s, c)),
    ),
    (
        must(
            "deep_nesting",
            "a line of 100,000 brackets is answered, and the sidecar goes on",
            "use a parser with a limit on depth",
        ),
        |s, c| Box::pin(lines::deep_nesting(s, c)),
    ),
    (
        must(
            "flood",
            "every one of many lines of garbage is answered, and the sidecar goes on",
            "let nothing that a line says reach further than its own answer",
        ),
        |s, c| Box::pin(lines::flood(s, c)),
    ),
    (
        must(
            "turn",
            "a turn has exactly one end, the last event of its id",
            "look at what comes after `end`",
        ),
        |s, c| Box::pin(turns::whole(s, c)),
    ),
    (
        must(
            "heartbeat",
            "a turn that lasts has heartbeats",
            "write one every 15 s from a timer of its own; hosts give up after 45 s",
        ),
        |s, c| Box::pin(turns::heartbeat(s, c)),
    ),
    (
        must(
            "stop",
            "a stop ends the stream with `aborted` and nothing follows it",
            "drop what the agent still says when the stream has ended",
        ),
        |s, c| Box::pin(turns::stop(s, c)),
    ),
    (
        should("stop_order", "`aborted` comes before `stopped`", "end the stream, then answer the stop"),
        |s, c| Box::pin(turns::stop_order(s, c)),
    ),
    (
        should(
            "busy",
            "a second turn of a busy session is refused with `session_busy`, and the first goes on",
            "keep one turn a session; two at once cannot both be stopped",
        ),
        |s, c| Box::pin(turns::busy(s, c)),
    ),
    (
        should(
            "id_in_flight",
            "a request with an id that is in flight does not end that one's stream",
            "answer it without the id",
        ),
        |s, c| Box::pin(turns::id_in_flight(s, c)),
    ),
];

pub(super) const LIFE: &[(Rule, LifeJudge)] = &[
    (
        must("shutdown", "`shutdown` is answered with `pong`, then it exits with 0", "answer, flush, exit"),
        |s| Box::pin(life::shutdown(s)),
    ),
    (
        should(
            "shutdown_ends_streams",
            "a turn that runs at a shutdown ends once, with `aborted`, before the `pong`",
            "end the streams first",
        ),
        |s| Box::pin(life::shutdown_ends_streams(s)),
    ),
    (
        must(
            "eof",
            "it exits with 0 when its standard input ends",
            "the host is gone: there is nobody to work for",
        ),
        |s| Box::pin(life::eof(s)),
    ),
    (
        should(
            "eof_in_a_turn",
            "it does so in the middle of a turn too, which ends with `aborted`",
            "do not wait for the agent: cancel it",
        ),
        |s| Box::pin(life::eof_in_a_turn(s)),
    ),
    (
        must("eof_in_a_line", "it does so after a line that is none", "an error is an answer, not an end"),
        |s| Box::pin(life::eof_in_a_line(s)),
    ),
    (
        should(
            "sigterm",
            "it leaves at a SIGTERM by itself",
            "hosts send it before SIGKILL; end the agents first",
        ),
        |s| Box::pin(life::sigterm(s)),
    ),
];
