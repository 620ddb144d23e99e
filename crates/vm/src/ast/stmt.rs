//! Statements.

use super::{Atom, ClassId, ExprId, FunctionId, List, LoopId, PatternId, RefId, ScopeId, StmtId, TryId};

/// A statement. The `otherwise` chain of `else if` may be as long as the source allows: walk it with a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stmt {
    /// `;`
    Empty,
    /// `debugger;`
    Debugger,
    /// An expression; the value of the last one is the script's result.
    Expr(ExprId),
    /// `var`, `let` or `const`.
    Declare {
        /// Which.
        kind: DeclareKind,
        /// At least one.
        declarators: List<Declarator>,
    },
    /// A function declaration. It does nothing in its place: see [`super::Scope::functions`].
    Function(FunctionId),
    /// A class declaration; the ref is the outer name that receives it.
    Class {
        /// The class.
        class: ClassId,
        /// The name in the enclosing scope.
        binding: RefId,
    },
    /// `{…}`
    Block {
        /// Its own names.
        scope: ScopeId,
        /// In order.
        body: List<StmtId>,
    },
    /// `if`
    If {
        /// Decides.
        test: ExprId,
        /// When true.
        then: StmtId,
        /// When false; may be a long chain.
        otherwise: Option<StmtId>,
    },
    /// `for(;;)`, `for…in`, `for…of`
    For(LoopId),
    /// `while`
    While {
        /// Before each turn.
        test: ExprId,
        /// A turn.
        body: StmtId,
    },
    /// `do … while`
    DoWhile {
        /// A turn.
        body: StmtId,
        /// After each turn.
        test: ExprId,
    },
    /// `switch`
    Switch {
        /// Compared with `===`; evaluated outside the scope.
        subject: ExprId,
        /// One scope for all cases.
        scope: ScopeId,
        /// In order.
        cases: List<Case>,
    },
    /// `label: body`; several labels nest.
    Labelled {
        /// The label.
        label: Atom,
        /// What it names.
        body: StmtId,
    },
    /// `break` to a label or out of the innermost loop or switch. The target is known to exist.
    Break(Option<Atom>),
    /// `continue` of a labelled or the innermost loop. The target is known to exist.
    Continue(Option<Atom>),
    /// `return`
    Return(Option<ExprId>),
    /// `throw`
    Throw(ExprId),
    /// `try`
    Try(TryId),
}

/// Which kind of declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum DeclareKind {
    Var,
    Let,
    Const,
}

/// One `target = value` of a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declarator {
    /// What is declared.
    pub target: PatternId,
    /// A `let` without a value starts as undefined; a `var` without one keeps what it had.
    pub value: Option<ExprId>,
}

/// One `case` or `default` of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Nothing for `default`.
    pub test: Option<ExprId>,
    /// Runs on into the next case unless it leaves.
    pub body: List<StmtId>,
}

/// A `try` statement: at least one of `handler` and `finalizer` is there. Blocks are [`Stmt::Block`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Try {
    /// What is tried.
    pub block: StmtId,
    /// `catch`
    pub handler: Option<Catch>,
    /// `finally`
    pub finalizer: Option<StmtId>,
}

/// A `catch` clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Catch {
    /// Holds the parameter's names; the body is a block with a scope inside this one.
    pub scope: ScopeId,
    /// What receives the thrown value.
    pub param: Option<PatternId>,
    /// The block.
    pub body: StmtId,
}

/// A `for` statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// What the head says.
    pub head: LoopHead,
    /// Holds the names that the head declares with `let` or `const`. A new copy of them is needed for each turn
    /// only if [`super::Scope::has_captured`].
    pub scope: ScopeId,
    /// A turn.
    pub body: StmtId,
}

/// The three kinds of `for`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopHead {
    /// `for (init; test; update)`
    Classic {
        /// [`Stmt::Declare`] or [`Stmt::Expr`].
        init: Option<StmtId>,
        /// Before each turn.
        test: Option<ExprId>,
        /// After each turn.
        update: Option<ExprId>,
    },
    /// `for (target in object)`
    In {
        /// Receives each key.
        target: LoopTarget,
        /// Evaluated with the head's own names not yet initialised.
        object: ExprId,
    },
    /// `for (target of iterable)`
    Of {
        /// Receives each value.
        target: LoopTarget,
        /// Evaluated with the head's own names not yet initialised.
        iterable: ExprId,
    },
    /// `for await (target of iterable)`
    AwaitOf {
        /// Receives each value.
        target: LoopTarget,
        /// Evaluated with the head's own names not yet initialised.
        iterable: ExprId,
    },
}

/// What `for…in` and `for…of` assign to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopTarget {
    /// `for (let x of …)`
    Declare(DeclareKind, PatternId),
    /// `for (x of …)`
    Assign(PatternId),
}
