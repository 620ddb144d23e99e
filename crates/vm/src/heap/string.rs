//! Strings: short ones inside their record, long ones boxed, concatenations as ropes, long substrings as slices.
//!
//! A rope is flattened, in place and without recursion, the first time somebody reads its units. Appending a short
//! text to a rope whose right end is short copies that end instead of growing the rope, so building a text of n
//! appends makes about n/20 rope nodes.

use super::arena::Record;
use super::{AllocError, Heap, Str, StrId};

/// The longest string: what JavaScript engines commonly allow.
pub const MAX_LENGTH: usize = (1 << 29) - 24;

const INLINE: usize = 22;
/// Below this length a concatenation is copied.
const COPY_BELOW: usize = 48;
/// A rope's right end is extended by copying up to this length.
const TAIL: usize = 256;
/// Below this length a substring is copied.
const SLICE_FROM: usize = 40;

#[derive(Clone, Debug)]
pub(crate) enum Repr {
    Vacant,
    Inline(u8, [u8; INLINE]),
    Latin1(Box<[u8]>),
    Wide(Box<[u16]>),
    Rope { left: StrId, right: StrId, len: u32, wide: Wide },
    Slice { base: StrId, start: u32, len: u32 },
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
    fn bytes(&self) -> usize {
        let owned = match &self.repr {
            Repr::Vacant | Repr::Inline(..) | Repr::Rope { .. } | Repr::Slice { .. } => 0,
            Repr::Latin1(bytes) => bytes.len(),
            Repr::Wide(units) => units.len() * 2,
        };
        size_of::<StringRecord>() + owned
    }
}

const RECORD: usize = size_of::<StringRecord>();

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
            Repr::Rope { len, .. } | Repr::Slice { len, .. } => *len,
            Repr::Vacant => 0,
        }
    }

    /// Can [`Heap::str`] be called without flattening?
    #[inline]
    pub fn is_flat(&self, id: StrId) -> bool {
        !matches!(self.strings[id].repr, Repr::Rope { .. })
    }

    /// `left + right`, in constant amortised time.
    pub fn concat(&mut self, left: StrId, right: StrId) -> Result<StrId, AllocError> {
        let (a, b) = (self.string_length(left), self.string_length(right));
        if a == 0 {
            return Ok(right);
        }
        if b == 0 {
            return Ok(left);
        }
        let len = a as usize + b as usize;
        check_length(len)?;
        if len < COPY_BELOW && self.is_flat(left) && self.is_flat(right) {
            return self.join(left, right);
        }
        let wide = if self.is_wide(left) || self.is_wide(right) { Wide::Yes } else { Wide::No };
        if let Repr::Rope { left: head, right: tail, .. } = self.strings[left].repr {
            let end = self.string_length(tail) as usize + b as usize;
            if end <= TAIL && self.is_flat(tail) && self.is_flat(right) {
                // Both records are charged together, so that a refusal leaves nothing half done.
                let width = if self.is_wide(tail) || self.is_wide(right) { 2 } else { 1 };
                self.account.charge_many(2 * RECORD + owned_bytes(end, width), 2)?;
                let right = self.join_charged(tail, right);
                let rope = Repr::Rope { left: head, right, len: len as u32, wide };
                return Ok(self.strings.insert(plain(rope)));
            }
        }
        self.account.charge(RECORD)?;
        Ok(self.strings.insert(plain(Repr::Rope { left, right, len: len as u32, wide })))
    }

    /// Makes a string readable by [`Heap::str`]. Charges for the flat copy first; the rope's parts become garbage.
    pub fn flatten(&mut self, id: StrId) -> Result<(), AllocError> {
        if self.is_flat(id) { Ok(()) } else { self.flatten_rope(id) }
    }

    #[cold]
    #[inline(never)]
    fn flatten_rope(&mut self, id: StrId) -> Result<(), AllocError> {
        let len = self.string_length(id) as usize;
        if self.is_wide(id) {
            self.account.grow(len * 2)?;
            let mut units = Vec::with_capacity(len);
            self.each_part(id, |part| units.extend(part.units()));
            self.strings[id].repr = Repr::Wide(units.into_boxed_slice());
        } else {
            self.account.grow(len)?;
            let mut bytes = Vec::with_capacity(len);
            self.each_part(id, |part| {
                if let Str::Latin1(part) = part {
                    bytes.extend_from_slice(part);
                }
            });
            self.strings[id].repr = Repr::Latin1(bytes.into_boxed_slice());
        }
        Ok(())
    }

    /// Calls `f` with the flat parts of a string from left to right. The stack is as deep as the rope leans right or
    /// is balanced; a left-leaning rope, the common one, is walked with its right ends on the stack.
    pub fn each_part(&self, id: StrId, mut f: impl FnMut(Str<'_>)) {
        let mut stack = vec![id];
        while let Some(id) = stack.pop() {
            match self.strings[id].repr {
                Repr::Rope { left, right, .. } => {
                    stack.push(right);
                    stack.push(left);
                }
                _ => f(self.str(id)),
            }
        }
    }

    /// The units from `start` to `end` of a flat string, clamped. Long parts share the original's storage (and so keep
    /// it alive); short ones are copied.
    pub fn substring(&mut self, id: StrId, start: u32, end: u32) -> Result<StrId, AllocError> {
        let len = self.string_length(id);
        let end = end.min(len);
        let start = start.min(end);
        if start == 0 && end == len {
            return Ok(id);
        }
        self.flatten(id)?;
        let part = self.str(id).slice(start as usize, end as usize);
        if part.len() <= 1 {
            return match part.get(0) {
                None => Ok(super::atoms::EMPTY),
                Some(unit) => self.unit_string(unit),
            };
        }
        if part.len() < SLICE_FROM || matches!(part, Str::Wide(units) if units.iter().all(|&u| u < 256)) {
            return self.copy_part(id, start, end);
        }
        let (base, start) = match self.strings[id].repr {
            Repr::Slice { base, start: offset, .. } => (base, offset + start),
            _ => (id, start),
        };
        let len = part.len() as u32;
        self.account.charge(RECORD)?;
        Ok(self.strings.insert(plain(Repr::Slice { base, start, len })))
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
            Repr::Inline(..) | Repr::Latin1(_) | Repr::Vacant => false,
            Repr::Wide(_) => true,
            Repr::Rope { wide, .. } => *wide == Wide::Yes,
            Repr::Slice { base, .. } => matches!(self.strings[*base].repr, Repr::Wide(_)),
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
            Repr::Inline(..) | Repr::Rope { .. } | Repr::Slice { .. } | Repr::Vacant => {
                debug_assert!(false, "a slice of something that owns no text");
                Str::EMPTY
            }
        }
    }

    fn copy_part(&mut self, id: StrId, start: u32, end: u32) -> Result<StrId, AllocError> {
        let (start, end) = (start as usize, end as usize);
        let mut short = [0u8; SLICE_FROM];
        match self.str(id).slice(start, end) {
            Str::Latin1(bytes) => {
                // Latin-1 parts get here only when they are shorter than SLICE_FROM.
                let n = bytes.len().min(SLICE_FROM);
                short[..n].copy_from_slice(&bytes[..n]);
                self.new_latin1(&short[..n])
            }
            Str::Wide(units) => {
                let units: Vec<u16> = units.to_vec();
                self.new_utf16(&units)
            }
        }
    }

    fn join(&mut self, left: StrId, right: StrId) -> Result<StrId, AllocError> {
        let len = self.string_length(left) as usize + self.string_length(right) as usize;
        let width = if self.is_wide(left) || self.is_wide(right) { 2 } else { 1 };
        self.account.charge(RECORD + owned_bytes(len, width))?;
        Ok(self.join_charged(left, right))
    }

    /// A flat copy of two flat strings, already charged for.
    fn join_charged(&mut self, left: StrId, right: StrId) -> StrId {
        let repr = match (self.str(left), self.str(right)) {
            (Str::Latin1(a), Str::Latin1(b)) if a.len() + b.len() <= INLINE => inline(a, b),
            (Str::Latin1(a), Str::Latin1(b)) => Repr::Latin1([a, b].concat().into_boxed_slice()),
            (a, b) => Repr::Wide(a.units().chain(b.units()).collect()),
        };
        self.strings.insert(plain(repr))
    }
}

fn plain(repr: Repr) -> StringRecord {
    StringRecord { repr, hash: 0, role: Role::Plain }
}

/// The caller has checked that both fit.
#[inline]
fn inline(a: &[u8], b: &[u8]) -> Repr {
    let mut bytes = [0; INLINE];
    bytes[..a.len()].copy_from_slice(a);
    bytes[a.len()..a.len() + b.len()].copy_from_slice(b);
    Repr::Inline((a.len() + b.len()) as u8, bytes)
}

fn owned_bytes(len: usize, width: usize) -> usize {
    if width == 1 && len <= INLINE { 0 } else { len * width }
}

fn check_length(len: usize) -> Result<(), AllocError> {
    if len > MAX_LENGTH { Err(AllocError::TooLong) } else { Ok(()) }
}

const _: () = assert!(size_of::<StringRecord>() == 32);
