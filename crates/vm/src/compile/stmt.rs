//! Statements.

use super::Compiler;
use crate::ast::{Case, DeclareKind, Expr, ExprId, List, Stmt, StmtId, TryId};
use crate::code::Op;
use crate::compile::control::{Anonymous, Control};
use crate::compile::variable::Store;

impl Compiler<'_> {
    pub(crate) fn statements(&mut self, list: List<StmtId>) {
        for &s in self.tree.list(list) {
            self.stmt(s, Vec::new());
        }
    }

    /// One statement; `labels` are those written directly before it.
    pub(crate) fn stmt(&mut self, id: StmtId, labels: Vec<crate::ast::Atom>) {
        self.depth += 1;
        if self.depth > super::MAX_DEPTH {
            let span = self.tree.stmt_span(id);
            self.failed.get_or_insert(super::CompileError::TooDeep { span });
            self.depth -= 1;
            return;
        }
        let mark = self.emit.mark();
        self.emit.set_locals();
        self.stmt_inner(id, labels);
        self.emit.release(mark);
        self.emit.set_locals();
        self.depth -= 1;
    }

    fn stmt_inner(&mut self, id: StmtId, labels: Vec<crate::ast::Atom>) {
        let tree = self.tree;
        match tree.stmt(id) {
            Stmt::Empty | Stmt::Debugger | Stmt::Function(_) => {}
            Stmt::Expr(e) => match self.completion {
                Some(c) => {
                    let v = self.expr(e);
                    self.emit.emit(Op::Move(c, v));
                }
                None => self.effect(e),
            },
            Stmt::Declare { kind, declarators } => {
                for d in tree.list(declarators) {
                    let mark = self.emit.mark();
                    match d.value {
                        Some(value) => {
                            let v = self.value_for(d.target, value);
                            self.emit.at(tree.expr_span(value).start);
                            let store =
                                if kind == DeclareKind::Var { Store::Assign } else { Store::Initialise };
                            self.destructure(d.target, v, store);
                        }
                        None if kind == DeclareKind::Let => {
                            let v = self.emit.alloc();
                            self.emit.emit(Op::LoadUndef(v));
                            self.destructure(d.target, v, Store::Initialise);
                        }
                        None => {}
                    }
                    self.emit.release(mark);
                }
            }
            Stmt::Class { class, binding } => {
                let d = self.emit.alloc();
                self.class(class, None, d);
                self.write(binding, d, Store::Initialise);
            }
            Stmt::Block { scope, body } => {
                self.labelled(labels, |c| {
                    c.enter_scope(scope);
                    c.statements(body);
                });
            }
            Stmt::If { .. } => self.labelled(labels, |c| c.if_chain(id)),
            Stmt::For(f) => self.for_stmt(f, labels),
            Stmt::While { test, body } => self.while_stmt(test, body, labels),
            Stmt::DoWhile { body, test } => self.do_while(body, test, labels),
            Stmt::Switch { subject, scope, cases } => {
                self.clear_completion();
                let v = self.emit.alloc();
                self.expr_to(subject, v);
                self.enter_scope(scope);
                self.emit.set_locals();
                self.switch(v, cases, labels);
            }
            Stmt::Labelled { label, body } => {
                let mut labels = labels;
                labels.push(label);
                self.stmt(body, labels);
            }
            Stmt::Break(label) => self.break_to(label),
            Stmt::Continue(label) => self.continue_to(label),
            Stmt::Return(value) => self.return_value(value),
            Stmt::Throw(e) => {
                let v = self.expr(e);
                self.emit.at(tree.stmt_span(id).start);
                self.emit.emit(Op::Throw(v));
            }
            Stmt::Try(t) => self.labelled(labels, |c| c.try_stmt(t)),
        }
    }

    /// A statement that a labelled `break` may leave.
    fn labelled(&mut self, labels: Vec<crate::ast::Atom>, body: impl FnOnce(&mut Self)) {
        if labels.is_empty() {
            return body(self);
        }
        let end = self.emit.label();
        self.control.push(Control::Target { labels, end, next: None, anonymous: Anonymous::LabelOnly });
        body(self);
        self.control.pop();
        self.emit.bind(end);
    }

    /// Statements that may not run any part still have a value: undefined.
    pub(crate) fn clear_completion(&mut self) {
        if let Some(c) = self.completion {
            self.emit.emit(Op::LoadUndef(c));
        }
    }

    fn if_chain(&mut self, id: StmtId) {
        let done = self.emit.label();
        self.clear_completion();
        let mut at = id;
        loop {
            let Stmt::If { test, then, otherwise } = self.tree.stmt(at) else {
                self.stmt(at, Vec::new());
                break;
            };
            let no = self.emit.label();
            self.emit.at(self.tree.expr_span(test).start);
            self.jump_unless(test, no);
            self.stmt(then, Vec::new());
            let Some(next) = otherwise else {
                self.emit.bind(no);
                break;
            };
            self.emit.jump(Op::Jump, done);
            self.emit.bind(no);
            at = next;
        }
        self.emit.bind(done);
    }

    fn switch(&mut self, subject: u8, cases: List<Case>, labels: Vec<crate::ast::Atom>) {
        let end = self.emit.label();
        let cases = self.tree.list(cases);
        let bodies: Vec<_> = cases.iter().map(|_| self.emit.label()).collect();
        let mut default = end;
        for (case, &body) in cases.iter().zip(&bodies) {
            match case.test {
                Some(test) => {
                    let mark = self.emit.mark();
                    let t = self.expr(test);
                    self.emit.jump(|l| Op::JSeq(subject, t, l), body);
                    self.emit.release(mark);
                }
                None => default = body,
            }
        }
        self.emit.jump(Op::Jump, default);
        self.control.push(Control::Target { labels, end, next: None, anonymous: Anonymous::Breakable });
        for (case, &body) in cases.iter().zip(&bodies) {
            self.emit.bind(body);
            self.statements(case.body);
        }
        self.control.pop();
        self.emit.bind(end);
    }

    fn while_stmt(&mut self, test: ExprId, body: StmtId, labels: Vec<crate::ast::Atom>) {
        self.clear_completion();
        let end = self.emit.label();
        let next = self.emit.label();
        let forever = matches!(self.tree.expr(test), Expr::Bool(true));
        if !forever {
            self.jump_unless(test, end);
        }
        let top = self.emit.here();
        self.control.push(Control::Target { labels, end, next: Some(next), anonymous: Anonymous::Breakable });
        self.stmt(body, Vec::new());
        self.control.pop();
        self.emit.bind(next);
        if forever {
            self.emit.loop_to(top);
        } else {
            self.emit.at(self.tree.expr_span(test).start);
            self.loop_while(test, top, end);
        }
        self.emit.bind(end);
    }

    fn do_while(&mut self, body: StmtId, test: ExprId, labels: Vec<crate::ast::Atom>) {
        self.clear_completion();
        let end = self.emit.label();
        let next = self.emit.label();
        let top = self.emit.here();
        self.control.push(Control::Target { labels, end, next: Some(next), anonymous: Anonymous::Breakable });
        self.stmt(body, Vec::new());
        self.control.pop();
        self.emit.bind(next);
        self.emit.at(self.tree.expr_span(test).start);
        self.loop_while(test, top, end);
        self.emit.bind(end);
    }

    fn try_stmt(&mut self, id: TryId) {
        self.clear_completion();
        let t = self.tree.try_stmt(id);
        match t.finalizer {
            Some(last) => self.protect(|c| c.try_catch(id), |c| c.stmt(last, Vec::new())),
            None => self.try_catch(id),
        }
    }

    fn try_catch(&mut self, id: TryId) {
        let t = self.tree.try_stmt(id);
        let Some(catch) = t.handler else {
            return self.stmt(t.block, Vec::new());
        };
        let mark = self.emit.mark();
        let exception = self.emit.alloc();
        let caught = self.emit.label();
        let done = self.emit.label();
        let range = self.range(caught, exception);
        self.control.push(Control::Catch { range });
        self.stmt(t.block, Vec::new());
        if let Some(Control::Catch { range }) = self.control.pop() {
            self.close_range(range);
        }
        self.emit.jump(Op::Jump, done);
        self.emit.bind(caught);
        self.clear_completion();
        self.enter_scope(catch.scope);
        self.emit.set_locals();
        if let Some(param) = catch.param {
            // The pattern may rewrite the instruction that made its source, which here is the unwinder.
            let v = self.emit.alloc();
            self.emit.emit(Op::Move(v, exception));
            self.destructure(param, v, Store::Initialise);
        }
        self.stmt(catch.body, Vec::new());
        self.emit.bind(done);
        self.emit.release(mark);
    }
}
