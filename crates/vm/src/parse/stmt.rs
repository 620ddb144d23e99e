//! Statements and declarations.

use super::parser::{Label, Parsed, Parser};
use super::primary::span_of;
use super::token::{T, word};
use crate::ast::{
    Atom, BindingKind, Case, Catch, Declarator, DeclareKind, Expr, ExprId, Flavour, List, Pattern, ScopeKind,
    Span, Stmt, StmtId, Try, TryId,
};

impl Parser<'_> {
    /// What may stand in a list of statements.
    pub(super) fn statement_or_declaration(&mut self) -> Parsed<StmtId> {
        let (start, kind) = (self.tok.start, self.tok.kind);
        match kind {
            T::Function => self.function_declaration(start, Flavour::Plain),
            T::Class => self.class_declaration(),
            T::Const => self.lexical_declaration(DeclareKind::Const),
            T::Ident if self.at_word(word::LET) => self.lexical_declaration(DeclareKind::Let),
            T::Ident if self.at_word(word::ASYNC) && self.at_async_function()? => {
                self.advance()?;
                self.function_declaration(start, Flavour::Async)
            }
            _ => self.statement(),
        }
    }

    fn at_async_function(&mut self) -> Parsed<bool> {
        let next = self.peek()?;
        Ok(next.kind == T::Function && !next.newline_before)
    }

    /// A statement that is no declaration, as the body of `if`, a loop or a label.
    pub(super) fn statement(&mut self) -> Parsed<StmtId> {
        self.nested(Self::statement_inner)
    }

    fn statement_inner(&mut self) -> Parsed<StmtId> {
        let (start, kind) = (self.tok.start, self.tok.kind);
        let stmt = match kind {
            T::BraceOpen => return self.block(),
            T::Semicolon => {
                self.advance()?;
                Stmt::Empty
            }
            T::Var => {
                self.advance()?;
                let declarators = self.declarators(DeclareKind::Var)?;
                self.semicolon()?;
                Stmt::Declare { kind: DeclareKind::Var, declarators }
            }
            T::If => self.if_statement()?,
            T::For => return self.for_statement(),
            T::While => {
                self.mark_loop_labels();
                self.advance()?;
                let test = self.parenthesised()?;
                let body = self.loop_body()?;
                Stmt::While { test, body }
            }
            T::Do => self.do_while()?,
            T::Switch => self.switch_statement()?,
            T::Try => self.try_statement()?,
            T::Return => self.return_statement()?,
            T::Throw => {
                self.advance()?;
                if self.tok.newline_before {
                    return self.fail(self.span(), "what is thrown must start on the same line as `throw`");
                }
                let value = self.expression()?;
                self.semicolon()?;
                Stmt::Throw(value)
            }
            T::Break | T::Continue => self.jump_statement()?,
            T::Debugger => {
                self.advance()?;
                self.semicolon()?;
                Stmt::Debugger
            }
            T::With => return self.fail_refused(self.span(), "`with` does not exist in strict code"),
            T::Import => return self.import_statement(),
            T::Export => {
                return self.fail_refused(self.span(), "`export` is not available: scripts have no modules");
            }
            T::Function | T::Class | T::Const => {
                return self.fail(self.span(), "a declaration cannot stand here; put it in a block");
            }
            T::Ident if self.at_word(word::ASYNC) && self.at_async_function()? => {
                return self.fail(self.span(), "a declaration cannot stand here; put it in a block");
            }
            _ => return self.expression_statement(),
        };
        Ok(self.add_stmt(stmt, start))
    }

    fn import_statement(&mut self) -> Parsed<StmtId> {
        self.fail_refused(self.span(), "`import` is not available: scripts have no modules")
    }

    fn expression_statement(&mut self) -> Parsed<StmtId> {
        let start = self.tok.start;
        let expr = self.expression()?;
        if self.at(T::Colon)
            && let Expr::Ident(name) = self.program.expr(expr)
        {
            let label = *self.program.reference(name);
            return self.labelled(label.name, label.span);
        }
        self.semicolon()?;
        Ok(self.add_stmt(Stmt::Expr(expr), start))
    }

    fn labelled(&mut self, name: Atom, span: Span) -> Parsed<StmtId> {
        self.advance()?;
        if self.labels[self.context.label_base..].iter().any(|label| label.name == name) {
            let text = self.program.text(name).to_string_lossy();
            self.problem(span, &format!("the label `{text}` is already in use here"));
        }
        self.labels.push(Label { name, start: span.start, body_start: self.tok.start, is_loop: false });
        let body = self.statement()?;
        self.labels.pop();
        Ok(self.add_stmt(Stmt::Labelled { label: name, body }, span.start))
    }

    /// The labels right before this loop can be continued.
    pub(super) fn mark_loop_labels(&mut self) {
        let mut at = self.tok.start;
        for label in self.labels[self.context.label_base..].iter_mut().rev() {
            if label.body_start != at {
                break;
            }
            label.is_loop = true;
            at = label.start;
        }
    }

    /// `{…}`
    pub(super) fn block(&mut self) -> Parsed<StmtId> {
        let start = self.tok.start;
        let scope = self.open_scope(ScopeKind::Block, start);
        let body = self.block_body()?;
        self.close_scope();
        Ok(self.add_stmt(Stmt::Block { scope, body }, start))
    }

    /// Statements in braces; the caller has made the scope.
    pub(super) fn block_body(&mut self) -> Parsed<List<StmtId>> {
        self.expect(T::BraceOpen)?;
        let base = self.stmt_stack.len();
        while !self.at(T::BraceClose) {
            if self.at(T::End) {
                return self.unexpected("`}`");
            }
            let stmt = self.statement_or_declaration()?;
            self.stmt_stack.push(stmt);
        }
        self.advance()?;
        Ok(self.take_stmts(base))
    }

    pub(super) fn parenthesised(&mut self) -> Parsed<ExprId> {
        self.expect(T::ParenOpen)?;
        let expr = self.expression()?;
        self.expect(T::ParenClose)?;
        Ok(expr)
    }

    pub(super) fn loop_body(&mut self) -> Parsed<StmtId> {
        let outer = std::mem::replace(&mut self.context.in_loop, true);
        let body = self.statement()?;
        self.context.in_loop = outer;
        Ok(body)
    }

    /// `if`, with its `else if`s in a loop: each becomes the alternative of the one before.
    fn if_statement(&mut self) -> Parsed<Stmt> {
        let mut arms = Vec::new();
        let mut otherwise = None;
        loop {
            let start = self.tok.start;
            self.advance()?;
            let test = self.parenthesised()?;
            let then = self.statement()?;
            arms.push((start, test, then));
            if !self.eat(T::Else)? {
                break;
            }
            if !self.at(T::If) {
                otherwise = Some(self.statement()?);
                break;
            }
        }
        while arms.len() > 1
            && let Some((start, test, then)) = arms.pop()
        {
            otherwise = Some(self.add_stmt(Stmt::If { test, then, otherwise }, start));
        }
        match arms.pop() {
            Some((_, test, then)) => Ok(Stmt::If { test, then, otherwise }),
            None => self.unexpected("`if`"),
        }
    }

    fn do_while(&mut self) -> Parsed<Stmt> {
        self.mark_loop_labels();
        self.advance()?;
        let body = self.loop_body()?;
        self.expect(T::While)?;
        let test = self.parenthesised()?;
        // A semicolon is supplied here even on the same line.
        self.eat(T::Semicolon)?;
        Ok(Stmt::DoWhile { body, test })
    }

    fn switch_statement(&mut self) -> Parsed<Stmt> {
        self.advance()?;
        let subject = self.parenthesised()?;
        let scope = self.open_scope(ScopeKind::Switch, self.tok.start);
        self.expect(T::BraceOpen)?;
        let outer = std::mem::replace(&mut self.context.in_switch, true);
        let mut cases = Vec::new();
        let mut has_default = false;
        while !self.at(T::BraceClose) {
            let span = self.span();
            let test = if self.eat(T::Case)? {
                Some(self.expression()?)
            } else {
                self.expect(T::Default)?;
                if has_default {
                    self.problem(span, "this switch already has a `default`");
                }
                has_default = true;
                None
            };
            self.expect(T::Colon)?;
            let first_binding = self.binding_count();
            let base = self.stmt_stack.len();
            while !matches!(self.tok.kind, T::Case | T::Default | T::BraceClose) {
                let stmt = self.statement_or_declaration()?;
                self.stmt_stack.push(stmt);
            }
            let body = self.take_stmts(base);
            self.end_case(scope, first_binding);
            cases.push(Case { test, body });
        }
        self.advance()?;
        self.context.in_switch = outer;
        self.close_scope();
        let cases = self.add_list(&cases);
        Ok(Stmt::Switch { subject, scope, cases })
    }

    fn try_statement(&mut self) -> Parsed<Stmt> {
        let start = self.span();
        self.advance()?;
        let block = self.braced()?;
        let mut handler = None;
        if self.at(T::Catch) {
            let scope = self.open_scope(ScopeKind::Catch, self.tok.start);
            self.advance()?;
            let mut param = None;
            if self.eat(T::ParenOpen)? {
                let target = self.binding_target()?;
                let declared = self.declare_pattern(target, BindingKind::Catch);
                self.expect(T::ParenClose)?;
                self.initialised(declared, self.prev_end);
                param = Some(target);
            }
            let body = self.braced()?;
            self.close_scope();
            handler = Some(Catch { scope, param, body });
        }
        let finalizer = if self.eat(T::Finally)? { Some(self.braced()?) } else { None };
        if handler.is_none() && finalizer.is_none() {
            return self.fail(start, "`try` needs a `catch` or a `finally`");
        }
        let id = TryId::from_index(self.program.tries.len());
        self.program.tries.push(Try { block, handler, finalizer });
        Ok(Stmt::Try(id))
    }

    fn braced(&mut self) -> Parsed<StmtId> {
        if !self.at(T::BraceOpen) {
            return self.unexpected("`{`");
        }
        self.nested(Self::block)
    }

    fn return_statement(&mut self) -> Parsed<Stmt> {
        if !self.context.return_allowed {
            self.problem(self.span(), "`return` is allowed only in functions");
        }
        self.advance()?;
        let mut value = None;
        if !self.tok.newline_before && !matches!(self.tok.kind, T::Semicolon | T::BraceClose | T::End) {
            value = Some(self.expression()?);
        }
        self.semicolon()?;
        Ok(Stmt::Return(value))
    }

    fn jump_statement(&mut self) -> Parsed<Stmt> {
        let keyword = self.tok;
        let is_break = keyword.kind == T::Break;
        self.advance()?;
        let mut label = None;
        if self.at(T::Ident) && !self.tok.newline_before {
            let token = self.tok;
            self.check_name(token)?;
            self.advance()?;
            label = Some(token.atom);
            let found =
                self.labels[self.context.label_base..].iter().rev().find(|l| l.name == token.atom).copied();
            let text = self.program.text(token.atom).to_string_lossy();
            match found {
                None => self.problem(span_of(token), &format!("there is no label `{text}` around this")),
                Some(found) if !is_break && !found.is_loop => {
                    self.problem(span_of(token), &format!("`{text}` is not the label of a loop"));
                }
                Some(_) => {}
            }
        } else if !(self.context.in_loop || is_break && self.context.in_switch) {
            let message = if is_break {
                "`break` is allowed only in loops and switches"
            } else {
                "`continue` is allowed only in loops"
            };
            self.problem(span_of(keyword), message);
        }
        self.semicolon()?;
        Ok(if is_break { Stmt::Break(label) } else { Stmt::Continue(label) })
    }

    fn lexical_declaration(&mut self, kind: DeclareKind) -> Parsed<StmtId> {
        let start = self.tok.start;
        self.advance()?;
        let declarators = self.declarators(kind)?;
        self.semicolon()?;
        Ok(self.add_stmt(Stmt::Declare { kind, declarators }, start))
    }

    fn declarators(&mut self, kind: DeclareKind) -> Parsed<List<Declarator>> {
        let mut list = Vec::new();
        loop {
            let start = self.tok.start;
            let target = self.binding_target()?;
            list.push(self.declarator(kind, target, start)?);
            if !self.eat(T::Comma)? {
                return Ok(self.add_list(&list));
            }
        }
    }

    /// A declarator whose target is read and not declared yet.
    pub(super) fn declarator(
        &mut self,
        kind: DeclareKind,
        target: crate::ast::PatternId,
        start: u32,
    ) -> Parsed<Declarator> {
        let declared = self.declare_pattern(target, binding_kind(kind));
        let mut value = None;
        if self.eat(T::Assign)? {
            value = Some(self.assign()?);
        } else {
            let span = self.span_from(start);
            if !matches!(self.program.pattern(target), Pattern::Name(_)) {
                self.problem(span, "a destructuring declaration needs a value");
            } else if kind == DeclareKind::Const {
                self.problem(span, "a `const` needs a value");
            }
        }
        if kind != DeclareKind::Var {
            self.initialised(declared, self.prev_end);
        }
        Ok(Declarator { target, value })
    }
}

pub(super) fn binding_kind(kind: DeclareKind) -> BindingKind {
    match kind {
        DeclareKind::Var => BindingKind::Var,
        DeclareKind::Let => BindingKind::Let,
        DeclareKind::Const => BindingKind::Const,
    }
}
