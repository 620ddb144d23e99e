//! The names of things in the heap: one newtype per arena, so that a string id can never index the objects.

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name(u32);

        impl $name {
            /// The id with this number. The collector and the snapshot codec make ids; others pass them on.
            #[inline]
            pub const fn from_raw(raw: u32) -> Self {
                Self(raw)
            }

            /// The number, for packing into a value, an instruction or a snapshot.
            #[inline]
            pub const fn raw(self) -> u32 {
                self.0
            }
        }

        impl super::arena::Id for $name {
            #[inline]
            fn from_index(index: u32) -> Self {
                Self(index)
            }
            #[inline]
            fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// A string; an atom is a string that the interner knows.
    StrId
    /// A symbol or a private name.
    SymId
    /// A bigint.
    BigId
    /// An object of any class.
    ObjId
    /// A captured variable.
    CellId
    /// A shape: which properties an object has, in which slots, and its prototype.
    ShapeId
    /// The property table that shapes share.
    TableId
    /// A getter/setter pair.
    AccessorId
    /// The elements of an array or an arguments object.
    ElementsId
    /// A record of internal fields.
    SlotsId
    /// What makes an object a closure: its code and what it captured.
    ClosureId
    /// The ordered hash table of a Map or a Set.
    MapId
    /// The table of a WeakMap or a WeakSet.
    WeakId
    /// The bytes of an array buffer.
    BufferId
    /// A typed array's or data view's window into a buffer.
    ViewId
}
