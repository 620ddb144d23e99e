//! The image: a machine in which the standard library has been run. Every machine is a fork of it.
//!
//! Compiling and running the standard library takes milliseconds; copying the tables it left takes microseconds. What a
//! machine starts with is never collected and is not charged to it, so that ids below those of the image mean the
//! same in every machine: a snapshot only says in what it differs.
//!
//! An image is always read from bytes: a table of instructions and the tables of the heap. A program that must start fast has
//! a build script write them ([`prebuild`]) and installs them ([`install_image`]); otherwise the first machine
//! of the process makes them. Either way they are the same bytes.

use super::cache::Finds;
use super::call::Calling;
use super::code_table::Code;
use super::frame::FrameFlags;
use super::library::Library;
use super::realm::Realm;
use super::state::{Arguments, Limits, NO_SHAPE, Site, State};
use super::{BOOT, LoadError, OURS, Step, Vm};
use crate::builtins;
use crate::code::{Op, WINDOW};
use crate::compile::Source;
use crate::heap::{self, AllocError, Beside, Heap, Key, Pace, read_words, write_words};
use crate::snapshot::bytes::{Flaw, Read, Reader, Writer};
use crate::snapshot::{EnvelopeError, Kind, compute_fingerprint, layout, open_any, seal};
use crate::value::Value;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

/// A machine that is only copied, never run.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) state: State,
    /// What tells this engine from others.
    pub(crate) fingerprint: u64,
}

/// The image as a build script leaves it for the program that it builds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prebuilt {
    /// Packed instructions: see [`crate::code::unpack`].
    pub code: Vec<u8>,
    /// Everything else.
    pub tables: Vec<u8>,
}

/// Why an image was not installed. The engine then makes its own, which only takes longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// There is an image already: it was installed before, or a machine was made.
    #[error("this process has an image of the engine already")]
    Late,
    /// The bytes are not an image, or not whole.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// It was made by an engine with other instructions, classes or natives.
    #[error("the image was made by another engine")]
    Layout,
    /// Its content does not fit together.
    #[error("the image is not valid: {0}")]
    Invalid(&'static str),
}

/// Makes the image from the sources of the standard library. The same bytes on every machine and at every optimisation.
pub fn prebuild() -> Result<Prebuilt, LoadError> {
    let (ops, tables) = make().map_err(|(file, reason)| LoadError::Prelude { file, reason })?;
    Ok(Prebuilt { code: packed(&ops), tables })
}

/// Gives this process its image, before the first machine is made. `code` and `tables` are what [`prebuild`] answered, the code
/// unpacked; they are believed, so they must come from the build of this program and from nowhere else.
pub fn install_image(code: &'static [Op], tables: &'static [u8]) -> Result<(), ImageError> {
    if IMAGE.get().is_some() {
        return Err(ImageError::Late);
    }
    let image = read(code, tables)?;
    IMAGE.set(Ok(image)).map_err(|_| ImageError::Late)
}

/// Registers that a machine starts with; more are made when a frame needs them.
pub(crate) const REGISTERS: usize = 1024;

/// How nobody called.
const NOBODY: Calling = Calling { dst: 0, flags: FrameFlags::NONE, new_target: Value::UNDEFINED };

/// What of the standard library failed, and why.
type Failure = (&'static str, String);

static IMAGE: OnceLock<Result<Image, Failure>> = OnceLock::new();

/// The seed of the hashes: the same in all machines, whose ids must mean the same.
const SEED: u64 = 0x5EED;

/// The image is made without limits; its forks get their own.
const LIMITS: Limits = Limits {
    instructions: u64::MAX,
    call_depth: 64,
    host_calls: 0,
    heap: heap::Limits { bytes: usize::MAX, records: heap::Limits::MOST_RECORDS },
};

/// The image of this process. Fails only if the standard library is wrong.
pub(crate) fn image() -> Result<&'static Image, LoadError> {
    match IMAGE.get_or_init(from_source) {
        Ok(image) => Ok(image),
        Err((file, reason)) => Err(LoadError::Prelude { file, reason: reason.clone() }),
    }
}

impl Image {
    /// A new machine.
    pub(crate) fn fork(&self, limits: Limits, pace: Pace) -> Vm {
        let heap = self.state.heap.fork_image(limits.heap, pace);
        let mut vm = self.with_heap(heap, limits);
        vm.regs.resize(REGISTERS, Value::UNDEFINED);
        vm
    }

    /// A new machine around a heap that is a fork of the image's. It has no registers yet.
    pub(crate) fn with_heap(&self, mut heap: Heap, limits: Limits) -> Vm {
        let st = &self.state;
        let Beside { constants, sites } = self.beside(&mut heap);
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
            constants,
            sites,
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
            queued_weight: 0,
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
        Vm { state, regs: Vec::new(), refused: None }
    }

    /// The image's constants and sites: those that the last machine around the heap's memory had, or new ones. Constants never
    /// change, and of a site only what it found last.
    fn beside(&self, heap: &mut Heap) -> Beside {
        let (constants, sites) = (&self.state.constants, &self.state.sites);
        let mut beside = std::mem::take(&mut heap.beside);
        if beside.constants.len() < constants.len() || beside.sites.len() < sites.len() {
            return Beside { constants: constants.clone(), sites: sites.clone() };
        }
        beside.constants.truncate(constants.len());
        beside.sites.truncate(sites.len());
        for site in beside.sites.iter_mut().filter(|site| site.shape != NO_SHAPE) {
            *site = Site::new(site.key);
        }
        beside
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if self.heap.is_recycled() {
            let (constants, sites) = (std::mem::take(&mut self.constants), std::mem::take(&mut self.sites));
            self.heap.beside = Beside { constants, sites };
        }
    }
}

/// The image of a process that was not given one.
fn from_source() -> Result<Image, Failure> {
    let (mut ops, tables) = make()?;
    ops.resize(ops.len() + WINDOW, Op::RetUndef);
    // Once in the life of a process, for the rest of it.
    read(ops.leak(), tables.leak()).map_err(|error| ("image", error.to_string()))
}

/// An image out of its bytes.
fn read(code: &'static [Op], tables: &'static [u8]) -> Result<Image, ImageError> {
    let (fingerprint, payload) = open_any(Kind::Image, tables)?;
    let r = &mut Reader::new(payload, usize::MAX);
    if r.word() != Ok(layout()) {
        return Err(ImageError::Layout);
    }
    match read_state(code, r) {
        Ok(state) => Ok(Image { state, fingerprint }),
        Err(Flaw::Invalid(what)) => Err(ImageError::Invalid(what)),
        Err(Flaw::TooLarge) => Err(ImageError::Invalid("a number is too large")),
    }
}

fn read_state(code: &'static [Op], r: &mut Reader<'static>) -> Read<State> {
    let code = Library::read(r, code)?;
    let realm = Realm::read(r)?;
    let heap = Heap::read_image(r, LIMITS.heap, SEED)?;
    let mut state = bare(heap, realm, code).state;
    state.constants = read_words(r)?;
    state.templates = read_words(r)?;
    state.helpers = read_words(r)?;
    let keys = r.text()?.as_chunks().0;
    state.sites = keys.iter().map(|key| Site::new(Key::from_raw(u32::from_le_bytes(*key)))).collect();
    r.end()?;
    Ok(state)
}

/// Makes the bytes of an image: its instructions, not yet padded, and its tables.
fn make() -> Result<(Vec<Op>, Vec<u8>), Failure> {
    let state = boot()?;
    let mut w = Writer::new();
    w.word(layout());
    let ops = write_state(&state, &mut w).map_err(|flaw| ("image", format!("{flaw:?}")))?;
    let tables = w.finish();
    let fingerprint = compute_fingerprint(&packed(&ops), &tables);
    Ok((ops, seal(Kind::Image, fingerprint, &tables)))
}

fn write_state(state: &State, w: &mut Writer) -> Read<Vec<Op>> {
    let ops = Library::write(&state.code, w)?;
    state.realm.write(w);
    state.heap.write_image(w)?;
    write_words(w, &state.constants);
    write_words(w, &state.templates);
    write_words(w, &state.helpers);
    let keys: Vec<u8> = state.sites.iter().flat_map(|site| site.key.raw().to_le_bytes()).collect();
    w.text(&keys);
    Ok(ops)
}

fn packed(ops: &[Op]) -> Vec<u8> {
    ops.iter().flat_map(|op| op.pack()).collect()
}

/// Runs the standard library, and answers what it left.
fn boot() -> Result<State, Failure> {
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
    state.collect(&[], BOOT).map_err(|error| ("heap", error.to_string()))?;
    state.heap = state.heap.freeze().map_err(|error| ("heap", error.to_string()))?;
    Ok(state)
}

/// A machine with prototypes and natives, before the standard library.
fn empty() -> Result<Vm, LoadError> {
    let mut heap = Heap::new(LIMITS.heap, Pace::Adaptive, SEED);
    let realm = loop {
        match Realm::new(&mut heap) {
            Ok(realm) => break realm,
            Err(AllocError::Collect) => heap.collect(BOOT, |_| {}).map(|_| ())?,
            Err(AllocError::TooLong) => return Err(LoadError::TooLong),
        }
    };
    let mut vm = bare(heap, realm, Code::of(Library::EMPTY, Vec::new()));
    vm.repeat(|vm| vm.state.populate())?;
    Ok(vm)
}

/// A machine around what every machine has.
fn bare(heap: Heap, realm: Realm, code: Code) -> Vm {
    let state = State {
        heap,
        frames: Vec::new(),
        pc: 0,
        page: 0,
        fuel: u64::MAX,
        reserve: 0,
        thrown: None,
        limits: LIMITS,
        taken: code.base(),
        code: Arc::new(code),
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
        queued_weight: 0,
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
    Vm { state, regs: vec![Value::UNDEFINED; REGISTERS], refused: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a machine is made of, as bytes: of one that has run the library, or of one that was read.
    fn bytes_of(state: &State) -> Vec<u8> {
        let mut w = Writer::new();
        state.realm.write(&mut w);
        state.heap.write_image(&mut w).expect("it can be written");
        write_words(&mut w, &state.constants);
        write_words(&mut w, &state.templates);
        write_words(&mut w, &state.helpers);
        state.sites.iter().for_each(|site| w.uint(u64::from(site.key.raw())));
        w.finish()
    }

    #[test]
    fn an_image_that_was_read_is_the_one_that_was_made() {
        let made = boot().expect("the library runs");
        let read = image().expect("there is an image");
        assert!(bytes_of(&made) == bytes_of(&read.state), "the tables differ");
        assert_eq!(made.heap.usage(), read.state.heap.usage());
        assert_eq!(made.heap.footprint(), read.state.heap.footprint());
        assert_eq!(made.heap.spans(), read.state.heap.spans());
        assert_eq!(made.code.base(), read.state.code.base());
        assert_eq!(made.code.len(), read.state.code.len());
        for index in 0..made.code.len() {
            let (a, b) = (made.code.function(index), read.state.code.function(index));
            assert_eq!(format!("{:?}", Blind(a)), format!("{:?}", Blind(b)));
            assert_eq!(made.code.source_of(index), read.state.code.source_of(index));
            for pc in 0..a.len {
                assert_eq!(made.code.op(index, pc), read.state.code.op(index, pc), "{index} at {pc}");
            }
        }
    }

    /// A function without its place, which is another one in a table of all files.
    struct Blind<'f>(&'f crate::code::Function);

    impl std::fmt::Debug for Blind<'_> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            crate::code::Function { start: 0, ..self.0.clone() }.fmt(f)
        }
    }

    #[test]
    fn the_same_image_is_made_every_time_and_says_its_own_fingerprint() {
        let (first, second) = (prebuild().expect("it works"), prebuild().expect("it works"));
        assert!(first == second);
        let (said, payload) = open_any(Kind::Image, &first.tables).expect("it is whole");
        assert_eq!(said, compute_fingerprint(&first.code, payload));
        assert_eq!(said, crate::snapshot::fingerprint().expect("there is an image"));
    }

    #[test]
    fn an_image_that_is_not_this_engines_is_refused_by_name() {
        let tables = prebuild().expect("it works").tables;
        let leak = |bytes: &[u8]| -> &'static [u8] { bytes.to_vec().leak() };
        let refused = |bytes: &[u8]| read(&[], leak(bytes)).map(|_| ()).expect_err("it is not an image");
        assert_eq!(refused(b"something else"), ImageError::Envelope(EnvelopeError::Kind));
        assert_eq!(refused(&tables[..tables.len() - 1]), ImageError::Envelope(EnvelopeError::Damaged));
        let mut bent = tables.clone();
        bent[5_000] ^= 1;
        assert_eq!(refused(&bent), ImageError::Envelope(EnvelopeError::Damaged));
        let mut other = tables.clone();
        other[26] ^= 1;
        crate::snapshot::reseal(&mut other);
        assert_eq!(refused(&other), ImageError::Layout);
        let short = seal(Kind::Image, 0, &tables[26..1_000]);
        assert_eq!(refused(&short), ImageError::Invalid("a list is longer than what is left"));
        image().expect("there is an image");
        assert_eq!(install_image(&[], leak(&tables)), Err(ImageError::Late));
    }
}
