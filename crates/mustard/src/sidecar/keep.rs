//! What a session keeps between requests: programs, snapshots, machines that still stand where their snapshot was taken, and
//! policies. All of it can be lost at any time; a host that sends the bytes never notices.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use outrigger_vm::code::Program;
use outrigger_vm::exec::Vm;

use super::lru::Lru;
use crate::protocol::ids::{Digest, PolicyId, ProgramId, SnapshotId};
use crate::protocol::limits::{Limits, policy_id};
use crate::protocol::request::Release;
use crate::protocol::response::Released;

/// How much a session keeps. There is no default: who serves decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// Bytes of programs.
    pub program_bytes: usize,
    /// Bytes of snapshots.
    pub snapshot_bytes: usize,
    /// Policies.
    pub policies: usize,
    /// Machines that stand still, so that a first resume needs not restore them.
    pub machines: usize,
    /// Bytes of their heaps.
    pub machine_bytes: usize,
}

impl Budgets {
    /// What `mustard-sidecar` keeps. Machines are few: each holds a quarter of a megabyte, and a restore costs less than what
    /// it does to the processor's caches to go through the memory of many.
    pub const USUAL: Budgets = Budgets {
        program_bytes: 32 << 20,
        snapshot_bytes: 64 << 20,
        policies: 4096,
        machines: 8,
        machine_bytes: 32 << 20,
    };
}

/// What an entry takes beside its bytes: its place in two maps, the counters, and what an allocator puts around all of it.
const OVERHEAD: usize = 384;

/// Capabilities and limits that a host named.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) id: PolicyId,
    pub(super) capabilities: Vec<String>,
    pub(super) limits: Limits,
}

/// A compiled program and its bytes.
#[derive(Clone)]
pub(super) struct Compiled {
    pub(super) id: ProgramId,
    pub(super) program: Arc<Program>,
    pub(super) bytes: Rc<Vec<u8>>,
}

/// A snapshot.
pub(super) struct Kept {
    pub(super) bytes: Rc<Vec<u8>>,
    /// Terms under which it ran: it holds no host function beyond their capabilities.
    pub(super) ran_under: Rc<Terms>,
    /// The machine itself, until somebody resumes it.
    machine: Option<Box<Vm>>,
}

/// Everything that is kept.
pub(super) struct Keep {
    pub(super) budgets: Budgets,
    programs: Lru<ProgramId, Compiled>,
    /// The program of a source, by the digest of both source and rules.
    sources: Lru<Digest, ProgramId>,
    snapshots: Lru<SnapshotId, Kept>,
    policies: Lru<PolicyId, Rc<Terms>>,
    /// Snapshots whose machine may be kept, oldest first, and the size of its heap.
    machines: VecDeque<(SnapshotId, usize)>,
    machine_bytes: usize,
}

impl Keep {
    pub(super) fn new(budgets: Budgets) -> Keep {
        Keep {
            budgets,
            programs: Lru::new(budgets.program_bytes),
            sources: Lru::new(1024),
            snapshots: Lru::new(budgets.snapshot_bytes),
            policies: Lru::new(budgets.policies),
            machines: VecDeque::new(),
            machine_bytes: 0,
        }
    }

    pub(super) fn program(&mut self, id: &ProgramId) -> Option<Compiled> {
        self.programs.get(id).cloned()
    }

    pub(super) fn program_of(&mut self, source: &Digest) -> Option<Compiled> {
        let id = *self.sources.get(source)?;
        self.program(&id)
    }

    pub(super) fn keep_program(&mut self, compiled: &Compiled) {
        let size = compiled.bytes.capacity() + compiled.program.memory();
        self.programs.put(compiled.id, compiled.clone(), size + OVERHEAD);
    }

    pub(super) fn keep_source(&mut self, source: Digest, program: ProgramId) {
        self.sources.put(source, program, 1);
    }

    pub(super) fn snapshot(&mut self, id: &SnapshotId) -> Option<&mut Kept> {
        self.snapshots.get(id)
    }

    /// Keeps a snapshot and the machine it was taken of.
    pub(super) fn keep_snapshot(
        &mut self,
        id: SnapshotId,
        bytes: Rc<Vec<u8>>,
        terms: Rc<Terms>,
        vm: Box<Vm>,
    ) {
        self.forget_machine(&id);
        let size = bytes.capacity() + OVERHEAD;
        if size > self.snapshots.budget() {
            return;
        }
        let heap = vm.heap().bytes() + OVERHEAD;
        let machine = (heap <= self.budgets.machine_bytes).then_some(vm);
        if machine.is_some() {
            self.machines.push_back((id, heap));
            self.machine_bytes += heap;
        }
        self.snapshots.put(id, Kept { bytes, ran_under: terms, machine }, size);
        while self.machines.len() > self.budgets.machines || self.machine_bytes > self.budgets.machine_bytes {
            let Some((oldest, heap)) = self.machines.pop_front() else { break };
            self.machine_bytes -= heap;
            if let Some(kept) = self.snapshots.peek(&oldest) {
                kept.machine = None;
            }
        }
    }

    /// The machine that stands where the snapshot was taken: for one resume.
    pub(super) fn take_machine(&mut self, id: &SnapshotId) -> Option<Box<Vm>> {
        let machine = self.snapshots.get(id)?.machine.take()?;
        self.forget_machine(id);
        Some(machine)
    }

    /// Puts a machine back that was taken and not used.
    pub(super) fn return_machine(&mut self, id: SnapshotId, vm: Box<Vm>) {
        if let Some(kept) = self.snapshots.get(&id) {
            let (bytes, terms) = (Rc::clone(&kept.bytes), Rc::clone(&kept.ran_under));
            self.keep_snapshot(id, bytes, terms, vm);
        }
    }

    fn forget_machine(&mut self, id: &SnapshotId) {
        if let Some(at) = self.machines.iter().position(|(kept, _)| kept == id)
            && let Some((_, heap)) = self.machines.remove(at)
        {
            self.machine_bytes -= heap;
        }
    }

    /// The terms under this id.
    pub(super) fn terms(&mut self, id: &PolicyId) -> Option<Rc<Terms>> {
        self.policies.get(id).cloned()
    }

    /// The terms of these capabilities and limits, known from now on.
    pub(super) fn agree(&mut self, capabilities: &[String], limits: Limits) -> Rc<Terms> {
        let id = policy_id(capabilities, &limits);
        if let Some(known) = self.terms(&id) {
            return known;
        }
        let terms = Rc::new(Terms { id, capabilities: capabilities.to_vec(), limits });
        self.policies.put(id, Rc::clone(&terms), 1);
        terms
    }

    /// Forgets these; answers how many of them there were.
    pub(super) fn release(&mut self, release: &Release) -> Released {
        let count = |found: usize| found as u64;
        let programs = release.programs.iter().filter_map(|id| ProgramId::parse(id));
        let programs = count(programs.filter(|id| self.programs.take(id).is_some()).count());
        let mut snapshots = 0;
        for id in release.snapshots.iter().filter_map(|id| SnapshotId::parse(id)) {
            self.forget_machine(&id);
            snapshots += u64::from(self.snapshots.take(&id).is_some());
        }
        let policies = release.policies.iter().filter_map(|id| PolicyId::parse(id));
        let policies = count(policies.filter(|id| self.policies.take(id).is_some()).count());
        Released { programs, snapshots, policies }
    }
}
