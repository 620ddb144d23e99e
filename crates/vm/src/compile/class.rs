//! Classes: the constructor, its members, and the initialiser functions of fields.

use super::emit::{Emitter, Shape};
use super::expr::ClassName;
use super::{Compiler, Source};
use crate::ast::{
    BindingKind, ClassId, ElementKind, FunctionId, FunctionKind as TreeKind, Placement, PropertyKey,
};
use crate::builtins::shared;
use crate::code::{FunctionKind, Member, Op};
use crate::compile::variable::Store;

impl Compiler<'_> {
    /// Evaluates a class into `dst`.
    pub(crate) fn class(&mut self, id: ClassId, name: Option<ClassName>, dst: u8) {
        let class = *self.tree.class(id);
        let mark = self.emit.mark();
        self.enter_scope(class.scope);
        self.private_names(id);
        // The class's own names are variables although an expression may be under way around it.
        let locals = self.emit.locals();
        self.emit.set_locals();
        // Constructor and prototype, neighbours.
        let ctor = self.emit.alloc_many(2);
        // The parent and its `prototype`, neighbours too.
        let heritage = self.emit.alloc_many(2);
        match class.heritage {
            Some(e) => {
                self.expr_to(e, heritage);
                self.emit.at(class.span.start);
                let check = shared("classHeritage").unwrap_or_default();
                self.emit.emit(Op::CallHelper(heritage + 1, heritage, 1, check));
            }
            None => self.emit.emit(Op::LoadHole(heritage)),
        }
        let function = match class.constructor {
            Some(f) => f.index() as u32,
            None => self.default_constructor(id),
        };
        let given = match (class.name, name) {
            (Some(atom), _) => Some(self.string(atom)),
            (None, Some(ClassName::Constant(k))) => Some(k),
            (None, Some(ClassName::Register(_)) | None) => None,
        };
        if let Some(k) = given {
            self.names.insert(function, k);
        }
        self.spans.insert(function, (class.span.start, class.span.end));
        self.emit.at(class.span.start);
        self.emit.emit(Op::Class(ctor, heritage, self.base.functions + function));
        if let (None, Some(ClassName::Register(key))) = (class.name, name) {
            self.emit.emit(Op::SetName(ctor, key, Member::Field));
        }
        for element in self.tree.list(class.elements) {
            let mark = self.emit.mark();
            self.element(element, ctor);
            self.emit.release(mark);
        }
        if let Some(f) = class.instance_fields {
            let r = self.emit.alloc();
            self.closure(f, r);
            self.emit.emit(Op::SetHome(r, ctor + 1));
            self.emit.emit(Op::SetFields(ctor, r));
        }
        if let Some(b) = class.inner_name {
            let copy = self.emit.alloc();
            self.emit.emit(Op::Move(copy, ctor));
            self.initialise(b, copy);
        }
        if let Some(f) = class.static_fields {
            let at = self.emit.alloc_many(2);
            self.closure(f, at);
            self.emit.emit(Op::SetHome(at, ctor));
            self.emit.emit(Op::Move(at + 1, ctor));
            self.emit.emit(Op::Call(at, at, 0));
        }
        self.emit.emit(Op::Move(dst, ctor));
        self.emit.release(mark);
        self.emit.restore_locals(locals);
    }

    /// A fresh private key for each private name of the class.
    fn private_names(&mut self, id: ClassId) {
        let scope = *self.tree.scope(self.tree.class(id).scope);
        for &b in self.tree.list(scope.bindings) {
            let binding = *self.tree.binding(b);
            if binding.kind == BindingKind::Private {
                let mark = self.emit.mark();
                let r = self.emit.alloc();
                let k = self.string(binding.name);
                self.emit.emit(Op::NewPrivate(r, k));
                self.emit.emit(Op::Nop);
                self.initialise(b, r);
                self.emit.release(mark);
            }
        }
    }

    fn element(&mut self, element: &crate::ast::ClassElement, ctor: u8) {
        let target = match element.placement {
            Placement::Instance => ctor + 1,
            Placement::Static => ctor,
        };
        let (function, member) = match element.kind {
            ElementKind::Method(f) => (f, Member::Method),
            ElementKind::Getter(f) => (f, Member::Getter),
            ElementKind::Setter(f) => (f, Member::Setter),
            ElementKind::Field(_) => {
                // A computed field key is evaluated now and used when the field is initialised.
                if let (PropertyKey::Computed(_), Some(held)) = (element.key, element.held) {
                    let k = self.key(element.key);
                    self.emit.emit(Op::Nop);
                    self.write(held.store, k, Store::Initialise);
                }
                return;
            }
            ElementKind::StaticBlock { .. } => return,
        };
        if let (PropertyKey::Private(name), Some(held)) = (element.key, element.held) {
            // A private method of instances waits for the initialiser, which installs it.
            let text = self.tree.text(self.tree.reference(name).name).to_string_lossy();
            let k = match member {
                Member::Getter => self.text(&format!("get {text}")),
                Member::Setter => self.text(&format!("set {text}")),
                _ => self.text(&text),
            };
            self.names.insert(function.index() as u32, k);
            let f = self.emit.alloc();
            self.closure(function, f);
            self.emit.emit(Op::SetHome(f, target));
            self.write(held.store, f, Store::Initialise);
            return;
        }
        let key = self.key(element.key);
        let f = self.emit.alloc();
        self.name_member(function, element.key, member);
        self.closure(function, f);
        self.emit.emit(Op::SetHome(f, target));
        self.emit.emit(Op::SetName(f, key, member));
        match element.key {
            PropertyKey::Private(_) => self.emit.emit(Op::InitPrivate(ctor, key, f, member)),
            _ => self.emit.emit(Op::InitMember(target, key, f, member)),
        }
    }

    /// The name of a method that is known before it runs, for tracebacks.
    pub(crate) fn name_member(&mut self, function: FunctionId, key: PropertyKey, member: Member) {
        let name = match key {
            PropertyKey::Name(atom) => self.tree.text(atom).to_string_lossy(),
            PropertyKey::Private(r) => self.tree.text(self.tree.reference(r).name).to_string_lossy(),
            PropertyKey::Number(_) | PropertyKey::Computed(_) => return,
        };
        let k = match member {
            Member::Getter | Member::LiteralGetter => self.text(&format!("get {name}")),
            Member::Setter | Member::LiteralSetter => self.text(&format!("set {name}")),
            Member::Field | Member::Method | Member::LiteralMethod => self.text(&name),
        };
        self.names.insert(function.index() as u32, k);
    }

    /// The body of an initialiser: the fields (and static blocks) of one placement, in order, on `this`.
    pub(crate) fn fields(&mut self, id: ClassId, kind: TreeKind) {
        let wanted = match kind {
            TreeKind::StaticFields => Placement::Static,
            _ => Placement::Instance,
        };
        let class = *self.tree.class(id);
        self.emit.set_locals();
        for element in self.tree.list(class.elements) {
            if element.placement == wanted {
                self.private_method(element);
            }
        }
        for element in self.tree.list(class.elements) {
            if element.placement != wanted {
                continue;
            }
            let mark = self.emit.mark();
            match element.kind {
                ElementKind::Field(value) => self.field(element, value),
                ElementKind::StaticBlock { scope, body } => {
                    self.enter_scope(scope);
                    self.emit.set_locals();
                    self.statements(body);
                }
                ElementKind::Method(_) | ElementKind::Getter(_) | ElementKind::Setter(_) => {}
            }
            self.emit.release(mark);
            self.emit.set_locals();
        }
    }

    /// Installs a private method of instances, which waited since the class was defined.
    fn private_method(&mut self, element: &crate::ast::ClassElement) {
        let member = match element.kind {
            ElementKind::Method(_) => Member::Method,
            ElementKind::Getter(_) => Member::Getter,
            ElementKind::Setter(_) => Member::Setter,
            ElementKind::Field(_) | ElementKind::StaticBlock { .. } => return,
        };
        let Some(held) = element.held else { return };
        let mark = self.emit.mark();
        let key = self.key(element.key);
        let f = self.emit.alloc();
        self.read(held.load, Some(f));
        self.emit.emit(Op::InitPrivate(0, key, f, member));
        self.emit.release(mark);
    }

    fn field(&mut self, element: &crate::ast::ClassElement, value: Option<crate::ast::ExprId>) {
        let key = match (element.key, element.held) {
            (PropertyKey::Computed(_), Some(held)) => {
                let d = self.emit.alloc();
                self.read(held.load, Some(d))
            }
            (key, _) => self.key(key),
        };
        let v = match (value, element.key) {
            (None, _) => {
                let d = self.emit.alloc();
                self.emit.emit(Op::LoadUndef(d));
                d
            }
            (Some(e), PropertyKey::Name(atom)) => {
                let k = self.string(atom);
                self.named(e, k)
            }
            (Some(e), _) => self.named_by_key(e, key),
        };
        self.emit.emit(match element.key {
            PropertyKey::Private(_) => Op::InitPrivate(0, key, v, Member::Field),
            _ => Op::InitElem(0, key, v),
        });
    }

    /// A constructor that only initialises fields, or passes its arguments on.
    fn default_constructor(&mut self, id: ClassId) -> u32 {
        let class = *self.tree.class(id);
        let mut emit = Emitter::new();
        let this = emit.alloc();
        let kind = match class.heritage {
            Some(_) => {
                let target = emit.alloc();
                // The call area must be the top of the frame, so what outlives it is below.
                let at = emit.alloc_many(3);
                emit.emit(Op::Rest(at + 2, 0));
                emit.emit(Op::NewTarget(target));
                emit.emit(Op::Callee(at));
                emit.emit(Op::SuperCallSpread(this, at, target));
                emit.emit(Op::Callee(at));
                emit.emit(Op::InitFields(at, this));
                emit.emit(Op::Ret(this));
                FunctionKind::DerivedConstructor
            }
            None => {
                let r = emit.alloc();
                emit.emit(Op::Callee(r));
                emit.emit(Op::InitFields(r, this));
                FunctionKind::BaseConstructor
            }
        };
        let shape = Shape {
            name: None,
            kind,
            parameters: 0,
            length: 0,
            span: (class.span.start, class.span.end),
            hidden: self.source == Source::Prelude,
        };
        let (function, code) = emit.finish(shape);
        let index = self.functions.len().max(self.tree.functions().len());
        self.install(index, function, &code);
        index as u32
    }
}
