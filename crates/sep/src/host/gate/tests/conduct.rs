//! What is borne with and what is not.

use std::time::Duration;

use outrigger_wire::peer::End;
use serde_json::{Value, json};
use tokio::time::advance;

use super::{Trial, everything, limits, notification, outcome, request};
use crate::protocol::{HostMethod, Limits, V1_0, V1_1};

async fn is_alive(trial: &mut Trial) {
    assert!(trial.call(HostMethod::GetCapabilities, json!({})).await.is_ok());
}

fn ended(kind: &str) -> End {
    End::Violation(kind.into())
}

#[tokio::test(start_paused = true)]
async fn every_bad_frame_is_answered_without_an_id_and_the_session_stays() {
    let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
    let cases: &[(&[u8], i64, &str)] = &[
        (b"\xff{}", -32700, "invalid_utf8"),
        (b"{", -32700, "invalid_json"),
        (br#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#, -32700, "invalid_json"),
        (deep.as_bytes(), -32700, "depth"),
        (br#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":{"b":1,"b":2}}}"#, -32700, "duplicate_key"),
        (b"[]", -32600, "batch_unsupported"),
        (b"1", -32600, "bad_envelope"),
        (br#"{"id":1,"method":"x"}"#, -32600, "bad_envelope"),
        (br#"{"jsonrpc":"2.0","id":null,"method":"x"}"#, -32600, "bad_id"),
        (br#"{"jsonrpc":"2.0","id":"","method":"x"}"#, -32600, "bad_id"),
        (br#"{"jsonrpc":"2.0","id":9007199254740992,"method":"x"}"#, -32600, "bad_id"),
    ];
    for (frame, code, reason) in cases {
        let mut trial = Trial::open();
        trial.send_bytes(frame).await;
        let answer = trial.read().await.expect("an answer");
        assert_eq!(answer["error"]["code"], *code, "{reason}");
        assert_eq!(answer["error"]["data"]["reason"], *reason, "{answer}");
        if *code == -32700 {
            assert_eq!(answer["id"], Value::Null);
        }
        is_alive(&mut trial).await;
    }
}

#[tokio::test(start_paused = true)]
async fn twenty_bad_frames_in_ten_seconds_are_borne_with_and_the_next_one_is_not() {
    let mut trial = Trial::open();
    for _ in 0..20 {
        assert_eq!(trial.exchange("{").await["error"]["code"], -32700);
    }
    is_alive(&mut trial).await;
    advance(Duration::from_secs(10)).await;
    for _ in 0..20 {
        assert_eq!(trial.exchange("{").await["error"]["code"], -32700);
    }
    is_alive(&mut trial).await;
    assert_eq!(trial.exchange("{").await["error"]["code"], -32700, "the last one is told too");
    assert_eq!(trial.end().await, ended("protocol_violation"));
}

#[tokio::test(start_paused = true)]
async fn two_oversize_frames_in_ten_seconds_are_borne_with_and_the_third_is_not() {
    let frame = limits().max_frame_bytes;
    let mut trial = Trial::open();
    let whole = |length: usize| {
        let mut line = request(&json!(1), "no.such", None);
        let padding = length - line.len();
        line.push_str(&" ".repeat(padding));
        line
    };
    assert_eq!(trial.exchange(&whole(frame)).await["error"]["code"], -32601, "at the limit");
    let data = json!({ "sep": "payload_too_large", "limit": frame });
    for _ in 0..2 {
        let answer = trial.exchange(&whole(frame + 1)).await;
        assert_eq!(answer["id"], Value::Null);
        assert_eq!(outcome(answer), Err(json!({ "code": -32001, "data": data })));
    }
    is_alive(&mut trial).await;
    assert_eq!(trial.exchange(&whole(frame + 1)).await["error"]["code"], -32001);
    assert_eq!(trial.end().await, ended("frame_overrun"));
}

#[tokio::test(start_paused = true)]
async fn ten_answers_to_nothing_are_borne_with_and_the_eleventh_is_not() {
    let mut trial = Trial::open();
    let stray = json!({ "jsonrpc": "2.0", "id": 99, "result": {} }).to_string();
    for _ in 0..10 {
        trial.send(&stray).await;
    }
    is_alive(&mut trial).await;
    trial.send(&stray).await;
    assert_eq!(trial.end().await, ended("protocol_violation"));
}

#[tokio::test(start_paused = true)]
async fn a_log_line_is_written_at_1_1_and_not_at_1_0_and_never_answered() {
    for (version, lines) in [(V1_1, 2), (V1_0, 0)] {
        let mut trial = Trial::at(version, limits(), everything());
        let fields = json!({ "level": "warn", "message": "hello", "fields": { "n": 1 } });
        trial.send(&notification("host.log", fields)).await;
        trial.send(&notification("host.log", json!({ "level": "loud", "message": "hello" }))).await;
        // Notifications are heard one after the other: what the last one leaves behind is behind the others.
        trial.send(&notification("host.messages.send", json!({}))).await;
        while trial.witness.seen().is_empty() {
            tokio::task::yield_now().await;
        }
        is_alive(&mut trial).await;
        let pages = trial.pages.0.lock().expect("whole").clone();
        assert_eq!(pages.len(), lines, "{pages:?}");
        if let [first, second] = &pages[..] {
            assert_eq!(first, r#"ext warn hello {"n":1}"#);
            assert!(second.starts_with("host warn a line for the log was not written"), "{second}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_fit_says_so() {
    let mut trial = Trial::at(V1_1, Limits { max_frame_bytes: 1024, ..limits() }, everything());
    let answer = trial.call(HostMethod::GetCapabilities, json!({})).await;
    let data = json!({ "sep": "payload_too_large", "limit": 1024 });
    assert_eq!(answer, Err(json!({ "code": -32001, "data": data })));
}

#[test]
fn any_bytes_are_survived() {
    let frames: &[&[u8]] = &[
        b"",
        b"\x7f\x3f\x00",
        b"\x7f\x3b\x00{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"host.messages.list\"}\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"host.messages.send\",\"params\":{}}",
        b"\x00\x00\x03{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"host.messages.list\"}",
        b"\x7f\x20\x03{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"host.messages.send\",\"params\":{\"destinationHash\":\"11111111111111111111111111111111\",\"content\":\"x\"}}",
        b"\x00\x20\x00\xff\xfe\n[[[\n{}\n\n\n\r\n\0",
    ];
    for bytes in frames {
        super::super::fuzz(bytes);
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig {
        failure_persistence: None,
        ..proptest::prelude::ProptestConfig::with_cases(256)
    })]

    #[test]
    fn any_sequence_of_frames_is_answered_frame_by_frame(
        header in proptest::array::uniform3(proptest::num::u8::ANY),
        frames in proptest::collection::vec(frame(), 0..40),
    ) {
        let mut bytes = header.to_vec();
        for frame in frames {
            bytes.extend(frame);
            bytes.push(b'\n');
        }
        super::super::fuzz(&bytes);
    }
}

/// A frame that is right, nearly right, or nothing of the kind.
fn frame() -> impl proptest::strategy::Strategy<Value = Vec<u8>> {
    use proptest::prelude::*;
    let id = prop_oneof![Just("1"), Just("2"), Just("\"a\""), Just("null"), Just("1.5")];
    let method = proptest::sample::select(HostMethod::ALL).prop_map(|method| method.as_str().to_owned());
    let method =
        prop_oneof![8 => method, 1 => Just("sep.event".to_owned()), 1 => Just("$/cancel".to_owned())];
    let params = prop_oneof![
        Just(r#"{}"#.to_owned()),
        Just(r#"[]"#.to_owned()),
        Just(r#"{"id":1}"#.to_owned()),
        Just(
            r#"{"destinationHash":"11111111111111111111111111111111","content":"x","clientMessageId":"k"}"#
                .to_owned()
        ),
        Just(
            r#"{"id":"p","title":"P","slot":"tools.page.primary","actions":[{"id":"a","label":"A"}]}"#
                .to_owned()
        ),
        Just(r#"{"id":"p","content":[{"type":"text","text":"t"}]}"#.to_owned()),
        Just(r#"{"message":"m","level":"info","key":"k"}"#.to_owned()),
        Just(r#"{"topics":["message.received","nope"]}"#.to_owned()),
        Just(r#"{"limit":2,"cursor":"AAAA"}"#.to_owned()),
        "\\PC{0,40}".prop_map(|text| json!({ "query": text }).to_string()),
    ];
    let request = (id, method.clone(), params.clone()).prop_map(|(id, method, params)| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#).into_bytes()
    });
    let notification = (method, params).prop_map(|(method, params)| {
        format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#).into_bytes()
    });
    let reply = Just(br#"{"jsonrpc":"2.0","id":3,"result":{}}"#.to_vec());
    let noise = proptest::collection::vec(any::<u8>(), 0..60);
    let long = (1000_usize..1100).prop_map(|length| vec![b' '; length]);
    prop_oneof![12 => request, 3 => notification, 1 => reply, 1 => noise, 1 => long]
}
