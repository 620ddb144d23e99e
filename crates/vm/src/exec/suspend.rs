//! Generators and async functions: frames that leave the stack and come back.
//!
//! A suspended frame is a record of internal fields on the heap: where it stands, how it is resumed, and its
//! registers. Resuming pushes a frame marked `RESTORE`; the outer loop copies the registers back.
//!
//! Missing: async generators (refused with a TypeError when called).

use super::call::Calling;
use super::code_table::Code;
use super::frame::{Frame, FrameFlags};
use super::state::{Exit, Limit, Res, State};
use crate::code::FunctionKind;
use crate::heap::{Class, ClosureId, SlotsId};
use crate::value::{Internal, Value};

const STATE: usize = 0;
const FUNC: usize = 1;
const PC: usize = 2;
const CLOSURE: usize = 3;
const DST: usize = 4;
const MODE_REGISTER: usize = 5;
const PROMISE: usize = 6;
const CALLEE: usize = 7;
const SENT: usize = 8;
const MODE: usize = 9;
const REGISTERS: usize = 10;

/// What a suspended body is doing.
mod phase {
    pub(super) const START: u32 = 0;
    pub(super) const YIELDED: u32 = 1;
    pub(super) const RUNNING: u32 = 2;
    pub(super) const DONE: u32 = 3;
}

/// How a generator or awaiting frame is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    Next,
    Throw,
    Return,
}

fn raw(n: u32) -> Value {
    Value::internal(Internal::Raw(n))
}

fn as_raw(v: Value) -> u32 {
    match v.as_internal() {
        Some(Internal::Raw(n)) => n,
        _ => 0,
    }
}

impl State {
    fn record(&self, object: Value) -> Option<SlotsId> {
        object.as_object().and_then(|o| self.heap.slots_of(o))
    }

    fn field(&self, record: SlotsId, n: usize) -> Value {
        self.heap.slots(record).get(n).copied().unwrap_or(Value::UNDEFINED)
    }

    fn set_field(&mut self, record: SlotsId, n: usize, v: Value) {
        if let Some(place) = self.heap.slots_mut(record).get_mut(n) {
            *place = v;
        }
    }

    /// A new record of this class for the frame.
    fn new_record(
        &mut self,
        class: Class,
        prototype: crate::heap::ObjId,
        frame: Frame,
        promise: Value,
    ) -> Res {
        let shape = self.heap.root_shape(Some(prototype))?;
        let fields = [
            raw(phase::RUNNING),
            raw(frame.func),
            raw(0),
            raw(frame.closure.raw()),
            raw(0),
            raw(u32::MAX),
            promise,
            frame.callee,
            Value::UNDEFINED,
            raw(0),
        ];
        let object = self.heap.new_object_with_slots(shape, class, crate::heap::Flags::NONE, &fields)?;
        Ok(Value::object(object))
    }

    /// Saves the top frame's registers in its record. On failure nothing has changed.
    fn save(
        &mut self,
        regs: &[Value],
        code: &Code,
        frame: Frame,
        dst: u8,
        mode: Option<u8>,
    ) -> Result<(), Exit> {
        let Some(record) = self.record(frame.new_target) else { return Ok(()) };
        let count = code.function(frame.func).registers as usize;
        let base = frame.base as usize;
        let mut fields = self.heap.slots(record)[..REGISTERS].to_vec();
        fields.extend_from_slice(regs.get(base..base + count).unwrap_or_default());
        fields[PC] = raw(self.pc);
        fields[DST] = raw(u32::from(dst));
        fields[MODE_REGISTER] = raw(mode.map_or(u32::MAX, u32::from));
        fields[STATE] = raw(phase::YIELDED);
        self.heap.replace_slots(record, &fields)?;
        Ok(())
    }

    /// Pushes the frame of a suspended record; the outer loop restores its registers.
    fn push_record(&mut self, object: Value, base: u32, dst: u8, flags: FrameFlags) -> Result<(), Exit> {
        let Some(record) = self.record(object) else {
            return Err(self.type_error("not a suspended function"));
        };
        if self.frames.len() >= self.limits.call_depth as usize {
            return Err(Exit::Limit(Limit::CallDepth));
        }
        self.burn(4)?;
        let pc = self.pc;
        if let Some(top) = self.frames.last_mut() {
            top.pc = pc;
        }
        self.frames.push(Frame {
            func: as_raw(self.field(record, FUNC)),
            pc: as_raw(self.field(record, PC)),
            base,
            args: base + 1,
            argc: 0,
            closure: ClosureId::from_raw(as_raw(self.field(record, CLOSURE))),
            dst,
            flags: flags.and(FrameFlags::RESTORE),
            callee: self.field(record, CALLEE),
            new_target: object,
        });
        Ok(())
    }

    /// Copies the registers of a resumed frame back. Answers what to throw, if it is resumed by a throw.
    pub(crate) fn restore(&mut self, regs: &mut [Value]) -> Option<Value> {
        let frame = self.frames.last_mut()?;
        frame.flags = frame.flags.without(FrameFlags::RESTORE);
        let frame = *frame;
        let record = self.record(frame.new_target)?;
        let base = frame.base as usize;
        if let Some(place) = regs.get_mut(base.wrapping_sub(1)) {
            *place = frame.callee;
        }
        let saved = &self.heap.slots(record)[REGISTERS..];
        if let Some(window) = regs.get_mut(base..base + saved.len()) {
            window.copy_from_slice(saved);
        }
        let (sent, mode) = (self.field(record, SENT), as_raw(self.field(record, MODE)));
        let dst = as_raw(self.field(record, DST)) as usize;
        let mode_register = as_raw(self.field(record, MODE_REGISTER));
        self.set_field(record, STATE, raw(phase::RUNNING));
        self.set_field(record, SENT, Value::UNDEFINED);
        if mode_register == u32::MAX {
            if mode == 1 {
                return Some(sent);
            }
        } else if let Some(place) = regs.get_mut(base + mode_register as usize) {
            *place = Value::int(mode as i32);
        }
        if let Some(place) = regs.get_mut(base + dst) {
            *place = sent;
        }
        None
    }

    // -- generators --------------------------------------------------------------------------------------------

    /// The end of a generator's prologue: the generator object is the call's result.
    pub(crate) fn generator_start(
        &mut self,
        regs: &mut [Value],
        code: &Code,
        frame: Frame,
        d: u8,
    ) -> Result<(), Exit> {
        if code.function(frame.func).kind == FunctionKind::AsyncGenerator {
            return Err(self.type_error("async generators are not supported yet"));
        }
        let prototype = self.prototype_for(frame.callee, self.realm.generator_prototype);
        let generator = self.new_record(Class::Generator, prototype, frame, Value::UNDEFINED)?;
        let mut marked = frame;
        marked.new_target = generator;
        self.save(regs, code, marked, d, None)?;
        if let Some(record) = self.record(generator) {
            self.set_field(record, STATE, raw(phase::START));
        }
        self.frames.pop();
        self.deliver(regs, code, frame, generator)
    }

    /// `generator.next(v)`, `.throw(v)`, `.return(v)`.
    pub(crate) fn generator_resume(
        &mut self,
        base: u32,
        calling: Calling,
        generator: Value,
        how: Resume,
        v: Value,
    ) -> Res {
        let is_generator = generator.as_object().is_some_and(|o| self.heap.class(o) == Class::Generator);
        let Some(record) = self.record(generator).filter(|_| is_generator) else {
            return Err(self.type_error("next method called on incompatible receiver"));
        };
        match (as_raw(self.field(record, STATE)), how) {
            (phase::RUNNING, _) => Err(self.type_error("Generator is already running")),
            (phase::DONE, Resume::Next) => self.iter_result(Value::UNDEFINED, true),
            (phase::DONE | phase::START, Resume::Throw) => {
                self.set_field(record, STATE, raw(phase::DONE));
                Err(Exit::Throw(v))
            }
            (phase::DONE | phase::START, Resume::Return) => {
                let result = self.iter_result(v, true)?;
                self.set_field(record, STATE, raw(phase::DONE));
                Ok(result)
            }
            (_, how) => {
                self.set_field(record, SENT, v);
                self.set_field(record, MODE, raw(how as u32));
                self.push_record(generator, base, calling.dst, calling.flags.and(FrameFlags::GENERATOR))?;
                Err(Exit::Enter)
            }
        }
    }

    pub(crate) fn yield_value(
        &mut self,
        regs: &mut [Value],
        code: &Code,
        frame: Frame,
        v: Value,
        registers: (u8, u8),
    ) -> Result<(), Exit> {
        let result = self.iter_result(v, false)?;
        self.yield_result(regs, code, frame, result, registers)
    }

    pub(crate) fn yield_result(
        &mut self,
        regs: &mut [Value],
        code: &Code,
        frame: Frame,
        result: Value,
        (dst, mode): (u8, u8),
    ) -> Result<(), Exit> {
        self.save(regs, code, frame, dst, Some(mode))?;
        self.frames.pop();
        self.deliver(regs, code, frame, result)
    }

    pub(crate) fn generator_return(
        &mut self,
        regs: &mut [Value],
        code: &Code,
        frame: Frame,
        value: Value,
    ) -> Result<(), Exit> {
        let result = self.iter_result(value, true)?;
        self.finish_record(frame.new_target);
        self.frames.pop();
        self.deliver(regs, code, frame, result)
    }

    /// A generator's body threw: it is done.
    pub(crate) fn finish_record(&mut self, object: Value) {
        if let Some(record) = self.record(object) {
            self.set_field(record, STATE, raw(phase::DONE));
        }
    }

    /// `{ value, done }`.
    pub(crate) fn iter_result(&mut self, value: Value, done: bool) -> Res {
        let object = self.heap.new_object(self.realm.result_shape)?;
        self.heap.set_slot(object, 0, value);
        self.heap.set_slot(object, 1, Value::bool(done));
        Ok(Value::object(object))
    }

    // -- async functions ---------------------------------------------------------------------------------------

    /// The start of an async function: its promise exists before its first instruction.
    pub(crate) fn async_start(&mut self) -> Res {
        let Some(&frame) = self.frames.last() else { return Ok(Value::UNDEFINED) };
        let promise = self.new_promise()?;
        let prototype = self.realm.object_prototype;
        let record = self.new_record(Class::Generator, prototype, frame, promise)?;
        if let Some(top) = self.frames.last_mut() {
            top.flags = top.flags.and(FrameFlags::ASYNC);
            top.new_target = record;
        }
        Ok(promise)
    }

    /// Leaves the frame until the awaited value settles.
    pub(crate) fn await_value(
        &mut self,
        regs: &mut [Value],
        code: &Code,
        frame: Frame,
        v: Value,
        dst: u8,
    ) -> Result<(), Exit> {
        self.save(regs, code, frame, dst, None)?;
        let promise = self.promise_resolve(v)?;
        self.then(promise, frame.new_target, frame.new_target, Value::UNDEFINED)?;
        self.frames.pop();
        self.leave_async(regs, code, frame)
    }

    /// An async frame left the stack: its first caller gets the promise; a microtask is over.
    fn leave_async(&mut self, regs: &mut [Value], code: &Code, frame: Frame) -> Result<(), Exit> {
        let promise = self.record(frame.new_target).map_or(Value::UNDEFINED, |r| self.field(r, PROMISE));
        if frame.flags.has(FrameFlags::JOB) {
            return Err(Exit::Done(Value::UNDEFINED));
        }
        if frame.flags.has(FrameFlags::ENTRY) || self.frames.is_empty() {
            return Err(Exit::Done(promise));
        }
        let mut plain = frame;
        plain.flags = frame.flags.without(FrameFlags::ASYNC);
        self.deliver(regs, code, plain, promise)
    }

    pub(crate) fn async_return(
        &mut self,
        regs: &mut [Value],
        code: &Code,
        frame: Frame,
        value: Value,
    ) -> Result<(), Exit> {
        let promise = self.record(frame.new_target).map_or(Value::UNDEFINED, |r| self.field(r, PROMISE));
        self.resolve(promise, value)?;
        self.finish_record(frame.new_target);
        self.frames.pop();
        self.leave_async(regs, code, frame)
    }

    pub(crate) fn async_throw(
        &mut self,
        regs: &mut [Value],
        code: &Code,
        frame: Frame,
        exception: Value,
    ) -> Result<(), Exit> {
        let promise = self.record(frame.new_target).map_or(Value::UNDEFINED, |r| self.field(r, PROMISE));
        self.settle(promise, Settled::Rejected, exception)?;
        self.finish_record(frame.new_target);
        self.frames.pop();
        self.leave_async(regs, code, frame)
    }

    /// Resumes an awaiting frame from a microtask.
    pub(crate) fn resume_async(&mut self, record_object: Value, how: Resume, v: Value) -> Result<(), Exit> {
        if let Some(record) = self.record(record_object) {
            self.set_field(record, SENT, v);
            self.set_field(record, MODE, raw(how as u32));
        }
        self.push_record(record_object, 2, 0, FrameFlags::ASYNC.and(FrameFlags::JOB))
    }
}

/// How a promise ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    Fulfilled = 1,
    Rejected = 2,
}
