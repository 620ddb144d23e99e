//! The extensions that this binary can be: `__extension autoreply|fault …`.

use std::process::ExitCode;

use outrigger_sep::reference::{autoreply, fault};

/// Is the extension that the arguments name, if they name one.
pub(crate) fn intercept() -> Option<ExitCode> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["__extension", "autoreply", ..] => Some(autoreply::run(&args[2..])),
        ["__extension", "fault", ..] => Some(fault::run_with(&args[2..], fault::Hands { start })),
        _ => None,
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a misbehaving extension starts processes that nobody supervises"
)]
fn start(args: &[String]) -> std::io::Result<u32> {
    let program = std::env::current_exe()?;
    let child = std::process::Command::new(program).args(["__extension", "fault"]).args(args).spawn()?;
    Ok(child.id())
}
