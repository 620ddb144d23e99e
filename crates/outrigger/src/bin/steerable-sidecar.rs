//! The installed `steerable-sidecar`: the same child as `outrigger sidecar steerable`, in an executable of its own.

#[path = "../steerable_sidecar.rs"]
mod steerable_sidecar;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Its tools start processes, and it is their launcher.
    if let Some(code) = outrigger_supervise::launch::intercept() {
        return code;
    }
    steerable_sidecar::be_steerable(std::env::args_os().skip(1))
}
