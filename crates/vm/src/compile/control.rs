//! Leaving blocks: `break`, `continue` and `return` through iterators and `finally`.
//!
//! A `finally` block is emitted once. Two registers say how it was entered: `kind` is 0 for falling in, 1 for an
//! exception (in `value`), and from 2 on the number of an exit that was on its way out and goes on afterwards.

use super::Compiler;
use crate::ast::{Atom, ExprId};
use crate::code::Op;
use crate::compile::emit::Label;
use crate::compile::variable::Variable;

/// What surrounds the statement at hand, outermost first.
#[derive(Debug)]
pub(crate) enum Control {
    /// A loop, or a switch or labelled block (no `next`).
    Target { labels: Vec<Atom>, end: Label, next: Option<Label>, anonymous: Anonymous },
    /// An iterator in two registers that must be closed.
    Iterator { iter: u8, kind: IteratorKind, range: Range },
    /// A `try` with `finally`.
    Finally { entry: Label, kind: u8, value: u8, exits: Vec<Exit>, range: Range },
    /// A stretch whose exceptions go to a catch; it only has to be paused, never acted on.
    Catch { range: Range },
}

/// Whether a plain `break` stops here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anonymous {
    /// Loops and switches.
    Breakable,
    /// Labelled blocks.
    LabelOnly,
    /// The inside of a `for…of`: a `break` goes to the entry outside the iterator.
    ContinueOnly,
}

/// How an iterator is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IteratorKind {
    Sync,
    Async,
}

/// The protected stretches of a handler: it has gaps where the closing code itself runs.
#[derive(Debug)]
pub(crate) struct Range {
    open: Option<Label>,
    closed: Vec<(Label, Label)>,
    target: Label,
    register: u8,
}

/// A way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// To the end of the control entry at this index.
    Break(usize),
    /// To the next turn of it.
    Continue(usize),
    /// Out of the function with the value.
    Return,
}

impl Compiler<'_> {
    pub(crate) fn range(&mut self, target: Label, register: u8) -> Range {
        Range { open: Some(self.emit.here()), closed: Vec::new(), target, register }
    }

    /// Ends a handler's stretches and enters them in the function's table.
    pub(crate) fn close_range(&mut self, mut range: Range) {
        if let Some(start) = range.open.take() {
            let end = self.emit.here();
            range.closed.push((start, end));
        }
        for (start, end) in range.closed {
            self.emit.handler(start, end, range.target, range.register);
        }
    }

    /// Excludes what follows from the handlers of the `count` innermost entries.
    pub(crate) fn pause_handlers(&mut self, count: usize) {
        let here = self.emit.here();
        for entry in self.control.iter_mut().rev().take(count) {
            if let Some(range) = range_of(entry)
                && let Some(start) = range.open.take()
            {
                range.closed.push((start, here));
            }
        }
    }

    pub(crate) fn resume_handlers(&mut self, count: usize) {
        let here = self.emit.here();
        for entry in self.control.iter_mut().rev().take(count) {
            if let Some(range) = range_of(entry)
                && range.open.is_none()
            {
                range.open = Some(here);
            }
        }
    }

    /// From here on the iterator is closed when control leaves.
    pub(crate) fn enter_iterator(&mut self, iter: u8) {
        let target = self.emit.label();
        let register = self.emit.alloc();
        let range = self.range(target, register);
        self.control.push(Control::Iterator { iter, kind: IteratorKind::Sync, range });
    }

    /// The end of a pattern: closes the iterator unless it ran out, and emits the landing place of exceptions.
    pub(crate) fn leave_iterator(&mut self, iter: u8) {
        self.abort_iterator();
        self.emit.emit(Op::IterClose(iter));
    }

    /// Ends the protected stretch and emits its landing place, out of the way of normal flow.
    pub(crate) fn abort_iterator(&mut self) {
        let Some(Control::Iterator { iter, kind, range }) = self.control.pop() else { return };
        let (target, register) = (range.target, range.register);
        self.close_range(range);
        let past = self.emit.label();
        self.emit.jump(Op::Jump, past);
        self.emit.bind(target);
        match kind {
            IteratorKind::Sync => self.emit.emit(Op::IterAbort(iter)),
            IteratorKind::Async => self.async_abort(iter),
        }
        self.emit.emit(Op::Throw(register));
        self.emit.bind(past);
    }

    pub(crate) fn break_to(&mut self, label: Option<Atom>) {
        let found = self.control.iter().rposition(|c| match (c, label) {
            (Control::Target { labels, anonymous, .. }, Some(l)) => {
                *anonymous != Anonymous::ContinueOnly && labels.contains(&l)
            }
            (Control::Target { anonymous, .. }, None) => *anonymous == Anonymous::Breakable,
            _ => false,
        });
        if let Some(index) = found {
            self.leave(Exit::Break(index), None);
        }
    }

    pub(crate) fn continue_to(&mut self, label: Option<Atom>) {
        let found = self.control.iter().rposition(|c| match (c, label) {
            (Control::Target { labels, next: Some(_), .. }, Some(l)) => labels.contains(&l),
            (Control::Target { next: Some(_), .. }, None) => true,
            _ => false,
        });
        if let Some(index) = found {
            self.leave(Exit::Continue(index), None);
        }
    }

    pub(crate) fn return_value(&mut self, value: Option<ExprId>) {
        let mark = self.emit.mark();
        match value {
            Some(e) if self.control.is_empty() && !self.is_async_generator() => {
                let v = self.expr(e);
                self.final_return(Some(v));
            }
            Some(e) => {
                let v = self.emit.alloc();
                self.expr_to(e, v);
                if self.is_async_generator() {
                    self.emit.emit(Op::Await(v, v));
                }
                self.leave(Exit::Return, Some(v));
            }
            None => {
                let v = self.emit.alloc();
                self.emit.emit(Op::LoadUndef(v));
                self.leave(Exit::Return, Some(v));
            }
        }
        self.emit.release(mark);
    }

    /// Emits what leaving costs, from the innermost entry outwards, then the jump itself.
    pub(crate) fn leave(&mut self, exit: Exit, value: Option<u8>) {
        let floor = match exit {
            Exit::Break(i) | Exit::Continue(i) => i + 1,
            Exit::Return => 0,
        };
        let depth = self.control.len();
        let mut at = depth;
        while at > floor {
            at -= 1;
            let paused = depth - at;
            match &mut self.control[at] {
                Control::Target { .. } | Control::Catch { .. } => {}
                &mut Control::Iterator { iter, kind, .. } => {
                    self.pause_handlers(paused);
                    match kind {
                        IteratorKind::Sync => self.emit.emit(Op::IterClose(iter)),
                        IteratorKind::Async => self.async_close(iter),
                    }
                }
                Control::Finally { entry, kind, value: slot, exits, .. } => {
                    let (entry, kind, slot) = (*entry, *kind, *slot);
                    let number = match exits.iter().position(|&e| e == exit) {
                        Some(n) => n,
                        None => {
                            exits.push(exit);
                            exits.len() - 1
                        }
                    };
                    self.pause_handlers(paused);
                    if let Some(v) = value
                        && v != slot
                    {
                        self.emit.emit(Op::Move(slot, v));
                    }
                    self.emit.emit(Op::LoadInt(kind, number as i32 + 2));
                    self.emit.jump(Op::Jump, entry);
                    self.resume_handlers(depth);
                    return;
                }
            }
        }
        match exit {
            Exit::Break(i) => {
                if let Control::Target { end, .. } = self.control[i] {
                    self.emit.jump(Op::Jump, end);
                }
            }
            Exit::Continue(i) => {
                if let Control::Target { next: Some(next), .. } = self.control[i] {
                    self.emit.jump(Op::Jump, next);
                }
            }
            Exit::Return => {
                // What a derived constructor must not return is refused after its body, where no `catch` of its own sees it.
                if self.tree.function(self.current).kind == crate::ast::FunctionKind::DerivedConstructor {
                    self.pause_handlers(depth);
                }
                self.final_return(value);
            }
        }
        self.resume_handlers(depth);
    }

    /// The return itself. A derived constructor answers `this` unless it returns an object.
    pub(crate) fn final_return(&mut self, value: Option<u8>) {
        let f = *self.tree.function(self.current);
        if f.kind != crate::ast::FunctionKind::DerivedConstructor {
            self.emit.emit(match value {
                Some(v) => Op::Ret(v),
                None => Op::RetUndef,
            });
            return;
        }
        let given = self.emit.label();
        if let Some(v) = value {
            self.emit.jump(|t| Op::JNotUndef(v, t), given);
        }
        let name = self.text("this");
        match f.this.map(|b| self.placed(b)) {
            Some(Variable::Register(r)) => {
                self.emit.emit(Op::CheckInit(r, name));
                self.emit.emit(Op::Ret(r));
            }
            Some(Variable::Cell(cell)) => {
                let r = self.emit.alloc();
                self.emit.emit(Op::GetCellChecked(r, cell, name));
                self.emit.emit(Op::Ret(r));
                self.emit.release(r);
            }
            Some(Variable::RecordCell(n)) => {
                let r = self.emit.alloc();
                self.emit.emit(Op::GetRecord(r, self.record, n));
                self.emit.emit(Op::GetCellChecked(r, r, name));
                self.emit.emit(Op::Ret(r));
                self.emit.release(r);
            }
            Some(Variable::Record(_) | Variable::Captured(_) | Variable::Global) | None => {
                // `super()` cannot have been called: `this` is never mentioned. Register 0 is uninitialised.
                self.emit.emit(Op::CheckInit(0, name));
                self.emit.emit(Op::Ret(0));
            }
        }
        self.emit.bind(given);
        if let Some(v) = value {
            self.emit.emit(Op::Ret(v));
        }
    }

    /// `try … finally`: `body` is what is tried, `last` the finally block.
    pub(crate) fn protect(&mut self, body: impl FnOnce(&mut Self), last: impl FnOnce(&mut Self)) {
        let mark = self.emit.mark();
        let kind = self.emit.alloc();
        let value = self.emit.alloc();
        let entry = self.emit.label();
        let caught = self.emit.label();
        let range = self.range(caught, value);
        self.control.push(Control::Finally { entry, kind, value, exits: Vec::new(), range });
        body(self);
        self.emit.emit(Op::LoadInt(kind, 0));
        let Some(Control::Finally { exits, range, .. }) = self.control.pop() else { return };
        self.close_range(range);
        self.emit.jump(Op::Jump, entry);
        self.emit.bind(caught);
        self.emit.emit(Op::LoadInt(kind, 1));
        self.emit.bind(entry);
        // What finally computes is not the statement's value.
        let saved = self.completion.map(|c| {
            let saved = self.emit.alloc();
            self.emit.emit(Op::Move(saved, c));
            (saved, c)
        });
        last(self);
        if let Some((saved, c)) = saved {
            self.emit.emit(Op::Move(c, saved));
        }
        let done = self.emit.label();
        self.emit.jump(|t| Op::JInt(kind, 0, t), done);
        let rethrow = self.emit.label();
        self.emit.jump(|t| Op::JInt(kind, 1, t), rethrow);
        for (number, &exit) in exits.iter().enumerate() {
            let other = self.emit.label();
            let mine = self.emit.label();
            self.emit.jump(|t| Op::JInt(kind, number as i16 + 2, t), mine);
            self.emit.jump(Op::Jump, other);
            self.emit.bind(mine);
            self.leave(exit, (exit == Exit::Return).then_some(value));
            self.emit.bind(other);
        }
        self.emit.bind(rethrow);
        self.emit.emit(Op::Throw(value));
        self.emit.bind(done);
        self.emit.release(mark);
    }
}

fn range_of(entry: &mut Control) -> Option<&mut Range> {
    match entry {
        Control::Target { .. } => None,
        Control::Iterator { range, .. } | Control::Finally { range, .. } | Control::Catch { range } => {
            Some(range)
        }
    }
}
