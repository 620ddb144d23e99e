//! The ids that link the tree: four bytes each, and `Option<Id>` is four bytes too.

use std::marker::PhantomData;
use std::num::NonZeroU32;

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(NonZeroU32);

        impl $name {
            /// The id of the entry at `index` of its table.
            ///
            /// Tables are never longer than the source is, and a source is shorter than `u32::MAX` bytes
            /// (the parser refuses longer ones), so the index always fits; one that does not is clamped.
            #[must_use]
            pub const fn from_index(index: usize) -> Self {
                let raw = if index >= u32::MAX as usize { u32::MAX } else { index as u32 + 1 };
                match NonZeroU32::new(raw) {
                    Some(raw) => Self(raw),
                    None => Self(NonZeroU32::MIN),
                }
            }

            /// Where the entry is in its table.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0.get() as usize - 1
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}#{}", stringify!($name), self.index())
            }
        }
    )*};
}

id! {
    /// An interned piece of text: an identifier, a string literal, a template chunk.
    Atom;
    /// An expression.
    ExprId;
    /// A statement.
    StmtId;
    /// A binding or assignment pattern.
    PatternId;
    /// A function, arrow, method, accessor, initialiser or the script itself.
    FunctionId;
    /// A class.
    ClassId;
    /// A `try` statement.
    TryId;
    /// A `for` statement of any kind.
    LoopId;
    /// A regular expression literal.
    RegexId;
    /// A template literal's chunks.
    TemplateId;
    /// A place where a name is used (or declared): what the resolver answers for.
    RefId;
    /// A scope.
    ScopeId;
    /// A declared name, or one of the things every function has (`this`, `arguments`, …).
    BindingId;
}

/// A run of consecutive entries of the table for `T` (see [`super::Program::list`]).
pub struct List<T> {
    pub(crate) start: u32,
    pub(crate) len: u32,
    table: PhantomData<fn() -> T>,
}

impl<T> List<T> {
    /// The list with nothing in it.
    pub const EMPTY: Self = Self::new(0, 0);

    pub(crate) const fn new(start: u32, len: u32) -> Self {
        Self { start, len, table: PhantomData }
    }

    /// How many entries.
    #[must_use]
    pub const fn len(self) -> usize {
        self.len as usize
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The entries' place in their table.
    #[must_use]
    pub const fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }
}

impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for List<T> {}

impl<T> PartialEq for List<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.start, self.len) == (other.start, other.len)
    }
}

impl<T> Eq for List<T> {}

impl<T> std::fmt::Debug for List<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{}..{}]", self.start, self.start + self.len)
    }
}

/// A stretch of the source, in bytes: `start..end`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The stretch from `start` up to but not including `end`.
    #[must_use]
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// From the start of this stretch to the end of `last`.
    #[must_use]
    pub const fn to(self, last: Self) -> Self {
        Self { start: self.start, end: last.end }
    }
}

impl std::fmt::Debug for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}
