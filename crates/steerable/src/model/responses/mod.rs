//! Responses: OpenAI's newer dialect, which x.ai speaks too.

mod decode;
mod encode;

pub(super) use decode::Decoder;
pub(super) use encode::{address, body};
