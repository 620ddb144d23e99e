//! What the daemon reads: its door, its store, its runs, its extensions. Every member has a value, written or not.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::keys::Wrong;
use crate::args::Bytes;
use crate::duration::duration;
use crate::runs::DefaultAnswer;
use crate::runs::request::MAX_RETRIES;

/// How many runs of a backend are under way at once, if nobody says.
pub(crate) const AT_ONCE: usize = 4;

/// The door of the daemon.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Server {
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    /// Names beside the address that requests may be addressed to.
    pub(crate) hosts: Vec<String>,
    /// Whether somebody says that nobody reaches it but through a proxy that speaks TLS.
    pub(crate) behind_tls_proxy: bool,
    pub(crate) body_limit: usize,
    pub(crate) connections: usize,
    pub(crate) requests_per_second: u32,
}

/// What is kept.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Store {
    /// The folder of the daemon; none is the user's own.
    pub(crate) state_dir: Option<PathBuf>,
    /// How long a run that is over is kept.
    pub(crate) keep_runs: Duration,
    /// And how many of them.
    pub(crate) keep_at_most: usize,
}

/// What holds for runs that say nothing else.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunsSection {
    /// How many may wait.
    pub(crate) queued: u64,
    pub(crate) retries: u32,
    /// How long people have to answer; none is for ever.
    pub(crate) approve_within: Option<Duration>,
    pub(crate) approve_default: DefaultAnswer,
}

/// The extension host of the daemon.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ExtensionsSection {
    pub(crate) enabled: bool,
    /// Its folder; none is the user's own.
    pub(crate) home: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(expecting = "a table")]
pub(super) struct WrittenServer {
    address: Option<String>,
    port: Option<i64>,
    hosts: Option<Vec<String>>,
    behind_tls_proxy: Option<bool>,
    body_limit: Option<String>,
    connections: Option<i64>,
    requests_per_second: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(expecting = "a table")]
pub(super) struct WrittenStore {
    state_dir: Option<PathBuf>,
    keep_runs: Option<String>,
    keep_at_most: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(expecting = "a table")]
pub(super) struct WrittenRuns {
    queued: Option<i64>,
    retries: Option<i64>,
    approve_within: Option<String>,
    approve_default: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(expecting = "a table")]
pub(super) struct WrittenExtensions {
    home: Option<PathBuf>,
    enabled: Option<bool>,
}

impl Server {
    pub(super) fn parse(written: WrittenServer) -> Result<Self, Wrong> {
        let at = |key: &str| Wrong::at(&["server", key]);
        let address = written.address.as_deref().unwrap_or("127.0.0.1");
        let behind_tls_proxy = written.behind_tls_proxy.unwrap_or(false);
        let address = match address {
            "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
            text => {
                text.parse().map_err(|_| at("address").why(format!("\"{text}\" is not an IP address")))?
            }
        };
        if !address.is_loopback() && !behind_tls_proxy {
            return Err(at("address").why(format!(
                "{address} can be reached by others, and what they send could be read by anyone on the way; \
                 put a proxy that speaks TLS in front and say `behind_tls_proxy = true`, or use 127.0.0.1"
            )));
        }
        let hosts = written.hosts.unwrap_or_default();
        let named = |host: &&String| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:[]".contains(&byte);
            host.is_empty() || host.len() > 253 || !host.bytes().all(plain)
        };
        if let Some(wrong) = hosts.iter().find(named) {
            let why = format!(
                "\"{wrong}\" is not the name of a host; write it as in example.org or example.org:8443"
            );
            return Err(at("hosts").why(why));
        }
        Ok(Self {
            address,
            port: number(written.port, 7700, 1..=65_535).map_err(|why| at("port").why(why))?,
            hosts,
            behind_tls_proxy,
            body_limit: size(written.body_limit.as_deref(), 8 << 20, 1 << 10..=256 << 20)
                .map_err(|why| at("body_limit").why(why))?,
            connections: number(written.connections, 512, 8..=10_000)
                .map_err(|why| at("connections").why(why))?,
            requests_per_second: number(written.requests_per_second, 2000, 1..=1_000_000)
                .map_err(|why| at("requests_per_second").why(why))?,
        })
    }
}

impl Store {
    pub(super) fn parse(written: WrittenStore, folder: &Path) -> Result<Self, Wrong> {
        let at = |key: &str| Wrong::at(&["store", key]);
        let keep = written.keep_runs.as_deref().unwrap_or("30d");
        Ok(Self {
            state_dir: written.state_dir.map(|path| folder.join(path)),
            keep_runs: positive(keep).map_err(|why| at("keep_runs").why(why))?,
            keep_at_most: number(written.keep_at_most, 10_000, 1..=10_000_000)
                .map_err(|why| at("keep_at_most").why(why))?,
        })
    }
}

impl RunsSection {
    pub(super) fn parse(written: WrittenRuns) -> Result<Self, Wrong> {
        let at = |key: &str| Wrong::at(&["runs", key]);
        let approve_within = match written.approve_within.as_deref().unwrap_or("7d") {
            "never" => None,
            text => Some(positive(text).map_err(|why| {
                at("approve_within").why(format!("{why}, or \"never\" if it is not to end"))
            })?),
        };
        let approve_default = match written.approve_default.as_deref().unwrap_or("deny") {
            "deny" => DefaultAnswer::Deny,
            "approve" => DefaultAnswer::Approve,
            other => {
                let why = format!("\"{other}\" is neither \"deny\" nor \"approve\"");
                return Err(at("approve_default").why(why));
            }
        };
        Ok(Self {
            queued: number(written.queued, 10_000, 1..=10_000_000).map_err(|why| at("queued").why(why))?,
            retries: number(written.retries, 0, 0..=i64::from(MAX_RETRIES))
                .map_err(|why| at("retries").why(why))?,
            approve_within,
            approve_default,
        })
    }
}

impl ExtensionsSection {
    pub(super) fn parse(written: WrittenExtensions, folder: &Path) -> Self {
        Self {
            // A folder is written down to be used.
            enabled: written.enabled.unwrap_or(written.home.is_some()),
            home: written.home.map(|path| folder.join(path)),
        }
    }
}

/// A number within its bounds.
fn number<T: TryFrom<i64>>(
    written: Option<i64>,
    usual: i64,
    bounds: std::ops::RangeInclusive<i64>,
) -> Result<T, String> {
    let number = written.unwrap_or(usual);
    let fits = Some(number).filter(|number| bounds.contains(number));
    let out_of = || format!("it is {number}; it may be {} to {}", bounds.start(), bounds.end());
    fits.and_then(|number| T::try_from(number).ok()).ok_or_else(out_of)
}

fn size(written: Option<&str>, usual: u64, bounds: std::ops::RangeInclusive<u64>) -> Result<usize, String> {
    let bytes = match written {
        None => usual,
        // `8M`, `8MB` and `8MiB` are the same number to whoever writes one of them here.
        Some(text) => text.trim_end_matches('B').trim_end_matches('i').parse::<Bytes>()?.0,
    };
    let fits = Some(bytes).filter(|bytes| bounds.contains(bytes));
    let out_of = || format!("it is {bytes} bytes; it may be {} to {}", bounds.start(), bounds.end());
    fits.and_then(|bytes| usize::try_from(bytes).ok()).ok_or_else(out_of)
}

/// A time that is more than nothing.
pub(super) fn positive(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err(format!("`{text}` is no time; write 250ms, 5s, 10m, 2h or 7d")),
        some => Ok(some),
    }
}
