//! Tools: what a model can do, each within its grants; the sidecar's own, and those of MCP servers.
//!
//! # Theory of operation
//!
//! A [`Tool`] says what it is ([`ToolSpec`](crate::chat::ToolSpec)), how dangerous it is ([`Mode`]) and does what it is asked for at a
//! [`Place`]: with these [`Grants`], this list of things to do, this way to call other tools. It answers with a result, whatever
//! happens; a call that reaches beyond its grants gets a result that [`denial`] tells apart. Whoever calls a tool has judged its
//! mode before (consent, budgets, approvals); the tool itself judges what it touches, because only it knows.
//!
//! A [`Toolbox`] holds the tools of a turn. Nothing is started before it is needed: not a process, not a thread, not a client.
//! Everything has a bound: bytes read, files visited, seconds, output. Dropping the future of a call stops it, with
//! every process that it started.
//!
//! * `files` opens below a root and nowhere else, however links and folders change meanwhile.
//! * `command` runs a program in the supervisor's strict box, without network.
//! * `fetch` judges every host, every redirect and every address that it connects to.
//! * `script` runs a program of the model in a mustard sidecar, whose host calls come back here as calls of tools.
//! * [`mcp`] brings the tools of other servers.

mod arguments;
mod command;
mod fetch;
mod files;
mod grants;
pub mod mcp;
mod outcome;
pub mod schema;
mod script;
mod todo;
mod tool;
mod toolbox;

pub use grants::{Commands, Grants, Hosts, Stated};
pub use outcome::{Denial, denial, denied, for_model};
pub use todo::{TodoItem, TodoList, TodoStatus};
pub use tool::{Dispatch, Mode, NoDispatch, Place, Tool, Turns, mode_of};
pub use toolbox::{NAMES, Programs, Toolbox};
