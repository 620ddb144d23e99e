//! Expressions, patterns, and the operators between them.

use super::{Atom, ClassId, ExprId, FunctionId, List, PatternId, RefId, RegexId, TemplateId};

/// An expression. Sixteen bytes, linked by ids.
///
/// The left spine of `Binary`, `Logical`, `Member`, `Index`, `PrivateMember`, `Call` and `TaggedTemplate` may be
/// as long as the source allows (60,000 terms of a sum): walk it with a loop. Every other way down is bounded by
/// the parser's nesting limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expr {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A numeric literal.
    Number(f64),
    /// A BigInt literal: its digits with the prefix (`0x`, `0o`, `0b`, in lower case) and without separators and `n`.
    BigInt(Atom),
    /// A string literal.
    String(Atom),
    /// A regular expression literal.
    Regex(RegexId),
    /// A template literal; its substitutions are in the template.
    Template(TemplateId),
    /// `tag` followed by a template.
    TaggedTemplate {
        /// The function expression (a member expression gives the call its `this`).
        tag: ExprId,
        /// The chunks and substitutions.
        template: TemplateId,
    },
    /// A name used as a value.
    Ident(RefId),
    /// `this`
    This(RefId),
    /// `new.target`
    NewTarget(RefId),
    /// `[a, , ...b]`: elements may be [`Expr::Hole`] and [`Expr::Spread`].
    Array(List<ExprId>),
    /// A missing array element; nowhere else.
    Hole,
    /// `...x` in an array or in arguments; nowhere else.
    Spread(ExprId),
    /// `{…}`
    Object(List<Property>),
    /// A function expression, arrow or async arrow.
    Function(FunctionId),
    /// A class expression.
    Class(ClassId),
    /// `(x)`. Kept because it is not transparent: it ends an optional chain, and `(f) = function(){}` names nothing.
    Paren(ExprId),
    /// A prefix operator that only reads its operand.
    Unary {
        /// Which.
        op: UnaryOp,
        /// What to.
        operand: ExprId,
    },
    /// `delete x.y` or `delete` of any other expression (never of a plain name: always strict).
    Delete(ExprId),
    /// `++x`, `x--`, …
    Update {
        /// Add or subtract one.
        op: UpdateOp,
        /// Which value the expression has.
        result: UpdateResult,
        /// An `Ident`, `Member`, `Index`, `PrivateMember` or `SuperMember`, perhaps in `Paren`.
        target: ExprId,
    },
    /// Two operands, both always evaluated.
    Binary {
        /// Which.
        op: BinaryOp,
        /// May be a long chain: see the type's comment.
        left: ExprId,
        /// Bounded.
        right: ExprId,
    },
    /// `#name in object`
    PrivateIn {
        /// The private name.
        name: RefId,
        /// Where it is looked for.
        object: ExprId,
    },
    /// `&&`, `||`, `??`
    Logical {
        /// Which.
        op: LogicalOp,
        /// May be a long chain: see the type's comment.
        left: ExprId,
        /// Bounded.
        right: ExprId,
    },
    /// `test ? yes : no`
    Conditional {
        /// Decides.
        test: ExprId,
        /// When true.
        yes: ExprId,
        /// When false.
        no: ExprId,
    },
    /// `target = value`
    Assign {
        /// A name, a member or a destructuring pattern.
        target: PatternId,
        /// The value.
        value: ExprId,
    },
    /// `target += value` and the like.
    AssignOp {
        /// Which.
        op: BinaryOp,
        /// As for [`Expr::Update`].
        target: ExprId,
        /// The right operand.
        value: ExprId,
    },
    /// `target &&= value` and the like.
    AssignLogical {
        /// Which.
        op: LogicalOp,
        /// As for [`Expr::Update`].
        target: ExprId,
        /// The value if it comes to assigning.
        value: ExprId,
    },
    /// `a, b, c`: at least two.
    Sequence(List<ExprId>),
    /// `object.name`
    Member {
        /// Whether it was `?.`
        link: Link,
        /// May be a long chain.
        object: ExprId,
        /// The property.
        name: Atom,
    },
    /// `object[index]`
    Index {
        /// Whether it was `?.`
        link: Link,
        /// May be a long chain.
        object: ExprId,
        /// The key.
        index: ExprId,
    },
    /// `object.#name`
    PrivateMember {
        /// Whether it was `?.`
        link: Link,
        /// May be a long chain.
        object: ExprId,
        /// The private name.
        name: RefId,
    },
    /// `super.name` or `super[key]`: see [`SuperMember`], the entry at this place of [`super::Program::super_member`].
    SuperMember(u32),
    /// `callee(args)`. A member as callee gives the call its `this`.
    Call {
        /// Whether it was `?.`
        link: Link,
        /// May be a long chain.
        callee: ExprId,
        /// May hold [`Expr::Spread`]. The list is at this place of [`super::Program::args`].
        args: ArgsId,
    },
    /// `super(args)`: see [`SuperCall`] at this place of [`super::Program::super_call`].
    SuperCall(u32),
    /// A whole optional chain: where `?.` inside (down the left spine, to the next `Paren` or `OptionalChain`)
    /// finds null or undefined, this expression is undefined.
    OptionalChain(ExprId),
    /// `new callee(args)`
    New {
        /// The constructor.
        callee: ExprId,
        /// May hold [`Expr::Spread`].
        args: ArgsId,
    },
    /// `await x`
    Await(ExprId),
    /// `yield x`
    Yield(Option<ExprId>),
    /// `yield* x`
    YieldStar(ExprId),
    /// `%Name(args)`, in prelude source only.
    Intrinsic {
        /// The name without `%`.
        name: Atom,
        /// May hold [`Expr::Spread`].
        args: ArgsId,
    },
}

/// Arguments of a call: a list of expressions, one id (see [`super::Program::args`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgsId(pub(crate) u32);

/// What `super.x` needs: the function whose home object is asked, and `this`. Both resolve through arrows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SuperMember {
    /// The method itself; its home object's prototype is where the lookup starts.
    pub callee: RefId,
    /// The receiver.
    pub this: RefId,
    /// `Name`, `Number` or `Computed`.
    pub key: PropertyKey,
}

/// What `super(…)` needs. The refs resolve through arrows to the constructor's own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SuperCall {
    /// The constructor itself: its prototype is the parent, its fields are initialised afterwards.
    pub callee: RefId,
    /// Passed on to the parent.
    pub new_target: RefId,
    /// Bound by the call.
    pub this: RefId,
    /// May hold [`Expr::Spread`].
    pub args: List<ExprId>,
}

/// How a member or call hangs on what is to its left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// `.`
    Plain,
    /// `?.`
    Optional,
}

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum UnaryOp {
    Minus,
    Plus,
    Not,
    BitNot,
    TypeOf,
    Void,
}

/// `++` or `--`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum UpdateOp {
    Increment,
    Decrement,
}

/// What an update expression's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateResult {
    /// `++x`: the new value.
    New,
    /// `x++`: the old value, as a number.
    Old,
}

/// Operators with two operands, both evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Exp,
    ShiftLeft,
    ShiftRight,
    ShiftRightUnsigned,
    BitAnd,
    BitOr,
    BitXor,
    Equal,
    NotEqual,
    StrictEqual,
    StrictNotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
    InstanceOf,
}

/// Operators that may not evaluate their right operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum LogicalOp {
    And,
    Or,
    Nullish,
}

/// One entry of an object literal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Property {
    /// What it does.
    pub kind: PropertyKind,
    /// Under which key; for a spread it is meaningless (`Computed` of the value).
    pub key: PropertyKey,
    /// The value, the function, or what is spread.
    pub value: ExprId,
}

/// What an entry of an object literal does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropertyKind {
    /// `key: value`
    Value,
    /// `key` alone; the value is the name's.
    Shorthand,
    /// `__proto__: value`, not computed and not shorthand: sets the prototype if the value is an object or null.
    Proto,
    /// `key() {}` and its async and generator forms.
    Method,
    /// `get key() {}`
    Getter,
    /// `set key(v) {}`
    Setter,
    /// `...value`
    Spread,
}

/// A key of an object literal, class element, pattern or `super` property.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PropertyKey {
    /// An identifier, a string, or an integer below 2³² in its decimal form.
    Name(Atom),
    /// Any other number: the key is its ToString.
    Number(f64),
    /// `[expression]`
    Computed(ExprId),
    /// `#name`, in classes only.
    Private(RefId),
}

/// Where a value goes: a declaration's left side, a parameter, or an assignment's target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// A name. In a declaration the ref resolves to the declared binding.
    Name(RefId),
    /// `(name)` as an assignment target: the same, but gives an anonymous function no name.
    ParenName(RefId),
    /// A member expression (in assignments only), without `Paren`.
    Member(ExprId),
    /// `[a, , b = 1, ...c]`
    Array {
        /// The elements before the rest.
        elements: List<PatternElement>,
        /// `...rest`
        rest: Option<PatternId>,
    },
    /// `{a, b: c = 1, ...d}`
    Object {
        /// The properties before the rest.
        properties: List<PatternProperty>,
        /// `...rest`
        rest: Option<PatternId>,
    },
}

/// One element of an array pattern, or one parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PatternElement {
    /// Nothing for a hole.
    pub target: Option<PatternId>,
    /// Used when the value is undefined.
    pub default: Option<ExprId>,
}

/// One property of an object pattern.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PatternProperty {
    /// Which property is read.
    pub key: PropertyKey,
    /// Where it goes.
    pub target: PatternId,
    /// Used when the value is undefined.
    pub default: Option<ExprId>,
}

/// A regular expression literal, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Regex {
    /// Between the slashes.
    pub pattern: Atom,
    /// After them: each of `dgimsuvy` at most once, not both `u` and `v`.
    pub flags: Atom,
}

/// A template literal: `chunks.len() == substitutions.len() + 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template {
    /// The literal parts.
    pub chunks: List<TemplateChunk>,
    /// What stands between them.
    pub substitutions: List<ExprId>,
}

/// A literal part of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemplateChunk {
    /// With escapes replaced; nothing if an escape is malformed (allowed in tagged templates only).
    pub cooked: Option<Atom>,
    /// As written, with line ends as `\n`.
    pub raw: Atom,
}

const _: () = assert!(size_of::<Expr>() <= 16, "expressions are stored by the million");
