//! Functions: parameters, bodies, and what may stand in which.

use super::parser::{AwaitMeans, Context, Parsed, Parser};
use super::pattern::Param;
use super::primary::span_of;
use super::token::{T, word};
use crate::ast::{
    Atom, BindingKind, Body, Expr, ExprId, Flavour, Function, FunctionId, FunctionKind, List, Pattern,
    PatternElement, PatternId, ScopeId, ScopeKind, Span, Stmt, StmtId,
};
use crate::parse::Permission;

/// What is known of a function before its parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) kind: FunctionKind,
    pub(super) flavour: Flavour,
    pub(super) name: Option<Atom>,
    /// A function expression's name, which it sees itself.
    pub(super) own_name: Option<(Atom, Span)>,
    pub(super) start: u32,
}

/// Parameters, before their names are declared.
struct Params {
    list: Vec<Param>,
    rest: Option<PatternId>,
}

impl Parser<'_> {
    /// `function …` as an expression, at the word `function`.
    pub(super) fn function_expr(&mut self, start: u32, flavour: Flavour) -> Parsed<ExprId> {
        let flavour = self.function_star(flavour)?;
        let mut own_name = None;
        if !self.at(T::ParenOpen) {
            let token = self.tok;
            // Its own name is read as if inside it: `async function await() {}` is wrong as an expression.
            let outer = self.context;
            self.context.await_means = self.await_inside(flavour);
            self.check_binding_name(token)?;
            self.context = outer;
            own_name = Some((token.atom, span_of(token)));
            self.advance()?;
        }
        let name = own_name.map(|(name, _)| name);
        let function =
            self.function(Shape { kind: FunctionKind::Ordinary, flavour, name, own_name, start })?;
        Ok(self.add_expr(Expr::Function(function), start))
    }

    /// `function …` as a declaration, at the word `function`.
    pub(super) fn function_declaration(&mut self, start: u32, flavour: Flavour) -> Parsed<StmtId> {
        let flavour = self.function_star(flavour)?;
        let token = self.tok;
        self.check_binding_name(token)?;
        let binding = self.declare_function(token.atom, span_of(token));
        self.advance()?;
        let shape =
            Shape { kind: FunctionKind::Ordinary, flavour, name: Some(token.atom), own_name: None, start };
        let function = self.function(shape)?;
        self.hoist(binding, function);
        Ok(self.add_stmt(Stmt::Function(function), start))
    }

    fn function_star(&mut self, flavour: Flavour) -> Parsed<Flavour> {
        self.expect(T::Function)?;
        let is_generator = self.eat(T::Star)?;
        Ok(match (flavour, is_generator) {
            (Flavour::Plain, true) => Flavour::Generator,
            (Flavour::Async, true) => Flavour::AsyncGenerator,
            (flavour, _) => flavour,
        })
    }

    /// A function from its parameters on.
    pub(super) fn function(&mut self, shape: Shape) -> Parsed<FunctionId> {
        self.nested(|p| {
            let outer = p.enter_function(shape);
            p.context.in_params = true;
            let params_start = p.tok.start;
            let params = p.params(shape.kind)?;
            p.context.in_params = false;
            let id = p.finish_function(shape, params, params_start)?;
            p.leave_function(outer);
            Ok(id)
        })
    }

    /// An arrow function, at its `=>`.
    pub(super) fn arrow(
        &mut self,
        start: u32,
        flavour: Flavour,
        list: Vec<Param>,
        rest: Option<PatternId>,
    ) -> Parsed<ExprId> {
        let shape = Shape { kind: FunctionKind::Arrow, flavour, name: None, own_name: None, start };
        let in_operator = self.context.in_operator;
        let outer = self.enter_function(shape);
        self.advance()?;
        if !self.at(T::BraceOpen) {
            // `=> value` has the `in` rule of the place where the arrow stands.
            self.context.in_operator = in_operator;
        }
        let function = self.finish_function(shape, Params { list, rest }, start)?;
        self.leave_function(outer);
        Ok(self.add_expr(Expr::Function(function), start))
    }

    fn await_inside(&self, flavour: Flavour) -> AwaitMeans {
        match flavour {
            Flavour::Async | Flavour::AsyncGenerator => AwaitMeans::Operator,
            Flavour::Plain | Flavour::Generator => self.await_by_default(),
        }
    }

    /// What `await` means in a function that is not async.
    pub(super) fn await_by_default(&self) -> AwaitMeans {
        match self.options.top_level_await {
            Permission::Allowed => AwaitMeans::Nothing,
            Permission::Refused => AwaitMeans::Name,
        }
    }

    pub(super) fn enter_function(&mut self, shape: Shape) -> Outer {
        let outer = Outer { context: self.context, suspension: self.suspension, await_name: self.await_name };
        let old = self.context;
        let is_method = matches!(
            shape.kind,
            FunctionKind::Method
                | FunctionKind::Getter
                | FunctionKind::Setter
                | FunctionKind::BaseConstructor
                | FunctionKind::DerivedConstructor
                | FunctionKind::InstanceFields
                | FunctionKind::StaticFields
        );
        let is_arrow = shape.kind == FunctionKind::Arrow;
        let is_fields = matches!(shape.kind, FunctionKind::InstanceFields | FunctionKind::StaticFields);
        self.context = Context {
            in_generator: matches!(shape.flavour, Flavour::Generator | Flavour::AsyncGenerator),
            await_means: self.await_inside(shape.flavour),
            in_params: false,
            return_allowed: !is_fields,
            super_member: is_method || (is_arrow && old.super_member),
            super_call: shape.kind == FunctionKind::DerivedConstructor || (is_arrow && old.super_call),
            new_target: !is_arrow || old.new_target,
            no_arguments: is_fields || (is_arrow && old.no_arguments),
            in_loop: false,
            in_switch: false,
            in_operator: true,
            label_base: self.labels.len(),
            at_top: false,
        };
        outer
    }

    pub(super) fn leave_function(&mut self, outer: Outer) {
        self.context = outer.context;
        self.suspension = outer.suspension;
        self.await_name = outer.await_name;
    }

    fn params(&mut self, kind: FunctionKind) -> Parsed<Params> {
        self.expect(T::ParenOpen)?;
        let start = self.prev_end - 1;
        let mut list = Vec::new();
        let mut rest = None;
        while !self.at(T::ParenClose) {
            if self.eat(T::Ellipsis)? {
                rest = Some(self.binding_target()?);
                break;
            }
            list.push(self.binding_element()?);
            if !self.at(T::ParenClose) {
                self.expect(T::Comma)?;
            }
        }
        self.expect(T::ParenClose)?;
        let span = self.span_from(start);
        match kind {
            FunctionKind::Getter if !list.is_empty() || rest.is_some() => {
                self.problem(span, "a getter has no parameters");
            }
            FunctionKind::Setter if list.len() != 1 || rest.is_some() => {
                self.problem(span, "a setter has exactly one parameter");
            }
            _ => {}
        }
        Ok(Params { list, rest })
    }

    /// Declares the parameters and reads the body.
    fn finish_function(&mut self, shape: Shape, params: Params, params_start: u32) -> Parsed<FunctionId> {
        let elements: Vec<PatternElement> = params.list.iter().map(|param| param.element).collect();
        let has_expressions = elements.iter().any(|element| self.element_has_expression(element))
            || params.rest.is_some_and(|rest| self.has_expression(rest));
        let is_simple = params.rest.is_none()
            && elements.iter().all(|element| {
                element.default.is_none()
                    && element.target.is_some_and(|t| matches!(self.program.pattern(t), Pattern::Name(_)))
            });
        let length = elements.iter().take_while(|element| element.default.is_none()).count() as u32;
        let scope = self.open_scope(ScopeKind::Function, params_start);
        let self_name =
            shape.own_name.map(|(name, span)| self.add_binding(name, BindingKind::SelfName, scope, span));
        for param in &params.list {
            if let Some(target) = param.element.target {
                let declared = self.declare_pattern(target, BindingKind::Param);
                if has_expressions {
                    self.initialised(declared, param.end);
                }
            }
        }
        if let Some(rest) = params.rest {
            let declared = self.declare_pattern(rest, BindingKind::Param);
            if has_expressions {
                self.initialised(declared, self.prev_end);
            }
        }
        let body_scope =
            if has_expressions { self.open_scope(ScopeKind::Body, self.tok.start) } else { scope };
        let id = self.reserve_function(shape, scope);
        self.program.functions[id.index()].simple_params = is_simple;
        let body = if shape.kind == FunctionKind::Arrow && !self.at(T::BraceOpen) {
            Body::Expr(self.assign()?)
        } else {
            Body::Statements(self.function_body(id)?)
        };
        if has_expressions {
            self.close_scope();
        }
        self.close_scope();
        let list = self.add_list(&elements);
        let span = self.span_from(shape.start);
        let function = &mut self.program.functions[id.index()];
        function.params = list;
        function.rest = params.rest;
        function.length = length;
        function.body = body;
        function.body_scope = body_scope;
        function.self_name = self_name;
        function.span = span;
        Ok(id)
    }

    /// The id of a function that is still being read.
    pub(super) fn reserve_function(&mut self, shape: Shape, scope: ScopeId) -> FunctionId {
        let id = FunctionId::from_index(self.program.functions.len());
        self.program.functions.push(Function {
            name: shape.name,
            kind: shape.kind,
            flavour: shape.flavour,
            params: List::EMPTY,
            rest: None,
            simple_params: true,
            length: 0,
            body: Body::Statements(List::EMPTY),
            scope,
            body_scope: scope,
            self_name: None,
            captures: List::EMPTY,
            this: None,
            arguments: None,
            new_target: None,
            callee: None,
            parent: None,
            span: Span::new(shape.start, shape.start),
        });
        id
    }

    fn function_body(&mut self, function: FunctionId) -> Parsed<List<StmtId>> {
        let simple_params = self.program.function(function).simple_params;
        self.expect(T::BraceOpen)?;
        let base = self.stmt_stack.len();
        let mut in_prologue = true;
        while !self.at(T::BraceClose) {
            let token = self.tok;
            let stmt = self.statement_or_declaration()?;
            self.stmt_stack.push(stmt);
            in_prologue &= self.is_directive(stmt);
            if in_prologue && !simple_params && token.atom == word::USE_STRICT && !token.escaped {
                self.problem(
                    span_of(token),
                    "\"use strict\" is not allowed beside parameters that are not plain names",
                );
            }
        }
        self.advance()?;
        Ok(self.take_stmts(base))
    }

    fn is_directive(&self, stmt: StmtId) -> bool {
        match self.program.stmt(stmt) {
            Stmt::Expr(expr) => matches!(self.program.expr(expr), Expr::String(_)),
            _ => false,
        }
    }
}

/// What an inner function hides of the outer one while it is read.
pub(super) struct Outer {
    context: Context,
    suspension: Option<Span>,
    await_name: Option<Span>,
}
