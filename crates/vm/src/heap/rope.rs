//! Texts made of texts: concatenation, flattening and substrings, each without copying more than is due.
//!
//! Appending is what programs do most, so it has its own form: the text under construction is a *builder* that only
//! grows, and every string on the way is a slice of its beginning. Appending to the slice that ends where the builder
//! ends extends the builder in place; anything else makes a rope. A rope is flattened in place, without recursion, when
//! somebody reads it.

use super::string::{BUILDER, INLINE, RECORD, Repr, Wide, check_length, inline, plain};
use super::{AllocError, Heap, Str, StrId, atoms};

/// Below this length a concatenation is copied into a string of its own.
const COPY_BELOW: usize = 48;
/// Up to this length, a text that is appended to becomes a builder; longer ones become the left side of a rope.
const BUILD_BELOW: usize = 1024;
/// Longer pieces are linked by a rope rather than copied into a builder.
const PIECE: usize = 4096;
/// Below this length a substring is copied.
const SLICE_FROM: usize = 40;

impl Heap {
    /// `left + right`, in constant amortised time.
    pub fn concat(&mut self, left: StrId, right: StrId) -> Result<StrId, AllocError> {
        if let (Repr::Inline(a, head), Repr::Inline(b, tail)) =
            (&self.strings[left].repr, &self.strings[right].repr)
        {
            let (a, b) = (usize::from(*a), usize::from(*b));
            if a > 0 && b > 0 && a + b <= INLINE {
                let mut bytes = *head;
                bytes[a..a + b].copy_from_slice(&tail[..b]);
                self.account.charge(RECORD)?;
                return Ok(self.strings.insert(plain(Repr::Inline((a + b) as u8, bytes))));
            }
        }
        let (a, b) = (self.string_length(left), self.string_length(right));
        if a == 0 {
            return Ok(right);
        }
        if b == 0 {
            return Ok(left);
        }
        let len = a as usize + b as usize;
        check_length(len)?;
        if self.is_flat(right) {
            if let Some(joined) = self.append(left, right)? {
                return Ok(joined);
            }
            if let Repr::Rope { left: head, right: tail, .. } = self.strings[left].repr
                && let Some(right) = self.append(tail, right)?
            {
                return self.link(head, right, len);
            }
        }
        self.link(left, right, len)
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
        self.each_part_while(id, |part| {
            f(part);
            true
        });
    }

    /// The same for as long as `f` says.
    pub(crate) fn each_part_while(&self, id: StrId, mut f: impl FnMut(Str<'_>) -> bool) {
        let mut stack = vec![id];
        while let Some(id) = stack.pop() {
            match self.strings[id].repr {
                Repr::Rope { left, right, .. } => {
                    stack.push(right);
                    stack.push(left);
                }
                _ if f(self.str(id)) => {}
                _ => return,
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
                None => Ok(atoms::EMPTY),
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

    fn link(&mut self, left: StrId, right: StrId, len: usize) -> Result<StrId, AllocError> {
        let wide = if self.is_wide(left) || self.is_wide(right) { Wide::Yes } else { Wide::No };
        self.account.charge(RECORD)?;
        Ok(self.strings.insert(plain(Repr::Rope { left, right, len: len as u32, wide })))
    }

    /// A flat string of two, the right one flat, if that takes no more than constant amortised time.
    fn append(&mut self, left: StrId, right: StrId) -> Result<Option<StrId>, AllocError> {
        if let Repr::Slice { base, start, len } = self.strings[left].repr {
            let end = start as usize + len as usize;
            let piece = self.string_length(right) as usize;
            if piece <= PIECE && self.extend(base, end, right)? {
                let len = len + piece as u32;
                return Ok(Some(self.strings.insert(plain(Repr::Slice { base, start, len }))));
            }
        }
        if !self.is_flat(left) {
            return Ok(None);
        }
        let len = self.string_length(left) as usize + self.string_length(right) as usize;
        if len < COPY_BELOW {
            return self.join(left, right).map(Some);
        }
        if len < BUILD_BELOW { self.build(left, right).map(Some) } else { Ok(None) }
    }

    /// Appends a piece to a builder if it ends at `end` and is as wide as the piece. Charges for its growth and for the
    /// slice that the caller is about to make.
    fn extend(&mut self, base: StrId, end: usize, piece: StrId) -> Result<bool, AllocError> {
        let (room, len, width) = match &self.strings[base].repr {
            Repr::Builder(bytes) if !self.is_wide(piece) => (bytes.capacity() - bytes.len(), bytes.len(), 1),
            Repr::WideBuilder(units) => (units.capacity() - units.len(), units.len(), 2),
            _ => return Ok(false),
        };
        if len != end {
            return Ok(false);
        }
        let more = self.string_length(piece) as usize;
        let growth = if more <= room { 0 } else { (len + room).max(more) };
        self.account.charge(RECORD + growth * width)?;
        // The builder is taken out while the piece is read; a piece may be a slice of this very builder.
        let mut builder = std::mem::replace(&mut self.strings[base].repr, Repr::Vacant);
        let own = matches!(self.strings[piece].repr, Repr::Slice { base: of, .. } if of == base);
        let range = match self.strings[piece].repr {
            Repr::Slice { start, len, .. } => start as usize..start as usize + len as usize,
            _ => 0..0,
        };
        match &mut builder {
            Repr::Builder(bytes) => {
                bytes.reserve_exact(if growth > 0 { room + growth } else { 0 });
                if own {
                    bytes.extend_from_within(range);
                } else if let Str::Latin1(piece) = self.str(piece) {
                    bytes.extend_from_slice(piece);
                }
            }
            Repr::WideBuilder(units) => {
                units.reserve_exact(if growth > 0 { room + growth } else { 0 });
                if own {
                    units.extend_from_within(range);
                } else {
                    units.extend(self.str(piece).units());
                }
            }
            _ => {}
        }
        self.strings[base].repr = builder;
        Ok(true)
    }

    /// A new builder that begins with two flat strings, and the slice that is their concatenation.
    fn build(&mut self, left: StrId, right: StrId) -> Result<StrId, AllocError> {
        let len = self.string_length(left) as usize + self.string_length(right) as usize;
        let capacity = len * 2;
        let wide = self.is_wide(left) || self.is_wide(right);
        let width = if wide { 2 } else { 1 };
        self.account.charge_many(2 * RECORD + BUILDER + capacity * width, 2)?;
        let builder = if wide {
            let mut units = Vec::new();
            units.reserve_exact(capacity);
            units.extend(self.str(left).units().chain(self.str(right).units()));
            Repr::WideBuilder(Box::new(units))
        } else {
            let mut bytes = Vec::new();
            bytes.reserve_exact(capacity);
            for part in [left, right] {
                if let Str::Latin1(part) = self.str(part) {
                    bytes.extend_from_slice(part);
                }
            }
            Repr::Builder(Box::new(bytes))
        };
        let base = self.strings.insert(plain(builder));
        Ok(self.strings.insert(plain(Repr::Slice { base, start: 0, len: len as u32 })))
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

    /// A flat copy of two flat strings.
    fn join(&mut self, left: StrId, right: StrId) -> Result<StrId, AllocError> {
        let len = self.string_length(left) as usize + self.string_length(right) as usize;
        let width = if self.is_wide(left) || self.is_wide(right) { 2 } else { 1 };
        self.account.charge(RECORD + owned_bytes(len, width))?;
        let repr = match (self.str(left), self.str(right)) {
            (Str::Latin1(a), Str::Latin1(b)) if a.len() + b.len() <= INLINE => inline(a, b),
            (Str::Latin1(a), Str::Latin1(b)) => Repr::Latin1([a, b].concat().into_boxed_slice()),
            (a, b) => Repr::Wide(a.units().chain(b.units()).collect()),
        };
        Ok(self.strings.insert(plain(repr)))
    }
}

fn owned_bytes(len: usize, width: usize) -> usize {
    if width == 1 && len <= INLINE { 0 } else { len * width }
}
