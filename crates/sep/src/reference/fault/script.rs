//! What the misbehaving extension can be told to do, one step after the other.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One step. A script is a JSON array of them, as in `[{"do":"attach"},{"do":"serve"}]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Connects, and says nothing.
    Connect,
    /// Prints where the host listens for it.
    Where,
    /// Connects if need be, and attaches; with another token, session or method if one is given.
    Attach {
        /// Instead of the right token.
        token: Option<String>,
        /// Instead of the right session.
        session: Option<String>,
        /// Instead of `host.attach`.
        method: Option<String>,
    },
    /// Connects a second time and attaches with the token that was used already.
    ReplayToken,
    /// Changes how requests of the host are answered from here on.
    Manners(Manners),
    /// Answers the host's requests: until it says goodbye, for so many milliseconds, or until `times` requests for the method
    /// `until` have been answered (or left unanswered, as the manners say).
    Serve {
        /// For so long.
        ms: Option<u64>,
        /// Until this was asked for.
        until: Option<String>,
        /// So often; once if nothing is said.
        times: Option<u32>,
    },
    /// Makes a request, prints the answer.
    Call {
        /// What is called.
        method: String,
        /// With what.
        params: Option<Value>,
    },
    /// Sends a notification.
    Notify {
        /// What is said.
        method: String,
        /// With what.
        params: Option<Value>,
    },
    /// Makes many requests without waiting, then waits for all the answers, and prints how many of which sort there were.
    Flood {
        /// What is called.
        method: String,
        /// With what.
        params: Option<Value>,
        /// So often.
        times: u32,
    },
    /// Makes many requests and never looks at the answers.
    FloodDeaf {
        /// What is called.
        method: String,
        /// With what.
        params: Option<Value>,
        /// So often.
        times: u32,
    },
    /// Makes two requests with the same id, without waiting, and prints both answers.
    DuplicateId {
        /// What is called.
        method: String,
    },
    /// Answers requests that nobody made.
    UnknownResponses {
        /// So often.
        times: u32,
    },
    /// Writes this line.
    Raw {
        /// The line.
        text: String,
        /// So often; once if nothing is said.
        times: Option<u32>,
    },
    /// Writes bytes, given as hexadecimal digits.
    Bytes {
        /// The digits.
        hex: String,
    },
    /// Writes lines that are no JSON.
    Garbage {
        /// So many.
        times: u32,
    },
    /// Writes a request that has this many bytes before its newline.
    Oversize {
        /// So many.
        bytes: usize,
        /// So often; once if nothing is said.
        times: Option<u32>,
    },
    /// Writes so many bytes without ever ending the line.
    Endless {
        /// So many.
        bytes: usize,
    },
    /// Writes a request whose params nest this deep.
    Deep {
        /// So deep.
        levels: usize,
    },
    /// Reads what the host sends until nothing has come for so many milliseconds, and prints it.
    Listen {
        /// So long.
        ms: u64,
    },
    /// Closes the channel and stays.
    Close,
    /// Does nothing, and reads nothing.
    Sleep {
        /// For so long.
        ms: u64,
    },
    /// Does nothing for ever.
    Hang,
    /// Leaves with this code.
    Exit {
        /// The code.
        code: u8,
    },
    /// Crashes.
    Abort,
    /// Stays when it is asked by signal to leave. Wherever it is in the script, it holds from the beginning.
    IgnoreSigterm,
    /// Stays when the host has gone. Wherever it is in the script, it holds from the beginning.
    IgnoreLifeline,
    /// Does these steps in the first `times` processes only; the count is kept in the data directory.
    First {
        /// So often.
        times: u32,
        /// What is done.
        steps: Vec<Step>,
    },
    /// Does these steps again and again.
    Repeat {
        /// So often.
        times: u32,
        /// What is done.
        steps: Vec<Step>,
    },
    /// Leaves its session and process group.
    Setsid,
    /// Starts copies of itself that follow another script and know no host.
    Start {
        /// What they do.
        script: Vec<Step>,
        /// So many; one if nothing is said.
        times: Option<u32>,
    },
    /// Starts copies of itself until it may not, or until there are this many; each lives for half a minute at most.
    Bomb {
        /// So many.
        most: u32,
    },
    /// Takes so much memory, uses it, and keeps it.
    Eat {
        /// So much.
        bytes: usize,
    },
    /// Uses a processor.
    Spin {
        /// For so long.
        ms: u64,
    },
    /// Reads a file, and prints whether it could.
    Open {
        /// Which.
        path: String,
    },
    /// Writes a file, and prints whether it could.
    Create {
        /// Which.
        path: String,
    },
    /// Connects by TCP, and prints whether it could.
    Tcp {
        /// Where.
        to: String,
    },
    /// Sends a datagram, and prints whether it could.
    Udp {
        /// Where.
        to: String,
    },
    /// Connects to a Unix socket, and prints whether it could.
    Unix {
        /// Where.
        path: String,
    },
    /// Sends a signal, and prints whether it could.
    Signal {
        /// Whom to: a number, or the parent if nothing is said.
        pid: Option<i32>,
        /// Which.
        signal: i32,
    },
    /// Prints the environment, the descriptors and the process ids.
    Look,
    /// Prints this line.
    Print {
        /// The line.
        text: String,
    },
    /// Prints so many bytes without a newline.
    PrintFlood {
        /// So many.
        bytes: usize,
        /// To standard error instead of standard output.
        stderr: Option<bool>,
    },
}

/// How requests of the host are answered. What is not given stays as it is.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Manners {
    /// The answer to `sep.initialize`.
    pub initialize: Option<Manner>,
    /// The version that is chosen; the highest one that the host offers if nothing is said. It need not be a version.
    pub version: Option<String>,
    /// The answer to `sep.health`.
    pub health: Option<Manner>,
    /// The answer to `sep.event`.
    pub event: Option<Manner>,
    /// The answer to `sep.action`.
    pub action: Option<Manner>,
    /// The answer to `sep.shutdown`. An extension that answers well leaves afterwards.
    pub shutdown: Option<Manner>,
}

/// How one sort of request is answered.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Manner {
    /// As it should be.
    Well,
    /// Not at all.
    Never,
    /// As it should be, after so many milliseconds in which nothing else is answered.
    Slow(u64),
    /// With this result.
    Result(Value),
    /// With an error of this code.
    Error(i64),
    /// With a line that is no JSON.
    Garbage,
    /// As it should be; the process crashes afterwards.
    ThenCrash,
    /// By crashing.
    Crash,
    /// As it should be; the process stays for ever afterwards and answers nothing more.
    ThenHang,
}

/// A script as text, or the default one: attach and serve.
pub(super) fn read(text: Option<&str>) -> Result<Vec<Step>, serde_json::Error> {
    match text {
        Some(text) => serde_json::from_str(text),
        None => Ok(vec![
            Step::Attach { token: None, session: None, method: None },
            Step::Serve { ms: None, until: None, times: None },
        ]),
    }
}

/// Whether a step is in the script, at whatever depth.
pub(super) fn has(script: &[Step], wanted: fn(&Step) -> bool) -> bool {
    script.iter().any(|step| match step {
        Step::First { steps, .. } | Step::Repeat { steps, .. } => has(steps, wanted),
        step => wanted(step),
    })
}
