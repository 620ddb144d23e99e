//! What an envelope is allowed to be: the questions that JSON-RPC leaves to its users, and the dialects' answers.

/// How a line becomes a message. There is no default; take a constant below or answer all eight questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvelopePolicy {
    /// How deep arrays and objects may nest, the envelope included.
    pub nesting: NestingLimit,
    /// What becomes of an object that has a key twice.
    pub duplicates: Duplicates,
    /// What the `jsonrpc` member must be.
    pub version: Version,
    /// Whether an array of messages is a batch.
    pub batch: Batch,
    /// What an id may be.
    pub ids: Ids,
    /// What becomes of top-level members that JSON-RPC does not know.
    pub strangers: Strangers,
    /// Whether a success may lack its `result`.
    pub void_result: VoidResult,
    /// Whether an error may lack its `id`.
    pub error_id: ErrorId,
}

/// How deep arrays and objects may nest. `[]` is one deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NestingLimit(pub u16);

/// What becomes of an object that has a key twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// The last one counts, as in most JSON parsers.
    LastWins,
    /// Refused among the members of the envelope, where two readers could disagree about what is called.
    RefuseInEnvelope,
    /// Refused in every object of the message. Everything is decoded for this, so lone surrogates and numbers beyond a
    /// double are refused too.
    RefuseEverywhere,
}

/// What the `jsonrpc` member must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Exactly `"2.0"`.
    Required,
    /// Absent, or exactly `"2.0"`.
    OptionalButRight,
    /// Anything; it is not looked at.
    Unchecked,
}

/// Whether an array of messages is a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// No.
    Refuse,
    /// Yes, of at most this many messages.
    Accept {
        /// The most messages in one batch.
        most: usize,
    },
}

/// What an id may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ids {
    /// Any JSON value; it is echoed as it came.
    Any,
    /// A number, a string or null, as JSON-RPC says.
    Standard,
    /// A string of 1 to 64 bytes or an integer that a double holds exactly, so that every language can echo it.
    Portable,
}

/// What becomes of top-level members that JSON-RPC does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strangers {
    /// They are dropped.
    Ignore,
    /// They are kept, in order, beside the message.
    Keep,
}

/// Whether a success may lack its `result`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoidResult {
    /// A message with an id and nothing else is invalid.
    Refuse,
    /// It is a success without a value. Some runtimes drop null members when they write.
    MayBeMissing,
}

/// Whether an error may lack its `id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorId {
    /// It must be there, `null` if need be.
    Required,
    /// It may be missing. Some runtimes drop null members when they write.
    MayBeMissing,
}

impl EnvelopePolicy {
    /// JSON-RPC 2.0 by the letter, with batches of at most 1024 messages.
    pub const STANDARD: Self = Self {
        nesting: NestingLimit(128),
        duplicates: Duplicates::RefuseInEnvelope,
        version: Version::Required,
        batch: Batch::Accept { most: 1024 },
        ids: Ids::Standard,
        strangers: Strangers::Ignore,
        void_result: VoidResult::Refuse,
        error_id: ErrorId::Required,
    };

    /// What a steerable sidecar accepts from its host: `jsonrpc` may be missing, any id is echoed.
    pub const STEERABLE_SIDECAR: Self = Self {
        version: Version::OptionalButRight,
        ids: Ids::Any,
        duplicates: Duplicates::LastWins,
        ..Self::STANDARD
    };

    /// What a steerable host accepts from its sidecar, which drops null members when it writes.
    pub const STEERABLE_HOST: Self = Self {
        batch: Batch::Refuse,
        void_result: VoidResult::MayBeMissing,
        error_id: ErrorId::MayBeMissing,
        ..Self::STEERABLE_SIDECAR
    };

    /// SEP, both directions: nothing that two readers could understand differently.
    pub const SEP: Self = Self {
        nesting: NestingLimit(64),
        duplicates: Duplicates::RefuseEverywhere,
        version: Version::Required,
        batch: Batch::Refuse,
        ids: Ids::Portable,
        strangers: Strangers::Ignore,
        void_result: VoidResult::Refuse,
        error_id: ErrorId::Required,
    };
}
