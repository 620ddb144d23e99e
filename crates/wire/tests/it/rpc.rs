//! The JSON-RPC envelope as its users meet it: what a line is, what is refused and why, and what is written.

use std::collections::HashSet;

use outrigger_wire::rpc::{
    self, Batch, Code, Defect, Duplicates, EnvelopePolicy, ErrorObject, Id, IdKind, Incoming, Message,
    NestingLimit, Refusal, Shape, Strangers, Version, code, parse,
};
use proptest::prelude::*;
use serde_json::value::{RawValue, to_raw_value};

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn get(value: Option<&RawValue>) -> &str {
    value.map_or("-", RawValue::get)
}

/// A short rendering, so that a table of cases can be read.
fn render(incoming: &Result<Incoming<'_>, Refusal>) -> String {
    match incoming {
        Ok(Incoming::One(message)) => render_message(message),
        Ok(Incoming::Batch(messages)) => {
            let each = messages.iter().map(|one| match one {
                Ok(message) => render_message(message),
                Err(refusal) => render_refusal(refusal),
            });
            format!("batch [{}]", each.collect::<Vec<_>>().join("; "))
        }
        Err(refusal) => render_refusal(refusal),
    }
}

fn render_message(message: &Message<'_>) -> String {
    let (text, extra) = match message {
        Message::Request { id, method, params, extra } => {
            (format!("request {id} {method} {}", get(*params)), extra)
        }
        Message::Notification { method, params, extra } => {
            (format!("notification {method} {}", get(*params)), extra)
        }
        Message::Response { id, result, extra } => (format!("response {id} {}", get(*result)), extra),
        Message::Error { id, error, extra } => {
            let id = id.as_ref().map_or("-".to_owned(), Id::to_string);
            let more: String = error.extra.iter().map(|(name, value)| format!(" {name}={value}")).collect();
            let data = get(error.data.as_deref());
            (format!("error {id} {} {:?} {data}{more}", error.code, error.message), extra)
        }
    };
    extra.iter().fold(text, |text, (name, value)| format!("{text} +{name}={value}"))
}

fn render_refusal(refusal: &Refusal) -> String {
    let id = refusal.id.as_ref().map_or("-".to_owned(), Id::to_string);
    let shape = match refusal.shape {
        Shape::Call => "",
        Shape::Reply => " (reply)",
    };
    format!("refused {id} {} {:?}{shape}", refusal.defect.code(), refusal.defect)
}

#[track_caller]
fn check_with(policy: EnvelopePolicy, line: &str, expect: &str) {
    assert_eq!(render(&parse(line, &policy)), expect, "{line}");
}

#[track_caller]
fn check(line: &str, expect: &str) {
    check_with(EnvelopePolicy::STANDARD, line, expect);
}

#[test]
fn the_four_sorts_of_messages_are_told_apart() {
    check(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}"#, r#"request 1 m {"a":1}"#);
    check(r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#, "request 1 m -");
    check(r#"{"jsonrpc":"2.0","method":"m","params":[1]}"#, "notification m [1]");
    check(r#"{"jsonrpc":"2.0","id":1,"result":null}"#, "response 1 null");
    check(
        r#"{"jsonrpc":"2.0","id":"a","error":{"code":-1,"message":"no","data":[ ]}}"#,
        r#"error "a" -1 "no" [ ]"#,
    );
    check(" \t{ \"params\" : 1 , \"method\" : \"m\" , \"jsonrpc\" : \"2.0\" } ", "notification m 1");
}

#[test]
fn raw_values_keep_every_byte() {
    let params = r#"{ "z":1.0e+00 , "a":12345678901234567890123, "s":"\u0041\/é" }"#;
    check(
        &format!(r#"{{"jsonrpc":"2.0","method":"m","params":{params}}}"#),
        &format!("notification m {params}"),
    );
}

#[test]
fn ids_are_kept_apart_and_echoed_as_they_came() {
    for id in
        ["0", "1", "-1", "1.5", "1e3", "18446744073709551616", r#""""#, r#""1""#, r#""\u0041\n""#, "null"]
    {
        check(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#), &format!("request {id} m -"));
    }
    let id = |json: &str| {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{json},"method":"m"}}"#);
        match parse(&line, &EnvelopePolicy::STANDARD) {
            Ok(Incoming::One(Message::Request { id, .. })) => id,
            other => panic!("{other:?}"),
        }
    };
    assert_ne!(id("1"), id(r#""1""#));
    assert_ne!(id("1"), id("1.0"));
    assert_ne!(id("null"), id(r#""null""#));
    assert_eq!(id(r#""A""#), id(r#""\u0041""#));
    assert_eq!(HashSet::from([id(r#""A""#), id(r#""\u0041""#), id("7"), Id::from(7)]).len(), 2);
    assert_eq!((id("7").as_u64(), id("-7").as_u64(), id(r#""7""#).as_u64()), (Some(7), None, None));
    assert_eq!(id(r#""\u0041""#).as_text().as_deref(), Some("A"));
    assert_eq!(Id::text("a\"b").as_json(), r#""a\"b""#);
    assert_eq!(Id::null(), id("null"));
    assert_eq!((id("-1").kind(), Id::null().kind()), (IdKind::Number, IdKind::Null));
}

#[test]
fn a_missing_id_is_not_a_null_id() {
    check(r#"{"jsonrpc":"2.0","method":"m"}"#, "notification m -");
    check(r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, "request null m -");
    check(r#"{"jsonrpc":"2.0","result":1}"#, "refused - -32600 ReplyWithoutId (reply)");
    check(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}"#, r#"error null 1 "" -"#);
    check(r#"{"jsonrpc":"2.0","error":{"code":1,"message":""}}"#, "refused - -32600 ReplyWithoutId (reply)");
}

#[test]
fn a_message_that_is_two_sorts_at_once_is_none() {
    check(r#"{"jsonrpc":"2.0","id":1,"method":"m","result":1}"#, "refused 1 -32600 Ambiguous");
    let error = r#""error":{"code":1,"message":""}"#;
    check(&format!(r#"{{"jsonrpc":"2.0","method":"m",{error}}}"#), "refused - -32600 Ambiguous");
    check(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":1,{error}}}"#), "refused 1 -32600 Ambiguous (reply)");
}

#[test]
fn what_is_not_a_message_is_refused_with_the_right_code_and_id() {
    for bad in [
        "",
        " ",
        "{",
        "{]",
        "nul",
        "{\"jsonrpc\":\"2.0\"",
        "{} {}",
        "{}x",
        "[1",
        "NaN",
        "{\"a\":NaN}",
        "{'a':1}",
    ] {
        check(bad, "refused - -32700 NotJson");
    }
    for bad in ["null", "1", "\"x\"", "true", " 1 "] {
        check(bad, "refused - -32600 NotAnObject");
    }
    check("{}", "refused - -32600 BadVersion");
    check(r#"{"jsonrpc":"2.0"}"#, "refused - -32600 BadMethod");
    check(r#"{"jsonrpc":"2.0","id":5}"#, "refused 5 -32600 BadMethod");
    check(r#"{"jsonrpc":"2.0","id":5,"method":""}"#, "refused 5 -32600 BadMethod");
    check(r#"{"jsonrpc":"2.0","id":5,"method":7}"#, "refused 5 -32600 BadMethod");
    check(r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, "refused - -32600 BadId");
    check(r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#, "refused - -32600 BadId");
    for error in
        ["null", "1", "{}", r#"{"code":1}"#, r#"{"code":1.5,"message":""}"#, r#"{"code":1,"message":2}"#]
    {
        check(&format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#), "refused 1 -32600 BadError (reply)");
    }
}

#[test]
fn the_version_member_is_judged_as_the_policy_says() {
    let with = |version| EnvelopePolicy { version, ..EnvelopePolicy::STANDARD };
    let missing = r#"{"id":1,"method":"m"}"#;
    let wrong = r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#;
    let number = r#"{"jsonrpc":2.0,"id":1,"method":"m"}"#;
    let escaped = r#"{"jsonrpc":"2\u002e0","id":1,"method":"m"}"#;
    let (good, bad) = ("request 1 m -", "refused 1 -32600 BadVersion");
    for (policy, expect) in [
        (with(Version::Required), [bad, bad, bad, good]),
        (with(Version::OptionalButRight), [good, bad, bad, good]),
        (with(Version::Unchecked), [good, good, good, good]),
    ] {
        for (line, expect) in [missing, wrong, number, escaped].into_iter().zip(expect) {
            check_with(policy, line, expect);
        }
    }
}

#[test]
fn duplicate_keys_are_refused_where_the_policy_asks() {
    let with = |duplicates| EnvelopePolicy { duplicates, ..EnvelopePolicy::STANDARD };
    let top = r#"{"jsonrpc":"2.0","method":"a","method":"b"}"#;
    let escaped = r#"{"jsonrpc":"2.0","method":"a","\u006dethod":"b"}"#;
    let stranger = r#"{"jsonrpc":"2.0","method":"a","x":1,"y":2,"x":3}"#;
    let deep = r#"{"jsonrpc":"2.0","method":"a","params":[{"x":1,"x":2}]}"#;
    let refused = "refused - -32700 DuplicateKey";
    for (policy, expect) in [
        (
            with(Duplicates::LastWins),
            ["notification b -", "notification b -", "notification a -", r#"notification a [{"x":1,"x":2}]"#],
        ),
        (
            with(Duplicates::RefuseInEnvelope),
            [refused, refused, refused, r#"notification a [{"x":1,"x":2}]"#],
        ),
        (with(Duplicates::RefuseEverywhere), [refused, refused, refused, refused]),
    ] {
        for (line, expect) in [top, escaped, stranger, deep].into_iter().zip(expect) {
            check_with(policy, line, expect);
        }
    }
    let keep = EnvelopePolicy { strangers: Strangers::Keep, ..EnvelopePolicy::STANDARD };
    check_with(keep, stranger, refused);
    // Objects with more keys than the short list holds.
    let many = |last: &str| {
        let keys: String = (0..40).map(|n| format!("\"k{n}\":{{}},")).collect();
        format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{{keys}"{last}":1}}}}"#)
    };
    let everywhere = with(Duplicates::RefuseEverywhere);
    assert!(parse(&many("other"), &everywhere).is_ok());
    for last in ["k0", "k15", "k16", "k17", "k39"] {
        check_with(everywhere, &many(last), refused);
    }
}

#[test]
fn lone_surrogates_are_refused_by_the_strictest_policy() {
    let line = r#"{"jsonrpc":"2.0","method":"m","params":["\ud800"]}"#;
    check(line, r#"notification m ["\ud800"]"#);
    check_with(EnvelopePolicy::SEP, line, "refused - -32700 NotJson");
}

#[test]
fn nesting_at_the_limit_passes_and_one_past_it_does_not() {
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"jsonrpc":"2.0","method":"m","params":{open}{close}}}"#)
    };
    for policy in [EnvelopePolicy::SEP, EnvelopePolicy::STANDARD] {
        let NestingLimit(limit) = policy.nesting;
        assert!(parse(&nested(usize::from(limit) - 1), &policy).is_ok());
        check_with(policy, &nested(usize::from(limit)), "refused - -32700 TooDeep");
    }
}

#[test]
fn a_message_that_nests_too_deeply_is_refused_with_its_id_where_that_can_be_read() {
    let deep = "[".repeat(200) + &"]".repeat(200);
    let with = |before: &str, after: &str| format!(r#"{{"jsonrpc":"2.0",{before}"params":{deep}{after}}}"#);
    let cases = [
        (with(r#""id":7,"method":"m","#, ""), "refused 7 -32700 TooDeep"),
        (with(r#""method":"m","#, r#" , "id" : "a\"b" "#), r#"refused "a\"b" -32700 TooDeep"#),
        (with(r#""method":"m","x":{"id":1},"#, ""), "refused - -32700 TooDeep"),
        (with(r#""method":"m","id":[1],"#, ""), "refused - -32700 TooDeep"),
        (with(r#""method":"m","#, r#","id":1x"#), "refused - -32700 TooDeep"),
        (format!(r#"["id":1,{deep}]"#), "refused - -32700 TooDeep"),
    ];
    for (line, expect) in cases {
        check(&line, expect);
    }
    let reply = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{deep}}}"#);
    let refusal = parse(&reply, &EnvelopePolicy::STANDARD).unwrap_err();
    assert_eq!(refusal.shape, outrigger_wire::rpc::Shape::Reply);
}

#[test]
fn a_million_brackets_neither_recurse_nor_pass() {
    for bomb in ["[".repeat(1_000_000), "{\"a\":".repeat(1_000_000), "[{\"a\":".repeat(500_000)] {
        check(&bomb, "refused - -32700 TooDeep");
        check_with(EnvelopePolicy::SEP, &bomb, "refused - -32700 TooDeep");
    }
}

#[test]
fn brackets_in_strings_do_not_nest() {
    let quoted = "[".repeat(1000);
    for text in [quoted.clone(), format!("\\\"{quoted}"), format!("\\\\\\\"{quoted}")] {
        let line = format!(r#"{{"jsonrpc":"2.0","method":"m","params":"{text}"}}"#);
        assert!(parse(&line, &EnvelopePolicy::SEP).is_ok(), "{line}");
    }
    let after = format!(r#"{{"jsonrpc":"2.0","method":"m\\","params":{quoted}}}"#);
    check_with(EnvelopePolicy::SEP, &after, "refused - -32700 TooDeep");
}

#[test]
fn a_batch_is_judged_message_by_message_or_refused_whole() {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;
    check(&format!("[{call}]"), "batch [request 1 m -]");
    check(
        &format!(r#"[{call}, 1, {{"id":2}}, {{"jsonrpc":"2.0","method":"n"}}, []]"#),
        "batch [request 1 m -; refused - -32600 NotAnObject; refused 2 -32600 BadVersion; notification n -; \
         refused - -32600 NotAnObject]",
    );
    check("[]", "refused - -32600 BatchEmpty");
    check("[1,]", "refused - -32700 NotJson");
    check_with(EnvelopePolicy::SEP, &format!("[{call}]"), "refused - -32600 BatchUnsupported");
    check_with(EnvelopePolicy::SEP, "[", "refused - -32700 NotJson");
    let two = EnvelopePolicy { batch: Batch::Accept { most: 2 }, ..EnvelopePolicy::STANDARD };
    check_with(two, &format!("[{call},{call}]"), "batch [request 1 m -; request 1 m -]");
    check_with(two, &format!("[{call},{call},{call}]"), "refused - -32600 BatchTooLarge");
}

#[test]
fn strangers_are_kept_where_asked() {
    let line = r#"{"jsonrpc":"2.0","trace":{"x": 1},"id":1,"method":"m","\u006b":2}"#;
    check(line, "request 1 m -");
    let keep = EnvelopePolicy { strangers: Strangers::Keep, ..EnvelopePolicy::STANDARD };
    check_with(keep, line, r#"request 1 m - +trace={"x": 1} +k=2"#);
    // Members of the error object are always kept: hosts branch on steerable's `kind`.
    check(
        r#"{"jsonrpc":"2.0","id":1,"error":{"kind":"parse","code":-32700,"message":"m"}}"#,
        r#"error 1 -32700 "m" - kind="parse""#,
    );
}

#[test]
fn a_steerable_host_understands_a_sidecar_that_drops_nulls() {
    let host = EnvelopePolicy::STEERABLE_HOST;
    check_with(host, r#"{"jsonrpc":"2.0","id":5}"#, "response 5 -");
    check_with(host, r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}}"#, r#"error - -32700 "m" -"#);
    check_with(host, "{}", "refused - -32600 BadMethod");
    let sidecar = EnvelopePolicy::STEERABLE_SIDECAR;
    check_with(sidecar, r#"{"id":{"any": 1},"method":"m"}"#, r#"request {"any": 1} m -"#);
    check_with(sidecar, r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, "refused 1 -32600 BadVersion");
    check_with(sidecar, r#"{"jsonrpc":"2.0","id":5}"#, "refused 5 -32600 BadMethod");
}

#[test]
fn portable_ids_are_short_strings_and_exact_integers() {
    let call = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
    let long = |length: usize| format!("\"{}\"", "x".repeat(length));
    for good in ["0", "-1", "9007199254740991", "-9007199254740991", "\"a\"", &long(64)] {
        check_with(EnvelopePolicy::SEP, &call(good), &format!("request {good} m -"));
    }
    for bad in [
        "null",
        "1.5",
        "1e3",
        "9007199254740992",
        "-9007199254740992",
        "\"\"",
        &long(65),
        "[]",
        "99999999999999999999",
    ] {
        check_with(EnvelopePolicy::SEP, &call(bad), "refused - -32600 BadId");
    }
    // An error may answer to null: its sender could not read our id.
    check_with(
        EnvelopePolicy::SEP,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#,
        r#"error null -32700 "m" -"#,
    );
}

#[test]
fn members_are_written_in_one_order() {
    let written = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    };
    let params = raw("{\"b\":1,\n \"a\":2}");
    assert_eq!(
        written(&|out| rpc::encode_request(out, &Id::from(1), "a/b", Some(&params))),
        r#"{"jsonrpc":"2.0","id":1,"method":"a/b","params":{"b":1,  "a":2}}"#
    );
    assert_eq!(
        written(&|out| rpc::encode_notification(out, "q\"\n\u{1}é", None)),
        r#"{"jsonrpc":"2.0","method":"q\"\n\u0001é"}"#
    );
    assert_eq!(
        written(&|out| rpc::encode_result(out, &Id::text("x"), &raw("null"))),
        r#"{"jsonrpc":"2.0","id":"x","result":null}"#
    );
    let error = ErrorObject::new(code::steerable::POLICY_DENIED, "no")
        .with_data(raw(r#"{"tool":"t"}"#))
        .with_member("kind", to_raw_value("policy_denied").unwrap());
    assert_eq!(
        written(&|out| rpc::encode_error(out, &Id::null(), &error)),
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32002,"message":"no","data":{"tool":"t"},"kind":"policy_denied"}}"#
    );
    assert_eq!(error.member("kind").map(RawValue::get), Some(r#""policy_denied""#));
}

#[test]
fn every_code_in_a_table_is_there_once() {
    for table in [code::STANDARD, code::steerable::TABLE, code::sep::TABLE, code::peer::TABLE] {
        let codes: HashSet<_> = table.iter().map(|entry| entry.code).collect();
        assert_eq!(codes.len(), table.len());
        for entry in table {
            assert_eq!(code::find(table, entry.code), Some(entry));
        }
    }
    assert_eq!(code::find(code::sep::TABLE, Code(-32023)).map(|entry| entry.slug), Some("cancelled"));
    assert_eq!(code::find(code::STANDARD, Code(-32023)), None);
}

#[test]
fn a_defect_has_the_words_that_sep_publishes() {
    for (defect, slug) in [
        (Defect::NotUtf8, "invalid_utf8"),
        (Defect::NotJson, "invalid_json"),
        (Defect::TooDeep, "depth"),
        (Defect::DuplicateKey, "duplicate_key"),
        (Defect::BatchUnsupported, "batch_unsupported"),
        (Defect::DuplicateId, "duplicate_id"),
        (Defect::BadId, "bad_id"),
        (Defect::Ambiguous, "bad_envelope"),
    ] {
        assert_eq!(defect.slug(), slug);
    }
    let error = Refusal::from(Defect::NotJson).to_error();
    assert_eq!(error, ErrorObject::new(code::PARSE_ERROR, "message is not valid JSON"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_back(number in any::<u64>(), text in ".{0,12}", method in ".{1,12}", params in ".{0,12}") {
        let params = to_raw_value(&params).unwrap();
        for id in [Id::from(number), Id::text(&text), Id::null()] {
            let mut out = Vec::new();
            rpc::encode_request(&mut out, &id, &method, Some(&params));
            let line = String::from_utf8(out).unwrap();
            prop_assert!(!line.contains('\n'));
            match parse(&line, &EnvelopePolicy::STANDARD) {
                Ok(Incoming::One(Message::Request { id: back, method: name, params: value, .. })) => {
                    prop_assert_eq!(back, id);
                    prop_assert_eq!(&*name, &*method);
                    prop_assert_eq!(value.map(RawValue::get), Some(params.get()));
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[\\[\\]{}\",:0-9a-z\\\\ \"jsonrpcidmethod]{0,80}") {
        for policy in [EnvelopePolicy::STANDARD, EnvelopePolicy::SEP, EnvelopePolicy::STEERABLE_HOST] {
            let is_json = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            let parsed = parse(&text, &policy);
            prop_assert!(is_json || parsed.is_err() || policy != EnvelopePolicy::SEP);
        }
    }
}
