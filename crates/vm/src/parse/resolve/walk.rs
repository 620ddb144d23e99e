//! The walk over the tree. Its recursion is bounded as the parser's was; left spines and `else if` are loops.

use super::Resolver;
use super::names::{Implicit, Use};
use crate::ast::{
    BindingKind, Body, ClassElement, ClassId, DeclareKind, ElementKind, Expr, ExprId, FunctionId, List,
    LoopHead, LoopTarget, Pattern, PatternId, Placement, PropertyKey, PropertyKind, ScopeId, Stmt, StmtId,
    TemplateId,
};

impl Resolver<'_> {
    /// A function that comes to be when execution passes `exists_from` in the function around it.
    pub(super) fn function(&mut self, id: FunctionId, exists_from: u32, class_scope: Option<ScopeId>) {
        self.push_frame(id, exists_from, class_scope);
        let function = *self.program.function(id);
        let around = self.enter_where(function.scope, |_| false);
        if let Some(own) = function.self_name {
            let name = self.program.bindings[own.index()].name;
            self.activate(name, own);
        }
        self.activate_where(function.scope, |_| true);
        for i in function.params.range() {
            let param = self.program.lists.pattern_elements[i];
            self.optional_pattern(param.target, Use::Initialise);
            self.optional_expr(param.default);
        }
        self.optional_pattern(function.rest, Use::Initialise);
        let params = (function.body_scope != function.scope).then(|| self.enter(function.body_scope));
        match function.body {
            Body::Statements(list) => self.stmts(list),
            Body::Expr(expr) => self.expr(expr),
            // Visited with the class.
            Body::Fields(_) => {}
        }
        if let Some(params) = params {
            self.leave(params);
        }
        self.leave(around);
        self.pop_frame();
    }

    fn stmts(&mut self, list: List<StmtId>) {
        for i in list.range() {
            self.stmt(self.program.lists.stmts[i]);
        }
    }

    fn stmt(&mut self, id: StmtId) {
        match self.program.stmt(id) {
            Stmt::Empty | Stmt::Debugger | Stmt::Break(_) | Stmt::Continue(_) => {}
            Stmt::Expr(expr) | Stmt::Throw(expr) => self.expr(expr),
            Stmt::Return(expr) => self.optional_expr(expr),
            Stmt::Declare { kind, declarators } => {
                for i in declarators.range() {
                    let declarator = self.program.lists.declarators[i];
                    let how = match kind {
                        DeclareKind::Var if declarator.value.is_some() => Use::Write,
                        DeclareKind::Var => Use::Read,
                        DeclareKind::Let | DeclareKind::Const => Use::Initialise,
                    };
                    self.pattern(declarator.target, how);
                    self.optional_expr(declarator.value);
                }
            }
            Stmt::Function(function) => {
                // Hoisted: it exists from the start of its scope.
                let from = self.scope.map_or(0, |scope| self.declarations.scopes[scope.index()].start);
                self.function(function, from, None);
            }
            Stmt::Class { class, binding } => {
                self.class(class);
                self.name(binding, Use::Initialise);
            }
            Stmt::Block { scope, body } => {
                let outer = self.enter(scope);
                self.stmts(body);
                self.leave(outer);
            }
            Stmt::If { .. } => self.if_chain(id),
            Stmt::For(id) => self.for_stmt(id),
            Stmt::While { test, body } | Stmt::DoWhile { body, test } => {
                self.expr(test);
                self.stmt(body);
            }
            Stmt::Switch { subject, scope, cases } => {
                self.expr(subject);
                let outer = self.enter(scope);
                for i in cases.range() {
                    let case = self.program.lists.cases[i];
                    self.optional_expr(case.test);
                    self.stmts(case.body);
                }
                self.leave(outer);
            }
            Stmt::Labelled { body, .. } => self.stmt(body),
            Stmt::Try(id) => {
                let stmt = self.program.try_stmt(id);
                self.stmt(stmt.block);
                if let Some(handler) = stmt.handler {
                    let outer = self.enter(handler.scope);
                    self.optional_pattern(handler.param, Use::Initialise);
                    self.stmt(handler.body);
                    self.leave(outer);
                }
                if let Some(finalizer) = stmt.finalizer {
                    self.stmt(finalizer);
                }
            }
        }
    }

    fn if_chain(&mut self, first: StmtId) {
        let mut next = Some(first);
        while let Some(id) = next {
            let Stmt::If { test, then, otherwise } = self.program.stmt(id) else {
                self.stmt(id);
                return;
            };
            self.expr(test);
            self.stmt(then);
            next = otherwise;
        }
    }

    fn for_stmt(&mut self, id: crate::ast::LoopId) {
        let stmt = self.program.for_stmt(id);
        let outer = self.enter(stmt.scope);
        match stmt.head {
            LoopHead::Classic { init, test, update } => {
                if let Some(init) = init {
                    self.stmt(init);
                }
                self.optional_expr(test);
                self.optional_expr(update);
            }
            LoopHead::In { target, object: source }
            | LoopHead::Of { target, iterable: source }
            | LoopHead::AwaitOf { target, iterable: source } => {
                match target {
                    LoopTarget::Declare(DeclareKind::Var, pattern) | LoopTarget::Assign(pattern) => {
                        self.pattern(pattern, Use::Write);
                    }
                    LoopTarget::Declare(DeclareKind::Let | DeclareKind::Const, pattern) => {
                        self.pattern(pattern, Use::Initialise);
                    }
                }
                self.expr(source);
            }
        }
        self.stmt(stmt.body);
        self.leave(outer);
    }

    fn optional_expr(&mut self, expr: Option<ExprId>) {
        if let Some(expr) = expr {
            self.expr(expr);
        }
    }

    fn optional_pattern(&mut self, pattern: Option<PatternId>, how: Use) {
        if let Some(pattern) = pattern {
            self.pattern(pattern, how);
        }
    }

    fn exprs(&mut self, list: List<ExprId>) {
        for i in list.range() {
            self.expr(self.program.lists.exprs[i]);
        }
    }

    fn args(&mut self, args: crate::ast::ArgsId) {
        self.exprs(self.program.args[args.0 as usize]);
    }

    fn expr(&mut self, id: ExprId) {
        let mut id = id;
        // Each turn goes one step down the first operand; the others are visited on the way.
        loop {
            id = match self.program.expr(id) {
                Expr::Null
                | Expr::Bool(_)
                | Expr::Number(_)
                | Expr::BigInt(_)
                | Expr::String(_)
                | Expr::Regex(_)
                | Expr::Hole
                | Expr::Yield(None) => return,
                Expr::Ident(name) => return self.name(name, Use::Read),
                Expr::This(this) => {
                    self.implicit(Implicit::This, this);
                    return;
                }
                Expr::NewTarget(target) => {
                    self.implicit(Implicit::NewTarget, target);
                    return;
                }
                Expr::Template(template) => return self.template(template),
                Expr::Array(list) | Expr::Sequence(list) => return self.exprs(list),
                Expr::Object(list) => return self.object(list),
                Expr::Function(function) => {
                    let from = self.program.function(function).span.start;
                    return self.function(function, from, None);
                }
                Expr::Class(class) => return self.class(class),
                Expr::SuperMember(place) => {
                    let member = self.program.super_member(place);
                    self.implicit(Implicit::Callee, member.callee);
                    self.implicit(Implicit::This, member.this);
                    return self.key(member.key);
                }
                Expr::SuperCall(place) => {
                    let call = self.program.super_call(place);
                    self.implicit(Implicit::Callee, call.callee);
                    self.implicit(Implicit::NewTarget, call.new_target);
                    self.implicit(Implicit::This, call.this);
                    return self.exprs(call.args);
                }
                Expr::Intrinsic { args, .. } => return self.args(args),
                Expr::Assign { target, value } => {
                    self.pattern(target, Use::Write);
                    value
                }
                Expr::AssignOp { target, value, .. } | Expr::AssignLogical { target, value, .. } => {
                    self.target(target);
                    value
                }
                Expr::Update { target, .. } => return self.target(target),
                Expr::Conditional { test, yes, no } => {
                    self.expr(yes);
                    self.expr(no);
                    test
                }
                Expr::PrivateIn { name, object } => {
                    self.private_name(name);
                    object
                }
                Expr::Binary { left, right, .. } | Expr::Logical { left, right, .. } => {
                    self.expr(right);
                    left
                }
                Expr::Member { object, .. } => object,
                Expr::Index { object, index, .. } => {
                    self.expr(index);
                    object
                }
                Expr::PrivateMember { object, name, .. } => {
                    self.private_name(name);
                    object
                }
                Expr::Call { callee, args, .. } | Expr::New { callee, args } => {
                    self.args(args);
                    callee
                }
                Expr::TaggedTemplate { tag, template } => {
                    self.template(template);
                    tag
                }
                Expr::Paren(inner)
                | Expr::Spread(inner)
                | Expr::Delete(inner)
                | Expr::Await(inner)
                | Expr::YieldStar(inner)
                | Expr::Yield(Some(inner))
                | Expr::OptionalChain(inner)
                | Expr::Unary { operand: inner, .. } => inner,
            };
        }
    }

    /// What an update or compound assignment changes.
    fn target(&mut self, id: ExprId) {
        let inner = self.program.unwrap_parens(id);
        match self.program.expr(inner) {
            Expr::Ident(name) => self.name(name, Use::Write),
            _ => self.expr(inner),
        }
    }

    fn template(&mut self, id: TemplateId) {
        self.exprs(self.program.template(id).substitutions);
    }

    fn object(&mut self, list: List<crate::ast::Property>) {
        for i in list.range() {
            let property = self.program.lists.properties[i];
            if property.kind != PropertyKind::Spread {
                self.key(property.key);
            }
            self.expr(property.value);
        }
    }

    fn key(&mut self, key: PropertyKey) {
        match key {
            PropertyKey::Name(_) | PropertyKey::Number(_) => {}
            PropertyKey::Computed(expr) => self.expr(expr),
            PropertyKey::Private(name) => self.private_name(name),
        }
    }

    fn pattern(&mut self, id: PatternId, how: Use) {
        match self.program.pattern(id) {
            Pattern::Name(name) | Pattern::ParenName(name) => self.name(name, how),
            Pattern::Member(expr) => self.expr(expr),
            Pattern::Array { elements, rest } => {
                for i in elements.range() {
                    let element = self.program.lists.pattern_elements[i];
                    self.optional_pattern(element.target, how);
                    self.optional_expr(element.default);
                }
                self.optional_pattern(rest, how);
            }
            Pattern::Object { properties, rest } => {
                for i in properties.range() {
                    let property = self.program.lists.pattern_properties[i];
                    self.key(property.key);
                    self.pattern(property.target, how);
                    self.optional_expr(property.default);
                }
                self.optional_pattern(rest, how);
            }
        }
    }

    fn class(&mut self, id: ClassId) {
        let class = *self.program.class(id);
        // The heritage sees the class's name but not its private names.
        let outer = self.enter_where(class.scope, |binding| binding.kind == BindingKind::ClassName);
        self.optional_expr(class.heritage);
        self.activate_where(class.scope, |binding| binding.kind == BindingKind::Private);
        let start = class.span.start;
        if let Some(constructor) = class.constructor {
            self.function(constructor, start, Some(class.scope));
        }
        for i in class.elements.range() {
            let element = self.program.lists.elements[i];
            self.element_at_definition(element, class.scope, start);
        }
        for (function, placement) in
            [(class.instance_fields, Placement::Instance), (class.static_fields, Placement::Static)]
        {
            let Some(function) = function else { continue };
            self.push_frame(function, start, Some(class.scope));
            let around = self.enter(self.program.function(function).scope);
            for i in class.elements.range() {
                let element = self.program.lists.elements[i];
                if element.placement == placement {
                    self.element_at_initialisation(element);
                }
            }
            self.leave(around);
            self.pop_frame();
        }
        self.leave(outer);
    }

    /// What an element does when the class is defined.
    fn element_at_definition(&mut self, element: ClassElement, class_scope: ScopeId, start: u32) {
        match element.kind {
            ElementKind::Method(function) | ElementKind::Getter(function) | ElementKind::Setter(function) => {
                // A private method of instances is installed by the initialiser, which needs the key there.
                if element.held.is_none() {
                    self.key(element.key);
                }
                self.function(function, start, Some(class_scope));
            }
            ElementKind::Field(_) => {
                if let PropertyKey::Computed(key) = element.key {
                    self.expr(key);
                }
            }
            ElementKind::StaticBlock { .. } => {}
        }
        if let Some(held) = element.held {
            self.held(held.store);
        }
    }

    /// What an element does when the fields are initialised.
    fn element_at_initialisation(&mut self, element: ClassElement) {
        match element.kind {
            ElementKind::Method(_) | ElementKind::Getter(_) | ElementKind::Setter(_) => {
                if element.held.is_some() {
                    self.key(element.key);
                }
            }
            ElementKind::Field(value) => {
                if let PropertyKey::Private(name) = element.key {
                    self.private_name(name);
                }
                self.optional_expr(value);
            }
            ElementKind::StaticBlock { scope, body } => {
                let outer = self.enter(scope);
                self.stmts(body);
                self.leave(outer);
            }
        }
        if let Some(held) = element.held {
            self.held(held.load);
        }
    }
}
