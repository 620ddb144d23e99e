//! Loops over `for` heads, and the suspending expressions that loop: `yield*` and `for await`.

use super::Compiler;
use crate::ast::{Atom, DeclareKind, ExprId, LoopHead, LoopId, LoopTarget, Stmt};
use crate::code::Op;
use crate::compile::control::{Anonymous, Control, Exit, IteratorKind};
use crate::compile::variable::Store;
use crate::exec::Helper;

impl Compiler<'_> {
    pub(crate) fn for_stmt(&mut self, id: LoopId, labels: Vec<Atom>) {
        self.clear_completion();
        let f = self.tree.for_stmt(id);
        match f.head {
            LoopHead::Classic { .. } => self.classic(id, labels),
            LoopHead::In { target, object } => self.for_in(id, target, object, labels),
            LoopHead::Of { target, iterable } => {
                self.for_of(id, target, iterable, labels, IteratorKind::Sync)
            }
            LoopHead::AwaitOf { target, iterable } => {
                self.for_of(id, target, iterable, labels, IteratorKind::Async)
            }
        }
    }

    fn classic(&mut self, id: LoopId, labels: Vec<Atom>) {
        let f = self.tree.for_stmt(id);
        let LoopHead::Classic { init, test, update } = f.head else { return };
        self.enter_scope(f.scope);
        self.emit.set_locals();
        // A turn needs cells of its own only if a closure may keep them.
        let renew = self.tree.scope(f.scope).has_captured;
        if let Some(init) = init {
            match self.tree.stmt(init) {
                Stmt::Expr(e) => self.effect(e),
                _ => self.stmt(init, Vec::new()),
            }
        }
        if renew {
            self.renew_cells(f.scope);
        }
        let end = self.emit.label();
        let next = self.emit.label();
        if let Some(test) = test {
            self.jump_unless(test, end);
        }
        let top = self.emit.here();
        self.control.push(Control::Target { labels, end, next: Some(next), anonymous: Anonymous::Breakable });
        self.stmt(f.body, Vec::new());
        self.control.pop();
        self.emit.bind(next);
        if renew {
            self.renew_cells(f.scope);
        }
        if let Some(update) = update {
            self.emit.at(self.tree.expr_span(update).start);
            self.effect(update);
        }
        match test {
            Some(test) => {
                self.emit.at(self.tree.expr_span(test).start);
                self.loop_while(test, top, end);
            }
            None => self.emit.loop_to(top),
        }
        self.emit.bind(end);
    }

    /// The iterated value, evaluated with the head's own names in their dead zone.
    fn subject(&mut self, id: LoopId, subject: ExprId, dst: u8) {
        let scope = self.tree.for_stmt(id).scope;
        let mark = self.emit.mark();
        self.enter_scope(scope);
        self.emit.set_locals();
        self.expr_to(subject, dst);
        self.emit.release(mark);
        self.emit.set_locals();
    }

    fn bind_target(&mut self, target: LoopTarget, v: u8) {
        match target {
            LoopTarget::Declare(DeclareKind::Var, p) | LoopTarget::Assign(p) => {
                self.destructure(p, v, Store::Assign)
            }
            LoopTarget::Declare(_, p) => self.destructure(p, v, Store::Initialise),
        }
    }

    fn for_in(&mut self, id: LoopId, target: LoopTarget, object: ExprId, labels: Vec<Atom>) {
        let iter = self.emit.alloc_many(2);
        let v = self.emit.alloc();
        self.subject(id, object, v);
        self.emit.at(self.tree.expr_span(object).start);
        self.emit.emit(Op::ForIn(iter, v));
        let end = self.emit.label();
        let head = self.emit.here();
        self.emit.jump(|t| Op::ForInNext(v, iter, t), end);
        // `continue` leads forward to the back edge, which is paid for.
        let next = self.emit.label();
        self.control.push(Control::Target { labels, end, next: Some(next), anonymous: Anonymous::Breakable });
        self.turn(id, target, v);
        self.control.pop();
        self.emit.bind(next);
        self.emit.loop_to(head);
        self.emit.bind(end);
    }

    /// Binds the target in a fresh scope and runs the body.
    fn turn(&mut self, id: LoopId, target: LoopTarget, v: u8) {
        let f = self.tree.for_stmt(id);
        let mark = self.emit.mark();
        self.enter_scope(f.scope);
        self.emit.set_locals();
        let copy = self.emit.alloc();
        self.emit.emit(Op::Move(copy, v));
        self.bind_target(target, copy);
        self.emit.release(copy);
        self.stmt(f.body, Vec::new());
        self.emit.release(mark);
        self.emit.set_locals();
    }

    fn for_of(
        &mut self,
        id: LoopId,
        target: LoopTarget,
        iterable: ExprId,
        labels: Vec<Atom>,
        kind: IteratorKind,
    ) {
        let iter = self.emit.alloc_many(2);
        let v = self.emit.alloc();
        self.subject(id, iterable, v);
        self.emit.at(self.tree.expr_span(iterable).start);
        self.emit.emit(match kind {
            IteratorKind::Sync => Op::GetIter(iter, v),
            IteratorKind::Async => Op::GetAsyncIter(iter, v),
        });
        let end = self.emit.label();
        let done = self.emit.label();
        let next = self.emit.label();
        let top = self.emit.here();
        match kind {
            IteratorKind::Sync => self.emit.jump(|t| Op::IterNext(v, iter, t), done),
            IteratorKind::Async => self.async_next(iter, v, done),
        }
        // `break` crosses the iterator entry, `continue` stays inside it.
        let outer = labels.clone();
        self.control.push(Control::Target {
            labels: outer,
            end,
            next: None,
            anonymous: Anonymous::Breakable,
        });
        let caught = self.emit.label();
        let register = self.emit.alloc();
        let range = self.range(caught, register);
        self.control.push(Control::Iterator { iter, kind, range });
        self.control.push(Control::Target {
            labels,
            end,
            next: Some(next),
            anonymous: Anonymous::ContinueOnly,
        });
        self.emit.set_locals();
        self.turn(id, target, v);
        self.control.pop();
        self.emit.bind(next);
        self.pause_handlers(1);
        self.emit.loop_to(top);
        self.abort_iterator();
        self.control.pop();
        self.emit.bind(done);
        self.emit.bind(end);
    }

    fn async_next(&mut self, iter: u8, v: u8, done: crate::compile::emit::Label) {
        let mark = self.emit.mark();
        let at = self.emit.alloc_many(2);
        self.emit.emit(Op::Move(at, iter + 1));
        self.emit.emit(Op::Move(at + 1, iter));
        self.emit.emit(Op::Call(v, at, 0));
        self.emit.emit(Op::Await(v, v));
        self.emit.emit(Op::CheckIterResult(v));
        let k = self.text("done");
        let site = self.site(k);
        self.emit.emit(Op::GetProp(at, v, site));
        self.emit.jump(|t| Op::JTrue(at, t), done);
        let k = self.text("value");
        let site = self.site(k);
        self.emit.emit(Op::GetProp(v, v, site));
        self.emit.release(mark);
    }

    /// Closes an async iterator after a normal completion: awaits what `return` answers.
    pub(crate) fn async_close(&mut self, iter: u8) {
        let mark = self.emit.mark();
        let at = self.emit.alloc_many(2);
        let absent = self.emit.label();
        let k = self.text("return");
        let site = self.site(k);
        self.emit.emit(Op::GetMethod(at, iter, site));
        self.emit.jump(|t| Op::JNullish(at, t), absent);
        self.emit.emit(Op::Call(at, at, 0));
        self.emit.emit(Op::Await(at, at));
        self.emit.emit(Op::CheckIterResult(at));
        self.emit.bind(absent);
        self.emit.release(mark);
    }

    /// Closes an async iterator after a throw: whatever goes wrong is swallowed.
    pub(crate) fn async_abort(&mut self, iter: u8) {
        let mark = self.emit.mark();
        let at = self.emit.alloc_many(2);
        let absent = self.emit.label();
        let swallowed = self.emit.alloc();
        let range = self.range(absent, swallowed);
        let k = self.text("return");
        let site = self.site(k);
        self.emit.emit(Op::GetMethod(at, iter, site));
        self.emit.jump(|t| Op::JNullish(at, t), absent);
        self.emit.emit(Op::Call(at, at, 0));
        self.emit.emit(Op::Await(at, at));
        self.close_range(range);
        self.emit.bind(absent);
        self.emit.release(mark);
    }

    /// Yields what is in `v` and acts on how the generator is resumed; the value sent in is in `dst`.
    pub(crate) fn yield_value(&mut self, v: u8, dst: u8) {
        let mark = self.emit.mark();
        let mode = self.emit.alloc();
        let sent = self.emit.alloc();
        let v = if self.is_async_generator() {
            self.emit.emit(Op::Await(sent, v));
            sent
        } else {
            v
        };
        self.emit.emit(Op::Yield(sent, v, mode));
        let returned = self.emit.label();
        let on = self.emit.label();
        self.emit.jump(|t| Op::ResumeCheck(mode, sent, t), returned);
        self.emit.jump(Op::Jump, on);
        self.emit.bind(returned);
        if self.is_async_generator() {
            self.emit.emit(Op::Await(sent, sent));
        }
        self.leave(Exit::Return, Some(sent));
        self.emit.bind(on);
        self.emit.emit(Op::Move(dst, sent));
        self.emit.release(mark);
    }

    /// `yield* iterable`: passes next, throw and return on to the inner iterator.
    ///
    /// The inner step is a prelude helper that answers the inner result object; `mode` and `sent` say how this
    /// generator was resumed.
    pub(crate) fn yield_star(&mut self, operand: ExprId, dst: u8) {
        let is_async = self.is_async_generator();
        let iter = self.emit.alloc_many(2);
        let v = self.expr(operand);
        self.emit.at(self.tree.expr_span(operand).start);
        self.emit.emit(if is_async { Op::GetAsyncIter(iter, v) } else { Op::GetRealIter(iter, v) });
        let mode = self.emit.alloc();
        let sent = self.emit.alloc();
        let result = self.emit.alloc();
        self.emit.emit(Op::LoadInt(mode, 0));
        self.emit.emit(Op::LoadUndef(sent));
        let top = self.emit.here();
        let finished = self.emit.label();
        let args = self.emit.alloc_many(4);
        self.emit.emit(Op::Move(args, iter));
        self.emit.emit(Op::Move(args + 1, iter + 1));
        self.emit.emit(Op::Move(args + 2, mode));
        self.emit.emit(Op::Move(args + 3, sent));
        self.emit.emit(Op::CallHelper(result, args, 4, Helper::DelegateStep as u32));
        let absent = self.emit.label();
        self.emit.jump(|t| Op::JHole(result, t), absent);
        if is_async {
            self.emit.emit(Op::Await(result, result));
        }
        self.emit.emit(Op::CheckIterResult(result));
        let k = self.text("done");
        let site = self.site(k);
        self.emit.emit(Op::GetProp(args, result, site));
        self.emit.jump(|t| Op::JTrue(args, t), finished);
        if is_async {
            let k = self.text("value");
            let site = self.site(k);
            self.emit.emit(Op::GetProp(args, result, site));
            self.emit.emit(Op::Yield(sent, args, mode));
            self.await_return(mode, sent);
        } else {
            self.emit.emit(Op::YieldResult(sent, result, mode));
        }
        self.emit.loop_to(top);
        self.emit.bind(finished);
        let k = self.text("value");
        let site = self.site(k);
        self.emit.emit(Op::GetProp(dst, result, site));
        let on = self.emit.label();
        let returning = self.emit.label();
        self.emit.jump(|t| Op::JInt(mode, 2, t), returning);
        self.emit.jump(Op::Jump, on);
        // The inner iterator has no such method: a `return` ends this generator too, a `throw` is a protocol violation.
        self.emit.bind(absent);
        let leave = self.emit.label();
        self.emit.jump(|t| Op::JInt(mode, 2, t), leave);
        if is_async {
            self.async_close(iter);
        } else {
            self.emit.emit(Op::IterClose(iter));
        }
        let k = self.text("The iterator does not provide a 'throw' method");
        self.emit.emit(Op::ThrowNew(crate::code::ErrorKind::Type as u8, k));
        self.emit.bind(leave);
        if is_async {
            self.emit.emit(Op::Await(sent, sent));
        }
        self.emit.emit(Op::Move(dst, sent));
        self.emit.bind(returning);
        self.leave(Exit::Return, Some(dst));
        self.emit.bind(on);
    }

    /// In an async generator a value sent by `return` is awaited first; if that fails, it is as if it were thrown.
    fn await_return(&mut self, mode: u8, sent: u8) {
        let on = self.emit.label();
        let caught = self.emit.label();
        let wait = self.emit.label();
        self.emit.jump(|t| Op::JInt(mode, 2, t), wait);
        self.emit.jump(Op::Jump, on);
        self.emit.bind(wait);
        let range = self.range(caught, sent);
        self.emit.emit(Op::Await(sent, sent));
        self.close_range(range);
        self.emit.jump(Op::Jump, on);
        self.emit.bind(caught);
        self.emit.emit(Op::LoadInt(mode, 1));
        self.emit.bind(on);
    }
}
