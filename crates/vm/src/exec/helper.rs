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
        /// the value of an iterator's result, or the hole when done
        IterResult = "iteratorResult",
        /// `next` of generators, to see whether it is still the engine's
        GeneratorNext = "generatorNext",
        /// `Map.prototype.set`, likewise
        MapSet = "mapSet",
        /// `Set.prototype.add`, likewise
        SetAdd = "setAdd",
        /// `next` of Map iterators
        MapIteratorNext = "mapIteratorNext",
        /// the same of Set iterators
        SetIteratorNext = "setIteratorNext",
        /// the same of string iterators
        StringIteratorNext = "stringIteratorNext",
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
        /// the constructor `Promise`, to see whether a promise is plain
        PromiseConstructor = "promiseConstructor",
        /// the getter of its `Symbol.species`, likewise
        PromiseSpecies = "promiseSpecies",
        /// `Promise.prototype.then`, likewise
        PromiseThen = "promiseThen",
        /// resolves a promise with a value whose `then` is a getter; answers the third argument
        ResolveSlow = "resolveSlow",
        /// PromiseResolve in full
        PromiseResolve = "promiseResolve",
        /// an async generator that is over awaits what it was told to return; answers the second argument
        AwaitReturn = "asyncGeneratorAwaitReturn",
        /// an async generator's body ended (second argument 1: by a throw) with the third argument
        GeneratorOver = "asyncGeneratorOver",
        /// a reaction that a promise of a subclass depends on
        RunReaction = "runReaction",
        /// `delete a[b]` with an object as key
        DeleteElem = "slowDelete",
        /// `a in b` with an object as key
        In = "slowIn",
        /// `super[a]` with an object as key
        GetSuper = "slowGetSuper",
        /// `super[a] = b` with an object as key
        SetSuper = "slowSetSuper",
        /// for-in over an object with a proxy on its chain
        ForIn = "forInKeys",
        /// `new` where the prototype of the new object must be asked for
        ConstructSlow = "constructSlow",
        /// `[[Get]]` of a proxy
        ProxyGet = "proxyGet",
        /// `[[Set]]` of a proxy
        ProxySet = "proxySet",
        /// the same for an assignment: a refusal throws
        ProxyAssign = "proxyAssign",
        /// `[[HasProperty]]` of a proxy
        ProxyHas = "proxyHas",
        /// `[[Delete]]` of a proxy
        ProxyDelete = "proxyDelete",
        /// the same for `delete`: a refusal throws
        ProxyDeleteStrict = "proxyDeleteStrict",
        /// `[[GetOwnProperty]]` of a proxy
        ProxyGetOwn = "proxyGetOwn",
        /// whether a proxy has an own property
        ProxyHasOwn = "proxyHasOwn",
        /// `[[DefineOwnProperty]]` of a proxy
        ProxyDefine = "proxyDefine",
        /// `[[OwnPropertyKeys]]` of a proxy
        ProxyOwnKeys = "proxyOwnKeys",
        /// `[[GetPrototypeOf]]` of a proxy
        ProxyGetProto = "proxyGetProto",
        /// `[[SetPrototypeOf]]` of a proxy
        ProxySetProto = "proxySetProto",
        /// `[[IsExtensible]]` of a proxy
        ProxyIsExtensible = "proxyIsExtensible",
        /// `[[PreventExtensions]]` of a proxy
        ProxyPreventExtensions = "proxyPreventExtensions",
        /// `[[Call]]` of a proxy
        ProxyCall = "proxyCall",
        /// `[[Construct]]` of a proxy
        ProxyConstruct = "proxyConstruct",
        /// a setter called for `Reflect.set`: answers true
        CallSetter = "callSetter",
        /// the end of OrdinarySet on a receiver that is not the object itself
        SetOnReceiver = "setOnReceiver",
        /// the same for an assignment: a refusal throws
        AssignOnReceiver = "assignOnReceiver",
        /// a typed array's element from a value that must be converted
        SetViewElement = "setViewElement",
        /// an array's length or a typed array's element from a value that must be converted
        DefineSpecial = "defineSpecial",
        /// CreateDataPropertyOrThrow where guest code has a say
        CreateDataSlow = "createDataSlow",
        /// `Object.keys`, `values` and `entries` where guest code has a say
        EnumerableOwn = "enumerableOwn",
    }
}
