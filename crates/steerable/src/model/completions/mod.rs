//! Chat completions: OpenAI's, Ollama's, and everybody's who speaks like them.

mod decode;
mod encode;

pub(super) use decode::Decoder;
pub(super) use encode::{address, body};
