//! The messages of the dialect, as types: what params say, and how errors, healths and the notifications of streams are written.
//!
//! Everything that is read is read member by member ([`Fields`]), so that an error can name the member and say what it
//! must be; unknown members are ignored. The notifications of streams are written straight into bytes ([`ChunkPen`]).

mod chunk;
mod fields;
mod health;
mod kind;
mod message;
mod requests;
mod session;
mod settings;
mod stream;
mod tool;
mod trace;
mod turn;

pub use chunk::{ChunkPen, Failed, Terminal, TurnEnd, write_terminal};
pub use fields::{Fields, ParamError};
pub use health::{Check, Health, ListenInfo, Ready, platform};
pub use kind::{Kind, MAX_MESSAGE, not_found, storage_failed, with_data};
pub use message::{read_message, read_messages, write_call, write_message};
pub use requests::{
    ForkUntil, MAX_STEER, Privacy, SessionCreate, SessionFork, SessionList, Steer, ToolInvoke, TraceExport,
    TraceFetch, read_record_id, read_session_id, read_stream_id,
};
pub use session::{Session, Timestamp};
pub use settings::{LogLevel, Settings};
pub use stream::{MAX_STREAM_ID, PROVIDER_WORDS, StreamParams, Unsaid};
pub use tool::{descriptor, read_result, read_tool, result_value};
pub use trace::{EventKind, EventStatus, Span, SpanKind, SpanStatus, Trace, TraceEvent, TraceStatus};
pub use turn::{
    Approval, CommandsWish, ContentMode, DEFAULT_MAX_TOOL_CALLS, GrantWishes, SteerMode, TurnParams,
};

/// The version of the protocol, in healths and in `lifecycle.ready`.
pub const PROTOCOL_VERSION: &str = "0.1.0";

/// What a line on standard error begins with that says that the runtime is ready; its health follows.
pub const READY_MARKER: &str = "__SIDECAR_READY__:";
