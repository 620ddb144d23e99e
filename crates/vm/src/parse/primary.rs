//! Primary expressions: names, simple literals, and parentheses or an arrow's parameters.

use super::parser::{AwaitMeans, Parsed, Parser};
use super::pattern::Param;
use super::token::{T, Token, is_strict_reserved, word, word_kind};
use crate::ast::{Expr, ExprId, Flavour, Link, Regex, RegexId, Span};
use crate::parse::Permission;

impl Parser<'_> {
    pub(super) fn primary(&mut self) -> Parsed<ExprId> {
        let token = self.tok;
        let start = token.start;
        let expr = match token.kind {
            T::Ident => return self.name_or_arrow(),
            T::Number => Expr::Number(token.number),
            T::String => Expr::String(token.atom),
            T::BigInt => Expr::BigInt(token.atom),
            T::Null => Expr::Null,
            T::True => Expr::Bool(true),
            T::False => Expr::Bool(false),
            T::This => Expr::This(self.add_ref(token.atom, self.span())),
            T::ParenOpen => return self.paren_or_arrow(),
            T::BracketOpen => return self.array(),
            T::BraceOpen => return self.object(),
            T::Function => return self.function_expr(start, Flavour::Plain),
            T::Class => return self.class_expr(),
            T::Slash | T::SlashAssign => return self.regex(),
            T::Template => {
                let template = self.template()?;
                if let Some((at, message)) = self.bad_template_escape.take() {
                    return self.fail(Span::new(at, at + 2), message);
                }
                return Ok(self.add_expr(Expr::Template(template), start));
            }
            T::Percent if self.options.intrinsics == Permission::Allowed => return self.intrinsic(),
            T::Import => {
                return self.fail_refused(self.span(), "`import` is not available: scripts have no modules");
            }
            _ => return self.unexpected("an expression"),
        };
        self.advance()?;
        Ok(self.add_expr(expr, start))
    }

    fn name_or_arrow(&mut self) -> Parsed<ExprId> {
        let token = self.tok;
        let start = token.start;
        if self.at_word(word::ASYNC) {
            let next = self.peek()?;
            if next.kind == T::Function && !next.newline_before {
                self.advance()?;
                return self.function_expr(start, Flavour::Async);
            }
            if next.kind == T::Ident && !next.newline_before && self.arrow_at == start {
                let here = (self.pos, self.tok, self.prev_end);
                self.advance()?;
                let after = self.peek()?;
                if after.kind == T::Arrow && !after.newline_before {
                    return self.async_name_arrow(start);
                }
                (self.pos, self.tok, self.prev_end) = here;
            }
        }
        self.advance()?;
        if self.at(T::Arrow) && self.arrow_at == start && !self.tok.newline_before {
            self.check_binding_name(token)?;
            let param = Param::name(self.name_pattern(token.atom, span_of(token)), token.end);
            return self.arrow(start, Flavour::Plain, vec![param], None);
        }
        self.check_reference(token)?;
        let name = self.add_ref(token.atom, span_of(token));
        Ok(self.add_expr(Expr::Ident(name), start))
    }

    /// `async x => …`, at `x`.
    fn async_name_arrow(&mut self, start: u32) -> Parsed<ExprId> {
        let token = self.tok;
        if token.atom == word::AWAIT {
            return self.fail(self.span(), "`await` cannot be a parameter of an async function");
        }
        self.check_binding_name(token)?;
        self.advance()?;
        let param = Param::name(self.name_pattern(token.atom, span_of(token)), token.end);
        self.arrow(start, Flavour::Async, vec![param], None)
    }

    /// Whether a name may be used as a value here.
    pub(super) fn check_reference(&mut self, token: Token) -> Parsed<()> {
        self.check_name(token)?;
        if token.atom == word::ARGUMENTS && self.context.no_arguments {
            self.problem(span_of(token), "`arguments` cannot be used in a field initialiser or static block");
        }
        Ok(())
    }

    /// Whether a word is a name here, for any purpose.
    pub(super) fn check_name(&mut self, token: Token) -> Parsed<()> {
        let is_reserved = word_kind(token.atom).is_reserved() || is_strict_reserved(token.atom);
        if token.kind != T::Ident || is_reserved {
            if token.kind != T::Ident && !token.kind.is_reserved() {
                return self.unexpected("a name");
            }
            let text = self.program.text(token.atom).to_string_lossy();
            return self.fail(span_of(token), &format!("`{text}` is a reserved word"));
        }
        if token.atom == word::AWAIT {
            if self.context.await_means != AwaitMeans::Name {
                return self.fail(span_of(token), "`await` is a reserved word here");
            }
            self.await_name = Some(span_of(token));
        }
        Ok(())
    }

    /// Whether a name may be declared here.
    pub(super) fn check_binding_name(&mut self, token: Token) -> Parsed<()> {
        self.check_name(token)?;
        if token.atom == word::EVAL || token.atom == word::ARGUMENTS {
            let text = self.program.text(token.atom).to_string_lossy();
            self.problem(span_of(token), &format!("`{text}` cannot be declared in strict code"));
        }
        Ok(())
    }

    fn regex(&mut self) -> Parsed<ExprId> {
        let start = self.tok.start;
        let (pattern, flags) = self.scan_regex()?;
        let checked = (self.options.check_regex)(self.program.text(pattern), self.program.text(flags));
        if let Err(problem) = checked {
            let span = Span::new(start, self.tok.end);
            self.problem(span, &format!("invalid regular expression: {problem}"));
        }
        self.advance()?;
        let id = RegexId::from_index(self.program.regexes.len());
        self.program.regexes.push(Regex { pattern, flags });
        Ok(self.add_expr(Expr::Regex(id), start))
    }

    /// `%Name(args)`
    fn intrinsic(&mut self) -> Parsed<ExprId> {
        let start = self.tok.start;
        self.advance()?;
        if !self.at(T::Ident) {
            return self.unexpected("the name of an intrinsic");
        }
        let name = self.tok.atom;
        self.advance()?;
        let args = self.arguments()?;
        let args = self.add_args(args);
        Ok(self.add_expr(Expr::Intrinsic { name, args }, start))
    }

    fn paren_or_arrow(&mut self) -> Parsed<ExprId> {
        let start = self.tok.start;
        let may_be_arrow = self.arrow_at == start;
        let outer_cover = self.open_cover.take();
        let outer_suspension = self.suspension.take();
        self.advance()?;
        let base = self.expr_stack.len();
        let mut rest = None;
        // `()`, `(...a)` and `(a,)` make sense only before `=>`.
        let mut must_be_arrow = self.at(T::ParenClose);
        self.with_in(|p| {
            while !p.at(T::ParenClose) {
                if p.at(T::Ellipsis) && may_be_arrow {
                    p.advance()?;
                    rest = Some(p.binding_target()?);
                    must_be_arrow = true;
                    break;
                }
                let expr = p.assign_or_cover()?;
                p.expr_stack.push(expr);
                if !p.at(T::ParenClose) {
                    p.expect(T::Comma)?;
                    must_be_arrow |= p.at(T::ParenClose);
                }
            }
            Ok(())
        })?;
        self.expect(T::ParenClose)?;
        if may_be_arrow && self.at(T::Arrow) && !self.tok.newline_before {
            if let Some(span) = self.suspension {
                return self.fail(span, "`yield` and `await` cannot stand in an arrow function's parameters");
            }
            self.suspension = outer_suspension;
            let params = self.params_from_exprs(base)?;
            self.open_cover = outer_cover;
            return self.arrow(start, Flavour::Plain, params, rest);
        }
        if must_be_arrow {
            return self.unexpected("`=>` after the parameters");
        }
        self.close_cover()?;
        self.open_cover = outer_cover;
        self.suspension = self.suspension.or(outer_suspension);
        let inner_start = start + 1;
        let list = self.take_exprs(base);
        let inner = match self.program.list(list) {
            [single] => *single,
            _ => self.add_expr(Expr::Sequence(list), inner_start),
        };
        Ok(self.add_expr(Expr::Paren(inner), start))
    }

    /// Whether `callee (` is `async (` at a place where an arrow function may start.
    pub(super) fn may_be_async_arrow(&self, callee: ExprId, start: u32) -> bool {
        self.arrow_at == start
            && !self.tok.newline_before
            && matches!(self.program.expr(callee), Expr::Ident(name) if self.program.reference(name).name == word::ASYNC)
            // Written without escapes, that is in five bytes.
            && self.prev_end - start == 5
    }

    /// `async (…)`, from the parenthesis: a call, or the parameters of an arrow function.
    pub(super) fn async_call_or_arrow(&mut self, callee: ExprId, start: u32) -> Parsed<ExprId> {
        let outer_cover = self.open_cover.take();
        let outer_suspension = self.suspension.take();
        let outer_await = self.await_name.take();
        self.advance()?;
        let base = self.expr_stack.len();
        let mut comma_after_spread = false;
        self.with_in(|p| {
            while !p.at(T::ParenClose) {
                let start = p.tok.start;
                let is_spread = p.eat(T::Ellipsis)?;
                let mut arg = p.assign_or_cover()?;
                if is_spread {
                    arg = p.add_expr(Expr::Spread(arg), start);
                }
                p.expr_stack.push(arg);
                if !p.at(T::ParenClose) {
                    p.expect(T::Comma)?;
                    comma_after_spread |= is_spread;
                }
            }
            Ok(())
        })?;
        self.expect(T::ParenClose)?;
        if self.at(T::Arrow) && !self.tok.newline_before {
            if let Some(span) = self.suspension.or(self.await_name) {
                return self
                    .fail(span, "`yield` and `await` cannot stand in an async arrow function's parameters");
            }
            if comma_after_spread {
                return self.fail(self.span_from(start), "nothing may follow a rest parameter");
            }
            self.suspension = outer_suspension;
            self.await_name = outer_await;
            let mut rest = None;
            if let Some(&last) = self.expr_stack[base..].last()
                && let Expr::Spread(inner) = self.program.expr(last)
            {
                self.expr_stack.pop();
                let target = self.target_from(inner)?;
                self.check_binding_pattern(target)?;
                rest = Some(target);
            }
            let params = self.params_from_exprs(base)?;
            self.open_cover = outer_cover;
            return self.arrow(start, Flavour::Async, params, rest);
        }
        self.close_cover()?;
        self.open_cover = outer_cover;
        self.suspension = self.suspension.or(outer_suspension);
        self.await_name = self.await_name.or(outer_await);
        let args = self.take_exprs(base);
        let args = self.add_args(args);
        Ok(self.add_expr(Expr::Call { link: Link::Plain, callee, args }, start))
    }
}

pub(super) fn span_of(token: Token) -> Span {
    Span::new(token.start, token.end)
}
