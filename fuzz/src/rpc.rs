//! The envelope: the parser never panics, agrees with another JSON parser about what is JSON, and reads what it writes.

use outrigger_wire::rpc::{
    Batch, Defect, Duplicates, EnvelopePolicy, ErrorId, Ids, Incoming, Message, NestingLimit, Refusal,
    Strangers, Version, VoidResult, encode_error, encode_notification, encode_request, encode_result, parse,
};
use serde_json::value::RawValue;

use crate::Choices;

/// Parses the input as a line under a policy that the input chooses.
pub fn rpc(input: &[u8]) {
    let mut choices = Choices::new(input);
    let policy = policy(&mut choices);
    let Ok(text) = std::str::from_utf8(choices.rest) else { return };
    let parsed = parse(text, &policy);
    let is_json = serde_json::from_str::<&RawValue>(text).is_ok();
    assert!(parsed.is_err() || is_json, "what was accepted is JSON");
    if let Err(Refusal { defect: Defect::NotJson, .. }) = parsed {
        // Raw values let lone surrogates and endless numbers pass; a parser that decodes everything does not.
        assert!(
            !is_json || serde_json::from_str::<serde_json::Value>(text).is_err(),
            "what was refused is not JSON"
        );
    }
    match parsed {
        Ok(Incoming::One(message)) => again(&message),
        Ok(Incoming::Batch(messages)) => {
            assert!(!messages.is_empty());
            messages.iter().flatten().for_each(again);
        }
        Err(refusal) => assert!(refusal.to_error().code == refusal.defect.code()),
    }
}

fn policy(choices: &mut Choices<'_>) -> EnvelopePolicy {
    EnvelopePolicy {
        nesting: NestingLimit(u16::from(choices.byte() % 70)),
        duplicates: choices.pick(&[
            Duplicates::LastWins,
            Duplicates::RefuseInEnvelope,
            Duplicates::RefuseEverywhere,
        ]),
        version: choices.pick(&[Version::Unchecked, Version::OptionalButRight, Version::Required]),
        batch: choices.pick(&[Batch::Refuse, Batch::Accept { most: 3 }]),
        ids: choices.pick(&[Ids::Any, Ids::Standard, Ids::Portable]),
        strangers: choices.pick(&[Strangers::Ignore, Strangers::Keep]),
        void_result: choices.pick(&[VoidResult::Refuse, VoidResult::MayBeMissing]),
        error_id: choices.pick(&[ErrorId::Required, ErrorId::MayBeMissing]),
    }
}

/// Writes a message and reads it back under the plainest policy: nothing may have changed.
fn again(message: &Message<'_>) {
    let mut line = Vec::new();
    match message {
        Message::Request { id, method, params, .. } => encode_request(&mut line, id, method, *params),
        Message::Notification { method, params, .. } => encode_notification(&mut line, method, *params),
        Message::Response { id, result: Some(result), .. } => encode_result(&mut line, id, result),
        Message::Error { id: Some(id), error, .. } => encode_error(&mut line, id, error),
        Message::Response { result: None, .. } | Message::Error { id: None, .. } => return,
    }
    assert!(!line.contains(&b'\n'), "a message stays on its line");
    let Ok(text) = std::str::from_utf8(&line) else { panic!("a message is text") };
    let lenient = EnvelopePolicy {
        nesting: NestingLimit(u16::MAX),
        duplicates: Duplicates::LastWins,
        ids: Ids::Any,
        ..EnvelopePolicy::STANDARD
    };
    let Ok(Incoming::One(back)) = parse(text, &lenient) else { panic!("{text} is not read back") };
    match (message, &back) {
        (
            Message::Request { id, method, params, .. },
            Message::Request { id: id2, method: method2, params: params2, .. },
        ) => {
            assert!(id == id2 && method == method2 && same(*params, *params2));
        }
        (
            Message::Notification { method, params, .. },
            Message::Notification { method: method2, params: params2, .. },
        ) => assert!(method == method2 && same(*params, *params2)),
        (Message::Response { id, result, .. }, Message::Response { id: id2, result: result2, .. }) => {
            assert!(id == id2 && same(*result, *result2));
        }
        (Message::Error { id, error, .. }, Message::Error { id: id2, error: error2, .. }) => {
            assert!(id == id2 && error.code == error2.code && error.message == error2.message);
            assert!(same(error.data.as_deref(), error2.data.as_deref()));
        }
        (_, other) => panic!("{message:?} came back as {other:?}"),
    }
}

/// Equal byte for byte, except that line breaks between tokens may have become blanks.
fn same(one: Option<&RawValue>, other: Option<&RawValue>) -> bool {
    let flat = |raw: &RawValue| raw.get().replace(['\n', '\r'], " ");
    one.map(flat) == other.map(flat)
}
