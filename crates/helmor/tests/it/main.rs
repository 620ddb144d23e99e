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

mod acp;
mod acp_kit;
mod acp_real;
mod acp_stop;
mod acp_trouble;
mod acp_wire;
mod check;
mod claude;
mod claude_kit;
mod claude_settings;
mod claude_stop;
mod claude_wire;
mod codex;
mod codex_kit;
mod codex_mcp;
mod codex_odd;
mod codex_stop;
mod codex_wire;
mod host;
mod host_calls;
mod host_fake;
mod host_kit;
mod host_orphans;
mod host_own;
mod host_streams;
mod real;
mod scripted;
mod sidecar;
mod sidecar_asks;
mod sidecar_ends;
mod sidecar_kit;
mod sidecar_lines;
mod sidecar_puppet;
mod sidecar_real;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    if let Some(code) = outrigger_supervise::launch::intercept() {
        return code;
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.split_first() {
        Some((role, words)) if role == "__host_child" => return host_fake::child(words),
        Some((role, words)) if role == "__host_owner" => return host_orphans::owner(words),
        Some((role, words)) if role == "__sidecar" => return sidecar_kit::child(words),
        Some(_) | None => {}
    }
    let rooms = [
        acp::trials(),
        acp_real::trials(),
        acp_stop::trials(),
        acp_trouble::trials(),
        acp_wire::trials(),
        scripted::trials(),
        claude::trials(),
        claude_settings::trials(),
        claude_stop::trials(),
        claude_wire::trials(),
        codex::trials(),
        codex_mcp::trials(),
        codex_odd::trials(),
        codex_stop::trials(),
        codex_wire::trials(),
        check::trials(),
        host::trials(),
        host_calls::trials(),
        host_orphans::trials(),
        host_own::trials(),
        host_streams::trials(),
        real::trials(),
        sidecar::trials(),
        sidecar_asks::trials(),
        sidecar_ends::trials(),
        sidecar_lines::trials(),
        sidecar_real::trials(),
    ];
    let trials: Vec<Trial> = rooms.into_iter().flatten().collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
