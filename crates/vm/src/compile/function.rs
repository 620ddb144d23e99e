//! Function prologues: parameters, `arguments`, `this`, and the start of suspendable bodies.
//!
//! A frame begins with `this` in register 0 and the parameters in registers 1 and up.

use super::emit::{Emitter, Shape};
use super::{CompileError, Compiler, Source};
use crate::ast::{Binding, BindingId, BindingKind, Body, Flavour, FunctionId, Pattern, Target};
use crate::ast::{Function as Tree, FunctionKind as TreeKind};
use crate::code::{Capture, Declare, FunctionKind, Op};
use crate::compile::variable::{Home, Place, Store};

impl Compiler<'_> {
    pub(crate) fn function(&mut self, id: FunctionId, home: Home) -> Result<(), CompileError> {
        let f = *self.tree.function(id);
        self.emit = Emitter::new();
        self.home = home;
        self.current = id;
        self.control.clear();
        self.completion = None;
        self.captures(&f);
        let parameters = self.tree.list(f.params).len().min(255) as u16;
        self.emit.alloc_many(1 + parameters);
        self.emit.at(f.span.start);
        if home == Home::Record {
            // What the first attempt placed is placed anew.
            for (place, binding) in self.places.iter_mut().zip(self.tree.bindings()) {
                if self.tree.scope(binding.scope).function == id {
                    *place = Place::Unplaced;
                }
            }
            self.record = self.emit.alloc();
            self.emit.emit(Op::NewRecord(self.record, 0));
        }
        self.prologue(&f);
        match f.body {
            Body::Statements(list) => {
                if f.kind == TreeKind::Script {
                    let c = self.emit.alloc();
                    self.emit.emit(Op::LoadUndef(c));
                    self.completion = Some(c);
                }
                self.emit.set_locals();
                self.statements(list);
                match self.completion {
                    Some(c) => self.emit.emit(Op::Ret(c)),
                    None => self.final_return(None),
                }
            }
            Body::Expr(e) => {
                self.emit.set_locals();
                let v = self.expr(e);
                self.emit.emit(Op::Ret(v));
            }
            Body::Fields(class) => self.fields(class, f.kind),
        }
        if let Some(error) = self.overflowed(f.span) {
            return Err(error);
        }
        if home == Home::Record
            && let Some(first) = self.emit.code.first_mut()
        {
            *first = Op::NewRecord(self.record, self.emit.record);
        }
        let name = f.name.map(|n| self.string(n));
        let shape = Shape {
            name,
            kind: kind(&f),
            parameters,
            length: f.length.min(u32::from(u16::MAX)) as u16,
            span: (f.span.start, f.span.end),
            hidden: self.source == Source::Prelude,
        };
        let emitter = std::mem::replace(&mut self.emit, Emitter::new());
        let (function, code) = emitter.finish(shape);
        self.install(id.index(), function, &code);
        Ok(())
    }

    pub(crate) fn is_async_generator(&self) -> bool {
        self.tree.function(self.current).flavour == Flavour::AsyncGenerator
    }

    pub(crate) fn closure(&mut self, f: FunctionId, dst: u8) {
        self.emit.emit(Op::Closure(dst, self.base.functions + f.index() as u32));
    }

    /// Where this function's closures find their cells. The maker is compiled before or after, so registers of the
    /// maker are filled in by it: see [`Compiler::finish_captures`].
    fn captures(&mut self, f: &Tree) {
        let list = self.tree.list(f.captures);
        self.emit.captures = list.iter().map(|&b| self.capture(f, b)).collect();
    }

    fn capture(&self, f: &Tree, b: BindingId) -> Capture {
        if self.is_global(b) {
            return Capture::Absent;
        }
        let Some(parent) = f.parent else { return Capture::Absent };
        let owner = self.tree.scope(self.tree.binding(b).scope).function;
        if owner == parent {
            // Functions are numbered outside in or not; the place may be unknown yet and is patched at the end.
            return match self.places[b.index()] {
                Place::Cell(r) => Capture::Register(r),
                // Of the places in a function with a record, the record's register is the first after its parameters.
                Place::RecordCell(n) => Capture::Record(self.record_register(parent), n),
                Place::Register(_) | Place::Record(_) | Place::Unplaced => Capture::Absent,
            };
        }
        let captures = self.tree.list(self.tree.function(parent).captures);
        match captures.iter().position(|&c| c == b) {
            Some(slot) => Capture::Captured(slot as u16),
            None => Capture::Absent,
        }
    }

    /// Where a function with a record keeps it.
    fn record_register(&self, f: FunctionId) -> u8 {
        1 + self.tree.list(self.tree.function(f).params).len().min(250) as u8
    }

    /// Fills in captures from registers once every function has been compiled and every cell has its register.
    pub(crate) fn finish_captures(&mut self) {
        for index in 0..self.tree.functions().len() {
            let f = *self.tree.function(FunctionId::from_index(index));
            let captures: Vec<Capture> =
                self.tree.list(f.captures).iter().map(|&b| self.capture(&f, b)).collect();
            if let Some(Some(function)) = self.functions.get_mut(index) {
                function.captures = captures;
            }
        }
    }

    fn prologue(&mut self, f: &Tree) {
        let params = self.tree.list(f.params);
        let scope = *self.tree.scope(f.scope);
        let bindings: Vec<BindingId> = self.tree.list(scope.bindings).to_vec();
        // Arguments must be looked at before any local overwrites the ones beyond the parameters.
        if let Some(b) = f.arguments {
            let r = self.emit.alloc();
            self.emit.emit(Op::Arguments(r));
            self.settle(b, r);
        }
        let rest = f.rest.map(|p| {
            let r = self.emit.alloc();
            self.emit.emit(Op::Rest(r, params.len() as u32));
            (p, r)
        });
        if f.flavour == Flavour::Async {
            let r = self.emit.alloc();
            self.emit.emit(Op::AsyncStart(r));
        }
        if let Some(b) = f.this {
            self.settle(b, 0);
        }
        if let Some(b) = f.new_target {
            let r = self.emit.alloc();
            self.emit.emit(Op::NewTarget(r));
            self.settle(b, r);
        }
        if let Some(b) = f.callee {
            let r = self.emit.alloc();
            self.emit.emit(Op::Callee(r));
            self.settle(b, r);
        }
        if let Some(b) = f.self_name {
            let r = self.emit.alloc();
            self.emit.emit(Op::Callee(r));
            self.settle(b, r);
        }
        if f.kind == TreeKind::BaseConstructor {
            let r = self.emit.alloc();
            self.emit.emit(Op::Callee(r));
            self.emit.emit(Op::InitFields(r, 0));
            self.emit.release(r);
        }
        if f.simple_params {
            for (i, p) in params.iter().enumerate() {
                if let Some(target) = p.target
                    && let Pattern::Name(r) = self.tree.pattern(target)
                    && let Target::Local(b) = self.tree.reference(r).target
                {
                    // Of two parameters with one name the last wins; strict code has none, so order is free.
                    self.settle(b, (i as u8).wrapping_add(1));
                }
            }
        }
        for b in bindings {
            let binding: Binding = *self.tree.binding(b);
            if self.places[b.index()] != Place::Unplaced || is_implicit(binding.kind) {
                continue;
            }
            self.place(b);
            if binding.kind == BindingKind::Param && binding.needs_check {
                self.mark_uninitialised(b);
            }
        }
        self.emit.set_locals();
        if !f.simple_params {
            for (i, p) in params.iter().enumerate() {
                let Some(target) = p.target else { continue };
                let mark = self.emit.mark();
                let v = self.emit.alloc();
                self.emit.emit(Op::Move(v, (i as u8).wrapping_add(1)));
                self.default(target, p.default, v);
                self.destructure(target, v, Store::Initialise);
                self.emit.release(mark);
            }
            if let Some((pattern, r)) = rest {
                let mark = self.emit.mark();
                let v = self.emit.alloc();
                self.emit.emit(Op::Move(v, r));
                self.destructure(pattern, v, Store::Initialise);
                self.emit.release(mark);
            }
        }
        if f.kind == TreeKind::Script {
            self.declare_globals(f);
        }
        if f.body_scope != f.scope {
            self.body_scope(f);
        } else {
            self.hoist(f.scope);
        }
        if matches!(f.flavour, Flavour::Generator | Flavour::AsyncGenerator) {
            let r = self.emit.alloc();
            self.emit.emit(Op::GeneratorStart(r));
        }
    }

    /// The body's own scope beside parameters with expressions.
    fn body_scope(&mut self, f: &Tree) {
        let bindings: Vec<BindingId> = self.tree.list(self.tree.scope(f.body_scope).bindings).to_vec();
        for &b in &bindings {
            self.place(b);
            if let Some(from) = self.tree.binding(b).copies {
                let mark = self.emit.mark();
                let v = self.emit.alloc();
                match self.places[from.index()] {
                    Place::Register(r) => self.emit.emit(Op::Move(v, r)),
                    Place::Cell(r) => self.emit.emit(Op::GetCell(v, r)),
                    Place::Record(n) => self.emit.emit(Op::GetRecord(v, self.record, n)),
                    Place::RecordCell(n) => {
                        self.emit.emit(Op::GetRecord(v, self.record, n));
                        self.emit.emit(Op::GetCell(v, v));
                    }
                    Place::Unplaced => self.emit.emit(Op::LoadUndef(v)),
                }
                self.initialise(b, v);
                self.emit.release(mark);
            }
        }
        self.hoist(f.body_scope);
    }

    fn mark_uninitialised(&mut self, b: BindingId) {
        let t = self.emit.mark();
        match self.places[b.index()] {
            Place::Register(r) => self.emit.emit(Op::LoadHole(r)),
            Place::Cell(r) => self.emit.emit(Op::NewHoleCell(r)),
            Place::Record(n) => {
                let t = self.emit.alloc();
                self.emit.emit(Op::LoadHole(t));
                self.emit.emit(Op::SetRecord(t, self.record, n));
            }
            Place::RecordCell(n) => {
                let t = self.emit.alloc();
                self.emit.emit(Op::NewHoleCell(t));
                self.emit.emit(Op::SetRecord(t, self.record, n));
            }
            Place::Unplaced => {}
        }
        self.emit.release(t);
    }

    /// A binding whose value is in register `r` already: it stays there, or moves into a cell.
    fn settle(&mut self, b: BindingId, r: u8) {
        if self.tree.binding(b).captured {
            let cell = self.emit.alloc();
            self.emit.emit(Op::NewCell(cell, r));
            self.places[b.index()] = match self.home {
                Home::Registers => Place::Cell(cell),
                Home::Record => self.keep(cell, true),
            };
        } else {
            self.places[b.index()] = Place::Register(r);
        }
    }

    fn declare_globals(&mut self, f: &Tree) {
        let scope = *self.tree.scope(f.scope);
        let mut names = Vec::new();
        for &b in self.tree.list(scope.bindings) {
            let binding = *self.tree.binding(b);
            if self.is_global(b) {
                let site = self.atom_site(binding.name);
                names.push((binding.kind, site));
            }
        }
        let is_lexical = |kind| matches!(kind, BindingKind::Let | BindingKind::Const | BindingKind::Class);
        for &(kind, site) in &names {
            let check = if is_lexical(kind) { Declare::CheckLexical } else { Declare::CheckVar };
            self.emit.emit(Op::DeclareGlobal(check, site));
        }
        for &(kind, site) in names.iter().filter(|(kind, _)| !is_lexical(*kind)) {
            let check =
                if kind == BindingKind::Function { Declare::CheckFunction } else { Declare::CheckRoom };
            self.emit.emit(Op::DeclareGlobal(check, site));
        }
        for &(kind, site) in &names {
            match kind {
                BindingKind::Var => self.emit.emit(Op::DeclareVar(site)),
                BindingKind::Const => self.emit.emit(Op::DeclareGlobal(Declare::Const, site)),
                BindingKind::Let | BindingKind::Class => {
                    self.emit.emit(Op::DeclareGlobal(Declare::Let, site));
                }
                _ => {}
            }
        }
    }
}

fn is_implicit(kind: BindingKind) -> bool {
    matches!(
        kind,
        BindingKind::This
            | BindingKind::Arguments
            | BindingKind::NewTarget
            | BindingKind::Callee
            | BindingKind::SelfName
    )
}

fn kind(f: &Tree) -> FunctionKind {
    match (f.kind, f.flavour) {
        (TreeKind::Script, _) => FunctionKind::Script,
        (TreeKind::Arrow, Flavour::Async) => FunctionKind::AsyncArrow,
        (_, Flavour::Generator) => FunctionKind::Generator,
        (_, Flavour::Async) => FunctionKind::Async,
        (_, Flavour::AsyncGenerator) => FunctionKind::AsyncGenerator,
        (TreeKind::Ordinary, Flavour::Plain) => FunctionKind::Normal,
        (TreeKind::Arrow, Flavour::Plain) => FunctionKind::Arrow,
        (TreeKind::Method | TreeKind::Getter | TreeKind::Setter, Flavour::Plain) => FunctionKind::Method,
        (TreeKind::BaseConstructor, Flavour::Plain) => FunctionKind::BaseConstructor,
        (TreeKind::DerivedConstructor, Flavour::Plain) => FunctionKind::DerivedConstructor,
        (TreeKind::InstanceFields | TreeKind::StaticFields, Flavour::Plain) => FunctionKind::Fields,
    }
}
