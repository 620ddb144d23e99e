//! Messages: Anthropic's dialect.

mod decode;
mod encode;

pub(super) use decode::Decoder;
pub(super) use encode::{address, body};
