//! Everything that a child can do to its control plane, one line a behaviour: the script, the code, what the message shows.
//! Whatever it does, nothing of it is left.

use libtest_mimic::Trial;
use outrigger_abp::host::{Foreign, Noise, Pulse, Terms};
use std::num::NonZeroU32;

use crate::host_kit::{millis, play, quick, trial};

/// A behaviour, and what comes of it.
struct Case {
    name: &'static str,
    script: &'static str,
    terms: fn(Terms) -> Terms,
    code: &'static str,
    shows: &'static [&'static str],
}

const fn case(
    name: &'static str,
    script: &'static str,
    code: &'static str,
    shows: &'static [&'static str],
) -> Case {
    Case { name, script, terms: |terms| terms, code, shows }
}

const fn under(case: Case, terms: fn(Terms) -> Terms) -> Case {
    Case { terms, ..case }
}

const HANDSHAKE: &[Case] = &[
    case("exits_0_before_hello", "exit 0", "exited", &["exited before it said hello", "exit code 0"]),
    case(
        "exits_3_before_hello_with_a_reason",
        "echo no python here >&2; exit 3",
        "exited",
        &["exited before it said hello", "exit code 3", "| no python here"],
    ),
    case("dies_of_a_signal_before_hello", "kill -SEGV $$; park", "exited", &["signal 11 (SIGSEGV)"]),
    under(case("never_says_hello", "park", "hello_timeout", &["did not say hello within 300 ms"]), soon),
    under(
        case(
            "says_hello_too_late",
            "sleep 5; hello; park",
            "hello_timeout",
            &["did not say hello within 300 ms"],
        ),
        soon,
    ),
    under(
        case(
            "says_half_a_hello",
            "printf '{\"t\":\"hel'; park",
            "hello_timeout",
            &["did not say hello within"],
        ),
        soon,
    ),
    case(
        "exits_in_the_middle_of_hello",
        "printf '{\"t\":\"hel'; exit 1",
        "exited",
        &["in the middle of its first line: \"{\\\"t\\\":\\\"hel\"", "exit code 1"],
    ),
    case(
        "prints_a_banner_before_hello",
        "echo 'Welcome to Agent 3000'; hello; park",
        "handshake",
        &["its first line is not `hello`", "\"Welcome to Agent 3000\"", "standard error"],
    ),
    case("prints_an_escape_sequence_first", "printf '\\033[2J\\n'; park", "handshake", &["\\u{1b}[2J"]),
    case(
        "sends_an_event_first",
        "id=x; event hi; park",
        "handshake",
        &["its first message is `event`, not `hello`"],
    ),
    case(
        "sends_fatal_first",
        "say '{\"t\":\"fatal\",\"error\":\"NO_API_KEY not set\"}'; exit 2",
        "handshake",
        &["its first message is `fatal`", "it said: NO_API_KEY not set"],
    ),
    case(
        "sends_an_unknown_message_first",
        "say '{\"t\":\"good_morning\"}'; park",
        "handshake",
        &["its first message is `good_morning`, not `hello`"],
    ),
    case(
        "sends_an_array_first",
        "say '[1,2]'; park",
        "handshake",
        &["its first line is not `hello`", "[1,2]"],
    ),
    case(
        "begins_with_a_byte_order_mark",
        "printf '\\357\\273\\277'; hello; park",
        "handshake",
        &["byte order mark"],
    ),
    case("says_hello_in_utf16", "printf '\\377\\376{\\0'; hello; park", "handshake", &["not UTF-8"]),
    case(
        "says_hello_without_a_version",
        "say '{\"t\":\"hello\",\"backend\":{\"id\":\"x\"},\"capabilities\":{}}'; park",
        "handshake",
        &["`contract_version` is missing"],
    ),
    case(
        "says_hello_without_a_backend",
        "say '{\"t\":\"hello\",\"contract_version\":\"abp/v0.1\",\"capabilities\":{}}'; park",
        "handshake",
        &["`backend` is missing"],
    ),
    case(
        "speaks_the_next_major_version",
        "say '{\"t\":\"hello\",\"contract_version\":\"abp/v1.0\",\"backend\":{\"id\":\"x\"},\"capabilities\":{}}'; park",
        "version",
        &["speaks \"abp/v1.0\"", "abp/v0.*"],
    ),
    case(
        "speaks_banana",
        "say '{\"t\":\"hello\",\"contract_version\":\"banana\",\"backend\":{\"id\":\"x\"},\"capabilities\":{}}'; park",
        "version",
        &["speaks \"banana\""],
    ),
    case(
        "closes_stdout_before_hello_and_lives_on",
        "exec 1>&-; park",
        "handshake",
        &["closed its standard output and kept running"],
    ),
    under(
        case(
            "floods_before_hello",
            "while :; do echo noise noise noise; done",
            "hello_timeout",
            &["did not say hello"],
        ),
        |terms| soon(skipping(terms)),
    ),
];

const TOLERATED: &[Case] = &[
    case(
        "says_blank_lines_before_hello",
        "printf '\\n  \\n\\r\\n'; hello; run; final; exit",
        "complete",
        &[],
    ),
    case(
        "ends_its_lines_with_crlf",
        "hello | tr '\\n' '\\r' ; echo; run; event a | sed 's/$/\\r/'; final; exit",
        "complete",
        &[],
    ),
    case(
        "says_that_its_mode_is_null",
        "say '{\"t\":\"hello\",\"contract_version\":\"abp/v0.1\",\"backend\":{\"id\":\"x\"},\"capabilities\":{},\"mode\":null}'; \
         run; final",
        "complete",
        &[],
    ),
    case(
        "has_capabilities_and_levels_that_nobody_knows",
        "say '{\"t\":\"hello\",\"contract_version\":\"abp/v0.9\",\"backend\":{\"id\":\"x\",\"new\":1},\
         \"capabilities\":{\"telepathy\":\"native\",\"vision\":\"psychic\",\"audio\":{\"odd\":[]}},\"more\":{}}'; run; final",
        "complete",
        &[],
    ),
    under(
        case(
            "prints_banners_that_may_be_skipped",
            "echo 'Welcome'; printf '\\377\\n'; hello; run; echo 'debug: 1'; event a; final",
            "complete",
            &[],
        ),
        skipping,
    ),
    case("says_hello_twice", "hello; run; hello; event a; final", "complete", &[]),
    case(
        "sends_an_event_type_that_nobody_knows",
        "hello; run; say '{\"t\":\"event\",\"ref_id\":\"'$id'\",\"event\":{\"ts\":\"2026-01-01T00:00:00Z\",\"type\":\"dream\",\"of\":1}}'; \
         final",
        "complete",
        &[],
    ),
    case(
        "lives_in_another_century",
        "hello; run; say '{\"t\":\"event\",\"ref_id\":\"'$id'\",\"event\":{\"ts\":\"1970-01-01T00:00:00Z\",\"type\":\"warning\",\"message\":\"\"}}'; \
         say '{\"t\":\"event\",\"ref_id\":\"'$id'\",\"event\":{\"ts\":\"2999-12-31T23:59:59.999999999+14:00\",\"type\":\"warning\",\"message\":\"\"}}'; \
         final",
        "complete",
        &[],
    ),
    case(
        "says_keys_twice",
        "hello; run; say '{\"t\":\"event\",\"ref_id\":\"other\",\"ref_id\":\"'$id'\",\"event\":{\"ts\":\"2026-01-01T00:00:00Z\",\"type\":\"assistant_delta\",\"text\":\"a\",\"text\":\"b\"}}'; \
         final",
        "complete",
        &[],
    ),
    case(
        "sends_numbers_that_fit_nowhere",
        "hello; run; say '{\"t\":\"event\",\"ref_id\":\"'$id'\",\"event\":{\"ts\":\"2026-01-01T00:00:00Z\",\"type\":\"tool_call\",\"tool_name\":\"t\",\"input\":123456789012345678901234567890}}'; \
         final",
        "complete",
        &[],
    ),
    case("sends_final_without_a_newline", "hello; run; final | tr -d '\\n'", "complete", &[]),
    case("closes_stdin_after_run", "hello; run; exec 0<&-; event a; final; park", "complete", &[]),
    case("exits_3_after_final", "hello; run; final; exit 3", "complete", &[]),
    case("sends_final_twice", "hello; run; final; final; park", "complete", &[]),
    case("sends_an_event_after_final", "hello; run; final; event late; park", "complete", &[]),
    case(
        "forks_a_grandchild_that_holds_stdout",
        "hello; run; (trap '' TERM; sleep 1000) & final; exit",
        "complete",
        &[],
    ),
    under(
        case(
            "speaks_of_other_runs_which_may_be_dropped",
            "hello; run; own=$id; id=other; event a; final; fatal b; id=$own; event c; final",
            "complete",
            &[],
        ),
        |terms| Terms { foreign: Foreign::DropAndCount, ..terms },
    ),
    case("answers_no_ping_but_streams", "hello; run; event a; final", "complete", &[]),
    case(
        "forges_every_id_in_its_receipt",
        "hello; run; say '{\"t\":\"final\",\"ref_id\":\"'$id'\",\"receipt\":{\"meta\":{\"run_id\":\"ffffffff-ffff-ffff-ffff-ffffffffffff\",\"work_order_id\":\"x\"},\"backend\":{\"id\":\"somebody else\"},\"outcome\":\"complete\"}}'",
        "complete",
        &[],
    ),
];

const RUNNING: &[Case] = &[
    case(
        "exits_3_before_final_with_a_reason",
        "hello; run; event a; echo out of cheese >&2; exit 3",
        "exited",
        &["exited with exit code 3 before it sent `final` or `fatal`", "| out of cheese"],
    ),
    case("exits_0_before_final", "hello; run; exit 0", "exited", &["exited with exit code 0 before"]),
    case("exits_right_after_hello", "hello; exit 5", "exited", &["exit code 5"]),
    case("is_killed_by_a_signal", "hello; run; kill -KILL $$", "exited", &["signal 9 (SIGKILL)"]),
    case(
        "exits_in_the_middle_of_a_line",
        "hello; run; printf '{\"t\":\"fin'; exit 1",
        "exited",
        &["in the middle of a line: \"{\\\"t\\\":\\\"fin\"", "exit code 1"],
    ),
    case(
        "closes_stdout_and_lives_on",
        "hello; run; event a; exec 1>&-; park",
        "protocol",
        &["closed its standard output during a run and kept running"],
    ),
    case(
        "leaves_a_grandchild_with_its_stdout_and_exits",
        "hello; run; (trap '' TERM; sleep 1000) & exit 4",
        "exited",
        &["exit code 4"],
    ),
    case(
        "gives_up",
        "hello; run; fatal 'no key'; exit 1",
        "fatal",
        &["gave up", "it said: no key", "exit code 1"],
    ),
    case("gives_up_and_stays", "hello; run; echo hint >&2; fatal no; park", "fatal", &["it said: no"]),
    case(
        "gives_up_without_a_ref_id",
        "hello; run; say '{\"t\":\"fatal\",\"error\":\"boom\"}'; exit 1",
        "fatal",
        &["it said: boom"],
    ),
    case(
        "gives_up_with_a_null_ref_id",
        "hello; run; say '{\"t\":\"fatal\",\"ref_id\":null,\"error\":\"boom\"}'; exit 1",
        "fatal",
        &["it said: boom"],
    ),
    case(
        "gives_up_before_it_reads_the_run",
        "hello; say '{\"t\":\"fatal\",\"error\":\"no token\"}'; exit 1",
        "fatal",
        &["it said: no token"],
    ),
    case(
        "gives_up_with_a_known_code",
        "hello; run; say '{\"t\":\"fatal\",\"ref_id\":\"'$id'\",\"error\":\"slow down\",\"error_code\":\"backend_rate_limited\"}'",
        "fatal",
        &["it said: slow down (backend_rate_limited)"],
    ),
    case(
        "gives_up_with_an_unknown_code",
        "hello; run; say '{\"t\":\"fatal\",\"ref_id\":\"'$id'\",\"error\":\"x\",\"error_code\":\"weather_bad\"}'",
        "fatal",
        &["it said: x (weather_bad)"],
    ),
    case(
        "writes_a_debug_line",
        "hello; run; echo 'DEBUG: here'; final",
        "protocol",
        &["a line that is no message", "\"DEBUG: here\""],
    ),
    case(
        "writes_a_line_that_is_not_utf8",
        "hello; run; printf '\\377\\376\\n'; park",
        "protocol",
        &["not UTF-8"],
    ),
    case("writes_nul", "hello; run; printf '\\0\\n'; park", "protocol", &["\\0"]),
    case(
        "writes_half_of_json",
        "hello; run; say '{\"t\":\"event\"'; park",
        "protocol",
        &["not JSON", "event"],
    ),
    case(
        "writes_an_object_without_t",
        "hello; run; say '{\"level\":30,\"msg\":\"hi\"}'; park",
        "protocol",
        &["`t` is missing"],
    ),
    case(
        "sends_a_message_that_does_not_exist",
        "hello; run; say '{\"t\":\"shutdown\"}'; park",
        "protocol",
        &["does not have", "shutdown"],
    ),
    case(
        "sends_ping",
        "hello; run; say '{\"t\":\"ping\",\"seq\":1}'; park",
        "protocol",
        &["`ping` is for the control plane"],
    ),
    case(
        "sends_run_back",
        "hello; run; say \"$line\"; park",
        "protocol",
        &["`run` is for the control plane to send"],
    ),
    case(
        "asks_although_nobody_offered",
        "hello; run; say '{\"t\":\"ask\",\"ref_id\":\"'$id'\",\"id\":\"1\",\"action\":\"tool\",\"tool_name\":\"Bash\"}'; park",
        "protocol",
        &["`ask`, which `run` did not offer"],
    ),
    case(
        "sends_an_event_of_another_run",
        "hello; run; id=deadbeef; event a; park",
        "correlation",
        &["`event` with the ref_id \"deadbeef\""],
    ),
    case(
        "sends_the_final_of_another_run",
        "hello; run; id=deadbeef; final",
        "correlation",
        &["`final` with the ref_id \"deadbeef\""],
    ),
    case(
        "sends_the_fatal_of_another_run",
        "hello; run; id=deadbeef; fatal x",
        "correlation",
        &["`fatal` with the ref_id"],
    ),
    case(
        "shouts_the_ref_id",
        "hello; run; id=$(echo $id | tr a-f A-F)X; event a; park",
        "correlation",
        &["`event` with the ref_id"],
    ),
    case(
        "sends_an_event_without_a_ref_id",
        "hello; run; say '{\"t\":\"event\",\"event\":{\"ts\":\"2026-01-01T00:00:00Z\",\"type\":\"warning\",\"message\":\"\"}}'; park",
        "protocol",
        &["`ref_id` is missing"],
    ),
    case(
        "sends_an_event_without_a_time",
        "hello; run; say '{\"t\":\"event\",\"ref_id\":\"'$id'\",\"event\":{\"type\":\"warning\",\"message\":\"\"}}'; park",
        "protocol",
        &["ts` is missing"],
    ),
    case(
        "sends_a_time_without_an_offset",
        "hello; run; say '{\"t\":\"event\",\"ref_id\":\"'$id'\",\"event\":{\"ts\":\"2026-01-01T00:00:00\",\"type\":\"warning\",\"message\":\"\"}}'; park",
        "protocol",
        &["ts` is"],
    ),
    case(
        "sends_final_without_a_receipt",
        "hello; run; say '{\"t\":\"final\",\"ref_id\":\"'$id'\"}'; park",
        "protocol",
        &["`receipt` is missing"],
    ),
    case(
        "nests_deeper_than_anybody_reads",
        "hello; run; printf '{\"t\":\"event\",\"x\":'; head -c 100000 /dev/zero | tr '\\0' '['; echo; park",
        "protocol",
        &["nested deeper than"],
    ),
    case(
        "sends_a_number_beyond_all_numbers",
        "hello; run; say '{\"t\":\"pong\",\"seq\":1e400}'; park",
        "protocol",
        &["1e400"],
    ),
    case(
        "sends_a_pong_that_is_no_number",
        "hello; run; say '{\"t\":\"pong\",\"seq\":\"one\"}'; park",
        "protocol",
        &["`seq` is"],
    ),
    under(case("says_nothing", "hello; run; park", "silent", &["said nothing for 300 ms"]), |terms| Terms {
        silence: Some(millis(300)),
        ..terms
    }),
    under(
        case("stops_itself", "hello; run; kill -STOP $$; final", "silent", &["said nothing for 300 ms"]),
        |terms| Terms { silence: Some(millis(300)), ..terms },
    ),
    under(
        case(
            "never_answers_pings",
            "hello; run; park",
            "stalled",
            &["left 2 pings unanswered, one every 100 ms"],
        ),
        pinged,
    ),
    under(
        case(
            "stops_itself_and_cannot_answer_pings",
            "hello; run; kill -STOP $$",
            "stalled",
            &["pings unanswered"],
        ),
        pinged,
    ),
    under(
        case(
            "streams_for_ever",
            "hello; run; while :; do event a; done",
            "timeout",
            &["took longer than 300 ms"],
        ),
        hurried,
    ),
    under(
        case(
            "answers_cancel_with_fatal",
            "hello; run; read -r line; fatal stopped",
            "timeout",
            &["took longer than 300 ms; gave up", "it said: stopped"],
        ),
        hurried,
    ),
    under(
        case(
            "ignores_cancel_and_sigterm",
            "trap '' TERM; hello; run; park",
            "timeout",
            &["took longer than 300 ms", "signal 9"],
        ),
        hurried,
    ),
    under(
        case(
            "ignores_cancel_and_honours_sigterm",
            "hello; run; exec sleep 1000",
            "timeout",
            &["took longer than 300 ms", "signal 15"],
        ),
        hurried,
    ),
    case("closes_stdin_before_run_and_exits", "hello; exec 0<&-; exit 6", "exited", &["exit code 6"]),
];

fn soon(terms: Terms) -> Terms {
    Terms { hello_within: millis(300), ..terms }
}

fn skipping(terms: Terms) -> Terms {
    Terms { noise: Noise::SkipAndWarn, ..terms }
}

fn hurried(terms: Terms) -> Terms {
    Terms { total: Some(millis(300)), ..terms }
}

fn pinged(terms: Terms) -> Terms {
    let missed = NonZeroU32::new(2).expect("not zero");
    Terms { pulse: Pulse::Ping { every: millis(100), missed }, ..terms }
}

pub(crate) fn trials() -> Vec<Trial> {
    let cases = HANDSHAKE.iter().chain(TOLERATED).chain(RUNNING);
    cases.map(|case| trial(&format!("a_child_that_{}", case.name), move || check(case))).collect()
}

async fn check(case: &'static Case) {
    let played = play(case.script, &(case.terms)(quick())).await;
    let told = played.told();
    assert_eq!(played.code(), case.code, "{told}");
    for part in case.shows {
        assert!(told.contains(part), "{part:?} is not in:\n{told}");
    }
    assert_eq!(played.left, 0, "processes were left behind: {told}");
    let receipt = played.ended.as_ref().is_some_and(|ended| ended.receipt.is_some());
    assert_eq!(receipt, case.code == "complete", "a receipt, or none: {told}");
}
