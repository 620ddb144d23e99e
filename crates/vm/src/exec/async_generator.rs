//! Async generators: requests wait in a queue until the body yields, returns or throws.
//!
//! The queue is a list of arrays `[mode, value, promise, next]`, first and last in two fields of the generator's record.
//! What happens when the body is over is in `suspend.js`.

use super::Window;
use super::call::Calling;
use super::code_table::Code;
use super::frame::{Frame, FrameFlags};
use super::helper::Helper;
use super::promise::Resolution;
use super::state::{Exit, Res, State};
use super::suspend::{LAST, MODE, PROMISE, QUEUE, Resume, SENT, STATE, Settled, phase, raw};
use crate::heap::{Class, SlotsId};
use crate::value::Value;

/// The parts of a request.
mod request {
    pub(super) const MODE: u32 = 0;
    pub(super) const VALUE: u32 = 1;
    pub(super) const PROMISE: u32 = 2;
    pub(super) const NEXT: u32 = 3;
}

impl State {
    /// `generator.next(v)`, `.throw(v)`, `.return(v)` of an async generator: a promise of a result.
    pub(crate) fn async_generator_resume(
        &mut self,
        w: &mut Window,
        base: u32,
        calling: Calling,
        generator: Value,
        how: Resume,
        v: Value,
    ) -> Res {
        let promise = self.new_promise()?;
        let is_generator = generator.as_object().is_some_and(|o| self.heap.class(o) == Class::AsyncGenerator);
        let Some(record) = self.record(generator).filter(|_| is_generator) else {
            return match self.type_error("next method called on incompatible receiver") {
                Exit::Throw(error) => {
                    self.settle(promise, Settled::Rejected, error);
                    Ok(promise)
                }
                exit => Err(exit),
            };
        };
        let phase = self.phase(record);
        match (phase, how) {
            (phase::DONE, Resume::Next) => {
                let result = self.iter_result(Value::UNDEFINED, true)?;
                return match self.try_resolve(promise, result)? {
                    Resolution::Done => Ok(promise),
                    Resolution::AskThen => {
                        let args = [promise, result, promise];
                        Err(self.enter_helper(w, Helper::ResolveSlow, &args, calling.dst, calling.flags))
                    }
                };
            }
            (phase::DONE | phase::START, Resume::Throw) => {
                self.set_field(record, STATE, Value::int(phase::DONE));
                self.settle(promise, Settled::Rejected, v);
                return Ok(promise);
            }
            _ => {}
        }
        let request = [Value::int(how as i32), v, promise, Value::UNDEFINED];
        let request = Value::array(self.heap.new_array(self.realm.array_shape, &request)?);
        match self.field(record, LAST).as_array() {
            Some(last) => {
                // A request has room for its successor, so this cannot fail.
                let _linked = self.heap.array_set(last, request::NEXT, request);
            }
            None => self.set_field(record, QUEUE, request),
        }
        self.set_field(record, LAST, request);
        match (phase, how) {
            (phase::DONE | phase::START, _) if how == Resume::Return => {
                self.set_field(record, STATE, Value::int(phase::RETURNING));
                let args = [generator, promise];
                Err(self.enter_helper(w, Helper::AwaitReturn, &args, calling.dst, calling.flags))
            }
            (phase::START | phase::YIELDED, _) => {
                self.set_field(record, SENT, v);
                self.set_field(record, MODE, raw(how as u32));
                self.set_field(record, PROMISE, promise);
                let flags = calling.flags.and(FrameFlags::GENERATOR).and(FrameFlags::ASYNC);
                self.push_record(generator, base, calling.dst, flags)?;
                Err(Exit::Enter)
            }
            _ => Ok(promise),
        }
    }

    /// The part of a request, if there is a request.
    fn request(&self, request: Value, part: u32) -> Value {
        request.as_array().and_then(|r| self.heap.array_get(r, part)).unwrap_or(Value::UNDEFINED)
    }

    /// Takes the first request off the queue; answers its promise and the request after it.
    fn shift_request(&mut self, record: SlotsId) -> (Value, Value) {
        let first = self.field(record, QUEUE);
        let (promise, next) = (self.request(first, request::PROMISE), self.request(first, request::NEXT));
        self.set_field(record, QUEUE, next);
        if next.is_undefined() {
            self.set_field(record, LAST, Value::UNDEFINED);
        }
        (promise, next)
    }

    /// `yield` in an async generator, after the await of its operand: answers the first request, and goes on at once if
    /// there is another.
    pub(super) fn async_yield(
        &mut self,
        regs: &mut [Value],
        code: &Code,
        frame: Frame,
        v: Value,
        (dst, mode): (u8, u8),
    ) -> Result<(), Exit> {
        let Some(record) = self.record(frame.new_target) else { return Ok(()) };
        let result = self.iter_result(v, false)?;
        self.save(regs, code, frame, dst, Some(mode))?;
        let (promise, next) = self.shift_request(record);
        // Nothing fails from here on: an iterator result is no promise.
        let resolved = self.try_resolve(promise, result)?;
        if next.is_undefined() {
            self.set_phase(frame.new_target, phase::YIELDED);
            match self.leave_async(regs, code, frame) {
                Ok(()) | Err(Exit::Done(_) | Exit::Enter) if resolved == Resolution::AskThen => {}
                left => return left,
            }
        } else {
            let parts =
                [(dst, self.request(next, request::VALUE)), (mode, self.request(next, request::MODE))];
            for (register, value) in parts {
                if let Some(place) = regs.get_mut(frame.base as usize + register as usize) {
                    *place = value;
                }
            }
            let pc = self.pc;
            if let Some(top) = self.frames.last_mut() {
                top.pc = pc;
            }
        }
        match resolved {
            Resolution::Done => Ok(()),
            Resolution::AskThen => {
                Err(self.enter_on_top(regs, code, Helper::ResolveSlow, &[promise, result]))
            }
        }
    }

    /// The body of an async generator is over: a helper answers the first request and deals with the others.
    pub(super) fn async_generator_over(
        &mut self,
        regs: &mut [Value],
        code: &Code,
        frame: Frame,
        how: Resume,
        value: Value,
    ) -> Result<(), Exit> {
        self.finish_record(frame.new_target);
        // Until the queue is empty, new requests only wait in it.
        self.set_phase(frame.new_target, phase::RETURNING);
        let args = [frame.new_target, Value::int(how as i32), value];
        match self.leave_async(regs, code, frame) {
            Ok(()) | Err(Exit::Done(_) | Exit::Enter) => {
                Err(self.enter_on_top(regs, code, Helper::GeneratorOver, &args))
            }
            left => left,
        }
    }
}
