//! Putting the calling thread (and with limits: the process) into the box, layer by layer.

use std::path::Path;

use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use super::message::Order;
use super::{landlock, rlimits, seccomp};
use crate::launch::LaunchError;
use crate::sandbox::{Contained, Enforced, Landlock, Layer, Level, Limits, Network, OwnBox, Processes};

/// Whether the layers of this level bind a thread rather than the process.
pub(super) fn needs_own_thread(level: Level) -> bool {
    match level {
        Level::Off | Level::Basic => false,
        Level::Strict | Level::Auto | Level::Required => true,
    }
}

/// Applies the level of the order. What is started from this thread afterwards is inside.
pub(super) fn apply(order: &Order, program: &Path, containment: Contained) -> Result<Enforced, LaunchError> {
    let mut enforced = Enforced {
        level: Level::Off,
        containment,
        no_new_privs: Layer::NotRequested,
        landlock: Landlock::NotRequested,
        seccomp: Layer::NotRequested,
        network: Network::Allow,
        processes: Processes::Many,
        limits: Limits::as_the_host(),
        skipped_paths: Vec::new(),
    };
    if order.level == Level::Off {
        enforced.limits = rlimits::apply(order.limits, order.host_open_files)?;
        return Ok(enforced);
    }
    rustix::thread::set_no_new_privs(true).map_err(|errno| missing("no_new_privs", errno.to_string()))?;
    enforced.no_new_privs = Layer::Applied;
    enforced.level = Level::Basic;
    let strict = match order.level {
        Level::Off | Level::Basic => None,
        Level::Strict | Level::Required => Some(Missing::Refuse),
        Level::Auto => Some(Missing::Record),
    };
    if let Some(or) = strict {
        enforced.landlock = landlock::apply(order, program, &mut enforced.skipped_paths);
        if let (Landlock::Missing { reason }, Missing::Refuse) = (&enforced.landlock, or) {
            return Err(missing("landlock", reason.clone()));
        }
    }
    // Before the filter, which may forbid raising or lowering limits one day; after Landlock, which needs memory.
    let limits = Limits { core_bytes: order.limits.core_bytes.or(Some(0)), ..order.limits };
    enforced.limits = rlimits::apply(limits, order.host_open_files)?;
    if let Some(or) = strict {
        enforced.seccomp = seccomp::apply(order.network);
        if let (Layer::Missing { reason }, Missing::Refuse) = (&enforced.seccomp, or) {
            return Err(missing("seccomp", reason.clone()));
        }
        if enforced.seccomp == Layer::Applied {
            enforced.network = order.network;
            enforced.processes = order.processes;
            if matches!(enforced.landlock, Landlock::Applied { .. }) {
                enforced.level = Level::Strict;
            }
        }
    }
    Ok(enforced)
}

/// See [`crate::sandbox::confine_self`].
pub(crate) fn confine_self() -> OwnBox {
    let no_new_privs = match rustix::thread::set_no_new_privs(true) {
        Ok(()) => Layer::Applied,
        Err(errno) => Layer::Missing { reason: errno.to_string() },
    };
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    // Lowering one's own limit cannot fail.
    let _ = setrlimit(Resource::Core, none);
    // What root may do beyond files and sockets goes as well; who has nothing loses nothing.
    let none = CapabilitySet::empty();
    let _ = set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none });
    let landlock = landlock::take_everything();
    OwnBox { no_new_privs, landlock, seccomp: seccomp::leave_computing() }
}

/// What to do about a layer that is not to be had.
#[derive(Clone, Copy)]
enum Missing {
    Refuse,
    Record,
}

fn missing(layer: &str, reason: String) -> LaunchError {
    LaunchError::Sandbox { missing: layer.to_owned(), reason }
}
