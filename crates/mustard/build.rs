//! Runs the engine's standard library once, so that no sidecar has to: `src/image.rs` includes what it leaves.

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    // The library comes with the engine, which this script is built with: whenever it changes, the script is run again.
    println!("cargo::rerun-if-changed=build.rs");
    let image = outrigger_vm::exec::prebuild()?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo names no OUT_DIR")?);
    std::fs::write(out.join("engine.code"), image.code)?;
    std::fs::write(out.join("engine.tables"), image.tables)?;
    Ok(())
}
