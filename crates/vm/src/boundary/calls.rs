//! The calls that a machine waits for, and their answers.

use super::export::BoundaryError;
use super::plain::Plain;
use super::purse::Purse;
use crate::exec::state::{Arguments, Exit, Job, ReactionKind, State};
use crate::exec::{HostCall, Resolution, Settled, Vm};
use crate::value::Value;
use std::sync::Arc;

/// The machine does not wait for this call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("call {0} is not outstanding")]
pub struct UnknownCall(pub u64);

impl Vm {
    /// Every call that waits for its answer: the one that the last step named, then the others in the order in which
    /// they were made.
    pub fn outstanding(&self) -> impl Iterator<Item = &HostCall> {
        let first = self.state.pending.as_ref().filter(|_| self.state.answered.is_none());
        first.into_iter().chain(&self.state.waiting)
    }

    /// Answers a call, or lets it throw. Nothing runs: [`Vm::run`] or [`Vm::run_for`] goes on.
    pub fn answer(&mut self, id: u64, answer: Result<Value, Value>) -> Result<(), UnknownCall> {
        let st = &mut self.state;
        let call = match &st.pending {
            Some(first) if first.id == id => {
                let first = first.clone();
                if first.promise.is_none() {
                    if st.answered.is_some() {
                        return Err(UnknownCall(id));
                    }
                    st.answered = Some(answer.map(|v| st.seen_answer(&first, v)));
                    return Ok(());
                }
                st.pending = None;
                first
            }
            _ => st.place_of(id).and_then(|n| st.waiting.remove(n)).ok_or(UnknownCall(id))?,
        };
        st.queued_weight = st.queued_weight.saturating_sub(call.weight);
        let Some(promise) = call.promise else { return Ok(()) };
        match answer {
            Err(thrown) => st.settle(promise, Settled::Rejected, thrown),
            Ok(value) => {
                let value = st.seen_answer(&call, value);
                if !matches!(st.try_resolve(promise, value), Ok(Resolution::Done)) {
                    // A guest's `then` must be asked for, in a frame of its own: a microtask does that.
                    let kind = ReactionKind::Fulfil;
                    st.jobs.push_back(Job::Reaction { kind, handler: Value::UNDEFINED, promise, value });
                }
            }
        }
        Ok(())
    }

    /// The arguments of an outstanding call. They cost the run nothing: with [`Vm::convert_arguments`] they were paid for
    /// when the call was made.
    pub fn arguments(&self, id: u64) -> Result<Vec<Plain>, ArgumentsError> {
        let first = self.outstanding().next().filter(|call| call.id == id);
        let queued = || self.state.place_of(id).and_then(|n| self.state.waiting.get(n));
        let call = first.or_else(queued).ok_or(UnknownCall(id))?;
        let mut purse = Purse::paid(&self.state);
        let read = call.args.iter().map(|&v| self.state.read_plain(v, &mut purse));
        Ok(read.collect::<Result<_, _>>()?)
    }

    /// From now on host calls take only what can cross the boundary. Anything else is a TypeError where the guest makes
    /// the call, and a call that does not wait keeps its arguments as they are then. Part of snapshots.
    pub fn convert_arguments(&mut self) {
        self.state.arguments = Arguments::Plain;
    }

    /// Gives a call that blocks the script its answer, if there is one.
    pub(crate) fn deliver_answer(&mut self) -> Result<(), Exit> {
        let Some(answer) = self.state.answered.take() else { return Ok(()) };
        self.state.pending = None;
        let code = Arc::clone(&self.state.code);
        match answer {
            Ok(value) => match self.state.frames.last().copied() {
                Some(mut called) => {
                    called.dst = self.state.pending_calling.dst;
                    called.flags = self.state.pending_calling.flags;
                    self.state.deliver(&mut self.regs, &code, called, value)
                }
                None => Ok(()),
            },
            Err(thrown) => {
                self.state.pc = self.state.frames.last().map_or(0, |f| f.pc);
                self.state.unwind(&mut self.regs, &code, thrown)
            }
        }
    }
}

impl State {
    /// Where a call is in the queue, which is in the order of their numbers.
    fn place_of(&self, id: u64) -> Option<usize> {
        self.waiting.binary_search_by_key(&id, |call| call.id).ok()
    }
}

/// Why there are no arguments to see.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ArgumentsError {
    /// There is no such call.
    #[error(transparent)]
    Unknown(#[from] UnknownCall),
    /// One of them cannot cross.
    #[error(transparent)]
    Boundary(#[from] BoundaryError),
}
