//! Generators and async functions: frames that leave the stack and come back.
//!
//! A suspended frame is a record of internal fields on the heap: where it stands, how it is resumed, and its
//! registers. Resuming pushes a frame marked `RESTORE`; the outer loop copies the registers back.
//!
//! An async generator has a queue of requests besides: see `async_generator`.

use super::call::Calling;
use super::code_table::Code;
use super::frame::{Frame, FrameFlags};
use super::helper::Helper;
use super::iterate::Next;
use super::promise::{Resolution, Wrapping};
use super::state::{Exit, Limit, Res, State};
use crate::code::FunctionKind;
use crate::heap::{AllocError, Class, ClosureId, Point, SlotsId};
use crate::value::{Internal, Value};

pub(super) const STATE: usize = 0;
const FUNC: usize = 1;
const PC: usize = 2;
const CLOSURE: usize = 3;
const DST: usize = 4;
const MODE_REGISTER: usize = 5;
pub(super) const PROMISE: usize = 6;
const CALLEE: usize = 7;
pub(super) const SENT: usize = 8;
pub(super) const MODE: usize = 9;
/// The first and the last request of an async generator; undefined when there is none. `suspend.js` knows these numbers,
/// those of the request's parts and those of the phases.
pub(super) const QUEUE: usize = 10;
pub(super) const LAST: usize = 11;
const REGISTERS: usize = 12;
/// The fields of a suspended frame before its registers.
pub(crate) const RECORD_FIELDS: usize = REGISTERS;

/// What a suspended body is doing.
pub(super) mod phase {
    pub(in super::super) const START: i32 = 0;
    pub(in super::super) const YIELDED: i32 = 1;
    /// On the stack, or awaiting.
    pub(in super::super) const RUNNING: i32 = 2;
    pub(in super::super) const DONE: i32 = 3;
    /// An async generator that is over and awaits what it was told to return.
    pub(in super::super) const RETURNING: i32 = 4;
}

/// How a generator or awaiting frame is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    Next,
    Throw,
    Return,
}

pub(super) fn raw(n: u32) -> Value {
    Value::internal(Internal::Raw(n))
}

fn as_raw(v: Value) -> u32 {
    match v.as_internal() {
        Some(Internal::Raw(n)) => n,
        _ => 0,
    }
}

/// Where a suspended frame stands.
pub(crate) struct SavedFrame {
    pub(crate) func: u32,
    pub(crate) pc: u32,
    pub(crate) closure: ClosureId,
    pub(crate) callee: Value,
}

/// Reads the fields of a suspended frame, for checking.
pub(crate) fn saved_frame(fields: &[Value]) -> SavedFrame {
    let field = |n: usize| fields.get(n).copied().unwrap_or(Value::UNDEFINED);
    SavedFrame {
        func: as_raw(field(FUNC)),
        pc: as_raw(field(PC)),
        closure: ClosureId::from_raw(as_raw(field(CLOSURE))),
        callee: field(CALLEE),
    }
}

impl State {
    pub(super) fn record(&self, object: Value) -> Option<SlotsId> {
        object.as_object().and_then(|o| self.heap.slots_of(o))
    }

    pub(super) fn field(&self, record: SlotsId, n: usize) -> Value {
        self.heap.slots(record).get(n).copied().unwrap_or(Value::UNDEFINED)
    }

    pub(super) fn set_field(&mut self, record: SlotsId, n: usize, v: Value) {
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
            Value::int(phase::RUNNING),
            raw(frame.func),
            raw(0),
            raw(frame.closure.raw()),
            raw(0),
            raw(u32::MAX),
            promise,
            frame.callee,
            Value::UNDEFINED,
            raw(0),
            Value::UNDEFINED,
            Value::UNDEFINED,
        ];
        let object = self.heap.new_object_with_slots(shape, class, crate::heap::Flags::NONE, &fields)?;
        Ok(Value::object(object))
    }

    /// Saves the top frame's registers in its record. On failure nothing has changed.
    pub(super) fn save(
        &mut self,
        regs: &[Value],
        code: &Code,
        frame: Frame,
        dst: u8,
        mode: Option<u8>,
    ) -> Result<(), Exit> {
        let Some(record) = self.record(frame.new_target) else { return Ok(()) };
        let count = code.entry(frame.func).registers as usize;
        let base = frame.base as usize;
        let registers = regs.get(base..base + count).unwrap_or_default();
        if self.heap.slots(record).len() != REGISTERS + count {
            let mut fields = self.heap.slots(record)[..REGISTERS].to_vec();
            fields.extend_from_slice(registers);
            self.heap.replace_slots(record, &fields)?;
        }
        let pc = raw(self.pc);
        if let Some((head, saved)) = self.heap.slots_mut(record).split_first_chunk_mut::<REGISTERS>()
            && saved.len() == registers.len()
        {
            saved.copy_from_slice(registers);
            head[PC] = pc;
            head[DST] = raw(u32::from(dst));
            head[MODE_REGISTER] = raw(mode.map_or(u32::MAX, u32::from));
        }
        Ok(())
    }

    pub(super) fn phase(&self, record: SlotsId) -> i32 {
        self.field(record, STATE).as_int().unwrap_or(phase::DONE)
    }

    /// Pushes the frame of a suspended record; the outer loop restores its registers.
    pub(super) fn push_record(
        &mut self,
        object: Value,
        base: u32,
        dst: u8,
        flags: FrameFlags,
    ) -> Result<(), Exit> {
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
        let fields = self.heap.slots(record);
        let Some(head) = fields.first_chunk::<REGISTERS>() else { return Ok(()) };
        let frame = Frame {
            func: as_raw(head[FUNC]),
            pc: as_raw(head[PC]),
            base,
            args: base + 1,
            argc: 0,
            closure: ClosureId::from_raw(as_raw(head[CLOSURE])),
            dst,
            flags: flags.and(FrameFlags::RESTORE),
            callee: head[CALLEE],
            new_target: object,
        };
        self.frames.push(frame);
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
        let fields = self.heap.slots_mut(record);
        let (head, saved) = fields.split_first_chunk_mut::<REGISTERS>()?;
        if let Some(window) = regs.get_mut(base..base + saved.len()) {
            window.copy_from_slice(saved);
        }
        let (sent, mode) = (head[SENT], as_raw(head[MODE]));
        let (dst, mode_register) = (as_raw(head[DST]) as usize, as_raw(head[MODE_REGISTER]));
        head[STATE] = Value::int(phase::RUNNING);
        head[SENT] = Value::UNDEFINED;
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
        let (class, prototype) = if code.function(frame.func).kind == FunctionKind::AsyncGenerator {
            (Class::AsyncGenerator, self.realm.async_generator_prototype)
        } else {
            (Class::Generator, self.realm.generator_prototype)
        };
        let prototype = self.prototype_for(frame.callee, prototype);
        let generator = self.new_record(class, prototype, frame, Value::UNDEFINED)?;
        let mut marked = frame;
        marked.new_target = generator;
        self.save(regs, code, marked, d, None)?;
        if let Some(record) = self.record(generator) {
            self.set_field(record, STATE, Value::int(phase::START));
        }
        self.leave(regs, code, frame, generator)
    }

    /// The top frame leaves the stack and answers its caller, who may be a microtask.
    fn leave(&mut self, regs: &mut [Value], code: &Code, frame: Frame, value: Value) -> Result<(), Exit> {
        if frame.flags.has(FrameFlags::JOB) {
            return self.job_done(regs, Ok(value));
        }
        self.frames.pop();
        let mut plain = frame;
        plain.flags = frame.flags.without(FrameFlags::ASYNC.and(FrameFlags::GENERATOR));
        self.deliver(regs, code, plain, value)
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
        match (self.phase(record), how) {
            (phase::RUNNING, _) => Err(self.type_error("Generator is already running")),
            (phase::DONE, Resume::Next) => self.iter_result(Value::UNDEFINED, true),
            (phase::DONE | phase::START, Resume::Throw) => {
                self.set_field(record, STATE, Value::int(phase::DONE));
                Err(Exit::Throw(v))
            }
            (phase::DONE | phase::START, Resume::Return) => {
                let result = self.iter_result(v, true)?;
                self.set_field(record, STATE, Value::int(phase::DONE));
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

    /// A step of `for…of` over a generator: what it yields is delivered as it is, without a result object. `None`: it is
    /// running, and the protocol has the error.
    pub(crate) fn step_generator(&mut self, generator: Value, dst: u8) -> Result<Option<Next>, Exit> {
        let Some(record) = self.record(generator) else { return Ok(None) };
        match self.phase(record) {
            phase::DONE => Ok(Some(Next::Done)),
            phase::START | phase::YIELDED => {
                let base = self.top().map_or(0, |f| f.base) + u32::from(self.above) + 2;
                if let Some(head) = self.heap.slots_mut(record).first_chunk_mut::<REGISTERS>() {
                    head[SENT] = Value::UNDEFINED;
                    head[MODE] = raw(Resume::Next as u32);
                }
                self.push_record(generator, base, dst, FrameFlags::STEP.and(FrameFlags::GENERATOR))?;
                Err(Exit::Enter)
            }
            _ => Ok(None),
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
        if frame.flags.is_async_generator() {
            return self.async_yield(regs, code, frame, v, registers);
        }
        if frame.flags.has(FrameFlags::STEP) {
            return self.yield_as_it_is(regs, code, frame, v, registers);
        }
        let result = self.iter_result(v, false)?;
        self.yield_as_it_is(regs, code, frame, result, registers)
    }

    /// Yields a result object that an inner iterator made.
    pub(crate) fn yield_result(
        &mut self,
        regs: &mut [Value],
        code: &Code,
        frame: Frame,
        result: Value,
        registers: (u8, u8),
    ) -> Result<(), Exit> {
        if !frame.flags.has(FrameFlags::STEP) {
            return self.yield_as_it_is(regs, code, frame, result, registers);
        }
        // Whoever steps wants the value: it is read as the protocol says, by a helper in the generator's place.
        self.save(regs, code, frame, registers.0, Some(registers.1))?;
        self.set_phase(frame.new_target, phase::YIELDED);
        self.frames.pop();
        let caller = self.top().copied();
        let at = caller.map_or(0, |f| f.base + u32::from(code.entry(f.func).registers));
        self.pc = caller.map_or(0, |f| f.pc);
        let exit = self.enter_from_outside(regs, at, Helper::IterResult, &[result], FrameFlags::STEP);
        if let Some(top) = self.frames.last_mut().filter(|_| exit == Exit::Enter) {
            top.dst = frame.dst;
        }
        Err(exit)
    }

    fn yield_as_it_is(
        &mut self,
        regs: &mut [Value],
        code: &Code,
        frame: Frame,
        result: Value,
        (dst, mode): (u8, u8),
    ) -> Result<(), Exit> {
        self.save(regs, code, frame, dst, Some(mode))?;
        self.set_phase(frame.new_target, phase::YIELDED);
        self.leave(regs, code, frame, result)
    }

    pub(crate) fn generator_return(
        &mut self,
        regs: &mut [Value],
        code: &Code,
        frame: Frame,
        value: Value,
    ) -> Result<(), Exit> {
        let result =
            if frame.flags.has(FrameFlags::STEP) { Value::HOLE } else { self.iter_result(value, true)? };
        self.finish_record(frame.new_target);
        self.leave(regs, code, frame, result)
    }

    /// A body is over: its record lets go of what it held.
    pub(crate) fn finish_record(&mut self, object: Value) {
        if let Some(record) = self.record(object) {
            self.set_field(record, STATE, Value::int(phase::DONE));
            if let Some(registers) = self.heap.slots_mut(record).get_mut(REGISTERS..) {
                registers.fill(Value::UNDEFINED);
            }
        }
    }

    pub(super) fn set_phase(&mut self, object: Value, phase: i32) {
        if let Some(record) = self.record(object) {
            self.set_field(record, STATE, Value::int(phase));
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
        let record = frame.new_target;
        if !v.is_object() {
            self.queue_resume(record, v);
            return self.leave_async(regs, code, frame);
        }
        match self.wrapping(v) {
            Wrapping::Itself => self.then(v, record, record, Value::UNDEFINED)?,
            Wrapping::Ask => {
                let args = [self.helper(Helper::PromiseConstructor), v];
                return Err(self.ask_promise(regs, code, frame, Helper::PromiseResolve, &args, dst));
            }
            Wrapping::Wrap => {
                let promise = self.new_promise()?;
                if self.try_resolve(promise, v)? == Resolution::AskThen {
                    let args = [promise, v, promise];
                    return Err(self.ask_promise(regs, code, frame, Helper::ResolveSlow, &args, dst));
                }
                // Its first reaction allocates nothing, so what is queued now is not queued again.
                self.then(promise, record, record, Value::UNDEFINED)?;
            }
        }
        self.leave_async(regs, code, frame)
    }

    /// A frame answers the promise to wait for; [`State::await_answered`] goes on with it.
    fn ask_promise(
        &mut self,
        regs: &mut [Value],
        code: &Code,
        frame: Frame,
        helper: Helper,
        args: &[Value],
        dst: u8,
    ) -> Exit {
        let at = frame.base + u32::from(code.entry(frame.func).registers);
        let exit = self.enter_from_outside(regs, at, helper, args, FrameFlags::AWAIT);
        if let Some(top) = self.frames.last_mut().filter(|_| exit == Exit::Enter) {
            top.dst = dst;
        }
        exit
    }

    /// The top frame waits for the promise that a helper answered.
    pub(crate) fn await_answered(
        &mut self,
        regs: &mut [Value],
        code: &Code,
        dst: u8,
        promise: Value,
    ) -> Result<(), Exit> {
        let Some(&frame) = self.frames.last() else { return Ok(()) };
        // The promise is a root from here on, so a collection may come in between.
        let end = frame.base as usize + code.entry(frame.func).registers as usize;
        if let Some(place) = regs.get_mut(frame.base as usize + dst as usize) {
            *place = promise;
        }
        self.pc = frame.pc;
        loop {
            let waiting = self
                .save(regs, code, frame, dst, None)
                .and_then(|()| self.then(promise, frame.new_target, frame.new_target, Value::UNDEFINED));
            match waiting {
                Ok(()) => return self.leave_async(regs, code, frame),
                Err(Exit::Alloc(AllocError::Collect)) => {
                    let point = Point(self.fuel ^ (self.frames.len() as u64) << 48);
                    let roots = regs.get(..end).unwrap_or_default();
                    self.collect(roots, point).map_err(|over| Exit::Limit(Limit::Heap(over)))?;
                }
                Err(exit) => return Err(exit),
            }
        }
    }

    /// An async frame leaves the stack: its first caller gets the promise; a microtask is over.
    pub(super) fn leave_async(&mut self, regs: &mut [Value], code: &Code, frame: Frame) -> Result<(), Exit> {
        let promise = self.record(frame.new_target).map_or(Value::UNDEFINED, |r| self.field(r, PROMISE));
        if frame.flags.has(FrameFlags::ENTRY) {
            self.frames.pop();
            return Err(Exit::Done(promise));
        }
        self.leave(regs, code, frame, promise)
    }

    pub(crate) fn async_return(
        &mut self,
        regs: &mut [Value],
        code: &Code,
        frame: Frame,
        value: Value,
    ) -> Result<(), Exit> {
        if frame.flags.is_async_generator() {
            return self.async_generator_over(regs, code, frame, Resume::Next, value);
        }
        let promise = self.record(frame.new_target).map_or(Value::UNDEFINED, |r| self.field(r, PROMISE));
        let resolved = self.try_resolve(promise, value)?;
        self.finish_record(frame.new_target);
        let left = self.leave_async(regs, code, frame);
        match (resolved, left) {
            (Resolution::Done, left) => left,
            (Resolution::AskThen, Err(Exit::Done(_) | Exit::Enter) | Ok(())) => {
                Err(self.enter_on_top(regs, code, Helper::ResolveSlow, &[promise, value]))
            }
            (Resolution::AskThen, left) => left,
        }
    }

    pub(crate) fn async_throw(
        &mut self,
        regs: &mut [Value],
        code: &Code,
        frame: Frame,
        exception: Value,
    ) -> Result<(), Exit> {
        if frame.flags.is_async_generator() {
            return self.async_generator_over(regs, code, frame, Resume::Throw, exception);
        }
        let promise = self.record(frame.new_target).map_or(Value::UNDEFINED, |r| self.field(r, PROMISE));
        self.settle(promise, Settled::Rejected, exception);
        self.finish_record(frame.new_target);
        self.leave_async(regs, code, frame)
    }

    /// Resumes an awaiting frame from a microtask.
    pub(crate) fn resume_async(&mut self, record_object: Value, how: Resume, v: Value) -> Result<(), Exit> {
        if let Some(record) = self.record(record_object) {
            self.set_field(record, SENT, v);
            self.set_field(record, MODE, raw(how as u32));
        }
        let mut flags = FrameFlags::ASYNC.and(FrameFlags::JOB);
        if record_object.as_object().is_some_and(|o| self.heap.class(o) == Class::AsyncGenerator) {
            flags = flags.and(FrameFlags::GENERATOR);
        }
        self.push_record(record_object, 2, 0, flags)
    }
}

/// How a promise ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    Fulfilled = 1,
    Rejected = 2,
}
