//! Opens the dashboard in the user's browser, where there is one.

use outrigger_supervise::driver::Supervisor;
use outrigger_supervise::ready::Ready;
use outrigger_supervise::sandbox::{Level, Limits, Network, Request};
use outrigger_supervise::spec::{Logs, Rules, Spec};
use outrigger_supervise::state::{Heartbeat, Restart};

/// Opens an address, if there is a desktop to open it on. Whatever goes wrong, the link is on the terminal.
pub(crate) fn open(supervisor: &Supervisor, url: &str) {
    let has_desktop = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if !has_desktop {
        return;
    }
    let rules = Rules {
        ready: Ready::OnSpawn,
        heartbeat: Heartbeat::None,
        restart: Restart::Never,
        logs: Logs { tail_lines: 5, tail_bytes: 4096, max_line_bytes: 1024, file: None },
    };
    let mut sandbox = Request::new(Level::Off, Limits::as_the_host());
    sandbox.network = Network::Allow;
    let spec = Spec::new("browser", "xdg-open", "/", sandbox, rules)
        .args([url])
        .pass_env(std::env::vars_os().map(|(name, _)| name));
    if let Ok(child) = supervisor.start(spec) {
        // It lives until it has handed the address over.
        tokio::spawn(async move { child.wait().await });
    }
}
