//! What another host needs to go on with a run: the snapshot, what it waits for, and what it was allowed.

use serde::{Deserialize, Serialize};

use super::seal::{Kind, open, seal};
use super::{CallId, RunId, StoreError, UnixMillis};
use crate::host::key::HostKey;
use crate::host::limits::Limits;

/// A run that stands still at its host calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Which run.
    pub run: RunId,
    /// How many snapshots it made before this one.
    pub step: u64,
    /// What its children speak; a snapshot can only be continued by a child of the same kind.
    pub dialect: Dialect,
    /// The id of its program.
    pub program: String,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Which call of the run.
    pub call: CallId,
    /// What was called.
    pub capability: String,
    /// With what: a JSON array of the protocol's tagged values.
    pub args: String,
}

/// Everything of a record but the snapshot, as it is on disk.
#[derive(Serialize, Deserialize)]
struct Head {
    run: RunId,
    step: u64,
    dialect: Dialect,
    program: String,
    capabilities: Vec<String>,
    limits: Limits,
    calls: Vec<Waiting>,
    stored_at: UnixMillis,
}

impl Record {
    pub(super) fn seal(&self, key: &HostKey, kind: Kind, name: &str) -> Vec<u8> {
        let head = Head {
            run: self.run.clone(),
            step: self.step,
            dialect: self.dialect,
            program: self.program.clone(),
            capabilities: self.capabilities.clone(),
            limits: self.limits,
            calls: self.calls.clone(),
            stored_at: self.stored_at,
        };
        // Strings, numbers and string keys: there is nothing in a head that JSON cannot say.
        let head = serde_json::to_vec(&head).unwrap_or_default();
        seal(key, kind, name, &head, &self.snapshot)
    }

    pub(super) fn open(key: &HostKey, kind: Kind, name: &str, sealed: &[u8]) -> Result<Self, StoreError> {
        let (head, snapshot) = open(key, kind, name, sealed)?;
        let unreadable = |_| StoreError::Tampered { name: name.to_owned(), why: "its head cannot be read" };
        let head: Head = serde_json::from_slice(head).map_err(unreadable)?;
        let Head { run, step, dialect, program, capabilities, limits, calls, stored_at } = head;
        let snapshot = snapshot.to_vec();
        Ok(Self { run, step, dialect, program, capabilities, limits, calls, stored_at, snapshot })
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
