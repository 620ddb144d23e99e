//! Assignment: simple targets, and patterns that take values apart.

use super::Compiler;
use crate::ast::{BindingKind, Expr, ExprId, Pattern, PatternId, PropertyKey, RefId, Target};
use crate::code::Op;
use crate::compile::variable::{Store, Variable};

/// A simple target with its parts evaluated.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Name(RefId),
    Member { object: u8, name: crate::ast::Atom, position: u32 },
    Index { object: u8, key: u8, position: u32 },
    Private { object: u8, name: u8, position: u32 },
    Super { home: u8, this: u8, key: u8, position: u32 },
}

impl Compiler<'_> {
    pub(crate) fn is_constant(&self, r: RefId) -> bool {
        match self.tree.reference(r).target {
            Target::Local(b) | Target::Captured { binding: b, .. } => matches!(
                self.tree.binding(b).kind,
                BindingKind::Const | BindingKind::ClassName | BindingKind::SelfName
            ),
            Target::Global => false,
        }
    }

    /// Evaluates the parts of a simple target into registers that stay as they are.
    pub(crate) fn target(&mut self, id: ExprId) -> Place {
        let id = self.tree.unwrap_parens(id);
        let position = self.tree.expr_span(id).start;
        match self.tree.expr(id) {
            Expr::Member { object, name, .. } => {
                let object = self.in_temp(object);
                Place::Member { object, name, position }
            }
            Expr::Index { object, index, .. } => {
                let object = self.in_temp(object);
                let key = self.emit.alloc();
                self.expr_to(index, key);
                Place::Index { object, key, position }
            }
            Expr::PrivateMember { object, name, .. } => {
                let object = self.in_temp(object);
                let name = self.read(name, None);
                Place::Private { object, name, position }
            }
            Expr::SuperMember(place) => {
                let (home, this, key) = self.super_parts(self.tree.super_member(place));
                Place::Super { home, this, key, position }
            }
            Expr::Ident(r) => Place::Name(r),
            // The parser refuses any other target.
            _ => {
                let object = self.in_temp(id);
                Place::Index { object, key: object, position }
            }
        }
    }

    /// A value in a register that no assignment changes: constants and `this` need no copy.
    fn in_temp(&mut self, id: ExprId) -> u8 {
        let r = self.expr(id);
        let fixed = match self.tree.expr(self.tree.unwrap_parens(id)) {
            Expr::Ident(name) => match self.tree.reference(name).target {
                Target::Local(b) => !self.tree.binding(b).reassigned,
                Target::Captured { .. } | Target::Global => true,
            },
            Expr::This(_) => true,
            _ => !self.emit.is_local(r),
        };
        if fixed {
            return r;
        }
        let d = self.emit.alloc();
        self.emit.emit(Op::Move(d, r));
        d
    }

    pub(crate) fn load_target(&mut self, place: Place, dst: u8) {
        match place {
            Place::Name(r) => {
                self.read(r, Some(dst));
            }
            Place::Member { object, name, position } => {
                let site = self.atom_site(name);
                self.emit.at(position);
                self.emit.emit(Op::GetProp(dst, object, site));
            }
            Place::Index { object, key, position } => {
                // The key is converted once, although it is used for reading and for writing.
                self.emit.at(position);
                self.emit.emit(Op::CheckObject(object));
                self.emit.emit(Op::ToKey(key, key));
                self.emit.emit(Op::GetElem(dst, object, key));
            }
            Place::Private { object, name, position } => {
                self.emit.at(position);
                self.emit.emit(Op::GetPrivate(dst, object, name));
            }
            Place::Super { home, this, key, position } => {
                self.emit.at(position);
                self.emit.emit(Op::ToKey(key, key));
                self.emit.emit(Op::GetSuper(dst, home, this, key));
            }
        }
    }

    /// Stores; `src` may be rewritten away if it is a temporary, so the caller must not read it afterwards.
    pub(crate) fn store_target(&mut self, place: Place, src: u8, store: Store) {
        match place {
            Place::Name(r) => self.write(r, src, store),
            Place::Member { object, name, position } => {
                let site = self.atom_site(name);
                self.emit.at(position);
                self.emit.emit(Op::SetProp(object, src, site));
            }
            Place::Index { object, key, position } => {
                self.emit.at(position);
                self.emit.emit(Op::SetElem(object, key, src));
            }
            Place::Private { object, name, position } => {
                self.emit.at(position);
                self.emit.emit(Op::SetPrivate(object, name, src));
            }
            Place::Super { home, this, key, position } => {
                self.emit.at(position);
                self.emit.emit(Op::SetSuper(home, this, key, src));
            }
        }
    }

    /// `name = value`; answers a register with the value.
    pub(crate) fn assign_name(&mut self, target: PatternId, r: RefId, value: ExprId) -> u8 {
        if self.variable(r) == Variable::Global && !self.is_constant_value(value) {
            return self.assign_global(target, r, value);
        }
        let v = self.value_for(target, value);
        if let Variable::Register(reg) = self.variable(r)
            && !self.is_constant(r)
        {
            self.write(r, v, Store::Assign);
            return reg;
        }
        self.write(r, v, Store::Assign);
        v
    }

    /// The same for a global: it must exist before the value is computed, not only afterwards.
    fn assign_global(&mut self, target: PatternId, r: RefId, value: ExprId) -> u8 {
        let reference = *self.tree.reference(r);
        let there = self.emit.alloc();
        let site = self.atom_site(reference.name);
        self.emit.emit(Op::HasGlobal(there, site));
        let v = self.value_for(target, value);
        let on = self.emit.label();
        self.emit.jump(|t| Op::JTrue(there, t), on);
        let name = self.tree.text(reference.name).to_string_lossy();
        let k = self.text(&format!("{name} is not defined"));
        self.emit.at(reference.span.start);
        self.emit.emit(Op::ThrowNew(crate::code::ErrorKind::Reference as u8, k));
        self.emit.bind(on);
        self.write(r, v, Store::Assign);
        v
    }

    fn is_constant_value(&self, e: ExprId) -> bool {
        use crate::ast::Expr;
        matches!(
            self.tree.expr(e),
            Expr::Null | Expr::Bool(_) | Expr::Number(_) | Expr::String(_) | Expr::Function(_)
        )
    }

    /// Evaluates what goes into a pattern, naming an anonymous function after a plain name.
    pub(crate) fn value_for(&mut self, target: PatternId, value: ExprId) -> u8 {
        match self.tree.pattern(target) {
            Pattern::Name(r) => {
                let k = self.string(self.tree.reference(r).name);
                self.named(value, k)
            }
            _ => self.expr(value),
        }
    }

    /// `target = value` with the value in `dst`.
    pub(crate) fn assign(&mut self, target: PatternId, value: ExprId, dst: u8) {
        match self.tree.pattern(target) {
            Pattern::Name(r) | Pattern::ParenName(r) => {
                let v = self.assign_name(target, r, value);
                if v != dst {
                    self.emit.emit(Op::Move(dst, v));
                }
            }
            Pattern::Member(e) => {
                let place = self.target(e);
                self.expr_to(value, dst);
                self.store_target(place, dst, Store::Assign);
            }
            Pattern::Array { .. } | Pattern::Object { .. } => {
                self.expr_to(value, dst);
                self.destructure(target, dst, Store::Assign);
            }
        }
    }

    /// Gives the value in `src` to a pattern. `src` must not be read afterwards if the pattern is a name.
    pub(crate) fn destructure(&mut self, pattern: PatternId, src: u8, store: Store) {
        let mark = self.emit.mark();
        match self.tree.pattern(pattern) {
            Pattern::Name(r) | Pattern::ParenName(r) => self.write(r, src, store),
            Pattern::Member(e) => {
                let place = self.target(e);
                self.store_target(place, src, store);
            }
            Pattern::Array { elements, rest } => {
                let elements = self.tree.list(elements);
                self.array_pattern(elements, rest, src, store);
            }
            Pattern::Object { properties, rest } => {
                self.emit.emit(Op::CheckObject(src));
                let keys = rest.map(|_| {
                    let keys = self.emit.alloc();
                    self.emit.emit(Op::NewArray(keys, 0));
                    keys
                });
                let properties = self.tree.list(properties);
                for p in properties {
                    let mark = self.emit.mark();
                    let key = match (p.key, keys) {
                        (PropertyKey::Name(_), None) => None,
                        (key, _) => Some(self.key(key)),
                    };
                    if let (Some(keys), Some(key)) = (keys, key) {
                        self.emit.emit(Op::ArrayPush(keys, key));
                    }
                    // The target's parts are evaluated before the value is read.
                    let place = self.pattern_place(p.target);
                    let v = self.emit.alloc();
                    match (p.key, key) {
                        (PropertyKey::Name(atom), None) => {
                            let site = self.atom_site(atom);
                            self.emit.emit(Op::GetProp(v, src, site));
                        }
                        (_, Some(key)) => self.emit.emit(Op::GetElem(v, src, key)),
                        (_, None) => {}
                    }
                    self.default(p.target, p.default, v);
                    self.store_pattern(place, p.target, v, store);
                    self.emit.release(mark);
                }
                if let (Some(rest), Some(keys)) = (rest, keys) {
                    let place = self.pattern_place(rest);
                    let v = self.emit.alloc();
                    self.emit.emit(Op::CopyRest(v, src, keys));
                    self.store_pattern(place, rest, v, store);
                }
            }
        }
        self.emit.release(mark);
    }

    fn pattern_place(&mut self, pattern: PatternId) -> Option<Place> {
        match self.tree.pattern(pattern) {
            Pattern::Member(e) => Some(self.target(e)),
            _ => None,
        }
    }

    fn store_pattern(&mut self, place: Option<Place>, pattern: PatternId, v: u8, store: Store) {
        match place {
            Some(place) => self.store_target(place, v, store),
            None => self.destructure(pattern, v, store),
        }
    }

    /// Replaces undefined in `v` by the default.
    pub(crate) fn default(&mut self, target: PatternId, default: Option<ExprId>, v: u8) {
        if let Some(default) = default {
            let given = self.emit.label();
            self.emit.jump(|t| Op::JNotUndef(v, t), given);
            let mark = self.emit.mark();
            let d = self.value_for(target, default);
            self.emit.emit(Op::Move(v, d));
            self.emit.release(mark);
            self.emit.bind(given);
        }
    }

    fn array_pattern(
        &mut self,
        elements: &[crate::ast::PatternElement],
        rest: Option<PatternId>,
        src: u8,
        store: Store,
    ) {
        let iter = self.emit.alloc_many(2);
        self.emit.emit(Op::GetIter(iter, src));
        self.enter_iterator(iter);
        for e in elements {
            let mark = self.emit.mark();
            let place = e.target.and_then(|t| self.pattern_place(t));
            let v = self.emit.alloc();
            self.iterator_step(v, iter);
            if let Some(target) = e.target {
                self.default(target, e.default, v);
                self.store_pattern(place, target, v, store);
            }
            self.emit.release(mark);
        }
        if let Some(rest) = rest {
            let place = self.pattern_place(rest);
            let array = self.emit.alloc();
            let v = self.emit.alloc();
            self.emit.emit(Op::NewArray(array, 0));
            let done = self.emit.label();
            self.pause_handlers(1);
            let next = self.emit.here();
            self.emit.jump(|t| Op::IterNext(v, iter, t), done);
            self.emit.emit(Op::ArrayPush(array, v));
            self.emit.loop_to(next);
            self.emit.bind(done);
            self.resume_handlers(1);
            self.store_pattern(place, rest, array, store);
        }
        self.leave_iterator(iter);
    }

    /// One step of a pattern's iterator: `v` is undefined once it has run out. Errors of `next` do not close it.
    fn iterator_step(&mut self, v: u8, iter: u8) {
        self.pause_handlers(1);
        let after = self.emit.label();
        self.emit.jump(|t| Op::IterNext(v, iter, t), after);
        self.emit.bind(after);
        self.resume_handlers(1);
    }
}
