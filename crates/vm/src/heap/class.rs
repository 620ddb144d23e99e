//! What kinds of objects there are. A new class is one line in the table below: its name and where its payload lives.

/// Where the `payload` number of an object record points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Nowhere.
    None,
    /// Dense elements and a length.
    Elements,
    /// One value: a boxed primitive, a time.
    Cell,
    /// A record of internal fields, laid out by whoever owns the class.
    Slots,
    /// Code and captures.
    Closure,
    /// An ordered hash table.
    Map,
    /// A weak table.
    Weak,
    /// Bytes.
    Buffer,
    /// A window into bytes.
    View,
}

macro_rules! classes {
    ($($(#[$doc:meta])* $name:ident $payload:ident,)*) => {
        /// The class of an object: what it is beyond its properties.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Class { $($(#[$doc])* $name),* }

        impl Class {
            /// Where objects of this class keep what is not a property.
            #[inline]
            pub const fn payload(self) -> Payload {
                match self { $(Class::$name => Payload::$payload),* }
            }

            /// Every class, in the order of their numbers.
            pub const ALL: &'static [Class] = &[$(Class::$name),*];
        }
    };
}

classes! {
    /// A free arena entry. No live object has it.
    Vacant None,
    /// A plain object, and anything whose behaviour is only in its properties.
    Object None,
    /// An array.
    Array Elements,
    /// An arguments object. Always unmapped: all code is strict.
    Arguments Elements,
    /// A function with code.
    Function Closure,
    /// A function implemented by the engine; fields: native id, then whatever it needs.
    NativeFunction Slots,
    /// A function made by `bind`; fields: target, this, arguments.
    BoundFunction Slots,
    /// A capability of the host; fields: its name.
    HostFunction Slots,
    /// An error; fields: where it was made.
    Error Slots,
    /// A Boolean object.
    Boolean Cell,
    /// A Number object.
    Number Cell,
    /// A String object; its characters and length are own properties.
    String Cell,
    /// A Symbol object.
    Symbol Cell,
    /// A BigInt object.
    BigInt Cell,
    /// A date; the cell holds its time value.
    Date Cell,
    /// A regular expression; fields: source, flags, compiled program.
    RegExp Slots,
    /// A Map.
    Map Map,
    /// A Set.
    Set Map,
    /// A WeakMap.
    WeakMap Weak,
    /// A WeakSet.
    WeakSet Weak,
    /// A WeakRef. It keeps its target: when garbage is collected must not show, least of all across a snapshot.
    WeakRef Cell,
    /// A FinalizationRegistry. Holds its callback only: callbacks are never called, which the language permits.
    FinalizationRegistry Slots,
    /// An ArrayBuffer.
    ArrayBuffer Buffer,
    /// A SharedArrayBuffer.
    SharedArrayBuffer Buffer,
    /// A typed array of any element type.
    TypedArray View,
    /// A DataView.
    DataView View,
    /// A promise; fields: state, result, reactions, handled.
    Promise Slots,
    /// A proxy; fields: target, handler (both null when revoked).
    Proxy Slots,
    /// A generator; fields: state and saved frame.
    Generator Slots,
    /// An async generator; fields: state, saved frame, queue.
    AsyncGenerator Slots,
    /// An array iterator; fields: array, position, kind.
    ArrayIterator Slots,
    /// A Map iterator; fields: map, position, kind.
    MapIterator Slots,
    /// A Set iterator; fields: set, position, kind.
    SetIterator Slots,
    /// A string iterator; fields: string, position.
    StringIterator Slots,
    /// A `matchAll` iterator.
    RegExpStringIterator Slots,
    /// A for-in enumeration in progress.
    ForInIterator Slots,
    /// The async wrapper of a sync iterator.
    AsyncFromSyncIterator Slots,
    /// An iterator helper (`map`, `filter`, … on iterators).
    IteratorHelper Slots,
    /// The result of `Iterator.from`.
    WrapForValidIterator Slots,
    /// The result of `JSON.rawJSON` and other branded plain records.
    Branded Slots,
    /// A module namespace; fields: module.
    ModuleNamespace Slots,
}

/// One-bit facts about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(pub(crate) u8);

impl Flags {
    /// Nothing special.
    pub const NONE: Flags = Flags(0);
    /// Can be called.
    pub const CALLABLE: Flags = Flags(1);
    /// Can be called with `new`.
    pub const CONSTRUCTOR: Flags = Flags(2);
    /// Some shape has it as prototype: a change of its properties invalidates method caches.
    pub const PROTOTYPE: Flags = Flags(4);
    /// Its index properties are in its property table instead of the dense elements.
    pub const SPARSE: Flags = Flags(8);
    /// Its prototype cannot be changed (`Object.prototype`).
    pub const IMMUTABLE_PROTOTYPE: Flags = Flags(16);
    /// A class constructor: cannot be called without `new`.
    pub const CLASS_CONSTRUCTOR: Flags = Flags(32);
    /// A derived class constructor: `this` is unset until `super()`.
    pub const DERIVED: Flags = Flags(64);

    /// Both sets together.
    pub const fn and(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Are all of `other`'s facts true?
    #[inline]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}
