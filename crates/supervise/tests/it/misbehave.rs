//! The misbehaving child (`__child <behaviour> …`) and the hosts that are killed (`__host <scenario> …`).

use std::process::ExitCode;

/// Plays one child. Unknown behaviours end with code 64, which no test expects.
pub(crate) fn child(args: &[String]) -> ExitCode {
    match args.first().map(String::as_str) {
        Some("exit") => ExitCode::from(
            args.get(1).and_then(|code| code.parse::<u8>().ok()).expect("an exit code after `exit`"),
        ),
        _ => ExitCode::from(64),
    }
}

/// Plays one host.
pub(crate) fn host(_args: &[String]) -> ExitCode {
    ExitCode::from(64)
}
