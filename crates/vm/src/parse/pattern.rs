//! Patterns: read as such in declarations and parameters, or made from an expression that turned out to be one.

use super::parser::{AwaitMeans, Parsed, Parser};
use super::primary::span_of;
use super::token::{T, word};
use crate::ast::{
    Expr, ExprId, List, Pattern, PatternElement, PatternId, PatternProperty, PropertyKey, PropertyKind,
};

/// One parameter, before its names are declared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Param {
    pub(super) element: PatternElement,
    /// Where it ends: from there on its names are initialised.
    pub(super) end: u32,
}

impl Param {
    pub(super) fn name(target: PatternId, end: u32) -> Self {
        Self { element: PatternElement { target: Some(target), default: None }, end }
    }
}

impl Parser<'_> {
    /// A name or destructuring pattern in a declaration.
    pub(super) fn binding_target(&mut self) -> Parsed<PatternId> {
        match self.tok.kind {
            T::BracketOpen => self.nested(Self::array_binding),
            T::BraceOpen => self.nested(Self::object_binding),
            _ => {
                let token = self.tok;
                self.check_binding_name(token)?;
                self.advance()?;
                Ok(self.name_pattern(token.atom, span_of(token)))
            }
        }
    }

    /// A pattern with its default, if it has one.
    pub(super) fn binding_element(&mut self) -> Parsed<Param> {
        let target = self.binding_target()?;
        let default = self.default_value()?;
        Ok(Param { element: PatternElement { target: Some(target), default }, end: self.prev_end })
    }

    fn default_value(&mut self) -> Parsed<Option<ExprId>> {
        if !self.eat(T::Assign)? {
            return Ok(None);
        }
        Ok(Some(self.with_in(Self::assign)?))
    }

    fn array_binding(&mut self) -> Parsed<PatternId> {
        self.advance()?;
        let mut elements = Vec::new();
        let mut rest = None;
        while !self.at(T::BracketClose) {
            if self.eat(T::Comma)? {
                elements.push(PatternElement { target: None, default: None });
                continue;
            }
            if self.eat(T::Ellipsis)? {
                rest = Some(self.binding_target()?);
                break;
            }
            elements.push(self.binding_element()?.element);
            if !self.at(T::BracketClose) {
                self.expect(T::Comma)?;
            }
        }
        self.expect(T::BracketClose)?;
        let elements = self.add_list(&elements);
        Ok(self.add_pattern(Pattern::Array { elements, rest }))
    }

    fn object_binding(&mut self) -> Parsed<PatternId> {
        self.advance()?;
        let mut properties = Vec::new();
        let mut rest = None;
        while !self.at(T::BraceClose) {
            if self.eat(T::Ellipsis)? {
                let token = self.tok;
                self.check_binding_name(token)?;
                self.advance()?;
                rest = Some(self.name_pattern(token.atom, span_of(token)));
                break;
            }
            let token = self.tok;
            let key = self.property_key()?;
            let is_word = token.kind == T::Ident || token.kind.is_reserved();
            let target = if !is_word || self.at(T::Colon) {
                self.expect(T::Colon)?;
                self.binding_target()?
            } else {
                self.check_binding_name(token)?;
                self.name_pattern(token.atom, span_of(token))
            };
            let default = self.default_value()?;
            properties.push(PatternProperty { key, target, default });
            if !self.at(T::BraceClose) {
                self.expect(T::Comma)?;
            }
        }
        self.expect(T::BraceClose)?;
        let properties = self.add_list(&properties);
        Ok(self.add_pattern(Pattern::Object { properties, rest }))
    }

    /// The target of an assignment, from the expression it was read as. Recurses as deep as the parser did.
    pub(super) fn target_from(&mut self, expr: ExprId) -> Parsed<PatternId> {
        let pattern = match self.program.expr(expr) {
            Expr::Ident(name) => {
                self.check_assignable(name);
                Pattern::Name(name)
            }
            Expr::Member { .. } | Expr::Index { .. } | Expr::PrivateMember { .. } | Expr::SuperMember(_) => {
                Pattern::Member(expr)
            }
            Expr::Paren(_) => {
                let inner = self.program.unwrap_parens(expr);
                match self.program.expr(inner) {
                    Expr::Ident(name) => {
                        self.check_assignable(name);
                        Pattern::ParenName(name)
                    }
                    Expr::Member { .. }
                    | Expr::Index { .. }
                    | Expr::PrivateMember { .. }
                    | Expr::SuperMember(_) => Pattern::Member(inner),
                    Expr::Array(_) | Expr::Object(_) => {
                        let span = self.program.expr_span(expr);
                        return self.fail(span, "a destructuring pattern cannot stand in parentheses");
                    }
                    _ => return self.not_a_target(expr),
                }
            }
            Expr::Array(list) => self.array_target(expr, list)?,
            Expr::Object(list) => self.object_target(expr, list)?,
            _ => return self.not_a_target(expr),
        };
        Ok(self.add_pattern(pattern))
    }

    fn not_a_target<V>(&mut self, expr: ExprId) -> Parsed<V> {
        let span = self.program.expr_span(expr);
        self.fail(span, "this cannot be assigned to")
    }

    /// A target with its default, from `target` or `target = value`.
    fn element_from(&mut self, expr: ExprId) -> Parsed<PatternElement> {
        if let Expr::Assign { target, value } = self.program.expr(expr) {
            return Ok(PatternElement { target: Some(target), default: Some(value) });
        }
        Ok(PatternElement { target: Some(self.target_from(expr)?), default: None })
    }

    fn array_target(&mut self, array: ExprId, list: List<ExprId>) -> Parsed<Pattern> {
        let mut elements = Vec::with_capacity(list.len());
        let mut rest = None;
        for i in list.range() {
            let element = self.program.lists.exprs[i];
            if rest.is_some() {
                return self.rest_not_last(array);
            }
            match self.program.expr(element) {
                Expr::Hole => elements.push(PatternElement { target: None, default: None }),
                Expr::Spread(inner) => rest = Some(self.target_from(inner)?),
                _ => elements.push(self.element_from(element)?),
            }
        }
        if rest.is_some() && self.comma_after_spread.contains_key(&array) {
            return self.rest_not_last(array);
        }
        let elements = self.add_list(&elements);
        Ok(Pattern::Array { elements, rest })
    }

    fn object_target(&mut self, object: ExprId, list: List<crate::ast::Property>) -> Parsed<Pattern> {
        let mut properties = Vec::with_capacity(list.len());
        let mut rest = None;
        for i in list.range() {
            let property = self.program.lists.properties[i];
            if rest.is_some() {
                return self.rest_not_last(object);
            }
            match property.kind {
                PropertyKind::Value | PropertyKind::Shorthand | PropertyKind::Proto => {
                    let element = self.element_from(property.value)?;
                    let Some(target) = element.target else { return self.not_a_target(property.value) };
                    properties.push(PatternProperty { key: property.key, target, default: element.default });
                }
                PropertyKind::Spread => {
                    let inner = self.program.expr(self.program.unwrap_parens(property.value));
                    if matches!(inner, Expr::Array(_) | Expr::Object(_)) {
                        return self.not_a_target(property.value);
                    }
                    rest = Some(self.target_from(property.value)?);
                }
                PropertyKind::Method | PropertyKind::Getter | PropertyKind::Setter => {
                    return self.not_a_target(property.value);
                }
            }
        }
        if rest.is_some() && self.comma_after_spread.contains_key(&object) {
            return self.rest_not_last(object);
        }
        let properties = self.add_list(&properties);
        Ok(Pattern::Object { properties, rest })
    }

    fn rest_not_last<V>(&mut self, literal: ExprId) -> Parsed<V> {
        let span = self.comma_after_spread.get(&literal).copied();
        let span = span.unwrap_or_else(|| self.program.expr_span(literal));
        self.fail(span, "nothing may follow a rest element")
    }

    /// An arrow's parameters, from the expressions on the stack since `base`.
    pub(super) fn params_from_exprs(&mut self, base: usize) -> Parsed<Vec<Param>> {
        let mut params = Vec::with_capacity(self.expr_stack.len() - base);
        for i in base..self.expr_stack.len() {
            let expr = self.expr_stack[i];
            let element = self.element_from(expr)?;
            if let Some(target) = element.target {
                self.check_binding_pattern(target)?;
            }
            params.push(Param { element, end: self.program.expr_span(expr).end });
        }
        self.expr_stack.truncate(base);
        Ok(params)
    }

    /// Whether an assignment pattern can declare: plain names only.
    pub(super) fn check_binding_pattern(&mut self, pattern: PatternId) -> Parsed<()> {
        match self.program.pattern(pattern) {
            Pattern::Name(name) => {
                let found = *self.program.reference(name);
                if found.name == word::AWAIT && self.context.await_means != AwaitMeans::Name {
                    return self.fail(found.span, "`await` is a reserved word here");
                }
                Ok(())
            }
            Pattern::ParenName(name) => {
                let span = self.program.reference(name).span;
                self.fail(span, "a parameter cannot stand in parentheses")
            }
            Pattern::Member(expr) => {
                let span = self.program.expr_span(expr);
                self.fail(span, "a parameter must be a name or a pattern")
            }
            Pattern::Array { elements, rest } => {
                for i in elements.range() {
                    if let Some(target) = self.program.lists.pattern_elements[i].target {
                        self.check_binding_pattern(target)?;
                    }
                }
                rest.map_or(Ok(()), |rest| self.check_binding_pattern(rest))
            }
            Pattern::Object { properties, rest } => {
                for i in properties.range() {
                    self.check_binding_pattern(self.program.lists.pattern_properties[i].target)?;
                }
                rest.map_or(Ok(()), |rest| self.check_binding_pattern(rest))
            }
        }
    }

    /// Whether evaluating a pattern runs an expression of the source.
    pub(super) fn has_expression(&self, pattern: PatternId) -> bool {
        match self.program.pattern(pattern) {
            Pattern::Name(_) | Pattern::ParenName(_) => false,
            Pattern::Member(_) => true,
            Pattern::Array { elements, rest } => {
                self.program.list(elements).iter().any(|element| self.element_has_expression(element))
                    || rest.is_some_and(|rest| self.has_expression(rest))
            }
            Pattern::Object { properties, rest } => {
                self.program.list(properties).iter().any(|property| {
                    property.default.is_some()
                        || matches!(property.key, PropertyKey::Computed(_))
                        || self.has_expression(property.target)
                }) || rest.is_some_and(|rest| self.has_expression(rest))
            }
        }
    }

    pub(super) fn element_has_expression(&self, element: &PatternElement) -> bool {
        element.default.is_some() || element.target.is_some_and(|target| self.has_expression(target))
    }
}
