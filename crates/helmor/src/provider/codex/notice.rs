//! What the server tells by itself: which thread and turn it is about, and how it is passed on.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// What a notification is about. Everything else in it is only passed on.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct About {
    thread_id: Option<String>,
    turn_id: Option<String>,
    thread: Option<Named>,
    turn: Option<Named>,
    conversation_id: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Named {
    id: String,
}

impl About {
    /// Reads it; what cannot be read is about nothing in particular.
    pub(super) fn read(params: &RawValue) -> Self {
        serde_json::from_str(params.get()).unwrap_or_default()
    }

    /// The thread.
    pub(super) fn thread(&self) -> Option<&str> {
        let named = self.thread.as_ref().map(|thread| thread.id.as_str());
        self.thread_id.as_deref().or(self.conversation_id.as_deref()).or(named)
    }

    /// The turn.
    pub(super) fn turn(&self) -> Option<&str> {
        self.turn_id.as_deref().or(self.turn.as_ref().map(|turn| turn.id.as_str()))
    }
}

/// The turn of `turn/completed`.
#[derive(Debug, Deserialize)]
pub(super) struct Completed {
    /// It.
    pub(super) turn: CompletedTurn,
}

/// How a turn ended.
#[derive(Debug, Deserialize)]
pub(super) struct CompletedTurn {
    /// `completed`, `interrupted`, `failed`, or a word to come.
    pub(super) status: String,
    /// Why it failed.
    pub(super) error: Option<Value>,
}

/// The item of `item/started` and `item/completed`.
#[derive(Debug, Deserialize)]
pub(super) struct WithItem<'a> {
    /// It.
    #[serde(borrow)]
    pub(super) item: Item<'a>,
}

/// What we look at in an item.
#[derive(Debug, Deserialize)]
pub(super) struct Item<'a> {
    /// Its name.
    pub(super) id: String,
    /// What sort.
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// What an answer says.
    #[serde(default)]
    pub(super) text: Option<String>,
    /// What a patch changes.
    #[serde(borrow, default)]
    pub(super) changes: Option<&'a RawValue>,
}

impl<'a> WithItem<'a> {
    /// Reads it.
    pub(super) fn read(params: &'a RawValue) -> Option<Item<'a>> {
        serde_json::from_str::<Self>(params.get()).ok().map(|with| with.item)
    }
}

/// The text of the object that a notification becomes: its method as `type`, its members as they were written, and the name of
/// the thread.
pub(super) fn object(method: &str, params: &RawValue, thread: &str) -> String {
    let params = params.get().trim_ascii();
    let members = params.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).map(str::trim_ascii);
    // `Display` of a JSON string is its JSON spelling.
    let (kind, thread) = (Value::from(method), Value::from(thread));
    match members {
        Some("") => format!("{{\"type\":{kind},\"session_id\":{thread}}}"),
        Some(members) => format!("{{\"type\":{kind},{members},\"session_id\":{thread}}}"),
        None if params == "null" => format!("{{\"type\":{kind},\"session_id\":{thread}}}"),
        None => format!("{{\"type\":{kind},\"params\":{params},\"session_id\":{thread}}}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn members_are_passed_on_as_they_were_written() {
        let params = raw("{\"b\": 1.50,\"a\":\"\\u00e9\", \"n\":1e400}");
        let object = object("item/started", &params, "T-1");
        assert_eq!(
            object,
            "{\"type\":\"item/started\",\"b\": 1.50,\"a\":\"\\u00e9\", \"n\":1e400,\"session_id\":\"T-1\"}"
        );
    }

    #[test]
    fn a_notification_without_members_has_its_type_and_its_session() {
        for params in ["{}", "{ }", "null"] {
            assert_eq!(object("x", &raw(params), "T"), r#"{"type":"x","session_id":"T"}"#);
        }
        assert_eq!(object("x", &raw("[1]"), "T"), r#"{"type":"x","params":[1],"session_id":"T"}"#);
    }

    #[test]
    fn the_thread_is_found_wherever_it_is_named() {
        let thread = |params: &str| About::read(&raw(params)).thread().map(str::to_owned);
        assert_eq!(thread(r#"{"threadId":"a","turnId":null}"#).as_deref(), Some("a"));
        assert_eq!(thread(r#"{"thread":{"id":"b","cwd":"/"}}"#).as_deref(), Some("b"));
        assert_eq!(thread(r#"{"conversationId":"c"}"#).as_deref(), Some("c"));
        assert_eq!(thread(r#"{"threadId":7}"#), None);
        assert_eq!(thread("[]"), None);
        let turn = |params: &str| About::read(&raw(params)).turn().map(str::to_owned);
        assert_eq!(turn(r#"{"threadId":"a","turn":{"id":"t"}}"#).as_deref(), Some("t"));
    }
}
