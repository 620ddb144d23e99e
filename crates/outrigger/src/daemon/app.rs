//! What the pages and the API are given: the runs, the processes, the extensions, the entrance.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use outrigger_policy::Digest;
use outrigger_sep::host::Fleet;
use outrigger_supervise::driver::Supervisor;

use crate::runs::Runs;

/// How long a link to the dashboard is good.
const LINK_FOR: Duration = Duration::from_secs(600);

/// How many links may wait to be used; the oldest is void when there is one more.
const LINKS: usize = 16;

/// The daemon, as its doors see it.
pub(crate) struct App {
    pub(crate) runs: Runs,
    /// Every process that the daemon runs, extensions included.
    pub(crate) supervisor: Supervisor,
    pub(crate) extensions: Extensions,
    pub(crate) entrance: Entrance,
    pub(crate) since: Instant,
    /// What the store takes on disk. Looks at files.
    pub(crate) store_bytes: Box<dyn Fn() -> u64 + Send + Sync>,
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

impl Entrance {
    pub(crate) fn new(token: String) -> Self {
        let cookie = Digest::of(format!("outrigger cookie {token}").as_bytes()).to_string();
        Self { token, codes: Mutex::new(Vec::new()), cookie }
    }

    /// A code that lets one browser in, once.
    pub(crate) fn code(&self) -> Result<String, getrandom::Error> {
        let code = secret()?;
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|(_, void)| *void > Instant::now());
        if codes.len() >= LINKS {
            codes.remove(0);
        }
        codes.push((code.clone(), Instant::now() + LINK_FOR));
        Ok(code)
    }
}

/// Something that nobody can guess.
pub(crate) fn secret() -> Result<String, getrandom::Error> {
    let mut bytes = [0u8; 24];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
