//! Which scope declares which name: scopes, hoisting of `var`, and redeclaration errors, while parsing.
//!
//! Uses of names are not looked at here (an arrow's parameters look like uses until its `=>`): that is
//! [`super::resolve`]'s work, once all declarations are known.

use super::parser::Parser;
use crate::ast::{
    Atom, Binding, BindingId, BindingKind, FunctionId, HoistedFunction, List, Pattern, PatternId, Placement,
    Program, Scope, ScopeId, ScopeKind, Span,
};

/// What is known about declarations beside what the tree keeps.
#[derive(Debug, Default)]
pub(super) struct Declarations {
    /// The innermost open binding of each atom.
    active: Vec<Option<BindingId>>,
    undo: Vec<(Atom, Option<BindingId>)>,
    open: Vec<OpenScope>,
    pub(super) scopes: Vec<ScopeFacts>,
    pub(super) bindings: Vec<BindingFacts>,
    hoisted: Vec<(ScopeId, HoistedFunction)>,
}

#[derive(Clone, Copy, Debug)]
struct OpenScope {
    id: ScopeId,
    undo_base: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ScopeFacts {
    pub(super) start: u32,
    /// The scope that holds the `var`s declared here.
    var_home: ScopeId,
    /// A scope whose names must not be declared again here: parameters for a body, the `catch` parameter for its block.
    guarded: Option<ScopeId>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct BindingFacts {
    /// Uses from here on find it initialised …
    pub(super) initialised_at: u32,
    /// … up to here: another `case` may have skipped the declaration.
    pub(super) valid_until: u32,
    /// Where a `var` (or top-level function) last declared it.
    last_var: u32,
    private: Option<(Placement, PrivateKind)>,
}

/// What a private name names; a getter and a setter may share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrivateKind {
    Getter,
    Setter,
    Pair,
    Other,
}

impl Parser<'_> {
    pub(super) fn open_scope(&mut self, kind: ScopeKind, start: u32) -> ScopeId {
        let id = ScopeId::from_index(self.program.scopes.len());
        self.program.scopes.push(Scope {
            kind,
            parent: None,
            function: Program::SCRIPT,
            bindings: List::EMPTY,
            functions: List::EMPTY,
            has_captured: false,
        });
        let outer = self.declarations.open.last().map(|scope| scope.id);
        let holds_vars = matches!(
            kind,
            ScopeKind::Script | ScopeKind::Function | ScopeKind::Body | ScopeKind::StaticBlock
        );
        let var_home = match outer {
            Some(outer) if !holds_vars => self.declarations.scopes[outer.index()].var_home,
            _ => id,
        };
        let guarded = outer.filter(|outer| {
            kind == ScopeKind::Body
                || (kind == ScopeKind::Block && self.program.scope(*outer).kind == ScopeKind::Catch)
        });
        self.declarations.scopes.push(ScopeFacts { start, var_home, guarded });
        self.declarations.open.push(OpenScope { id, undo_base: self.declarations.undo.len() });
        id
    }

    pub(super) fn close_scope(&mut self) {
        let Some(closed) = self.declarations.open.pop() else { return };
        let undo = &mut self.declarations.undo;
        let mut kept = closed.undo_base;
        for i in closed.undo_base..undo.len() {
            let (atom, before) = undo[i];
            let slot = &mut self.declarations.active[atom.index()];
            match *slot {
                // A `var` declared in here lives on in its function.
                Some(now) if self.program.bindings[now.index()].scope != closed.id => {
                    undo[kept] = undo[i];
                    kept += 1;
                }
                _ => *slot = before,
            }
        }
        undo.truncate(kept);
    }

    fn current_scope(&self) -> ScopeId {
        // The script's scope is open from the first token to the last.
        self.declarations.open.last().map_or(ScopeId::from_index(0), |scope| scope.id)
    }

    fn active(&self, name: Atom) -> Option<BindingId> {
        self.declarations.active.get(name.index()).copied().flatten()
    }

    pub(super) fn add_binding(
        &mut self,
        name: Atom,
        kind: BindingKind,
        scope: ScopeId,
        span: Span,
    ) -> BindingId {
        let id = BindingId::from_index(self.program.bindings.len());
        self.program.bindings.push(Binding {
            name,
            kind,
            scope,
            captured: false,
            needs_check: false,
            reassigned: false,
            copies: None,
            span,
        });
        let initialised_at = match kind {
            BindingKind::Let | BindingKind::Const | BindingKind::Class | BindingKind::ClassName => u32::MAX,
            _ => 0,
        };
        self.declarations.bindings.push(BindingFacts {
            initialised_at,
            valid_until: u32::MAX,
            last_var: 0,
            private: None,
        });
        id
    }

    fn activate(&mut self, name: Atom, binding: BindingId) {
        let active = &mut self.declarations.active;
        if active.len() <= name.index() {
            active.resize(name.index() + 1, None);
        }
        let before = active[name.index()].replace(binding);
        self.declarations.undo.push((name, before));
    }

    /// Declares a name in the current scope, or for `var` in its function.
    pub(super) fn declare(&mut self, name: Atom, kind: BindingKind, span: Span) -> BindingId {
        let scope = self.current_scope();
        let home = self.declarations.scopes[scope.index()].var_home;
        match kind {
            BindingKind::Var => self.declare_var(name, kind, span, home),
            BindingKind::Function if home == scope => self.declare_var(name, kind, span, home),
            _ => {
                if let Some(old) = self.active(name)
                    && self.conflicts(old, scope)
                {
                    self.redeclared(name, old, span);
                }
                let id = self.add_binding(name, kind, scope, span);
                self.activate(name, id);
                id
            }
        }
    }

    /// Whether a lexical declaration in `scope` clashes with `old`.
    fn conflicts(&self, old: BindingId, scope: ScopeId) -> bool {
        let facts = self.declarations.scopes[scope.index()];
        let old_scope = self.program.bindings[old.index()].scope;
        old_scope == scope
            || facts.guarded == Some(old_scope)
            || (old_scope == facts.var_home && self.declarations.bindings[old.index()].last_var > facts.start)
    }

    fn declare_var(&mut self, name: Atom, kind: BindingKind, span: Span, home: ScopeId) -> BindingId {
        // Positions are compared with scope starts, so one is added: a scope may start at the very same byte.
        let last_var = span.start + 1;
        let mut copies = None;
        if let Some(old) = self.active(name) {
            let found = self.program.bindings[old.index()];
            let old_home = self.declarations.scopes[found.scope.index()].var_home;
            if found.scope == home
                && matches!(found.kind, BindingKind::Var | BindingKind::Function | BindingKind::Param)
            {
                if kind == BindingKind::Function && found.kind == BindingKind::Var {
                    self.program.bindings[old.index()].kind = kind;
                }
                self.declarations.bindings[old.index()].last_var = last_var;
                return old;
            }
            if old_home == home {
                self.redeclared(name, old, span);
            }
            if self.declarations.scopes[home.index()].guarded == Some(found.scope) {
                copies = Some(old);
            }
        }
        let id = self.add_binding(name, kind, home, span);
        self.program.bindings[id.index()].copies = copies;
        self.declarations.bindings[id.index()].last_var = last_var;
        self.activate(name, id);
        id
    }

    fn redeclared(&mut self, name: Atom, old: BindingId, span: Span) {
        let text = self.program.text(name).to_string_lossy();
        let old = self.program.bindings[old.index()];
        let message = match (old.kind, self.program.scope(old.scope).kind) {
            (BindingKind::Param, _) => format!("`{text}` has already been declared as a parameter"),
            _ => format!("`{text}` has already been declared"),
        };
        self.problem(span, &message);
    }

    /// Declares every name of a pattern; answers the indices of the bindings made.
    pub(super) fn declare_pattern(
        &mut self,
        pattern: PatternId,
        kind: BindingKind,
    ) -> std::ops::Range<usize> {
        let first = self.program.bindings.len();
        self.declare_names(pattern, kind);
        first..self.program.bindings.len()
    }

    /// Recurses as deep as the parser did to read the pattern.
    fn declare_names(&mut self, pattern: PatternId, kind: BindingKind) {
        match self.program.pattern(pattern) {
            Pattern::Name(name) => {
                let name = *self.program.reference(name);
                self.declare(name.name, kind, name.span);
            }
            // Refused where the pattern was read.
            Pattern::ParenName(_) | Pattern::Member(_) => {}
            Pattern::Array { elements, rest } => {
                for i in elements.range() {
                    if let Some(target) = self.program.lists.pattern_elements[i].target {
                        self.declare_names(target, kind);
                    }
                }
                if let Some(rest) = rest {
                    self.declare_names(rest, kind);
                }
            }
            Pattern::Object { properties, rest } => {
                for i in properties.range() {
                    self.declare_names(self.program.lists.pattern_properties[i].target, kind);
                }
                if let Some(rest) = rest {
                    self.declare_names(rest, kind);
                }
            }
        }
    }

    /// Uses after this byte find these bindings initialised.
    pub(super) fn initialised(&mut self, bindings: std::ops::Range<usize>, at: u32) {
        for facts in &mut self.declarations.bindings[bindings] {
            facts.initialised_at = at;
        }
    }

    /// Bindings of the switch `scope` declared since `first` belong to the case that ends here.
    pub(super) fn end_case(&mut self, scope: ScopeId, first: usize) {
        for i in first..self.program.bindings.len() {
            if self.program.bindings[i].scope == scope {
                self.declarations.bindings[i].valid_until = self.prev_end;
            }
        }
    }

    pub(super) fn binding_count(&self) -> usize {
        self.program.bindings.len()
    }

    /// Declares a function: hoisted to the start of the current scope.
    pub(super) fn declare_function(&mut self, name: Atom, span: Span) -> BindingId {
        self.declare(name, BindingKind::Function, span)
    }

    /// The declared function itself, once it is read.
    pub(super) fn hoist(&mut self, binding: BindingId, function: FunctionId) {
        let scope = self.current_scope();
        self.declarations.hoisted.push((scope, HoistedFunction { binding, function }));
    }

    /// Declares a private name of the class whose scope is current.
    pub(super) fn declare_private(
        &mut self,
        name: Atom,
        span: Span,
        placement: Placement,
        kind: PrivateKind,
    ) {
        let scope = self.current_scope();
        if let Some(old) = self.active(name)
            && self.program.bindings[old.index()].scope == scope
        {
            let facts = &mut self.declarations.bindings[old.index()];
            match (facts.private, kind) {
                (Some((place, PrivateKind::Getter)), PrivateKind::Setter)
                | (Some((place, PrivateKind::Setter)), PrivateKind::Getter)
                    if place == placement =>
                {
                    facts.private = Some((place, PrivateKind::Pair));
                }
                _ => self.redeclared(name, old, span),
            }
            return;
        }
        let id = self.add_binding(name, BindingKind::Private, scope, span);
        self.declarations.bindings[id.index()].private = Some((placement, kind));
        self.activate(name, id);
    }

    /// Gives each scope its bindings and hoisted functions, in order of declaration.
    pub(super) fn finish_declarations(&mut self) {
        let program = &mut self.program;
        let listed = |binding: &Binding| !matches!(binding.kind, BindingKind::SelfName);
        let mut places = vec![0u32; program.scopes.len()];
        for binding in program.bindings.iter().filter(|b| listed(b)) {
            places[binding.scope.index()] += 1;
        }
        let mut start = 0;
        for (scope, place) in program.scopes.iter_mut().zip(&mut places) {
            scope.bindings = List::new(start, *place);
            start += *place;
            *place = scope.bindings.start;
        }
        program.lists.bindings = vec![BindingId::from_index(0); start as usize];
        for (i, binding) in program.bindings.iter().enumerate().filter(|(_, b)| listed(b)) {
            let place = &mut places[binding.scope.index()];
            program.lists.bindings[*place as usize] = BindingId::from_index(i);
            *place += 1;
        }
        // Stable: functions of one scope stay in order of their ends, which is the order of their starts too.
        self.declarations.hoisted.sort_by_key(|(scope, _)| *scope);
        for group in self.declarations.hoisted.chunk_by(|a, b| a.0 == b.0) {
            let start = program.lists.hoisted.len() as u32;
            program.lists.hoisted.extend(group.iter().map(|(_, function)| *function));
            program.scopes[group[0].0.index()].functions = List::new(start, group.len() as u32);
        }
    }
}
