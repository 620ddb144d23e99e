//! The flags of a regular expression, as a set that can be read from their spelling.

/// A set of RegExp flags. `u` and `v` never appear together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flags(u8);

impl Flags {
    /// No flag at all.
    pub const NONE: Self = Self(0);
    /// `d`: report where captures are.
    pub const INDICES: Self = Self(1);
    /// `g`: find all, from `lastIndex` on.
    pub const GLOBAL: Self = Self(2);
    /// `i`: ignore case.
    pub const IGNORE_CASE: Self = Self(4);
    /// `m`: `^` and `$` know lines.
    pub const MULTILINE: Self = Self(8);
    /// `s`: the dot matches line ends.
    pub const DOT_ALL: Self = Self(16);
    /// `u`: the text is code points.
    pub const UNICODE: Self = Self(32);
    /// `v`: as `u`, with set notation.
    pub const UNICODE_SETS: Self = Self(64);
    /// `y`: match at `lastIndex` or not at all.
    pub const STICKY: Self = Self(128);

    /// Reads a flags string; an unknown or repeated flag, or `u` beside `v`, is no flags at all.
    #[must_use]
    pub fn parse(units: impl IntoIterator<Item = u16>) -> Option<Self> {
        let mut flags = Self::NONE;
        for unit in units {
            let flag = match u8::try_from(unit).ok()? {
                b'd' => Self::INDICES,
                b'g' => Self::GLOBAL,
                b'i' => Self::IGNORE_CASE,
                b'm' => Self::MULTILINE,
                b's' => Self::DOT_ALL,
                b'u' => Self::UNICODE,
                b'v' => Self::UNICODE_SETS,
                b'y' => Self::STICKY,
                _ => return None,
            };
            if flags.has(flag) {
                return None;
            }
            flags = flags.with(flag);
        }
        (!(flags.has(Self::UNICODE) && flags.has(Self::UNICODE_SETS))).then_some(flags)
    }

    /// Are all of `other` in the set?
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The set and `other` together.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The set without `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Is the text read as code points (`u` or `v`)?
    #[must_use]
    pub const fn reads_code_points(self) -> bool {
        self.has(Self::UNICODE) || self.has(Self::UNICODE_SETS)
    }

    /// The set that [`Flags::bits`] made a byte of.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// The flags as one byte, for storage.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_once_each_and_u_excludes_v() {
        let parse = |text: &str| Flags::parse(text.encode_utf16());
        assert_eq!(parse(""), Some(Flags::NONE));
        assert_eq!(parse("yg"), Some(Flags::GLOBAL.with(Flags::STICKY)));
        for bad in ["gg", "uv", "vu", "G", "x", "\u{1d6cc}", "g "] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
