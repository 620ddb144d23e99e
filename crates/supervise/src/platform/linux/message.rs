//! What host and keeper say to each other over the control socket: an order down, commands down, reports up.
//!
//! Every message is a little-endian `u32` length and that many bytes of JSON. Both ends are the same executable, so
//! there is no version in it. Descriptors travel beside the first byte of a message (`SCM_RIGHTS`).

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::launch::exact::Os;
use crate::launch::{LaunchError, Plan, Signal, Status, TREE_VARIABLE, TreeTag, Umask};
use crate::sandbox::{Containment, Enforced, Level, Limits, Network, Processes, Request};

/// The largest message either end accepts. The kernel refuses far smaller argument lists anyway.
pub(super) const MAX_MESSAGE: usize = 16 * 1024 * 1024;

/// The plan as it travels.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) program: Os,
    pub(super) args: Vec<Os>,
    pub(super) env: Vec<(Os, Os)>,
    pub(super) cwd: Os,
    pub(super) umask: Option<Umask>,
    pub(super) level: Level,
    pub(super) containment: Containment,
    pub(super) network: Network,
    pub(super) read: Vec<Os>,
    pub(super) write: Vec<Os>,
    pub(super) processes: Processes,
    pub(super) limits: Limits,
    /// The soft limit of open descriptors that the host was born with, before it raised its own.
    pub(super) host_open_files: Option<u64>,
    /// How many descriptors follow the three standard ones.
    pub(super) extra: usize,
}

impl Order {
    pub(super) fn new(plan: Plan, tag: TreeTag, host_open_files: Option<u64>, extra: usize) -> Self {
        let Plan { name: _, program, args, env, cwd, umask, sandbox } = plan;
        let Request { level, containment, network, read, write, processes, limits } = sandbox;
        let mark = (Os(TREE_VARIABLE.into()), Os(tag.to_string().into()));
        let env =
            env.into_iter().map(|(name, value)| (Os(name), Os(value))).filter(|(name, _)| *name != mark.0);
        Self {
            program: Os(program),
            args: args.into_iter().map(Os).collect(),
            env: env.chain([mark.clone()]).collect(),
            cwd: Os(cwd.into()),
            umask,
            level,
            containment,
            network,
            read: read.into_iter().map(|path| Os(path.into())).collect(),
            write: write.into_iter().map(|path| Os(path.into())).collect(),
            processes,
            limits,
            host_open_files,
            extra,
        }
    }
}

/// Host to keeper, after the order.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Command {
    /// The host has written down who the program is; it may be reaped from now on.
    Known,
    /// Send this to the program's process group.
    Signal(Signal),
    /// Kill every process of the tree.
    Kill,
}

/// Keeper to host.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    /// The program runs. Two pidfds come along: the program's and the keeper's.
    Spawned(Enforced),
    /// It does not, and will not.
    Failed(LaunchError),
    /// It ended, and so has everything it started.
    Exited { status: Status, leftovers: u32, cpu_micros: u64, max_rss_bytes: u64 },
}

/// A message ready to be written.
pub(super) fn encode(message: &impl Serialize) -> Result<Vec<u8>, TooLong> {
    let mut bytes = vec![0; 4];
    // Neither maps with foreign keys nor floats are in these types, so serialising into memory cannot fail.
    serde_json::to_writer(&mut bytes, message).map_err(|_| TooLong)?;
    let length = bytes.len() - 4;
    if length > MAX_MESSAGE {
        return Err(TooLong);
    }
    bytes[..4].copy_from_slice(&u32::try_from(length).map_err(|_| TooLong)?.to_le_bytes());
    Ok(bytes)
}

/// A message is longer than [`MAX_MESSAGE`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Bytes that arrived and are not yet a message.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
}

impl Inbox {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole message, or `None` when more bytes are needed.
    pub(super) fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, BadMessage> {
        let Some((head, rest)) = self.bytes.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*head) as usize;
        if length > MAX_MESSAGE {
            return Err(BadMessage(format!("a message of {length} bytes")));
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let message = serde_json::from_slice(body).map_err(|error| BadMessage(error.to_string()))?;
        self.bytes.drain(..4 + length);
        Ok(Some(message))
    }
}

/// The other end does not speak this protocol.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the control socket carried nonsense: {0}")]
pub(super) struct BadMessage(String);

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn order() -> Order {
        let plan = Plan {
            name: "n".into(),
            program: OsString::from_vec(vec![b'/', 0xff, b'x']),
            args: vec!["plain".into(), OsString::from_vec((1..=255).collect())],
            env: vec![("A".into(), "ü".into()), (TREE_VARIABLE.into(), "forged".into())],
            cwd: "/".into(),
            umask: Some(Umask(0o77)),
            sandbox: Request::new(Level::Basic, Limits::as_the_host()),
        };
        Order::new(plan, TreeTag::random().unwrap(), Some(1024), 2)
    }

    #[test]
    fn an_order_arrives_byte_for_byte_however_it_is_cut() {
        let order = order();
        let bytes = encode(&order).unwrap();
        for cut in 0..bytes.len() {
            let mut inbox = Inbox::default();
            inbox.push(&bytes[..cut]);
            assert_eq!(inbox.next::<Order>(), Ok(None));
            inbox.push(&bytes[cut..]);
            assert_eq!(inbox.next::<Order>().unwrap().as_ref(), Some(&order));
        }
    }

    #[test]
    fn the_tree_variable_of_the_plan_is_replaced_by_ours() {
        let order = order();
        let tags: Vec<_> = order.env.iter().filter(|(name, _)| name.0 == TREE_VARIABLE).collect();
        assert_eq!(tags.len(), 1);
        assert_ne!(tags[0].1.0, "forged");
    }

    #[test]
    fn a_message_longer_than_the_limit_is_refused_on_both_sides() {
        let fits = "x".repeat(MAX_MESSAGE - 2);
        assert!(encode(&fits).is_ok());
        let too_long = "x".repeat(MAX_MESSAGE - 1);
        assert_eq!(encode(&too_long), Err(TooLong));
        let mut inbox = Inbox::default();
        inbox.push(&u32::try_from(MAX_MESSAGE + 1).unwrap().to_le_bytes());
        assert!(inbox.next::<Report>().is_err());
    }
}
