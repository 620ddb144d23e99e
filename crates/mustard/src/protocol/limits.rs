//! The limits of a run and the policy they belong to, as they are sent.

use super::ids::{Digest, PolicyId};
use super::write::{write_string, write_whole};

/// Limits as a host sends them; what is absent has the default of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Units of work, over the whole run.
    pub instruction_budget: Option<u64>,
    /// Bytes in use.
    pub heap_limit_bytes: Option<u64>,
    /// Things in use: objects, strings, and so on.
    pub allocation_budget: Option<u64>,
    /// Calls within calls.
    pub call_depth_limit: Option<u64>,
    /// Asynchronous host calls that wait at once.
    pub max_outstanding_host_calls: Option<u64>,
}

impl Limits {
    /// The protocol's defaults for everything.
    pub const DEFAULTS: Limits = Limits {
        instruction_budget: None,
        heap_limit_bytes: None,
        allocation_budget: None,
        call_depth_limit: None,
        max_outstanding_host_calls: None,
    };

    /// What the engine is given.
    #[must_use]
    pub fn resolve(&self) -> outrigger_vm::exec::Limits {
        let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let count = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        outrigger_vm::exec::Limits {
            instructions: self.instruction_budget.unwrap_or(1_000_000),
            call_depth: count(self.call_depth_limit.unwrap_or(256)),
            host_calls: count(self.max_outstanding_host_calls.unwrap_or(128)),
            heap: outrigger_vm::heap::Limits {
                bytes: size(self.heap_limit_bytes.unwrap_or(8_388_608)),
                records: size(self.allocation_budget.unwrap_or(250_000)),
            },
        }
    }

    pub(crate) fn named(&self) -> [(&'static str, Option<u64>); 5] {
        [
            ("instruction_budget", self.instruction_budget),
            ("heap_limit_bytes", self.heap_limit_bytes),
            ("allocation_budget", self.allocation_budget),
            ("call_depth_limit", self.call_depth_limit),
            ("max_outstanding_host_calls", self.max_outstanding_host_calls),
        ]
    }
}

/// The id of capabilities and limits: the digest of both exactly as they were sent, so that another order is another policy.
#[must_use]
pub fn policy_id(capabilities: &[String], limits: &Limits) -> PolicyId {
    let mut text = Vec::with_capacity(256);
    text.extend_from_slice(b"{\"capabilities\":[");
    for (i, name) in capabilities.iter().enumerate() {
        if i > 0 {
            text.push(b',');
        }
        write_string(name, &mut text);
    }
    text.extend_from_slice(b"],\"limits\":{");
    for (i, (name, limit)) in limits.named().into_iter().enumerate() {
        if i > 0 {
            text.push(b',');
        }
        write_string(name, &mut text);
        text.push(b':');
        match limit {
            Some(n) => write_whole(n, &mut text),
            None => text.extend_from_slice(b"null"),
        }
    }
    text.extend_from_slice(b"}}");
    PolicyId(Digest::of(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_named_by_exactly_what_was_sent() {
        let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let text = concat!(
            r#"{"capabilities":["fetch_data"],"limits":{"instruction_budget":null,"heap_limit_bytes":null,"#,
            r#""allocation_budget":null,"call_depth_limit":null,"max_outstanding_host_calls":null}}"#
        );
        let id = policy_id(&names(&["fetch_data"]), &Limits::DEFAULTS);
        assert_eq!(id, PolicyId(Digest::of(text.as_bytes())));
        let spelled = Limits { call_depth_limit: Some(256), ..Limits::DEFAULTS };
        assert_ne!(policy_id(&names(&["fetch_data"]), &spelled), id);
        assert_ne!(policy_id(&names(&["a", "b"]), &spelled), policy_id(&names(&["b", "a"]), &spelled));
    }
}
