//! Literals with parts: templates, arrays, objects and their keys.

use super::Compiler;
use crate::ast::{Expr, ExprId, PropertyKey, PropertyKind, TemplateId};
use crate::code::{Member, Op, Template};

impl Compiler<'_> {
    pub(super) fn template(&mut self, template: TemplateId, dst: u8) {
        let t = self.tree.template(template);
        let chunks = self.tree.list(t.chunks);
        let subs = self.tree.list(t.substitutions);
        let mut started = false;
        for (i, chunk) in chunks.iter().enumerate() {
            let cooked = chunk.cooked.unwrap_or(chunk.raw);
            // The first chunk is kept even if empty: it makes the result a string.
            if i == 0 || !self.tree.text(cooked).is_empty() {
                let k = self.string(cooked);
                if started {
                    self.emit.emit(Op::AddK(dst, dst, k));
                } else {
                    self.emit.emit(Op::LoadK(dst, k));
                    started = true;
                }
            }
            if let Some(&sub) = subs.get(i) {
                let mark = self.emit.mark();
                let v = self.expr(sub);
                let s = self.emit.alloc();
                self.emit.at(self.tree.expr_span(sub).start);
                self.emit.emit(Op::ToStr(s, v));
                self.emit.emit(Op::Add(dst, dst, s));
                self.emit.release(mark);
            }
        }
    }

    /// The arrays of a tagged template, as a number into the program's templates.
    pub(crate) fn template_object(&mut self, template: TemplateId) -> u32 {
        let t = self.tree.template(template);
        let chunks = self.tree.list(t.chunks);
        let cooked = chunks.iter().map(|c| c.cooked.map(|a| self.string(a))).collect();
        let raw = chunks.iter().map(|c| self.string(c.raw)).collect();
        self.templates.push(Template { cooked, raw });
        self.base.templates + self.templates.len() as u32 - 1
    }

    pub(crate) fn array(&mut self, elements: &[ExprId], dst: u8) {
        self.emit.emit(Op::NewArray(dst, elements.len().min(1 << 16) as u32));
        for &e in elements {
            let mark = self.emit.mark();
            match self.tree.expr(e) {
                Expr::Hole => self.emit.emit(Op::ArrayHole(dst)),
                Expr::Spread(inner) => {
                    let v = self.expr(inner);
                    self.emit.at(self.tree.expr_span(inner).start);
                    self.emit.emit(Op::Spread(dst, v));
                }
                _ => {
                    let v = self.expr(e);
                    self.emit.emit(Op::ArrayPush(dst, v));
                }
            }
            self.emit.release(mark);
        }
    }

    pub(super) fn object(&mut self, properties: &[crate::ast::Property], dst: u8) {
        self.emit.emit(Op::NewObject(dst));
        for p in properties {
            let mark = self.emit.mark();
            match p.kind {
                PropertyKind::Value | PropertyKind::Shorthand => match p.key {
                    PropertyKey::Name(atom) => {
                        let k = self.string(atom);
                        let v = self.named(p.value, k);
                        let site = self.site(k);
                        self.emit.emit(Op::InitProp(dst, v, site));
                    }
                    key => {
                        let k = self.key(key);
                        let v = self.named_by_key(p.value, k);
                        self.emit.emit(Op::InitElem(dst, k, v));
                    }
                },
                PropertyKind::Proto => {
                    let v = self.expr(p.value);
                    self.emit.emit(Op::InitProto(dst, v));
                }
                PropertyKind::Method | PropertyKind::Getter | PropertyKind::Setter => {
                    let member = match p.kind {
                        PropertyKind::Getter => Member::LiteralGetter,
                        PropertyKind::Setter => Member::LiteralSetter,
                        _ => Member::LiteralMethod,
                    };
                    let k = self.key(p.key);
                    let f = self.emit.alloc();
                    if let Expr::Function(function) = self.tree.expr(p.value) {
                        self.name_member(function, p.key, member);
                    }
                    self.expr_to(p.value, f);
                    self.emit.emit(Op::SetHome(f, dst));
                    self.emit.emit(Op::SetName(f, k, member));
                    self.emit.emit(Op::InitMember(dst, k, f, member));
                }
                PropertyKind::Spread => {
                    let v = self.expr(p.value);
                    self.emit.at(self.tree.expr_span(p.value).start);
                    self.emit.emit(Op::CopyProps(dst, v));
                }
            }
            self.emit.release(mark);
        }
    }

    /// A property key as a value (already ToPropertyKey'd) in a fresh register.
    pub(crate) fn key(&mut self, key: PropertyKey) -> u8 {
        let d = self.emit.alloc();
        match key {
            PropertyKey::Name(atom) => {
                let k = self.string(atom);
                self.emit.emit(Op::LoadK(d, k));
            }
            PropertyKey::Number(n) => self.load_number(n, d),
            PropertyKey::Computed(e) => {
                self.expr_to(e, d);
                self.emit.at(self.tree.expr_span(e).start);
                self.emit.emit(Op::ToKey(d, d));
            }
            PropertyKey::Private(r) => {
                self.read(r, Some(d));
            }
        }
        d
    }
}
