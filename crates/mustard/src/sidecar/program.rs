//! The process around a conversation: arguments, the box, standard streams, exit codes.
//!
//! Nothing is printed here: [`run`] answers what is to be said, and the executable says it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use outrigger_supervise::sandbox::{Landlock, LandlockStatus, Layer, confine_self};

use super::{Budgets, Surroundings, System, serve};
use crate::protocol::feature::Framing;

/// What `--help` says.
const USAGE: &str = "\
Usage: mustard-sidecar [--jsonl]
  (no option)  length-prefixed binary frames on standard input and output
  --jsonl      one JSON message a line instead
";

/// How much a pipe should hold: enough for most snapshots, and far from what a user may have in pipes altogether.
const PIPE: usize = 256 * 1024;

/// How a process ends, and what it says.
#[derive(Debug, PartialEq, Eq)]
pub struct End {
    /// For standard output.
    pub output: Option<&'static str>,
    /// For standard error.
    pub error: Option<String>,
    /// The exit code.
    pub code: u8,
}

/// Is a sidecar until standard input ends. `arguments` come without the name of the program.
#[must_use]
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> End {
    match invocation(arguments) {
        Invocation::Serve(framing) => match be_a_sidecar(framing) {
            Ok(()) => End { output: None, error: None, code: 0 },
            Err(reason) => End { output: None, error: Some(format!("Error: {reason}\n")), code: 1 },
        },
        Invocation::Help => End { output: Some(USAGE), error: None, code: 0 },
        Invocation::Unknown(argument) => {
            let argument = argument.to_string_lossy();
            let error = format!("Error: unknown argument `{argument}`\n\n{USAGE}");
            End { output: None, error: Some(error), code: 1 }
        }
    }
}

enum Invocation {
    Serve(Framing),
    Help,
    Unknown(OsString),
}

fn invocation(arguments: impl IntoIterator<Item = OsString>) -> Invocation {
    let mut framing = Framing::Binary;
    for argument in arguments {
        if argument == OsStr::new("--jsonl") {
            framing = Framing::Lines;
        } else if argument == OsStr::new("--help") || argument == OsStr::new("-h") {
            return Invocation::Help;
        } else {
            return Invocation::Unknown(argument);
        }
    }
    Invocation::Serve(framing)
}

fn be_a_sidecar(framing: Framing) -> Result<(), String> {
    // Whatever goes wrong inside is answered; standard error is for the end of the process.
    std::panic::set_hook(Box::new(|_| {}));
    let (input, output) =
        streams().map_err(|error| format!("failed to open the standard streams: {error}"))?;
    let surroundings = confined();
    let world = System::new();
    // The engine is ready before the first request asks for it. An image that does not fit is no reason to stop: the engine
    // makes another.
    let _ = crate::image::install();
    serve(input, output, framing, world, Budgets::USUAL, surroundings).map_err(|fatal| fatal.to_string())
}

/// A stream that is looked at for a moment before it is waited for. A processor that falls asleep between two requests takes
/// longer to wake than a script needs to go on, so when the last request came at once the next one is expected at once.
struct Eager {
    input: File,
    soon: bool,
}

/// How long a request may take to count as having come at once, and how long the next one is looked for.
const AT_ONCE: Duration = Duration::from_micros(60);

impl Read for Eager {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let began = Instant::now();
        if self.soon {
            // Whoever shares the processor may be the one who writes, so they go first.
            rustix::thread::sched_yield();
            while began.elapsed() < AT_ONCE && !self.has_something() {
                rustix::thread::sched_yield();
            }
        }
        let count = self.input.read(into);
        self.soon = began.elapsed() < AT_ONCE;
        count
    }
}

impl Eager {
    /// Whether reading would not wait; if that cannot be known, it is tried.
    fn has_something(&self) -> bool {
        let mut waiting = [PollFd::new(&self.input, PollFlags::IN)];
        poll(&mut waiting, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).map_or(true, |ready| ready > 0)
    }
}

/// Standard input and output without the buffers and locks of the library around them.
fn streams() -> io::Result<(Eager, File)> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    grow_pipe(&input);
    grow_pipe(&output);
    Ok((Eager { input: File::from(input), soon: false }, File::from(output)))
}

#[cfg(target_os = "linux")]
fn grow_pipe(pipe: impl AsFd) {
    // What is no pipe, or may not grow, works as well.
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE);
}

#[cfg(not(target_os = "linux"))]
fn grow_pipe(_: impl AsFd) {}

/// Drops every privilege; what is left of the world are two pipes.
fn confined() -> Surroundings {
    let done = confine_self();
    let landlock = match done.landlock {
        Landlock::Applied { abi, status: LandlockStatus::Full } => format!("applied (abi {abi})"),
        Landlock::Applied { abi, status: LandlockStatus::Partial } => format!("partly applied (abi {abi})"),
        Landlock::NotRequested => "off".to_owned(),
        Landlock::Missing { reason } => format!("missing: {reason}"),
    };
    let seccomp = match done.seccomp {
        Layer::Applied => "applied".to_owned(),
        Layer::NotRequested => "off".to_owned(),
        Layer::Missing { reason } => format!("missing: {reason}"),
    };
    Surroundings { landlock, seccomp }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(arguments: &[&str]) -> End {
        run(arguments.iter().map(OsString::from))
    }

    #[test]
    fn help_is_three_lines_wherever_it_is_asked_for() {
        for arguments in [&["--help"][..], &["-h"], &["--jsonl", "--help"], &["--jsonl", "--jsonl", "-h"]] {
            let end = end(arguments);
            assert_eq!(
                (end.output.map(|text| text.lines().count()), end.error, end.code),
                (Some(3), None, 0)
            );
        }
    }

    #[test]
    fn an_argument_that_nobody_knows_is_named() {
        for argument in ["--json", "x", "", "--jsonl=1"] {
            let end = end(&[argument]);
            assert_eq!((end.output, end.code), (None, 1));
            assert!(end.error.unwrap().starts_with(&format!("Error: unknown argument `{argument}`")));
        }
    }
}
