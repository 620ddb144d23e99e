//! Objects of a stranger, member by member: what is known goes to its place, the rest is kept.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::chat::Usage;

pub(super) fn read_usage(raw: &RawValue) -> Option<Usage> {
    let (mut prompt, mut completion, mut total, mut cached) = (None, None, None, None);
    for (member, raw) in members(raw)? {
        match &*member {
            "promptTokens" => take(&mut prompt, raw),
            "completionTokens" => take(&mut completion, raw),
            "totalTokens" => take(&mut total, raw),
            "cachedPromptTokens" => take(&mut cached, raw),
            _ => false,
        };
    }
    if (prompt, completion, total) == (None, None, None) {
        return None;
    }
    let (prompt, completion) = (prompt.unwrap_or(0), completion.unwrap_or(0u64));
    Some(Usage {
        prompt_tokens: prompt,
        completion_tokens: completion,
        total_tokens: total.unwrap_or_else(|| completion.saturating_add(prompt)),
        cached_prompt_tokens: cached.unwrap_or(0),
    })
}

/// Reads a member into its place; says whether it is what it should be. `null` is as good as not there.
pub(super) fn take<'a, T: Deserialize<'a>>(place: &mut Option<T>, raw: &'a RawValue) -> bool {
    match serde_json::from_str::<Option<T>>(raw.get()) {
        Ok(value) => {
            *place = value;
            true
        }
        Err(_) => false,
    }
}

pub(super) fn place<T>(place: &mut Option<T>, value: Option<T>) -> bool {
    let known = value.is_some();
    *place = value;
    known
}

pub(super) fn keep(
    other: &mut Vec<(String, Box<RawValue>)>,
    known: bool,
    name: Cow<'_, str>,
    raw: &RawValue,
) {
    if !known && raw.get() != "null" {
        other.push((name.into_owned(), raw.to_owned()));
    }
}

pub(super) fn empty_object() -> Box<RawValue> {
    // The braces of an empty object are JSON.
    RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

type Members<'a> = Vec<(Cow<'a, str>, &'a RawValue)>;

/// The members of an object, none of them taken apart; `None` for anything else.
pub(super) fn members(raw: &RawValue) -> Option<Members<'_>> {
    struct Object<'a>(Members<'a>);

    impl<'de> Deserialize<'de> for Object<'de> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Reader;

            impl<'de> Visitor<'de> for Reader {
                type Value = Object<'de>;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an object")
                }

                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                    let mut members = Vec::with_capacity(2);
                    while let Some(Text(name)) = map.next_key()? {
                        members.push((name, map.next_value()?));
                    }
                    Ok(Object(members))
                }
            }

            deserializer.deserialize_map(Reader)
        }
    }

    serde_json::from_str::<Object<'_>>(raw.get()).ok().map(|Object(members)| members)
}

/// A text, borrowed unless something in it is escaped.
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(Reader)
    }
}
