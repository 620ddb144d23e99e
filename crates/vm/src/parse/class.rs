//! Classes.

use super::declare::PrivateKind;
use super::function::Shape;
use super::object::is_key_start;
use super::parser::{AwaitMeans, Parsed, Parser};
use super::primary::span_of;
use super::token::{T, word};
use crate::ast::{
    Atom, BindingKind, Body, Class, ClassElement, ClassId, ElementKind, Expr, ExprId, Flavour, FunctionId,
    FunctionKind, Held, List, Placement, PropertyKey, ScopeId, ScopeKind, Span, Stmt, StmtId, Target,
};

/// A class while it is read.
struct Draft {
    id: ClassId,
    scope: ScopeId,
    has_heritage: bool,
    constructor: Option<FunctionId>,
    instance_fields: Option<FunctionId>,
    static_fields: Option<FunctionId>,
    elements: Vec<ClassElement>,
}

/// What stands before an element's name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Modifier {
    None,
    Get,
    Set,
    Flavour(Flavour),
}

impl Parser<'_> {
    pub(super) fn class_expr(&mut self) -> Parsed<ExprId> {
        let start = self.tok.start;
        self.advance()?;
        let mut name = None;
        if !self.at(T::BraceOpen) && !self.at(T::Extends) {
            name = Some(self.class_name()?);
        }
        let class = self.class(start, name)?;
        Ok(self.add_expr(Expr::Class(class), start))
    }

    pub(super) fn class_declaration(&mut self) -> Parsed<StmtId> {
        let start = self.tok.start;
        self.advance()?;
        let (name, span) = self.class_name()?;
        let declared = self.declare(name, BindingKind::Class, span).index();
        let class = self.class(start, Some((name, span)))?;
        self.initialised(declared..declared + 1, self.prev_end);
        let binding = self.add_ref(name, span);
        Ok(self.add_stmt(Stmt::Class { class, binding }, start))
    }

    fn class_name(&mut self) -> Parsed<(Atom, Span)> {
        let token = self.tok;
        self.check_binding_name(token)?;
        self.advance()?;
        Ok((token.atom, span_of(token)))
    }

    fn class(&mut self, start: u32, name: Option<(Atom, Span)>) -> Parsed<ClassId> {
        self.nested(|p| p.class_inner(start, name))
    }

    fn class_inner(&mut self, start: u32, name: Option<(Atom, Span)>) -> Parsed<ClassId> {
        let scope = self.open_scope(ScopeKind::Class, start);
        let id = ClassId::from_index(self.program.classes.len());
        let inner_name = name.map(|(name, span)| self.add_binding(name, BindingKind::ClassName, scope, span));
        self.program.classes.push(Class {
            name: name.map(|(name, _)| name),
            scope,
            inner_name,
            heritage: None,
            constructor: None,
            elements: List::EMPTY,
            instance_fields: None,
            static_fields: None,
            span: Span::new(start, start),
        });
        let heritage = if self.eat(T::Extends)? { Some(self.left_hand_side()?) } else { None };
        self.expect(T::BraceOpen)?;
        let mut draft = Draft {
            id,
            scope,
            has_heritage: heritage.is_some(),
            constructor: None,
            instance_fields: None,
            static_fields: None,
            elements: Vec::new(),
        };
        let outer_in = std::mem::replace(&mut self.context.in_operator, true);
        while !self.at(T::BraceClose) {
            if !self.eat(T::Semicolon)? {
                self.element(&mut draft)?;
            }
        }
        self.context.in_operator = outer_in;
        self.advance()?;
        self.close_scope();
        if let Some(inner) = inner_name {
            self.initialised(inner.index()..inner.index() + 1, self.prev_end);
        }
        let elements = self.add_list(&draft.elements);
        let span = self.span_from(start);
        let class = &mut self.program.classes[id.index()];
        class.heritage = heritage;
        class.constructor = draft.constructor;
        class.elements = elements;
        class.instance_fields = draft.instance_fields;
        class.static_fields = draft.static_fields;
        class.span = span;
        Ok(id)
    }

    fn element(&mut self, draft: &mut Draft) -> Parsed<()> {
        let mut placement = Placement::Instance;
        if self.at_word(word::STATIC) {
            let next = self.peek()?.kind;
            if next == T::BraceOpen {
                return self.static_block(draft);
            }
            if is_key_start(next) || next == T::Star {
                self.advance()?;
                placement = Placement::Static;
            }
        }
        // `static` is no part of a method's own text.
        let start = self.tok.start;
        let modifier = self.modifier()?;
        let name = self.tok;
        let key = if name.kind == T::PrivateName {
            if name.atom == word::PRIVATE_CONSTRUCTOR {
                self.problem(span_of(name), "a private name cannot be `#constructor`");
            }
            self.advance()?;
            PropertyKey::Private(self.add_ref(name.atom, span_of(name)))
        } else {
            self.property_key()?
        };
        let is_method = self.at(T::ParenOpen) || modifier != Modifier::None;
        if let PropertyKey::Private(_) = key {
            let kind = match modifier {
                Modifier::Get => PrivateKind::Getter,
                Modifier::Set => PrivateKind::Setter,
                Modifier::None | Modifier::Flavour(_) => PrivateKind::Other,
            };
            self.declare_private(name.atom, span_of(name), placement, kind);
        }
        let span = span_of(name);
        if is_method {
            self.method(draft, key, placement, modifier, start, span)
        } else {
            self.field(draft, key, placement, span)
        }
    }

    fn modifier(&mut self) -> Parsed<Modifier> {
        if self.eat(T::Star)? {
            return Ok(Modifier::Flavour(Flavour::Generator));
        }
        if self.tok.kind != T::Ident || self.tok.escaped {
            return Ok(Modifier::None);
        }
        let word = self.tok.atom;
        if !matches!(word, word::ASYNC | word::GET | word::SET) {
            return Ok(Modifier::None);
        }
        let next = self.peek()?;
        if word == word::ASYNC && !next.newline_before && (is_key_start(next.kind) || next.kind == T::Star) {
            self.advance()?;
            let flavour = if self.eat(T::Star)? { Flavour::AsyncGenerator } else { Flavour::Async };
            return Ok(Modifier::Flavour(flavour));
        }
        if word != word::ASYNC && is_key_start(next.kind) {
            self.advance()?;
            return Ok(if word == word::GET { Modifier::Get } else { Modifier::Set });
        }
        Ok(Modifier::None)
    }

    fn method(
        &mut self,
        draft: &mut Draft,
        key: PropertyKey,
        placement: Placement,
        modifier: Modifier,
        start: u32,
        span: Span,
    ) -> Parsed<()> {
        let (mut kind, flavour) = match modifier {
            Modifier::None => (FunctionKind::Method, Flavour::Plain),
            Modifier::Get => (FunctionKind::Getter, Flavour::Plain),
            Modifier::Set => (FunctionKind::Setter, Flavour::Plain),
            Modifier::Flavour(flavour) => (FunctionKind::Method, flavour),
        };
        if placement == Placement::Static && key == PropertyKey::Name(word::PROTOTYPE) {
            self.problem(span, "a static member cannot be named `prototype`");
        }
        let is_constructor = placement == Placement::Instance && key == PropertyKey::Name(word::CONSTRUCTOR);
        if is_constructor {
            if modifier != Modifier::None {
                self.problem(span, "a constructor cannot be a getter, setter, generator or async function");
            }
            if draft.constructor.is_some() {
                self.problem(span, "this class already has a constructor");
            }
            kind = if draft.has_heritage {
                FunctionKind::DerivedConstructor
            } else {
                FunctionKind::BaseConstructor
            };
        }
        let function = self.function(Shape { kind, flavour, name: None, own_name: None, start })?;
        if is_constructor {
            draft.constructor = Some(function);
            return Ok(());
        }
        let kind = match modifier {
            Modifier::Get => ElementKind::Getter(function),
            Modifier::Set => ElementKind::Setter(function),
            Modifier::None | Modifier::Flavour(_) => ElementKind::Method(function),
        };
        let mut held = None;
        if matches!(key, PropertyKey::Private(_)) && placement == Placement::Instance {
            self.fields_function(draft, placement);
            held = Some(self.hold(draft, span));
        }
        draft.elements.push(ClassElement { kind, placement, key, held });
        Ok(())
    }

    fn field(&mut self, draft: &mut Draft, key: PropertyKey, placement: Placement, span: Span) -> Parsed<()> {
        let is_static_prototype = placement == Placement::Static && key == PropertyKey::Name(word::PROTOTYPE);
        if key == PropertyKey::Name(word::CONSTRUCTOR) || is_static_prototype {
            self.problem(span, "a field cannot have this name");
        }
        let mut value = None;
        if self.eat(T::Assign)? {
            let outer = self.enter_function(fields_shape(placement, span.start));
            value = Some(self.assign()?);
            self.leave_function(outer);
        }
        self.semicolon()?;
        self.fields_function(draft, placement);
        let held = matches!(key, PropertyKey::Computed(_)).then(|| self.hold(draft, span));
        draft.elements.push(ClassElement { kind: ElementKind::Field(value), placement, key, held });
        Ok(())
    }

    /// A hidden binding of the class, with the two places that use it.
    fn hold(&mut self, draft: &Draft, span: Span) -> Held {
        let binding = self.add_binding(word::EMPTY, BindingKind::Held, draft.scope, span);
        let [store, load] = [0, 1].map(|_| {
            let id = self.add_ref(word::EMPTY, span);
            // The resolver looks up no name here: it only finds out whether this is a capture.
            self.program.references[id.index()].target = Target::Local(binding);
            id
        });
        Held { store, load }
    }

    /// The function that runs the fields, made when first needed.
    fn fields_function(&mut self, draft: &mut Draft, placement: Placement) {
        let made = match placement {
            Placement::Instance => draft.instance_fields,
            Placement::Static => draft.static_fields,
        };
        if made.is_some() {
            return;
        }
        let start = self.tok.start;
        let scope = self.open_scope(ScopeKind::Function, start);
        self.close_scope();
        let id = self.reserve_function(fields_shape(placement, start), scope);
        self.program.functions[id.index()].body = Body::Fields(draft.id);
        match placement {
            Placement::Instance => draft.instance_fields = Some(id),
            Placement::Static => draft.static_fields = Some(id),
        }
    }

    fn static_block(&mut self, draft: &mut Draft) -> Parsed<()> {
        let start = self.tok.start;
        self.fields_function(draft, Placement::Static);
        let outer = self.enter_function(fields_shape(Placement::Static, start));
        self.context.await_means = AwaitMeans::Nothing;
        self.advance()?;
        let scope = self.open_scope(ScopeKind::StaticBlock, start);
        let body = self.block_body()?;
        self.close_scope();
        self.leave_function(outer);
        let kind = ElementKind::StaticBlock { scope, body };
        let key = PropertyKey::Name(word::EMPTY);
        draft.elements.push(ClassElement { kind, placement: Placement::Static, key, held: None });
        Ok(())
    }
}

fn fields_shape(placement: Placement, start: u32) -> Shape {
    let kind = match placement {
        Placement::Instance => FunctionKind::InstanceFields,
        Placement::Static => FunctionKind::StaticFields,
    };
    Shape { kind, flavour: Flavour::Plain, name: None, own_name: None, start }
}
