//! An extension that misbehaves on request, so that hosts can be tested against everything a real one might do.
//!
//! What it does is a script: a JSON array of [`Step`]s, given as the last argument. What it finds out is printed, one JSON object
//! a line. Without a script it attaches and serves.

mod attempt;
mod channel;
mod puppet;
mod script;

pub use script::{Manner, Manners, Step};

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::thread;

use crate::extension::{Bootstrap, exit};

/// What the program around the library lends to the script: starting copies of itself is not the library's to do.
#[derive(Clone, Copy)]
pub struct Hands {
    /// Starts this very program as a fault extension with these arguments, and says which process it is.
    pub start: fn(&[String]) -> io::Result<u32>,
}

/// Follows the script in `args`; steps that start processes fail.
#[must_use]
pub fn run(args: &[String]) -> ExitCode {
    run_with(
        args,
        Hands { start: |_| Err(io::Error::new(io::ErrorKind::Unsupported, "this program starts nothing")) },
    )
}

/// Follows the script in `args`. With `--free` before the script no host is expected.
#[must_use]
pub fn run_with(args: &[String], hands: Hands) -> ExitCode {
    let (free, text) = match args {
        [] => (false, None),
        [flag] if flag == "--free" => (true, None),
        [flag, text] if flag == "--free" => (true, Some(text.as_str())),
        [text] => (false, Some(text.as_str())),
        _ => return complain("expected at most one script", exit::USAGE),
    };
    let script = match script::read(text) {
        Ok(script) => script,
        Err(error) => return complain(&format!("the script cannot be read: {error}"), exit::USAGE),
    };
    if script::has(&script, |step| matches!(step, Step::IgnoreSigterm)) {
        // Threads that begin later do as their parent does, so this must come before all of them.
        let mut signals = nix::sys::signal::SigSet::empty();
        signals.add(nix::sys::signal::Signal::SIGTERM);
        if let Err(error) = signals.thread_block() {
            return complain(&format!("SIGTERM cannot be blocked: {error}"), exit::SOFTWARE);
        }
    }
    let bootstrap = match free {
        true => None,
        false => match Bootstrap::read(&mut io::stdin().lock()) {
            Ok(bootstrap) => Some(bootstrap),
            Err(error) => return complain(&error.to_string(), exit::USAGE),
        },
    };
    if bootstrap.is_some() && !script::has(&script, |step| matches!(step, Step::IgnoreLifeline)) {
        thread::spawn(|| {
            let mut rest = [0];
            while io::stdin().read(&mut rest).is_ok_and(|got| got > 0) {}
            std::process::exit(0);
        });
    }
    puppet::Puppet::new(bootstrap, hands).follow(&script)
}

/// A script as the argument that says it.
#[must_use]
pub fn argument(script: &[Step]) -> String {
    serde_json::to_string(script).unwrap_or_default()
}

fn complain(why: &str, code: u8) -> ExitCode {
    let _ = writeln!(io::stderr(), "fault extension: {why}");
    ExitCode::from(code)
}
