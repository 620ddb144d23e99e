//! The child's end: compile, start, resume, over two streams.
//!
//! # Theory of operation
//!
//! [`serve`] reads a request, answers it, and reads the next, until the stream ends. It blocks, has one thread, and knows no
//! process: [`program`] is what makes one of it, with arguments, exit codes and a box.
//!
//! * `input` takes requests out of a stream, never more of them than the limit · `output` writes each response at once
//! * `session` one conversation and its methods · `run` from a program or a snapshot to the next host call
//! * `claim` which snapshot is meant and by what right · `keep`, `lru` what is kept, within budgets
//! * `problem` how a failure is said · `world` clock and randomness
//!
//! A machine that stopped at a host call stays where it is until the first `resume` takes it; after that, and when it had
//! to make room, its snapshot is restored. Nobody can tell which it was but by the time it takes: the policy is asserted on
//! both.
//!
//! ```
//! use outrigger_mustard::protocol::feature::Framing;
//! use outrigger_mustard::sidecar::{Budgets, Surroundings, System, serve};
//!
//! let request = b"{\"protocol_version\":2,\"id\":1,\"method\":\"compile\",\"source\":\"1 +\"}\n";
//! let nobody = Surroundings { landlock: "off".into(), seccomp: "off".into() };
//! let mut said = Vec::new();
//! serve(&request[..], &mut said, Framing::Lines, System::new(), Budgets::USUAL, nobody)?;
//! assert!(String::from_utf8(said)?.starts_with("{\"protocol_version\":2,\"id\":1,\"ok\":false,\"error\":\"Parse: "));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod claim;
mod input;
mod keep;
mod lru;
mod output;
mod problem;
pub mod program;
mod run;
mod session;
mod world;

pub use keep::Budgets;
pub use session::Surroundings;
pub use world::{System, World};

use std::io::{self, Read, Write};

use outrigger_wire::frame::FramePart;

use crate::protocol::feature::Framing;
use crate::protocol::request::Request;
use input::Input;
use output::Output;
use session::Session;

/// Why a conversation cannot go on. The end of the input between two requests is none of these.
#[derive(Debug, thiserror::Error)]
pub enum Fatal {
    /// The stream of requests failed.
    #[error("failed to read a request: {0}")]
    Read(io::Error),
    /// The stream of responses failed: nobody listens.
    #[error("failed to write a response: {0}")]
    Write(io::Error),
    /// A frame announces more than it may have. Nothing of it was read.
    #[error("request frame exceeds maximum size of {limit} bytes (header {header}, blob {blob})")]
    FrameTooLarge {
        /// The limit.
        limit: u64,
        /// The announced length of the header.
        header: u32,
        /// The announced length of the blob.
        blob: u32,
    },
    /// A line is longer than it may be.
    #[error("request line exceeds maximum size of {limit} bytes")]
    LineTooLarge {
        /// The limit.
        limit: u64,
    },
    /// The stream ended inside a request.
    #[error("unexpected EOF while reading {0}")]
    Truncated(FramePart),
    /// A header is not text.
    #[error("invalid request header: it is not valid UTF-8")]
    NotUtf8,
    /// A message is not a request that could be answered.
    #[error("invalid request header: {0}")]
    Invalid(String),
}

/// Answers requests until the input ends.
///
/// # Errors
/// When the streams fail or what comes in is not a request at all. Everything else is answered.
pub fn serve(
    input: impl Read,
    output: impl Write,
    framing: Framing,
    world: impl World,
    budgets: Budgets,
    surroundings: Surroundings,
) -> Result<(), Fatal> {
    let mut input = Input::new(input);
    let mut output = Output::new(output, framing);
    let mut session = Session::new(world, budgets, surroundings);
    loop {
        let limit = session.max_request();
        let answered = match framing {
            Framing::Binary => {
                let Some(frame) = input.frame(limit)? else { return Ok(()) };
                session.answer(Request::decode(frame.header, frame.blob, session.features))
            }
            Framing::Lines => {
                let Some(line) = input.line(limit)? else { return Ok(()) };
                session.answer(Request::decode_line(line, session.features))
            }
        };
        let (response, blob) = answered.map_err(Fatal::Invalid)?;
        output.send(&response, &blob)?;
    }
}
