//! The lines of the conversation as types: requests and their parameters, events, and the words of both.

mod send;
mod words;

pub use send::{AgentProxy, ContextQuery, SendMessage, SlashQuery, Steer, TitleRequest};
pub use words::{Effort, PermissionMode, ProviderName};
