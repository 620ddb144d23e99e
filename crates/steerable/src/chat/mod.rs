//! What models, tools, transcripts and hosts talk about: messages, tool calls, results, usage.

mod message;
mod secret;
mod tool;
mod usage;

pub use message::{Image, Message, Part, Role};
pub use secret::Secret;
pub use tool::{ToolCall, ToolResult, ToolSpec};
pub use usage::Usage;

/// A future without a name, so that the rooms do not multiply in the compiler.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
