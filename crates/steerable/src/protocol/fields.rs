//! The members of params by their names, and sentences about those that are missing or wrong.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The longest duration that params can ask for: a year, which no arithmetic on clocks overflows with.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Why params do not fit: which member, and what it must be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{member} must be {must}")]
pub struct ParamError {
    /// The member, as a path: `messages[0].role`. `params` is the whole of it.
    pub member: String,
    /// What it must be, to be read after "must be".
    pub must: Cow<'static, str>,
}

impl ParamError {
    /// An error about a member.
    pub fn new(member: impl Into<String>, must: impl Into<Cow<'static, str>>) -> Self {
        Self { member: member.into(), must: must.into() }
    }
}

/// The members of one object. A member that is `null` is not there; of two with one name the last one counts.
#[derive(Debug)]
pub struct Fields<'a> {
    /// What the object itself is called, for errors; empty for params.
    place: String,
    members: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a> Fields<'a> {
    /// The members of params that must be an object.
    ///
    /// # Errors
    /// When they are not one.
    pub fn of(params: Option<&'a RawValue>) -> Result<Self, ParamError> {
        let object = params.and_then(|params| serde_json::from_str::<Object<'a>>(params.get()).ok());
        let Object(members) = object.ok_or_else(|| ParamError::new("params", "an object"))?;
        Ok(Self { place: String::new(), members })
    }

    /// The members of params that may be missing or `null`.
    ///
    /// # Errors
    /// When they are there and no object.
    pub fn of_optional(params: Option<&'a RawValue>) -> Result<Self, ParamError> {
        match params {
            None => Ok(Self { place: String::new(), members: Vec::new() }),
            Some(raw) if raw.get() == "null" => Self::of_optional(None),
            Some(raw) => Self::of(Some(raw)),
        }
    }

    /// The members of an object within params, which is called `place` in errors.
    ///
    /// # Errors
    /// When it is no object.
    pub fn within(place: String, raw: &'a RawValue) -> Result<Self, ParamError> {
        match serde_json::from_str::<Object<'a>>(raw.get()) {
            Ok(Object(members)) => Ok(Self { place, members }),
            Err(_) => Err(ParamError::new(place, "an object")),
        }
    }

    /// The names, in the order in which they came.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|(name, _)| &**name)
    }

    /// A member as it is written; `None` if it is missing or `null`.
    #[must_use]
    pub fn raw(&self, name: &str) -> Option<&'a RawValue> {
        let (_, raw) = self.members.iter().rev().find(|(known, _)| known == name)?;
        (raw.get() != "null").then_some(*raw)
    }

    /// The first of several names for one thing that is there.
    #[must_use]
    pub fn raw_any(&self, names: [&'static str; 2]) -> Option<(&'static str, &'a RawValue)> {
        names.into_iter().find_map(|name| Some((name, self.raw(name)?)))
    }

    /// An error about a member.
    pub fn wrong(&self, name: &str, must: impl Into<Cow<'static, str>>) -> ParamError {
        ParamError::new(self.path(name), must)
    }

    /// What a member is called in errors.
    #[must_use]
    pub fn path(&self, name: &str) -> String {
        if self.place.is_empty() { name.to_owned() } else { format!("{}.{name}", self.place) }
    }

    /// A text.
    ///
    /// # Errors
    /// When it is something else.
    pub fn text(&self, name: &str) -> Result<Option<String>, ParamError> {
        self.read(name, "a string")
    }

    /// A text under one of two names.
    ///
    /// # Errors
    /// When it is something else.
    pub fn text_any(&self, names: [&'static str; 2]) -> Result<Option<String>, ParamError> {
        match self.raw_any(names) {
            Some((name, _)) => self.text(name),
            None => Ok(None),
        }
    }

    /// A text that must be there and not be empty.
    ///
    /// # Errors
    /// When it is missing, empty or something else.
    pub fn required_text(&self, name: &str) -> Result<String, ParamError> {
        const MUST: &str = "a non-empty string";
        let text: Option<String> = self.read(name, MUST)?;
        text.filter(|text| !text.is_empty()).ok_or_else(|| self.wrong(name, MUST))
    }

    /// Yes or no.
    ///
    /// # Errors
    /// When it is something else.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, ParamError> {
        self.read(name, "true or false")
    }

    /// A number.
    ///
    /// # Errors
    /// When it is something else.
    pub fn number(&self, name: &str) -> Result<Option<f64>, ParamError> {
        self.read(name, "a number")
    }

    /// A whole number of at least `least`.
    ///
    /// # Errors
    /// When it is something else.
    pub fn count(&self, name: &str, least: u64) -> Result<Option<u64>, ParamError> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        // Some languages write whole numbers as doubles.
        let whole = raw.get().parse::<u64>().ok().or_else(|| {
            let number = raw.get().parse::<f64>().ok()?;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "checked to be a small whole number"
            )]
            (number.fract() == 0.0 && (0.0..9e15).contains(&number)).then_some(number as u64)
        });
        whole
            .filter(|whole| *whole >= least)
            .map(Some)
            .ok_or_else(|| self.wrong(name, format!("a whole number of at least {least}")))
    }

    /// Milliseconds, at least one.
    ///
    /// # Errors
    /// When it is something else.
    pub fn millis(&self, name: &str) -> Result<Option<Duration>, ParamError> {
        Ok(self.count(name, 1)?.map(|millis| Duration::from_millis(millis).min(LONGEST)))
    }

    /// An object.
    ///
    /// # Errors
    /// When it is something else.
    pub fn object(&self, name: &str) -> Result<Option<Map<String, Value>>, ParamError> {
        self.read(name, "an object")
    }

    /// A list of texts.
    ///
    /// # Errors
    /// When it is something else.
    pub fn texts(&self, name: &str) -> Result<Option<Vec<String>>, ParamError> {
        self.read(name, "an array of strings")
    }

    /// A list of anything, each item as it is written.
    ///
    /// # Errors
    /// When it is something else.
    pub fn list(&self, name: &str) -> Result<Option<Vec<&'a RawValue>>, ParamError> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        serde_json::from_str(raw.get()).map(Some).map_err(|_| self.wrong(name, "an array"))
    }

    /// One of some words.
    ///
    /// # Errors
    /// When it is something else; the error says which words there are.
    pub fn word<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<Option<T>, ParamError> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        let text: Option<String> = serde_json::from_str(raw.get()).ok();
        let found = text.and_then(|text| words.iter().find(|(word, _)| *word == text));
        match found {
            Some((_, value)) => Ok(Some(*value)),
            None => {
                let words: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
                Err(self.wrong(name, words.join(" or ")))
            }
        }
    }

    fn read<T: Deserialize<'a>>(&self, name: &str, must: &'static str) -> Result<Option<T>, ParamError> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        serde_json::from_str(raw.get()).map(Some).map_err(|_| self.wrong(name, must))
    }
}

/// An object as a list of its members, none of them taken apart.
struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(Name(name)) = map.next_key()? {
                    members.push((name, map.next_value()?));
                }
                Ok(Object(members))
            }
        }

        deserializer.deserialize_map(Members)
    }
}

/// A name, borrowed unless something in it is escaped.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl<'de> Visitor<'de> for Text {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn a_wrong_member_is_named_with_what_it_must_be() {
        let params = raw(r#"{"a":1,"b":"x","c":null,"d":-1,"e":1.0,"f":"boundary","g":1.5}"#);
        let fields = Fields::of(Some(&params)).unwrap();
        assert_eq!(fields.text("a").unwrap_err().to_string(), "a must be a string");
        assert_eq!(fields.text("b").unwrap().as_deref(), Some("x"));
        assert_eq!(fields.text("c").unwrap(), None);
        assert_eq!(fields.required_text("c").unwrap_err().to_string(), "c must be a non-empty string");
        assert_eq!(fields.count("d", 1).unwrap_err().to_string(), "d must be a whole number of at least 1");
        assert_eq!(fields.count("e", 1).unwrap(), Some(1));
        assert!(fields.count("g", 1).is_err());
        let words = [("boundary", 1), ("interrupt", 2)];
        assert_eq!(fields.word("f", &words).unwrap(), Some(1));
        assert_eq!(
            fields.word("b", &words).unwrap_err().to_string(),
            r#"b must be "boundary" or "interrupt""#
        );
    }

    #[test]
    fn params_that_are_no_object_are_refused_unless_they_may_be_missing() {
        for json in ["[]", "1", "\"x\"", "null"] {
            let params = raw(json);
            assert_eq!(Fields::of(Some(&params)).unwrap_err().to_string(), "params must be an object");
        }
        assert!(Fields::of(None).is_err());
        assert!(Fields::of_optional(None).is_ok());
        assert!(Fields::of_optional(Some(&raw("null"))).is_ok());
        assert!(Fields::of_optional(Some(&raw("[]"))).is_err());
    }

    #[test]
    fn the_last_of_two_members_with_one_name_counts() {
        let params = raw(r#"{"a":"1","a":"2"}"#);
        assert_eq!(Fields::of(Some(&params)).unwrap().text("a").unwrap().as_deref(), Some("2"));
    }
}
