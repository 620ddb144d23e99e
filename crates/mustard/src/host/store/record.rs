//! What another host needs to go on with a run: the snapshot, what it waits for, and what it was allowed.

use outrigger_vm::boundary::Plain;
use serde::{Deserialize, Serialize};

use super::seal::{Kind, open, seal};
use super::{CallId, RunId, StoreError, UnixMillis};
use crate::host::key::HostKey;
use crate::protocol::limits::Limits;
use crate::protocol::value::{parse_value, write_value};

/// A run that stands still at its host calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Which run.
    pub run: RunId,
    /// How many snapshots it made before this one.
    pub step: u64,
    /// What its children speak; a snapshot can only be continued by a child of the same kind.
    pub dialect: Dialect,
    /// The capabilities it was given.
    pub capabilities: Vec<String>,
    /// The limits it runs under.
    pub limits: Limits,
    /// The calls that wait, oldest first.
    pub calls: Vec<Waiting>,
    /// When this was written down.
    pub stored_at: UnixMillis,
    /// The machine itself.
    pub snapshot: Vec<u8>,
}

/// What a child speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Version 2 and nothing else, as the original does.
    Version2,
    /// Version 2 with our extensions.
    Extended,
}

/// A call that waits for its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// Which call of the run.
    pub call: CallId,
    /// What was called.
    pub capability: String,
    /// With what.
    pub args: Vec<Plain>,
}

/// Everything of a record but the snapshot, as it is on disk.
#[derive(Serialize, Deserialize)]
struct Head {
    run: RunId,
    step: u64,
    dialect: Dialect,
    capabilities: Vec<String>,
    limits: StoredLimits,
    calls: Vec<StoredCall>,
    stored_at: UnixMillis,
}

#[derive(Serialize, Deserialize)]
struct StoredLimits {
    instruction_budget: Option<u64>,
    heap_limit_bytes: Option<u64>,
    allocation_budget: Option<u64>,
    call_depth_limit: Option<u64>,
    max_outstanding_host_calls: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct StoredCall {
    call: CallId,
    capability: String,
    /// Each the protocol's tagged JSON.
    args: Vec<String>,
}

impl Record {
    /// The record as bytes, for a caller who keeps it by other means: under the host's key and bound to this name.
    pub fn to_sealed(&self, key: &HostKey, name: &str) -> Vec<u8> {
        self.seal(key, Kind::Kept, name)
    }

    /// The record of such bytes, if they are what was sealed under this name with this key.
    ///
    /// # Errors
    ///
    /// When they are not.
    pub fn from_sealed(key: &HostKey, name: &str, sealed: &[u8]) -> Result<Self, StoreError> {
        Self::open(key, Kind::Kept, name, sealed)
    }

    pub(super) fn seal(&self, key: &HostKey, kind: Kind, name: &str) -> Vec<u8> {
        let Limits {
            instruction_budget,
            heap_limit_bytes,
            allocation_budget,
            call_depth_limit,
            max_outstanding_host_calls,
        } = self.limits;
        let stored = |waiting: &Waiting| StoredCall {
            call: waiting.call,
            capability: waiting.capability.clone(),
            args: waiting.args.iter().map(value_text).collect(),
        };
        let head = Head {
            run: self.run.clone(),
            step: self.step,
            dialect: self.dialect,
            capabilities: self.capabilities.clone(),
            limits: StoredLimits {
                instruction_budget,
                heap_limit_bytes,
                allocation_budget,
                call_depth_limit,
                max_outstanding_host_calls,
            },
            calls: self.calls.iter().map(stored).collect(),
            stored_at: self.stored_at,
        };
        // Strings, numbers and string keys: there is nothing in a head that JSON cannot say.
        let head = serde_json::to_vec(&head).unwrap_or_default();
        seal(key, kind, name, &head, &self.snapshot)
    }

    pub(super) fn open(key: &HostKey, kind: Kind, name: &str, sealed: &[u8]) -> Result<Self, StoreError> {
        let (head, snapshot) = open(key, kind, name, sealed)?;
        // What is sealed is what we wrote; a head that cannot be read is a bug of ours, and told as what it looks like.
        let unreadable = || StoreError::Tampered { name: name.to_owned(), why: "its head cannot be read" };
        let head: Head = serde_json::from_slice(head).map_err(|_| unreadable())?;
        let StoredLimits {
            instruction_budget,
            heap_limit_bytes,
            allocation_budget,
            call_depth_limit,
            max_outstanding_host_calls,
        } = head.limits;
        let mut calls = Vec::with_capacity(head.calls.len());
        for StoredCall { call, capability, args } in head.calls {
            let args: Option<_> = args.iter().map(|arg| value_of(arg)).collect();
            calls.push(Waiting { call, capability, args: args.ok_or_else(unreadable)? });
        }
        Ok(Self {
            run: head.run,
            step: head.step,
            dialect: head.dialect,
            capabilities: head.capabilities,
            limits: Limits {
                instruction_budget,
                heap_limit_bytes,
                allocation_budget,
                call_depth_limit,
                max_outstanding_host_calls,
            },
            calls,
            stored_at: head.stored_at,
            snapshot: snapshot.to_vec(),
        })
    }

    /// The same without the snapshot, for lists.
    pub(super) fn without_snapshot(self) -> Self {
        Self { snapshot: Vec::new(), ..self }
    }

    /// Whether a call still waits.
    pub(super) fn waits_for(&self, call: CallId) -> bool {
        self.calls.iter().any(|waiting| waiting.call == call)
    }
}

/// A value as the protocol's tagged JSON.
pub(in crate::host) fn value_text(value: &Plain) -> String {
    let mut text = Vec::new();
    write_value(value, &mut text);
    // Strings are text and everything else is ASCII.
    String::from_utf8(text).unwrap_or_default()
}

/// The value of such a text.
pub(in crate::host) fn value_of(text: &str) -> Option<Plain> {
    parse_value(text).ok()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_somebody_else_keeps_is_good_under_its_name_and_key_only() {
        let record = Record {
            run: RunId::random().unwrap(),
            step: 3,
            dialect: Dialect::Extended,
            capabilities: vec!["ask".to_owned()],
            limits: Limits::DEFAULTS,
            calls: vec![Waiting { call: CallId(2), capability: "ask".to_owned(), args: vec![Plain::Null] }],
            stored_at: UnixMillis(5),
            snapshot: vec![1, 2, 3],
        };
        let key = HostKey::from_bytes([7; HostKey::BYTES]);
        let sealed = record.to_sealed(&key, "a/1");
        assert_eq!(Record::from_sealed(&key, "a/1", &sealed).unwrap(), record);
        assert!(Record::from_sealed(&key, "a/2", &sealed).is_err(), "another name");
        assert!(Record::from_sealed(&HostKey::from_bytes([8; HostKey::BYTES]), "a/1", &sealed).is_err());
        assert!(Record::open(&key, Kind::Checkpoint, "a/1", &sealed).is_err(), "another kind");
        let mut changed = sealed;
        let last = changed.len() - 40;
        changed[last] ^= 1;
        assert!(Record::from_sealed(&key, "a/1", &changed).is_err(), "another snapshot");
    }
}
