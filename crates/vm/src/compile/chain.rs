//! Members and calls: chains are walked by a loop down their left spine.

use super::{CompileError, Compiler};
use crate::ast::{ArgsId, Atom, Expr, ExprId, Link, PropertyKey, SuperMember, TemplateId};
use crate::builtins::{Percent, percent};
use crate::code::Op;
use crate::compile::emit::Label;
use crate::compile::variable::Home;
use crate::heap::{Class, symbols};

/// Arguments beyond this many go through an array: registers are few.
const MAX_ARGUMENTS: usize = 100;
/// The same in a function that is short of registers.
const FEW_ARGUMENTS: usize = 4;

/// One step of a chain, from the inside out.
#[derive(Clone, Copy)]
enum Step {
    Member(Link, Atom),
    Index(Link, ExprId),
    Private(Link, crate::ast::RefId),
    Call(Link, ArgsId),
    Tagged(TemplateId),
}

/// What the walk has in hand.
enum Hand {
    /// A value.
    Value(u8),
    /// A function and its `this`, in two consecutive registers at the top of the frame.
    Callee(u8),
}

impl Compiler<'_> {
    /// A member/call chain's value. `?.` jumps to `nullish` when it finds nothing.
    pub(crate) fn chain(&mut self, id: ExprId, dst: u8, nullish: Option<Label>) {
        let (base, steps) = self.steps(id);
        let mut hand = self.chain_base(base, steps.first().map(|s| s.0));
        for i in 0..steps.len() {
            let last = i + 1 == steps.len();
            let callee_next = matches!(steps.get(i + 1), Some((Step::Call(..) | Step::Tagged(_), _)));
            hand = self.chain_step(hand, steps[i], if last { Some(dst) } else { None }, callee_next, nullish);
        }
        if let Hand::Value(r) = hand
            && r != dst
        {
            self.emit.emit(Op::Move(dst, r));
        }
    }

    /// `a?.b.c`: undefined if any `?.` finds null or undefined.
    pub(crate) fn optional_chain(&mut self, inner: ExprId, dst: u8) {
        let nullish = self.emit.label();
        let done = self.emit.label();
        self.chain(inner, dst, Some(nullish));
        self.emit.jump(Op::Jump, done);
        self.emit.bind(nullish);
        self.emit.emit(Op::LoadUndef(dst));
        self.emit.bind(done);
    }

    /// `delete` of an optional chain's last member.
    pub(crate) fn chain_delete(&mut self, id: ExprId, dst: u8, nullish: Label) {
        let (object, key) = match self.tree.expr(id) {
            Expr::Member { link, object, name } => ((link, object), PropertyKey::Name(name)),
            Expr::Index { link, object, index } => ((link, object), PropertyKey::Computed(index)),
            _ => {
                self.chain(id, dst, Some(nullish));
                self.emit.emit(Op::LoadTrue(dst));
                return;
            }
        };
        let o = self.emit.alloc();
        self.chain_or_value(object.1, o, nullish);
        if object.0 == Link::Optional {
            self.emit.jump(|t| Op::JNullish(o, t), nullish);
        }
        let k = self.emit.alloc();
        match key {
            PropertyKey::Name(atom) => {
                let c = self.string(atom);
                self.emit.emit(Op::LoadK(k, c));
            }
            PropertyKey::Computed(e) => self.expr_to(e, k),
            PropertyKey::Number(_) | PropertyKey::Private(_) => {}
        }
        self.emit.at(self.tree.expr_span(id).start);
        self.emit.emit(Op::Delete(dst, o, k));
    }

    fn chain_or_value(&mut self, id: ExprId, dst: u8, nullish: Label) {
        match self.tree.expr(id) {
            Expr::Member { .. } | Expr::Index { .. } | Expr::PrivateMember { .. } | Expr::Call { .. } => {
                self.chain(id, dst, Some(nullish));
            }
            _ => self.expr_to(id, dst),
        }
    }

    fn steps(&self, id: ExprId) -> (ExprId, Vec<(Step, ExprId)>) {
        let mut steps = Vec::new();
        let mut at = id;
        loop {
            let (step, next) = match self.tree.expr(at) {
                Expr::Member { link, object, name } => (Step::Member(link, name), object),
                Expr::Index { link, object, index } => (Step::Index(link, index), object),
                Expr::PrivateMember { link, object, name } => (Step::Private(link, name), object),
                Expr::Call { link, callee, args } => (Step::Call(link, args), callee),
                Expr::TaggedTemplate { tag, template } => (Step::Tagged(template), tag),
                _ => break,
            };
            steps.push((step, at));
            at = next;
        }
        steps.reverse();
        (at, steps)
    }

    /// The innermost value, laid out for what comes next.
    fn chain_base(&mut self, base: ExprId, first: Option<Step>) -> Hand {
        match first {
            Some(Step::Call(..) | Step::Tagged(_)) => Hand::Callee(self.callee(base)),
            Some(Step::Index(_, index)) => Hand::Value(self.stable(base, &[index])),
            Some(Step::Member(..) | Step::Private(..)) | None => Hand::Value(self.expr(base)),
        }
    }

    /// A function and its `this` at the top of the frame. Parentheses keep the `this` of a member inside.
    fn callee(&mut self, id: ExprId) -> u8 {
        let inner = self.tree.unwrap_parens(id);
        let at = self.emit.alloc_many(2);
        match self.tree.expr(inner) {
            Expr::SuperMember(place) => {
                let mark = self.emit.mark();
                let (home, this, key) = self.super_parts(self.tree.super_member(place));
                self.emit.at(self.tree.expr_span(inner).start);
                self.emit.emit(Op::GetSuper(at, home, this, key));
                self.emit.emit(Op::Move(at + 1, this));
                self.emit.release(mark);
            }
            Expr::Member { .. } | Expr::Index { .. } | Expr::PrivateMember { .. } if inner != id => {
                self.member_callee(inner, at, None);
            }
            Expr::OptionalChain(chain)
                if inner != id
                    && matches!(
                        self.tree.expr(chain),
                        Expr::Member { .. } | Expr::Index { .. } | Expr::PrivateMember { .. }
                    ) =>
            {
                let nullish = self.emit.label();
                let done = self.emit.label();
                self.member_callee(chain, at, Some(nullish));
                self.emit.jump(Op::Jump, done);
                self.emit.bind(nullish);
                self.emit.emit(Op::LoadUndef(at));
                self.emit.emit(Op::LoadUndef(at + 1));
                self.emit.bind(done);
            }
            _ => {
                self.expr_to(inner, at);
                self.emit.emit(Op::LoadUndef(at + 1));
            }
        }
        at
    }

    /// A member as callee, into `at` and `at + 1`.
    fn member_callee(&mut self, id: ExprId, at: u8, nullish: Option<Label>) {
        let mark = self.emit.mark();
        let (base, steps) = self.steps(id);
        let mut hand = self.chain_base(base, steps.first().map(|s| s.0));
        for i in 0..steps.len() {
            let last = i + 1 == steps.len();
            let callee_next = last || matches!(steps.get(i + 1), Some((Step::Call(..) | Step::Tagged(_), _)));
            hand = self.chain_step(hand, steps[i], None, callee_next, nullish);
        }
        if let Hand::Callee(r) = hand {
            self.emit.emit(Op::Move(at, r));
            self.emit.emit(Op::Move(at + 1, r + 1));
        }
        self.emit.release(mark);
    }

    fn chain_step(
        &mut self,
        hand: Hand,
        (step, node): (Step, ExprId),
        dst: Option<u8>,
        callee_next: bool,
        nullish: Option<Label>,
    ) -> Hand {
        let value = match hand {
            Hand::Value(r) | Hand::Callee(r) => r,
        };
        let link = match step {
            Step::Member(l, _) | Step::Index(l, _) | Step::Private(l, _) | Step::Call(l, _) => l,
            Step::Tagged(_) => Link::Plain,
        };
        if link == Link::Optional
            && let Some(label) = nullish
        {
            self.emit.jump(|t| Op::JNullish(value, t), label);
        }
        let position = self.tree.expr_span(node).end.saturating_sub(1);
        let value = match (&hand, step) {
            // What a call answered is called in turn: without a receiver.
            (Hand::Value(_), Step::Call(..) | Step::Tagged(_)) => {
                let at = self.callee_pair(value);
                if at != value {
                    self.emit.emit(Op::Move(at, value));
                }
                self.emit.emit(Op::LoadUndef(at + 1));
                at
            }
            _ => value,
        };
        match step {
            Step::Member(_, atom) => {
                let site = self.atom_site(atom);
                if callee_next {
                    let at = self.callee_pair(value);
                    self.emit.at(position);
                    self.emit.emit(Op::GetMethod(at, value, site));
                    Hand::Callee(at)
                } else {
                    let d = dst.unwrap_or_else(|| self.own_temp(value));
                    self.emit.at(position);
                    self.emit.emit(Op::GetProp(d, value, site));
                    Hand::Value(d)
                }
            }
            Step::Index(_, index) => {
                self.indexed(value, callee_next, dst, position, |c| c.expr(index), Op::GetElem)
            }
            Step::Private(_, name) => {
                self.indexed(value, callee_next, dst, position, |c| c.read(name, None), Op::GetPrivate)
            }
            Step::Call(_, args) => {
                let args = self.tree.args(args);
                let d = self.call_args(value, args, dst, self.tree.expr_span(node).start);
                Hand::Value(d)
            }
            Step::Tagged(template) => {
                let object = self.template_object(template);
                let subs = self.tree.list(self.tree.template(template).substitutions);
                let t = self.emit.alloc();
                self.emit.emit(Op::Template(t, object));
                for &s in subs {
                    let r = self.emit.alloc();
                    self.expr_to(s, r);
                }
                self.emit.release(value);
                let d = dst.unwrap_or_else(|| self.emit.alloc());
                self.emit.at(position);
                self.emit.emit(Op::Call(d, value, subs.len() as u8 + 1));
                Hand::Value(d)
            }
        }
    }

    fn indexed(
        &mut self,
        value: u8,
        callee_next: bool,
        dst: Option<u8>,
        position: u32,
        key: impl FnOnce(&mut Self) -> u8,
        get: fn(u8, u8, u8) -> Op,
    ) -> Hand {
        if callee_next {
            let at = self.callee_pair(value);
            self.emit.emit(Op::Move(at + 1, value));
            let mark = self.emit.mark();
            let k = key(self);
            self.emit.at(position);
            self.emit.emit(get(at, at + 1, k));
            self.emit.release(mark);
            return Hand::Callee(at);
        }
        let d = dst.unwrap_or_else(|| self.own_temp(value));
        let mark = self.emit.mark();
        let k = key(self);
        self.emit.at(position);
        self.emit.emit(get(d, value, k));
        self.emit.release(mark);
        Hand::Value(d)
    }

    /// The register of a temporary that is no longer needed, or a new one: a chain of any length needs few.
    fn own_temp(&mut self, value: u8) -> u8 {
        if self.emit.is_local(value) { self.emit.alloc() } else { value }
    }

    /// Two registers at the top of the frame for a function and its `this`, which may replace the top temporary.
    fn callee_pair(&mut self, value: u8) -> u8 {
        if !self.emit.is_local(value) && value + 1 == self.emit.mark() {
            self.emit.alloc();
            value
        } else {
            self.emit.alloc_many(2)
        }
    }

    /// Evaluates arguments above `at` and calls. The registers from `at` up are given back.
    fn call_args(&mut self, at: u8, args: &[ExprId], dst: Option<u8>, position: u32) -> u8 {
        let spread = self.arguments(at, args);
        self.emit.release(at);
        let d = dst.unwrap_or_else(|| self.emit.alloc());
        self.emit.at(position);
        self.emit.emit(match spread {
            None => Op::CallSpread(d, at),
            Some(n) => Op::Call(d, at, n),
        });
        d
    }

    /// Arguments in `at + 2 ..`; answers their number, or nothing if they are one array.
    fn arguments(&mut self, at: u8, args: &[ExprId]) -> Option<u8> {
        // The callee's window begins at `at + 1`, so the arguments must be the top of this frame.
        self.emit.release(at + 2);
        let most = if self.home == Home::Record { FEW_ARGUMENTS } else { MAX_ARGUMENTS };
        let plain = args.len() <= most && args.iter().all(|&a| !matches!(self.tree.expr(a), Expr::Spread(_)));
        if plain {
            for &a in args {
                let r = self.emit.alloc();
                self.expr_to(a, r);
            }
            return Some(args.len() as u8);
        }
        let array = self.emit.alloc();
        self.array(args, array);
        None
    }

    pub(crate) fn new_expr(&mut self, id: ExprId, callee: ExprId, args: &[ExprId], dst: u8) {
        let at = self.emit.alloc_many(2);
        self.expr_to(callee, at);
        let n = self.arguments(at, args);
        self.emit.at(self.tree.expr_span(id).start);
        self.emit.emit(match n {
            Some(n) => Op::New(dst, at, n),
            None => Op::NewSpread(dst, at),
        });
    }

    pub(crate) fn super_call(&mut self, id: ExprId, place: u32, dst: u8) {
        let call = self.tree.super_call(place);
        let target = self.read(call.new_target, None);
        let at = self.emit.alloc_many(2);
        self.read(call.callee, Some(at));
        let args = self.tree.list(call.args);
        let n = self.arguments(at, args);
        self.emit.at(self.tree.expr_span(id).start);
        self.emit.emit(match n {
            Some(n) => Op::SuperCall(dst, at, n, target),
            None => Op::SuperCallSpread(dst, at, target),
        });
        // `this` is bound after the parent returned; a second `super()` fails then, as the language says.
        let old = self.emit.alloc();
        self.read_unchecked(call.this, old);
        self.emit.emit(Op::CheckUnbound(old));
        self.emit.emit(Op::Move(old, dst));
        self.write(call.this, old, crate::compile::variable::Store::Initialise);
        self.read(call.callee, Some(at));
        self.emit.emit(Op::InitFields(at, dst));
    }

    /// Where a `super` member is looked up, its `this` and its key.
    pub(crate) fn super_parts(&mut self, member: SuperMember) -> (u8, u8, u8) {
        let this = self.read(member.this, None);
        let key = match member.key {
            PropertyKey::Computed(e) => {
                let d = self.emit.alloc();
                self.expr_to(e, d);
                d
            }
            key => self.key(key),
        };
        // Where the key is looked up is decided before the key is converted.
        let base = self.emit.alloc();
        self.read(member.callee, Some(base));
        if let Some(Percent::Intrinsic(number)) = percent("SuperBase") {
            self.emit.emit(Op::Intrinsic(base, base, 1, number));
        }
        (base, this, key)
    }

    pub(crate) fn intrinsic(&mut self, id: ExprId, name: Atom, args: &[ExprId], dst: u8) {
        let text = self.tree.text(name).to_string_lossy();
        let span = self.tree.expr_span(id);
        if text == "Call" {
            // %Call(f, this, ...args): an ordinary call with an explicit receiver.
            let at = self.emit.alloc_many(2);
            if let [f, this, rest @ ..] = args {
                self.expr_to(*f, at);
                self.expr_to(*this, at + 1);
                let n = self.arguments(at, rest);
                self.emit.at(span.start);
                self.emit.emit(match n {
                    Some(n) => Op::Call(dst, at, n),
                    None => Op::CallSpread(dst, at),
                });
            }
            return;
        }
        if text == "Arguments" {
            // All arguments as an array, whatever the parameters are.
            self.emit.emit(Op::Rest(dst, 0));
            return;
        }
        let Some(meaning) = percent(&text) else {
            self.failed.get_or_insert(CompileError::UnknownIntrinsic { span });
            return;
        };
        let first = self.emit.mark();
        for (i, &a) in args.iter().enumerate() {
            let r = self.emit.alloc();
            // The first argument of some is a name, which becomes a number here.
            match self.literal_name(&text, a).filter(|_| i == 0) {
                Some(n) => self.emit.emit(Op::LoadInt(r, n)),
                None => self.expr_to(a, r),
            }
        }
        self.emit.at(span.start);
        self.emit.emit(match meaning {
            Percent::Intrinsic(number) => Op::Intrinsic(dst, first, args.len() as u8, number),
            Percent::Shared(place) => Op::CallHelper(dst, first, args.len() as u8, place),
        });
    }

    /// The number that a literal name stands for in `%Is("Map", x)`, `%Symbol("iterator")` and their siblings.
    fn literal_name(&self, intrinsic: &str, arg: ExprId) -> Option<i32> {
        let Expr::String(atom) = self.tree.expr(arg) else { return None };
        let name = self.tree.text(atom).to_string_lossy();
        let place = match intrinsic {
            "Is" | "NewSlots" | "NewCell" => Class::ALL.iter().position(|c| format!("{c:?}") == name),
            "Symbol" => symbols::TEXTS.iter().position(|s| s.strip_prefix("Symbol.") == Some(&name)),
            _ => None,
        };
        place.map(|p| p as i32)
    }
}
