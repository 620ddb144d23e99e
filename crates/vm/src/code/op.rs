//! The instruction set: one 8-byte `Copy` enum, so that a fetch is one load and a dispatch is one jump.
//!
//! Operands are registers of the current frame unless said otherwise. `d` is a destination, `a`, `b`, `c` are
//! sources, `t` a jump target (an instruction index inside the function), `k` a constant, `s` a property site.
//! Numbers are explicit because snapshots and disassemblies name them; a new instruction takes a new number.

/// A register of the current frame: an index into its 256-value window.
pub type R = u8;
/// A jump target: an instruction index inside the function.
pub type T = u32;
/// An index into the machine's constants.
pub type K = u32;
/// An index into the machine's property sites (a key and its inline cache).
pub type S = u32;

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    // -- loads and moves ---------------------------------------------------------------------------------
    /// `d = constant k`
    LoadK(R, K) = 0,
    /// `d = integer`
    LoadInt(R, i32) = 1,
    /// `d = undefined`
    LoadUndef(R) = 2,
    /// `d = null`
    LoadNull(R) = 3,
    /// `d = true`
    LoadTrue(R) = 4,
    /// `d = false`
    LoadFalse(R) = 5,
    /// `d = the "not yet initialised" marker`
    LoadHole(R) = 6,
    /// `d = a`
    Move(R, R) = 7,

    // -- arithmetic --------------------------------------------------------------------------------------
    /// `d = a + b`
    Add(R, R, R) = 10,
    /// `d = a - b`
    Sub(R, R, R) = 11,
    /// `d = a * b`
    Mul(R, R, R) = 12,
    /// `d = a / b`
    Div(R, R, R) = 13,
    /// `d = a % b`
    Mod(R, R, R) = 14,
    /// `d = a ** b`
    Exp(R, R, R) = 15,
    /// `d = a & b`
    BitAnd(R, R, R) = 16,
    /// `d = a | b`
    BitOr(R, R, R) = 17,
    /// `d = a ^ b`
    BitXor(R, R, R) = 18,
    /// `d = a << b`
    Shl(R, R, R) = 19,
    /// `d = a >> b`
    Shr(R, R, R) = 20,
    /// `d = a >>> b`
    UShr(R, R, R) = 21,
    /// `d = a + integer`, where the source wrote an integer literal on the right
    AddInt(R, R, i32) = 22,
    /// `d = a - integer`
    SubInt(R, R, i32) = 23,
    /// `d = a * integer`
    MulInt(R, R, i32) = 24,
    /// `d = a % integer`
    ModInt(R, R, i32) = 25,
    /// `d = a & integer`
    BitAndInt(R, R, i32) = 26,
    /// `d = a + constant k`
    AddK(R, R, K) = 27,
    /// `d = -a`
    Neg(R, R) = 30,
    /// `d = ToNumber(a)`
    ToNumber(R, R) = 31,
    /// `d = ToNumeric(a)`
    ToNumeric(R, R) = 32,
    /// `d = ~a`
    BitNot(R, R) = 33,
    /// `d = !a`
    Not(R, R) = 34,
    /// `d = typeof a`
    TypeOf(R, R) = 35,
    /// `d = ToNumeric(a) + 1`
    Inc(R, R) = 36,
    /// `d = ToNumeric(a) - 1`
    Dec(R, R) = 37,
    /// `d = ToString(a)`, for template literals
    ToStr(R, R) = 38,
    /// `d = ToPropertyKey(a)`
    ToKey(R, R) = 39,

    // -- comparison --------------------------------------------------------------------------------------
    /// `d = a < b`
    Lt(R, R, R) = 40,
    /// `d = a <= b`
    Le(R, R, R) = 41,
    /// `d = a > b`
    Gt(R, R, R) = 42,
    /// `d = a >= b`
    Ge(R, R, R) = 43,
    /// `d = a == b`
    Eq(R, R, R) = 44,
    /// `d = a != b`
    Ne(R, R, R) = 45,
    /// `d = a === b`
    StrictEq(R, R, R) = 46,
    /// `d = a !== b`
    StrictNe(R, R, R) = 47,
    /// `d = a in b`
    In(R, R, R) = 48,
    /// `d = a instanceof b`
    InstanceOf(R, R, R) = 49,

    // -- jumps -------------------------------------------------------------------------------------------
    /// `pc = t`
    Jump(T) = 50,
    /// `pc = t`, backwards; the second operand is charged to the instruction budget first
    Loop(u16, T) = 51,
    /// `if a pc = t`
    JTrue(R, T) = 52,
    /// `if !a pc = t`
    JFalse(R, T) = 53,
    /// `if a is null or undefined pc = t`
    JNullish(R, T) = 54,
    /// `if a is neither null nor undefined pc = t`
    JNotNullish(R, T) = 55,
    /// `if a is undefined pc = t`
    JUndef(R, T) = 56,
    /// `if a is not undefined pc = t`
    JNotUndef(R, T) = 57,
    /// `if a < b pc = t`
    JLt(R, R, T) = 58,
    /// `if !(a < b) pc = t`
    JNotLt(R, R, T) = 59,
    /// `if a <= b pc = t`
    JLe(R, R, T) = 60,
    /// `if !(a <= b) pc = t`
    JNotLe(R, R, T) = 61,
    /// `if a > b pc = t`
    JGt(R, R, T) = 62,
    /// `if !(a > b) pc = t`
    JNotGt(R, R, T) = 63,
    /// `if a >= b pc = t`
    JGe(R, R, T) = 64,
    /// `if !(a >= b) pc = t`
    JNotGe(R, R, T) = 65,
    /// `if a === b pc = t`
    JSeq(R, R, T) = 66,
    /// `if a !== b pc = t`
    JSne(R, R, T) = 67,
    /// `if !(a < integer) pc = t`
    JNotLtInt(R, i16, T) = 68,
    /// `if a is the integer pc = t`; used on registers that the compiler owns
    JInt(R, i16, T) = 69,

    // -- variables ---------------------------------------------------------------------------------------
    /// `d = new cell holding a`
    NewCell(R, R) = 70,
    /// `d = new cell holding the "not yet initialised" marker`
    NewHoleCell(R) = 71,
    /// `d = the cell in a`
    GetCell(R, R) = 72,
    /// `the cell in a = b`
    SetCell(R, R) = 73,
    /// `d = the cell in a`, ReferenceError naming `k` if not initialised
    GetCellChecked(R, R, K) = 74,
    /// `the cell in a = b`, ReferenceError naming `k` if not initialised
    SetCellChecked(R, R, K) = 75,
    /// `d = captured variable number u16`
    GetCap(R, u16) = 76,
    /// `captured variable number u16 = a`
    SetCap(R, u16) = 77,
    /// `d = captured variable number u16`, ReferenceError naming `k` if not initialised
    GetCapChecked(R, u16, K) = 78,
    /// `captured variable number u16 = a`, ReferenceError naming `k` if not initialised
    SetCapChecked(R, u16, K) = 79,
    /// ReferenceError naming `k` if `a` is the "not yet initialised" marker
    CheckInit(R, K) = 80,
    /// TypeError: assignment to the constant named `k`
    ThrowConst(K) = 81,
    /// `d = global variable of site s`, ReferenceError when there is none
    GetGlobal(R, S) = 82,
    /// `global variable of site s = a`, ReferenceError when there is none
    SetGlobal(R, S) = 83,
    /// `d = global variable of site s, or undefined`, for `typeof x`
    GetGlobalOrUndef(R, S) = 84,
    /// declares the `var` of site s on the global object
    DeclareVar(S) = 85,
    /// declares the function `a` under the name of site s on the global object
    DeclareFunc(R, S) = 86,
    /// `d = the calling frame's function object`
    Callee(R) = 87,
    /// `d = new.target`
    NewTarget(R) = 88,
    /// ReferenceError if `this` (register a) is not yet bound by `super()`
    CheckThis(R) = 89,

    // -- objects -----------------------------------------------------------------------------------------
    /// `d = {}`
    NewObject(R) = 90,
    /// `d = []`, with room for u32 elements
    NewArray(R, u32) = 91,
    /// `d = a.(key of s)`
    GetProp(R, R, S) = 92,
    /// `a.(key of s) = b`
    SetProp(R, R, S) = 93,
    /// `d = a.(key of s)` and `register d+1 = a`: the start of a method call
    GetMethod(R, R, S) = 94,
    /// `d = a[b]`
    GetElem(R, R, R) = 95,
    /// `a[b] = c`
    SetElem(R, R, R) = 96,
    /// defines own data property: `a.(key of s) = b`, as a literal does
    InitProp(R, R, S) = 97,
    /// defines own data property `a[b] = c`, as a literal does
    InitElem(R, R, R) = 98,
    /// defines a method, getter or setter (third operand, see [`Member`]) `a[b] = function c`
    InitMember(R, R, R, Member) = 99,
    /// appends `b` to the array `a`
    ArrayPush(R, R) = 100,
    /// appends a hole to the array `a`
    ArrayHole(R) = 101,
    /// sets the prototype of the literal `a` to `b` if `b` is an object or null
    InitProto(R, R) = 102,
    /// `d = delete a[b]`
    Delete(R, R, R) = 103,
    /// `d = super[c]` in the method `a` with `this = b`
    GetSuper(R, R, R, R) = 104,
    /// `super[c] = d` in the method `a` with `this = b`: operands a, b, c, d
    SetSuper(R, R, R, R) = 105,
    /// `d = new private name described by k`
    NewPrivate(R, K) = 106,
    /// `d = a.#b` (b holds the private name)
    GetPrivate(R, R, R) = 107,
    /// `a.#b = c`
    SetPrivate(R, R, R) = 108,
    /// `d = #a in b`
    HasPrivate(R, R, R) = 109,
    /// defines the private member (see [`Member`]) `a.#b = c`; TypeError if it is there already
    InitPrivate(R, R, R, Member) = 110,
    /// `d = regular expression with pattern k; flags are constant k+1`
    NewRegExp(R, K) = 111,
    /// `d = template object u32 of the program`
    Template(R, u32) = 112,
    /// gives the function `a` the name `b` (a key), prefixed as [`Member`] says
    SetName(R, R, Member) = 113,
    /// `d = closure of function u32`
    Closure(R, u32) = 114,
    /// class from heritage a (the hole means none): `d = constructor (function u32)`, `d+1 = prototype`
    Class(R, R, u32) = 115,
    /// remembers that the constructor `a` runs initialiser `b` on every new object
    SetFields(R, R) = 116,
    /// marks function `a` as a method of home object `b`
    SetHome(R, R) = 117,
    /// throws TypeError if `a` cannot be destructured (null or undefined)
    CheckObject(R) = 118,

    /// `d = new object with the own enumerable properties of a, less the keys in the array b`
    CopyRest(R, R, R) = 119,

    // -- calls -------------------------------------------------------------------------------------------
    /// `d = a(this = a+1, arguments a+2 .. a+2+n)`: operands d, a, n
    Call(R, R, u8) = 120,
    /// `d = a(this = a+1, ...array in a+2)`
    CallSpread(R, R) = 121,
    /// `d = new a(arguments a+2 .. a+2+n)`; register a+1 is scratch
    New(R, R, u8) = 122,
    /// `d = new a(...array in a+2)`
    NewSpread(R, R) = 123,
    /// `d = super(arguments a+2 .. a+2+n)`: operands d, a (holds the constructor), n, b (holds new.target)
    SuperCall(R, R, u8, R) = 124,
    /// `d = super(...array in a+2)`: operands d, a (holds the constructor), b (holds new.target)
    SuperCallSpread(R, R, R) = 125,
    /// ReferenceError if `this` (in a) is bound already: `super()` was called twice
    CheckUnbound(R) = 126,
    /// runs the field initialiser of the class `a` on the object `b`
    InitFields(R, R) = 127,
    /// return a
    Ret(R) = 128,
    /// return undefined
    RetUndef = 129,
    /// throw a
    Throw(R) = 130,
    /// throw the engine error numbered u8 with message k
    ThrowNew(u8, K) = 131,
    /// `d = arguments object`
    Arguments(R) = 132,
    /// `d = array of the arguments from number u32 on`
    Rest(R, u32) = 133,
    /// `d = intrinsic u16 (a .. a+n)`: operands d, a, n, intrinsic
    Intrinsic(R, R, u8, u32) = 134,
    /// `d = prelude helper u32 (arguments a .. a+n)`: operands d, a, n
    CallHelper(R, R, u8, u32) = 135,

    // -- iteration ---------------------------------------------------------------------------------------
    /// `a, a+1 = iterator and its next method` of the iterable b
    GetIter(R, R) = 140,
    /// `d = next value` of the iterator in a, a+1, or `pc = t` when done
    IterNext(R, R, T) = 141,
    /// closes the iterator in a, a+1 after a normal or `return` completion
    IterClose(R) = 142,
    /// closes the iterator in a, a+1 after a throw: errors of `return` are swallowed
    IterAbort(R) = 143,
    /// `a, a+1 = for-in enumeration` of the object b
    ForIn(R, R) = 144,
    /// `d = next key` of the enumeration in a, a+1, or `pc = t` when done
    ForInNext(R, R, T) = 145,
    /// appends the values of the iterable b to the array a
    Spread(R, R) = 146,
    /// copies the own enumerable properties of b to a
    CopyProps(R, R) = 147,
    /// `a, a+1 = async iterator and its next method` of the iterable b
    GetAsyncIter(R, R) = 148,
    /// TypeError if `a` is not an object: an iterator result
    CheckIterResult(R) = 149,

    // -- suspension --------------------------------------------------------------------------------------
    /// the end of a generator's prologue: makes the generator object and returns it
    GeneratorStart(R) = 150,
    /// yields a; resumed with `d = value`, `b = 0 next, 1 throw, 2 return`: operands d, a, b
    Yield(R, R, R) = 151,
    /// `d = await a`
    Await(R, R) = 152,
    /// the start of an async function: makes its promise in d
    AsyncStart(R) = 153,
    /// acts on how a generator was resumed: register a = 1 throws b; = 2 jumps to t; = 0 goes on
    ResumeCheck(R, R, T) = 154,
    /// yields the iterator result in a as it is: operands as for `Yield`
    YieldResult(R, R, R) = 155,
    /// `a, a+1 = iterator and its next method` of the iterable b, never the array shortcut
    GetRealIter(R, R) = 156,
    /// does nothing; fills what was patched away
    Nop = 160,
    /// one step of declaring the global name of site s, or of checking that it may be (see [`Declare`])
    DeclareGlobal(Declare, S) = 161,
    /// initialises the lexical global of site s with a
    InitGlobal(R, S) = 162,
    /// `if a is the hole pc = t`: a helper had nothing to answer
    JHole(R, T) = 163,
    /// `pc = t` in another page of a long function; all other jumps stay in their page
    FarJump(T) = 164,
    /// `d = new record of u16 values`: the variables of a function that has more than registers
    NewRecord(R, u16) = 165,
    /// `d = value u16 of the record a`
    GetRecord(R, R, u16) = 166,
    /// `value u16 of the record a = b`: operands b, a
    SetRecord(R, R, u16) = 167,
    /// `d = whether there is a global of site s`, for an assignment whose value may make or remove it
    HasGlobal(R, S) = 168,
    /// `if a < b pc = t`, backwards; what the round costs is charged first
    LoopLt(R, R, T) = 169,
    /// `if a < integer pc = t`, backwards; likewise
    LoopLtInt(R, i16, T) = 170,
    /// `if a !== integer pc = t`
    JNotInt(R, i16, T) = 171,
}

const _: () = assert!(size_of::<Op>() == 8);

/// What a class or literal member is, for definitions and for function names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Member {
    /// A data property that enumerates.
    Field = 0,
    /// A method: does not enumerate in classes.
    Method = 1,
    /// A getter.
    Getter = 2,
    /// A setter.
    Setter = 3,
    /// A method of an object literal: enumerates.
    LiteralMethod = 4,
    /// A getter of an object literal.
    LiteralGetter = 5,
    /// A setter of an object literal.
    LiteralSetter = 6,
}

/// The steps of declaring a script's global names. Every check comes before the first declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Declare {
    /// SyntaxError if a `let`, `const` or `class` of this name is impossible.
    CheckLexical = 0,
    /// SyntaxError if a `var` or function of this name collides with a lexical one.
    CheckVar = 1,
    /// TypeError if the global object cannot take a function of this name.
    CheckFunction = 2,
    /// TypeError if the global object cannot take a `var` of this name.
    CheckRoom = 3,
    /// Declares a `let` or `class`, not yet initialised.
    Let = 4,
    /// Declares a `const`, not yet initialised.
    Const = 5,
}

/// Which error an instruction throws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ErrorKind {
    /// `Error`
    Error = 0,
    /// `TypeError`
    Type = 1,
    /// `ReferenceError`
    Reference = 2,
    /// `RangeError`
    Range = 3,
    /// `SyntaxError`
    Syntax = 4,
}
