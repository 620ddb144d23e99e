//! What is needed before a node of Reticulum can be started: Python, a folder, the bridge in it; and how it is run.

use std::fs::DirBuilder;
use std::io;
use std::num::NonZeroU32;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_supervise::driver::{Child, Supervisor};
use outrigger_supervise::ready::{Gate, Ready};
use outrigger_supervise::sandbox::{Level, Limits, Request};
use outrigger_supervise::spec::{Logs, Rules, Spec};
use outrigger_supervise::state::{Backoff, CrashLimit, Heartbeat, Restart, Retry};
use serde::Serialize;

use super::{LxmfError, LxmfOptions};

/// The program that the node is.
const BRIDGE: &str = include_str!("../../../../../sdk/python/outrigger_lxmf.py");

/// Importing the packages takes most of this on a slow machine.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// The exit code of a bridge for which trying again cannot help.
const FATAL: i32 = 78;

const FIVE: NonZeroU32 = NonZeroU32::MIN.saturating_add(4);

/// One way by which a node can be reached. All are on loopback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Interface {
    /// Takes TCP connections on this port.
    Listen(u16),
    /// Connects to this TCP port, and again when the connection is lost.
    Connect(u16),
    /// Sends and receives datagrams.
    Udp {
        /// Receives on this port.
        listen: u16,
        /// Sends to this port.
        forward: u16,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Settings<'a> {
    display_name: &'a str,
    announce_every_s: f64,
    interfaces: &'a [Interface],
}

/// Makes the folder ready and starts the node in it.
pub(super) fn start(supervisor: &Supervisor, options: &LxmfOptions) -> Result<Child, LxmfError> {
    let python = python(options.python.as_deref())?;
    let folder = std::path::absolute(&options.folder)
        .map_err(|source| LxmfError::Io { path: options.folder.clone(), source })?;
    let script = furnish(&folder, options)?;
    let retry = Retry {
        backoff: Backoff {
            first: Duration::from_millis(500),
            cap: Duration::from_secs(30),
            jitter_percent: 20,
        },
        stable_after: Duration::from_secs(300),
        max_attempts: None,
        crash_loop: CrashLimit { crashes: FIVE, within: Duration::from_secs(900) },
        slow_crash: None,
        permanent_codes: vec![FATAL],
    };
    let rules = Rules {
        ready: Ready::When { gate: Gate::Attach, within: READY_WITHIN },
        heartbeat: Heartbeat::None,
        restart: Restart::OnFailure(retry),
        logs: Logs { tail_lines: 40, tail_bytes: 32 << 10, max_line_bytes: 4096, file: None },
    };
    let sandbox = Request::new(Level::Basic, Limits::as_the_host());
    let mut spec = Spec::new("lxmf", python, &folder, sandbox, rules)
        .args([script.as_os_str(), folder.as_os_str()])
        .pass_env(["PATH", "LANG", "TZ"])
        .set_env("HOME", &folder)
        .set_env("PYTHONUTF8", "1")
        // The folder with the packages may belong to somebody else.
        .set_env("PYTHONDONTWRITEBYTECODE", "1")
        .spoken_to();
    if let Some(packages) = &options.packages {
        spec = spec.set_env("PYTHONPATH", packages);
    }
    supervisor.start(spec).map_err(|error| LxmfError::NotStarted { why: error.to_string() })
}

fn furnish(folder: &Path, options: &LxmfOptions) -> Result<PathBuf, LxmfError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source: io::Error| LxmfError::Io { path, source }
    };
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed(folder))?;
    let settings = Settings {
        display_name: &options.display_name,
        announce_every_s: options.announce_every.as_secs_f64(),
        interfaces: &options.interfaces,
    };
    // Names and numbers always have a spelling in JSON.
    let settings = serde_json::to_vec(&settings).unwrap_or_default();
    let script = folder.join("outrigger_lxmf.py");
    for (path, bytes) in [(&folder.join("node.json"), settings.as_slice()), (&script, BRIDGE.as_bytes())] {
        std::fs::write(path, bytes).map_err(failed(path))?;
    }
    Ok(script)
}

fn python(wanted: Option<&Path>) -> Result<PathBuf, LxmfError> {
    let is_program = |path: &Path| {
        path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let found = match wanted {
        Some(path) if path.components().count() > 1 => Some(path.to_owned()),
        other => {
            let name = other.unwrap_or(Path::new("python3"));
            let folders = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| is_program(path))
        }
    };
    found.filter(|path| is_program(path)).ok_or_else(|| LxmfError::NoPython {
        wanted: wanted.map_or_else(|| "python3".to_owned(), |path| path.display().to_string()),
    })
}
