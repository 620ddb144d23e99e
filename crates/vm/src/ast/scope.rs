//! What the resolver found out: scopes, bindings, and where each name leads.

use super::{Atom, BindingId, FunctionId, List, ScopeId, Span};

/// A use (or declaration) of a name, and where it leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The name; private names start with `#`.
    pub name: Atom,
    /// What it means there.
    pub target: Target,
    /// Whether reading or assigning must check that the binding is initialised.
    pub check: Check,
    /// Where it is.
    pub span: Span,
}

/// Where a name leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A binding of the same function. If [`Binding::captured`] it lives in a cell, else in a register.
    Local(BindingId),
    /// Entry `slot` of the function's captures: a cell.
    Captured {
        /// Index into [`super::Function::captures`].
        slot: u32,
        /// The binding at that index.
        binding: BindingId,
    },
    /// Nothing in this program binds it (or the script's own bindings are shared globals): looked up by name.
    Global,
}

/// Whether a use may come before the binding is initialised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Proved initialised, or of a kind that always is.
    Never,
    /// May run too early: throw a ReferenceError then.
    Initialised,
}

/// A scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// What made it.
    pub kind: ScopeKind,
    /// The scope around it.
    pub parent: Option<ScopeId>,
    /// The function whose frame holds its bindings.
    pub function: FunctionId,
    /// Its own names, in order of declaration. A scope without any costs nothing.
    pub bindings: List<BindingId>,
    /// Function declarations to instantiate on entry, in order (the last of two with the same name wins).
    pub functions: List<HoistedFunction>,
    /// Whether an inner function uses one of its bindings.
    pub has_captured: bool,
}

/// A function declaration, hoisted to the start of its scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoistedFunction {
    /// The name that receives it.
    pub binding: BindingId,
    /// The function.
    pub function: FunctionId,
}

/// What made a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeKind {
    /// The script's top level.
    Script,
    /// A function's parameters, and its body unless that has a scope of its own.
    Function,
    /// A function's body beside a parameter list with expressions.
    Body,
    /// A block.
    Block,
    /// The head of a `for`.
    Loop,
    /// A `switch`.
    Switch,
    /// A `catch` parameter.
    Catch,
    /// A class.
    Class,
    /// A `static {}` block: holds `var`s.
    StaticBlock,
}

/// A declared name, or an implicit one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The name; for implicit kinds what one would write in the source.
    pub name: Atom,
    /// How it came to be.
    pub kind: BindingKind,
    /// Where it lives.
    pub scope: ScopeId,
    /// Whether an inner function uses it: then it lives in a cell.
    pub captured: bool,
    /// Whether some use must check: if not, no "uninitialised" mark need be written.
    pub needs_check: bool,
    /// Whether anything assigns to it beside its declaration.
    pub reassigned: bool,
    /// A body-scope `var` with the name of a parameter starts with that parameter's value.
    pub copies: Option<BindingId>,
    /// Where it is declared.
    pub span: Span,
}

/// How a binding came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindingKind {
    /// `var`
    Var,
    /// `let`
    Let,
    /// `const`
    Const,
    /// `class`, in the enclosing scope.
    Class,
    /// A function declaration.
    Function,
    /// A parameter.
    Param,
    /// A `catch` parameter.
    Catch,
    /// A function expression's own name: assignment throws a TypeError.
    SelfName,
    /// A class's own name inside it: assignment throws a TypeError.
    ClassName,
    /// A private name: holds a fresh private key for each evaluation of the class.
    Private,
    /// A computed field key or private method that waits for the initialiser (see [`super::Held`]).
    Held,
    /// `this`
    This,
    /// `arguments`
    Arguments,
    /// `new.target`
    NewTarget,
    /// The running function, for `super`.
    Callee,
}
