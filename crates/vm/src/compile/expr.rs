//! Expressions: values, effects and conditions.

use super::{CompileError, Compiler, MAX_DEPTH};
use crate::ast::{
    BinaryOp, Expr, ExprId, Function, LogicalOp, Pattern, RefId, UnaryOp, UpdateOp, UpdateResult,
};
use crate::code::{Constant, Member, Op};
use crate::compile::variable::{Store, Variable};

impl Compiler<'_> {
    /// The value in some register: a variable's own one if that is safe for the caller to read at once.
    pub(crate) fn expr(&mut self, id: ExprId) -> u8 {
        match self.tree.expr(id) {
            Expr::Paren(inner) => self.expr(inner),
            Expr::Ident(r) | Expr::This(r) | Expr::NewTarget(r) => self.read(r, None),
            Expr::Assign { target, value } => match self.tree.pattern(target) {
                Pattern::Name(r) | Pattern::ParenName(r) => self.assign_name(target, r, value),
                Pattern::Member(_) | Pattern::Array { .. } | Pattern::Object { .. } => self.expr_in_temp(id),
            },
            Expr::AssignOp { op, target, value } => match self.plain_register(target) {
                Some((r, reg)) if self.is_harmless(value) => {
                    let v = self.read(r, None);
                    let mark = self.emit.mark();
                    self.binary_step(op, v, value, reg, target);
                    self.emit.release(mark);
                    reg
                }
                _ => self.expr_in_temp(id),
            },
            Expr::Update { op, result: UpdateResult::New, target } => match self.plain_register(target) {
                Some((r, reg)) => {
                    let v = self.read(r, None);
                    self.emit.at(self.tree.expr_span(target).start);
                    self.emit.emit(step(op, reg, v));
                    reg
                }
                None => self.expr_in_temp(id),
            },
            _ => self.expr_in_temp(id),
        }
    }

    /// The register of a target that is an assignable register variable.
    fn plain_register(&self, target: ExprId) -> Option<(RefId, u8)> {
        match self.tree.expr(self.tree.unwrap_parens(target)) {
            Expr::Ident(r) if !self.is_constant(r) => match self.variable(r) {
                Variable::Register(reg) => Some((r, reg)),
                Variable::Cell(_)
                | Variable::Record(_)
                | Variable::RecordCell(_)
                | Variable::Captured(_)
                | Variable::Global => None,
            },
            _ => None,
        }
    }

    fn expr_in_temp(&mut self, id: ExprId) -> u8 {
        let d = self.emit.alloc();
        self.expr_to(id, d);
        d
    }

    /// The value in a register that nothing else will change while `until` is evaluated.
    pub(crate) fn stable(&mut self, id: ExprId, until: &[ExprId]) -> u8 {
        let r = self.expr(id);
        if self.emit.is_local(r) && !until.iter().all(|&e| self.is_harmless(e)) {
            let d = self.emit.alloc();
            self.emit.emit(Op::Move(d, r));
            return d;
        }
        r
    }

    /// Whether evaluating it surely assigns to no variable of this function; looks at a few nodes only.
    fn is_harmless(&self, id: ExprId) -> bool {
        let mut budget = 12;
        let mut stack = [id; 16];
        let mut len = 1;
        while len > 0 {
            if budget == 0 || len > 12 {
                return false;
            }
            budget -= 1;
            len -= 1;
            let at = stack[len];
            let mut push = |e: ExprId| {
                stack[len] = e;
                len += 1;
            };
            match self.tree.expr(at) {
                Expr::Null
                | Expr::Bool(_)
                | Expr::Number(_)
                | Expr::BigInt(_)
                | Expr::String(_)
                | Expr::Ident(_)
                | Expr::This(_)
                | Expr::NewTarget(_)
                | Expr::Function(_) => {}
                Expr::Paren(e) | Expr::Unary { operand: e, .. } | Expr::Member { object: e, .. } => push(e),
                Expr::Binary { left, right, .. } | Expr::Logical { left, right, .. } => {
                    push(left);
                    push(right);
                }
                Expr::Index { object, index, .. } => {
                    push(object);
                    push(index);
                }
                Expr::Call { callee, args, .. } => {
                    let args = self.tree.args(args);
                    if args.len() > 2 {
                        return false;
                    }
                    push(callee);
                    args.iter().for_each(|&a| push(a));
                }
                _ => return false,
            }
        }
        true
    }

    /// Evaluates for the effect alone.
    pub(crate) fn effect(&mut self, id: ExprId) {
        let mark = self.emit.mark();
        match self.tree.expr(id) {
            Expr::Paren(inner) => self.effect(inner),
            Expr::Update { op, target, .. } => self.update_effect(op, target),
            Expr::Sequence(list) => {
                for &e in self.tree.list(list) {
                    self.effect(e);
                }
            }
            _ => {
                self.expr(id);
            }
        }
        self.emit.release(mark);
    }

    /// Evaluates into `dst`, which no part of the expression reads: a fresh temporary.
    pub(crate) fn expr_to(&mut self, id: ExprId, dst: u8) {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let span = self.tree.expr_span(id);
            self.failed.get_or_insert(CompileError::TooDeep { span });
        } else {
            let mark = self.emit.mark();
            self.expr_inner(id, dst);
            self.emit.release(mark);
        }
        self.depth -= 1;
    }

    fn expr_inner(&mut self, id: ExprId, dst: u8) {
        let tree = self.tree;
        match tree.expr(id) {
            Expr::Null => self.emit.emit(Op::LoadNull(dst)),
            Expr::Bool(true) => self.emit.emit(Op::LoadTrue(dst)),
            Expr::Bool(false) => self.emit.emit(Op::LoadFalse(dst)),
            Expr::Number(n) => self.load_number(n, dst),
            Expr::BigInt(atom) => {
                let digits = tree.text(atom).to_string_lossy();
                let k = self.constant(Constant::BigInt(digits));
                self.emit.emit(Op::LoadK(dst, k));
            }
            Expr::String(atom) => {
                let k = self.string(atom);
                self.emit.emit(Op::LoadK(dst, k));
            }
            Expr::Regex(r) => {
                let regex = tree.regex(r);
                // The two constants must be neighbours, so they are not shared.
                let pattern = self.unshared(regex.pattern);
                self.unshared(regex.flags);
                self.emit.at(tree.expr_span(id).start);
                self.emit.emit(Op::NewRegExp(dst, pattern));
            }
            Expr::Template(t) => self.template(t, dst),
            Expr::Ident(r) | Expr::This(r) | Expr::NewTarget(r) => {
                self.read(r, Some(dst));
            }
            Expr::Array(list) => self.array(tree.list(list), dst),
            // The parser puts these two in arrays and arguments only, which handle them.
            Expr::Hole => self.emit.emit(Op::LoadUndef(dst)),
            Expr::Spread(inner) => self.expr_to(inner, dst),
            Expr::Object(list) => self.object(tree.list(list), dst),
            Expr::Function(f) => self.closure(f, dst),
            Expr::Class(c) => self.class(c, None, dst),
            Expr::Paren(inner) => self.expr_to(inner, dst),
            Expr::Unary { op, operand } => self.unary(op, operand, dst),
            Expr::Delete(target) => self.delete(target, dst),
            Expr::Update { op, result, target } => self.update(op, result, target, dst),
            Expr::Binary { .. } => self.binary(id, dst),
            Expr::PrivateIn { name, object } => {
                let o = self.expr(object);
                let n = self.read(name, None);
                self.emit.at(tree.expr_span(id).start);
                self.emit.emit(Op::HasPrivate(dst, n, o));
            }
            Expr::Logical { .. } => self.logical(id, dst),
            Expr::Conditional { test, yes, no } => {
                let otherwise = self.emit.label();
                let done = self.emit.label();
                self.jump_unless(test, otherwise);
                self.expr_to(yes, dst);
                self.emit.jump(Op::Jump, done);
                self.emit.bind(otherwise);
                self.expr_to(no, dst);
                self.emit.bind(done);
            }
            Expr::Assign { target, value } => self.assign(target, value, dst),
            Expr::AssignOp { op, target, value } => self.assign_op(op, target, value, dst),
            Expr::AssignLogical { op, target, value } => self.assign_logical(op, target, value, dst),
            Expr::Sequence(list) => {
                if let Some((&last, before)) = tree.list(list).split_last() {
                    for &e in before {
                        self.effect(e);
                    }
                    self.expr_to(last, dst);
                }
            }
            Expr::Member { .. }
            | Expr::Index { .. }
            | Expr::PrivateMember { .. }
            | Expr::Call { .. }
            | Expr::TaggedTemplate { .. } => self.chain(id, dst, None),
            Expr::OptionalChain(inner) => self.optional_chain(inner, dst),
            Expr::SuperMember(place) => {
                let member = tree.super_member(place);
                let (home, this, key) = self.super_parts(member);
                self.emit.at(tree.expr_span(id).start);
                self.emit.emit(Op::GetSuper(dst, home, this, key));
            }
            Expr::SuperCall(place) => self.super_call(id, place, dst),
            Expr::New { callee, args } => self.new_expr(id, callee, tree.args(args), dst),
            Expr::Await(operand) => {
                let v = self.expr(operand);
                self.emit.at(tree.expr_span(id).start);
                self.emit.emit(Op::Await(dst, v));
            }
            Expr::Yield(operand) => self.yield_expr(operand, dst),
            Expr::YieldStar(operand) => self.yield_star(operand, dst),
            Expr::Intrinsic { name, args } => self.intrinsic(id, name, tree.args(args), dst),
        }
    }

    fn unshared(&mut self, atom: crate::ast::Atom) -> u32 {
        let k = self.string(atom);
        let at = (k - self.base.constants) as usize;
        match self.constants.get(at).cloned() {
            Some(constant) => self.constant(constant),
            None => k,
        }
    }

    pub(crate) fn load_number(&mut self, n: f64, dst: u8) {
        match small_int(n) {
            Some(i) => self.emit.emit(Op::LoadInt(dst, i)),
            None => {
                let k = self.number(n);
                self.emit.emit(Op::LoadK(dst, k));
            }
        }
    }

    /// A value that takes the name in constant `k` if it is an anonymous function or class.
    pub(crate) fn named(&mut self, value: ExprId, k: u32) -> u8 {
        match self.tree.expr(self.tree.unwrap_parens(value)) {
            Expr::Function(f) if self.tree.function(f).name.is_none() => {
                self.names.insert(f.index() as u32, k);
                self.expr(value)
            }
            Expr::Class(c) if self.tree.class(c).name.is_none() => {
                let d = self.emit.alloc();
                self.class(c, Some(ClassName::Constant(k)), d);
                d
            }
            _ => self.expr(value),
        }
    }

    /// The same with a computed key, known only when it runs.
    pub(crate) fn named_by_key(&mut self, value: ExprId, key: u8) -> u8 {
        match self.tree.expr(self.tree.unwrap_parens(value)) {
            Expr::Function(f) if is_anonymous(self.tree.function(f)) => {
                let d = self.emit.alloc();
                self.expr_to(value, d);
                self.emit.emit(Op::SetName(d, key, Member::Field));
                d
            }
            Expr::Class(c) if self.tree.class(c).name.is_none() => {
                let d = self.emit.alloc();
                self.class(c, Some(ClassName::Register(key)), d);
                d
            }
            _ => self.expr(value),
        }
    }

    fn unary(&mut self, op: UnaryOp, operand: ExprId, dst: u8) {
        if op == UnaryOp::TypeOf
            && let Expr::Ident(r) = self.tree.expr(self.tree.unwrap_parens(operand))
        {
            self.read_for_typeof(r, dst);
            self.emit.emit(Op::TypeOf(dst, dst));
            return;
        }
        if op == UnaryOp::Minus
            && let Expr::Number(n) = self.tree.expr(operand)
        {
            self.load_number(-n, dst);
            return;
        }
        let v = self.expr(operand);
        self.emit.at(self.tree.expr_span(operand).start);
        self.emit.emit(match op {
            UnaryOp::Minus => Op::Neg(dst, v),
            UnaryOp::Plus => Op::ToNumber(dst, v),
            UnaryOp::Not => Op::Not(dst, v),
            UnaryOp::BitNot => Op::BitNot(dst, v),
            UnaryOp::TypeOf => Op::TypeOf(dst, v),
            UnaryOp::Void => Op::LoadUndef(dst),
        });
    }

    /// A chain of binary operators, by a loop down its left spine.
    fn binary(&mut self, id: ExprId, dst: u8) {
        let mut spine = Vec::new();
        let mut at = id;
        while let Expr::Binary { op, left, right } = self.tree.expr(at) {
            spine.push((op, right, at));
            at = left;
        }
        let first = spine.last().map(|&(_, right, _)| right);
        let mut acc = self.stable(at, first.as_slice());
        for &(op, right, node) in spine.iter().rev() {
            let mark = self.emit.mark();
            self.binary_step(op, acc, right, dst, node);
            self.emit.release(mark);
            acc = dst;
        }
    }

    fn binary_step(&mut self, op: BinaryOp, acc: u8, right: ExprId, dst: u8, node: ExprId) {
        let position = self.tree.expr_span(node).start;
        match (op, self.tree.expr(right)) {
            (
                BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Rem | BinaryOp::BitAnd,
                Expr::Number(n),
            ) => {
                if let Some(i) = small_int(n) {
                    self.emit.at(position);
                    self.emit.emit(match op {
                        BinaryOp::Add => Op::AddInt(dst, acc, i),
                        BinaryOp::Sub => Op::SubInt(dst, acc, i),
                        BinaryOp::Mul => Op::MulInt(dst, acc, i),
                        BinaryOp::Rem => Op::ModInt(dst, acc, i),
                        _ => Op::BitAndInt(dst, acc, i),
                    });
                    return;
                }
            }
            (BinaryOp::Add, Expr::String(atom)) => {
                let k = self.string(atom);
                self.emit.at(position);
                self.emit.emit(Op::AddK(dst, acc, k));
                return;
            }
            _ => {}
        }
        let r = self.expr(right);
        self.emit.at(position);
        self.emit.emit(binary_op(op, dst, acc, r));
    }

    fn logical(&mut self, id: ExprId, dst: u8) {
        let mut spine = Vec::new();
        let mut at = id;
        while let Expr::Logical { op, left, right } = self.tree.expr(at) {
            spine.push((op, right));
            at = left;
        }
        self.expr_to(at, dst);
        for &(op, right) in spine.iter().rev() {
            let done = self.emit.label();
            self.emit.jump(|t| logical_skip(op, dst, t), done);
            self.expr_to(right, dst);
            self.emit.bind(done);
        }
    }

    fn update_effect(&mut self, op: UpdateOp, target: ExprId) {
        if let Some((r, reg)) = self.plain_register(target) {
            let v = self.read(r, None);
            self.emit.at(self.tree.expr_span(target).start);
            self.emit.emit(step(op, reg, v));
            return;
        }
        let d = self.emit.alloc();
        self.update(op, UpdateResult::New, target, d);
    }

    fn update(&mut self, op: UpdateOp, result: UpdateResult, target: ExprId, dst: u8) {
        let place = self.target(target);
        self.load_target(place, dst);
        let position = self.tree.expr_span(target).start;
        self.emit.at(position);
        match result {
            UpdateResult::New => {
                self.emit.emit(step(op, dst, dst));
                self.store_target(place, dst, Store::Assign);
            }
            UpdateResult::Old => {
                let new = self.emit.alloc();
                self.emit.emit(Op::ToNumeric(dst, dst));
                self.emit.emit(step(op, new, dst));
                self.store_target(place, new, Store::Assign);
            }
        }
    }

    fn assign_op(&mut self, op: BinaryOp, target: ExprId, value: ExprId, dst: u8) {
        let place = self.target(target);
        self.load_target(place, dst);
        self.binary_step(op, dst, value, dst, target);
        let copy = self.emit.alloc();
        self.emit.emit(Op::Move(copy, dst));
        self.store_target(place, copy, Store::Assign);
    }

    fn assign_logical(&mut self, op: LogicalOp, target: ExprId, value: ExprId, dst: u8) {
        let place = self.target(target);
        self.load_target(place, dst);
        let done = self.emit.label();
        self.emit.jump(|t| logical_skip(op, dst, t), done);
        let mark = self.emit.mark();
        let v = match self.tree.expr(target) {
            Expr::Ident(r) => {
                let k = self.string(self.tree.reference(r).name);
                self.named(value, k)
            }
            _ => self.expr(value),
        };
        self.emit.emit(Op::Move(dst, v));
        let copy = self.emit.alloc();
        self.emit.emit(Op::Move(copy, dst));
        self.store_target(place, copy, Store::Assign);
        self.emit.release(mark);
        self.emit.bind(done);
    }

    fn yield_expr(&mut self, operand: Option<ExprId>, dst: u8) {
        let v = match operand {
            Some(e) => self.expr(e),
            None => {
                self.emit.emit(Op::LoadUndef(dst));
                dst
            }
        };
        self.yield_value(v, dst);
    }

    fn delete(&mut self, target: ExprId, dst: u8) {
        let inner = self.tree.unwrap_parens(target);
        match self.tree.expr(inner) {
            Expr::Member { object, name, .. } => {
                let o = self.expr(object);
                let key = self.emit.alloc();
                let k = self.string(name);
                self.emit.emit(Op::LoadK(key, k));
                self.emit.at(self.tree.expr_span(inner).start);
                self.emit.emit(Op::Delete(dst, o, key));
            }
            Expr::Index { object, index, .. } => {
                let o = self.stable(object, &[index]);
                let key = self.expr(index);
                self.emit.at(self.tree.expr_span(inner).start);
                self.emit.emit(Op::Delete(dst, o, key));
            }
            Expr::OptionalChain(chain) => {
                let nullish = self.emit.label();
                let done = self.emit.label();
                self.chain_delete(chain, dst, nullish);
                self.emit.jump(Op::Jump, done);
                self.emit.bind(nullish);
                self.emit.emit(Op::LoadTrue(dst));
                self.emit.bind(done);
            }
            Expr::SuperMember(place) => {
                self.super_parts(self.tree.super_member(place));
                let k = self.text("Unsupported reference to 'super'");
                self.emit.emit(Op::ThrowNew(crate::code::ErrorKind::Reference as u8, k));
            }
            _ => {
                self.effect(inner);
                self.emit.emit(Op::LoadTrue(dst));
            }
        }
    }
}

/// Where an anonymous class gets its name from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ClassName {
    Constant(u32),
    Register(u8),
}

fn is_anonymous(function: &Function) -> bool {
    function.name.is_none()
}

/// A number that instructions carry themselves: an int32 that is not -0.
pub(crate) fn small_int(n: f64) -> Option<i32> {
    let i = n as i32;
    (f64::from(i) == n && !(i == 0 && n.is_sign_negative())).then_some(i)
}

fn step(op: UpdateOp, dst: u8, src: u8) -> Op {
    match op {
        UpdateOp::Increment => Op::Inc(dst, src),
        UpdateOp::Decrement => Op::Dec(dst, src),
    }
}

/// The jump that skips the right operand.
fn logical_skip(op: LogicalOp, r: u8, t: u32) -> Op {
    match op {
        LogicalOp::And => Op::JFalse(r, t),
        LogicalOp::Or => Op::JTrue(r, t),
        LogicalOp::Nullish => Op::JNotNullish(r, t),
    }
}

pub(crate) fn binary_op(op: BinaryOp, d: u8, a: u8, b: u8) -> Op {
    match op {
        BinaryOp::Add => Op::Add(d, a, b),
        BinaryOp::Sub => Op::Sub(d, a, b),
        BinaryOp::Mul => Op::Mul(d, a, b),
        BinaryOp::Div => Op::Div(d, a, b),
        BinaryOp::Rem => Op::Mod(d, a, b),
        BinaryOp::Exp => Op::Exp(d, a, b),
        BinaryOp::ShiftLeft => Op::Shl(d, a, b),
        BinaryOp::ShiftRight => Op::Shr(d, a, b),
        BinaryOp::ShiftRightUnsigned => Op::UShr(d, a, b),
        BinaryOp::BitAnd => Op::BitAnd(d, a, b),
        BinaryOp::BitOr => Op::BitOr(d, a, b),
        BinaryOp::BitXor => Op::BitXor(d, a, b),
        BinaryOp::Equal => Op::Eq(d, a, b),
        BinaryOp::NotEqual => Op::Ne(d, a, b),
        BinaryOp::StrictEqual => Op::StrictEq(d, a, b),
        BinaryOp::StrictNotEqual => Op::StrictNe(d, a, b),
        BinaryOp::Less => Op::Lt(d, a, b),
        BinaryOp::LessEqual => Op::Le(d, a, b),
        BinaryOp::Greater => Op::Gt(d, a, b),
        BinaryOp::GreaterEqual => Op::Ge(d, a, b),
        BinaryOp::In => Op::In(d, a, b),
        BinaryOp::InstanceOf => Op::InstanceOf(d, a, b),
    }
}
