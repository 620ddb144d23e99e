//! The lines between us and Claude Code: what kind a line is, and how ours are written. Whatever is only passed on is looked at
//! once and never taken apart.

use std::borrow::Cow;

use memchr::memmem;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// What a line of Claude Code is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `control_response`: the answer to one of our control requests.
    Answer,
    /// `control_request`: it wants something of us.
    Request,
    /// `control_cancel_request`: it does not want it any more.
    Cancel,
    /// Says nothing: `keep_alive` and the like.
    Quiet,
    /// `command_lifecycle`: what became of a message of ours.
    Lifecycle,
    /// `system`.
    System,
    /// `assistant`.
    Assistant,
    /// `result`.
    Result,
    /// Everything that is just passed on.
    Plain,
}

/// What kind a line is. The whole line is checked to be one JSON object, because it may go to the host as it is.
pub(super) fn kind_of(line: &str) -> Result<Kind, serde_json::Error> {
    let head: Head<'_> = serde_json::from_str(line)?;
    Ok(match &*head.kind {
        "control_response" => Kind::Answer,
        "control_request" => Kind::Request,
        "control_cancel_request" => Kind::Cancel,
        "keep_alive" | "transcript_mirror" => Kind::Quiet,
        "command_lifecycle" => Kind::Lifecycle,
        "system" => Kind::System,
        "assistant" => Kind::Assistant,
        "result" => Kind::Result,
        _ => Kind::Plain,
    })
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
}

/// `control_response`.
#[derive(Deserialize)]
pub(super) struct Answer<'a> {
    #[serde(borrow)]
    pub(super) response: Response<'a>,
}

/// What a control response holds.
#[derive(Deserialize)]
pub(super) struct Response<'a> {
    pub(super) subtype: String,
    pub(super) request_id: String,
    #[serde(borrow, default)]
    pub(super) response: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) error: Option<String>,
}

/// `control_request`.
#[derive(Deserialize)]
pub(super) struct Request<'a> {
    pub(super) request_id: String,
    #[serde(borrow)]
    pub(super) request: &'a RawValue,
}

/// `control_cancel_request`.
#[derive(Deserialize)]
pub(super) struct Cancel {
    pub(super) request_id: String,
}

/// `command_lifecycle`.
#[derive(Deserialize)]
pub(super) struct Lifecycle {
    pub(super) command_uuid: String,
    pub(super) state: String,
}

/// The members of `system` lines that matter to us.
#[derive(Deserialize)]
pub(super) struct System {
    #[serde(default)]
    pub(super) subtype: String,
    #[serde(default)]
    pub(super) state: String,
    #[serde(default)]
    pub(super) session_id: Option<String>,
    #[serde(default)]
    pub(super) model: Option<String>,
    #[serde(default, rename = "permissionMode")]
    pub(super) permission_mode: Option<String>,
}

/// The word that says why a message of `assistant` was made up by Claude Code itself; `None` for one of a model.
pub(super) fn made_up(assistant: &str) -> Option<String> {
    memmem::find(assistant.as_bytes(), b"\"<synthetic>\"")?;
    let line: Value = serde_json::from_str(assistant).ok()?;
    if line["message"]["model"] != "<synthetic>" {
        return None;
    }
    Some(line["error"].as_str().unwrap_or_default().to_owned())
}

/// The plan that a message of `assistant` hands over, as the model wrote it. What asks for leave to hand it over does not always
/// have it.
pub(super) fn plan_in(assistant: &str) -> Option<(String, String)> {
    const HAND_OVER: &str = "ExitPlanMode";
    memmem::find(assistant.as_bytes(), HAND_OVER.as_bytes())?;
    let line: Value = serde_json::from_str(assistant).ok()?;
    let blocks = line["message"]["content"].as_array()?;
    let block = blocks.iter().find(|block| block["type"] == "tool_use" && block["name"] == HAND_OVER)?;
    Some((block["id"].as_str()?.to_owned(), block["input"]["plan"].as_str()?.to_owned()))
}

/// A line of `assistant` as the host gets it: without the questions to the user, which come to it as such. `None` when nothing
/// of it is left.
pub(super) fn without_questions(assistant: &str) -> Option<Cow<'_, str>> {
    const QUESTION: &str = "AskUserQuestion";
    if memmem::find(assistant.as_bytes(), QUESTION.as_bytes()).is_none() {
        return Some(Cow::Borrowed(assistant));
    }
    let cut = || -> Result<Option<String>, serde_json::Error> {
        let mut line: Members<'_> = serde_json::from_str(assistant)?;
        let Some(message) = line.get("message") else { return Ok(Some(assistant.to_owned())) };
        let mut message: Members<'_> = serde_json::from_str(message)?;
        let Some(content) = message.get("content") else { return Ok(Some(assistant.to_owned())) };
        let blocks: Vec<&RawValue> = serde_json::from_str(content)?;
        let is_question = |block: &&RawValue| {
            let block: Block = serde_json::from_str(block.get()).unwrap_or_default();
            block.kind.as_deref() == Some("tool_use") && block.name.as_deref() == Some(QUESTION)
        };
        let kept: Vec<&RawValue> = blocks.iter().filter(|block| !is_question(block)).copied().collect();
        if kept.len() == blocks.len() {
            return Ok(Some(assistant.to_owned()));
        }
        if kept.is_empty() {
            return Ok(None);
        }
        let content = serde_json::value::to_raw_value(&kept)?;
        message.set("content", &content);
        let message = serde_json::value::to_raw_value(&message)?;
        line.set("message", &message);
        serde_json::to_string(&line).map(Some)
    };
    // What is not in the known form is none of our business.
    cut().unwrap_or_else(|_| Some(assistant.to_owned())).map(Cow::Owned)
}

#[derive(Default, Deserialize)]
struct Block {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

/// An object whose members keep their order and their spelling.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.get())
    }

    fn set(&mut self, name: &str, value: &'a RawValue) {
        for (_, old) in self.0.iter_mut().filter(|(key, _)| key == name) {
            *old = value;
        }
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    members.push((Cow::Owned(key), map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// A message of the user.
pub(super) fn user(uuid: &str, content: &[Value]) -> String {
    // One text is sent as a text: only then is `/compact` a command.
    let content = match content {
        [block] if block["type"] == "text" => block["text"].clone(),
        blocks => Value::Array(blocks.to_vec()),
    };
    let message = json!({"role": "user", "content": content});
    json!({"type": "user", "message": message, "parent_tool_use_id": null, "uuid": uuid}).to_string()
}

/// A control request of ours.
pub(super) fn request(id: &str, request: &Value) -> String {
    json!({"type": "control_request", "request_id": id, "request": request}).to_string()
}

/// The answer to a control request of Claude Code.
pub(super) fn answer(id: &str, answer: Result<&RawValue, &str>) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        r#type: &'static str,
        response: Body<'a>,
    }
    #[derive(Serialize)]
    struct Body<'a> {
        subtype: &'static str,
        request_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        response: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
    }
    let response = match answer {
        Ok(response) => Body { subtype: "success", request_id: id, response: Some(response), error: None },
        Err(why) => Body { subtype: "error", request_id: id, response: None, error: Some(why) },
    };
    // Strings and a raw value always serialise.
    serde_json::to_string(&Line { r#type: "control_response", response }).unwrap_or_default()
}

/// A random name in the form that Claude Code wants for messages.
pub(super) fn uuid() -> String {
    let mut bytes = [0_u8; 16];
    // Without randomness a name may occur twice; the process id and the clock are not worth the code.
    let _ = getrandom::fill(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_a_line_is_found_wherever_it_stands_and_only_at_the_top() {
        for (line, kind) in [
            (r#"{"type":"stream_event","event":{"type":"result"}}"#, Kind::Plain),
            (r#"{"usage":{"type":"system"},"type":"result"}"#, Kind::Result),
            (r#"{"type":"something new","x":[1,2]}"#, Kind::Plain),
            (r#"{"type":"keep_alive"}"#, Kind::Quiet),
            (r#"{"type":"sys\u0074em"}"#, Kind::System),
        ] {
            assert_eq!(kind_of(line).unwrap(), kind, "{line}");
        }
    }

    #[test]
    fn what_is_no_object_with_a_type_never_reaches_the_host() {
        for line in ["", "hello", "[]", "{}", r#"{"type":1}"#, r#"{"type":"x"} {"#, r#"{"type":"x","#, "null"]
        {
            assert!(kind_of(line).is_err(), "{line}");
        }
    }

    #[test]
    fn questions_are_taken_out_and_the_rest_keeps_its_spelling() {
        let line = r#"{"type":"assistant","message":{"z":1.50,"content":[{"type":"text","text":"a"},{"type":"tool_use","name":"AskUserQuestion","input":{}}],"a":1e3},"uuid":"u"}"#;
        let kept = r#"{"type":"assistant","message":{"z":1.50,"content":[{"type":"text","text":"a"}],"a":1e3},"uuid":"u"}"#;
        assert_eq!(without_questions(line).unwrap(), kept);
    }

    #[test]
    fn a_message_that_is_only_a_question_is_dropped_and_one_that_talks_about_it_stays() {
        let only =
            r#"{"type":"assistant","message":{"content":[{"type":"tool_use","name":"AskUserQuestion"}]}}"#;
        assert_eq!(without_questions(only), None);
        for line in [
            r#"{"type":"assistant","message":{"content":[{"type":"text","text":"AskUserQuestion"}]}}"#,
            r#"{"type":"assistant","message":"AskUserQuestion"}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"text","text":"no question"}]}}"#,
        ] {
            assert_eq!(without_questions(line).unwrap(), line);
        }
    }

    #[test]
    fn a_message_that_the_program_made_up_is_told_from_one_of_a_model() {
        let line =
            r#"{"type":"assistant","message":{"model":"<synthetic>","content":[]},"error":"rate_limit"}"#;
        assert_eq!(made_up(line).as_deref(), Some("rate_limit"));
        let line = r#"{"type":"assistant","message":{"model":"m","content":[{"type":"text","text":"\"<synthetic>\""}]}}"#;
        assert_eq!(made_up(line), None);
    }

    #[test]
    fn a_plan_is_found_in_the_message_that_hands_it_over() {
        let line = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","name":"ExitPlanMode","id":"t","input":{"plan":"do"}}]}}"#;
        assert_eq!(plan_in(line), Some(("t".to_owned(), "do".to_owned())));
        let line = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"ExitPlanMode"}]}}"#;
        assert_eq!(plan_in(line), None);
    }

    #[test]
    fn one_text_is_sent_as_text_and_more_as_blocks() {
        let text = json!({"type": "text", "text": "/compact"});
        let line: Value = serde_json::from_str(&user("u", std::slice::from_ref(&text))).unwrap();
        assert_eq!((&line["message"]["content"], &line["uuid"]), (&json!("/compact"), &json!("u")));
        let line: Value = serde_json::from_str(&user("u", &[text.clone(), text.clone()])).unwrap();
        assert_eq!(line["message"]["content"], json!([text, text]));
    }

    #[test]
    fn names_of_messages_are_uuids_and_differ() {
        let (one, two) = (uuid(), uuid());
        assert_ne!(one, two);
        let dashes: Vec<usize> = one.match_indices('-').map(|(at, _)| at).collect();
        assert_eq!((one.len(), dashes, &one[14..15]), (36, vec![8, 13, 18, 23], "4"));
    }
}
