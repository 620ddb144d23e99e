//! Promises and the microtask queue.
//!
//! A promise is an object with internal fields: its state, its result, whether anybody looked, and then three fields
//! per reaction: what runs when it is fulfilled, what runs when it is rejected, and the promise that depends on it.
//! A reaction's handler is a function, the record of an awaiting frame, or undefined.
//!
//! Missing: a `then` that is a getter is read as absent when resolving; species.

use super::Window;
use super::call::Calling;
use super::frame::FrameFlags;
use super::native::Native;
use super::state::{Exit, Job, ReactionKind, Res, State};
use super::suspend::{Resume, Settled};
use crate::heap::{Class, Flags, Found, Key, SlotsId, atoms};
use crate::value::Value;

const STATE: usize = 0;
const RESULT: usize = 1;
const REACTIONS: usize = 2;

impl State {
    pub(crate) fn new_promise(&mut self) -> Res {
        let shape = self.heap.root_shape(Some(self.realm.promise_prototype))?;
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

    /// PromiseResolve: the value itself if it is a promise, else a promise resolved with it.
    pub(crate) fn promise_resolve(&mut self, v: Value) -> Res {
        if self.is_promise(v) {
            return Ok(v);
        }
        let promise = self.new_promise()?;
        self.resolve(promise, v)?;
        Ok(promise)
    }

    /// Resolves a promise: follows thenables, fulfils with anything else.
    pub(crate) fn resolve(&mut self, promise: Value, value: Value) -> Result<(), Exit> {
        let Some(obj) = value.as_object() else { return self.settle(promise, Settled::Fulfilled, value) };
        if value == promise {
            let Exit::Throw(error) = self.type_error("Chaining cycle detected for promise") else {
                return Ok(());
            };
            return self.settle(promise, Settled::Rejected, error);
        }
        match self.heap.get(obj, Key::atom(atoms::THEN)) {
            Found::Data(then) if self.heap.is_callable(then) => {
                self.jobs.push_back(Job::Thenable { promise, thenable: value, then });
                Ok(())
            }
            _ => self.settle(promise, Settled::Fulfilled, value),
        }
    }

    /// Fulfils or rejects a pending promise and queues its reactions.
    pub(crate) fn settle(&mut self, promise: Value, how: Settled, value: Value) -> Result<(), Exit> {
        let Some(record) = self.promise_record(promise) else { return Ok(()) };
        if self.heap.slots(record)[STATE] != Value::ZERO {
            return Ok(());
        }
        let fields = self.heap.slots(record).to_vec();
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
                let mut fields = self.heap.slots(record).to_vec();
                fields.extend([fulfilled, rejected, dependent]);
                self.heap.replace_slots(record, &fields)?;
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
        } else if let (Err(e), Some(reject)) = (outcome, promise.as_object()) {
            self.call_resolving(reject, Settled::Rejected, e)?;
        }
        Err(Exit::Done(Value::UNDEFINED))
    }

    /// The pair of functions that settle a promise once. They share a cell that remembers.
    pub(crate) fn resolving_functions(&mut self, promise: Value) -> Result<(Value, Value), Exit> {
        let done = Value::internal(crate::value::Internal::Cell(self.heap.new_cell(Value::FALSE)?));
        let resolve = self.new_native(Native::ResolvePromise, &[promise, done])?;
        let reject = self.new_native(Native::RejectPromise, &[promise, done])?;
        Ok((resolve, reject))
    }

    /// What the resolving functions do.
    pub(crate) fn call_resolving(
        &mut self,
        function: crate::heap::ObjId,
        how: Settled,
        v: Value,
    ) -> Result<(), Exit> {
        let Some(slots) = self.heap.slots_of(function) else { return Ok(()) };
        let fields = self.heap.slots(slots);
        let (Some(&promise), Some(cell)) = (fields.get(1), fields.get(2).and_then(|c| c.as_cell())) else {
            return Ok(());
        };
        if self.heap.cell(cell) == Value::TRUE {
            return Ok(());
        }
        match how {
            Settled::Fulfilled => self.resolve(promise, v)?,
            Settled::Rejected => self.settle(promise, Settled::Rejected, v)?,
        }
        self.heap.set_cell(cell, Value::TRUE);
        Ok(())
    }
}
