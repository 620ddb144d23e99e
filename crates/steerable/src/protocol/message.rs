//! Messages as hosts write them, in the dialect's own form and in OpenAI's, and as `agent.session.messages` shows them.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::fields::{Fields, ParamError};
use crate::chat::{Image, Message, Part, Role, ToolCall};

/// What a picture without a media type is taken for.
const DEFAULT_MEDIA_TYPE: &str = "image/png";

/// Reads the messages of params.
///
/// # Errors
/// When one of them is none; the error has its place.
pub fn read_messages(items: &[&RawValue]) -> Result<Vec<Message>, ParamError> {
    items.iter().enumerate().map(|(at, raw)| read_message(format!("messages[{at}]"), raw)).collect()
}

/// Reads one message, which is called `place` in errors.
///
/// # Errors
/// When it is none.
pub fn read_message(place: String, raw: &RawValue) -> Result<Message, ParamError> {
    const ROLES: [(&str, Role); 5] = [
        ("system", Role::System),
        ("user", Role::User),
        ("assistant", Role::Assistant),
        ("tool", Role::Tool),
        ("developer", Role::System),
    ];
    const ROLES_MUST: &str = "\"system\", \"user\", \"assistant\" or \"tool\"";
    let fields = Fields::within(place, raw)?;
    let role = fields.word("role", &ROLES).map_err(|_| fields.wrong("role", ROLES_MUST))?;
    let role = role.ok_or_else(|| fields.wrong("role", ROLES_MUST))?;
    Ok(Message {
        role,
        parts: read_content(&fields)?,
        name: fields.text("name")?,
        tool_call_id: fields.text_any(["toolCallId", "tool_call_id"])?,
        tool_calls: read_calls(&fields)?,
        reasoning: match fields.text("reasoning")? {
            Some(reasoning) => Some(reasoning),
            None => fields.text_any(["reasoningContent", "reasoning_content"])?,
        },
        reasoning_details: fields
            .raw_any(["reasoningDetails", "reasoning_details"])
            .map(|(_, raw)| raw.to_owned()),
    })
}

/// A message as `agent.session.messages` shows it, after its `seq`.
pub fn write_message(into: &mut Map<String, Value>, message: &Message) {
    into.insert("role".into(), message.role.word().into());
    into.insert("content".into(), content(message));
    if !message.tool_calls.is_empty() {
        into.insert("toolCalls".into(), message.tool_calls.iter().map(write_call).collect());
    }
    let texts =
        [("toolCallId", &message.tool_call_id), ("name", &message.name), ("reasoning", &message.reasoning)];
    for (name, text) in texts {
        if let Some(text) = text {
            into.insert(name.into(), text.as_str().into());
        }
    }
}

/// A call as chunks and messages have it: `{id, name, arguments}`.
#[must_use]
pub fn write_call(call: &ToolCall) -> Value {
    json!({"id": call.id, "name": call.name, "arguments": value(&call.arguments)})
}

fn value(raw: &RawValue) -> Value {
    // What is raw is JSON; only a number beyond a double could be lost here.
    serde_json::from_str(raw.get()).unwrap_or(Value::Null)
}

/// Plain text as a string; with pictures, OpenAI's list of parts.
fn content(message: &Message) -> Value {
    if message.parts.iter().all(|part| matches!(part, Part::Text(_))) {
        return message.plain_text().into();
    }
    let part = |part: &Part| match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Image(Image::Url(url)) => json!({"type": "image_url", "image_url": {"url": url}}),
        Part::Image(Image::Data { media_type, base64 }) => {
            json!({"type": "image_url", "image_url": {"url": format!("data:{media_type};base64,{base64}")}})
        }
    };
    message.parts.iter().map(part).collect()
}

fn read_content(fields: &Fields<'_>) -> Result<Vec<Part>, ParamError> {
    if let Some(parts) = fields.list("parts")?.filter(|parts| !parts.is_empty()) {
        return read_parts(fields, "parts", &parts);
    }
    let Some(raw) = fields.raw("content") else { return Ok(Vec::new()) };
    if raw.get().starts_with('[') {
        let parts = fields.list("content")?.unwrap_or_default();
        return read_parts(fields, "content", &parts);
    }
    match fields.text("content") {
        Ok(text) => Ok(text.filter(|text| !text.is_empty()).map(Part::Text).into_iter().collect()),
        Err(_) => Err(fields.wrong("content", "a string, null or an array of parts")),
    }
}

fn read_parts(fields: &Fields<'_>, name: &str, parts: &[&RawValue]) -> Result<Vec<Part>, ParamError> {
    let part = |(at, raw): (usize, &&RawValue)| {
        if let Ok(text) = serde_json::from_str::<String>(raw.get()) {
            return Ok(Part::Text(text));
        }
        read_part(&Fields::within(format!("{}[{at}]", fields.path(name)), raw)?)
    };
    parts.iter().enumerate().map(part).collect()
}

fn read_part(part: &Fields<'_>) -> Result<Part, ParamError> {
    let sort = part.text("type")?;
    match sort.as_deref() {
        Some("text" | "input_text" | "output_text") => {
            let text = part.text("text")?.ok_or_else(|| part.wrong("text", "a string"))?;
            Ok(Part::Text(text))
        }
        Some("image") => {
            if let Some(url) = part.text("url")? {
                return Ok(Part::Image(image(url)));
            }
            let base64 = part.text("data")?.ok_or_else(|| part.wrong("url", "there, or `data`"))?;
            let media_type =
                part.text_any(["mediaType", "media_type"])?.unwrap_or_else(|| DEFAULT_MEDIA_TYPE.into());
            Ok(Part::Image(Image::Data { media_type, base64 }))
        }
        Some("image_url" | "input_image") => {
            let must = || part.wrong("image_url", "an address, or an object with `url`");
            let raw = part.raw("image_url").ok_or_else(must)?;
            let url = match serde_json::from_str::<String>(raw.get()) {
                Ok(url) => url,
                Err(_) => Fields::within(part.path("image_url"), raw)?.required_text("url")?,
            };
            Ok(Part::Image(image(url)))
        }
        Some(_) | None => Err(part.wrong("type", "\"text\", \"image\" or \"image_url\"")),
    }
}

/// A picture at an address; one that is in the address itself is taken out of it.
fn image(url: String) -> Image {
    let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match data {
        Some((media_type, base64)) => {
            Image::Data { media_type: media_type.to_owned(), base64: base64.to_owned() }
        }
        None => Image::Url(url),
    }
}

fn read_calls(fields: &Fields<'_>) -> Result<Vec<ToolCall>, ParamError> {
    let Some((name, _)) = fields.raw_any(["toolCalls", "tool_calls"]) else { return Ok(Vec::new()) };
    let calls = fields.list(name)?.unwrap_or_default();
    let call = |(at, raw): (usize, &&RawValue)| {
        let place = format!("{}[{at}]", fields.path(name));
        let outer = Fields::within(place, raw)?;
        let id = outer.text("id")?.unwrap_or_default();
        // OpenAI's form has name and arguments one object further in.
        let inner = match outer.raw("function") {
            Some(raw) => Fields::within(outer.path("function"), raw)?,
            None => outer,
        };
        Ok(ToolCall { id, name: inner.required_text("name")?, arguments: read_arguments(&inner)? })
    };
    calls.iter().enumerate().map(call).collect()
}

/// An object, or a text that has one. A model may have written a text that has none; its call had no arguments then.
fn read_arguments(fields: &Fields<'_>) -> Result<Box<RawValue>, ParamError> {
    let nothing = || RawValue::from_string("{}".to_owned());
    let given = match fields.raw("arguments") {
        None => nothing(),
        Some(raw) if raw.get().starts_with('{') => return Ok(raw.to_owned()),
        Some(raw) => match serde_json::from_str::<String>(raw.get()) {
            Ok(text) if text.trim_start().starts_with('{') => {
                RawValue::from_string(text).or_else(|_| nothing())
            }
            Ok(_) => nothing(),
            Err(_) => return Err(fields.wrong("arguments", "an object")),
        },
    };
    given.map_err(|_| fields.wrong("arguments", "an object"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Message, String> {
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        read_message("messages[0]".into(), &raw).map_err(|error| error.to_string())
    }

    #[test]
    fn content_is_a_text_or_nothing_or_parts() {
        assert_eq!(read(r#"{"role":"user","content":"hi"}"#).unwrap().plain_text(), "hi");
        assert!(read(r#"{"role":"user","content":null}"#).unwrap().parts.is_empty());
        assert!(read(r#"{"role":"user"}"#).unwrap().parts.is_empty());
        let parts = read(
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/gif;base64,AA=="}},{"type":"image_url","image_url":{"url":"https://x/y.png"}}]}"#,
        );
        assert_eq!(
            parts.unwrap().parts,
            [
                Part::Text("a".into()),
                Part::Image(Image::Data { media_type: "image/gif".into(), base64: "AA==".into() }),
                Part::Image(Image::Url("https://x/y.png".into())),
            ]
        );
        let own = read(
            r#"{"role":"user","content":"x","parts":[{"type":"image","data":"AA==","mediaType":"image/webp"}]}"#,
        );
        assert_eq!(
            own.unwrap().parts,
            [Part::Image(Image::Data { media_type: "image/webp".into(), base64: "AA==".into() })]
        );
    }

    #[test]
    fn calls_are_taken_in_both_forms() {
        let own = read(
            r#"{"role":"assistant","content":null,"toolCalls":[{"id":"c1","name":"f","arguments":{"a":1}}]}"#,
        );
        let theirs = read(
            r#"{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}"#,
        );
        for message in [own.unwrap(), theirs.unwrap()] {
            assert_eq!(message.tool_calls.len(), 1);
            assert_eq!(message.tool_calls[0].name, "f");
            assert_eq!(message.tool_calls[0].arguments.get(), r#"{"a":1}"#);
        }
        let broken =
            read(r#"{"role":"assistant","toolCalls":[{"id":"c1","name":"f","arguments":"{\"a\":"}]}"#);
        assert_eq!(broken.unwrap().tool_calls[0].arguments.get(), "{}");
    }

    #[test]
    fn a_message_that_is_none_is_named_with_its_place() {
        let cases = [
            ("1", "messages[0] must be an object"),
            ("{}", r#"messages[0].role must be "system", "user", "assistant" or "tool""#),
            (r#"{"role":"wizard"}"#, r#"messages[0].role must be "system", "user", "assistant" or "tool""#),
            (
                r#"{"role":"user","content":1}"#,
                "messages[0].content must be a string, null or an array of parts",
            ),
            (
                r#"{"role":"user","content":[{"type":"sound"}]}"#,
                r#"messages[0].content[0].type must be "text", "image" or "image_url""#,
            ),
            (
                r#"{"role":"assistant","toolCalls":[{"id":"x"}]}"#,
                "messages[0].toolCalls[0].name must be a non-empty string",
            ),
        ];
        for (json, message) in cases {
            assert_eq!(read(json).unwrap_err(), message, "{json}");
        }
    }

    #[test]
    fn a_message_is_shown_without_what_it_does_not_have() {
        let message = read(
            r#"{"role":"assistant","content":"ok","toolCalls":[{"id":"c","name":"f","arguments":{}}],"reasoning":"hm"}"#,
        );
        let mut shown = Map::new();
        write_message(&mut shown, &message.unwrap());
        assert_eq!(
            Value::Object(shown),
            json!({"role":"assistant","content":"ok","toolCalls":[{"id":"c","name":"f","arguments":{}}],"reasoning":"hm"})
        );
    }
}
