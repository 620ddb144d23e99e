//! The integration tests of this crate, one binary, which is also its own launcher and its own children.

/// Functions as trials, each under its own name.
macro_rules! trials {
    ($($name:ident),* $(,)?) => {
        vec![$(libtest_mimic::Trial::test(stringify!($name), || {
            $name();
            Ok(())
        })),*]
    };
}

mod check;
mod govern;
mod host;
mod host_kit;
mod host_orphans;
mod hostile;
mod hostile_flood;
mod protocol;
mod receipt;
mod sidecar;
mod sidecar_children;
mod sidecar_kit;
mod workspace;
mod workspace_apply;
mod workspace_hostile;
mod workspace_kit;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    if let Some(code) = outrigger_supervise::launch::intercept() {
        return code;
    }
    let args: Vec<String> = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    match args.get(1).map(String::as_str) {
        Some("__child") => return hostile_flood::child(&args[2..]),
        Some("__sidecar") => return sidecar_children::child(&args[2..]),
        Some("__govern") => return govern::process(&args[2..]),
        Some("__stage") => return workspace_hostile::stage(&args[2..]),
        Some("__host") => return host_orphans::host(),
        Some(_) | None => {}
    }
    let rooms = [
        govern::trials(),
        check::trials(),
        host::trials(),
        host_orphans::trials(),
        hostile::trials(),
        hostile_flood::trials(),
        protocol::trials(),
        receipt::trials(),
        sidecar::trials(),
        sidecar_children::trials(),
        workspace::trials(),
        workspace_apply::trials(),
        workspace_hostile::trials(),
    ];
    let trials: Vec<Trial> = rooms.into_iter().flatten().collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
