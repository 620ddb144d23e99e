//! The installed `mustard-sidecar`: the same child as `outrigger sidecar mustard`, in a small executable of its own.

#[path = "../sidecar.rs"]
mod sidecar;

use std::process::ExitCode;

fn main() -> ExitCode {
    sidecar::be_mustard(std::env::args_os().skip(1))
}
