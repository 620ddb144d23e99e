//! The names of runs and work orders: UUIDs by contract, kept as they came.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

/// The longest id that is read, in bytes.
pub const MAX_ID_BYTES: usize = 512;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The text of an id as it came.
            #[must_use]
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// A new one: a UUID of version 4.
            ///
            /// # Errors
            /// When the system has no randomness to give.
            pub fn random() -> Result<Self, getrandom::Error> {
                random_uuid().map(Self)
            }

            /// As it came.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// As it is hashed: a UUID in lower case with hyphens, anything else as it came.
            #[must_use]
            pub fn canonical(&self) -> Cow<'_, str> {
                canonical_uuid(&self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "description": "A UUID." })
            }
        }
    };
}

id! {
    /// The name of one run; what `ref_id` refers to.
    RunId
}

id! {
    /// The name of a work order.
    OrderId
}

fn random_uuid() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(hyphenated(&digits))
}

/// `text` in the one spelling that is hashed, if it is a UUID: with or without hyphens, in braces or as a URN.
pub(crate) fn canonical_uuid(text: &str) -> Cow<'_, str> {
    let is_canonical = text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        });
    if is_canonical {
        return Cow::Borrowed(text);
    }
    let inner = text.strip_prefix("urn:uuid:").unwrap_or(text);
    let inner = inner.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(inner);
    let bytes = inner.as_bytes();
    let hyphens = [8, 13, 18, 23].iter().all(|at| bytes.get(*at) == Some(&b'-'));
    let digits: String = match bytes.len() {
        36 if hyphens => inner.split('-').collect(),
        32 => inner.to_owned(),
        _ => return Cow::Borrowed(text),
    };
    if digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Cow::Owned(hyphenated(&digits.to_ascii_lowercase()))
    } else {
        Cow::Borrowed(text)
    }
}

/// 32 digits in groups.
fn hyphenated(digits: &str) -> String {
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_uuid_is_hashed_alike_and_other_texts_as_they_are() {
        let canonical = "1435d8a3-b669-4b75-82d5-df8e55e2c877";
        for text in [
            "1435d8a3-b669-4b75-82d5-df8e55e2c877",
            "1435D8A3-B669-4B75-82D5-DF8E55E2C877",
            "1435d8a3b6694b7582d5df8e55e2c877",
            "{1435d8a3-b669-4b75-82d5-df8e55e2c877}",
            "urn:uuid:1435d8a3-b669-4b75-82d5-df8e55e2c877",
        ] {
            assert_eq!(RunId::new(text).canonical(), canonical, "{text}");
        }
        for text in
            ["", "run-1", "1435d8a3-b669-4b75-82d5-df8e55e2c87g", "1435d8a3-b6694-b75-82d5-df8e55e2c877", "É"]
        {
            assert_eq!(RunId::new(text).canonical(), text);
        }
    }

    #[test]
    fn a_new_id_is_a_uuid_of_version_four() {
        let id = RunId::random().unwrap();
        assert_eq!((id.as_str().len(), &id.as_str()[14..15]), (36, "4"));
        assert_eq!(id.canonical(), id.as_str());
        assert_ne!(id, RunId::random().unwrap());
    }
}
