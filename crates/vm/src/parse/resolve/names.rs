//! Looking names up, and what a use does to the binding it finds.

use super::Resolver;
use crate::ast::{
    Atom, Binding, BindingId, BindingKind, Check, FunctionKind, Program, RefId, ScopeId, Target,
};
use crate::parse::diagnostic::{Diagnostic, DiagnosticKind};
use crate::parse::options::{FreeNames, Options, REFUSED_NAMES, TopLevel};
use crate::parse::token::word;

/// What a use does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Reads, or refers in a way that changes nothing.
    Read,
    /// Assigns.
    Write,
    /// Gives a declared name its first value.
    Initialise,
}

/// Things that every function has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Implicit {
    This,
    Arguments,
    NewTarget,
    Callee,
}

/// The atoms of the names that must not be free, if the source has them at all.
pub(super) fn refused_atoms(program: &Program, options: &Options) -> Vec<Atom> {
    match options.free_names {
        FreeNames::Allowed => Vec::new(),
        FreeNames::RefuseAmbient => {
            let mut texts = program.texts.clone();
            let mut atoms: Vec<Atom> = REFUSED_NAMES.iter().map(|name| texts.intern(name)).collect();
            atoms.retain(|atom| atom.index() < program.texts.len());
            atoms
        }
    }
}

impl Resolver<'_> {
    /// Enters a scope with all of its names.
    pub(super) fn enter(&mut self, scope: ScopeId) -> Entered {
        self.enter_where(scope, |_| true)
    }

    /// Enters a scope with the names that satisfy `wanted`.
    pub(super) fn enter_where(&mut self, scope: ScopeId, wanted: impl Fn(&Binding) -> bool) -> Entered {
        let outer = Entered { scope: self.scope, undo_base: self.undo.len() };
        if let Some(frame) = self.frames.last() {
            let entry = &mut self.program.scopes[scope.index()];
            entry.parent = outer.scope;
            entry.function = frame.function;
        }
        self.scope = Some(scope);
        self.activate_where(scope, wanted);
        outer
    }

    pub(super) fn activate_where(&mut self, scope: ScopeId, wanted: impl Fn(&Binding) -> bool) {
        for i in self.program.scopes[scope.index()].bindings.range() {
            let id = self.program.lists.bindings[i];
            let binding = self.program.bindings[id.index()];
            if wanted(&binding) {
                self.activate(binding.name, id);
            }
        }
    }

    pub(super) fn activate(&mut self, name: Atom, binding: BindingId) {
        let before = self.active[name.index()].replace(binding);
        self.undo.push((name, before));
    }

    pub(super) fn leave(&mut self, outer: Entered) {
        self.scope = outer.scope;
        for (name, before) in self.undo.drain(outer.undo_base..).rev() {
            self.active[name.index()] = before;
        }
    }

    /// Resolves a name.
    pub(super) fn name(&mut self, reference: RefId, how: Use) {
        let found = *self.program.reference(reference);
        if found.name == word::ARGUMENTS && self.implicit(Implicit::Arguments, reference) {
            return;
        }
        if let Some(binding) = self.active[found.name.index()] {
            self.link(reference, binding, how);
        } else if self.refused.contains(&found.name) {
            let text = self.program.text(found.name).to_string_lossy();
            let message = format!("`{text}` is not available in this environment");
            self.problem(DiagnosticKind::Validation, reference, message);
        }
    }

    /// Resolves a private name, which must be declared by a class around the place.
    pub(super) fn private_name(&mut self, reference: RefId) {
        let found = *self.program.reference(reference);
        if let Some(binding) = self.active[found.name.index()] {
            self.link(reference, binding, Use::Read);
        } else {
            let text = self.program.text(found.name).to_string_lossy();
            let message = format!("no class around this declares `{text}`");
            self.problem(DiagnosticKind::Parse, reference, message);
        }
    }

    /// Resolves a use of a hidden binding, which the parser has noted.
    pub(super) fn held(&mut self, reference: RefId) {
        if let Target::Local(binding) = self.program.reference(reference).target {
            self.link(reference, binding, Use::Read);
        }
    }

    /// Resolves something that the nearest function other than an arrow has; says whether there is one.
    pub(super) fn implicit(&mut self, what: Implicit, reference: RefId) -> bool {
        let is_owner = |frame: &&super::Frame| {
            self.program.functions[frame.function.index()].kind != FunctionKind::Arrow
        };
        let Some(owner) = self.frames.iter().rev().find(is_owner).map(|frame| frame.function) else {
            return false;
        };
        let function = &mut self.program.functions[owner.index()];
        if what == Implicit::Arguments && function.kind == FunctionKind::Script {
            return false;
        }
        let (scope, kind) = (function.scope, function.kind);
        let next = BindingId::from_index(self.program.bindings.len());
        let (slot, binding_kind, name) = match what {
            Implicit::This => (&mut function.this, BindingKind::This, word::EMPTY),
            Implicit::Arguments => (&mut function.arguments, BindingKind::Arguments, word::ARGUMENTS),
            Implicit::NewTarget => (&mut function.new_target, BindingKind::NewTarget, word::NEW_TARGET),
            Implicit::Callee => (&mut function.callee, BindingKind::Callee, word::EMPTY),
        };
        let id = *slot.get_or_insert(next);
        if id == next {
            let span = self.program.reference(reference).span;
            self.program.bindings.push(Binding {
                name,
                kind: binding_kind,
                scope,
                captured: false,
                needs_check: false,
                reassigned: false,
                copies: None,
                span,
            });
        }
        self.link(reference, id, Use::Read);
        if what == Implicit::This && kind == FunctionKind::DerivedConstructor {
            self.program.references[reference.index()].check = Check::Initialised;
            self.program.bindings[id.index()].needs_check = true;
        }
        true
    }

    fn link(&mut self, reference: RefId, binding: BindingId, how: Use) {
        let found = self.program.bindings[binding.index()];
        let owner = self.program.scopes[found.scope.index()].function;
        if let Some(used) = self.used.get_mut(binding.index()) {
            *used = true;
        }
        if how == Use::Write {
            self.program.bindings[binding.index()].reassigned = true;
        }
        let script = self.program.functions[0].scope;
        let is_implicit = binding.index() >= self.declarations.bindings.len();
        if found.scope == script && self.options.top_level == TopLevel::Shared && !is_implicit {
            self.program.references[reference.index()].target = Target::Global;
            return;
        }
        let depth = self.frame_of[owner.index()];
        let here = self.frames.len().saturating_sub(1);
        let target = if depth == here {
            Target::Local(binding)
        } else {
            self.program.bindings[binding.index()].captured = true;
            self.program.scopes[found.scope.index()].has_captured = true;
            let mut slot = 0;
            for i in depth + 1..=here {
                let frame = &mut self.frames[i];
                slot = *self.slots.entry((frame.function, binding)).or_insert_with(|| {
                    frame.captures.push(binding);
                    frame.captures.len() as u32 - 1
                });
            }
            Target::Captured { slot, binding }
        };
        let check = self.check(reference, binding, depth, how);
        if check == Check::Initialised {
            self.program.bindings[binding.index()].needs_check = true;
        }
        let reference = &mut self.program.references[reference.index()];
        reference.target = target;
        reference.check = check;
    }

    /// Whether the use may run before the binding is initialised.
    fn check(&self, reference: RefId, binding: BindingId, depth: usize, how: Use) -> Check {
        let Some(facts) = self.declarations.bindings.get(binding.index()) else { return Check::Never };
        if how == Use::Initialise {
            return Check::Never;
        }
        // A use in an inner function runs after that function exists; the outermost of them decides.
        let at = match self.frames.get(depth + 1) {
            Some(inner) if inner.class_scope == Some(self.program.bindings[binding.index()].scope) => {
                return Check::Never;
            }
            Some(inner) => inner.exists_from,
            None => self.program.reference(reference).span.start,
        };
        if facts.initialised_at <= at && at < facts.valid_until { Check::Never } else { Check::Initialised }
    }

    fn problem(&mut self, kind: DiagnosticKind, reference: RefId, message: String) {
        const MAX: usize = 20;
        if self.problems.len() < MAX {
            let span = self.program.reference(reference).span;
            self.problems.push(Diagnostic::new(kind, message, span, self.source));
        }
    }
}

/// What to go back to when a scope is left.
#[derive(Clone, Copy)]
pub(super) struct Entered {
    scope: Option<ScopeId>,
    undo_base: usize,
}
