//! The integration tests of this crate, one binary, which is also its own launcher and its own extensions.

mod kit_roles;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// Functions as trials, each under its own name.
#[expect(unused_macros, reason = "the first room with integration tests uses it")]
macro_rules! trials {
    ($($name:ident),* $(,)?) => {
        vec![$(libtest_mimic::Trial::test(stringify!($name), || {
            $name();
            Ok(())
        })),*]
    };
}

fn main() -> ExitCode {
    if let Some(code) = outrigger_supervise::launch::intercept() {
        return code;
    }
    if let Some(code) = kit_roles::intercept() {
        return code;
    }
    let trials: Vec<Trial> = Vec::new();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
