//! What of the configuration the daemon reads.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use crate::config::Config;
use crate::runs::DefaultAnswer;

pub(super) struct Settings {
    pub(super) server: Server,
    pub(super) store: Store,
    pub(super) runs: RunsSection,
    pub(super) extensions: ExtensionsSection,
}
pub(super) struct Server {
    pub(super) address: IpAddr,
    pub(super) port: u16,
    pub(super) hosts: Vec<String>,
    pub(super) connections: usize,
    pub(super) requests_per_second: u32,
    pub(super) body_limit: usize,
}
pub(super) struct Store {
    pub(super) state_dir: Option<PathBuf>,
    pub(super) keep_runs: Duration,
    pub(super) keep_at_most: usize,
}
pub(super) struct RunsSection {
    pub(super) queued: u64,
    pub(super) retries: u32,
    pub(super) approve_within: Option<Duration>,
    pub(super) approve_default: DefaultAnswer,
}
pub(super) struct ExtensionsSection {
    pub(super) enabled: bool,
    pub(super) home: Option<PathBuf>,
}

impl Settings {
    pub(super) fn of(_: &Config) -> Self {
        Self {
            server: Server { address: IpAddr::V4(Ipv4Addr::LOCALHOST), port: 7700, hosts: Vec::new(), connections: 256, requests_per_second: 500, body_limit: 8 << 20 },
            store: Store { state_dir: None, keep_runs: Duration::from_secs(30 * 86400), keep_at_most: 10_000 },
            runs: RunsSection { queued: 10_000, retries: 0, approve_within: Some(Duration::from_secs(7 * 86400)), approve_default: DefaultAnswer::Deny },
            extensions: ExtensionsSection { enabled: false, home: None },
        }
    }
    pub(super) fn at_once(&self, _: &str) -> usize {
        4
    }
}
