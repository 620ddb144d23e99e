//! Where names live: registers, cells, captured cells, the global object.

use super::Compiler;
use crate::ast::{BindingId, BindingKind, Check, RefId, ScopeId, ScopeKind, Target};
use crate::code::Op;
use crate::compile::emit::Overflow;

/// The home of a binding, in the function that declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Its scope has not been entered.
    Unplaced,
    /// The value is in a register.
    Register(u8),
    /// The register holds the cell that holds the value.
    Cell(u8),
    /// The value is in the function's record: there are not enough registers.
    Record(u16),
    /// The record holds the cell that holds the value.
    RecordCell(u16),
}

/// A reference with everything decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variable {
    Register(u8),
    Cell(u8),
    Record(u16),
    RecordCell(u16),
    Captured(u16),
    Global,
}

/// Where a function keeps its variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// Each in a register, as is best.
    Registers,
    /// In a record on the heap: the function has more variables than there are registers.
    Record,
}

/// Whether assignment is an initialisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    /// The declaration itself: no checks.
    Initialise,
    /// An assignment: the binding must be initialised and not constant.
    Assign,
}

impl Compiler<'_> {
    /// Whether a binding is seen by other scripts: a property of the global object, or a shared lexical name.
    pub(crate) fn is_global(&self, binding: BindingId) -> bool {
        let b = self.tree.binding(binding);
        self.shared
            && matches!(
                b.kind,
                BindingKind::Var
                    | BindingKind::Function
                    | BindingKind::Let
                    | BindingKind::Const
                    | BindingKind::Class
            )
            && self.tree.scope(b.scope).kind == ScopeKind::Script
    }

    pub(crate) fn variable(&self, reference: RefId) -> Variable {
        match self.tree.reference(reference).target {
            Target::Global => Variable::Global,
            Target::Local(b) if self.is_global(b) => Variable::Global,
            Target::Captured { binding, .. } if self.is_global(binding) => Variable::Global,
            Target::Local(b) => self.placed(b),
            Target::Captured { slot, .. } => Variable::Captured(slot as u16),
        }
    }

    /// A binding of the function at hand.
    pub(crate) fn placed(&self, binding: BindingId) -> Variable {
        match self.places[binding.index()] {
            Place::Register(r) => Variable::Register(r),
            Place::Cell(r) => Variable::Cell(r),
            Place::Record(n) => Variable::Record(n),
            Place::RecordCell(n) => Variable::RecordCell(n),
            // The resolver never refers to a binding from outside its scope; reading `this` is harmless.
            Place::Unplaced => Variable::Register(0),
        }
    }

    fn reference_kind(&self, reference: RefId) -> Option<BindingKind> {
        match self.tree.reference(reference).target {
            Target::Local(b) | Target::Captured { binding: b, .. } => Some(self.tree.binding(b).kind),
            Target::Global => None,
        }
    }

    /// Reads a name. Without `dst` a register variable is answered in place, unmoved.
    pub(crate) fn read(&mut self, reference: RefId, dst: Option<u8>) -> u8 {
        let r = *self.tree.reference(reference);
        let check = r.check == Check::Initialised;
        match self.variable(reference) {
            Variable::Register(reg) => {
                if check {
                    let k = self.string(r.name);
                    self.emit.at(r.span.start);
                    self.emit.emit(Op::CheckInit(reg, k));
                }
                match dst {
                    None => reg,
                    Some(d) => {
                        if d != reg {
                            self.emit.emit(Op::Move(d, reg));
                        }
                        d
                    }
                }
            }
            Variable::Cell(cell) => {
                let d = dst.unwrap_or_else(|| self.emit.alloc());
                if check {
                    let k = self.string(r.name);
                    self.emit.at(r.span.start);
                    self.emit.emit(Op::GetCellChecked(d, cell, k));
                } else {
                    self.emit.emit(Op::GetCell(d, cell));
                }
                d
            }
            Variable::Record(n) => {
                let d = dst.unwrap_or_else(|| self.emit.alloc());
                self.emit.emit(Op::GetRecord(d, self.record, n));
                if check {
                    let k = self.string(r.name);
                    self.emit.at(r.span.start);
                    self.emit.emit(Op::CheckInit(d, k));
                }
                d
            }
            Variable::RecordCell(n) => {
                let d = dst.unwrap_or_else(|| self.emit.alloc());
                self.emit.emit(Op::GetRecord(d, self.record, n));
                if check {
                    let k = self.string(r.name);
                    self.emit.at(r.span.start);
                    self.emit.emit(Op::GetCellChecked(d, d, k));
                } else {
                    self.emit.emit(Op::GetCell(d, d));
                }
                d
            }
            Variable::Captured(slot) => {
                let d = dst.unwrap_or_else(|| self.emit.alloc());
                if check {
                    let k = self.string(r.name);
                    self.emit.at(r.span.start);
                    self.emit.emit(Op::GetCapChecked(d, slot, k));
                } else {
                    self.emit.emit(Op::GetCap(d, slot));
                }
                d
            }
            Variable::Global => {
                let d = dst.unwrap_or_else(|| self.emit.alloc());
                self.emit.at(r.span.start);
                if self.tree.text(r.name) == crate::ast::Text::Latin1(b"undefined") {
                    self.emit.emit(Op::LoadUndef(d));
                } else {
                    let site = self.atom_site(r.name);
                    self.emit.emit(Op::GetGlobal(d, site));
                }
                d
            }
        }
    }

    /// Reads a name without asking whether it is initialised.
    pub(crate) fn read_unchecked(&mut self, reference: RefId, dst: u8) {
        match self.variable(reference) {
            Variable::Register(r) => self.emit.emit(Op::Move(dst, r)),
            Variable::Cell(r) => self.emit.emit(Op::GetCell(dst, r)),
            Variable::Record(n) => self.emit.emit(Op::GetRecord(dst, self.record, n)),
            Variable::RecordCell(n) => {
                self.emit.emit(Op::GetRecord(dst, self.record, n));
                self.emit.emit(Op::GetCell(dst, dst));
            }
            Variable::Captured(slot) => self.emit.emit(Op::GetCap(dst, slot)),
            Variable::Global => self.emit.emit(Op::LoadUndef(dst)),
        }
    }

    /// `typeof name`: an unknown global is undefined.
    pub(crate) fn read_for_typeof(&mut self, reference: RefId, dst: u8) {
        if self.variable(reference) == Variable::Global {
            let name = self.tree.reference(reference).name;
            let site = self.atom_site(name);
            self.emit.emit(Op::GetGlobalOrUndef(dst, site));
        } else {
            self.read(reference, Some(dst));
        }
    }

    /// Writes a name.
    pub(crate) fn write(&mut self, reference: RefId, src: u8, store: Store) {
        let r = *self.tree.reference(reference);
        let kind = self.reference_kind(reference);
        let checked = store == Store::Assign && r.check == Check::Initialised;
        let constant = store == Store::Assign
            && matches!(kind, Some(BindingKind::Const | BindingKind::ClassName | BindingKind::SelfName));
        if store == Store::Assign {
            self.emit.at(r.span.start);
        }
        if constant {
            if checked {
                let mark = self.emit.mark();
                self.read(reference, None);
                self.emit.release(mark);
            }
            let k = self.string(r.name);
            self.emit.emit(Op::ThrowConst(k));
            return;
        }
        match self.variable(reference) {
            Variable::Register(reg) => {
                if checked {
                    let k = self.string(r.name);
                    self.emit.emit(Op::CheckInit(reg, k));
                }
                self.move_to(reg, src);
            }
            Variable::Cell(cell) if checked => {
                let k = self.string(r.name);
                self.emit.emit(Op::SetCellChecked(cell, src, k));
            }
            Variable::Cell(cell) => self.emit.emit(Op::SetCell(cell, src)),
            Variable::Record(n) => {
                if checked {
                    let mark = self.emit.mark();
                    self.read(reference, None);
                    self.emit.release(mark);
                }
                self.emit.emit(Op::SetRecord(src, self.record, n));
            }
            Variable::RecordCell(n) => {
                let cell = self.emit.alloc();
                self.emit.emit(Op::GetRecord(cell, self.record, n));
                if checked {
                    let k = self.string(r.name);
                    self.emit.emit(Op::SetCellChecked(cell, src, k));
                } else {
                    self.emit.emit(Op::SetCell(cell, src));
                }
                self.emit.release(cell);
            }
            Variable::Captured(slot) if checked => {
                let k = self.string(r.name);
                self.emit.emit(Op::SetCapChecked(src, slot, k));
            }
            Variable::Captured(slot) => self.emit.emit(Op::SetCap(src, slot)),
            Variable::Global => {
                let site = self.atom_site(r.name);
                self.emit.emit(match store {
                    Store::Initialise => Op::InitGlobal(src, site),
                    Store::Assign => Op::SetGlobal(src, site),
                });
            }
        }
    }

    /// Writes a binding of the function at hand by its id, as its declaration does.
    pub(crate) fn initialise(&mut self, binding: BindingId, src: u8) {
        if self.is_global(binding) {
            let name = self.tree.binding(binding).name;
            let site = self.atom_site(name);
            self.emit.emit(Op::SetGlobal(src, site));
            return;
        }
        match self.placed(binding) {
            Variable::Register(reg) => self.move_to(reg, src),
            Variable::Cell(cell) => self.emit.emit(Op::SetCell(cell, src)),
            Variable::Record(n) => self.emit.emit(Op::SetRecord(src, self.record, n)),
            Variable::RecordCell(n) => {
                let cell = self.emit.alloc();
                self.emit.emit(Op::GetRecord(cell, self.record, n));
                self.emit.emit(Op::SetCell(cell, src));
                self.emit.release(cell);
            }
            Variable::Captured(_) | Variable::Global => {}
        }
    }

    /// Copies `src` to the variable register `dst`; if `src` is a temporary that the last instruction made, that
    /// instruction writes to `dst` instead.
    pub(crate) fn move_to(&mut self, dst: u8, src: u8) {
        if dst != src && !self.emit.retarget(src, dst) {
            self.emit.emit(Op::Move(dst, src));
        }
    }

    /// Gives homes to the names of a scope and instantiates its functions.
    pub(crate) fn enter_scope(&mut self, scope: ScopeId) {
        let s = *self.tree.scope(scope);
        let bindings: Vec<BindingId> = self.tree.list(s.bindings).to_vec();
        for b in bindings {
            self.place(b);
        }
        self.hoist(scope);
    }

    /// Gives a binding its home, in the state its kind starts in. What is placed already stays.
    pub(crate) fn place(&mut self, b: BindingId) {
        let binding = *self.tree.binding(b);
        if self.is_global(b) {
            return;
        }
        let starts_hole = binding.needs_check
            && matches!(
                binding.kind,
                BindingKind::Let | BindingKind::Const | BindingKind::Class | BindingKind::ClassName
            );
        let r = self.emit.alloc();
        if binding.captured {
            if starts_hole {
                self.emit.emit(Op::NewHoleCell(r));
            } else {
                self.emit.emit(Op::LoadUndef(r));
                self.emit.emit(Op::NewCell(r, r));
            }
        } else {
            self.emit.emit(if starts_hole { Op::LoadHole(r) } else { Op::LoadUndef(r) });
        }
        self.places[b.index()] = match (self.home, binding.captured) {
            (Home::Registers, true) => Place::Cell(r),
            (Home::Registers, false) => Place::Register(r),
            (Home::Record, captured) => {
                let place = self.keep(r, captured);
                self.emit.release(r);
                place
            }
        };
    }

    /// Puts what is in a register into the function's record.
    pub(crate) fn keep(&mut self, r: u8, captured: bool) -> Place {
        let n = self.emit.record;
        match n.checked_add(1) {
            Some(next) => self.emit.record = next,
            None => self.emit.overflow = Some(Overflow::Registers),
        }
        self.emit.emit(Op::SetRecord(r, self.record, n));
        if captured { Place::RecordCell(n) } else { Place::Record(n) }
    }

    /// Instantiates the function declarations of a scope.
    pub(crate) fn hoist(&mut self, scope: ScopeId) {
        let hoisted = self.tree.list(self.tree.scope(scope).functions).to_vec();
        for h in hoisted {
            let mark = self.emit.mark();
            let r = self.emit.alloc();
            self.emit.emit(Op::Closure(r, self.base.functions + h.function.index() as u32));
            if self.is_global(h.binding) {
                let name = self.tree.binding(h.binding).name;
                let site = self.atom_site(name);
                self.emit.emit(Op::DeclareFunc(r, site));
            } else {
                self.initialise(h.binding, r);
            }
            self.emit.release(mark);
        }
    }

    /// Fresh cells for the captured names of a loop head, with the values of the turn before.
    pub(crate) fn renew_cells(&mut self, scope: ScopeId) {
        let bindings: Vec<BindingId> = self.tree.list(self.tree.scope(scope).bindings).to_vec();
        for b in bindings {
            let mark = self.emit.mark();
            match self.places[b.index()] {
                Place::Cell(r) => {
                    let t = self.emit.alloc();
                    self.emit.emit(Op::GetCell(t, r));
                    self.emit.emit(Op::NewCell(r, t));
                }
                Place::RecordCell(n) => {
                    let t = self.emit.alloc();
                    self.emit.emit(Op::GetRecord(t, self.record, n));
                    self.emit.emit(Op::GetCell(t, t));
                    self.emit.emit(Op::NewCell(t, t));
                    self.emit.emit(Op::SetRecord(t, self.record, n));
                }
                Place::Unplaced | Place::Register(_) | Place::Record(_) => {}
            }
            self.emit.release(mark);
        }
    }
}
