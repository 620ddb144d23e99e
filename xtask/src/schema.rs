//! `cargo xtask schema`: the JSON Schemas of the protocols, written from their types. A test of each crate finds a drift.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

/// Where the schemas of the abp dialect are.
const ABP: &str = "crates/abp/schemas";

pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let folder = root.join(ABP);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, text) in outrigger_abp::protocol::schema::all() {
        let path = folder.join(name);
        if std::fs::read_to_string(&path).is_ok_and(|committed| committed == text) {
            continue;
        }
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        println!("{ABP}/{name}");
    }
    Ok(ExitCode::SUCCESS)
}
