//! What a machine may do and how much it may use, asserted anew on one that comes back.

use crate::exec::state::{Limits, State};
use crate::exec::{Place, Vm};
use crate::heap::{OverLimit, Point};
use crate::snapshot::SnapshotError;
use crate::value::Value;

/// Where execution stands while a machine's holdings are looked at.
const LOOKING: Point = Point(u64::MAX - 2);

impl Vm {
    /// The names of all functions of the host that the machine still holds, anywhere, and of the calls it waits for:
    /// sorted, each once.
    pub fn capabilities(&mut self) -> Vec<String> {
        if self.state.stale {
            // Only a footprint beyond all limits makes this fail: then what is garbage counts, too.
            let _over = self.collect_between_runs(LOOKING);
        }
        let held = self.state.heap.host_functions();
        let called = self.outstanding().map(|call| call.name);
        let mut names: Vec<String> = held.chain(called).map(|name| self.state.name_text(name)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Puts the machine under other limits, on the same terms as [`Vm::restore`]: what it holds and has used must fit. If it
    /// does not, nothing has changed.
    pub fn set_limits(&mut self, limits: Limits) -> Result<(), SnapshotError> {
        if !self.state.heap_fits(limits) {
            let _over = self.collect_between_runs(LOOKING);
        }
        let used = self.instructions_used();
        self.state.fits(limits, used)?;
        self.state.heap.set_limits(limits.heap);
        self.state.fuel = limits.instructions - used;
        self.state.limits = limits;
        Ok(())
    }

    /// What `Date.now()` answers from now on, in milliseconds.
    pub fn set_now(&mut self, now_ms: f64) {
        self.state.now = now_ms;
    }

    /// Instructions used since the run began, also before snapshots.
    pub fn instructions_used(&self) -> u64 {
        self.state.limits.instructions - self.state.fuel
    }

    /// Where the active functions stand, innermost first.
    pub fn places(&self) -> Vec<Place> {
        self.state.places()
    }

    /// Collects garbage while nothing runs.
    pub(crate) fn collect_between_runs(&mut self, point: Point) -> Result<(), OverLimit> {
        let used = self.state.registers_in_use().min(self.regs.len());
        // What is above is dead, and must not be mistaken for references.
        if let Some(dead) = self.regs.get_mut(used..) {
            dead.fill(Value::UNDEFINED);
        }
        self.state.collect(self.regs.get(..used).unwrap_or_default(), point)
    }
}

impl State {
    /// Whether a machine that has used so many instructions may go on under these limits.
    pub(crate) fn fits(&self, limits: Limits, used: u64) -> Result<(), SnapshotError> {
        if self.frames.len() > limits.call_depth as usize {
            return Err(SnapshotError::CallDepth);
        }
        if !self.heap_fits(limits) {
            return Err(SnapshotError::HeapLimit);
        }
        if self.queued_calls() > limits.host_calls as usize {
            return Err(SnapshotError::HostCalls);
        }
        if used > limits.instructions {
            return Err(SnapshotError::Instructions);
        }
        Ok(())
    }

    fn heap_fits(&self, limits: Limits) -> bool {
        self.heap.bytes() <= limits.heap.bytes && self.heap.records() <= limits.heap.records
    }

    /// Host calls that were made in async code and are not answered.
    pub(crate) fn queued_calls(&self) -> usize {
        let surfaced = self.pending.as_ref().is_some_and(|call| call.promise.is_some());
        self.waiting.len() + usize::from(surfaced)
    }

    /// How many registers mean something: up to the end of the top frame, or of the arguments of one that is about to start.
    pub(crate) fn registers_in_use(&self) -> usize {
        let Some(top) = self.frames.last() else { return 0 };
        let own = top.base + u32::from(self.code.function(top.func).registers);
        let given = if top.pc == 0 { top.base + 1 + top.argc } else { 0 };
        own.max(given) as usize
    }

    fn name_text(&self, name: Value) -> String {
        let mut text = String::new();
        if let Some(s) = name.as_string() {
            self.heap.each_part(s, |part| text.push_str(&part.to_string_lossy()));
        }
        text
    }
}
