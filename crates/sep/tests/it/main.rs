//! The integration tests of this crate, one binary, which is also its own launcher and its own extensions.

mod channel_child;
mod kit_roles;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// Functions as trials, each under its own name.
macro_rules! trials {
    ($($name:ident),* $(,)?) => {
        vec![$(libtest_mimic::Trial::test(stringify!($name), || {
            $name();
            Ok(())
        })),*]
    };
}

// After the macro, which these rooms use.
mod channel;
mod channel_kit;
mod fleet;
mod fleet_kit;
mod hostile;
mod hostile_frames;
mod hostile_kit;
mod kit;
mod kit_box;
mod kit_fault;
mod kit_host;
mod manifest_contract;
mod manifest_disk;
mod manifest_fixture;
mod manifest_limits;
mod manifest_policy;
mod mesh;
mod mesh_lxmf;
mod mesh_process;
mod phone;
mod phone_kit;
mod phone_kits;
mod phone_runtime;
mod storm;

fn main() -> ExitCode {
    if let Some(code) = outrigger_supervise::launch::intercept() {
        return code;
    }
    if let Some(code) = kit_roles::intercept().or_else(channel_child::intercept) {
        return code;
    }
    if let Some(code) = mesh_process::intercept().or_else(hostile_kit::intercept) {
        return code;
    }
    let mut trials: Vec<Trial> = Vec::new();
    trials.extend(channel::trials());
    trials.extend(kit::trials());
    trials.extend(kit_box::trials());
    trials.extend(kit_fault::trials());
    trials.extend(manifest_contract::trials());
    trials.extend(manifest_limits::trials());
    trials.extend(manifest_disk::trials());
    trials.extend(manifest_policy::trials());
    trials.extend(fleet::trials());
    trials.extend(hostile::trials());
    trials.extend(hostile_frames::trials());
    trials.extend(storm::trials());
    trials.extend(mesh::trials());
    trials.extend(mesh_lxmf::trials());
    trials.extend(phone::trials());
    trials.extend(phone_kits::trials());
    trials.extend(phone_runtime::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
