//! The integration tests of this crate, one binary, which is also its own launcher, its own misbehaving children and its
//! own hosts to be killed.

mod driver;
mod driver_flood;
mod driver_kit;
mod driver_session;
mod launch;
mod launch_death;
mod launch_kit;
mod launch_leftovers;
mod launch_spare;
mod misbehave;
mod sandbox;
mod state;
mod state_laws;
mod state_script;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// Functions as trials, each under its own name.
macro_rules! trials {
    ($($name:ident),* $(,)?) => {
        vec![$(libtest_mimic::Trial::test(stringify!($name), || {
            $name();
            Ok(())
        })),*]
    };
}
use trials;

fn main() -> ExitCode {
    if let Some(code) = outrigger_supervise::launch::intercept() {
        return code;
    }
    let args: Vec<String> = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    match args.get(1).map(String::as_str) {
        Some("__child") => return misbehave::child(&args[2..]),
        Some("__host") => return launch_death::host(&args[2..]),
        Some(_) | None => {}
    }
    let launching = [
        launch::trials(),
        launch_death::trials(),
        launch_leftovers::trials(),
        launch_spare::trials(),
        sandbox::trials(),
    ];
    let living = [
        state::trials(),
        state_laws::trials(),
        driver::trials(),
        driver_session::trials(),
        driver_flood::trials(),
    ];
    let trials: Vec<Trial> = launching.into_iter().chain(living).flatten().collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
