//! A line from the host: a request, the answer to a question of ours, or neither, and then why.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A line from the host.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// A request. Its parameters are an object; which members they need is for the method to say.
    Request {
        /// Its name.
        id: Cow<'a, str>,
        /// What is wanted.
        method: Cow<'a, str>,
        /// How.
        params: &'a RawValue,
    },
    /// The answer to a `hostRequest`.
    HostResponse {
        /// Which one.
        callback_id: Cow<'a, str>,
        /// The answer.
        answer: Result<Option<&'a RawValue>, String>,
    },
    /// Neither.
    Bad {
        /// The id, if there is one that is a string.
        id: Option<String>,
        /// What is wrong.
        why: String,
    },
}

impl<'a> Incoming<'a> {
    /// Reads a line. There is no line that has no answer.
    #[must_use]
    pub fn read(line: &'a str) -> Self {
        let mut json = serde_json::Deserializer::from_str(line);
        let read = json.deserialize_map(Members).and_then(|members| json.end().map(|()| members));
        match read {
            Ok(members) => members.judge(),
            Err(error) if error.is_data() => Self::Bad { id: None, why: "a request is an object".to_owned() },
            Err(error) => Self::Bad { id: None, why: format!("not JSON: {error}") },
        }
    }
}

/// The members that we know, as text. The last one of a name counts, as in every JSON parser of a host.
#[derive(Default)]
struct Envelope<'a> {
    kind: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    callback_id: Option<&'a RawValue>,
    ok: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

impl<'a> Envelope<'a> {
    fn judge(self) -> Incoming<'a> {
        if self.kind.and_then(text).as_deref() == Some("hostResponse") {
            return self.host_response();
        }
        let id = self.id.and_then(text);
        let bad = |why: &str| Incoming::Bad { id: id.clone().map(Cow::into_owned), why: why.to_owned() };
        let Some(name) = id.clone() else { return bad("id must be a string") };
        let Some(method) = self.method.and_then(text) else { return bad("method must be a string") };
        match self.params {
            Some(params) if params.get().starts_with('{') => Incoming::Request { id: name, method, params },
            Some(_) | None => bad("params must be an object"),
        }
    }

    fn host_response(self) -> Incoming<'a> {
        let Some(callback_id) = self.callback_id.and_then(text) else {
            return Incoming::Bad { id: None, why: "callbackId must be a string".to_owned() };
        };
        let error = self.error.filter(|error| error.get() != "null");
        let answer = match error {
            None => Ok(self.ok),
            Some(error) => {
                Err(text(error).map_or_else(|| error.get().chars().take(1000).collect(), Cow::into_owned))
            }
        };
        Incoming::HostResponse { callback_id, answer }
    }
}

/// The string that a text is, without a copy where it has no escapes.
pub(super) fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inside = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inside.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inside));
    }
    serde_json::from_str(raw.get()).ok().map(Cow::Owned)
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Envelope<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = Envelope::default();
        while let Some(name) = map.next_key::<Name<'de>>()? {
            let place = match &*name.0 {
                "type" => &mut found.kind,
                "id" => &mut found.id,
                "method" => &mut found.method,
                "params" => &mut found.params,
                "callbackId" => &mut found.callback_id,
                "ok" => &mut found.ok,
                "error" => &mut found.error,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            *place = Some(map.next_value()?);
        }
        Ok(found)
    }
}

/// The name of a member, without a copy where it has no escapes.
pub(super) struct Name<'a>(pub(super) Cow<'a, str>);

impl<'de> serde::Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E: serde::de::Error>(self, name: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }
        json.deserialize_str(Text).map_err(|error| D::Error::custom(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(line: &str) -> (Option<String>, String) {
        match Incoming::read(line) {
            Incoming::Bad { id, why } => (id, why),
            other => panic!("{line} is {other:?}"),
        }
    }

    #[test]
    fn a_request_is_read_without_copying_what_it_carries() {
        let line = r#"{"params":{"a":[1,{"b":1e400}]},"extra":{"id":"x"},"id":"r1","method":"ping"}"#;
        let Incoming::Request { id, method, params } = Incoming::read(line) else { panic!("a request") };
        assert!(matches!((&id, &method), (Cow::Borrowed("r1"), Cow::Borrowed("ping"))));
        assert_eq!(params.get(), r#"{"a":[1,{"b":1e400}]}"#);
    }

    #[test]
    fn the_last_of_two_members_of_a_name_counts() {
        let line = r#"{"id":"a","id":"b\u0021","method":"ping","params":{}}"#;
        assert!(matches!(Incoming::read(line), Incoming::Request { id, .. } if id == "b!"));
    }

    #[test]
    fn what_is_wrong_with_a_line_is_said_with_the_id_if_it_is_a_string() {
        let some = |id: &str| Some(id.to_owned());
        for (line, id, expected) in [
            ("[]", None, "a request is an object"),
            ("7", None, "a request is an object"),
            ("{}", None, "id must be a string"),
            (r#"{"id":1,"method":"ping","params":{}}"#, None, "id must be a string"),
            (r#"{"id":"\ud800","method":"ping","params":{}}"#, None, "id must be a string"),
            (r#"{"id":"a","params":{}}"#, some("a"), "method must be a string"),
            (r#"{"id":"a","method":["ping"],"params":{}}"#, some("a"), "method must be a string"),
            (r#"{"id":"a","method":"ping"}"#, some("a"), "params must be an object"),
            (r#"{"id":"a","method":"ping","params":null}"#, some("a"), "params must be an object"),
            (r#"{"id":"a","method":"ping","params":[]}"#, some("a"), "params must be an object"),
            (r#"{"type":"hostResponse","callbackId":1}"#, None, "callbackId must be a string"),
        ] {
            assert_eq!(why(line), (id, expected.to_owned()), "{line}");
        }
        for line in ["{", "nonsense", r#"{"id":"a","method":"ping","params":{}} more"#, "\u{0}"] {
            assert!(why(line).1.starts_with("not JSON: "), "{line}");
        }
    }

    #[test]
    fn an_answer_of_the_host_is_no_request_whatever_else_it_has() {
        let line =
            r#"{"type":"hostResponse","callbackId":"c","ok":[1],"id":"a","method":"ping","params":{}}"#;
        let Incoming::HostResponse { callback_id, answer } = Incoming::read(line) else {
            panic!("an answer")
        };
        assert_eq!((&*callback_id, answer.unwrap().map(RawValue::get)), ("c", Some("[1]")));
        let line = r#"{"type":"hostResponse","callbackId":"c","error":"no\n"}"#;
        assert!(
            matches!(Incoming::read(line), Incoming::HostResponse { answer: Err(why), .. } if why == "no\n")
        );
    }
}
