//! Calls, constructions, returns and unwinding: frames come and go here.

use super::Window;
use super::code_table::{Code, Entry};
use super::exotic::Unbound;
use super::frame::{Frame, FrameFlags};
use super::helper::Helper;
use super::native::{self, NativeArgs};
use super::state::{Exit, HostCall, Limit, Res, State};
use crate::code::{ErrorKind, Op};
use crate::heap::{Attrs, Class, ClosureId, Found, Key, ObjId, atoms};
use crate::value::{Internal, Value};

/// How far up in the window arguments are laid out; more of them stay in an array.
pub(crate) const MOST_LAID_OUT: usize = 240;

/// What a frame costs beside its loops.
const CALL_COST: u64 = 4;

/// How a function is called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calling {
    pub(crate) dst: u8,
    pub(crate) flags: FrameFlags,
    pub(crate) new_target: Value,
}

impl State {
    /// Calls `w[a]` with `this` in `w[a + 1]` and `argc` arguments after it.
    #[inline(never)]
    pub(crate) fn call(&mut self, w: &mut Window, a: u8, argc: u32, calling: Calling) -> Res {
        let callee = w[a as usize];
        let Some(obj) = callee.as_object() else { return Err(self.not_callable(w, a)) };
        match self.heap.class(obj) {
            Class::BoundFunction => {
                let Unbound { a, argc, calling } = self.unbind(w, a, argc, calling)?;
                self.call(w, a, argc, calling)
            }
            Class::Function => {
                let Some(closure) = self.heap.closure_of(obj) else { return Err(self.not_callable(w, a)) };
                let is_class = self.heap.flags(obj).has(crate::heap::Flags::CLASS_CONSTRUCTOR);
                if is_class && !calling.flags.has(FrameFlags::CONSTRUCT) {
                    return Err(self.type_error("Class constructor cannot be invoked without 'new'"));
                }
                let at = self.top().map_or(0, |f| f.base) + u32::from(a);
                if calling.flags.has(FrameFlags::LIST) {
                    self.push_closure(closure, callee, at + 4, at + 2, argc, calling)?;
                } else {
                    self.push_closure(closure, callee, at + 1, at + 2, argc, calling)?;
                }
                Err(Exit::Enter)
            }
            Class::NativeFunction if calling.flags.has(FrameFlags::LIST) => {
                w[a as usize] = self.fallback(obj);
                if !self.heap.is_callable(w[a as usize]) {
                    return Err(self.throw(ErrorKind::Range, "too many arguments"));
                }
                self.call(w, a, argc, calling)
            }
            Class::NativeFunction => match native::call(self, w, obj, NativeArgs { a, argc, calling }) {
                Err(Exit::Slow) => {
                    w[a as usize] = self.fallback(obj);
                    self.call(w, a, argc, calling)
                }
                result => result,
            },
            Class::HostFunction => {
                let args = match w[a as usize + 2].as_array() {
                    Some(list) if calling.flags.has(FrameFlags::LIST) => {
                        (0..argc).map(|i| self.heap.array_get(list, i).unwrap_or(Value::UNDEFINED)).collect()
                    }
                    _ => w[a as usize + 2..a as usize + 2 + argc as usize].to_vec(),
                };
                let flags = calling.flags.without(FrameFlags::LIST);
                self.host_call(obj, args, Calling { flags, ..calling })
            }
            Class::Proxy if self.heap.is_callable(callee) => self.call_proxy(w, a, argc, obj, calling),
            _ => Err(self.not_callable(w, a)),
        }
    }

    /// Pushes the frame of a closure whose `this` is at `base` in the register file.
    #[inline]
    pub(crate) fn push_closure(
        &mut self,
        closure: ClosureId,
        callee: Value,
        base: u32,
        args: u32,
        argc: u32,
        calling: Calling,
    ) -> Result<(), Exit> {
        let func = self.heap.closure_code(closure);
        self.burn(CALL_COST)?;
        if self.frames.len() >= self.limits.call_depth as usize {
            return Err(Exit::Limit(Limit::CallDepth));
        }
        let pc = self.pc;
        if let Some(top) = self.frames.last_mut() {
            top.pc = pc;
        }
        self.frames.push(Frame {
            func,
            pc: 0,
            base,
            args,
            argc,
            closure,
            dst: calling.dst,
            flags: calling.flags,
            callee,
            new_target: calling.new_target,
        });
        Ok(())
    }

    pub(crate) fn top(&self) -> Option<&Frame> {
        self.frames.last()
    }

    /// Calls any function value from inside an instruction: the call is laid out above the frame's registers.
    #[inline(never)]
    pub(crate) fn call_above(
        &mut self,
        w: &mut Window,
        callee: Value,
        this: Value,
        args: &[Value],
        dst: u8,
        flags: FrameFlags,
    ) -> Res {
        let a = self.above;
        w[a as usize] = callee;
        w[a as usize + 1] = this;
        for (i, &arg) in args.iter().enumerate() {
            w[a as usize + 2 + i] = arg;
        }
        self.call(w, a, args.len() as u32, Calling { dst, flags, new_target: Value::UNDEFINED })
    }

    /// Enters a prelude helper; its result goes to `dst` as `flags` say.
    #[inline(never)]
    pub(crate) fn enter_helper(
        &mut self,
        w: &mut Window,
        helper: Helper,
        args: &[Value],
        dst: u8,
        flags: FrameFlags,
    ) -> Exit {
        let callee = self.helpers.get(helper as usize).copied().unwrap_or(Value::UNDEFINED);
        match self.call_above(w, callee, Value::UNDEFINED, args, dst, flags) {
            // Helpers are closures, so a call of one enters it.
            Ok(_) => Exit::Enter,
            Err(exit) => exit,
        }
    }

    /// `new w[a](…)` with the arguments from `w[a + 2]` on; `this` goes to `w[a + 1]`.
    #[inline(never)]
    pub(crate) fn construct(&mut self, w: &mut Window, a: u8, argc: u32, dst: u8, new_target: Value) -> Res {
        self.construct_as(w, a, argc, Calling { dst, flags: FrameFlags::NONE, new_target })
    }

    fn construct_as(&mut self, w: &mut Window, a: u8, argc: u32, calling: Calling) -> Res {
        if !self.heap.is_constructor(w[a as usize]) {
            return Err(self.not_a_constructor(w, a));
        }
        let Unbound { a, argc, calling } = self.unbind(w, a, argc, calling)?;
        let Calling { dst, new_target, .. } = calling;
        let callee = w[a as usize];
        let Some(obj) = callee.as_object() else { return Err(self.not_callable(w, a)) };
        let mut flags = FrameFlags::CONSTRUCT.and(calling.flags);
        let this = if self.heap.class(obj) == Class::Function {
            if self.heap.flags(obj).has(crate::heap::Flags::DERIVED) {
                flags = flags.and(FrameFlags::DERIVED);
                Value::HOLE
            } else {
                let Some(prototype) = self.plain_prototype(new_target) else {
                    return self.construct_slow(w, a, argc, calling);
                };
                let shape = self.heap.root_shape(Some(prototype))?;
                Value::object(self.heap.new_object(shape)?)
            }
        } else {
            Value::UNDEFINED
        };
        w[a as usize + 1] = this;
        self.call(w, a, argc, Calling { dst, flags, new_target })
    }

    /// The `prototype` of a constructor, if it is a plain object there.
    pub(crate) fn prototype_for(&self, new_target: Value, fallback: ObjId) -> ObjId {
        match new_target.as_object().map(|t| self.heap.get(t, Key::atom(atoms::PROTOTYPE))) {
            Some(Found::Data(value)) => value.as_object().unwrap_or(fallback),
            _ => fallback,
        }
    }

    /// Calls `w[a]` with `this` in `w[a + 1]` and the elements of the array in `w[a + 2]` as arguments.
    pub(crate) fn call_list(&mut self, w: &mut Window, a: u8, calling: Calling) -> Res {
        let array = w[a as usize + 2];
        let (argc, list) = self.unpack(w, a)?;
        let result = self.call(w, a, argc, Calling { flags: calling.flags.and(list), ..calling });
        Self::put_back(w, a + 2, array, result)
    }

    /// An instruction that is executed again after a collection must find what it overwrote.
    pub(crate) fn put_back(w: &mut Window, place: u8, v: Value, result: Res) -> Res {
        if let Err(Exit::Alloc(_)) = result {
            w[place as usize] = v;
        }
        result
    }

    /// `new w[a](…)` with the elements of the array in `w[a + 2]` as arguments.
    pub(crate) fn construct_list(&mut self, w: &mut Window, a: u8, dst: u8, new_target: Value) -> Res {
        let array = w[a as usize + 2];
        let (argc, list) = self.unpack(w, a)?;
        let result = self.construct_as(w, a, argc, Calling { dst, flags: list, new_target });
        Self::put_back(w, a + 2, array, result)
    }

    /// Lays the elements of the array in `w[a + 2]` out as arguments. Too many of them stay in the array.
    fn unpack(&mut self, w: &mut Window, a: u8) -> Result<(u32, FrameFlags), Exit> {
        let Some(array) = w[a as usize + 2].as_array() else { return Ok((0, FrameFlags::NONE)) };
        let length = self.heap.array_length(array);
        self.burn(u64::from(length) / 4)?;
        // The callee's own callees need some room above, too.
        if length as usize + a as usize + 2 > MOST_LAID_OUT {
            return Ok((length, FrameFlags::LIST));
        }
        for i in 0..length {
            w[a as usize + 2 + i as usize] = self.heap.array_get(array, i).unwrap_or(Value::UNDEFINED);
        }
        Ok((length, FrameFlags::NONE))
    }

    /// Makes the registers of a fresh frame whose arguments are an array: see [`FrameFlags::LIST`].
    pub(crate) fn take_list(&mut self, regs: &mut [Value], entry: Entry) {
        let Some(&frame) = self.frames.last() else { return };
        let (base, list) = (frame.base as usize, frame.args as usize);
        let array = regs.get(list).and_then(|v| v.as_array());
        let this = regs.get(list - 1).copied().unwrap_or(Value::UNDEFINED);
        let Some(window) = regs.get_mut(base - 1..base + entry.registers as usize) else { return };
        window.fill(Value::UNDEFINED);
        window[0] = frame.callee;
        window[1] = this;
        for (i, place) in window[2..].iter_mut().enumerate().take(entry.parameters as usize) {
            *place = array.and_then(|a| self.heap.array_get(a, i as u32)).unwrap_or(Value::UNDEFINED);
        }
    }

    /// The arguments of a frame from number `skip` on.
    pub(crate) fn arguments_of(&self, regs: &[Value], frame: &Frame, skip: u32) -> Vec<Value> {
        let skip = skip.min(frame.argc);
        if frame.flags.has(FrameFlags::LIST) {
            let Some(array) = regs.get(frame.args as usize).and_then(|v| v.as_array()) else {
                return Vec::new();
            };
            let get = |i| self.heap.array_get(array, i).unwrap_or(Value::UNDEFINED);
            return (skip..frame.argc).map(get).collect();
        }
        let (from, to) = ((frame.args + skip) as usize, (frame.args + frame.argc) as usize);
        regs.get(from..to).unwrap_or_default().to_vec()
    }

    /// A capability: waits for the host, or answers a promise inside async code.
    fn host_call(&mut self, function: ObjId, args: Vec<Value>, calling: Calling) -> Res {
        let name = match self.heap.slots_of(function) {
            Some(slots) => self.heap.slots(slots).first().copied().unwrap_or(Value::UNDEFINED),
            None => Value::UNDEFINED,
        };
        let asynchronous = FrameFlags::ASYNC.and(FrameFlags::JOB).and(FrameFlags::EXECUTOR);
        let in_async = self.frames.is_empty() || self.frames.iter().any(|f| f.flags.has(asynchronous));
        if in_async {
            if self.queued_calls() >= self.limits.host_calls as usize {
                return Err(Exit::Limit(Limit::HostCalls));
            }
            let (args, weight) = self.copy_arguments(args)?;
            let promise = self.new_promise()?;
            self.calls += 1;
            self.queued_weight = self.queued_weight.saturating_add(weight);
            self.waiting.push_back(HostCall { id: self.calls, name, args, promise: Some(promise), weight });
            return Ok(promise);
        }
        self.check_arguments(&args)?;
        self.calls += 1;
        // A call that was surfaced before waits behind this one, which nothing goes on without.
        if let Some(surfaced) = self.pending.take() {
            self.waiting.push_front(surfaced);
        }
        self.pending = Some(HostCall { id: self.calls, name, args, promise: None, weight: 0 });
        self.pending_calling = calling;
        let pc = self.pc;
        if let Some(top) = self.frames.last_mut() {
            top.pc = pc;
        }
        Err(Exit::Suspend)
    }

    /// A frame with flags returned `value`: gives it to the caller in the way the flags say. The frame is popped.
    #[inline(never)]
    pub(crate) fn return_special(
        &mut self,
        regs: &mut [Value],
        code: &Code,
        value: Value,
    ) -> Result<(), Exit> {
        let Some(&frame) = self.frames.last() else { return Err(Exit::Done(value)) };
        let flags = frame.flags;
        let mut value = value;
        if flags.has(FrameFlags::ASYNC) {
            return self.async_return(regs, code, frame, value);
        }
        if flags.has(FrameFlags::GENERATOR) {
            return self.generator_return(regs, code, frame, value);
        }
        if flags.has(FrameFlags::CONSTRUCT) && !value.is_object() {
            if flags.has(FrameFlags::DERIVED) {
                return Err(self.type_error("Derived constructors may only return object or undefined"));
            }
            value = regs.get(frame.base as usize).copied().unwrap_or(Value::UNDEFINED);
        }
        if flags.has(FrameFlags::JOB) {
            return self.job_done(regs, Ok(value));
        }
        self.frames.pop();
        if flags.has(FrameFlags::ENTRY) || self.frames.is_empty() {
            return Err(Exit::Done(value));
        }
        self.deliver(regs, code, frame, value)
    }

    /// Puts a callee's result where the caller's instruction wants it.
    pub(crate) fn deliver(
        &mut self,
        regs: &mut [Value],
        code: &Code,
        frame: Frame,
        value: Value,
    ) -> Result<(), Exit> {
        let flags = frame.flags;
        let Some(caller) = self.frames.last_mut() else { return Err(Exit::Done(value)) };
        let base = caller.base as usize;
        let mut put = |r: u8, v: Value| {
            if let Some(place) = regs.get_mut(base + r as usize) {
                *place = v;
            }
        };
        if flags.has(FrameFlags::DISCARD) {
            return Ok(());
        }
        if flags.has(FrameFlags::AWAIT) {
            return self.await_answered(regs, code, frame.dst, value);
        }
        if flags.has(FrameFlags::BRANCH) {
            let op = code.op(caller.func, caller.pc.wrapping_sub(1));
            let truth = self.heap.truthy(value);
            if let Some(target) = branch_target(op, truth) {
                caller.pc = target;
            }
            return Ok(());
        }
        if flags.has(FrameFlags::STEP) && value.is_hole() {
            if let Op::IterNext(d, a, t) = code.op(caller.func, caller.pc.wrapping_sub(1)) {
                caller.pc = t;
                put(a, Value::UNDEFINED);
                put(d, Value::UNDEFINED);
            }
            return Ok(());
        }
        if flags.has(FrameFlags::PAIR) {
            if let Some(pair) = value.as_array() {
                put(frame.dst, self.heap.array_get(pair, 0).unwrap_or(Value::UNDEFINED));
                put(frame.dst + 1, self.heap.array_get(pair, 1).unwrap_or(Value::UNDEFINED));
            }
            return Ok(());
        }
        if flags.has(FrameFlags::NEGATE) {
            put(frame.dst, Value::bool(!self.heap.truthy(value)));
            return Ok(());
        }
        put(frame.dst, value);
        Ok(())
    }

    /// Finds the handler of an exception, dropping frames on the way. Fails with what ends the run.
    #[inline(never)]
    pub(crate) fn unwind(&mut self, regs: &mut [Value], code: &Code, exception: Value) -> Result<(), Exit> {
        let mut first = true;
        loop {
            let Some(frame) = self.frames.last_mut() else { return Err(Exit::Throw(exception)) };
            let pc = if first { self.pc } else { frame.pc };
            let at = pc.wrapping_sub(1);
            if first {
                self.thrown = Some((frame.func, code.function(frame.func).position(at)));
            }
            first = false;
            if let Some(handler) = code.function(frame.func).handler(at) {
                frame.pc = handler.target;
                let place = frame.base as usize + handler.register as usize;
                if let Some(place) = regs.get_mut(place) {
                    *place = exception;
                }
                return Ok(());
            }
            let frame = *frame;
            if frame.flags.has(FrameFlags::ASYNC) {
                return self.async_throw(regs, code, frame, exception);
            }
            if frame.flags.has(FrameFlags::GENERATOR) {
                self.finish_record(frame.new_target);
            }
            if frame.flags.has(FrameFlags::JOB) {
                return self.job_done(regs, Err(exception));
            }
            self.frames.pop();
            if frame.flags.has(FrameFlags::ENTRY) {
                return Err(Exit::Throw(exception));
            }
        }
    }

    /// A new function object for function `index`, with the cells its captures name.
    #[inline(never)]
    pub(crate) fn new_closure(&mut self, w: &Window, code: &Code, index: u32) -> Res {
        use crate::code::{Capture, FunctionKind};
        let f = code.function(index);
        let mut cells = [Value::UNDEFINED; 32];
        let mut many;
        let cells: &mut [Value] = if f.captures.len() <= 32 {
            &mut cells[..f.captures.len()]
        } else {
            many = vec![Value::UNDEFINED; f.captures.len()];
            &mut many
        };
        let own = self.top().map_or(ClosureId::from_raw(0), |f| f.closure);
        for (place, capture) in cells.iter_mut().zip(&f.captures) {
            *place = match *capture {
                Capture::Register(r) => w[r as usize],
                Capture::Record(r, n) => self.scope_value(w[r as usize], n),
                Capture::Captured(n) => self.heap.capture(own, u32::from(n)),
                Capture::Absent => Value::UNDEFINED,
            };
        }
        let name = match f.name {
            Some(k) => self.constants[k as usize],
            None => Value::string(atoms::EMPTY),
        };
        let (shape, flags) = match f.kind {
            FunctionKind::Normal => (self.realm.constructor_shape, crate::heap::Flags::CONSTRUCTOR),
            FunctionKind::Async | FunctionKind::AsyncArrow => {
                (self.realm.async_function_shape, crate::heap::Flags::NONE)
            }
            FunctionKind::Generator => (self.realm.generator_function_shape, crate::heap::Flags::NONE),
            FunctionKind::AsyncGenerator => {
                (self.realm.async_generator_function_shape, crate::heap::Flags::NONE)
            }
            _ => (self.realm.function_shape, crate::heap::Flags::NONE),
        };
        let function = self.heap.new_closure(shape, flags, index, cells, Value::UNDEFINED)?;
        self.heap.set_slot(function, 0, Value::int(i32::from(f.length)));
        self.heap.set_slot(function, 1, name);
        match f.kind {
            FunctionKind::Normal => {
                let prototype = self.heap.new_object(self.realm.prototype_shape)?;
                self.heap.set_slot(prototype, 0, Value::object(function));
                self.heap.set_slot(function, 2, Value::object(prototype));
            }
            FunctionKind::Generator | FunctionKind::AsyncGenerator => {
                let parent = if f.kind == FunctionKind::Generator {
                    self.realm.generator_prototype
                } else {
                    self.realm.async_generator_prototype
                };
                let shape = self.heap.root_shape(Some(parent))?;
                let prototype = self.heap.new_object(shape)?;
                self.heap.set_slot(function, 2, Value::object(prototype));
            }
            _ => {}
        }
        Ok(Value::object(function))
    }

    /// The own `name` of a function set to a computed key.
    pub(crate) fn set_name(&mut self, function: ObjId, name: Value) -> Result<(), Exit> {
        self.heap.add_property(function, Key::atom(atoms::NAME), Attrs::CONFIGURABLE, name)?;
        Ok(())
    }
}

/// A reference to a cell, as registers hold it.
pub(crate) fn cell_value(id: crate::heap::CellId) -> Value {
    Value::internal(Internal::Cell(id))
}

/// Where a fused compare goes if the comparison is `truth`.
fn branch_target(op: Op, truth: bool) -> Option<u32> {
    match op {
        Op::JLt(_, _, t)
        | Op::JLe(_, _, t)
        | Op::JGt(_, _, t)
        | Op::JGe(_, _, t)
        | Op::LoopLt(_, _, t)
        | Op::LoopLtInt(_, _, t) => truth.then_some(t),
        Op::JNotLt(_, _, t)
        | Op::JNotLe(_, _, t)
        | Op::JNotGt(_, _, t)
        | Op::JNotGe(_, _, t)
        | Op::JNotLtInt(_, _, t) => (!truth).then_some(t),
        _ => None,
    }
}
