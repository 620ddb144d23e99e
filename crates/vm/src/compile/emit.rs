//! One function under construction: instructions, labels, registers, handlers and positions.
//!
//! Registers are a stack. Locals and temporaries are allocated upwards and given back in reverse order, so the
//! area above [`Emitter::mark`] is always free and a call's arguments can be laid out at the top of the frame,
//! which is what lets the callee's window overlap it.

use super::paged;
use crate::code::{Capture, Function, FunctionKind, Handler, Op, WINDOW};

/// Registers that the compiler hands out at most; the rest of the 256-value window is for the machine's own use.
pub(crate) const MAX_REGISTERS: u16 = 240;

/// Instructions that a function may have.
pub(crate) const MAX_INSTRUCTIONS: usize = 1 << 22;

/// A jump target that is not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(u32);

/// Why a function cannot be compiled although its source is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// More values are alive at once than a frame has registers.
    Registers,
    /// More instructions than a function may have.
    Instructions,
}

#[derive(Debug)]
pub(crate) struct Emitter {
    pub(crate) code: Vec<Op>,
    labels: Vec<u32>,
    /// The last instruction index that a label was bound to: what is before it must not be rewritten.
    bound: u32,
    pub(crate) handlers: Vec<(Label, Label, Label, u8)>,
    positions: Vec<(u32, u32)>,
    next: u16,
    max: u16,
    locals: u16,
    pub(crate) overflow: Option<Overflow>,
    /// How many variables live in the function's record.
    pub(crate) record: u16,
    pub(crate) captures: Vec<Capture>,
}

const UNBOUND: u32 = u32::MAX;

impl Emitter {
    pub(crate) fn new() -> Self {
        Emitter {
            code: Vec::new(),
            labels: Vec::new(),
            bound: 0,
            handlers: Vec::new(),
            positions: Vec::new(),
            next: 0,
            max: 0,
            locals: 0,
            overflow: None,
            record: 0,
            captures: Vec::new(),
        }
    }

    pub(crate) fn emit(&mut self, op: Op) {
        if self.code.len() >= MAX_INSTRUCTIONS {
            self.overflow = Some(Overflow::Instructions);
            return;
        }
        self.code.push(op);
    }

    /// The source offset of the instructions that follow.
    pub(crate) fn at(&mut self, offset: u32) {
        let pc = self.code.len() as u32;
        match self.positions.last_mut() {
            Some(last) if last.0 == pc => last.1 = offset,
            Some(last) if last.1 == offset => {}
            _ => self.positions.push((pc, offset)),
        }
    }

    pub(crate) fn pc(&self) -> u32 {
        self.code.len() as u32
    }

    pub(crate) fn label(&mut self) -> Label {
        self.labels.push(UNBOUND);
        Label(self.labels.len() as u32 - 1)
    }

    /// A label for the next instruction.
    pub(crate) fn here(&mut self) -> Label {
        let label = self.label();
        self.bind(label);
        label
    }

    pub(crate) fn bind(&mut self, label: Label) {
        let pc = self.code.len() as u32;
        self.labels[label.0 as usize] = pc;
        self.bound = pc;
    }

    /// If `temp` is a temporary and the last instruction made it, that instruction makes `dst` instead.
    ///
    /// Only the last write moves, so an exception on the way leaves the variable as it was.
    pub(crate) fn retarget(&mut self, temp: u8, dst: u8) -> bool {
        if u16::from(temp) < self.locals || self.bound == self.pc() {
            return false;
        }
        match self.code.last_mut().and_then(destination_mut) {
            Some(d) if *d == temp => {
                *d = dst;
                true
            }
            _ => false,
        }
    }

    /// Whether a register holds a variable.
    pub(crate) fn is_local(&self, r: u8) -> bool {
        u16::from(r) < self.locals
    }

    /// How many registers hold variables, to give back to [`Emitter::restore_locals`].
    pub(crate) fn locals(&self) -> u16 {
        self.locals
    }

    /// Undoes a [`Emitter::set_locals`] in the middle of an expression.
    pub(crate) fn restore_locals(&mut self, locals: u16) {
        self.locals = locals;
    }

    /// Declares that the registers below the present mark hold variables, which instructions must keep.
    pub(crate) fn set_locals(&mut self) {
        self.locals = self.next;
    }

    /// Emits a jump; `op` is given the label's number as target, which [`Emitter::finish`] replaces.
    pub(crate) fn jump(&mut self, op: impl FnOnce(u32) -> Op, label: Label) {
        self.emit(op(label.0));
    }

    /// The back edge of a loop: charges what one round costs.
    pub(crate) fn loop_to(&mut self, label: Label) {
        let start = self.labels[label.0 as usize];
        let round = (self.pc().saturating_sub(start) + 1).min(u32::from(u16::MAX));
        self.emit(Op::Loop(round as u16, label.0));
    }

    pub(crate) fn handler(&mut self, start: Label, end: Label, target: Label, register: u8) {
        self.handlers.push((start, end, target, register));
    }

    /// The next free register; everything from here up is unused.
    pub(crate) fn mark(&self) -> u8 {
        self.next as u8
    }

    pub(crate) fn alloc(&mut self) -> u8 {
        self.alloc_many(1)
    }

    /// Consecutive registers; the first is returned.
    pub(crate) fn alloc_many(&mut self, count: u16) -> u8 {
        let first = self.next;
        if first + count > MAX_REGISTERS {
            self.overflow = Some(Overflow::Registers);
            return 0;
        }
        self.next += count;
        self.max = self.max.max(self.next);
        first as u8
    }

    /// Gives back every register from `mark` up.
    pub(crate) fn release(&mut self, mark: u8) {
        self.next = u16::from(mark);
    }

    /// The finished function; its instructions are appended to the program's arena by the caller.
    pub(crate) fn finish(mut self, shape: Shape) -> (Function, Vec<Op>) {
        self.emit(Op::RetUndef);
        let labels = &self.labels;
        let long = self.code.len() >= WINDOW;
        let place = |pc: u32| if long { paged::place(pc) } else { pc };
        let resolve = |target: u32| place(labels.get(target as usize).copied().unwrap_or(0));
        for op in &mut self.code {
            if let Some(target) = target_mut(op) {
                *target = resolve(*target);
            }
        }
        let handlers = self
            .handlers
            .iter()
            .map(|&(start, end, target, register)| Handler {
                start: resolve(start.0),
                end: resolve(end.0),
                target: resolve(target.0),
                register,
            })
            .filter(|h| h.start < h.end)
            .collect();
        if long {
            for (pc, _) in &mut self.positions {
                *pc = paged::place(*pc);
            }
            self.code = paged::lay_out(&self.code);
        }
        let keeps_arguments = self.code.iter().any(|op| matches!(op, Op::Arguments(_) | Op::Rest(_, _)));
        let function = Function {
            name: shape.name,
            kind: shape.kind,
            start: 0,
            len: self.code.len() as u32,
            registers: self.max,
            parameters: shape.parameters,
            length: shape.length,
            captures: self.captures,
            handlers,
            positions: self.positions,
            span: shape.span,
            keeps_arguments,
            hidden: shape.hidden,
        };
        (function, self.code)
    }
}

/// What the emitter cannot know about the function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) name: Option<u32>,
    pub(crate) kind: FunctionKind,
    pub(crate) parameters: u16,
    pub(crate) length: u16,
    pub(crate) span: (u32, u32),
    pub(crate) hidden: bool,
}

pub(super) fn target_mut(op: &mut Op) -> Option<&mut u32> {
    match op {
        Op::Jump(t)
        | Op::Loop(_, t)
        | Op::JTrue(_, t)
        | Op::JFalse(_, t)
        | Op::JNullish(_, t)
        | Op::JNotNullish(_, t)
        | Op::JUndef(_, t)
        | Op::JNotUndef(_, t)
        | Op::JLt(_, _, t)
        | Op::JNotLt(_, _, t)
        | Op::JLe(_, _, t)
        | Op::JNotLe(_, _, t)
        | Op::JGt(_, _, t)
        | Op::JNotGt(_, _, t)
        | Op::JGe(_, _, t)
        | Op::JNotGe(_, _, t)
        | Op::JSeq(_, _, t)
        | Op::JSne(_, _, t)
        | Op::JNotLtInt(_, _, t)
        | Op::JInt(_, _, t)
        | Op::JNotInt(_, _, t)
        | Op::LoopLt(_, _, t)
        | Op::LoopLtInt(_, _, t)
        | Op::JHole(_, t)
        | Op::IterNext(_, _, t)
        | Op::ForInNext(_, _, t)
        | Op::ResumeCheck(_, _, t) => Some(t),
        _ => None,
    }
}

/// The destination of an instruction that makes exactly one value, does so last, and reads nothing afterwards.
fn destination_mut(op: &mut Op) -> Option<&mut u8> {
    match op {
        Op::LoadK(d, _)
        | Op::LoadInt(d, _)
        | Op::LoadUndef(d)
        | Op::LoadNull(d)
        | Op::LoadTrue(d)
        | Op::LoadFalse(d)
        | Op::Move(d, _)
        | Op::Add(d, _, _)
        | Op::Sub(d, _, _)
        | Op::Mul(d, _, _)
        | Op::Div(d, _, _)
        | Op::Mod(d, _, _)
        | Op::Exp(d, _, _)
        | Op::BitAnd(d, _, _)
        | Op::BitOr(d, _, _)
        | Op::BitXor(d, _, _)
        | Op::Shl(d, _, _)
        | Op::Shr(d, _, _)
        | Op::UShr(d, _, _)
        | Op::AddInt(d, _, _)
        | Op::SubInt(d, _, _)
        | Op::MulInt(d, _, _)
        | Op::ModInt(d, _, _)
        | Op::BitAndInt(d, _, _)
        | Op::AddK(d, _, _)
        | Op::Neg(d, _)
        | Op::BitNot(d, _)
        | Op::Not(d, _)
        | Op::TypeOf(d, _)
        | Op::Lt(d, _, _)
        | Op::Le(d, _, _)
        | Op::Gt(d, _, _)
        | Op::Ge(d, _, _)
        | Op::Eq(d, _, _)
        | Op::Ne(d, _, _)
        | Op::StrictEq(d, _, _)
        | Op::StrictNe(d, _, _)
        | Op::In(d, _, _)
        | Op::InstanceOf(d, _, _)
        | Op::GetCell(d, _)
        | Op::GetCellChecked(d, _, _)
        | Op::GetCap(d, _)
        | Op::GetCapChecked(d, _, _)
        | Op::GetGlobal(d, _)
        | Op::GetRecord(d, _, _)
        | Op::NewObject(d)
        | Op::NewArray(d, _)
        | Op::GetProp(d, _, _)
        | Op::GetElem(d, _, _)
        | Op::GetPrivate(d, _, _)
        | Op::Closure(d, _)
        | Op::Call(d, _, _)
        | Op::CallSpread(d, _)
        | Op::New(d, _, _)
        | Op::NewSpread(d, _) => Some(d),
        _ => None,
    }
}
