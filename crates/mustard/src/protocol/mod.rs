//! The messages, as types: what both ends read and write, in both framings.
//!
//! * [`request`] and [`response`]: what is said. Each end has its own way there: `read_request` and `write_response` are the
//!   sidecar's, `write_request` and `read_response` the host's.
//! * [`value`]: structured values as tagged JSON.
//! * [`ids`]: digests, keys and tokens. [`limits`]: limits as they are sent, and the id of a policy.
//! * [`feature`]: what a `hello` can switch on.
//! * `json`, `fields`, `write`: JSON without trees, because every hop of every run goes through here.
//!
//! ```
//! use outrigger_mustard::protocol::feature::{Features, Framing};
//! use outrigger_mustard::protocol::request::{Compile, Method, Request};
//!
//! let method = Method::Compile(Compile { source: "1 + 1".into(), lenient_return: false });
//! let request = Request { id: 7, method, blob: Vec::new().into() };
//! let mut line = Vec::new();
//! request.encode(Framing::Lines, &mut line);
//! let line = String::from_utf8(line)?;
//! assert_eq!(line, "{\"protocol_version\":2,\"id\":7,\"method\":\"compile\",\"source\":\"1 + 1\"}\n");
//! assert_eq!(Request::decode_line(&line, Features::NONE)?, request);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod feature;
mod fields;
pub mod ids;
mod json;
pub mod limits;
mod read_request;
mod read_response;
pub mod request;
pub mod response;
pub mod value;
pub(crate) mod write;
mod write_request;
mod write_response;

pub use json::{HalfPair, Malformed};
pub use read_response::ResponseError;
