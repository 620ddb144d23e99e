//! The image: a machine in which the standard library has been run, made once per process. Every machine is a fork of it.
//!
//! Compiling and running the standard library takes milliseconds; copying the tables it left takes microseconds. What a
//! machine starts with is never collected and is not charged to it, so that ids below those of the image mean the
//! same in every machine: a snapshot only says in what it differs.

use super::cache::Finds;
use super::call::Calling;
use super::code_table::Code;
use super::frame::FrameFlags;
use super::realm::Realm;
use super::state::{Arguments, Limits, State};
use super::{BOOT, LoadError, OURS, Step, Vm};
use crate::builtins;
use crate::compile::Source;
use crate::heap::{self, AllocError, Heap, Pace};
use crate::value::Value;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

/// A machine that is only copied, never run.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) state: State,
}

/// Registers that a machine starts with; more are made when a frame needs them.
pub(crate) const REGISTERS: usize = 1024;

/// How nobody called.
const NOBODY: Calling = Calling { dst: 0, flags: FrameFlags::NONE, new_target: Value::UNDEFINED };

/// The image of this process. Fails only if the standard library is wrong.
pub(crate) fn image() -> Result<&'static Image, LoadError> {
    static IMAGE: OnceLock<Result<Image, (&'static str, String)>> = OnceLock::new();
    match IMAGE.get_or_init(boot) {
        Ok(image) => Ok(image),
        Err((file, reason)) => Err(LoadError::Prelude { file, reason: reason.clone() }),
    }
}

impl Image {
    /// A new machine.
    pub(crate) fn fork(&self, limits: Limits, pace: Pace) -> Vm {
        let heap = self.state.heap.fork_image(limits.heap, pace);
        self.with_heap(heap, limits)
    }

    /// A new machine around a heap that is a fork of the image's.
    pub(crate) fn with_heap(&self, heap: Heap, limits: Limits) -> Vm {
        let st = &self.state;
        let state = State {
            heap,
            frames: Vec::new(),
            pc: 0,
            page: 0,
            fuel: limits.instructions,
            reserve: 0,
            thrown: None,
            limits,
            code: Arc::clone(&st.code),
            taken: st.code.base(),
            constants: st.constants.clone(),
            sites: st.sites.clone(),
            gets: Finds::new(),
            sets: Finds::new(),
            templates: st.templates.clone(),
            realm: st.realm,
            helpers: st.helpers.clone(),
            jobs: VecDeque::new(),
            waiting: VecDeque::new(),
            pending: None,
            calls: 0,
            arguments: Arguments::Any,
            held: Vec::new(),
            answered: None,
            stale: false,
            pending_calling: NOBODY,
            above: 0,
            root: None,
            job_promise: Value::UNDEFINED,
            random: st.random,
            now: st.now,
            regexps: builtins::RegExps::default(),
            printed: Vec::new(),
        };
        Vm { state, regs: vec![Value::UNDEFINED; REGISTERS], refused: None }
    }
}

/// Makes the image, or says which file of the standard library failed and why.
fn boot() -> Result<Image, (&'static str, String)> {
    let mut vm = empty().map_err(|error| ("realm", error.to_string()))?;
    for &(file, source) in builtins::SOURCES {
        vm.load_from(source, &OURS, Source::Prelude).map_err(|error| (file, error.to_string()))?;
        match vm.run() {
            Step::Completed(_) => {}
            Step::Threw(error) => return Err((file, vm.text(error))),
            step => return Err((file, format!("{step:?}"))),
        }
    }
    let mut state = vm.state;
    state.root = None;
    for site in &mut state.sites {
        *site = super::state::Site::new(site.key);
    }
    state.collect(&[], BOOT).map_err(|error| ("heap", error.to_string()))?;
    state.heap = state.heap.freeze().map_err(|error| ("heap", error.to_string()))?;
    Ok(Image { state })
}

/// A machine with prototypes and natives, before the standard library.
fn empty() -> Result<Vm, LoadError> {
    let limits = Limits {
        instructions: u64::MAX,
        call_depth: 64,
        host_calls: 0,
        heap: heap::Limits { bytes: usize::MAX, records: heap::Limits::MOST_RECORDS },
    };
    let mut heap = Heap::new(limits.heap, Pace::Adaptive, 0x5EED);
    let realm = loop {
        match Realm::new(&mut heap) {
            Ok(realm) => break realm,
            Err(AllocError::Collect) => heap.collect(BOOT, |_| {}).map(|_| ())?,
            Err(AllocError::TooLong) => return Err(LoadError::TooLong),
        }
    };
    let state = State {
        heap,
        frames: Vec::new(),
        pc: 0,
        page: 0,
        fuel: u64::MAX,
        reserve: 0,
        thrown: None,
        limits,
        code: Arc::new(Code::new()),
        taken: crate::code::Base::ZERO,
        constants: Vec::new(),
        sites: Vec::new(),
        gets: Finds::new(),
        sets: Finds::new(),
        templates: Vec::new(),
        realm,
        helpers: vec![Value::UNDEFINED; builtins::HELPERS],
        jobs: VecDeque::new(),
        waiting: VecDeque::new(),
        pending: None,
        calls: 0,
        arguments: Arguments::Any,
        held: Vec::new(),
        answered: None,
        stale: false,
        pending_calling: NOBODY,
        above: 0,
        root: None,
        job_promise: Value::UNDEFINED,
        random: 0x9E37_79B9_7F4A_7C15,
        now: 0.0,
        regexps: builtins::RegExps::default(),
        printed: Vec::new(),
    };
    let mut vm = Vm { state, regs: vec![Value::UNDEFINED; REGISTERS], refused: None };
    vm.repeat(|vm| vm.state.populate())?;
    Ok(vm)
}
