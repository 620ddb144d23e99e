//! The members of an object by their names, and sentences about those that are missing or wrong.

use std::borrow::Cow;
use std::fmt;

use super::json::{Cursor, JsonError, JsonFault, Kind, MAX_NESTING, Piece};
use super::time::Timestamp;

/// The most items that a list of a message may have.
pub const MAX_LIST: usize = 65_536;

/// The most characters of a wrong value that an error shows.
const SHOWN: usize = 60;

/// Why a text is not a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// It is not JSON.
    #[error("it is not JSON: {0}")]
    NotJson(JsonError),
    /// It nests deeper than [`MAX_NESTING`].
    #[error("it is nested deeper than {MAX_NESTING}")]
    TooDeep,
    /// A member that must be there is not.
    #[error("`{path}` is missing")]
    Missing {
        /// Which one.
        path: String,
    },
    /// A member is not what it must be.
    #[error("`{path}` is {found}; it must be {expected}")]
    Wrong {
        /// Which one.
        path: String,
        /// What it is.
        found: String,
        /// What it must be.
        expected: &'static str,
    },
    /// A list or map has too many entries.
    #[error("`{path}` has more than {limit} entries")]
    TooMany {
        /// Which one.
        path: String,
        /// How many it may have.
        limit: usize,
    },
}

impl From<JsonError> for EnvelopeError {
    fn from(error: JsonError) -> Self {
        match error.fault {
            JsonFault::TooDeep => Self::TooDeep,
            _ => Self::NotJson(error),
        }
    }
}

/// Where a value is, as a chain on the stack: it costs nothing until an error is told.
#[derive(Clone, Copy)]
pub(crate) struct Place<'p> {
    outer: Option<&'p Place<'p>>,
    name: Name<'p>,
}

#[derive(Clone, Copy)]
enum Name<'p> {
    Member(&'p str),
    Index(usize),
}

impl<'p> Place<'p> {
    /// The outermost value; what is in it is named without a prefix.
    pub(crate) const ROOT: Place<'static> = Place { outer: None, name: Name::Member("") };

    pub(crate) fn member(&'p self, name: &'p str) -> Place<'p> {
        Place { outer: Some(self), name: Name::Member(name) }
    }

    pub(crate) fn index(&'p self, index: usize) -> Place<'p> {
        Place { outer: Some(self), name: Name::Index(index) }
    }

    pub(crate) fn missing(&self) -> EnvelopeError {
        EnvelopeError::Missing { path: self.to_string() }
    }

    pub(crate) fn too_many(&self, limit: usize) -> EnvelopeError {
        EnvelopeError::TooMany { path: self.to_string(), limit }
    }

    /// An error for a piece that is not `expected`, or not there.
    pub(crate) fn wrong(&self, piece: &Piece<'_>, expected: &'static str) -> EnvelopeError {
        if piece.kind == Kind::Absent {
            return self.missing();
        }
        let found = match piece.kind {
            Kind::Null | Kind::Object | Kind::Array | Kind::Absent => piece.kind.found().to_owned(),
            Kind::Bool | Kind::Number | Kind::String => {
                let mut shown: String = piece.text.chars().take(SHOWN).collect();
                if shown.len() < piece.text.len() {
                    shown.push('…');
                }
                shown
            }
        };
        EnvelopeError::Wrong { path: self.to_string(), found, expected }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(outer) = self.outer else { return f.write_str("the message") };
        if outer.outer.is_some() {
            outer.fmt(f)?;
        }
        match self.name {
            Name::Member(name) if outer.outer.is_some() => write!(f, ".{name}"),
            Name::Member(name) => f.write_str(name),
            Name::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// The members of one object that have a name here; of a name that occurs twice the last one.
pub(crate) struct Fields<'a, 'p, const N: usize> {
    place: &'p Place<'p>,
    names: [&'static str; N],
    pieces: [Piece<'a>; N],
}

impl<'a, 'p, const N: usize> Fields<'a, 'p, N> {
    /// The members of `piece`, which must be an object; nothing and null are an object without members.
    pub(crate) fn optional(
        piece: &Piece<'a>,
        place: &'p Place<'p>,
        names: [&'static str; N],
    ) -> Result<Self, EnvelopeError> {
        let mut fields = Self { place, names, pieces: [Piece::ABSENT; N] };
        if piece.is_none() {
            return Ok(fields);
        }
        if piece.kind != Kind::Object {
            return Err(place.wrong(piece, "an object"));
        }
        each_member(piece, |key, value| {
            if let Some(at) = fields.names.iter().position(|name| *name == key) {
                fields.pieces[at] = value;
            }
            Ok(())
        })?;
        Ok(fields)
    }

    /// The members of `piece`, which must be an object.
    pub(crate) fn required(
        piece: &Piece<'a>,
        place: &'p Place<'p>,
        names: [&'static str; N],
    ) -> Result<Self, EnvelopeError> {
        match piece.kind {
            Kind::Object => Self::optional(piece, place, names),
            _ => Err(place.wrong(piece, "an object")),
        }
    }

    pub(crate) fn piece(&self, name: &'static str) -> Piece<'a> {
        let at = self.names.iter().position(|known| *known == name);
        debug_assert!(at.is_some(), "{name} was not asked for");
        at.map_or(Piece::ABSENT, |at| self.pieces[at])
    }

    pub(crate) fn text(&self, name: &'static str) -> Result<Cow<'a, str>, EnvelopeError> {
        let piece = self.piece(name);
        piece.string().ok_or_else(|| self.place.member(name).wrong(&piece, "a string"))
    }

    pub(crate) fn opt_text(&self, name: &'static str) -> Result<Option<Cow<'a, str>>, EnvelopeError> {
        if self.piece(name).is_none() { Ok(None) } else { self.text(name).map(Some) }
    }

    pub(crate) fn opt_string(&self, name: &'static str) -> Result<Option<String>, EnvelopeError> {
        Ok(self.opt_text(name)?.map(Cow::into_owned))
    }

    /// A string; an empty one if there is none.
    pub(crate) fn string_or_empty(&self, name: &'static str) -> Result<String, EnvelopeError> {
        Ok(self.opt_string(name)?.unwrap_or_default())
    }

    pub(crate) fn opt_u64(&self, name: &'static str) -> Result<Option<u64>, EnvelopeError> {
        self.opt(name, "a whole number that is not negative", |piece| piece.integer())
    }

    pub(crate) fn opt_bool(&self, name: &'static str) -> Result<Option<bool>, EnvelopeError> {
        self.opt(name, "true or false", Piece::boolean)
    }

    pub(crate) fn opt_f64(&self, name: &'static str) -> Result<Option<f64>, EnvelopeError> {
        self.opt(name, "a number", Piece::float)
    }

    pub(crate) fn opt_time(&self, name: &'static str) -> Result<Option<Timestamp>, EnvelopeError> {
        self.opt(name, "a time with an offset, such as \"2026-01-31T12:00:00Z\"", |piece| {
            Timestamp::parse(&piece.string()?).ok()
        })
    }

    pub(crate) fn opt<T>(
        &self,
        name: &'static str,
        expected: &'static str,
        decode: impl Fn(&Piece<'a>) -> Option<T>,
    ) -> Result<Option<T>, EnvelopeError> {
        let piece = self.piece(name);
        if piece.is_none() {
            return Ok(None);
        }
        decode(&piece).map(Some).ok_or_else(|| self.place.member(name).wrong(&piece, expected))
    }

    /// Strings; none if there is nothing.
    pub(crate) fn strings(&self, name: &'static str) -> Result<Vec<String>, EnvelopeError> {
        self.list(name, |piece, place| {
            piece.string().map(Cow::into_owned).ok_or_else(|| place.wrong(piece, "a string"))
        })
    }

    /// The items of a list; none if there is nothing.
    pub(crate) fn list<T>(
        &self,
        name: &'static str,
        mut item: impl FnMut(&Piece<'a>, &Place<'_>) -> Result<T, EnvelopeError>,
    ) -> Result<Vec<T>, EnvelopeError> {
        let (piece, place) = (self.piece(name), self.place.member(name));
        let mut items = Vec::new();
        if piece.is_none() {
            return Ok(items);
        }
        if piece.kind != Kind::Array {
            return Err(place.wrong(&piece, "an array"));
        }
        each_element(&piece, |index, element| {
            if index == MAX_LIST {
                return Err(place.too_many(MAX_LIST));
            }
            items.push(item(&element, &place.index(index))?);
            Ok(())
        })?;
        Ok(items)
    }
}

/// Every member of an object, duplicates included, in the order of the text.
pub(crate) fn each_member<'a>(
    piece: &Piece<'a>,
    mut member: impl FnMut(Cow<'a, str>, Piece<'a>) -> Result<(), EnvelopeError>,
) -> Result<(), EnvelopeError> {
    let mut cursor = Cursor::new(piece.text);
    cursor.enter(b'{')?;
    let mut first = true;
    while let Some(key) = cursor.key(&mut first)? {
        let value = cursor.value()?;
        member(key, value)?;
    }
    Ok(())
}

/// Every element of an array.
pub(crate) fn each_element<'a>(
    piece: &Piece<'a>,
    mut element: impl FnMut(usize, Piece<'a>) -> Result<(), EnvelopeError>,
) -> Result<(), EnvelopeError> {
    let mut cursor = Cursor::new(piece.text);
    cursor.enter(b'[')?;
    let mut first = true;
    let mut index = 0;
    while cursor.element(&mut first)? {
        let value = cursor.value()?;
        element(index, value)?;
        index += 1;
    }
    Ok(())
}
