//! Everything the machine owns beside the register file.

use super::cache::Finds;
use super::call::Calling;
use super::frame::Frame;
use super::realm::Realm;
use crate::code::ErrorKind;
use crate::heap::{AllocError, Heap, Key, OverLimit, ShapeId, Slot};
use crate::value::Value;
use std::collections::VecDeque;

/// A property site: its key, and what was found there last time. Caches never change results or charges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    pub(crate) key: Key,
    /// The receiver's shape when the cache was filled; `NO_SHAPE` when empty.
    pub(crate) shape: ShapeId,
    /// For an added property the shape afterwards, otherwise the same as `shape`.
    pub(crate) next: ShapeId,
    pub(crate) slot: Slot,
    /// The prototype that has the property, and the epoch in which that was true.
    pub(crate) holder: Option<crate::heap::ObjId>,
    pub(crate) epoch: u32,
}

/// A shape id that no shape has.
pub(crate) const NO_SHAPE: ShapeId = ShapeId::from_raw(u32::MAX);

impl Site {
    pub(crate) fn new(key: Key) -> Site {
        Site { key, shape: NO_SHAPE, next: NO_SHAPE, slot: 0, holder: None, epoch: 0 }
    }
}

/// Why the dispatch loop leaves an instruction before it is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Exit {
    /// A frame was pushed: go on there.
    Enter,
    /// A guest exception.
    Throw(Value),
    /// The heap wants to collect; the instruction is executed again afterwards.
    Alloc(AllocError),
    /// The run is over; the guest cannot catch it.
    Limit(Limit),
    /// A host call waits for its answer.
    Suspend,
    /// The bottom frame returned.
    Done(Value),
    /// A native leaves the case to its JavaScript version: nothing has happened yet.
    Slow,
    /// The slice is used up. Everything is saved; the run goes on where it stands.
    Pause,
}

impl From<AllocError> for Exit {
    fn from(error: AllocError) -> Exit {
        Exit::Alloc(error)
    }
}

/// A limit that ends a run. The guest cannot catch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Limit {
    /// The instruction budget is spent.
    #[error("instruction budget exhausted")]
    Instructions,
    /// Too many frames.
    #[error("call depth limit exceeded")]
    CallDepth,
    /// The heap is full.
    #[error(transparent)]
    Heap(OverLimit),
    /// Too many host calls wait.
    #[error("outstanding host-call limit exhausted")]
    HostCalls,
}

/// The result of an operation that may throw, enter a frame, or need a collection.
pub(crate) type Res = Result<Value, Exit>;

/// How much a run may use. There is no default: the caller decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Instructions, counted at calls and back edges.
    pub instructions: u64,
    /// Frames.
    pub call_depth: u32,
    /// Asynchronous host calls waiting at once.
    pub host_calls: u32,
    /// The heap.
    pub heap: crate::heap::Limits,
}

/// A call that the host must answer.
#[derive(Clone, Debug, PartialEq)]
pub struct HostCall {
    /// Which call of the run it is: they count up from 1, also across snapshots.
    pub id: u64,
    /// The capability's name.
    pub name: Value,
    /// Its arguments.
    pub args: Vec<Value>,
    /// The promise that waits for it; none for a call that waits itself.
    pub(crate) promise: Option<Value>,
    /// How large the arguments of a queued call are outside the heap.
    pub(crate) weight: u64,
}

/// What host calls may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arguments {
    /// Any value, as it is.
    Any,
    /// What can cross the boundary, as it was when the call was made: see [`super::Vm::convert_arguments`].
    Plain,
}

/// A microtask.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Job {
    /// Runs a reaction's handler with the settled value and settles what depends on it.
    Reaction { kind: ReactionKind, handler: Value, promise: Value, value: Value },
    /// Calls `then` of a thenable.
    Thenable { promise: Value, thenable: Value, then: Value },
}

/// What a promise was settled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReactionKind {
    Fulfil,
    Reject,
}

/// The machine without its registers.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) heap: Heap,
    pub(crate) frames: Vec<Frame>,
    /// The pc of the instruction after the one that called out of the loop.
    pub(crate) pc: u32,
    /// Where the page of instructions begins that the loop is in.
    pub(crate) page: u32,
    /// What is left of the instruction budget in this slice.
    pub(crate) fuel: u64,
    /// What is left of it beyond this slice: nothing unless a slice is running.
    pub(crate) reserve: u64,
    pub(crate) limits: Limits,
    pub(crate) code: std::sync::Arc<super::code_table::Code>,
    /// Where the machine's own code begins: what comes before is the image's.
    pub(crate) taken: crate::code::Base,
    pub(crate) constants: Vec<Value>,
    pub(crate) sites: Vec<Site>,
    /// What sites found when they read, and when they wrote.
    pub(crate) gets: Finds,
    pub(crate) sets: Finds,
    pub(crate) templates: Vec<Value>,
    pub(crate) realm: Realm,
    pub(crate) helpers: Vec<Value>,
    pub(crate) jobs: VecDeque<Job>,
    /// Host calls made in async code, in order.
    pub(crate) waiting: VecDeque<HostCall>,
    /// The host call that the run is suspended on.
    pub(crate) pending: Option<HostCall>,
    /// How many host calls there were.
    pub(crate) calls: u64,
    pub(crate) arguments: Arguments,
    /// What the embedder has made and the machine does not hold yet; forgotten when it runs or is written.
    pub(crate) held: Vec<Value>,
    /// How large the arguments of all queued calls are outside the heap.
    pub(crate) queued_weight: u64,
    /// What a synchronous host call was answered with, until the machine runs.
    pub(crate) answered: Option<Result<Value, Value>>,
    /// Whether the machine may have let go of something since the last collection.
    pub(crate) stale: bool,
    /// Where the answer of a synchronous host call goes.
    pub(crate) pending_calling: Calling,
    /// The first register above the top frame's own: where calls made by instructions are laid out.
    pub(crate) above: u8,
    /// What the script's own frame answered.
    pub(crate) root: Option<Value>,
    /// Where the last exception was thrown: function and source offset.
    pub(crate) thrown: Option<(u32, u32)>,
    /// What the running microtask settles.
    pub(crate) job_promise: Value,
    /// Where `Math.random` stands; never zero.
    pub(crate) random: u64,
    /// What `Date.now()` answers, in milliseconds.
    pub(crate) now: f64,
    /// Compiled patterns. Not part of what the guest can see or a snapshot must keep.
    pub(crate) regexps: crate::builtins::RegExps,
    /// What tests print.
    pub(crate) printed: Vec<Value>,
}

impl State {
    /// A guest error of a kind with a message.
    #[cold]
    pub(crate) fn throw(&mut self, kind: ErrorKind, message: &str) -> Exit {
        match self.new_error(kind, message) {
            Ok(error) => Exit::Throw(error),
            Err(exit) => exit,
        }
    }

    #[cold]
    pub(crate) fn type_error(&mut self, message: &str) -> Exit {
        self.throw(ErrorKind::Type, message)
    }
}
