//! `for` in its four forms: which one it is shows only after the first part of the head.

use super::parser::{AwaitMeans, Parsed, Parser};
use super::stmt::binding_kind;
use super::token::{T, word};
use crate::ast::{DeclareKind, Expr, Loop, LoopHead, LoopId, LoopTarget, ScopeKind, Stmt, StmtId};

/// Whether `await` follows `for`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaits {
    Yes,
    No,
}

impl Parser<'_> {
    pub(super) fn for_statement(&mut self) -> Parsed<StmtId> {
        let start = self.tok.start;
        self.mark_loop_labels();
        self.advance()?;
        let mut awaits = Awaits::No;
        if self.at_word(word::AWAIT) && self.context.await_means == AwaitMeans::Operator {
            self.awaits_at_top |= self.context.at_top;
            self.suspension = Some(self.span());
            awaits = Awaits::Yes;
            self.advance()?;
        }
        self.expect(T::ParenOpen)?;
        let scope = self.open_scope(ScopeKind::Loop, self.tok.start);
        let first_binding = self.binding_count();
        let head = self.for_head(awaits)?;
        self.expect(T::ParenClose)?;
        if !matches!(head, LoopHead::Classic { .. }) {
            // What is iterated over must not use the names that it is going to initialise.
            for i in first_binding..self.binding_count() {
                if self.program.bindings[i].scope == scope {
                    self.initialised(i..i + 1, self.prev_end);
                }
            }
        }
        let body = self.loop_body()?;
        self.close_scope();
        let id = LoopId::from_index(self.program.loops.len());
        self.program.loops.push(Loop { head, scope, body });
        Ok(self.add_stmt(Stmt::For(id), start))
    }

    fn for_head(&mut self, awaits: Awaits) -> Parsed<LoopHead> {
        let start = self.tok.start;
        let kind = match self.tok.kind {
            T::Semicolon if awaits == Awaits::No => return self.classic_head(None),
            T::Var => DeclareKind::Var,
            T::Const => DeclareKind::Const,
            T::Ident if self.at_word(word::LET) => DeclareKind::Let,
            _ => return self.for_expression_head(awaits),
        };
        self.advance()?;
        let target_start = self.tok.start;
        let target = self.binding_target()?;
        if self.at_word(word::OF) || (self.at(T::In) && awaits == Awaits::No) {
            self.declare_pattern(target, binding_kind(kind));
            return self.iteration_head(LoopTarget::Declare(kind, target), awaits);
        }
        if awaits == Awaits::Yes {
            return self.unexpected("`of`");
        }
        let outer_in = std::mem::replace(&mut self.context.in_operator, false);
        let mut list = vec![self.declarator(kind, target, target_start)?];
        while self.eat(T::Comma)? {
            let target_start = self.tok.start;
            let target = self.binding_target()?;
            list.push(self.declarator(kind, target, target_start)?);
        }
        self.context.in_operator = outer_in;
        let declarators = self.add_list(&list);
        let init = self.add_stmt(Stmt::Declare { kind, declarators }, start);
        self.classic_head(Some(init))
    }

    fn for_expression_head(&mut self, awaits: Awaits) -> Parsed<LoopHead> {
        let token = self.tok;
        let start = token.start;
        let starts_with_async = self.at_word(word::ASYNC);
        let outer_cover = self.open_cover.take();
        let outer_in = std::mem::replace(&mut self.context.in_operator, false);
        let expr = self.assign_or_cover()?;
        self.context.in_operator = outer_in;
        if self.at_word(word::OF) || (self.at(T::In) && awaits == Awaits::No) {
            let is_async_name = starts_with_async && matches!(self.program.expr(expr), Expr::Ident(_));
            if is_async_name && self.at_word(word::OF) && awaits == Awaits::No {
                return self.fail(self.span_from(start), "`for (async of` is ambiguous and not allowed");
            }
            if matches!(self.program.expr(expr), Expr::Array(_) | Expr::Object(_)) {
                self.open_cover = None;
            }
            self.close_cover()?;
            self.open_cover = outer_cover;
            let target = self.target_from(expr)?;
            return self.iteration_head(LoopTarget::Assign(target), awaits);
        }
        if awaits == Awaits::Yes {
            return self.unexpected("`of`");
        }
        self.close_cover()?;
        self.open_cover = outer_cover;
        self.context.in_operator = false;
        let expr = self.more_of_sequence(expr, start)?;
        self.context.in_operator = outer_in;
        let init = self.add_stmt(Stmt::Expr(expr), start);
        self.classic_head(Some(init))
    }

    fn iteration_head(&mut self, target: LoopTarget, awaits: Awaits) -> Parsed<LoopHead> {
        if self.eat(T::In)? {
            let object = self.with_in(Self::expression)?;
            return Ok(LoopHead::In { target, object });
        }
        self.advance()?;
        let iterable = self.with_in(Self::assign)?;
        Ok(match awaits {
            Awaits::Yes => LoopHead::AwaitOf { target, iterable },
            Awaits::No => LoopHead::Of { target, iterable },
        })
    }

    fn classic_head(&mut self, init: Option<StmtId>) -> Parsed<LoopHead> {
        self.expect(T::Semicolon)?;
        let test = if self.at(T::Semicolon) { None } else { Some(self.with_in(Self::expression)?) };
        self.expect(T::Semicolon)?;
        let update = if self.at(T::ParenClose) { None } else { Some(self.with_in(Self::expression)?) };
        Ok(LoopHead::Classic { init, test, update })
    }
}
