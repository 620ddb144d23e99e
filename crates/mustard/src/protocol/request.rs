//! What a host asks for: compile, start, resume, and the methods of the extensions.

use std::borrow::Cow;

use outrigger_vm::boundary::Plain;

use super::feature::Features;
use super::limits::Limits;
use super::value::ValueError;

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub struct Request<'a> {
    /// Chosen by the host, echoed, and otherwise of no meaning.
    pub id: u64,
    /// What is asked for.
    pub method: Method<'a>,
    /// A program for `start`, a snapshot for `resume` and `inspect`; empty if there is none.
    pub blob: Cow<'a, [u8]>,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Method<'a> {
    /// Make a program of a source.
    Compile(Compile<'a>),
    /// Run a program to its end or its first host call.
    Start(Start<'a>),
    /// Answer a host call and run on.
    Resume(Resume<'a>),
    /// Say what there is, and switch extensions on.
    Hello(Hello),
    /// Forget what is cached.
    Release(Release),
    /// Say what a snapshot waits for.
    Inspect(Claim<'a>),
}

/// `compile`.
#[derive(Clone, Debug, PartialEq)]
pub struct Compile<'a> {
    /// The script.
    pub source: Cow<'a, str>,
    /// Whether `return` may end the script (extension `return`).
    pub lenient_return: bool,
}

/// `start`.
#[derive(Clone, Debug, PartialEq)]
pub struct Start<'a> {
    /// A program that the sidecar has seen before; not needed with bytes.
    pub program_id: Option<Cow<'a, str>>,
    /// Global variables.
    pub inputs: Vec<(String, Plain)>,
    /// Global functions that suspend.
    pub capabilities: Vec<String>,
    /// What the run may use.
    pub limits: Limits,
    /// Whether to measure.
    pub profile: bool,
    /// How long the step may take (extension `deadline`).
    pub deadline_ms: Option<u64>,
    /// The seed of `Math.random` (extension `world`).
    pub seed: Option<u64>,
    /// What the clock says (extension `world`).
    pub now_ms: Option<f64>,
}

/// `resume`.
#[derive(Clone, Debug, PartialEq)]
pub struct Resume<'a> {
    /// Which snapshot, and by what right.
    pub claim: Claim<'a>,
    /// The answer.
    pub payload: Payload,
    /// Whether to measure.
    pub profile: bool,
    /// How long the step may take (extension `deadline`).
    pub deadline_ms: Option<u64>,
    /// What the clock says (extension `world`).
    pub now_ms: Option<f64>,
}

/// Which snapshot, and by what right: a policy in full, or the id of one with the authentication beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim<'a> {
    /// A snapshot that the sidecar has seen before; not needed with bytes.
    pub snapshot_id: Option<Cow<'a, str>>,
    /// The policy in full.
    pub policy: Option<Policy<'a>>,
    /// A policy that the sidecar has seen before.
    pub policy_id: Option<Cow<'a, str>>,
    /// The authentication for it.
    pub auth: Option<Auth<'a>>,
}

/// A policy in full. Everything is optional to read; what is needed is asked for later.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy<'a> {
    /// The host functions that a snapshot may hold.
    pub capabilities: Vec<String>,
    /// What the run may use.
    pub limits: Option<Limits>,
    /// The snapshot that it is for.
    pub snapshot_id: Option<Cow<'a, str>>,
    /// The key in base64.
    pub snapshot_key_base64: Option<Cow<'a, str>>,
    /// The digest of the key.
    pub snapshot_key_digest: Option<Cow<'a, str>>,
    /// The token for the snapshot.
    pub snapshot_token: Option<Cow<'a, str>>,
}

/// Authentication beside a `policy_id`.
#[derive(Clone, Debug, PartialEq)]
pub struct Auth<'a> {
    /// The key in base64.
    pub snapshot_key_base64: Cow<'a, str>,
    /// The digest of the key.
    pub snapshot_key_digest: Cow<'a, str>,
    /// The token for the snapshot.
    pub snapshot_token: Cow<'a, str>,
}

/// What a run is resumed with.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// What the first outstanding call answers or throws.
    Answer(Answer),
    /// The run is over.
    Cancelled,
    /// Answers to calls by their ids (extension `batch`).
    Answers(Vec<(u64, Answer)>),
}

/// What a host call answers or throws.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It answers a value.
    Value(Plain),
    /// It throws an error.
    Error(HostError),
}

/// An error that a host call throws.
#[derive(Clone, Debug, PartialEq)]
pub struct HostError {
    /// `name` of the error object.
    pub name: String,
    /// `message` of the error object.
    pub message: String,
    /// `code` of the error object, if it is to have one.
    pub code: Option<String>,
    /// `details` of the error object, if it is to have any.
    pub details: Option<Plain>,
}

/// `hello`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The extensions to switch on.
    pub features: Vec<String>,
    /// How large the following requests may be.
    pub max_frame_bytes: Option<u64>,
}

impl Hello {
    /// Asks for these extensions.
    #[must_use]
    pub fn asking(features: Features, max_frame_bytes: Option<u64>) -> Hello {
        let features = features.iter().map(|feature| feature.name().to_owned()).collect();
        Hello { features, max_frame_bytes }
    }
}

/// `release`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Ids of programs.
    pub programs: Vec<String>,
    /// Ids of snapshots.
    pub snapshots: Vec<String>,
    /// Ids of policies.
    pub policies: Vec<String>,
}

/// Why a message is not a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// It cannot be answered: it is not JSON, not an object, has no usable id, an unknown method, or a member twice.
    #[error("{0}")]
    Invalid(String),
    /// It is of another version.
    #[error("unsupported sidecar protocol version {got}; expected 2")]
    Version {
        /// Whom to answer.
        id: u64,
        /// The version as it was spelled, or `(none)`.
        got: String,
    },
    /// A member is missing or has the wrong kind of value.
    #[error("invalid request: {what}")]
    Shape {
        /// Whom to answer.
        id: u64,
        /// Which member, and what it should be.
        what: String,
    },
    /// A structured value cannot be one.
    #[error("{error}")]
    Value {
        /// Whom to answer.
        id: u64,
        /// Where it is.
        place: String,
        /// What is wrong with it.
        error: ValueError,
    },
}
