//! `--hop`: the test stops at a host call before its first statement, and goes on from a snapshot in another process.
//!
//! One worker, [`leave`], runs as far as the call, writes the snapshot to a file, and goes on itself; another,
//! [`arrive`], goes on from the file. Both tell their verdict and the fuel they have left, and the two must agree.

use std::path::Path;

use anyhow::{Context, Result, bail};
use outrigger_vm::exec::{Step, Vm};
use outrigger_vm::value::Value;

use crate::harness::Harness;
use crate::meta::Meta;
use crate::run::{self, LIMITS};

/// The capability that a test calls to be stopped.
const HOP: &str = "$hop";

/// A verdict, and what it cost to come to it.
pub(crate) struct Told {
    pub(crate) verdict: Result<()>,
    /// None when the test never got as far as the call.
    pub(crate) fuel_left: Option<u64>,
}

impl Told {
    pub(crate) fn without_fuel(verdict: Result<()>) -> Self {
        Self { verdict, fuel_left: None }
    }
}

/// Runs a test as far as the call, writes the snapshot, and runs on. No file: the test never got there.
pub(crate) fn leave(source: &str, meta: &Meta, harness: &mut Harness, file: &Path) -> Result<Told> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).context("an old snapshot");
        }
        Ok(()) | Err(_) => {}
    }
    if run::is_refused_early(meta) {
        return Ok(Told::without_fuel(run::run(source, meta, harness)));
    }
    // On the first line of the test, so that its lines keep their numbers.
    let mut vm = match run::enter(&format!("{HOP}();{source}"), meta, harness, &[HOP]) {
        Ok(vm) => vm,
        Err(error) => return Ok(Told::without_fuel(Err(error))),
    };
    match vm.run() {
        Step::Suspended(_) => {}
        step => return Ok(Told::without_fuel(run::judge(&mut vm, &step, meta))),
    }
    std::fs::write(file, vm.snapshot()?).with_context(|| format!("writing {}", file.display()))?;
    Ok(go_on(&mut vm, meta))
}

/// Goes on from a snapshot.
pub(crate) fn arrive(meta: &Meta, file: &Path) -> Result<Told> {
    let bytes = std::fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    let mut vm = match Vm::restore(&bytes, LIMITS) {
        Ok(vm) => vm,
        Err(error) => bail!("the snapshot is refused: {error}"),
    };
    Ok(go_on(&mut vm, meta))
}

fn go_on(vm: &mut Vm, meta: &Meta) -> Told {
    let step = vm.resume(Ok(Value::UNDEFINED));
    let verdict = run::judge(vm, &step, meta);
    Told { verdict, fuel_left: Some(vm.fuel()) }
}
