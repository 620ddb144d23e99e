//! What a sidecar answers.

use std::borrow::Cow;
use std::fmt;

use outrigger_vm::boundary::Plain;

use super::ids::{PolicyId, ProgramId, SnapshotId};

/// One response. Its blob (a program or a snapshot) is beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// The id of the request.
    pub id: u64,
    /// What came of it.
    pub outcome: Result<Reply, Failure>,
    /// How long it took, if the request asked.
    pub profile: Option<Profile>,
}

/// What came of a request that could be fulfilled.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A program, whose bytes are the blob.
    Program(ProgramId),
    /// The run is done.
    Completed(Plain),
    /// The run waits for the host; the snapshot is the blob.
    Suspended(Suspended),
    /// What this sidecar is.
    Hello(Greeting),
    /// What was forgotten.
    Released(Released),
    /// What a snapshot is.
    Inspection(Inspection),
}

/// A run that waits.
#[derive(Clone, Debug, PartialEq)]
pub struct Suspended {
    /// Names the snapshot.
    pub snapshot_id: SnapshotId,
    /// Names the policy it ran under.
    pub policy_id: PolicyId,
    /// What it waits for, oldest first: never empty. Without the extension `batch` only the first, without its id.
    pub calls: Vec<Call>,
}

/// A call that the host must answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Its number in this run, from 1; only known where calls are listed.
    pub call_id: Option<u64>,
    /// The host function.
    pub capability: String,
    /// Its arguments.
    pub args: Vec<Plain>,
}

/// How long a step took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Running.
    pub execution_ns: u64,
    /// Taking the snapshot and writing the answer.
    pub response_prepare_ns: u64,
}

/// What this sidecar is, and what is switched on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Which program.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The versions of the protocol that it speaks.
    pub protocol_versions: Vec<u64>,
    /// Tells engines apart: programs and snapshots are only for engines of the same fingerprint.
    pub engine: String,
    /// All extensions there are.
    pub features: Vec<String>,
    /// Those that are on now.
    pub enabled: Vec<String>,
    /// How much it takes and keeps.
    pub limits: SidecarLimits,
    /// The file system layer of its box, in words.
    pub landlock: String,
    /// The system call layer of its box, in words.
    pub seccomp: String,
}

/// How much a sidecar takes and keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SidecarLimits {
    /// The most bytes of a request.
    pub max_frame_bytes: u64,
    /// The most that a host may ask for.
    pub max_frame_bytes_ceiling: u64,
    /// How much is kept of programs.
    pub program_cache_bytes: u64,
    /// How much is kept of snapshots.
    pub snapshot_cache_bytes: u64,
    /// How many policies are kept.
    pub policy_cache_entries: u64,
}

/// How many cached things a `release` found and dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Released {
    /// Programs.
    pub programs: u64,
    /// Snapshots.
    pub snapshots: u64,
    /// Policies.
    pub policies: u64,
}

/// What a snapshot is.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspection {
    /// Its id.
    pub snapshot_id: SnapshotId,
    /// Its size.
    pub bytes: u64,
    /// What it waits for, oldest first.
    pub calls: Vec<Call>,
    /// Every host function that it holds.
    pub capabilities: Vec<String>,
    /// How much of the instruction budget it has used.
    pub instructions_used: u64,
    /// How large its heap is.
    pub heap_bytes: u64,
    /// How many things are in it.
    pub heap_records: u64,
    /// Where it stands, innermost first.
    pub frames: Vec<Place>,
}

/// A place in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The function; `<script>` for the script itself and for one without a name.
    pub function: String,
    /// From 1.
    pub line: u64,
    /// From 1, in UTF-16 units.
    pub column: u64,
}

/// Why a request could not be fulfilled.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// For people, and safe to show to a guest.
    pub error: String,
    /// For programs (extension `error_detail`).
    pub detail: Option<Box<Detail>>,
}

/// A failure in parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Detail {
    /// What kind of failure.
    pub kind: Kind,
    /// Which one.
    pub code: Code,
    /// In words, without kind, place and frames.
    pub message: String,
    /// The name of the error object that was thrown.
    pub name: Option<String>,
    /// The line, from 1.
    pub line: Option<u64>,
    /// The column, from 1, in UTF-16 units.
    pub column: Option<u64>,
    /// The text of that line.
    pub source_line: Option<String>,
    /// Where it happened, innermost first.
    pub frames: Vec<Place>,
    /// `code` of the error object that was thrown.
    pub error_code: Option<String>,
    /// `details` of the error object that was thrown.
    pub details: Option<Plain>,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $word:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub struct $name(Cow<'static, str>);

        impl $name {
            $($(#[$each])* pub const $word: $name = $name(Cow::Borrowed($text));)*

            /// As it is on the wire. One that we do not know is kept as it came.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> $name {
                $name(Cow::Owned(text))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

words! {
    /// What kind of failure.
    Kind {
        /// The source is not in the language.
        PARSE = "Parse",
        /// The source is in the language and not permitted.
        VALIDATION = "Validation",
        /// The script failed.
        RUNTIME = "Runtime",
        /// The run used up what it may use.
        LIMIT = "Limit",
        /// Bytes are not what they should be.
        SERIALIZATION = "Serialization",
        /// The request cannot be fulfilled.
        PROTOCOL = "Protocol",
    }
}

words! {
    /// Which failure: stable, for programs.
    Code {
        /// The source is not in the language.
        PARSE = "parse",
        /// The source is in the language and not permitted.
        VALIDATION = "validation",
        /// An exception that nobody caught.
        RUNTIME = "runtime",
        /// The instruction budget is spent.
        LIMIT_INSTRUCTIONS = "limit_instructions",
        /// The heap is full.
        LIMIT_HEAP = "limit_heap",
        /// Too many things are alive.
        LIMIT_ALLOCATIONS = "limit_allocations",
        /// Too many calls within calls.
        LIMIT_CALL_DEPTH = "limit_call_depth",
        /// Too many host calls wait.
        LIMIT_HOST_CALLS = "limit_host_calls",
        /// The step took too long.
        LIMIT_DEADLINE = "limit_deadline",
        /// The host cancelled the run.
        CANCELLED = "cancelled",
        /// The run waits for something that cannot happen.
        STUCK = "stuck",
        /// A value cannot cross.
        BOUNDARY = "boundary",
        /// Bytes are no program.
        BAD_PROGRAM = "bad_program",
        /// Bytes are no snapshot.
        BAD_SNAPSHOT = "bad_snapshot",
        /// Bytes are of another engine.
        WRONG_ENGINE = "wrong_engine",
        /// The policy lacks a host function that the snapshot holds.
        UNAUTHORIZED_CAPABILITY = "unauthorized_capability",
        /// Key, digest, token and snapshot do not belong together.
        UNAUTHENTICATED = "unauthenticated",
        /// Nothing is kept under this id.
        UNKNOWN_PROGRAM = "unknown_program",
        /// Nothing is kept under this id.
        UNKNOWN_SNAPSHOT = "unknown_snapshot",
        /// Nothing is kept under this id.
        UNKNOWN_POLICY = "unknown_policy",
        /// The id is not that of the bytes.
        ID_MISMATCH = "id_mismatch",
        /// A call is answered that is not outstanding.
        UNKNOWN_CALL = "unknown_call",
        /// Another version of the protocol.
        VERSION = "version",
        /// A member that is needed is not there.
        MISSING = "missing",
        /// A member has the wrong kind of value.
        SHAPE = "shape",
        /// The engine failed.
        INTERNAL = "internal",
    }
}
