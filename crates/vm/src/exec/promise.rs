//! Promises and the microtask queue.
//!
//! A promise is an object with internal fields: its state, its result, whether anybody looked, and then three fields
//! per reaction: what runs when it is fulfilled, what runs when it is rejected, and the promise that depends on it.
//! A reaction's handler is a function, the record of an awaiting frame, or undefined. What depends on it is a plain
//! promise, undefined, or a list of promise, resolve and reject (a promise of a subclass). `builtins/promise.js` has
//! whatever may run guest code; a `then` that is a getter is read there.

use super::Window;
use super::call::Calling;
use super::frame::FrameFlags;
use super::helper::Helper;
use super::native::Native;
use super::state::{Exit, Job, ReactionKind, Res, State};
use super::suspend::{Resume, Settled};
use crate::heap::{CellId, Class, Flags, Found, Key, ObjId, SlotsId, atoms};
use crate::value::Value;

const STATE: usize = 0;
const RESULT: usize = 1;
const REACTIONS: usize = 2;

impl State {
    pub(crate) fn new_promise(&mut self) -> Res {
        self.new_promise_of(Some(self.realm.promise_prototype))
    }

    pub(crate) fn new_promise_of(&mut self, prototype: Option<ObjId>) -> Res {
        let shape = self.heap.root_shape(prototype)?;
        let fields = [Value::ZERO, Value::UNDEFINED];
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
        let Some(obj) = v.as_object().filter(|&o| self.heap.class(o) == Class::Promise) else { return false };
        self.heap.get(obj, Key::atom(atoms::CONSTRUCTOR))
            == Found::Data(self.helper(Helper::PromiseConstructor))
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

    /// PromiseResolve: the value itself if it is a promise of the realm's constructor, else a promise resolved with it.
    pub(crate) fn promise_resolve(&mut self, v: Value) -> Res {
        if self.is_plain_promise(v) {
            return Ok(v);
        }
        let promise = self.new_promise()?;
        self.resolve(promise, v)?;
        Ok(promise)
    }

    /// Resolves a promise: follows thenables, fulfils with anything else. A `then` that must be asked for with guest code
    /// is asked for by the next microtask.
    pub(crate) fn resolve(&mut self, promise: Value, value: Value) -> Result<(), Exit> {
        match self.try_resolve(promise, value)? {
            Resolution::Done => {}
            Resolution::AskThen => {
                let then = self.helper(Helper::ResolveLate);
                self.jobs.push_front(Job::Thenable { promise, thenable: value, then });
            }
        }
        Ok(())
    }

    /// The same as far as it goes without guest code.
    pub(crate) fn try_resolve(&mut self, promise: Value, value: Value) -> Result<Resolution, Exit> {
        let Some(obj) = value.as_object() else {
            self.settle(promise, Settled::Fulfilled, value)?;
            return Ok(Resolution::Done);
        };
        if value == promise {
            match self.type_error("Chaining cycle detected for promise #<Promise>") {
                Exit::Throw(error) => self.settle(promise, Settled::Rejected, error)?,
                exit => return Err(exit),
            }
            return Ok(Resolution::Done);
        }
        match self.heap.get(obj, Key::atom(atoms::THEN)) {
            Found::Data(then) if self.heap.is_callable(then) => {
                self.jobs.push_back(Job::Thenable { promise, thenable: value, then });
            }
            Found::Data(_) | Found::Absent => self.settle(promise, Settled::Fulfilled, value)?,
            Found::Getter(_) | Found::Exotic(_) => return Ok(Resolution::AskThen),
        }
        Ok(Resolution::Done)
    }

    /// Fulfils or rejects a pending promise and queues its reactions.
    pub(crate) fn settle(&mut self, promise: Value, how: Settled, value: Value) -> Result<(), Exit> {
        let Some(record) = self.promise_record(promise) else { return Ok(()) };
        if self.heap.slots(record)[STATE] != Value::ZERO {
            return Ok(());
        }
        let fields = self.heap.slots(record).to_vec();
        self.burn(fields.len() as u64 / 2)?;
        self.heap.replace_slots(record, &[Value::int(how as i32), value])?;
        for reaction in fields[REACTIONS..].chunks_exact(3) {
            self.queue(how, reaction[0], reaction[1], reaction[2], value);
        }
        Ok(())
    }

    fn queue(&mut self, how: Settled, fulfilled: Value, rejected: Value, promise: Value, value: Value) {
        let (kind, handler) = match how {
            Settled::Fulfilled => (ReactionKind::Fulfil, fulfilled),
            Settled::Rejected => (ReactionKind::Reject, rejected),
        };
        self.jobs.push_back(Job::Reaction { kind, handler, promise, value });
    }

    /// PerformPromiseThen.
    pub(crate) fn then(
        &mut self,
        promise: Value,
        fulfilled: Value,
        rejected: Value,
        dependent: Value,
    ) -> Result<(), Exit> {
        let Some(record) = self.promise_record(promise) else { return Ok(()) };
        match self.outcome(promise) {
            None => {
                self.heap.push_slots(record, &[fulfilled, rejected, dependent])?;
            }
            Some(Ok(v)) => self.queue(Settled::Fulfilled, fulfilled, rejected, dependent, v),
            Some(Err(v)) => self.queue(Settled::Rejected, fulfilled, rejected, dependent, v),
        }
        Ok(())
    }

    /// Starts the next microtask: pushes its frame, or does it at once. The stack is empty.
    pub(crate) fn start_job(&mut self, w: &mut Window, job: Job) -> Result<(), Exit> {
        match job {
            Job::Reaction { kind, handler, promise, value } => {
                let awaiting = handler.as_object().is_some_and(|o| self.heap.class(o) == Class::Generator);
                if awaiting {
                    let how = if kind == ReactionKind::Fulfil { Resume::Next } else { Resume::Throw };
                    return self.resume_async(handler, how, value);
                }
                if promise.is_array() {
                    let run = self.helper(Helper::RunReaction);
                    let rejected = Value::bool(kind == ReactionKind::Reject);
                    return self.call_job(w, run, Value::UNDEFINED, &[handler, promise, value, rejected]);
                }
                if !self.heap.is_callable(handler) {
                    return match kind {
                        ReactionKind::Fulfil => self.resolve(promise, value),
                        ReactionKind::Reject => self.settle(promise, Settled::Rejected, value),
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
        w[0] = callee;
        w[1] = this;
        for (place, &arg) in w[2..].iter_mut().zip(args) {
            *place = arg;
        }
        let calling = Calling { dst: 0, flags: FrameFlags::JOB, new_target: Value::UNDEFINED };
        match self.call(w, 0, args.len() as u32, calling) {
            Ok(v) => self.job_done(Ok(v)),
            Err(Exit::Throw(e)) => self.job_done(Err(e)),
            Err(exit) => Err(exit),
        }
    }

    /// A microtask's function is over: what depends on it is settled. Always leaves the loop.
    pub(crate) fn job_done(&mut self, outcome: Result<Value, Value>) -> Result<(), Exit> {
        let promise = std::mem::replace(&mut self.job_promise, Value::UNDEFINED);
        if self.is_promise(promise) {
            match outcome {
                Ok(v) => self.resolve(promise, v)?,
                Err(e) => self.settle(promise, Settled::Rejected, e)?,
            }
        } else if let (Err(e), Some(reject)) = (outcome, promise.as_object())
            && let Some((promise, done)) = self.behind(reject)
            && self.heap.cell(done) != Value::TRUE
        {
            self.settle(promise, Settled::Rejected, e)?;
            self.heap.set_cell(done, Value::TRUE);
        }
        Err(Exit::Done(Value::UNDEFINED))
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
                self.settle(promise, how, v)?;
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
}

/// How far resolving got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolution {
    Done,
    /// The value's `then` can only be had by running guest code.
    AskThen,
}
