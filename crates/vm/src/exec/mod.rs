//! The interpreter: registers, frames and everything that happens between them, as plain data.
//!
//! # How it runs
//!
//! [`Vm`] owns one register file, one stack of frames and one heap. `run` is the dispatch loop; it never recurses: a
//! guest call pushes a frame, and so does whatever an instruction cannot do by itself (a getter, `valueOf`, an
//! iterator), by way of the helpers in `builtins/core.js`. So the machine can stop at any instruction, and a host call from
//! inside a getter inside a comparator is nothing special.
//!
//! * `run` the loop · `call` calls, returns, unwinding · `frame` · `state` what the machine owns
//! * `arith`, `property`, `assign`, `object`, `exotic`, `iterate` the slow sides of instructions
//! * `suspend` generators and async functions · `async_generator` · `promise` promises and microtasks
//! * `helper` + `builtins/core.js` what instructions fall back to · `native`, `realm` the engine's own functions and objects
//! * `image` what every machine starts from, `library` its code · `code_table` loaded programs, `stage` where they are run
//! * `trace` tracebacks · `blame` messages that name what the script says
//!
//! # Sizes
//!
//! A function keeps its variables in registers; if it has more than fit, in a record on the heap, which is slower. Code is
//! laid out in pages of 65,536 instructions, joined by far jumps. Arguments are registers of the caller; more than about
//! 230 of them are passed as an array. What is refused when compiled: more than about 230 parameters, expressions that need
//! more than 240 temporary values at once, more than four million instructions in one function.
//!
//! # What is missing
//!
//! Code from text: `eval` and the `Function` constructor exist by name and refuse. Frozen arrays are sparse, so reading them
//! costs a hash lookup; a getter is looked up at every read, without a cache.
//!
//! ```
//! use outrigger_vm::exec::{Limits, Step, Vm};
//!
//! let heap = outrigger_vm::heap::Limits { bytes: 64 << 20, records: 1 << 20 };
//! let limits = Limits { instructions: 1_000_000, call_depth: 1_000, host_calls: 16, heap };
//! let mut vm = Vm::new(limits, &["ask"])?;
//! vm.load("const f = n => n < 2 ? n : f(n - 1) + f(n - 2); f(10) + ask('how many?')")?;
//! let Step::Suspended(call) = vm.run() else { panic!("the script asks first") };
//! assert_eq!(vm.text(call.args[0]), "how many?");
//! let answer = outrigger_vm::value::Value::int(5);
//! assert_eq!(vm.resume(Ok(answer)), Step::Completed(outrigger_vm::value::Value::int(60)));
//! # Ok::<(), outrigger_vm::exec::LoadError>(())
//! ```

mod arith;
pub(crate) mod assign;
mod async_generator;
mod blame;
mod cache;
mod call;
mod code_table;
mod exotic;
mod frame;
mod global;
mod helper;
mod image;
mod iterate;
mod library;
mod native;
pub(crate) mod object;
mod promise;
pub(crate) mod property;
mod realm;
mod run;
mod stage;
pub(crate) mod state;
mod suspend;
mod trace;

pub(crate) use arith::text;
pub(crate) use call::Calling;
pub(crate) use code_table::{Code, Running};
pub(crate) use frame::{Frame, FrameFlags};
pub use helper::Helper;
pub(crate) use image::{Image, REGISTERS, image};
pub use image::{ImageError, Prebuilt, install_image, prebuild};
pub(crate) use iterate::is_plain_array as iterates_plainly;
pub(crate) use native::TABLE_NATIVE;
pub(crate) use promise::Resolution;
pub(crate) use realm::Proto;
pub use state::{HostCall, Limit, Limits};
pub(crate) use suspend::{RECORD_FIELDS, Resume, Settled, saved_frame};
pub use trace::{Place, Report};

use crate::ast::Text;
use crate::code::{Base, Constant, Program};
use crate::compile::{CompileError, Source, compile};
use crate::heap::{AllocError, Attrs, Flags, Heap, Key, Marker, OverLimit, Pace, Point, atoms};
use crate::parse::{Diagnostic, FreeNames, NestingLimit, Options, Permission, RegexProblem, TopLevel, parse};
use crate::regex;
use crate::value::Value;
use stage::Stage;
use state::{Exit, Site, State};
use std::sync::Arc;

/// The registers that a frame can name.
pub(crate) type Window = [Value; 256];

/// The machine.
#[derive(Debug)]
pub struct Vm {
    pub(crate) state: State,
    pub(crate) regs: Vec<Value>,
    /// The limit that the run hit already.
    pub(crate) refused: Option<Limit>,
}

/// How far a run got.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The script is done; if its value is a promise, this is what it was fulfilled with.
    Completed(Value),
    /// The host must answer a call.
    Suspended(HostCall),
    /// An exception nobody caught.
    Threw(Value),
    /// A limit was hit: the run is over.
    Limit(Limit),
    /// The script's promise waits for something that can no longer happen.
    Stuck,
    /// The slice is used up: see [`Vm::run_for`].
    Paused,
}

/// What `return` outside functions means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopLevelReturn {
    /// The script is not valid.
    Refused,
    /// The script ends with that value.
    Allowed,
}

/// Whether a run may stop between slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slices {
    /// It goes on until something is needed from outside.
    One,
    /// It pauses when the slice is used up.
    Many,
}

/// Why a script cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It is not valid.
    #[error("the script is not valid: {}", .0.first().map_or("", |d| d.message.as_ref()))]
    Parse(Vec<Diagnostic>),
    /// It is valid but too large.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A file of the standard library is wrong: a fault of the engine.
    #[error("the standard library's {file} failed: {reason}")]
    Prelude {
        /// The file.
        file: &'static str,
        /// What went wrong.
        reason: String,
    },
    /// The heap cannot even hold its constants.
    #[error(transparent)]
    Heap(#[from] OverLimit),
    /// The program was compiled to be loaded after other scripts than this machine has.
    #[error("the program was compiled to be loaded after other scripts")]
    Base,
    /// A literal is longer than any string may be.
    #[error("a literal is too long")]
    TooLong,
}

/// Where execution stands before anything is executed.
const BOOT: Point = Point(u64::MAX);

/// What a guest's script may say.
const GUEST: Options = Options {
    top_level_await: Permission::Allowed,
    top_level_return: Permission::Refused,
    intrinsics: Permission::Refused,
    top_level: TopLevel::Private,
    free_names: FreeNames::RefuseAmbient,
    nesting: NestingLimit::SAFE_ON_2_MIB,
    source_bytes: Options::MAX_SOURCE,
    check_regex: |pattern: Text<'_>, flags: Text<'_>| {
        regex::check(pattern.into(), flags.into())
            .map_err(|error| RegexProblem { message: error.to_string() })
    },
};

/// What the prelude may say.
const OURS: Options =
    Options { top_level_await: Permission::Refused, intrinsics: Permission::Allowed, ..GUEST };

impl Vm {
    /// A machine with these limits and these capabilities as global functions.
    pub fn new(limits: Limits, capabilities: &[&str]) -> Result<Vm, LoadError> {
        Vm::with_pace(limits, capabilities, Pace::Adaptive)
    }

    /// The same with a say in how eagerly garbage is collected: tests look for forgotten roots.
    pub fn with_pace(limits: Limits, capabilities: &[&str], pace: Pace) -> Result<Vm, LoadError> {
        let mut vm = image()?.fork(limits, pace);
        for name in capabilities {
            vm.repeat(|vm| vm.state.grant(name))?;
        }
        Ok(vm)
    }

    /// Loads a script that was compiled before; many machines can share one. [`Vm::run`] then runs it.
    pub fn load_program(&mut self, program: &Arc<Program>) -> Result<(), LoadError> {
        if program.base != self.state.code.base() {
            return Err(LoadError::Base);
        }
        self.repeat(|vm| vm.enter(program))?;
        let mut code = Code::clone(&self.state.code);
        code.add(Arc::clone(program));
        self.state.code = Arc::new(code);
        self.state.root = None;
        self.refused = self.start();
        Ok(())
    }

    /// Parses, compiles and enters a guest's script; [`Vm::run`] then runs it.
    pub fn load(&mut self, source: &str) -> Result<(), LoadError> {
        self.load_from(source, &GUEST, Source::Guest)
    }

    /// The same by other rules than a guest's, for conformance tests: with [`TopLevel::Shared`] scripts loaded one
    /// after another see each other's top-level names. Intrinsics stay refused.
    pub fn load_with(&mut self, source: &str, options: &Options) -> Result<(), LoadError> {
        let options = Options { intrinsics: Permission::Refused, ..*options };
        let kind = if options.top_level == TopLevel::Shared { Source::Shared } else { Source::Guest };
        self.load_from(source, &options, kind)
    }

    fn load_from(&mut self, source: &str, options: &Options, kind: Source) -> Result<(), LoadError> {
        let program = compile_on(self.state.code.base(), source, options, kind)?;
        self.load_program(&Arc::new(program))
    }

    /// Does something that may have to be done again after a collection.
    fn repeat<T>(&mut self, mut work: impl FnMut(&mut Vm) -> Result<T, Exit>) -> Result<T, LoadError> {
        let fuel = self.state.fuel;
        loop {
            match work(self) {
                Ok(done) => return Ok(done),
                Err(Exit::Alloc(AllocError::Collect)) => {
                    // What is done again is paid for once.
                    self.state.fuel = fuel;
                    self.state.collect(&self.regs, BOOT)?;
                }
                Err(_) => return Err(LoadError::TooLong),
            }
        }
    }

    /// Makes a compiled program's constants. Can be repeated: it begins by forgetting what it made before.
    fn enter(&mut self, program: &Program) -> Result<(), Exit> {
        let st = &mut self.state;
        st.constants.truncate(program.base.constants as usize);
        st.sites.truncate(program.base.sites as usize);
        st.templates.truncate(program.base.templates as usize);
        for constant in &program.constants {
            let v = match constant {
                Constant::Number(n) => Value::number(*n),
                Constant::String(units) => {
                    let id = st.heap.new_utf16(units)?;
                    Value::string(st.heap.intern(id)?)
                }
                Constant::BigInt(digits) => {
                    let n = crate::text::bigint::read_literal(digits).unwrap_or_default();
                    Value::bigint(st.heap.new_bigint(n)?)
                }
            };
            st.constants.push(v);
        }
        for &k in &program.sites {
            let v = st.constants.get(k as usize).copied().unwrap_or(Value::UNDEFINED);
            let key = st.heap.key_of_value(v)?;
            st.sites.push(Site::new(key.unwrap_or(Key::atom(atoms::EMPTY))));
        }
        for template in &program.templates {
            let text = |k: &u32| st.constants.get(*k as usize).copied().unwrap_or(Value::UNDEFINED);
            let raw: Vec<Value> = template.raw.iter().map(text).collect();
            let cooked: Vec<Value> =
                template.cooked.iter().map(|k| k.as_ref().map_or(Value::UNDEFINED, text)).collect();
            let shape = st.realm.array_shape;
            let raw = st.heap.new_array(shape, &raw)?;
            let object = st.heap.new_array(shape, &cooked)?;
            st.heap.add_property(object, Key::atom(atoms::RAW), Attrs::NONE, Value::array(raw))?;
            st.freeze_array(raw)?;
            st.freeze_array(object)?;
            st.templates.push(Value::array(object));
        }
        let shape = st.realm.function_shape;
        let script =
            st.heap.new_closure(shape, Flags::NONE, program.base.functions, &[], Value::UNDEFINED)?;
        if let [first, second, ..] = &mut self.regs[..] {
            *first = Value::object(script);
            *second = Value::object(st.realm.global);
        }
        Ok(())
    }

    /// Pushes the first frame of a script, whose function is in the first register. Answers the limit it hits.
    fn start(&mut self) -> Option<Limit> {
        let callee = self.regs.first().copied().unwrap_or(Value::UNDEFINED);
        let closure = callee.as_object().and_then(|f| self.state.heap.closure_of(f))?;
        let calling = Calling { dst: 0, flags: FrameFlags::ENTRY, new_target: Value::UNDEFINED };
        match self.state.push_closure(closure, callee, 1, 2, 0, calling) {
            Err(Exit::Limit(limit)) => Some(limit),
            _ => None,
        }
    }

    /// Runs until something is needed from outside, or nothing is left to do.
    pub fn run(&mut self) -> Step {
        self.go_on(Slices::One)
    }

    /// The same for about so many instructions: then the run is [`Step::Paused`], and the next call goes on. So an
    /// embedder can look at the clock, or take a snapshot. What a run costs in all, and what becomes of it, does not
    /// depend on the slices; one native may exceed its slice.
    pub fn run_for(&mut self, instructions: u64) -> Step {
        self.slice(instructions);
        let step = self.go_on(Slices::Many);
        self.end_slices();
        step
    }

    /// [`Vm::resume`] with a slice of instructions.
    pub fn resume_for(&mut self, answer: Result<Value, Value>, instructions: u64) -> Step {
        self.slice(instructions);
        let step = self.resume_in(answer, Slices::Many);
        self.end_slices();
        step
    }

    fn slice(&mut self, instructions: u64) {
        // A slice of nothing would never get anywhere.
        let slice = instructions.max(1).min(self.state.fuel);
        self.state.reserve = self.state.fuel - slice;
        self.state.fuel = slice;
    }

    fn end_slices(&mut self) {
        self.state.fuel += self.state.reserve;
        self.state.reserve = 0;
    }

    fn go_on(&mut self, slices: Slices) -> Step {
        if let Some(limit) = self.refused {
            return Step::Limit(limit);
        }
        self.state.held.clear();
        self.state.stale = true;
        if let Some(call) = self.outstanding().next().filter(|call| call.promise.is_none()) {
            return Step::Suspended(call.clone());
        }
        match self.deliver_answer() {
            Ok(()) | Err(Exit::Done(_) | Exit::Enter) => {}
            Err(exit) => return self.stop(exit),
        }
        let code = Arc::clone(&self.state.code);
        let stage = Stage::with(&code);
        let step = self.run_on(slices, &Running { code: &code, stage: stage.ops() });
        stage.leave();
        step
    }

    /// Runs frames and microtasks until something is needed from outside.
    fn run_on(&mut self, slices: Slices, code: &Running<'_>) -> Step {
        loop {
            if self.state.frames.is_empty() {
                let spent = self.state.fuel == 0 && self.state.reserve > 0;
                if slices == Slices::Many && spent && !self.state.jobs.is_empty() {
                    return Step::Paused;
                }
                match self.next_job() {
                    Ok(true) => {}
                    Ok(false) => return self.idle(),
                    Err(Exit::Done(_)) => continue,
                    Err(exit) => return self.stop(exit),
                }
                if self.state.frames.is_empty() {
                    continue;
                }
            }
            match run::run(&mut self.state, &mut self.regs, code) {
                Exit::Done(value) => {
                    self.state.root.get_or_insert(value);
                }
                Exit::Pause if slices == Slices::Many => return Step::Paused,
                Exit::Pause => {}
                exit => return self.stop(exit),
            }
        }
    }

    /// Answers the host call that the last step named, and runs on.
    pub fn resume(&mut self, answer: Result<Value, Value>) -> Step {
        self.resume_in(answer, Slices::One)
    }

    fn resume_in(&mut self, answer: Result<Value, Value>, slices: Slices) -> Step {
        let first = self.outstanding().next().map(|call| call.id);
        // It is outstanding, so it can be answered; with nothing to answer the run just goes on.
        let _ = first.map(|id| self.answer(id, answer));
        self.go_on(slices)
    }

    /// What the world looks like to the guest: the seed of `Math.random` and the time that `Date.now()` answers, in
    /// milliseconds. A replay with the same values is identical.
    pub fn set_world(&mut self, seed: u64, now: f64) {
        // A seed of zero would stay zero; mixing also keeps neighbouring seeds apart.
        self.state.random = (seed ^ 0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9) | 1;
        self.state.now = now;
    }

    /// The text of any value, for people.
    pub fn text(&mut self, v: Value) -> String {
        self.state.describe(v)
    }

    /// What a person should see of an exception that ended a run: its text, where it comes from, and the line there.
    pub fn report(&mut self, thrown: Value) -> Report {
        self.state.report(thrown)
    }

    /// What the guest printed.
    pub fn printed(&self) -> &[Value] {
        &self.state.printed
    }

    /// The heap, for reading results.
    pub fn heap(&self) -> &Heap {
        &self.state.heap
    }

    /// Instructions that are left.
    pub fn fuel(&self) -> u64 {
        self.state.fuel
    }

    /// What a run that cannot go on by itself tells the host. A limit is final.
    fn stop(&mut self, exit: Exit) -> Step {
        match exit {
            Exit::Throw(e) => {
                self.state.frames.clear();
                Step::Threw(e)
            }
            Exit::Limit(limit) => {
                self.refused = Some(limit);
                Step::Limit(limit)
            }
            Exit::Suspend => match self.state.pending.clone() {
                Some(call) => Step::Suspended(call),
                None => Step::Stuck,
            },
            Exit::Done(v) => Step::Completed(v),
            Exit::Enter | Exit::Alloc(_) | Exit::Slow | Exit::Pause => Step::Stuck,
        }
    }

    /// Starts the next microtask. `Ok(false)`: there is none.
    fn next_job(&mut self) -> Result<bool, Exit> {
        let Some(&job) = self.state.jobs.front() else { return Ok(false) };
        if let Some(window) = self.regs.first_chunk_mut::<256>() {
            self.state.pc = 1;
            match self.state.start_job(window, job) {
                Err(Exit::Alloc(AllocError::Collect)) => {
                    let point = Point(self.state.fuel);
                    self.state.collect(&[], point).map_err(|over| Exit::Limit(Limit::Heap(over)))?;
                    return Ok(true);
                }
                Ok(()) | Err(Exit::Enter) => {}
                Err(exit) => {
                    self.state.jobs.pop_front();
                    return Err(exit);
                }
            }
        }
        self.state.jobs.pop_front();
        Ok(true)
    }

    /// Nothing is runnable: the next host call, or the end.
    fn idle(&mut self) -> Step {
        if self.state.pending.is_none() {
            self.state.pending = self.state.waiting.pop_front();
        }
        if let Some(call) = &self.state.pending {
            return Step::Suspended(call.clone());
        }
        let value = self.state.root.unwrap_or(Value::UNDEFINED);
        if !self.state.is_promise(value) {
            return Step::Completed(value);
        }
        match self.state.outcome(value) {
            Some(Ok(v)) => Step::Completed(v),
            Some(Err(e)) => Step::Threw(e),
            None => Step::Stuck,
        }
    }
}

impl Program {
    /// Parses and compiles a guest's script, to be loaded as the first of a machine.
    pub fn compile(source: &str) -> Result<Program, LoadError> {
        Program::compile_with(source, TopLevelReturn::Refused)
    }

    /// The same with a say in what `return` outside functions means.
    pub fn compile_with(source: &str, top_level_return: TopLevelReturn) -> Result<Program, LoadError> {
        let top_level_return = match top_level_return {
            TopLevelReturn::Refused => Permission::Refused,
            TopLevelReturn::Allowed => Permission::Allowed,
        };
        let options = Options { top_level_return, ..GUEST };
        compile_on(image()?.state.code.base(), source, &options, Source::Guest)
    }
}

fn compile_on(base: Base, source: &str, options: &Options, kind: Source) -> Result<Program, LoadError> {
    let tree = parse(source, options).map_err(LoadError::Parse)?;
    let mut program = compile(&tree, base, kind)?;
    program.source = source.into();
    Ok(program)
}

impl State {
    /// Collects garbage: everything the machine holds is a root.
    pub(crate) fn collect(&mut self, regs: &[Value], point: Point) -> Result<(), OverLimit> {
        let taken = self.taken;
        let State {
            heap, frames, constants, sites, templates, realm, helpers, jobs, waiting, pending, ..
        } = self;
        let (job_promise, root, printed, held) = (self.job_promise, self.root, &self.printed, &self.held);
        let receiver = self.pending_calling.new_target;
        let answered = self.answered.map(|answer| answer.unwrap_or_else(|thrown| thrown));
        let collected = heap.collect(point, |m: &mut Marker| {
            m.values(regs);
            // What the image's code uses is the image's.
            m.values(constants.get(taken.constants as usize..).unwrap_or_default());
            m.values(templates.get(taken.templates as usize..).unwrap_or_default());
            m.values(helpers);
            m.values(printed);
            m.values(held);
            m.value(job_promise);
            m.value(receiver);
            m.value(answered.unwrap_or(Value::UNDEFINED));
            m.value(root.unwrap_or(Value::UNDEFINED));
            realm.mark(m);
            for frame in frames.iter() {
                m.value(frame.callee);
                m.value(frame.new_target);
            }
            for site in sites.iter().skip(taken.sites as usize) {
                m.key(site.key);
            }
            for job in jobs.iter() {
                match *job {
                    state::Job::Reaction { handler, promise, value, .. } => {
                        m.values(&[handler, promise, value])
                    }
                    state::Job::Thenable { promise, thenable, then } => m.values(&[promise, thenable, then]),
                }
            }
            for call in waiting.iter().chain(pending.iter()) {
                m.value(call.name);
                m.values(&call.args);
                m.value(call.promise.unwrap_or(Value::UNDEFINED));
            }
        })?;
        self.stale = false;
        // Shape ids may be used again, so caches that name a dead one must go.
        if collected.shapes_freed > 0 {
            for site in sites.iter_mut() {
                *site = Site::new(site.key);
            }
            self.gets.forget();
            self.sets.forget();
        }
        Ok(())
    }
}
