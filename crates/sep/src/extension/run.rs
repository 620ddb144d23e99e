//! Makes a process an extension.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::api::Extension;
use super::bootstrap::Bootstrap;
use super::conduct::{Conductor, Ending, Lifeline};
use super::exit;
use super::lanes::begin;
use super::link::Link;

/// How long a process without a host may last; the contract says two seconds.
const ORPHAN_LIFE: Duration = Duration::from_millis(1700);

/// Is this extension until the host asks it to leave, or has gone. To be called once, from `main`, whose result it is.
///
/// The code says how it went: 0 when the host asked for the end or has gone, otherwise one of [`exit`].
#[must_use]
pub fn run(extension: impl Extension) -> ExitCode {
    if std::env::var_os("SEP_HOST").is_none() {
        return leave(
            exit::USAGE,
            "this program is an extension and is started by its host, which speaks to it over a channel of its own",
        );
    }
    let bootstrap = match Bootstrap::read(&mut io::stdin().lock()) {
        Ok(bootstrap) => bootstrap,
        Err(error) => return leave(exit::USAGE, &error.to_string()),
    };
    let conductor =
        Link::connect(&bootstrap.endpoint).and_then(|link| Conductor::new(Arc::new(extension), link));
    let conductor = match conductor {
        Ok(conductor) => conductor,
        Err(error) => return leave(exit::UNAVAILABLE, &format!("the host cannot be reached: {error}")),
    };
    let lifeline = conductor.lifeline();
    if let Err(error) = begin("sep-lifeline", move || watch(&lifeline)) {
        return leave(exit::SOFTWARE, &format!("no thread to watch the host with: {error}"));
    }
    match conductor.conduct(&bootstrap.token, &bootstrap.session) {
        Ending::Asked | Ending::HostGone => ExitCode::SUCCESS,
        Ending::Refused(why) => leave(exit::UNAVAILABLE, &format!("the host refused the attach: {why}")),
        Ending::Incompatible(why) => leave(exit::PROTOCOL, &format!("no common version: {why}")),
        Ending::NotConfigured(why) => leave(exit::CONFIG, &why),
        Ending::Closed(why) => leave(exit::IO, &why),
    }
}

/// Waits for the end of standard input: the host has gone. Whatever handlers do then, the process does not outlast it long.
fn watch(lifeline: &Lifeline) {
    let mut nothing = [0; 64];
    loop {
        match io::stdin().read(&mut nothing) {
            Ok(0) => break,
            Err(error) if error.kind() != io::ErrorKind::Interrupted => break,
            Ok(_) | Err(_) => {}
        }
    }
    lifeline.cut();
    thread::sleep(ORPHAN_LIFE);
    std::process::exit(0);
}

fn leave(code: u8, why: &str) -> ExitCode {
    // Standard error is a log of the host, if there is one.
    let _ = writeln!(io::stderr(), "{why}");
    ExitCode::from(code)
}
