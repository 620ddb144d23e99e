//! Messages as the text that is stored, and back. The names are those of the wire, so that a person with `sqlite3` can read them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::chat::{Image, Message, Part, Role, ToolCall};

/// A message as text.
pub(super) fn encode(message: &Message) -> String {
    let parts = message.parts.iter().map(|part| match part {
        Part::Text(text) => Piece { text: Some(Cow::Borrowed(text)), ..Piece::EMPTY },
        Part::Image(Image::Url(url)) => Piece { url: Some(Cow::Borrowed(url)), ..Piece::EMPTY },
        Part::Image(Image::Data { media_type, base64 }) => Piece {
            data: Some(Cow::Borrowed(base64)),
            media_type: Some(Cow::Borrowed(media_type)),
            ..Piece::EMPTY
        },
    });
    let calls = message.tool_calls.iter().map(|call| Call {
        id: Cow::Borrowed(&call.id),
        name: Cow::Borrowed(&call.name),
        arguments: Cow::Borrowed(&*call.arguments),
    });
    let row = Row {
        role: Cow::Borrowed(message.role.word()),
        parts: parts.collect(),
        name: message.name.as_deref().map(Cow::Borrowed),
        tool_call_id: message.tool_call_id.as_deref().map(Cow::Borrowed),
        tool_calls: calls.collect(),
        reasoning: message.reasoning.as_deref().map(Cow::Borrowed),
        reasoning_details: message.reasoning_details.as_deref().map(Cow::Borrowed),
    };
    // Texts, and JSON that was read before: nothing of it can fail to be written.
    serde_json::to_string(&row).unwrap_or_default()
}

/// What a text of [`encode`] says.
pub(super) fn decode(text: &str) -> Result<Message, String> {
    let row: Row<'_> =
        serde_json::from_str(text).map_err(|error| format!("a message is no message: {error}"))?;
    let role =
        Role::from_word(&row.role).ok_or_else(|| format!("a message of the unknown role {:?}", row.role))?;
    let parts = row.parts.into_iter().map(|piece| match piece {
        Piece { text: Some(text), .. } => Ok(Part::Text(text.into_owned())),
        Piece { url: Some(url), .. } => Ok(Part::Image(Image::Url(url.into_owned()))),
        Piece { data: Some(data), media_type: Some(media_type), .. } => {
            Ok(Part::Image(Image::Data { media_type: media_type.into_owned(), base64: data.into_owned() }))
        }
        Piece { .. } => Err("a part of a message is empty".to_owned()),
    });
    let calls = row.tool_calls.into_iter().map(|call| ToolCall {
        id: call.id.into_owned(),
        name: call.name.into_owned(),
        arguments: call.arguments.into_owned(),
    });
    Ok(Message {
        role,
        parts: parts.collect::<Result<_, _>>()?,
        name: row.name.map(Cow::into_owned),
        tool_call_id: row.tool_call_id.map(Cow::into_owned),
        tool_calls: calls.collect(),
        reasoning: row.reasoning.map(Cow::into_owned),
        reasoning_details: row.reasoning_details.map(Cow::into_owned),
    })
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Piece<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    reasoning: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<Cow<'a, RawValue>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Piece<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    url: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    data: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    media_type: Option<Cow<'a, str>>,
}

impl Piece<'_> {
    const EMPTY: Self = Self { text: None, url: None, data: None, media_type: None };
}

#[derive(Serialize, Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    arguments: Cow<'a, RawValue>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_message_comes_back_with_everything_it_had() {
        let message = Message {
            role: Role::Assistant,
            parts: vec![
                Part::Text("quote \" and\nline \u{2028} é".to_owned()),
                Part::Text(String::new()),
                Part::Image(Image::Url("https://example.com/a.png".to_owned())),
                Part::Image(Image::Data { media_type: "image/png".to_owned(), base64: "AAAA".to_owned() }),
            ],
            name: Some("ada".to_owned()),
            tool_call_id: Some("c0".to_owned()),
            tool_calls: vec![ToolCall {
                id: "c1".to_owned(),
                name: "read_file".to_owned(),
                arguments: raw(r#"{"z":1.0,"a":1e400}"#),
            }],
            reasoning: Some("hm".to_owned()),
            reasoning_details: Some(raw(r#"[{"signature":"x","b":0,"a":0}]"#)),
        };
        let text = encode(&message);
        let back = decode(&text).unwrap();
        assert_eq!(format!("{back:?}"), format!("{message:?}"));
        assert_eq!(encode(&back), text);
    }

    #[test]
    fn what_is_no_message_says_so() {
        for text in ["", "[]", "{}", r#"{"role":"king"}"#, r#"{"role":"user","parts":[{}]}"#] {
            assert!(decode(text).is_err(), "{text}");
        }
    }
}
