//! Conditions: expressions that only decide where to go on.

use super::Compiler;
use super::expr::small_int;
use crate::ast::{BinaryOp, Expr, ExprId, LogicalOp, UnaryOp};
use crate::code::Op;
use crate::compile::emit::Label;

impl Compiler<'_> {
    /// Jumps to `label` if the expression is falsy; falls through otherwise.
    pub(crate) fn jump_unless(&mut self, id: ExprId, label: Label) {
        let mark = self.emit.mark();
        match self.tree.expr(id) {
            Expr::Paren(inner) => self.jump_unless(inner, label),
            Expr::Unary { op: UnaryOp::Not, operand } => self.jump_if(operand, label),
            Expr::Logical { op: LogicalOp::And, left, right } if !self.is_spine(left) => {
                self.jump_unless(left, label);
                self.jump_unless(right, label);
            }
            Expr::Logical { op: LogicalOp::Or, left, right } if !self.is_spine(left) => {
                let yes = self.emit.label();
                self.jump_if(left, yes);
                self.jump_unless(right, label);
                self.emit.bind(yes);
            }
            Expr::Binary { op, left, right }
                if !self.is_spine(left) && fused(op, Sense::Unless).is_some() =>
            {
                if let Some(i) = self.short_int(right)
                    && let BinaryOp::Less | BinaryOp::StrictEqual = op
                {
                    let a = self.expr(left);
                    self.emit.at(self.tree.expr_span(id).start);
                    if op == BinaryOp::Less {
                        self.emit.jump(|t| Op::JNotLtInt(a, i, t), label);
                    } else {
                        self.emit.jump(|t| Op::JNotInt(a, i, t), label);
                    }
                } else {
                    self.compare_jump(id, (op, left, right), Sense::Unless, label);
                }
            }
            _ => {
                let v = self.expr(id);
                self.emit.jump(|t| Op::JFalse(v, t), label);
            }
        }
        self.emit.release(mark);
    }

    /// The end of a loop: back to `top` if the test holds, on to `end`, which is bound next, otherwise.
    pub(crate) fn loop_while(&mut self, test: ExprId, top: Label, end: Label) {
        let Expr::Binary { op: BinaryOp::Less, left, right } = self.tree.expr(test) else {
            self.jump_unless(test, end);
            return self.emit.loop_to(top);
        };
        if self.is_spine(left) {
            self.jump_unless(test, end);
            return self.emit.loop_to(top);
        }
        let mark = self.emit.mark();
        if let Some(i) = self.short_int(right) {
            let a = self.expr(left);
            self.emit.at(self.tree.expr_span(test).start);
            self.emit.jump(|t| Op::LoopLtInt(a, i, t), top);
        } else {
            let a = self.stable(left, &[right]);
            let b = self.expr(right);
            self.emit.at(self.tree.expr_span(test).start);
            self.emit.jump(|t| Op::LoopLt(a, b, t), top);
        }
        self.emit.release(mark);
    }

    /// The value of a literal that is an integer of sixteen bits.
    fn short_int(&self, id: ExprId) -> Option<i16> {
        match self.tree.expr(id) {
            Expr::Number(n) => small_int(n).and_then(|i| i16::try_from(i).ok()),
            _ => None,
        }
    }

    /// Jumps to `label` if the expression is truthy; falls through otherwise.
    pub(crate) fn jump_if(&mut self, id: ExprId, label: Label) {
        let mark = self.emit.mark();
        match self.tree.expr(id) {
            Expr::Paren(inner) => self.jump_if(inner, label),
            Expr::Unary { op: UnaryOp::Not, operand } => self.jump_unless(operand, label),
            Expr::Logical { op: LogicalOp::Or, left, right } if !self.is_spine(left) => {
                self.jump_if(left, label);
                self.jump_if(right, label);
            }
            Expr::Logical { op: LogicalOp::And, left, right } if !self.is_spine(left) => {
                let no = self.emit.label();
                self.jump_unless(left, no);
                self.jump_if(right, label);
                self.emit.bind(no);
            }
            Expr::Binary { op, left, right } if !self.is_spine(left) && fused(op, Sense::If).is_some() => {
                self.compare_jump(id, (op, left, right), Sense::If, label);
            }
            _ => {
                let v = self.expr(id);
                self.emit.jump(|t| Op::JTrue(v, t), label);
            }
        }
        self.emit.release(mark);
    }

    fn compare_jump(&mut self, id: ExprId, parts: (BinaryOp, ExprId, ExprId), sense: Sense, label: Label) {
        let (op, left, right) = parts;
        let a = self.stable(left, &[right]);
        let b = self.expr(right);
        self.emit.at(self.tree.expr_span(id).start);
        if let Some(make) = fused(op, sense) {
            self.emit.jump(|t| make(a, b, t), label);
        }
    }

    /// Whether an operand may be a long chain, which conditions do not descend into recursively.
    fn is_spine(&self, id: ExprId) -> bool {
        let mut at = id;
        for _ in 0..8 {
            match self.tree.expr(at) {
                Expr::Logical { left, .. } | Expr::Binary { left, .. } => at = left,
                _ => return false,
            }
        }
        true
    }
}

/// Which outcome of a comparison jumps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sense {
    If,
    Unless,
}

fn fused(op: BinaryOp, sense: Sense) -> Option<fn(u8, u8, u32) -> Op> {
    Some(match (op, sense) {
        (BinaryOp::Less, Sense::If) => Op::JLt,
        (BinaryOp::Less, Sense::Unless) => Op::JNotLt,
        (BinaryOp::LessEqual, Sense::If) => Op::JLe,
        (BinaryOp::LessEqual, Sense::Unless) => Op::JNotLe,
        (BinaryOp::Greater, Sense::If) => Op::JGt,
        (BinaryOp::Greater, Sense::Unless) => Op::JNotGt,
        (BinaryOp::GreaterEqual, Sense::If) => Op::JGe,
        (BinaryOp::GreaterEqual, Sense::Unless) => Op::JNotGe,
        (BinaryOp::StrictEqual, Sense::If) | (BinaryOp::StrictNotEqual, Sense::Unless) => Op::JSeq,
        (BinaryOp::StrictEqual, Sense::Unless) | (BinaryOp::StrictNotEqual, Sense::If) => Op::JSne,
        _ => return None,
    })
}
