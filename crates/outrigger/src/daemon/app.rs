//! What the pages and the API are given: the runs, the processes, the extensions, the entrance.

use std::sync::Mutex;
use std::time::Instant;

use outrigger_sep::host::Fleet;
use outrigger_supervise::driver::Supervisor;

use crate::runs::Runs;

/// The daemon, as its doors see it.
pub(crate) struct App {
    pub(crate) runs: Runs,
    /// Every process that the daemon runs, extensions included.
    pub(crate) supervisor: Supervisor,
    pub(crate) extensions: Extensions,
    pub(crate) entrance: Entrance,
    pub(crate) since: Instant,
    /// `127.0.0.1:7700`, as it was bound.
    pub(crate) address: std::net::SocketAddr,
    /// Names beside the address that requests may be addressed to (`[server] hosts`).
    pub(crate) hosts: Vec<String>,
}

/// The extension host of the daemon.
pub(crate) enum Extensions {
    /// None is configured, and how to.
    Off {
        hint: String,
    },
    /// It could not be started, and why.
    Failed {
        why: String,
    },
    On(Fleet),
}

/// Who may come in.
pub(crate) struct Entrance {
    /// What `Authorization: Bearer` must say.
    pub(crate) token: String,
    /// Codes of links that were not used yet, with the moment from which they are void.
    pub(crate) codes: Mutex<Vec<(String, Instant)>>,
    /// What the cookie of a browser must say. It is a hash of the token, so that browsers stay in over restarts.
    pub(crate) cookie: String,
}
