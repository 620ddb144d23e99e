//! Programs and machines as bytes.
//!
//! # Theory of operation
//!
//! A [`Program`] is what the compiler makes; its blob can be loaded by any process with the same engine. A snapshot is a whole
//! machine that stands still: its programs, frames, registers, microtasks and waiting host calls, and everything in which
//! its heap differs from the image that all machines start from. Both are self-contained and say outside their payload
//! which format and which engine they are of ([`EnvelopeError`]).
//!
//! What is not in a snapshot: limits (whoever restores gives them anew; the instructions used so far are in it), inline
//! caches and hashes. Taking one collects garbage first, so it costs time and bytes in proportion to what is alive, and the
//! machine that took it goes on exactly like the one that is restored from it, charges included.
//!
//! Loading trusts nothing: `bytes` never allocates what was not paid for, `verify` checks instructions, the heap's own
//! `check` references and chains, `machine` frames and records. A blob that passes is safe to run; whether it is the one
//! that was written is for a signature to say.
//!
//! ```
//! use outrigger_vm::exec::{Limits, Step, Vm};
//! use outrigger_vm::value::Value;
//!
//! let heap = outrigger_vm::heap::Limits { bytes: 8 << 20, records: 1 << 20 };
//! let limits = Limits { instructions: 1_000_000, call_depth: 1_000, host_calls: 16, heap };
//! let mut vm = Vm::new(limits, &["ask"])?;
//! vm.load("[1, 2, 3].map(n => n * ask(n)).join()")?;
//! assert!(matches!(vm.run(), Step::Suspended(_)));
//! let bytes = vm.snapshot()?;
//!
//! let mut elsewhere = Vm::restore(&bytes, limits)?;
//! let mut step = elsewhere.resume(Ok(Value::int(10)));
//! while let Step::Suspended(_) = step {
//!     step = elsewhere.resume(Ok(Value::int(10)));
//! }
//! let Step::Completed(value) = step else { panic!("{step:?}") };
//! assert_eq!(elsewhere.text(value), "10,20,30");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod bytes;
mod container;
mod known;
mod machine;
mod program;
mod verify;

pub use container::{EnvelopeError, FORMAT};
pub(crate) use container::{Kind, open_any, seal};
pub use known::KnownPrograms;
pub(crate) use program::{read_function, write_function};

use crate::code::{LAYOUT, Program};
use crate::exec::{Limits, LoadError, Vm, image};
use crate::heap::{Class, Pace, checksum};
use bytes::{Flaw, Reader, Writer};
use thiserror::Error;

/// The most memory that reading a program may take.
const PROGRAM_BYTES: usize = 1 << 30;

/// Why bytes are not a program.
#[derive(Debug, Error)]
pub enum ProgramError {
    /// The envelope is not that of a program of this engine.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// The content is not that of a program.
    #[error("program validation failed: {0}")]
    Invalid(&'static str),
    /// It is larger than any program of a permitted source.
    #[error("the program is too large")]
    TooLarge,
    /// This engine does not work.
    #[error(transparent)]
    Engine(#[from] LoadError),
}

/// Why bytes are not a machine.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// The envelope is not that of a snapshot of this engine.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// The content is not that of a machine.
    #[error("snapshot validation failed: {0}")]
    Invalid(&'static str),
    /// It does not fit into the heap limits.
    #[error("snapshot validation failed: heap usage exceeds configured heap limit")]
    HeapLimit,
    /// It has more frames than the limits allow.
    #[error("call depth limit exceeded")]
    CallDepth,
    /// It waits for more host calls than the limits allow.
    #[error("outstanding host-call limit exhausted")]
    HostCalls,
    /// It has used more instructions than the limits allow.
    #[error("instruction budget exhausted")]
    Instructions,
    /// This engine does not work.
    #[error(transparent)]
    Engine(#[from] LoadError),
}

impl Program {
    /// The program as bytes that any process with the same engine can load.
    pub fn to_bytes(&self) -> Result<Vec<u8>, LoadError> {
        let mut w = Writer::new();
        program::write(&mut w, self);
        Ok(container::seal(Kind::Program, fingerprint()?, &w.finish()))
    }

    /// The program that [`Program::to_bytes`] wrote, checked in full.
    pub fn from_bytes(bytes: &[u8]) -> Result<Program, ProgramError> {
        let payload = container::open(Kind::Program, fingerprint()?, bytes)?;
        let mut r = Reader::new(payload, PROGRAM_BYTES);
        let program = program::read(&mut r).and_then(|program| r.end().map(|()| program));
        program.map_err(|flaw| match flaw {
            Flaw::Invalid(what) => ProgramError::Invalid(what),
            Flaw::TooLarge => ProgramError::TooLarge,
        })
    }
}

impl Vm {
    /// The machine as bytes, whenever it stands still: suspended, paused or done. Collects garbage first.
    pub fn snapshot(&mut self) -> Result<Vec<u8>, LoadError> {
        let image = image()?;
        let mut w = container::open_envelope();
        machine::write(self, image, &mut w);
        Ok(container::close_envelope(Kind::Snapshot, image.fingerprint, w))
    }

    /// The machine that [`Vm::snapshot`] wrote, under new limits. The instructions it has used count against them.
    pub fn restore(bytes: &[u8], limits: Limits) -> Result<Vm, SnapshotError> {
        Vm::restore_with_pace(bytes, limits, Pace::Adaptive)
    }

    /// The same with a say in how eagerly garbage is collected.
    pub fn restore_with_pace(bytes: &[u8], limits: Limits, pace: Pace) -> Result<Vm, SnapshotError> {
        let payload = container::open(Kind::Snapshot, fingerprint()?, bytes)?;
        machine::read(image()?, payload, limits, pace, &mut KnownPrograms::within(0))
    }

    /// As [`Vm::restore`], for whoever restores often: a program that is known is not read again, and one that is not will be.
    pub fn restore_knowing(
        bytes: &[u8],
        limits: Limits,
        programs: &mut KnownPrograms,
    ) -> Result<Vm, SnapshotError> {
        let payload = container::open(Kind::Snapshot, fingerprint()?, bytes)?;
        machine::read(image()?, payload, limits, Pace::Adaptive, programs)
    }
}

/// What tells this engine from others: its version, instructions, classes, natives and standard library.
pub fn fingerprint() -> Result<u64, LoadError> {
    Ok(image()?.fingerprint)
}

/// The fingerprint of an engine that makes this image: its packed instructions and its tables.
pub(crate) fn compute_fingerprint(code: &[u8], tables: &[u8]) -> u64 {
    let mut w = Writer::new();
    write_layout(&mut w);
    for (name, text) in crate::builtins::SOURCES {
        w.text(name.as_bytes());
        w.text(text.as_bytes());
    }
    w.text(code);
    w.text(tables);
    checksum(&w.finish())
}

/// What the numbers in an image mean: another layout, and they mean something else.
pub(crate) fn layout() -> u64 {
    let mut w = Writer::new();
    write_layout(&mut w);
    checksum(&w.finish())
}

fn write_layout(w: &mut Writer) {
    w.text(env!("CARGO_PKG_VERSION").as_bytes());
    w.text(LAYOUT.as_bytes());
    for class in Class::ALL {
        w.text(format!("{class:?}").as_bytes());
    }
    for name in crate::builtins::names() {
        w.text(name.as_bytes());
    }
}

/// Replaces the checksum of a blob by the right one: for tests that change what is inside.
#[doc(hidden)]
pub fn reseal(bytes: &mut [u8]) {
    if let Some((head, payload)) = bytes.split_at_mut_checked(26) {
        head[18..].copy_from_slice(&checksum(payload).to_le_bytes());
    }
}
