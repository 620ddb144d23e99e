//! Members, calls, `new`, `super` and templates: what hangs on a primary expression.

use super::parser::{Parsed, Parser};
use super::token::{T, word};
use crate::ast::{Expr, ExprId, Link, PropertyKey, SuperCall, SuperMember, Template, TemplateId};

/// Whether a chain may contain calls: not what follows `new`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Calls {
    Allowed,
    Refused,
}

impl Parser<'_> {
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
}
