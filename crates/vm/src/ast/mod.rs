//! The syntax tree: flat tables linked by ids.
//!
//! A [`Program`] owns every node of one script. Nodes are small `Copy` values in tables and refer to each other by
//! ids, so that dropping, copying and walking a tree needs no recursion and memory is linear in the source. Only the
//! parser makes programs, and it checks everything that can be checked before running: whoever walks a `Program`
//! may rely on each early error of the language having been refused.
//!
//! Names are resolved: each use of a name is a [`RefId`], whose [`Reference`] says which [`Binding`] it means, or
//! that it is global. `this`, `arguments`, `new.target` and the running function (for `super`) are bindings too,
//! so an arrow function captures them like any variable.
//!
//! How deep a walker can get is bounded by the parser's nesting limit, except down the *left spine* of binary,
//! logical, member and call expressions and along `else if`: walk those with a loop.

mod expr;
mod function;
mod ids;
mod scope;
mod stmt;
mod text;

pub use expr::{
    ArgsId, BinaryOp, Expr, Link, LogicalOp, Pattern, PatternElement, PatternProperty, Property, PropertyKey,
    PropertyKind, Regex, SuperCall, SuperMember, Template, TemplateChunk, UnaryOp, UpdateOp, UpdateResult,
};
pub use function::{
    Body, Class, ClassElement, ElementKind, Flavour, Function, FunctionKind, Held, Placement,
};
pub use ids::{
    Atom, BindingId, ClassId, ExprId, FunctionId, List, LoopId, PatternId, RefId, RegexId, ScopeId, Span,
    StmtId, TemplateId, TryId,
};
pub use scope::{Binding, BindingKind, Check, HoistedFunction, Reference, Scope, ScopeKind, Target};
pub use stmt::{Case, Catch, Declarator, DeclareKind, Loop, LoopHead, LoopTarget, Stmt, Try};
pub use text::{Text, Texts};

/// One parsed and resolved script.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Every identifier and literal text.
    pub texts: Texts,
    pub(crate) exprs: Vec<Expr>,
    pub(crate) expr_spans: Vec<Span>,
    pub(crate) stmts: Vec<Stmt>,
    pub(crate) stmt_spans: Vec<Span>,
    pub(crate) patterns: Vec<Pattern>,
    pub(crate) functions: Vec<Function>,
    pub(crate) classes: Vec<Class>,
    pub(crate) tries: Vec<Try>,
    pub(crate) loops: Vec<Loop>,
    pub(crate) regexes: Vec<Regex>,
    pub(crate) templates: Vec<Template>,
    pub(crate) references: Vec<Reference>,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) bindings: Vec<Binding>,
    pub(crate) supers: Vec<SuperMember>,
    pub(crate) super_calls: Vec<SuperCall>,
    pub(crate) args: Vec<List<ExprId>>,
    pub(crate) lists: Lists,
}

/// The tables that [`List`]s are runs of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lists {
    pub(crate) exprs: Vec<ExprId>,
    pub(crate) stmts: Vec<StmtId>,
    pub(crate) bindings: Vec<BindingId>,
    pub(crate) properties: Vec<Property>,
    pub(crate) pattern_elements: Vec<PatternElement>,
    pub(crate) pattern_properties: Vec<PatternProperty>,
    pub(crate) chunks: Vec<TemplateChunk>,
    pub(crate) declarators: Vec<Declarator>,
    pub(crate) cases: Vec<Case>,
    pub(crate) elements: Vec<ClassElement>,
    pub(crate) hoisted: Vec<HoistedFunction>,
}

impl Program {
    /// The script itself.
    pub const SCRIPT: FunctionId = FunctionId::from_index(0);

    /// An expression.
    #[must_use]
    pub fn expr(&self, id: ExprId) -> Expr {
        self.exprs[id.index()]
    }

    /// Where an expression is.
    #[must_use]
    pub fn expr_span(&self, id: ExprId) -> Span {
        self.expr_spans[id.index()]
    }

    /// The expression inside any number of parentheses.
    #[must_use]
    pub fn unwrap_parens(&self, mut id: ExprId) -> ExprId {
        while let Expr::Paren(inner) = self.expr(id) {
            id = inner;
        }
        id
    }

    /// A statement.
    #[must_use]
    pub fn stmt(&self, id: StmtId) -> Stmt {
        self.stmts[id.index()]
    }

    /// Where a statement is.
    #[must_use]
    pub fn stmt_span(&self, id: StmtId) -> Span {
        self.stmt_spans[id.index()]
    }

    /// A pattern.
    #[must_use]
    pub fn pattern(&self, id: PatternId) -> Pattern {
        self.patterns[id.index()]
    }

    /// A function.
    #[must_use]
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.index()]
    }

    /// All functions, the script first, outer ones before inner ones or not: in no promised order beside that.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// A class.
    #[must_use]
    pub fn class(&self, id: ClassId) -> &Class {
        &self.classes[id.index()]
    }

    /// A `try` statement.
    #[must_use]
    pub fn try_stmt(&self, id: TryId) -> Try {
        self.tries[id.index()]
    }

    /// A `for` statement.
    #[must_use]
    pub fn for_stmt(&self, id: LoopId) -> Loop {
        self.loops[id.index()]
    }

    /// A regular expression literal.
    #[must_use]
    pub fn regex(&self, id: RegexId) -> Regex {
        self.regexes[id.index()]
    }

    /// A template literal.
    #[must_use]
    pub fn template(&self, id: TemplateId) -> Template {
        self.templates[id.index()]
    }

    /// Where a name leads.
    #[must_use]
    pub fn reference(&self, id: RefId) -> &Reference {
        &self.references[id.index()]
    }

    /// Every use and declaration of a name that was read. A label leaves one that leads nowhere.
    #[must_use]
    pub fn references(&self) -> &[Reference] {
        &self.references
    }

    /// A scope.
    #[must_use]
    pub fn scope(&self, id: ScopeId) -> &Scope {
        &self.scopes[id.index()]
    }

    /// A binding.
    #[must_use]
    pub fn binding(&self, id: BindingId) -> &Binding {
        &self.bindings[id.index()]
    }

    /// The bindings of all scopes.
    #[must_use]
    pub fn bindings(&self) -> &[Binding] {
        &self.bindings
    }

    /// What [`Expr::SuperMember`] points to.
    #[must_use]
    pub fn super_member(&self, place: u32) -> SuperMember {
        self.supers[place as usize]
    }

    /// What [`Expr::SuperCall`] points to.
    #[must_use]
    pub fn super_call(&self, place: u32) -> SuperCall {
        self.super_calls[place as usize]
    }

    /// The arguments of a call, `new` or intrinsic.
    #[must_use]
    pub fn args(&self, id: ArgsId) -> &[ExprId] {
        self.list(self.args[id.0 as usize])
    }

    /// The entries of a list.
    #[must_use]
    pub fn list<T: Listed>(&self, list: List<T>) -> &[T] {
        &T::table(self)[list.range()]
    }

    /// The text of an atom.
    #[must_use]
    pub fn text(&self, atom: Atom) -> Text<'_> {
        self.texts.get(atom)
    }
}

/// What can stand in a [`List`]. Implemented by the node types only.
pub trait Listed: Sized + 'static {
    /// The table that lists of this type are runs of.
    #[doc(hidden)]
    fn table(program: &Program) -> &Vec<Self>;
    /// The same, for the parser.
    #[doc(hidden)]
    fn table_mut(program: &mut Program) -> &mut Vec<Self>;
}

macro_rules! listed {
    ($($ty:ident in $table:ident;)*) => {$(
        impl Listed for $ty {
            fn table(program: &Program) -> &Vec<Self> {
                &program.lists.$table
            }
            fn table_mut(program: &mut Program) -> &mut Vec<Self> {
                &mut program.lists.$table
            }
        }
    )*};
}

listed! {
    ExprId in exprs;
    StmtId in stmts;
    BindingId in bindings;
    Property in properties;
    PatternElement in pattern_elements;
    PatternProperty in pattern_properties;
    TemplateChunk in chunks;
    Declarator in declarators;
    Case in cases;
    ClassElement in elements;
    HoistedFunction in hoisted;
}
