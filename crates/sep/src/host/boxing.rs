//! The box of an extension and the world inside it: what it may touch, and the variables it sees.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use outrigger_supervise::sandbox::{Level, Limits as Rlimits, Network, Processes, Request};

use super::channel::Transport;
use crate::config::{HostPolicy, TransportPolicy};
use crate::manifest::{Admission, Launch, SandboxLevel};
use crate::protocol::{ExtensionId, TrustLevel, V1_1};

/// Descriptors that an extension may have open.
const OPEN_FILES: u64 = 1024;

/// The folders of one extension in the state of the host.
#[derive(Clone, Debug)]
pub(super) struct Home {
    /// What it may write to.
    pub(super) data: PathBuf,
    /// For files that nobody misses.
    pub(super) temporary: PathBuf,
}

impl Home {
    pub(super) fn of(id: &ExtensionId, state: &Path) -> Self {
        let data = state.join("ext").join(id.as_str()).join("data");
        Self { temporary: data.join("tmp"), data }
    }
}

/// How an extension connects: by a descriptor where it may not make sockets, else as the policy says.
pub(super) fn transport(admission: &Admission, policy: &HostPolicy) -> Transport {
    match (admission.trust, admission.sandbox, policy.transport) {
        (TrustLevel::UntrustedLocal, _, _) | (_, SandboxLevel::Strict, _) | (_, _, TransportPolicy::Fd) => {
            Transport::Fd
        }
        (_, _, TransportPolicy::Auto | TransportPolicy::Unix) => Transport::Unix,
        (_, _, TransportPolicy::Tcp) => Transport::Tcp,
    }
}

/// The box.
pub(super) fn sandbox(
    admission: &Admission,
    launch: &Launch,
    folder: &Path,
    home: &Home,
    by: Transport,
) -> Request {
    let level = match admission.sandbox {
        SandboxLevel::Off => Level::Off,
        SandboxLevel::Auto => Level::Auto,
        SandboxLevel::Strict => Level::Strict,
    };
    let untrusted = admission.trust == TrustLevel::UntrustedLocal;
    let limits = Rlimits {
        open_files: Some(OPEN_FILES),
        // The memory of a tree is watched; that of somebody whom nobody vouches for is limited from the first byte.
        address_space_bytes: untrusted.then_some(admission.limits.memory_bytes),
        file_size_bytes: untrusted.then_some(admission.limits.memory_bytes),
        ..Rlimits::as_the_host()
    };
    Request {
        network: match by {
            Transport::Fd => Network::Deny,
            Transport::Unix => Network::UnixOnly,
            Transport::Tcp => Network::Allow,
        },
        processes: if untrusted { Processes::One } else { Processes::Many },
        read: launch.readable.iter().cloned().chain([folder.to_owned()]).collect(),
        write: vec![home.data.clone()],
        ..Request::new(level, limits)
    }
}

/// The variables an extension sees: ours, then those of its manifest. Nothing is inherited but the time zone.
pub(super) fn environment(id: &ExtensionId, launch: &Launch, home: &Home) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = vec![
        ("PATH".into(), launch.runtime_path.clone().into()),
        ("HOME".into(), home.data.clone().into()),
        ("TMPDIR".into(), home.temporary.clone().into()),
        ("LANG".into(), "C.UTF-8".into()),
        // What Python would write beside its sources would make them other files than those that were approved.
        ("PYTHONDONTWRITEBYTECODE".into(), "1".into()),
        ("SEP_HOST".into(), "1".into()),
        ("SEP_EXTENSION_ID".into(), id.as_str().into()),
        ("SEP_PROTOCOL_MAX".into(), V1_1.to_string().into()),
    ];
    variables.extend(std::env::var_os("TZ").map(|zone| ("TZ".into(), zone)));
    variables.extend(launch.env.iter().map(|(name, value)| (name.into(), value.into())));
    variables
}
