//! The first frame of a connection. Only one is accepted; everything else is a reason to hang up.

use outrigger_wire::rpc::{self, EnvelopePolicy, Id, Incoming, Message};
use serde::Deserialize;

use super::attach::Why;
use super::token::wipe;
use crate::protocol::{HostMethod, Sdk};

/// An attach as it was written, not yet believed.
pub(super) struct Greeting {
    pub(super) id: Id,
    pub(super) attach: Attach,
}

/// What an attach says. Unlike the type for those who send one, it knows no other members, and forgets the token.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Attach {
    pub(super) token: String,
    pub(super) session: String,
    #[serde(default)]
    pub(super) sdk: Option<Sdk>,
}

impl Drop for Attach {
    fn drop(&mut self) {
        let mut token = std::mem::take(&mut self.token).into_bytes();
        wipe(&mut token);
    }
}

/// Why the first frame is refused, and what its answer is for.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) why: Why,
    pub(super) id: Option<Id>,
}

const MAX_SDK_NAME: usize = 64;
const MAX_SDK_WORD: usize = 32;

/// Reads the first line of a connection, with or without its line ending.
pub(super) fn read(line: &[u8]) -> Result<Greeting, Refused> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let other = Refused { why: Why::NotAttach, id: None };
    let Ok(text) = std::str::from_utf8(line) else { return Err(other) };
    let (id, method, params) = match rpc::parse(text, &EnvelopePolicy::SEP) {
        Ok(Incoming::One(Message::Request { id, method, params, .. })) => (id, method, params),
        Ok(Incoming::One(_) | Incoming::Batch(_)) => return Err(other),
        Err(refusal) => return Err(Refused { why: Why::NotAttach, id: refusal.id }),
    };
    if method != HostMethod::Attach.as_str() {
        return Err(Refused { why: Why::NotAttach, id: Some(id) });
    }
    let attach = params.and_then(|params| serde_json::from_str::<Attach>(params.get()).ok());
    match attach.filter(|attach| attach.sdk.as_ref().is_none_or(is_short)) {
        Some(attach) => Ok(Greeting { id, attach }),
        None => Err(Refused { why: Why::BadParams, id: Some(id) }),
    }
}

fn is_short(sdk: &Sdk) -> bool {
    let fits = |text: &str, most: usize| text.chars().count() <= most && !text.contains(char::is_control);
    fits(&sdk.name, MAX_SDK_NAME) && fits(&sdk.version, MAX_SDK_WORD) && fits(&sdk.language, MAX_SDK_WORD)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(line: &str) -> (Why, Option<String>) {
        match read(line.as_bytes()) {
            Ok(_) => panic!("accepted: {line}"),
            Err(refused) => (refused.why, refused.id.map(|id| id.to_string())),
        }
    }

    #[test]
    fn an_attach_is_read_with_either_line_ending() {
        let line = r#"{"jsonrpc":"2.0","id":7,"method":"host.attach","params":{"token":"ab","session":"S","sdk":{"name":"n","version":"1","language":"rust"}}}"#;
        for end in ["", "\n", "\r\n"] {
            let greeting =
                read(format!("{line}{end}").as_bytes()).unwrap_or_else(|refused| panic!("{refused:?}"));
            assert_eq!(greeting.id.to_string(), "7");
            assert_eq!((greeting.attach.token.as_str(), greeting.attach.session.as_str()), ("ab", "S"));
            assert_eq!(greeting.attach.sdk.as_ref().map(|sdk| sdk.language.as_str()), Some("rust"));
        }
    }

    #[test]
    fn anything_else_is_not_an_attach() {
        for line in ["", "\r", "GET / HTTP/1.1\r\n", "[]", "\"host.attach\"", "{", "\u{feff}{}"] {
            assert_eq!(why(line), (Why::NotAttach, None), "{line:?}");
        }
        assert_eq!(read(b"\xff\xfe").err().map(|refused| refused.why), Some(Why::NotAttach));
        let note = r#"{"jsonrpc":"2.0","method":"host.attach","params":{"token":"ab","session":"S"}}"#;
        assert_eq!(why(note), (Why::NotAttach, None));
        let other = r#"{"jsonrpc":"2.0","id":"x","method":"host.get_capabilities"}"#;
        assert_eq!(why(other), (Why::NotAttach, Some("\"x\"".into())));
        let twice =
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"host.attach","params":{"token":"a","session":"S"}}"#;
        assert_eq!(why(twice).0, Why::NotAttach);
    }

    #[test]
    fn params_that_do_not_fit_are_refused_with_the_id() {
        let long = |most: usize| {
            let name = "é".repeat(most);
            format!(r#"{{"token":"a","session":"S","sdk":{{"name":"{name}","version":"1","language":"x"}}}}"#)
        };
        let attach =
            |params: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"host.attach","params":{params}}}"#);
        assert!(read(attach(&long(64)).as_bytes()).is_ok(), "64 code points are fine");
        for params in [
            &long(65),
            "[]",
            "{}",
            r#"{"token":"a"}"#,
            r#"{"token":1,"session":"S"}"#,
            r#"{"token":"a","session":"S","more":1}"#,
        ] {
            assert_eq!(why(&attach(params)), (Why::BadParams, Some("1".into())), "{params}");
        }
        assert_eq!(why(r#"{"jsonrpc":"2.0","id":1,"method":"host.attach"}"#).0, Why::BadParams);
    }
}
