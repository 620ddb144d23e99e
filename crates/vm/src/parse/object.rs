//! Array and object literals, and the keys of properties.

use super::function::Shape;
use super::parser::{Parsed, Parser};
use super::primary::span_of;
use super::token::{T, word};
use crate::ast::{Atom, Expr, ExprId, Flavour, FunctionKind, Pattern, Property, PropertyKey, PropertyKind};

impl Parser<'_> {
    pub(super) fn array(&mut self) -> Parsed<ExprId> {
        let start = self.tok.start;
        self.advance()?;
        let base = self.expr_stack.len();
        let mut comma_after_spread = None;
        self.with_in(|p| {
            while !p.at(T::BracketClose) {
                let start = p.tok.start;
                let element = match p.tok.kind {
                    T::Comma => p.add_expr(Expr::Hole, start),
                    T::Ellipsis => {
                        p.advance()?;
                        let inner = p.assign_or_cover()?;
                        if p.at(T::Comma) {
                            comma_after_spread = Some(p.span());
                        }
                        p.add_expr(Expr::Spread(inner), start)
                    }
                    _ => p.assign_or_cover()?,
                };
                p.expr_stack.push(element);
                if !p.at(T::BracketClose) {
                    p.expect(T::Comma)?;
                }
            }
            Ok(())
        })?;
        self.advance()?;
        let list = self.take_exprs(base);
        let array = self.add_expr(Expr::Array(list), start);
        if let Some(span) = comma_after_spread {
            self.comma_after_spread.insert(array, span);
        }
        Ok(array)
    }

    pub(super) fn object(&mut self) -> Parsed<ExprId> {
        let start = self.tok.start;
        self.advance()?;
        let mut properties = std::mem::take(&mut self.spare_properties);
        let base = properties.len();
        let mut comma_after_spread = None;
        let mut has_proto = false;
        let outer_in = std::mem::replace(&mut self.context.in_operator, true);
        while !self.at(T::BraceClose) {
            // Nested literals use the same stack, above what is on it.
            self.spare_properties = properties;
            let span = self.span();
            let property = self.property()?;
            properties = std::mem::take(&mut self.spare_properties);
            if property.kind == PropertyKind::Proto && std::mem::replace(&mut has_proto, true) {
                self.open_cover.get_or_insert((span, "`__proto__` is given twice"));
            }
            properties.push(property);
            if !self.at(T::BraceClose) {
                if property.kind == PropertyKind::Spread && self.at(T::Comma) {
                    comma_after_spread = Some(self.span());
                }
                self.expect(T::Comma)?;
            }
        }
        self.context.in_operator = outer_in;
        self.advance()?;
        let list = self.add_list(&properties[base..]);
        properties.truncate(base);
        self.spare_properties = properties;
        let object = self.add_expr(Expr::Object(list), start);
        if let Some(span) = comma_after_spread {
            self.comma_after_spread.insert(object, span);
        }
        Ok(object)
    }

    fn property(&mut self) -> Parsed<Property> {
        let token = self.tok;
        let start = token.start;
        match token.kind {
            T::Ellipsis => {
                self.advance()?;
                let value = self.assign_or_cover()?;
                return Ok(Property { kind: PropertyKind::Spread, key: PropertyKey::Computed(value), value });
            }
            T::Star => {
                self.advance()?;
                let key = self.property_key()?;
                return self.object_method(
                    key,
                    PropertyKind::Method,
                    FunctionKind::Method,
                    Flavour::Generator,
                    start,
                );
            }
            T::Ident if !token.escaped && matches!(token.atom, word::ASYNC | word::GET | word::SET) => {
                let next = self.peek()?;
                if token.atom == word::ASYNC
                    && !next.newline_before
                    && (next.kind == T::Star || is_key_start(next.kind))
                {
                    self.advance()?;
                    let flavour = if self.eat(T::Star)? { Flavour::AsyncGenerator } else { Flavour::Async };
                    let key = self.property_key()?;
                    return self.object_method(
                        key,
                        PropertyKind::Method,
                        FunctionKind::Method,
                        flavour,
                        start,
                    );
                }
                if token.atom != word::ASYNC && is_key_start(next.kind) {
                    self.advance()?;
                    let key = self.property_key()?;
                    let (kind, function) = if token.atom == word::GET {
                        (PropertyKind::Getter, FunctionKind::Getter)
                    } else {
                        (PropertyKind::Setter, FunctionKind::Setter)
                    };
                    return self.object_method(key, kind, function, Flavour::Plain, start);
                }
            }
            _ => {}
        }
        let key = self.property_key()?;
        match self.tok.kind {
            T::ParenOpen => {
                self.object_method(key, PropertyKind::Method, FunctionKind::Method, Flavour::Plain, start)
            }
            T::Colon => {
                self.advance()?;
                let value = self.assign_or_cover()?;
                let is_proto = key == PropertyKey::Name(word::PROTO);
                let kind = if is_proto { PropertyKind::Proto } else { PropertyKind::Value };
                Ok(Property { kind, key, value })
            }
            _ if token.kind == T::Ident || token.kind.is_reserved() => {
                self.check_reference(token)?;
                let name = self.add_ref(token.atom, span_of(token));
                let key = PropertyKey::Name(token.atom);
                if self.at(T::Assign) {
                    let span = self.span();
                    let message = "`=` after a shorthand property is only for destructuring; expected `:`";
                    self.open_cover.get_or_insert((span, message));
                    self.check_assignable(name);
                    self.advance()?;
                    let target = self.add_pattern(Pattern::Name(name));
                    // The literal is open until it is known to be a pattern; this value is complete.
                    let value = self.assign()?;
                    let value = self.add_expr(Expr::Assign { target, value }, start);
                    return Ok(Property { kind: PropertyKind::Shorthand, key, value });
                }
                let value = self.add_expr(Expr::Ident(name), start);
                Ok(Property { kind: PropertyKind::Shorthand, key, value })
            }
            _ => self.unexpected("`:` after the property name"),
        }
    }

    fn object_method(
        &mut self,
        key: PropertyKey,
        kind: PropertyKind,
        function: FunctionKind,
        flavour: Flavour,
        start: u32,
    ) -> Parsed<Property> {
        let function = self.function(Shape { kind: function, flavour, name: None, own_name: None, start })?;
        let value = self.add_expr(Expr::Function(function), start);
        Ok(Property { kind, key, value })
    }

    /// A property's name in a literal, pattern or class. Private names are the caller's to allow.
    pub(super) fn property_key(&mut self) -> Parsed<PropertyKey> {
        let token = self.tok;
        let key = match token.kind {
            T::Ident | T::String => PropertyKey::Name(token.atom),
            T::Number => self.number_key(token.number),
            T::BigInt => PropertyKey::Name(self.bigint_key(token.atom)),
            T::BracketOpen => {
                self.advance()?;
                let key = self.with_in(Self::assign)?;
                self.expect(T::BracketClose)?;
                return Ok(PropertyKey::Computed(key));
            }
            kind if kind.is_reserved() => PropertyKey::Name(token.atom),
            _ => return self.unexpected("a property name"),
        };
        self.advance()?;
        Ok(key)
    }

    fn number_key(&mut self, number: f64) -> PropertyKey {
        if number.fract() == 0.0 && number <= f64::from(u32::MAX) {
            PropertyKey::Name(self.program.texts.intern(&(number as u32).to_string()))
        } else {
            PropertyKey::Number(number)
        }
    }

    /// The key that a BigInt literal names: its value in decimal.
    fn bigint_key(&mut self, digits: Atom) -> Atom {
        let text = self.program.text(digits).to_string_lossy();
        let radix = match text.get(..2) {
            Some("0x") => 16,
            Some("0o") => 8,
            Some("0b") => 2,
            _ => return digits,
        };
        let value = num_bigint::BigUint::parse_bytes(&text.as_bytes()[2..], radix).unwrap_or_default();
        self.program.texts.intern(&value.to_string())
    }
}

/// Whether a property name can start with this token.
pub(super) fn is_key_start(kind: T) -> bool {
    matches!(kind, T::Ident | T::String | T::Number | T::BigInt | T::BracketOpen | T::PrivateName)
        || kind.is_reserved()
}
