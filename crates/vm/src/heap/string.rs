//! Strings: short ones inside their record, long ones boxed, and the forms that `rope` makes out of them.
//!
//! Whatever the form, a string never changes for those who hold it.

use super::arena::Record;
use super::{AllocError, Heap, Str, StrId};

/// The longest string: what JavaScript engines commonly allow.
pub const MAX_LENGTH: usize = (1 << 29) - 24;

pub(super) const INLINE: usize = 22;

#[derive(Clone, Debug)]
pub(crate) enum Repr {
    Vacant,
    Inline(u8, [u8; INLINE]),
    Latin1(Box<[u8]>),
    Wide(Box<[u16]>),
    /// A text under construction. Guests never hold it: they hold slices of it, which stay what they are while it
    /// grows at its end.
    #[expect(
        clippy::box_collection,
        reason = "a bare vector would make every string record eight bytes larger"
    )]
    Builder(Box<Vec<u8>>),
    #[expect(
        clippy::box_collection,
        reason = "a bare vector would make every string record eight bytes larger"
    )]
    WideBuilder(Box<Vec<u16>>),
    Rope {
        left: StrId,
        right: StrId,
        len: u32,
        wide: Wide,
    },
    /// A part of a boxed string or of a builder.
    Slice {
        base: StrId,
        start: u32,
        len: u32,
    },
}

impl Repr {
    pub(crate) fn of_latin1(bytes: &[u8]) -> Repr {
        if bytes.len() <= INLINE { inline(bytes, &[]) } else { Repr::Latin1(bytes.into()) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wide {
    No,
    Yes,
}

#[derive(Clone, Debug)]
pub(crate) struct StringRecord {
    pub(crate) repr: Repr,
    /// Zero until somebody asks.
    pub(crate) hash: u32,
    pub(crate) role: Role,
}

/// What the interner knows about a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Plain,
    Atom,
    /// An atom that spells an array index too large for [`super::Key`]'s index form.
    BigIndex,
}

impl Record for StringRecord {
    fn vacant() -> Self {
        StringRecord { repr: Repr::Vacant, hash: 0, role: Role::Plain }
    }
    fn is_vacant(&self) -> bool {
        matches!(self.repr, Repr::Vacant)
    }
    #[inline]
    fn vacate(&mut self) {
        self.repr = Repr::Vacant;
        self.role = Role::Plain;
        self.hash = 0;
    }
    #[inline]
    fn bytes(&self) -> usize {
        let owned = match &self.repr {
            Repr::Vacant | Repr::Inline(..) | Repr::Rope { .. } | Repr::Slice { .. } => 0,
            Repr::Latin1(bytes) => bytes.len(),
            Repr::Wide(units) => units.len() * 2,
            Repr::Builder(bytes) => BUILDER + bytes.capacity(),
            Repr::WideBuilder(units) => BUILDER + units.capacity() * 2,
        };
        size_of::<StringRecord>() + owned
    }
}

impl StringRecord {
    /// Nothing is added to a text of the image any more.
    pub(super) fn finish(&mut self) {
        match &mut self.repr {
            Repr::Builder(bytes) => self.repr = Repr::Latin1(std::mem::take(&mut **bytes).into_boxed_slice()),
            Repr::WideBuilder(units) => {
                self.repr = Repr::Wide(std::mem::take(&mut **units).into_boxed_slice())
            }
            Repr::Vacant
            | Repr::Inline(..)
            | Repr::Latin1(_)
            | Repr::Wide(_)
            | Repr::Rope { .. }
            | Repr::Slice { .. } => {}
        }
    }
}

pub(super) const RECORD: usize = size_of::<StringRecord>();
/// What a builder's vector costs besides its content.
pub(super) const BUILDER: usize = size_of::<Vec<u8>>();

impl Heap {
    /// A string with the text of a Rust `&str`.
    pub fn new_string(&mut self, text: &str) -> Result<StrId, AllocError> {
        if text.is_ascii() {
            return self.new_latin1(text.as_bytes());
        }
        if text.chars().all(|c| c <= '\u{FF}') {
            let bytes: Vec<u8> = text.chars().map(|c| c as u8).collect();
            return self.new_latin1(&bytes);
        }
        // The temporary is bounded by the caller's own text; the charge comes before the lasting copy.
        let units: Vec<u16> = text.encode_utf16().collect();
        self.new_wide(&units)
    }

    /// A string of these Latin-1 bytes.
    pub fn new_latin1(&mut self, bytes: &[u8]) -> Result<StrId, AllocError> {
        match bytes {
            [] => return Ok(super::atoms::EMPTY),
            [b] => return Ok(self.char_string(*b)),
            _ => {}
        }
        if bytes.len() <= INLINE {
            self.account.charge(RECORD)?;
            return Ok(self.strings.insert(plain(inline(bytes, &[]))));
        }
        check_length(bytes.len())?;
        self.account.charge(RECORD + bytes.len())?;
        Ok(self.strings.insert(plain(Repr::Latin1(bytes.into()))))
    }

    /// A string of these code units, stored as narrow as they allow.
    pub fn new_utf16(&mut self, units: &[u16]) -> Result<StrId, AllocError> {
        if units.iter().all(|&u| u < 256) {
            check_length(units.len())?;
            let mut short = [0; INLINE];
            if units.len() <= INLINE {
                for (to, &from) in short.iter_mut().zip(units) {
                    *to = from as u8;
                }
                return self.new_latin1(&short[..units.len()]);
            }
            self.account.charge(RECORD + units.len())?;
            let bytes = units.iter().map(|&u| u as u8).collect();
            return Ok(self.strings.insert(plain(Repr::Latin1(bytes))));
        }
        self.new_wide(units)
    }

    /// A string of a borrowed text (which may be a part of a wide one that is all narrow).
    pub fn new_str(&mut self, text: Str<'_>) -> Result<StrId, AllocError> {
        match text {
            Str::Latin1(bytes) => self.new_latin1(bytes),
            Str::Wide(units) => self.new_utf16(units),
        }
    }

    /// The one-unit string of a Latin-1 character; never allocates.
    #[inline]
    pub fn char_string(&self, unit: u8) -> StrId {
        StrId::from_raw(1 + u32::from(unit))
    }

    /// The text of a flat string. A rope must have been through [`Heap::flatten`]; ask [`Heap::is_flat`] when unsure.
    #[inline]
    pub fn str(&self, id: StrId) -> Str<'_> {
        match &self.strings[id].repr {
            Repr::Inline(len, bytes) => Str::Latin1(&bytes[..usize::from(*len)]),
            Repr::Latin1(bytes) => Str::Latin1(bytes),
            Repr::Wide(units) => Str::Wide(units),
            Repr::Builder(bytes) => Str::Latin1(bytes),
            Repr::WideBuilder(units) => Str::Wide(units),
            Repr::Slice { base, start, len } => self.slice_text(*base, *start, *len),
            Repr::Rope { .. } | Repr::Vacant => {
                debug_assert!(false, "the text of a rope or of a freed string was read");
                Str::EMPTY
            }
        }
    }

    /// The text of any string, flattened first.
    pub fn text(&mut self, id: StrId) -> Result<Str<'_>, AllocError> {
        self.flatten(id)?;
        Ok(self.str(id))
    }

    /// The length in code units.
    #[inline]
    pub fn string_length(&self, id: StrId) -> u32 {
        match &self.strings[id].repr {
            Repr::Inline(len, _) => u32::from(*len),
            Repr::Latin1(bytes) => bytes.len() as u32,
            Repr::Wide(units) => units.len() as u32,
            Repr::Builder(bytes) => bytes.len() as u32,
            Repr::WideBuilder(units) => units.len() as u32,
            Repr::Rope { len, .. } | Repr::Slice { len, .. } => *len,
            Repr::Vacant => 0,
        }
    }

    /// Can [`Heap::str`] be called without flattening?
    #[inline]
    pub fn is_flat(&self, id: StrId) -> bool {
        !matches!(self.strings[id].repr, Repr::Rope { .. })
    }

    /// The one-unit string of any code unit.
    pub fn unit_string(&mut self, unit: u16) -> Result<StrId, AllocError> {
        match u8::try_from(unit) {
            Ok(narrow) => Ok(self.char_string(narrow)),
            Err(_) => self.new_wide(&[unit]),
        }
    }

    /// The hash of a flat string, computed once.
    #[inline]
    pub(crate) fn string_hash(&mut self, id: StrId) -> u32 {
        let cached = self.strings[id].hash;
        if cached != 0 {
            return cached;
        }
        let hash = self.seed.text(self.str(id));
        self.strings[id].hash = hash;
        hash
    }

    pub(crate) fn is_wide(&self, id: StrId) -> bool {
        match &self.strings[id].repr {
            Repr::Inline(..) | Repr::Latin1(_) | Repr::Builder(_) | Repr::Vacant => false,
            Repr::Wide(_) | Repr::WideBuilder(_) => true,
            Repr::Rope { wide, .. } => *wide == Wide::Yes,
            Repr::Slice { base, .. } => {
                matches!(self.strings[*base].repr, Repr::Wide(_) | Repr::WideBuilder(_))
            }
        }
    }

    fn new_wide(&mut self, units: &[u16]) -> Result<StrId, AllocError> {
        check_length(units.len())?;
        self.account.charge(RECORD + units.len() * 2)?;
        Ok(self.strings.insert(plain(Repr::Wide(units.into()))))
    }

    fn slice_text(&self, base: StrId, start: u32, len: u32) -> Str<'_> {
        let (start, end) = (start as usize, start as usize + len as usize);
        match &self.strings[base].repr {
            Repr::Latin1(bytes) => Str::Latin1(&bytes[start..end]),
            Repr::Wide(units) => Str::Wide(&units[start..end]),
            Repr::Builder(bytes) => Str::Latin1(&bytes[start..end]),
            Repr::WideBuilder(units) => Str::Wide(&units[start..end]),
            Repr::Inline(..) | Repr::Rope { .. } | Repr::Slice { .. } | Repr::Vacant => {
                debug_assert!(false, "a slice of something that owns no text");
                Str::EMPTY
            }
        }
    }
}

pub(super) fn plain(repr: Repr) -> StringRecord {
    StringRecord { repr, hash: 0, role: Role::Plain }
}

/// The caller has checked that both fit.
#[inline]
pub(super) fn inline(a: &[u8], b: &[u8]) -> Repr {
    let mut bytes = [0; INLINE];
    bytes[..a.len()].copy_from_slice(a);
    bytes[a.len()..a.len() + b.len()].copy_from_slice(b);
    Repr::Inline((a.len() + b.len()) as u8, bytes)
}

pub(super) fn check_length(len: usize) -> Result<(), AllocError> {
    if len > MAX_LENGTH { Err(AllocError::TooLong) } else { Ok(()) }
}

const _: () = assert!(size_of::<StringRecord>() == 32);
