//! The members of one JSON object by name, with errors that say which member is wrong and what it should be.

use std::borrow::Cow;

use outrigger_vm::boundary::Plain;

use super::json::{HalfPair, Members, Raw};
use super::value::{self, ValueError};

/// What is wrong with a message whose JSON is sound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Flaw {
    /// A member that we know is there twice, so that it is anybody's guess which one counts.
    #[error("duplicate member `{0}`")]
    Duplicate(String),
    /// A member is missing or has the wrong kind of value.
    #[error("{0}")]
    Shape(String),
    /// A structured value cannot be one.
    #[error("`{place}`: {error}")]
    Value {
        /// Where it is.
        place: String,
        /// What is wrong with it.
        error: ValueError,
    },
}

/// An object, and what it is called.
pub(crate) struct Fields<'a> {
    path: &'static str,
    members: Members<'a>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(path: &'static str, members: Members<'a>) -> Fields<'a> {
        Fields { path, members }
    }

    /// The object in `raw`, which must be one.
    pub(crate) fn of(path: &'static str, raw: Raw<'a>) -> Result<Fields<'a>, Flaw> {
        match raw.members() {
            Some(members) => Ok(Fields { path, members }),
            None => Err(Flaw::Shape(format!("`{path}` must be an object, not {}", raw.kind()))),
        }
    }

    /// All members, known or not.
    pub(crate) fn into_members(self) -> Members<'a> {
        self.members
    }

    /// A member as it is, `null` included.
    pub(crate) fn raw(&self, name: &str) -> Result<Option<Raw<'a>>, Flaw> {
        let mut found = self.members.iter().filter(|(key, _)| key == name);
        let first = found.next().map(|(_, raw)| *raw);
        if found.next().is_some() { Err(Flaw::Duplicate(self.place(name))) } else { Ok(first) }
    }

    /// A member that may be absent or `null`.
    fn optional(&self, name: &str) -> Result<Option<Raw<'a>>, Flaw> {
        Ok(self.raw(name)?.filter(|raw| !raw.is_null()))
    }

    /// A member that must be there; `null` is not enough.
    pub(crate) fn required(&self, name: &str) -> Result<Raw<'a>, Flaw> {
        self.raw(name)?.ok_or_else(|| Flaw::Shape(format!("`{}` is missing", self.place(name))))
    }

    /// An object that may be absent or `null`.
    pub(crate) fn optional_object(&self, name: &'static str) -> Result<Option<Fields<'a>>, Flaw> {
        self.optional(name)?.map(|raw| Fields::of(name, raw)).transpose()
    }

    /// An object that may be absent, but not `null`.
    pub(crate) fn object(&self, name: &'static str) -> Result<Option<Fields<'a>>, Flaw> {
        self.raw(name)?.map(|raw| Fields::of(name, raw)).transpose()
    }

    /// An object that must be there.
    pub(crate) fn required_object(&self, name: &'static str) -> Result<Fields<'a>, Flaw> {
        Fields::of(name, self.required(name)?)
    }

    /// A string that may be absent or `null`.
    pub(crate) fn optional_text(&self, name: &str) -> Result<Option<Cow<'a, str>>, Flaw> {
        self.optional(name)?.map(|raw| self.text_of(name, raw)).transpose()
    }

    /// A string that must be there.
    pub(crate) fn text(&self, name: &str) -> Result<Cow<'a, str>, Flaw> {
        self.text_of(name, self.required(name)?)
    }

    fn text_of(&self, name: &str, raw: Raw<'a>) -> Result<Cow<'a, str>, Flaw> {
        match raw.string() {
            Some(Ok(text)) => Ok(text),
            Some(Err(HalfPair)) => Err(Flaw::Shape(format!("`{}`: {HalfPair}", self.place(name)))),
            None => Err(self.wrong(name, "a string", raw)),
        }
    }

    /// Strings in an array that may be absent, but not `null`.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>, Flaw> {
        let Some(raw) = self.raw(name)? else { return Ok(Vec::new()) };
        let elements = raw.elements().ok_or_else(|| self.wrong(name, "an array of strings", raw))?;
        elements.into_iter().map(|raw| self.text_of(name, raw).map(Cow::into_owned)).collect()
    }

    /// A boolean that may be absent, but not `null`.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Flaw> {
        let Some(raw) = self.raw(name)? else { return Ok(false) };
        raw.boolean().ok_or_else(|| self.wrong(name, "true or false", raw))
    }

    /// A whole number that may be absent or `null`.
    pub(crate) fn optional_whole(&self, name: &str) -> Result<Option<u64>, Flaw> {
        let Some(raw) = self.optional(name)? else { return Ok(None) };
        raw.whole().map(Some).ok_or_else(|| self.wrong(name, "a whole number from 0 to 2^64-1", raw))
    }

    /// A whole number that must be there.
    pub(crate) fn whole(&self, name: &str) -> Result<u64, Flaw> {
        let raw = self.required(name)?;
        raw.whole().ok_or_else(|| self.wrong(name, "a whole number from 0 to 2^64-1", raw))
    }

    /// A number that may be absent or `null`.
    pub(crate) fn optional_number(&self, name: &str) -> Result<Option<f64>, Flaw> {
        let Some(raw) = self.optional(name)? else { return Ok(None) };
        raw.number().map(Some).ok_or_else(|| self.wrong(name, "a number", raw))
    }

    /// A structured value that must be there.
    pub(crate) fn value(&self, name: &str) -> Result<Plain, Flaw> {
        self.value_of(name, self.required(name)?)
    }

    /// A structured value that may be absent or JSON's own `null`.
    pub(crate) fn optional_value(&self, name: &str) -> Result<Option<Plain>, Flaw> {
        self.optional(name)?.map(|raw| self.value_of(name, raw)).transpose()
    }

    /// Structured values in an array that must be there.
    pub(crate) fn values(&self, name: &str) -> Result<Vec<Plain>, Flaw> {
        let raw = self.required(name)?;
        let elements = raw.elements().ok_or_else(|| self.wrong(name, "an array", raw))?;
        elements.into_iter().map(|raw| self.value_of(name, raw)).collect()
    }

    fn value_of(&self, name: &str, raw: Raw<'a>) -> Result<Plain, Flaw> {
        value::read(raw).map_err(|error| Flaw::Value { place: self.place(name), error })
    }

    /// Objects in an array.
    pub(crate) fn objects(&self, name: &'static str) -> Result<Option<Vec<Fields<'a>>>, Flaw> {
        let Some(raw) = self.raw(name)? else { return Ok(None) };
        let elements = raw.elements().ok_or_else(|| self.wrong(name, "an array of objects", raw))?;
        elements.into_iter().map(|raw| Fields::of(name, raw)).collect::<Result<_, _>>().map(Some)
    }

    pub(crate) fn wrong(&self, name: &str, wanted: &str, raw: Raw<'_>) -> Flaw {
        Flaw::Shape(format!("`{}` must be {wanted}, not {}", self.place(name), raw.kind()))
    }

    pub(crate) fn place(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}
