//! Promises and the microtask queue.
//!
//! A promise is an object with internal fields: its state, its result, its first reaction (three fields: what runs when it
//! is fulfilled, what runs when it is rejected, what depends on it) and then one field per further reaction, an array of
//! the same three. So settling copies nothing, and a promise with one reaction allocates nothing for it.
//!
//! A reaction's handler is a function, the record of an awaiting frame, or undefined. What depends on it is a plain
//! promise, undefined, or a list of promise, resolve and reject (a promise of a subclass). `builtins/promise.js` has
//! whatever may run guest code; a `then` that is a getter is read there, in a frame of its own.

use super::Window;
use super::call::Calling;
use super::code_table::Code;
use super::frame::FrameFlags;
use super::helper::Helper;
use super::native::Native;
use super::state::{Exit, Job, ReactionKind, Res, State};
use super::suspend::{Resume, Settled};
use crate::heap::{CellId, Class, Flags, Found, Key, ObjId, SlotsId, atoms};
use crate::value::Value;

const STATE: usize = 0;
const RESULT: usize = 1;
/// The first reaction; the hole when there is none.
const FIRST: usize = 2;
const MORE: usize = 5;

/// How far resolving a promise got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Resolution {
    /// It is settled, or will follow a thenable.
    Done,
    /// `then` must be looked up by a frame: see [`Helper::ResolveSlow`]. Nothing has happened yet.
    AskThen,
}

impl State {
    pub(crate) fn new_promise(&mut self) -> Res {
        self.new_promise_of(Some(self.realm.promise_prototype))
    }

    pub(crate) fn new_promise_of(&mut self, prototype: Option<ObjId>) -> Res {
        let shape = self.heap.root_shape(prototype)?;
        let fields = [Value::ZERO, Value::UNDEFINED, Value::HOLE, Value::UNDEFINED, Value::UNDEFINED];
        Ok(Value::object(self.heap.new_object_with_slots(shape, Class::Promise, Flags::NONE, &fields)?))
    }

    fn promise_record(&self, promise: Value) -> Option<SlotsId> {
        let obj = promise.as_object()?;
        if self.heap.class(obj) == Class::Promise { self.heap.slots_of(obj) } else { None }
    }

    pub(crate) fn is_promise(&self, v: Value) -> bool {
        self.promise_record(v).is_some()
    }

    pub(crate) fn helper(&self, helper: Helper) -> Value {
        self.helpers.get(helper as usize).copied().unwrap_or(Value::UNDEFINED)
    }

    /// A promise whose `constructor` is the realm's, found without running guest code.
    pub(crate) fn is_plain_promise(&self, v: Value) -> bool {
        self.wrapping(v) == Wrapping::Itself
    }

    /// A settled promise's outcome.
    pub(crate) fn outcome(&self, promise: Value) -> Option<Result<Value, Value>> {
        let record = self.promise_record(promise)?;
        let fields = self.heap.slots(record);
        match fields[STATE].as_int() {
            Some(1) => Some(Ok(fields[RESULT])),
            Some(2) => Some(Err(fields[RESULT])),
            _ => None,
        }
    }

    /// What PromiseResolve of our own Promise must do with a value.
    pub(crate) fn wrapping(&self, v: Value) -> Wrapping {
        if !self.is_promise(v) {
            return Wrapping::Wrap;
        }
        match v.as_object().map(|o| self.heap.get(o, Key::atom(atoms::CONSTRUCTOR))) {
            Some(Found::Data(c)) if c == self.helper(Helper::PromiseConstructor) => Wrapping::Itself,
            Some(Found::Getter(_) | Found::Exotic(_)) => Wrapping::Ask,
            Some(Found::Data(_) | Found::Absent) | None => Wrapping::Wrap,
        }
    }

    /// PromiseResolve of our own Promise, from a native: the promise goes to `dst`.
    pub(crate) fn promise_resolve(&mut self, w: &mut Window, v: Value, dst: u8, flags: FrameFlags) -> Res {
        match self.wrapping(v) {
            Wrapping::Itself => Ok(v),
            Wrapping::Ask => {
                let args = [self.helper(Helper::PromiseConstructor), v];
                Err(self.enter_helper(w, Helper::PromiseResolve, &args, dst, flags))
            }
            Wrapping::Wrap => {
                let promise = self.new_promise()?;
                match self.try_resolve(promise, v)? {
                    Resolution::Done => Ok(promise),
                    Resolution::AskThen => {
                        Err(self.enter_helper(w, Helper::ResolveSlow, &[promise, v, promise], dst, flags))
                    }
                }
            }
        }
    }

    /// Resolves a promise: follows thenables, fulfils with anything else.
    pub(crate) fn try_resolve(&mut self, promise: Value, value: Value) -> Result<Resolution, Exit> {
        let Some(obj) = value.as_object() else {
            self.settle(promise, Settled::Fulfilled, value);
            return Ok(Resolution::Done);
        };
        if value == promise {
            match self.type_error("Chaining cycle detected for promise #<Promise>") {
                Exit::Throw(error) => self.settle(promise, Settled::Rejected, error),
                exit => return Err(exit),
            }
            return Ok(Resolution::Done);
        }
        match self.heap.get(obj, Key::atom(atoms::THEN)) {
            Found::Data(then) => self.resolve_with(promise, value, then),
            Found::Absent => self.settle(promise, Settled::Fulfilled, value),
            Found::Getter(_) | Found::Exotic(_) => return Ok(Resolution::AskThen),
        }
        Ok(Resolution::Done)
    }

    /// The same with `then` in hand.
    pub(crate) fn resolve_with(&mut self, promise: Value, value: Value, then: Value) {
        if self.heap.is_callable(then) {
            self.jobs.push_back(Job::Thenable { promise, thenable: value, then });
        } else {
            self.settle(promise, Settled::Fulfilled, value);
        }
    }

    /// Fulfils or rejects a pending promise and queues its reactions.
    pub(crate) fn settle(&mut self, promise: Value, how: Settled, value: Value) {
        let Some(record) = self.promise_record(promise) else { return };
        if self.heap.slots(record)[STATE] != Value::ZERO {
            return;
        }
        let fields = self.heap.slots_mut(record);
        fields[STATE] = Value::int(how as i32);
        fields[RESULT] = value;
        let first = [fields[FIRST], fields[FIRST + 1], fields[FIRST + 2]];
        fields[FIRST..MORE].fill(Value::UNDEFINED);
        if first[0].is_hole() {
            return;
        }
        self.queue(how, first, value);
        for at in MORE..self.heap.slots(record).len() {
            let reaction = std::mem::replace(&mut self.heap.slots_mut(record)[at], Value::UNDEFINED);
            let parts = reaction.as_array().and_then(|a| self.heap.packed(a));
            if let Some(&[fulfilled, rejected, dependent]) = parts {
                self.queue(how, [fulfilled, rejected, dependent], value);
            }
        }
    }

    fn queue(&mut self, how: Settled, [fulfilled, rejected, promise]: [Value; 3], value: Value) {
        let (kind, handler) = match how {
            Settled::Fulfilled => (ReactionKind::Fulfil, fulfilled),
            Settled::Rejected => (ReactionKind::Reject, rejected),
        };
        self.jobs.push_back(Job::Reaction { kind, handler, promise, value });
    }

    /// An awaiting frame goes on in a microtask, with a value that needs no promise.
    pub(crate) fn queue_resume(&mut self, record: Value, value: Value) {
        self.queue(Settled::Fulfilled, [record, record, Value::UNDEFINED], value);
    }

    /// PerformPromiseThen for the guest: what cannot be called is left out.
    pub(crate) fn perform_then(
        &mut self,
        promise: Value,
        handlers: [Value; 2],
        on: Value,
    ) -> Result<(), Exit> {
        let [fulfilled, rejected] =
            handlers.map(|h| if self.heap.is_callable(h) { h } else { Value::UNDEFINED });
        self.then(promise, fulfilled, rejected, on)
    }

    /// PerformPromiseThen. On failure nothing has changed; the first reaction never fails.
    pub(crate) fn then(
        &mut self,
        promise: Value,
        fulfilled: Value,
        rejected: Value,
        dependent: Value,
    ) -> Result<(), Exit> {
        let Some(record) = self.promise_record(promise) else { return Ok(()) };
        let reaction = [fulfilled, rejected, dependent];
        match self.outcome(promise) {
            None if self.heap.slots(record)[FIRST].is_hole() => {
                self.heap.slots_mut(record)[FIRST..MORE].copy_from_slice(&reaction);
            }
            None => {
                let array = self.heap.new_array(self.realm.array_shape, &reaction)?;
                self.heap.push_slot(record, Value::array(array))?;
            }
            Some(Ok(v)) => self.queue(Settled::Fulfilled, reaction, v),
            Some(Err(v)) => self.queue(Settled::Rejected, reaction, v),
        }
        Ok(())
    }

    /// Starts the next microtask: pushes its frame, or does it at once. The stack is empty.
    pub(crate) fn start_job(&mut self, w: &mut Window, job: Job) -> Result<(), Exit> {
        self.above = 0;
        match job {
            Job::Reaction { kind, handler, promise, value } => {
                let class = handler.as_object().map(|o| self.heap.class(o));
                if matches!(class, Some(Class::Generator | Class::AsyncGenerator)) {
                    let how = if kind == ReactionKind::Fulfil { Resume::Next } else { Resume::Throw };
                    return self.resume_async(handler, how, value);
                }
                if promise.is_array() {
                    let rejected = Value::bool(kind == ReactionKind::Reject);
                    let args = [handler, promise, value, rejected];
                    return Err(self.enter_helper(w, Helper::RunReaction, &args, 0, FrameFlags::JOB));
                }
                if handler.is_undefined() {
                    self.job_promise = promise;
                    return match kind {
                        ReactionKind::Fulfil => self.finish_job(w, Ok(value)),
                        ReactionKind::Reject => self.finish_job(w, Err(value)),
                    };
                }
                self.job_promise = promise;
                self.call_job(w, handler, Value::UNDEFINED, &[value])
            }
            Job::Thenable { promise, thenable, then } => {
                if then == self.helper(Helper::PromiseThen) && self.is_plain_promise(thenable) {
                    // What the functions would do, without making them: nobody could tell.
                    return self.then(thenable, Value::UNDEFINED, Value::UNDEFINED, promise);
                }
                let (resolve, reject) = self.resolving_functions(promise)?;
                // An exception of `then` rejects the promise unless it was resolved already.
                self.job_promise = reject;
                self.call_job(w, then, thenable, &[resolve, reject])
            }
        }
    }

    fn call_job(&mut self, w: &mut Window, callee: Value, this: Value, args: &[Value]) -> Result<(), Exit> {
        match self.call_above(w, callee, this, args, 0, FrameFlags::JOB) {
            Ok(v) => self.finish_job(w, Ok(v)),
            Err(Exit::Throw(e)) => self.finish_job(w, Err(e)),
            Err(exit) => Err(exit),
        }
    }

    /// A microtask that was over at once.
    fn finish_job(&mut self, w: &mut Window, outcome: Result<Value, Value>) -> Result<(), Exit> {
        match self.job_done(w, outcome) {
            Err(Exit::Done(_)) => Ok(()),
            other => other,
        }
    }

    /// A microtask's function is over: what depends on it is settled. Its frame, the only one, is dropped. Leaves the
    /// loop, unless there is more to do.
    pub(crate) fn job_done(&mut self, regs: &mut [Value], outcome: Result<Value, Value>) -> Result<(), Exit> {
        let promise = self.job_promise;
        if self.is_promise(promise) {
            match outcome {
                Ok(v) => {
                    if self.try_resolve(promise, v)? == Resolution::AskThen {
                        self.job_promise = Value::UNDEFINED;
                        self.frames.clear();
                        return Err(self.look_then(regs, promise, v));
                    }
                }
                Err(e) => self.settle(promise, Settled::Rejected, e),
            }
        } else if let (Err(e), Some(reject)) = (outcome, promise.as_object())
            && let Some((promise, done)) = self.behind(reject)
            && self.heap.cell(done) != Value::TRUE
        {
            self.settle(promise, Settled::Rejected, e);
            self.heap.set_cell(done, Value::TRUE);
        }
        self.job_promise = Value::UNDEFINED;
        self.frames.clear();
        Err(Exit::Done(Value::UNDEFINED))
    }

    /// Lets a frame at the bottom of the empty stack look `then` up.
    pub(crate) fn look_then(&mut self, regs: &mut [Value], promise: Value, value: Value) -> Exit {
        let arguments = [promise, value];
        self.enter_from_outside(regs, 0, Helper::ResolveSlow, &arguments, FrameFlags::JOB)
    }

    /// The pair of functions that settle a promise once. They share a cell that remembers.
    pub(crate) fn resolving_functions(&mut self, promise: Value) -> Result<(Value, Value), Exit> {
        let resolve = self.resolver(promise)?;
        Ok((resolve, self.rejecter(resolve)?))
    }

    /// The function that resolves a promise.
    pub(crate) fn resolver(&mut self, promise: Value) -> Res {
        let done = Value::internal(crate::value::Internal::Cell(self.heap.new_cell(Value::FALSE)?));
        self.resolving_function(Native::ResolvePromise, promise, done)
    }

    /// The function that rejects the same promise.
    pub(crate) fn rejecter(&mut self, resolver: Value) -> Res {
        let behind = resolver.as_object().and_then(|f| self.behind(f));
        let Some((promise, done)) = behind else { return Err(self.type_error("not a resolving function")) };
        let done = Value::internal(crate::value::Internal::Cell(done));
        self.resolving_function(Native::RejectPromise, promise, done)
    }

    fn resolving_function(&mut self, native: Native, promise: Value, done: Value) -> Res {
        let function = self.new_native(native, &[promise, done])?;
        if let Some(f) = function.as_object() {
            self.heap.set_slot(f, 0, Value::int(1));
        }
        Ok(function)
    }

    /// The promise behind a resolving function, and the cell that says whether it was called.
    pub(crate) fn behind(&self, function: ObjId) -> Option<(Value, CellId)> {
        let fields = self.heap.slots_of(function).map(|s| self.heap.slots(s))?;
        Some((*fields.get(1)?, fields.get(2)?.as_cell()?))
    }

    /// A call of a resolving function.
    pub(crate) fn call_resolving(
        &mut self,
        w: &mut Window,
        function: ObjId,
        how: Settled,
        v: Value,
        calling: Calling,
    ) -> Res {
        let Some((promise, done)) = self.behind(function) else { return Ok(Value::UNDEFINED) };
        if self.heap.cell(done) == Value::TRUE {
            return Ok(Value::UNDEFINED);
        }
        let resolution = match how {
            Settled::Fulfilled => self.try_resolve(promise, v)?,
            Settled::Rejected => {
                self.settle(promise, how, v);
                Resolution::Done
            }
        };
        self.heap.set_cell(done, Value::TRUE);
        match resolution {
            Resolution::Done => Ok(Value::UNDEFINED),
            Resolution::AskThen => {
                let ask = self.helper(Helper::ResolveSlow);
                self.call_above(w, ask, Value::UNDEFINED, &[promise, v], calling.dst, calling.flags)
            }
        }
    }

    /// Enters a prelude helper from outside the dispatch loop, with its call laid out at `at` in the register file.
    pub(crate) fn enter_from_outside(
        &mut self,
        regs: &mut [Value],
        at: u32,
        helper: Helper,
        args: &[Value],
        flags: FrameFlags,
    ) -> Exit {
        let callee = self.helpers.get(helper as usize).copied().unwrap_or(Value::UNDEFINED);
        let Some(closure) = callee.as_object().and_then(|f| self.heap.closure_of(f)) else {
            return Exit::Done(Value::UNDEFINED);
        };
        let values = [callee, Value::UNDEFINED];
        for (i, &v) in values.iter().chain(args).enumerate() {
            if let Some(place) = regs.get_mut(at as usize + i) {
                *place = v;
            }
        }
        let calling = Calling { dst: 0, flags, new_target: Value::UNDEFINED };
        match self.push_closure(closure, callee, at + 1, at + 2, args.len() as u32, calling) {
            Ok(()) => Exit::Enter,
            Err(exit) => exit,
        }
    }

    /// The same above the top frame, which goes on afterwards where it stands; on an empty stack as a microtask.
    pub(crate) fn enter_on_top(
        &mut self,
        regs: &mut [Value],
        code: &Code,
        helper: Helper,
        args: &[Value],
    ) -> Exit {
        match self.frames.last() {
            None => self.enter_from_outside(regs, 0, helper, args, FrameFlags::JOB),
            Some(top) => {
                self.pc = top.pc;
                let at = top.base + u32::from(code.function(top.func).registers);
                self.enter_from_outside(regs, at, helper, args, FrameFlags::DISCARD)
            }
        }
    }
}

/// What PromiseResolve does with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrapping {
    /// It is one of our promises already.
    Itself,
    /// It needs a promise of its own.
    Wrap,
    /// Only its `constructor` knows, which is a getter.
    Ask,
}
