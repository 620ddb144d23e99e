//! Runs of machines: from a program or a snapshot to a value, a host call or an error.

use std::rc::Rc;
use std::time::Duration;

use outrigger_vm::exec::{Limits, Step, Vm};
use outrigger_vm::heap::Limits as HeapLimits;
use outrigger_vm::value::Value;

use super::keep::Terms;
use super::problem::{self, Problem};
use super::session::{Done, Session};
use super::world::World;
use crate::protocol::feature::Feature;
use crate::protocol::ids::SnapshotId;
use crate::protocol::request::{Answer, Claim, Payload, Resume, Start};
use crate::protocol::response::{Call, Code, Inspection, Kind, Profile, Reply, Suspended};

/// Instructions between two looks at the clock: about a millisecond.
const SLICE: u64 = 200_000;

/// What a step may take, and what it is to know.
struct Terrain {
    deadline_ms: Option<u64>,
    /// What the clock says all the time; otherwise it goes on.
    now_ms: Option<f64>,
    profile: bool,
    began: Duration,
}

impl<W: World> Session<W> {
    pub(super) fn start(&mut self, start: Start<'_>, blob: &[u8]) -> Result<Done, Problem> {
        let program = self.program(&start, blob)?;
        let terms = self.kept.agree(&start.capabilities, start.limits);
        let Start { deadline_ms, now_ms, profile, seed, inputs, .. } = start;
        let terrain = Terrain { deadline_ms, now_ms, profile, began: self.world.elapsed() };
        let names: Vec<&str> = terms.capabilities.iter().map(String::as_str).collect();
        let load = |error| Problem::load(&error, "");
        let mut vm = Box::new(Vm::new(terms.limits.resolve(), &names).map_err(load)?);
        let seed = seed.unwrap_or_else(|| self.world.entropy());
        let now = now_ms.map_or_else(|| self.world.now_ms(), f64::floor);
        vm.set_world(seed, now);
        vm.convert_arguments();
        for (name, value) in &inputs {
            let value = vm.import(value).map_err(|error| Problem::import(&error))?;
            vm.set_global(name, value).map_err(|error| Problem::import(&error))?;
        }
        vm.load_program(&program).map_err(load)?;
        self.step(vm, terms, &terrain)
    }

    pub(super) fn resume(&mut self, resume: Resume<'_>, blob: &[u8]) -> Result<Done, Problem> {
        let admitted = self.admit(&resume.claim, blob, "resume")?;
        let Resume { deadline_ms, now_ms, profile, payload, .. } = resume;
        let terrain = Terrain { deadline_ms, now_ms, profile, began: self.world.elapsed() };
        let machine = self.kept.take_machine(&admitted.id);
        let mut vm = self.load(machine, admitted.id, &admitted.terms, blob)?;
        let answers = match self.answers(&vm, payload) {
            Ok(answers) => answers,
            Err(problem) => {
                // Nothing happened: the next resume finds the machine as this one did.
                self.kept.return_machine(admitted.id, vm);
                return Err(problem);
            }
        };
        let Some(answers) = answers else {
            return Err(Problem::new(Kind::LIMIT, Code::CANCELLED, "execution cancelled by the host"));
        };
        vm.set_now(now_ms.map_or_else(|| self.world.now_ms(), f64::floor));
        for (id, answer) in answers {
            let answer = import(&mut vm, &answer)?;
            // Every id was found among the outstanding ones, and none comes twice.
            vm.answer(id, answer).map_err(|error| unknown_call(error.0))?;
        }
        self.step(vm, admitted.terms, &terrain)
    }

    pub(super) fn inspect(&mut self, claim: &Claim<'_>, blob: &[u8]) -> Result<Done, Problem> {
        let admitted = self.admit(claim, blob, "inspect")?;
        let bytes = match self.kept.snapshot(&admitted.id) {
            Some(kept) if blob.is_empty() => kept.bytes.len(),
            _ => blob.len(),
        };
        let mut vm = self.load(None, admitted.id, &admitted.terms, blob)?;
        Ok(Done::plain(Reply::Inspection(Inspection {
            snapshot_id: admitted.id,
            bytes: bytes as u64,
            calls: calls(&mut vm, Listing::All)?,
            capabilities: vm.capabilities(),
            instructions_used: vm.instructions_used(),
            heap_bytes: vm.heap().bytes() as u64,
            heap_records: vm.heap().records() as u64,
            frames: vm.places().iter().map(problem::place).collect(),
        })))
    }

    /// A machine for an admitted snapshot, under the terms of whoever wants it: the one that stands there, or one made of
    /// the bytes.
    fn load(
        &mut self,
        machine: Option<Box<Vm>>,
        id: SnapshotId,
        terms: &Terms,
        blob: &[u8],
    ) -> Result<Box<Vm>, Problem> {
        let refused = |error| Problem::snapshot(&error);
        let limits = terms.limits.resolve();
        let kept = self.kept.snapshot(&id);
        // A machine never holds more than what it ran under, so that the question needs no look at its heap.
        let trusted = kept.as_ref().is_some_and(|kept| covers(terms, &kept.ran_under.capabilities));
        // What a machine holds is asked before how much it uses: it is read with room to be looked at.
        let room = if trusted { limits } else { with_room(limits) };
        let mut vm = match (machine, kept) {
            (Some(vm), _) => vm,
            (None, Some(kept)) if blob.is_empty() => {
                let bytes = Rc::clone(&kept.bytes);
                Box::new(Vm::restore_knowing(&bytes, room, &mut self.known).map_err(refused)?)
            }
            (None, _) => Box::new(Vm::restore_knowing(blob, room, &mut self.known).map_err(refused)?),
        };
        if !trusted {
            let held = vm.capabilities();
            if let Some(name) = held.iter().find(|name| !terms.capabilities.contains(name)) {
                let message = format!("snapshot policy rejected unauthorized capability `{name}`");
                return Err(Problem::new(Kind::SERIALIZATION, Code::UNAUTHORIZED_CAPABILITY, message));
            }
        }
        vm.set_limits(limits).map_err(refused)?;
        Ok(vm)
    }

    /// Which calls are answered with what. `None`: the run is cancelled.
    fn answers(&self, vm: &Vm, payload: Payload) -> Result<Option<Vec<(u64, Answer)>>, Problem> {
        match payload {
            Payload::Cancelled => Ok(None),
            Payload::Answer(answer) => {
                let first = vm.outstanding().next().map(|call| (call.id, answer));
                Ok(Some(first.into_iter().collect()))
            }
            Payload::Answers(answers) => {
                let mut open: Vec<u64> = vm.outstanding().map(|call| call.id).collect();
                open.sort_unstable();
                let mut named: Vec<u64> = answers.iter().map(|(id, _)| *id).collect();
                named.sort_unstable();
                if let Some(id) = named.iter().find(|id| open.binary_search(id).is_err()) {
                    return Err(unknown_call(*id));
                }
                if let Some(pair) = named.windows(2).find(|pair| pair[0] == pair[1]) {
                    let message = format!("call {} is answered twice", pair[0]);
                    return Err(Problem::protocol(Code::UNKNOWN_CALL, message));
                }
                Ok(Some(answers))
            }
        }
    }

    /// Runs until something is needed from outside, and says what.
    fn step(&mut self, mut vm: Box<Vm>, terms: Rc<Terms>, terrain: &Terrain) -> Result<Done, Problem> {
        let step = self.run(&mut vm, terrain)?;
        let ran = self.world.elapsed();
        let mut done = match step {
            Step::Completed(value) => {
                let value = vm.export(value).map_err(|error| Problem::boundary(&error))?;
                Done::plain(Reply::Completed(value))
            }
            Step::Suspended(_) => self.suspend(vm, terms)?,
            Step::Threw(thrown) => return Err(Problem::thrown(vm.report(thrown))),
            Step::Limit(limit) => return Err(Problem::limit(limit, vm.places())),
            Step::Stuck | Step::Paused => {
                let message = "async root promise could not make progress";
                return Err(Problem::new(Kind::RUNTIME, Code::STUCK, message));
            }
        };
        if terrain.profile {
            let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            done.profile = Some(Profile {
                execution_ns: ns(ran.saturating_sub(terrain.began)),
                response_prepare_ns: ns(self.world.elapsed().saturating_sub(ran)),
            });
        }
        Ok(done)
    }

    /// Runs in slices, so that the clock goes on and a deadline is kept.
    fn run(&mut self, vm: &mut Vm, terrain: &Terrain) -> Result<Step, Problem> {
        loop {
            match vm.run_for(SLICE) {
                Step::Paused => {}
                step => return Ok(step),
            }
            if let Some(ms) = terrain.deadline_ms
                && self.world.elapsed().saturating_sub(terrain.began) >= Duration::from_millis(ms)
            {
                return Err(Problem::deadline(ms, vm.places()));
            }
            if terrain.now_ms.is_none() {
                vm.set_now(self.world.now_ms());
            }
        }
    }

    fn suspend(&mut self, mut vm: Box<Vm>, terms: Rc<Terms>) -> Result<Done, Problem> {
        let listing = if self.features.has(Feature::Batch) { Listing::All } else { Listing::First };
        let calls = calls(&mut vm, listing)?;
        let bytes = Rc::new(vm.snapshot().map_err(|_| Problem::internal())?);
        let snapshot_id = SnapshotId::of(&bytes);
        let policy_id = terms.id;
        self.kept.keep_snapshot(snapshot_id, Rc::clone(&bytes), terms, vm);
        let reply = Reply::Suspended(Suspended { snapshot_id, policy_id, calls });
        Ok(Done { reply, blob: bytes, profile: None })
    }
}

/// How many outstanding calls are told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listing {
    /// The one that is surfaced, without a number.
    First,
    /// All of them.
    All,
}

/// The outstanding calls, as the host sees them.
fn calls(vm: &mut Vm, listing: Listing) -> Result<Vec<Call>, Problem> {
    let most = if listing == Listing::All { usize::MAX } else { 1 };
    let open: Vec<(u64, Value)> = vm.outstanding().take(most).map(|call| (call.id, call.name)).collect();
    let describe = |(id, name): (u64, Value)| {
        let args = vm.arguments(id).map_err(|error| match error {
            outrigger_vm::boundary::ArgumentsError::Boundary(error) => Problem::boundary(&error),
            outrigger_vm::boundary::ArgumentsError::Unknown(error) => unknown_call(error.0),
        })?;
        Ok(Call { call_id: (listing == Listing::All).then_some(id), capability: vm.text(name), args })
    };
    open.into_iter().map(describe).collect()
}

fn import(vm: &mut Vm, answer: &Answer) -> Result<Result<Value, Value>, Problem> {
    let made = match answer {
        Answer::Value(value) => vm.import(value).map(Ok),
        Answer::Error(error) => {
            vm.host_error(&error.name, &error.message, error.code.as_deref(), error.details.as_ref()).map(Err)
        }
    };
    made.map_err(|error| Problem::import(&error))
}

/// Limits under which a machine can be looked at but not run. Its memory stays bounded: by what it is to run under, or by
/// what a run has that asks for nothing else.
fn with_room(limits: Limits) -> Limits {
    let usual = crate::protocol::limits::Limits::DEFAULTS.resolve().heap;
    Limits {
        instructions: u64::MAX,
        call_depth: u32::MAX,
        host_calls: u32::MAX,
        heap: HeapLimits {
            bytes: limits.heap.bytes.max(usual.bytes),
            records: limits.heap.records.max(usual.records),
        },
    }
}

/// Whether the terms name all of these.
fn covers(terms: &Terms, capabilities: &[String]) -> bool {
    terms.capabilities == capabilities || capabilities.iter().all(|name| terms.capabilities.contains(name))
}

fn unknown_call(id: u64) -> Problem {
    Problem::protocol(Code::UNKNOWN_CALL, format!("call {id} is not outstanding"))
}
