//! A piece of JSON that is only passed on: its text, checked and kept byte for byte.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::json::{JsonError, Piece};

/// A JSON value as its text. Numbers are not re-spelled, keys not re-ordered, white space not touched.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Raw<'a>(Cow<'a, str>);

impl<'a> Raw<'a> {
    /// `null`.
    pub const NULL: Raw<'static> = Raw(Cow::Borrowed("null"));

    /// The text of one value; white space around it is dropped.
    ///
    /// # Errors
    /// When it is not JSON that can be read.
    pub fn new(text: &'a str) -> Result<Self, JsonError> {
        Piece::read(text).map(|piece| Self::of_piece(&piece))
    }

    /// The text of a value.
    ///
    /// # Errors
    /// When the value cannot be written as JSON, or nests too deep to be read again.
    pub fn of(value: &impl Serialize) -> Result<Raw<'static>, serde_json::Error> {
        let text = serde_json::to_string(value)?;
        match Piece::read(&text) {
            Ok(_) => Ok(Raw(Cow::Owned(text))),
            Err(error) => Err(serde::ser::Error::custom(error)),
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value.
    #[must_use]
    pub fn to_value(&self) -> serde_json::Value {
        // The text was checked to be what serde_json takes; null is for a day when that is no longer so.
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// A value of a type.
    ///
    /// # Errors
    /// When the text is not such a value.
    pub fn parse<'s, T: serde::Deserialize<'s>>(&'s self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// The same, owned.
    #[must_use]
    pub fn into_owned(self) -> Raw<'static> {
        Raw(Cow::Owned(self.0.into_owned()))
    }

    /// The same, borrowed from this one.
    #[must_use]
    pub fn borrow(&self) -> Raw<'_> {
        Raw(Cow::Borrowed(&self.0))
    }

    pub(crate) fn of_piece(piece: &Piece<'a>) -> Self {
        Self(Cow::Borrowed(piece.text))
    }

    /// A part of a text that was checked.
    pub(crate) fn checked(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }

    /// Text that was checked elsewhere or is made of pieces that were.
    pub(crate) fn trusted(text: String) -> Raw<'static> {
        Raw(Cow::Owned(text))
    }
}

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl schemars::JsonSchema for Raw<'_> {
    fn schema_name() -> Cow<'static, str> {
        "Any".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passed_on_value_keeps_its_bytes() {
        let text = r#"{"b": 1e3, "a": [1.10, "\u00e9"]}"#;
        let raw = Raw::new(text).unwrap();
        assert_eq!(raw.as_str(), text);
        assert_eq!(serde_json::to_string(&raw).unwrap(), text);
        assert_eq!(raw.to_value(), serde_json::json!({"b": 1000.0, "a": [1.1, "é"]}));
        assert!(Raw::new("{").is_err());
        assert_eq!(Raw::of(&vec![1, 2]).unwrap().as_str(), "[1,2]");
    }
}
