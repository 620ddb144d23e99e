//! Every line that a host can write, good and bad, and the bytes that answer it.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::sidecar::assert_health;
use crate::sidecar_kit::Raw;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        every_bad_line_is_answered_and_nothing_dies,
        crlf_blanks_and_blank_lines_are_fine,
        any_value_is_an_id_and_comes_back_as_it_was_written,
        a_version_may_be_missing_but_not_be_wrong,
        a_request_without_an_id_does_nothing,
        a_batch_is_answered_with_an_array_of_answers,
        a_batch_of_1024_is_fine_and_one_more_is_not,
        a_line_of_16_mib_is_read_and_a_longer_one_is_thrown_away,
        lines_that_nest_too_deeply_are_refused_with_their_id,
        a_line_may_arrive_in_any_pieces,
        answers_to_requests_that_nobody_made_are_ignored,
        ten_thousand_pings_in_one_write_are_answered_in_order,
        an_unknown_method_is_named,
        a_long_message_is_cut,
        the_same_id_twice_is_two_requests,
    ]
}

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"system.ping"}"#;

/// That it still serves.
fn alive(raw: &mut Raw) {
    let pid = raw.pid();
    assert_health(&raw.result("system.ping", Value::Null), pid);
}

fn every_bad_line_is_answered_and_nothing_dies() {
    let parse = |message: &str| (-32700, "parse", message.to_owned(), Value::Null);
    let invalid = |message: &str, id: Value| (-32600, "invalid_request", message.to_owned(), id);
    let nothing = Value::Null;
    let table: [(&[u8], _); 23] = [
        (b"nonsense", parse("message is not valid JSON")),
        (b"{\"id\":1", parse("message is not valid JSON")),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"system.ping\"}{}", parse("message is not valid JSON")),
        (b"{\"id\":1,\"method\":\"system.ping\",\"params\":NaN}", parse("message is not valid JSON")),
        (b"{\"id\":1,\"method\":\"system.ping\",\"params\":Infinity}", parse("message is not valid JSON")),
        (b"'single'", parse("message is not valid JSON")),
        (b"[1,", parse("message is not valid JSON")),
        (b"{\"id\":\"\xff\"}", parse("line is not UTF-8")),
        (b"\xef\xbb\xbf{\"id\":1,\"method\":\"system.ping\"}", parse("message is not valid JSON")),
        (b"1", invalid("message is not an object", nothing.clone())),
        (b"\"x\"", invalid("message is not an object", nothing.clone())),
        (b"null", invalid("message is not an object", nothing.clone())),
        (b"true", invalid("message is not an object", nothing.clone())),
        (b"[]", invalid("batch is empty", nothing.clone())),
        (b"{}", invalid("missing method", nothing.clone())),
        (b"{\"id\":7}", invalid("missing method", json!(7))),
        (b"{\"id\":7,\"method\":\"\"}", invalid("missing method", json!(7))),
        (b"{\"id\":7,\"method\":1}", invalid("missing method", json!(7))),
        (b"{\"id\":7,\"method\":null}", invalid("missing method", json!(7))),
        (
            b"{\"jsonrpc\":\"1.0\",\"id\":7,\"method\":\"system.ping\"}",
            invalid("member `jsonrpc` must be \"2.0\"", json!(7)),
        ),
        (
            b"{\"jsonrpc\":2,\"id\":7,\"method\":\"system.ping\"}",
            invalid("member `jsonrpc` must be \"2.0\"", json!(7)),
        ),
        (
            b"{\"jsonrpc\":null,\"id\":7,\"method\":\"system.ping\"}",
            invalid("member `jsonrpc` must be \"2.0\"", json!(7)),
        ),
        (
            b"{\"id\":7,\"method\":\"system.ping\",\"result\":1}",
            invalid("message is both a request and a response, or both a result and an error", json!(7)),
        ),
    ];
    let mut raw = Raw::start(&[]);
    for (line, (code, kind, message, id)) in table {
        raw.write(line);
        raw.write(b"\n");
        let shown = String::from_utf8_lossy(line);
        let answer = raw.hear();
        assert!(answer.as_object().unwrap().contains_key("id"), "{shown}");
        let error = &answer["error"];
        assert_eq!(
            (&answer["id"], error["code"].as_i64(), error["kind"].as_str()),
            (&id, Some(code), Some(kind)),
            "{shown}"
        );
        if !line.starts_with(b"\xef") && !line.contains(&0xff) {
            assert_eq!(error["message"], message, "{shown}");
        }
    }
    alive(&mut raw);
    raw.say("nonsense");
    assert_eq!(
        raw.line().unwrap(),
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"message is not valid JSON","kind":"parse"}}"#
    );
}

fn crlf_blanks_and_blank_lines_are_fine() {
    let mut raw = Raw::start(&[]);
    raw.write(format!("\n\r\n   \n  {PING}  \r\n").as_bytes());
    assert_eq!(raw.hear()["id"], 1);
    alive(&mut raw);
}

fn any_value_is_an_id_and_comes_back_as_it_was_written() {
    let mut raw = Raw::start(&[]);
    for id in [
        "null",
        "0",
        "-1",
        "1.50",
        "1e2",
        "\"a\\u0041\"",
        "\"\"",
        "true",
        "[1, 2]",
        "{\"a\": 1}",
        "12345678901234567890123",
    ] {
        raw.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"config.set","params":{{}}}}"#));
        assert_eq!(raw.line().unwrap(), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":null}}"#));
    }
}

fn a_version_may_be_missing_but_not_be_wrong() {
    let mut raw = Raw::start(&[]);
    raw.say(r#"{"id":1,"method":"system.ping"}"#);
    assert_eq!(raw.hear()["result"]["status"], "ok");
}

fn a_request_without_an_id_does_nothing() {
    let mut raw = Raw::start(&[]);
    raw.say(r#"{"jsonrpc":"2.0","method":"system.shutdown"}"#);
    raw.say(r#"{"jsonrpc":"2.0","method":"no.such.method"}"#);
    raw.say(r#"{"jsonrpc":"2.0","method":"config.set","params":{"logLevel":"LOUD"}}"#);
    alive(&mut raw);
    assert!(raw.heard.is_empty(), "{:?}", raw.heard);
}

fn a_batch_is_answered_with_an_array_of_answers() {
    let mut raw = Raw::start(&[]);
    raw.say(r#"[{"jsonrpc":"2.0","id":1,"method":"config.set","params":{}},{"jsonrpc":"2.0","method":"x"},1,{"id":2,"method":"nope"}]"#);
    let answers = raw.hear();
    let codes: Vec<(&Value, &Value)> =
        answers.as_array().unwrap().iter().map(|answer| (&answer["id"], &answer["error"]["code"])).collect();
    assert_eq!(
        codes,
        [(&json!(1), &Value::Null), (&Value::Null, &json!(-32600)), (&json!(2), &json!(-32601))]
    );
    // Nothing at all if there is nothing to answer.
    raw.say(r#"[{"jsonrpc":"2.0","method":"x"},{"id":"srv_9","result":1}]"#);
    alive(&mut raw);
    assert!(raw.heard.is_empty(), "{:?}", raw.heard);
}

fn a_batch_of_1024_is_fine_and_one_more_is_not() {
    let mut raw = Raw::start(&[]);
    let batch = |length: usize| format!("[{}]", vec![PING; length].join(","));
    raw.say(&batch(1024));
    assert_eq!(raw.hear().as_array().unwrap().len(), 1024);
    raw.say(&batch(1025));
    let answer = raw.hear();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32600)));
}

fn a_line_of_16_mib_is_read_and_a_longer_one_is_thrown_away() {
    let mut raw = Raw::start(&[]);
    let line = |length: usize| {
        let empty = r#"{"id":1,"method":"config.get","params":""}"#.len();
        format!(r#"{{"id":1,"method":"config.get","params":"{}"}}"#, "x".repeat(length - empty))
    };
    let limit = 16 * 1024 * 1024;
    raw.say(&line(limit));
    assert_eq!(raw.hear()["result"]["protocolVersion"], "0.1.0");
    for length in [limit + 1, 20_000_000] {
        raw.say(&line(length));
        let answer = raw.hear();
        assert_eq!(
            (&answer["id"], answer["error"]["kind"].as_str()),
            (&Value::Null, Some("invalid_request"))
        );
        assert_eq!(answer["error"]["code"], -32600);
    }
    alive(&mut raw);
}

fn lines_that_nest_too_deeply_are_refused_with_their_id() {
    let mut raw = Raw::start(&[]);
    let nested = |depth: usize, open: &str, close: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":"deep","method":"config.get","params":{}0{}}}"#,
            open.repeat(depth),
            close.repeat(depth)
        )
    };
    raw.say(&nested(127, "[", "]"));
    assert_eq!(raw.hear()["result"]["protocolVersion"], "0.1.0");
    for line in [nested(128, "[", "]"), nested(100_000, "[", "]"), nested(100_000, "{\"a\":", "}")] {
        raw.say(&line);
        let answer = raw.hear();
        assert_eq!((&answer["id"], answer["error"]["code"].as_i64()), (&json!("deep"), Some(-32600)));
    }
    raw.say(&"[".repeat(100_000));
    let answer = raw.hear();
    assert_eq!((&answer["id"], answer["error"]["code"].as_i64()), (&Value::Null, Some(-32600)));
    alive(&mut raw);
}

fn a_line_may_arrive_in_any_pieces() {
    let mut raw = Raw::start(&[]);
    let line = "{\"jsonrpc\":\"2.0\",\"id\":\"ü€😀\",\"method\":\"config.set\",\"params\":{}}\n";
    for byte in line.as_bytes() {
        raw.write(&[*byte]);
    }
    assert_eq!(raw.line().unwrap(), r#"{"jsonrpc":"2.0","id":"ü€😀","result":null}"#);
    raw.write(&line.as_bytes()[..20]);
    alive_after(&mut raw, &line.as_bytes()[20..]);
}

/// The rest of a line whose first part lay in the pipe alone.
fn alive_after(raw: &mut Raw, rest: &[u8]) {
    raw.write(rest);
    assert_eq!(raw.hear()["result"], Value::Null);
    alive(raw);
}

fn answers_to_requests_that_nobody_made_are_ignored() {
    let mut raw = Raw::start(&[]);
    raw.say(r#"{"jsonrpc":"2.0","id":"srv_1","result":{}}"#);
    raw.say(r#"{"jsonrpc":"2.0","id":99,"result":null}"#);
    raw.say(r#"{"jsonrpc":"2.0","id":"srv_1","error":{"code":1,"message":"x"}}"#);
    raw.say(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}"#);
    alive(&mut raw);
    assert!(raw.heard.is_empty(), "{:?}", raw.heard);
}

fn ten_thousand_pings_in_one_write_are_answered_in_order() {
    let mut raw = Raw::start(&[]);
    let lines: String = (0..10_000)
        .map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"system.ping\"}}\n"))
        .collect();
    std::thread::scope(|scope| {
        let mut input = raw.take_input();
        let writer = scope.spawn(move || {
            use std::io::Write;
            input.write_all(lines.as_bytes()).unwrap();
            input
        });
        for id in 0..10_000 {
            assert_eq!(raw.hear()["id"], id);
        }
        raw.give_input(writer.join().unwrap());
    });
    alive(&mut raw);
}

fn an_unknown_method_is_named() {
    let mut raw = Raw::start(&[]);
    raw.say(r#"{"jsonrpc":"2.0","id":3,"method":"agent.turn.start"}"#);
    assert_eq!(
        raw.line().unwrap(),
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"unknown method 'agent.turn.start'","data":{"method":"agent.turn.start"},"kind":"method_not_found"}}"#
    );
}

fn a_long_message_is_cut() {
    let mut raw = Raw::start(&[]);
    let id = "x".repeat(3000);
    let (code, kind, message) = raw.error("agent.session.resume", json!({"sessionId": id}));
    assert_eq!((code, kind.as_str()), (-32004, "invalid_request"));
    assert_eq!(message.chars().count(), 1024);
}

fn the_same_id_twice_is_two_requests() {
    let mut raw = Raw::start(&[]);
    raw.write(format!("{PING}\n{PING}\n").as_bytes());
    assert_eq!(raw.hear()["id"], 1);
    assert_eq!(raw.hear()["id"], 1);
}
