//! The integration tests of this crate, one binary, which is also its own launcher and its own sidecar.

/// Functions as trials, each under its own name.
macro_rules! trials {
    ($($name:ident),* $(,)?) => {
        vec![$(libtest_mimic::Trial::test(stringify!($name), || {
            $name();
            Ok(())
        })),*]
    };
}

mod host;
mod host_fake;
mod host_kit;
mod real;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    if let Some(code) = outrigger_supervise::launch::intercept() {
        return code;
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.split_first() {
        Some((role, words)) if role == "__host_child" => return host_fake::child(words),
        Some(_) | None => {}
    }
    let rooms = [host::trials(), real::trials()];
    let trials: Vec<Trial> = rooms.into_iter().flatten().collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
