//! Expressions: operators, assignment, calls and members.

use super::parser::{AwaitMeans, Parsed, Parser};
use super::token::{Infix, T, word};
use crate::ast::{
    BinaryOp, Expr, ExprId, FunctionKind, Link, LogicalOp, Pattern, PropertyKey, Span, SuperCall,
    SuperMember, Template, TemplateId, UnaryOp, UpdateOp, UpdateResult,
};

/// Whether a chain may contain calls: not what follows `new`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Calls {
    Allowed,
    Refused,
}

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

    /// A primary expression with its members and calls.
    pub(super) fn left_hand_side(&mut self) -> Parsed<ExprId> {
        let start = self.tok.start;
        let base = match self.tok.kind {
            T::New => self.nested(Self::new_expr)?,
            T::Super => self.super_expr(Calls::Allowed)?,
            _ => self.primary()?,
        };
        match self.tok.kind {
            T::Dot | T::QuestionDot | T::BracketOpen | T::ParenOpen | T::Template if !self.is_arrow(base) => {
                self.chain(base, start, Calls::Allowed)
            }
            _ => Ok(base),
        }
    }

    fn chain(&mut self, base: ExprId, start: u32, calls: Calls) -> Parsed<ExprId> {
        let mut expr = base;
        let mut is_optional = false;
        loop {
            let mut link = Link::Plain;
            if self.at(T::QuestionDot) {
                if calls == Calls::Refused {
                    return self.fail(self.span(), "`new` cannot be applied to an optional chain");
                }
                self.advance()?;
                link = Link::Optional;
                is_optional = true;
            }
            let node = match self.tok.kind {
                T::Dot if link == Link::Plain => {
                    self.advance()?;
                    self.member_name(expr, link)?
                }
                T::BracketOpen => {
                    self.advance()?;
                    let index = self.with_in(Self::expression)?;
                    self.expect(T::BracketClose)?;
                    Expr::Index { link, object: expr, index }
                }
                T::ParenOpen if calls == Calls::Allowed => {
                    if self.may_be_async_arrow(expr, start) {
                        expr = self.async_call_or_arrow(expr, start)?;
                        if self.is_arrow(expr) {
                            return Ok(expr);
                        }
                        continue;
                    }
                    let args = self.arguments()?;
                    Expr::Call { link, callee: expr, args: self.add_args(args) }
                }
                T::Template => {
                    if is_optional {
                        return self.fail(self.span(), "a template cannot follow an optional chain");
                    }
                    let template = self.template()?;
                    self.bad_template_escape = None;
                    Expr::TaggedTemplate { tag: expr, template }
                }
                _ if link == Link::Optional => self.member_name(expr, link)?,
                _ => break,
            };
            expr = self.add_expr(node, start);
        }
        if is_optional {
            expr = self.add_expr(Expr::OptionalChain(expr), start);
        }
        Ok(expr)
    }

    /// The name after `.` or `?.`
    fn member_name(&mut self, object: ExprId, link: Link) -> Parsed<Expr> {
        let (kind, name, span) = (self.tok.kind, self.tok.atom, self.span());
        if kind == T::PrivateName {
            let name = self.add_ref(name, span);
            self.advance()?;
            return Ok(Expr::PrivateMember { link, object, name });
        }
        if kind != T::Ident && !kind.is_reserved() {
            return self.unexpected("a property name");
        }
        self.advance()?;
        Ok(Expr::Member { link, object, name })
    }

    /// `(a, ...b)`
    pub(super) fn arguments(&mut self) -> Parsed<crate::ast::List<ExprId>> {
        self.expect(T::ParenOpen)?;
        let base = self.expr_stack.len();
        self.with_in(|p| {
            while !p.at(T::ParenClose) {
                let start = p.tok.start;
                let arg = if p.eat(T::Ellipsis)? {
                    let inner = p.assign()?;
                    p.add_expr(Expr::Spread(inner), start)
                } else {
                    p.assign()?
                };
                p.expr_stack.push(arg);
                if !p.at(T::ParenClose) {
                    p.expect(T::Comma)?;
                }
            }
            Ok(())
        })?;
        self.expect(T::ParenClose)?;
        Ok(self.take_exprs(base))
    }

    fn new_expr(&mut self) -> Parsed<ExprId> {
        let start = self.tok.start;
        self.advance()?;
        if self.eat(T::Dot)? {
            if !self.at_word(word::TARGET) {
                return self.unexpected("`target` after `new.`");
            }
            self.advance()?;
            if !self.context.new_target {
                self.problem(self.span_from(start), "`new.target` exists only in functions");
            }
            let target = self.add_ref(word::NEW_TARGET, self.span_from(start));
            return Ok(self.add_expr(Expr::NewTarget(target), start));
        }
        let callee_start = self.tok.start;
        let base = match self.tok.kind {
            T::New => self.nested(Self::new_expr)?,
            T::Super => self.super_expr(Calls::Refused)?,
            _ => self.primary()?,
        };
        let callee = self.chain(base, callee_start, Calls::Refused)?;
        let args = if self.at(T::ParenOpen) { self.arguments()? } else { crate::ast::List::EMPTY };
        let args = self.add_args(args);
        Ok(self.add_expr(Expr::New { callee, args }, start))
    }

    fn super_expr(&mut self, calls: Calls) -> Parsed<ExprId> {
        let span = self.span();
        self.advance()?;
        let callee = self.add_ref(word::EMPTY, span);
        let this = self.add_ref(word::EMPTY, span);
        if self.at(T::ParenOpen) && calls == Calls::Allowed {
            if !self.context.super_call {
                self.problem(
                    span,
                    "`super()` is allowed only in the constructor of a class that extends another",
                );
            }
            let new_target = self.add_ref(word::EMPTY, span);
            let args = self.arguments()?;
            let place = self.program.super_calls.len() as u32;
            self.program.super_calls.push(SuperCall { callee, new_target, this, args });
            return Ok(self.add_expr(Expr::SuperCall(place), span.start));
        }
        let key = match self.tok.kind {
            T::Dot => {
                self.advance()?;
                if self.tok.kind != T::Ident && !self.tok.kind.is_reserved() {
                    return self.unexpected("a property name after `super.`");
                }
                let name = self.tok.atom;
                self.advance()?;
                PropertyKey::Name(name)
            }
            T::BracketOpen => {
                self.advance()?;
                let key = self.with_in(Self::expression)?;
                self.expect(T::BracketClose)?;
                PropertyKey::Computed(key)
            }
            _ => return self.unexpected("`.`, `[` or `(` after `super`"),
        };
        if !self.context.super_member {
            self.problem(span, "`super` is allowed only in methods");
        }
        let place = self.program.supers.len() as u32;
        self.program.supers.push(SuperMember { callee, this, key });
        Ok(self.add_expr(Expr::SuperMember(place), span.start))
    }

    /// A template from its backtick, which is the current token.
    pub(super) fn template(&mut self) -> Parsed<TemplateId> {
        let start = self.tok.start as usize;
        let base = self.expr_stack.len();
        let mut chunks = Vec::new();
        // Substitutions may contain templates; each reports its own malformed escapes.
        let mut bad = None;
        loop {
            let (chunk, end) = self.scan_chunk(start)?;
            bad = bad.or(self.bad_template_escape.take());
            chunks.push(chunk);
            if end == super::literal::ChunkEnd::Template {
                break;
            }
            self.advance()?;
            let substitution = self.with_in(Self::expression)?;
            self.expr_stack.push(substitution);
            if !self.at(T::BraceClose) {
                return self.unexpected("`}` after the expression in the template");
            }
            // The text goes on right behind the brace; a token read beyond it is forgotten.
            self.pos = self.tok.end as usize;
        }
        self.bad_template_escape = bad;
        self.tok.end = self.pos as u32;
        self.advance()?;
        let chunks = self.add_list(&chunks);
        let substitutions = self.take_exprs(base);
        let id = TemplateId::from_index(self.program.templates.len());
        self.program.templates.push(Template { chunks, substitutions });
        Ok(id)
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
