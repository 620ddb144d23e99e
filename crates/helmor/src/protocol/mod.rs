//! The lines of the conversation as types: requests and their parameters, events, and the words of both.
//!
//! [`Incoming`] is how the child reads a line and `read` of each method how it reads the parameters; `to_params` and
//! [`request_line`] are how a host writes them. [`Event`] is how a host reads a line of the child. What an agent says is
//! text that is passed on, with the id of the request at its end.

mod event;
mod incoming;
mod methods;
mod params;
mod requests;
mod send;
mod words;

pub use event::{Event, EventError, Said};
pub use incoming::Incoming;
pub use methods::{
    GenerateTitle, GetContextUsage, ListModels, ListSlashCommands, MutateGoal, PermissionResponse,
    SteerSession, StopSession, UpdateConfig, UserInputResponse,
};
pub use params::ParamError;
pub use requests::{host_response_line, request_line};
pub use send::{AgentProxy, ContextQuery, SendMessage, SlashQuery, Steer, TitleRequest};
pub use words::{Effort, PermissionMode, ProviderName};
