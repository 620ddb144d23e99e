//! Expressions: assignment and operators.

use super::parser::{AwaitMeans, Parsed, Parser};
use super::token::{Infix, T, word};
use crate::ast::{
    BinaryOp, Expr, ExprId, FunctionKind, LogicalOp, Pattern, Span, UnaryOp, UpdateOp, UpdateResult,
};

impl Parser<'_> {
    /// `a, b, c`
    pub(super) fn expression(&mut self) -> Parsed<ExprId> {
        let start = self.tok.start;
        let first = self.assign()?;
        self.more_of_sequence(first, start)
    }

    /// The rest of a comma list whose first expression is read.
    pub(super) fn more_of_sequence(&mut self, first: ExprId, start: u32) -> Parsed<ExprId> {
        if !self.at(T::Comma) {
            return Ok(first);
        }
        let base = self.expr_stack.len();
        self.expr_stack.push(first);
        while self.eat(T::Comma)? {
            let next = self.assign()?;
            self.expr_stack.push(next);
        }
        let list = self.take_exprs(base);
        Ok(self.add_expr(Expr::Sequence(list), start))
    }

    /// An expression in brackets of some kind, where `in` is an operator again.
    pub(super) fn with_in<V>(&mut self, rule: impl FnOnce(&mut Self) -> Parsed<V>) -> Parsed<V> {
        let outer = std::mem::replace(&mut self.context.in_operator, true);
        let value = rule(self)?;
        self.context.in_operator = outer;
        Ok(value)
    }

    /// One expression without comma, which is not going to be a pattern.
    pub(super) fn assign(&mut self) -> Parsed<ExprId> {
        let outer = self.open_cover.take();
        let expr = self.assign_or_cover()?;
        self.close_cover()?;
        self.open_cover = outer;
        Ok(expr)
    }

    /// Whoever asked for a cover has decided that it is an expression.
    pub(super) fn close_cover(&mut self) -> Parsed<()> {
        match self.open_cover.take() {
            Some((span, message)) => self.fail(span, message),
            None => Ok(()),
        }
    }

    /// One expression without comma, or an object or array literal that may still turn out to be a pattern.
    pub(super) fn assign_or_cover(&mut self) -> Parsed<ExprId> {
        self.nested(Self::assign_inner)
    }

    fn assign_inner(&mut self) -> Parsed<ExprId> {
        let start = self.tok.start;
        if self.context.in_generator && self.at_word(word::YIELD) {
            return self.yield_expr();
        }
        self.arrow_at = start;
        let outer = self.open_cover.take();
        let left = self.conditional()?;
        let mut expr = left;
        if self.is_arrow(left) {
            self.open_cover = outer;
            return Ok(left);
        }
        let is_literal = matches!(self.program.expr(left), Expr::Array(_) | Expr::Object(_));
        if self.at(T::Assign) {
            if is_literal {
                self.open_cover = None;
            }
            let target = self.target_from(left)?;
            self.advance()?;
            let value = self.assign()?;
            expr = self.add_expr(Expr::Assign { target, value }, start);
        } else if let Some(op) = self.tok.kind.compound_assignment() {
            self.check_simple_target(left)?;
            self.advance()?;
            let value = self.assign()?;
            let node = match op {
                Infix::Binary(op) => Expr::AssignOp { op, target: left, value },
                Infix::Logical(op) => Expr::AssignLogical { op, target: left, value },
            };
            expr = self.add_expr(node, start);
        }
        if expr != left || !is_literal {
            self.close_cover()?;
        }
        self.open_cover = outer.or(self.open_cover);
        Ok(expr)
    }

    pub(super) fn is_arrow(&self, expr: ExprId) -> bool {
        matches!(self.program.expr(expr), Expr::Function(f) if self.program.function(f).kind == FunctionKind::Arrow)
    }

    fn yield_expr(&mut self) -> Parsed<ExprId> {
        let span = self.span();
        if self.context.in_params {
            return self.fail(span, "`yield` cannot stand in a generator's parameters");
        }
        self.suspension = Some(span);
        self.advance()?;
        let expr = if self.tok.newline_before {
            Expr::Yield(None)
        } else {
            match self.tok.kind {
                T::Star => {
                    self.advance()?;
                    Expr::YieldStar(self.assign()?)
                }
                T::ParenClose
                | T::BracketClose
                | T::BraceClose
                | T::Comma
                | T::Semicolon
                | T::Colon
                | T::End
                | T::In => Expr::Yield(None),
                _ => Expr::Yield(Some(self.assign()?)),
            }
        };
        Ok(self.add_expr(expr, span.start))
    }

    fn conditional(&mut self) -> Parsed<ExprId> {
        let start = self.tok.start;
        let test = self.binary(0)?;
        if !self.at(T::Question) || self.is_arrow(test) {
            return Ok(test);
        }
        self.advance()?;
        let yes = self.with_in(Self::assign)?;
        self.expect(T::Colon)?;
        let no = self.assign()?;
        Ok(self.add_expr(Expr::Conditional { test, yes, no }, start))
    }

    /// Operands and operators that bind tighter than `floor`.
    fn binary(&mut self, floor: u8) -> Parsed<ExprId> {
        const RELATIONAL: u8 = 7;
        let start = self.tok.start;
        let mut left = if self.at(T::PrivateName) {
            if floor >= RELATIONAL || !self.context.in_operator || self.peek()?.kind != T::In {
                return self.unexpected("an expression");
            }
            let name = self.add_ref(self.tok.atom, self.span());
            self.advance()?;
            self.advance()?;
            let object = self.nested(|p| p.binary(RELATIONAL))?;
            self.add_expr(Expr::PrivateIn { name, object }, start)
        } else {
            self.unary()?
        };
        if self.tok.kind.binary().is_none() || self.is_arrow(left) {
            return Ok(left);
        }
        while let Some((power, op)) = self.tok.kind.binary() {
            if power <= floor || (self.tok.kind == T::In && !self.context.in_operator) {
                break;
            }
            let op_span = self.span();
            if op == Infix::Binary(BinaryOp::Exp) {
                if matches!(self.program.expr(left), Expr::Unary { .. } | Expr::Delete(_) | Expr::Await(_)) {
                    return self.fail(op_span, "a unary operator before `**` needs parentheses");
                }
                self.advance()?;
                // Associates to the right.
                let right = self.nested(|p| p.binary(power - 1))?;
                left = self.add_expr(Expr::Binary { op: BinaryOp::Exp, left, right }, start);
                continue;
            }
            self.advance()?;
            let right = self.nested(|p| p.binary(power))?;
            let node = match op {
                Infix::Binary(op) => Expr::Binary { op, left, right },
                Infix::Logical(op) => {
                    if self.mixes_nullish(op, left) || self.mixes_nullish(op, right) {
                        return self
                            .fail(op_span, "`??` cannot be mixed with `||` or `&&` without parentheses");
                    }
                    Expr::Logical { op, left, right }
                }
            };
            left = self.add_expr(node, start);
        }
        Ok(left)
    }

    fn mixes_nullish(&self, op: LogicalOp, operand: ExprId) -> bool {
        match self.program.expr(operand) {
            Expr::Logical { op: inner, .. } => (op == LogicalOp::Nullish) != (inner == LogicalOp::Nullish),
            _ => false,
        }
    }

    fn unary(&mut self) -> Parsed<ExprId> {
        let start = self.tok.start;
        let op = match self.tok.kind {
            T::Minus => UnaryOp::Minus,
            T::Plus => UnaryOp::Plus,
            T::Not => UnaryOp::Not,
            T::Tilde => UnaryOp::BitNot,
            T::TypeOf => UnaryOp::TypeOf,
            T::Void => UnaryOp::Void,
            T::Delete => return self.delete_expr(),
            T::PlusPlus | T::MinusMinus => {
                let op = if self.at(T::PlusPlus) { UpdateOp::Increment } else { UpdateOp::Decrement };
                self.advance()?;
                let target = self.nested(Self::unary)?;
                self.check_simple_target(target)?;
                return Ok(self.add_expr(Expr::Update { op, result: UpdateResult::New, target }, start));
            }
            T::Ident if self.at_word(word::AWAIT) && self.context.await_means == AwaitMeans::Operator => {
                return self.await_expr();
            }
            _ => return self.postfix(),
        };
        self.advance()?;
        let operand = self.nested(Self::unary)?;
        Ok(self.add_expr(Expr::Unary { op, operand }, start))
    }

    fn delete_expr(&mut self) -> Parsed<ExprId> {
        let start = self.tok.start;
        self.advance()?;
        let operand = self.nested(Self::unary)?;
        let mut inner = self.program.unwrap_parens(operand);
        if let Expr::OptionalChain(chain) = self.program.expr(inner) {
            inner = chain;
        }
        match self.program.expr(inner) {
            Expr::Ident(_) => self.problem(self.span_from(start), "a variable cannot be deleted"),
            Expr::PrivateMember { .. } => {
                self.problem(self.span_from(start), "a private name cannot be deleted")
            }
            _ => {}
        }
        Ok(self.add_expr(Expr::Delete(operand), start))
    }

    fn await_expr(&mut self) -> Parsed<ExprId> {
        let span = self.span();
        if self.context.in_params {
            return self.fail(span, "`await` cannot stand in an async function's parameters");
        }
        self.suspension = Some(span);
        self.awaits_at_top |= self.context.at_top;
        self.advance()?;
        let operand = self.nested(Self::unary)?;
        Ok(self.add_expr(Expr::Await(operand), span.start))
    }

    fn postfix(&mut self) -> Parsed<ExprId> {
        let start = self.tok.start;
        let target = self.left_hand_side()?;
        let op = match self.tok.kind {
            T::PlusPlus => UpdateOp::Increment,
            T::MinusMinus => UpdateOp::Decrement,
            _ => return Ok(target),
        };
        if self.tok.newline_before || self.is_arrow(target) {
            return Ok(target);
        }
        self.check_simple_target(target)?;
        self.advance()?;
        Ok(self.add_expr(Expr::Update { op, result: UpdateResult::Old, target }, start))
    }

    /// What `++`, `--` and compound assignments may change.
    fn check_simple_target(&mut self, expr: ExprId) -> Parsed<()> {
        let inner = self.program.unwrap_parens(expr);
        match self.program.expr(inner) {
            Expr::Ident(name) => self.check_assignable(name),
            Expr::Member { .. } | Expr::Index { .. } | Expr::PrivateMember { .. } | Expr::SuperMember(_) => {}
            _ => {
                let span = self.program.expr_span(expr);
                return self.fail(span, "this cannot be assigned to");
            }
        }
        Ok(())
    }

    pub(super) fn check_assignable(&mut self, name: crate::ast::RefId) {
        let found = *self.program.reference(name);
        if found.name == word::EVAL || found.name == word::ARGUMENTS {
            let text = self.program.text(found.name).to_string_lossy();
            self.problem(found.span, &format!("`{text}` cannot be assigned to"));
        }
    }

    pub(super) fn name_pattern(&mut self, name: crate::ast::Atom, span: Span) -> crate::ast::PatternId {
        let name = self.add_ref(name, span);
        self.add_pattern(Pattern::Name(name))
    }
}
