//! The JSON-RPC 2.0 envelope: read by a visitor, judged by a policy, written in one fixed order.
//!
//! Params, results and error data stay the bytes they were ([`serde_json::value::RawValue`]): a passthrough must not
//! re-spell a number or re-order a key. So do ids.

pub mod code;
mod encode;
mod id;
mod message;
mod parse;
mod policy;
mod scan;

pub(crate) use parse::id_member;

pub use code::Code;
pub use encode::{encode_error, encode_notification, encode_request, encode_result};
pub use id::{Id, IdKind};
pub use message::{ErrorObject, Extra, Incoming, Message};
pub use parse::{Defect, Refusal, Shape, parse};
pub use policy::{
    Batch, Duplicates, EnvelopePolicy, ErrorId, Ids, NestingLimit, Strangers, Version, VoidResult,
};
