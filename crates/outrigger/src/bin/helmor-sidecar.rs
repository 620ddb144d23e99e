//! The installed `helmor-sidecar`: the same child as `outrigger sidecar helmor`, in an executable of its own.

#[path = "../duration.rs"]
mod duration;
#[path = "../helmor_sidecar.rs"]
mod helmor_sidecar;
#[path = "../words.rs"]
mod words;

use std::process::ExitCode;

fn main() -> ExitCode {
    // It starts the agents, and is their launcher.
    if let Some(code) = outrigger_supervise::launch::intercept() {
        return code;
    }
    helmor_sidecar::be_helmor(std::env::args_os().skip(1))
}
