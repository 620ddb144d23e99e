//! The prelude functions that instructions fall back to.
//!
//! When an instruction meets a case that may run guest code (a getter, `valueOf`, an iterator), the interpreter
//! pushes an ordinary frame of one of these helpers; its result lands in the instruction's destination register.
//! So exceptions, budgets, suspension and snapshots need no special case.

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum $name { $($(#[$vdoc])* $variant),* }

        impl $name {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// The name in the prelude's source.
            pub fn text(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }
        }
    };
}

numbered! {
    /// A prelude function that instructions call.
    Helper {
        /// `a + b` with an object or symbol among the operands
        Add = "slowAdd",
        /// `a - b` and the other numeric operators; the third argument says which
        Arith = "slowArith",
        /// `a < b` and its siblings; the third argument says which
        Compare = "slowCompare",
        /// `a == b` with an object among the operands
        Equal = "slowEqual",
        /// unary `-`, `+`, `~`, `++`, `--` of an object; the second argument says which
        Unary = "slowUnary",
        /// ToString of an object
        ToStr = "slowToString",
        /// ToPropertyKey of an object
        ToKey = "slowToKey",
        /// `a instanceof b`
        InstanceOf = "slowInstanceOf",
        /// `a[b]` with an object as key
        GetElem = "slowGetElem",
        /// `a[b] = c` with an object as key
        SetElem = "slowSetElem",
        /// `iterable[Symbol.iterator]()`, checked
        GetIterator = "getIterator",
        /// one step: answers the value, or the hole when done
        IterStep = "iteratorStep",
        /// `iterator.return()` after a normal completion
        IterClose = "iteratorClose",
        /// `iterator.return()` after a throw
        IterAbort = "iteratorAbort",
        /// appends what an iterable yields to an array
        Spread = "spreadInto",
        /// copies properties of an object with getters
        CopyProps = "copyProps",
        /// one step of `yield*`
        DelegateStep = "delegateStep",
        /// `iterable[Symbol.asyncIterator]()`, or the wrapped sync iterator
        GetAsyncIterator = "getAsyncIterator",
        /// runs a promise's executor; `this` is the promise
        RunExecutor = "runExecutor",
    }
}
