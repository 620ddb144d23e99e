//! What the operands of each instruction are: one table that writing, reading and checking programs share.
//!
//! A new instruction takes a line here. The kinds of operands are the methods of [`Operands`]; what each promises is
//! said there.

use super::op::{Declare, Member, Op};
use super::pack::Unpacker;

/// Visits the operands of an instruction in order. A writer looks at them, a reader fills them in, a checker refuses.
pub(crate) trait Operands {
    /// Why it stops.
    type Stop;

    /// A register of the frame.
    fn reg(&mut self, r: &mut u8) -> Result<(), Self::Stop>;
    /// A register and the one after it.
    fn pair(&mut self, r: &mut u8) -> Result<(), Self::Stop>;
    /// The first of the registers that are laid out for a call: callee, `this`, and as many as [`Operands::arguments`]
    /// says.
    fn callee(&mut self, r: &mut u8) -> Result<(), Self::Stop>;
    /// Callee, `this`, and an array of arguments.
    fn spread(&mut self, r: &mut u8) -> Result<(), Self::Stop>;
    /// The first of as many registers as [`Operands::arguments`] says.
    fn first(&mut self, r: &mut u8) -> Result<(), Self::Stop>;
    /// How many arguments; comes after the register where they begin.
    fn arguments(&mut self, n: &mut u8) -> Result<(), Self::Stop>;
    /// An instruction of the same function.
    fn jump(&mut self, t: &mut u32) -> Result<(), Self::Stop>;
    /// A constant.
    fn constant(&mut self, k: &mut u32) -> Result<(), Self::Stop>;
    /// A constant and the one after it.
    fn constants(&mut self, k: &mut u32) -> Result<(), Self::Stop>;
    /// A property site.
    fn site(&mut self, s: &mut u32) -> Result<(), Self::Stop>;
    /// A function of the same program, to be made a closure of.
    fn function(&mut self, f: &mut u32) -> Result<(), Self::Stop>;
    /// A template object.
    fn template(&mut self, t: &mut u32) -> Result<(), Self::Stop>;
    /// A captured variable of the running closure.
    fn captured(&mut self, n: &mut u16) -> Result<(), Self::Stop>;
    /// A native that only the prelude may name.
    fn intrinsic(&mut self, n: &mut u32) -> Result<(), Self::Stop>;
    /// A prelude function.
    fn helper(&mut self, n: &mut u32) -> Result<(), Self::Stop>;
    /// Which error.
    fn error(&mut self, kind: &mut u8) -> Result<(), Self::Stop>;
    /// What a back edge costs, or a place in a record: any number will do.
    fn cost(&mut self, n: &mut u16) -> Result<(), Self::Stop>;
    /// A number that may be anything.
    fn number(&mut self, n: &mut u32) -> Result<(), Self::Stop>;
    /// A number that may be anything.
    fn int(&mut self, n: &mut i32) -> Result<(), Self::Stop>;
    /// A number that may be anything.
    fn short(&mut self, n: &mut i16) -> Result<(), Self::Stop>;
    /// What a member is.
    fn member(&mut self, m: &mut Member) -> Result<(), Self::Stop>;
    /// A step of declaring a global.
    fn declare(&mut self, d: &mut Declare) -> Result<(), Self::Stop>;
}

macro_rules! blank {
    (member) => {
        Member::Field
    };
    (declare) => {
        Declare::CheckLexical
    };
    ($kind:ident) => {
        0
    };
}

macro_rules! table {
    ($($name:ident($($field:ident $kind:ident),+) = $number:literal;)* --- $($unit:ident = $plain:literal;)*) => {
        impl Op {
            /// The number of the instruction.
            pub(crate) fn number(self) -> u8 {
                match self { $(Op::$name(..) => $number,)* $(Op::$unit => $plain),* }
            }

            /// The instruction with this number, its operands still blank.
            pub(crate) fn blank(number: u8) -> Option<Op> {
                match number {
                    $($number => Some(Op::$name($(blank!($kind)),+)),)*
                    $($plain => Some(Op::$unit),)*
                    _ => None,
                }
            }

            /// Shows the operands to a visitor, in order.
            pub(crate) fn operands<V: Operands>(&mut self, visitor: &mut V) -> Result<(), V::Stop> {
                match self {
                    $(Op::$name($($field),+) => { $(visitor.$kind($field)?;)+ })*
                    $(Op::$unit => {})*
                }
                Ok(())
            }

            /// What [`Op::pack`] made. Also runs in the compiler, which is why it is not a visitor.
            pub(crate) const fn unpack(bytes: [u8; 8]) -> Option<Op> {
                let mut from = Unpacker { bytes, at: 1 };
                match bytes[0] {
                    $($number => Some(Op::$name($(from.$kind()),+)),)*
                    $($plain => Some(Op::$unit),)*
                    _ => None,
                }
            }
        }

        /// The table as text: part of what makes one engine different from another.
        pub(crate) const LAYOUT: &str = concat!(
            $(stringify!($name $number $($kind)+), ";",)* $(stringify!($unit $plain), ";",)*
        );
    };
}

table! {
    LoadK(a reg, b constant) = 0;
    LoadInt(a reg, b int) = 1;
    LoadUndef(a reg) = 2;
    LoadNull(a reg) = 3;
    LoadTrue(a reg) = 4;
    LoadFalse(a reg) = 5;
    LoadHole(a reg) = 6;
    Move(a reg, b reg) = 7;
    Add(a reg, b reg, c reg) = 10;
    Sub(a reg, b reg, c reg) = 11;
    Mul(a reg, b reg, c reg) = 12;
    Div(a reg, b reg, c reg) = 13;
    Mod(a reg, b reg, c reg) = 14;
    Exp(a reg, b reg, c reg) = 15;
    BitAnd(a reg, b reg, c reg) = 16;
    BitOr(a reg, b reg, c reg) = 17;
    BitXor(a reg, b reg, c reg) = 18;
    Shl(a reg, b reg, c reg) = 19;
    Shr(a reg, b reg, c reg) = 20;
    UShr(a reg, b reg, c reg) = 21;
    AddInt(a reg, b reg, c int) = 22;
    SubInt(a reg, b reg, c int) = 23;
    MulInt(a reg, b reg, c int) = 24;
    ModInt(a reg, b reg, c int) = 25;
    BitAndInt(a reg, b reg, c int) = 26;
    AddK(a reg, b reg, c constant) = 27;
    Neg(a reg, b reg) = 30;
    ToNumber(a reg, b reg) = 31;
    ToNumeric(a reg, b reg) = 32;
    BitNot(a reg, b reg) = 33;
    Not(a reg, b reg) = 34;
    TypeOf(a reg, b reg) = 35;
    Inc(a reg, b reg) = 36;
    Dec(a reg, b reg) = 37;
    ToStr(a reg, b reg) = 38;
    ToKey(a reg, b reg) = 39;
    Lt(a reg, b reg, c reg) = 40;
    Le(a reg, b reg, c reg) = 41;
    Gt(a reg, b reg, c reg) = 42;
    Ge(a reg, b reg, c reg) = 43;
    Eq(a reg, b reg, c reg) = 44;
    Ne(a reg, b reg, c reg) = 45;
    StrictEq(a reg, b reg, c reg) = 46;
    StrictNe(a reg, b reg, c reg) = 47;
    In(a reg, b reg, c reg) = 48;
    InstanceOf(a reg, b reg, c reg) = 49;
    Jump(a jump) = 50;
    Loop(a cost, b jump) = 51;
    JTrue(a reg, b jump) = 52;
    JFalse(a reg, b jump) = 53;
    JNullish(a reg, b jump) = 54;
    JNotNullish(a reg, b jump) = 55;
    JUndef(a reg, b jump) = 56;
    JNotUndef(a reg, b jump) = 57;
    JLt(a reg, b reg, c jump) = 58;
    JNotLt(a reg, b reg, c jump) = 59;
    JLe(a reg, b reg, c jump) = 60;
    JNotLe(a reg, b reg, c jump) = 61;
    JGt(a reg, b reg, c jump) = 62;
    JNotGt(a reg, b reg, c jump) = 63;
    JGe(a reg, b reg, c jump) = 64;
    JNotGe(a reg, b reg, c jump) = 65;
    JSeq(a reg, b reg, c jump) = 66;
    JSne(a reg, b reg, c jump) = 67;
    JNotLtInt(a reg, b short, c jump) = 68;
    JInt(a reg, b short, c jump) = 69;
    NewCell(a reg, b reg) = 70;
    NewHoleCell(a reg) = 71;
    GetCell(a reg, b reg) = 72;
    SetCell(a reg, b reg) = 73;
    GetCellChecked(a reg, b reg, c constant) = 74;
    SetCellChecked(a reg, b reg, c constant) = 75;
    GetCap(a reg, b captured) = 76;
    SetCap(a reg, b captured) = 77;
    GetCapChecked(a reg, b captured, c constant) = 78;
    SetCapChecked(a reg, b captured, c constant) = 79;
    CheckInit(a reg, b constant) = 80;
    ThrowConst(a constant) = 81;
    GetGlobal(a reg, b site) = 82;
    SetGlobal(a reg, b site) = 83;
    GetGlobalOrUndef(a reg, b site) = 84;
    DeclareVar(a site) = 85;
    DeclareFunc(a reg, b site) = 86;
    Callee(a reg) = 87;
    NewTarget(a reg) = 88;
    CheckThis(a reg) = 89;
    NewObject(a reg) = 90;
    NewArray(a reg, b number) = 91;
    GetProp(a reg, b reg, c site) = 92;
    SetProp(a reg, b reg, c site) = 93;
    GetMethod(a pair, b reg, c site) = 94;
    GetElem(a reg, b reg, c reg) = 95;
    SetElem(a reg, b reg, c reg) = 96;
    InitProp(a reg, b reg, c site) = 97;
    InitElem(a reg, b reg, c reg) = 98;
    InitMember(a reg, b reg, c reg, e member) = 99;
    ArrayPush(a reg, b reg) = 100;
    ArrayHole(a reg) = 101;
    InitProto(a reg, b reg) = 102;
    Delete(a reg, b reg, c reg) = 103;
    GetSuper(a reg, b reg, c reg, e reg) = 104;
    SetSuper(a reg, b reg, c reg, e reg) = 105;
    NewPrivate(a reg, b constant) = 106;
    GetPrivate(a reg, b reg, c reg) = 107;
    SetPrivate(a reg, b reg, c reg) = 108;
    HasPrivate(a reg, b reg, c reg) = 109;
    InitPrivate(a reg, b reg, c reg, e member) = 110;
    NewRegExp(a reg, b constants) = 111;
    Template(a reg, b template) = 112;
    SetName(a reg, b reg, c member) = 113;
    Closure(a reg, b function) = 114;
    Class(a pair, b pair, c function) = 115;
    SetFields(a reg, b reg) = 116;
    SetHome(a reg, b reg) = 117;
    CheckObject(a reg) = 118;
    CopyRest(a reg, b reg, c reg) = 119;
    Call(a reg, b callee, c arguments) = 120;
    CallSpread(a reg, b spread) = 121;
    New(a reg, b callee, c arguments) = 122;
    NewSpread(a reg, b spread) = 123;
    SuperCall(a reg, b callee, c arguments, e reg) = 124;
    SuperCallSpread(a reg, b spread, c reg) = 125;
    CheckUnbound(a reg) = 126;
    InitFields(a reg, b reg) = 127;
    Ret(a reg) = 128;
    Throw(a reg) = 130;
    ThrowNew(a error, b constant) = 131;
    Arguments(a reg) = 132;
    Rest(a reg, b number) = 133;
    Intrinsic(a reg, b first, c arguments, e intrinsic) = 134;
    CallHelper(a reg, b first, c arguments, e helper) = 135;
    GetIter(a pair, b reg) = 140;
    IterNext(a reg, b pair, c jump) = 141;
    IterClose(a pair) = 142;
    IterAbort(a pair) = 143;
    ForIn(a pair, b reg) = 144;
    ForInNext(a reg, b pair, c jump) = 145;
    Spread(a reg, b reg) = 146;
    CopyProps(a reg, b reg) = 147;
    GetAsyncIter(a pair, b reg) = 148;
    CheckIterResult(a reg) = 149;
    GeneratorStart(a reg) = 150;
    Yield(a reg, b reg, c reg) = 151;
    Await(a reg, b reg) = 152;
    AsyncStart(a reg) = 153;
    ResumeCheck(a reg, b reg, c jump) = 154;
    YieldResult(a reg, b reg, c reg) = 155;
    GetRealIter(a pair, b reg) = 156;
    DeclareGlobal(a declare, b site) = 161;
    InitGlobal(a reg, b site) = 162;
    JHole(a reg, b jump) = 163;
    FarJump(a jump) = 164;
    NewRecord(a reg, b cost) = 165;
    GetRecord(a reg, b reg, c cost) = 166;
    SetRecord(a reg, b reg, c cost) = 167;
    HasGlobal(a reg, b site) = 168;
    LoopLt(a reg, b reg, c jump) = 169;
    LoopLtInt(a reg, b short, c jump) = 170;
    JNotInt(a reg, b short, c jump) = 171;
    ---
    RetUndef = 129;
    Nop = 160;
}

impl Member {
    pub(crate) const ALL: &'static [Member] = &[
        Member::Field,
        Member::Method,
        Member::Getter,
        Member::Setter,
        Member::LiteralMethod,
        Member::LiteralGetter,
        Member::LiteralSetter,
    ];
}

impl Declare {
    pub(crate) const ALL: &'static [Declare] = &[
        Declare::CheckLexical,
        Declare::CheckVar,
        Declare::CheckFunction,
        Declare::CheckRoom,
        Declare::Let,
        Declare::Const,
    ];
}
