//! MCP servers as tools: started or reached when a turn first names them, kept for the session, reached again when they
//! went away.

mod http;
mod link;
mod message;
mod name;
mod server;
mod servers;
mod spec;
mod stdio;
mod tool;

pub use servers::{Connected, McpError, Offer, ServerHealth, Servers, Since};
pub use spec::{McpSpec, McpSpecError, Reach};
