//! Functions and classes.

use super::{
    Atom, BindingId, ClassId, ExprId, FunctionId, List, PatternElement, PatternId, PropertyKey, RefId,
    ScopeId, Span, StmtId,
};

/// A function of any kind. The script itself is function 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// The declared name; inferred names are the compiler's business.
    pub name: Option<Atom>,
    /// What it is.
    pub kind: FunctionKind,
    /// Plain, async, generator or both.
    pub flavour: Flavour,
    /// The parameters before the rest.
    pub params: List<PatternElement>,
    /// `...rest`
    pub rest: Option<PatternId>,
    /// Whether every parameter is a plain name without default (and there is no rest).
    pub simple_params: bool,
    /// The `length` property: parameters before the first default.
    pub length: u32,
    /// What runs.
    pub body: Body,
    /// Parameters, `arguments`, `this` and so on; without parameter expressions also everything the body declares.
    pub scope: ScopeId,
    /// The body's `var`s and lexical names: the same as `scope` unless a parameter has an expression.
    pub body_scope: ScopeId,
    /// A function expression's own name, if used inside; holds the callee, assignment throws.
    pub self_name: Option<BindingId>,
    /// Bindings of enclosing functions that this one (or a function inside it) uses, in the order of first use:
    /// what a closure copies. For an entry that the enclosing function itself only captured, look it up there.
    pub captures: List<BindingId>,
    /// `this`, if used here or by an arrow inside. Absent in arrows: there it is an ordinary capture.
    pub this: Option<BindingId>,
    /// `arguments`, likewise.
    pub arguments: Option<BindingId>,
    /// `new.target`, likewise.
    pub new_target: Option<BindingId>,
    /// The function object itself, for `super`, likewise.
    pub callee: Option<BindingId>,
    /// The function around this one; nothing for the script.
    pub parent: Option<FunctionId>,
    /// The whole text, as `toString` shows it.
    pub span: Span,
}

/// What a function is, beyond its flavour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    /// The script itself: async if it awaits at top level.
    Script,
    /// `function`, as declaration or expression: the only kind with `new` and `prototype` beside constructors.
    Ordinary,
    /// `=>`
    Arrow,
    /// A method of an object or class.
    Method,
    /// `get x() {}`
    Getter,
    /// `set x(v) {}`
    Setter,
    /// The constructor of a class without `extends`.
    BaseConstructor,
    /// The constructor of a class with `extends`: `this` is unset until `super()` returns.
    DerivedConstructor,
    /// Runs a class's instance fields with the new object as `this`. Body is [`Body::Fields`].
    InstanceFields,
    /// Runs a class's static fields and static blocks with the class as `this`. Body is [`Body::Fields`].
    StaticFields,
}

/// How a function returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Flavour {
    Plain,
    Generator,
    Async,
    AsyncGenerator,
}

/// What a function runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// `{…}`
    Statements(List<StmtId>),
    /// An arrow's `=> value`
    Expr(ExprId),
    /// The elements of this class with [`ElementKind::Field`] or [`ElementKind::StaticBlock`] whose placement
    /// matches the function's kind, in order.
    Fields(ClassId),
}

/// A class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// The declared name.
    pub name: Option<Atom>,
    /// Holds the inner name, the private names and the computed field keys, around the heritage and all elements.
    pub scope: ScopeId,
    /// The inner name, if used inside; initialised after the methods are defined and before static fields run.
    pub inner_name: Option<BindingId>,
    /// `extends`
    pub heritage: Option<ExprId>,
    /// Nothing: the default constructor.
    pub constructor: Option<FunctionId>,
    /// Everything but the constructor, in order.
    pub elements: List<ClassElement>,
    /// Present if there is an instance field, or a private method or accessor of instances (which it installs first).
    pub instance_fields: Option<FunctionId>,
    /// Present if there is a static field or static block.
    pub static_fields: Option<FunctionId>,
    /// The whole text.
    pub span: Span,
}

/// One element of a class body.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassElement {
    /// What it is.
    pub kind: ElementKind,
    /// Static or not.
    pub placement: Placement,
    /// Under which key; for a static block it is meaningless (an empty name). A private name resolves where it is
    /// used: for fields and for private methods of instances in the initialiser, else in the function around.
    pub key: PropertyKey,
    /// Where a computed field key waits between the class's definition and the field's initialisation. A private
    /// method's or accessor's function waits in the same way for the instances (not so if it is static).
    pub held: Option<Held>,
}

/// A hidden binding of the class scope and its use from the initialiser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Written when the class is defined (resolves in the function around the class).
    pub store: RefId,
    /// Read by the initialiser (resolves in `instance_fields` or `static_fields`).
    pub load: RefId,
}

/// What a class element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementKind {
    /// `key() {}`
    Method(FunctionId),
    /// `get key() {}`
    Getter(FunctionId),
    /// `set key(v) {}`
    Setter(FunctionId),
    /// `key = value;` (the value is evaluated inside the initialiser function)
    Field(Option<ExprId>),
    /// `static {…}`: runs inside the initialiser; its `var`s live in this scope.
    StaticBlock {
        /// The block's names.
        scope: ScopeId,
        /// In order.
        body: List<StmtId>,
    },
}

/// Where a class element lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Placement {
    Instance,
    Static,
}
