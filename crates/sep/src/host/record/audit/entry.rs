//! What is written down about one decision: who asked for what and what the answer was, never what was said.

use std::borrow::Cow;

use outrigger_policy::audit::Scalar;
use outrigger_policy::canonical::{self, Spelling};
use outrigger_policy::{Digest, Millis};
use outrigger_wire::rpc::Id;
use serde_json::value::RawValue;

use crate::host::ui::is_hidden;
use crate::protocol::words::words;
use crate::protocol::{ExtensionId, Permission, SessionId};

words! {
    /// What a record is about.
    AuditKind ("kind of record") {
        /// A call of an extension.
        Rpc = "rpc",
        /// An attempt to attach.
        Attach = "attach",
        /// A start, a stop, a change of state.
        Lifecycle = "lifecycle",
        /// A permission that was given or taken back.
        Grant = "grant",
        /// How far an extension is trusted.
        Trust = "trust",
        /// The host's own rules, and the trail itself.
        Policy = "policy",
    }
}

words! {
    /// How it was decided.
    Ruling ("decision") {
        /// It may.
        Allow = "allow",
        /// It may not.
        Deny = "deny",
    }
}

/// One decision.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Who asked; none is the host itself.
    pub extension: Option<&'a ExtensionId>,
    /// In which session.
    pub session: Option<&'a SessionId>,
    /// What it is about.
    pub kind: AuditKind,
    /// The method, or what happened (`start`, `trust_clamped`).
    pub method: &'a str,
    /// The permission that decided.
    pub permission: Option<Permission>,
    /// How it was decided.
    pub decision: Ruling,
    /// Why: a stable word.
    pub reason: &'a str,
    /// The id of the request.
    pub request: Option<&'a Id>,
    /// The parameters. Only the hash of their canonical spelling is written.
    pub params: Option<&'a RawValue>,
}

/// The longest method or reason, in bytes; more is cut. Words of our own are far shorter.
const MAX_WORD_BYTES: usize = 128;

/// The members of one line, in the order of their names.
#[derive(Debug)]
pub(super) struct Members<'a> {
    list: [(&'static str, Scalar<'a>); 12],
    count: usize,
}

impl<'a> Members<'a> {
    fn new() -> Self {
        Self { list: [("", Scalar::Count(0)); 12], count: 0 }
    }

    fn push(&mut self, name: &'static str, scalar: Option<Scalar<'a>>) {
        if let (Some(scalar), Some(place)) = (scalar, self.list.get_mut(self.count)) {
            *place = (name, scalar);
            self.count += 1;
        }
    }

    pub(super) fn as_slice(&self) -> &[(&'static str, Scalar<'a>)] {
        &self.list[..self.count]
    }
}

/// An entry whose texts are fit to be written and whose parameters are hashed: nothing about it can fail any more, and
/// writing it is cheap. Made outside the lock.
#[derive(Debug)]
pub(super) struct Prepared<'a> {
    entry: Entry<'a>,
    method: Cow<'a, str>,
    reason: Cow<'a, str>,
    request: Option<Request<'a>>,
    params: Option<Digest>,
}

#[derive(Debug)]
enum Request<'a> {
    Count(u64),
    Text(Cow<'a, str>),
}

impl<'a> Prepared<'a> {
    pub(super) fn new(entry: &Entry<'a>) -> Self {
        let request = entry.request.map(|id| match id.as_u64() {
            Some(count) if count <= 1 << 53 => Request::Count(count),
            Some(_) | None => Request::Text(word(id.as_text().unwrap_or_else(|| id.as_json()))),
        });
        Self {
            entry: *entry,
            method: word(Cow::Borrowed(entry.method)),
            reason: word(Cow::Borrowed(entry.reason)),
            request,
            params: entry.params.map(|params| hash_params(params.get())),
        }
    }

    /// Whether it must be on its way to the disk before the caller goes on.
    pub(super) fn is_urgent(&self) -> bool {
        (self.entry.kind, self.entry.decision) != (AuditKind::Rpc, Ruling::Allow)
    }

    /// What makes it the same as another denial; none if it is never counted.
    pub(super) fn same(&self) -> Option<Same> {
        let extension = self.entry.extension?;
        (self.entry.decision == Ruling::Deny).then(|| Same {
            extension: extension.clone(),
            kind: self.entry.kind,
            method: self.method.as_ref().into(),
            permission: self.entry.permission,
            reason: self.reason.as_ref().into(),
        })
    }

    pub(super) fn members(&self) -> Members<'_> {
        let entry = &self.entry;
        let mut members = Members::new();
        members.push("decision", Some(Scalar::Text(entry.decision.as_str())));
        members.push("ext", entry.extension.map(|id| Scalar::Text(id.as_str())));
        members.push("kind", Some(Scalar::Text(entry.kind.as_str())));
        members.push("method", Some(Scalar::Text(&self.method)));
        members.push("params", self.params.map(Scalar::Hash));
        members.push("permission", entry.permission.map(|permission| Scalar::Text(permission.as_str())));
        members.push("reason", Some(Scalar::Text(&self.reason)));
        let request = self.request.as_ref().map(|request| match request {
            Request::Count(count) => Scalar::Count(*count),
            Request::Text(text) => Scalar::Text(text),
        });
        members.push("reqId", request);
        members.push("session", entry.session.map(|id| Scalar::Text(id.as_str())));
        members
    }
}

/// What makes two denials the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Same {
    extension: ExtensionId,
    kind: AuditKind,
    method: Box<str>,
    permission: Option<Permission>,
    reason: Box<str>,
}

impl Same {
    /// The record that stands for `repeat` denials, the first of which came at `first`.
    pub(super) fn members(&self, repeat: u64, first: Millis) -> Members<'_> {
        let mut members = Members::new();
        members.push("decision", Some(Scalar::Text(Ruling::Deny.as_str())));
        members.push("ext", Some(Scalar::Text(self.extension.as_str())));
        members.push("firstTs", Some(Scalar::Count(first.0)));
        members.push("kind", Some(Scalar::Text(self.kind.as_str())));
        members.push("method", Some(Scalar::Text(&self.method)));
        members.push("permission", self.permission.map(|permission| Scalar::Text(permission.as_str())));
        members.push("reason", Some(Scalar::Text(&self.reason)));
        members.push("repeat", Some(Scalar::Count(repeat)));
        members
    }
}

/// A record of the trail about itself.
pub(super) fn own_members<'a>(method: &'a str, reason: &'a str, repeat: Option<u64>) -> Members<'a> {
    let mut members = Members::new();
    members.push("decision", Some(Scalar::Text(Ruling::Allow.as_str())));
    members.push("kind", Some(Scalar::Text(AuditKind::Policy.as_str())));
    members.push("method", Some(Scalar::Text(method)));
    members.push("reason", Some(Scalar::Text(reason)));
    members.push("repeat", repeat.map(Scalar::Count));
    members
}

/// The hash of parameters, as `sha256sum` gives it for their canonical spelling. What has none (an integer that no double
/// carries) is spelled with its keys in order and its numbers as they are, and what is not even JSON is hashed as it came: an
/// extension cannot choose parameters that stop the trail.
fn hash_params(text: &str) -> Digest {
    let Ok(value) = serde_json::from_str(text) else { return Digest::of(text.as_bytes()) };
    canonical::hash(&value, Spelling::Rfc8785)
        .or_else(|_| canonical::hash(&value, Spelling::ByteOrder))
        .unwrap_or_else(|_| Digest::of(text.as_bytes()))
}

/// A word fit for one line; nearly always it is and costs nothing.
fn word(text: Cow<'_, str>) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    if text.len() <= MAX_WORD_BYTES && text.bytes().all(is_plain) {
        return text;
    }
    let shown = text[..text.floor_char_boundary(MAX_WORD_BYTES)].chars();
    Cow::Owned(shown.map(|c| if is_hidden(c) { '\u{FFFD}' } else { c }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_mean_the_same_have_the_same_hash() {
        let one = hash_params(r#"{"b":1.0,"a":"\u0078"}"#);
        assert_eq!(one, hash_params(r#"{ "a": "x", "b": 1 }"#));
        assert_eq!(one, Digest::of(br#"{"a":"x","b":1}"#));
        assert_ne!(one, hash_params(r#"{"a":"x","b":2}"#));
    }

    #[test]
    fn parameters_without_a_canonical_spelling_still_have_a_hash() {
        assert_ne!(hash_params("9007199254740993"), hash_params("9007199254740992"));
        assert_eq!(hash_params("nonsense"), Digest::of(b"nonsense"));
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        assert_eq!(hash_params(&deep), Digest::of(deep.as_bytes()));
    }

    #[test]
    fn a_word_is_one_short_line_whatever_it_was() {
        assert_eq!(word("host.messages.send".into()), "host.messages.send");
        assert_eq!(word("a\nb\u{202e}é".into()), "a\u{FFFD}b\u{FFFD}é");
        assert_eq!(word("x".repeat(128).into()).len(), 128);
        assert_eq!(word("x".repeat(129).into()).len(), 128);
    }
}
