//! Why a host cannot begin, and why it did not do what it was asked for.

use std::io;
use std::path::PathBuf;

use super::life::ledger::LedgerError;
use super::record::AuditError;
use crate::protocol::{ExtensionId, Permission, State};

/// Why a host cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// What earlier hosts wrote down cannot be opened, or another host has it.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Decisions could not be recorded.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// A folder or file of the state cannot be used.
    #[error("{} cannot be used: {source}", .path.display())]
    State {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// There is no such extension.
    #[error("there is no extension `{id}`{}", suggestion(.nearest))]
    Unknown {
        /// What was asked for.
        id: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// It is not in a state for that.
    #[error("{id} is {state}{}", because(.why))]
    State {
        /// Which.
        id: ExtensionId,
        /// Where it is in its life.
        state: State,
        /// Why.
        why: Option<String>,
    },
    /// It does not ask for that permission, or may not have it.
    #[error("{id} cannot be given {permission}: {why}")]
    Permission {
        /// Which.
        id: ExtensionId,
        /// What.
        permission: Permission,
        /// Why not.
        why: String,
    },
    /// It could not be written down, so it was not done.
    #[error("it could not be written down, so it was not done: {why}")]
    NotRecorded {
        /// Why not.
        why: String,
    },
    /// The host is leaving.
    #[error("the host is leaving")]
    Leaving,
    /// Nothing runs here.
    #[error("no host is up")]
    NotUp,
}

fn suggestion(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |nearest| format!("; is `{nearest}` meant?"))
}

fn because(why: &Option<String>) -> String {
    why.as_ref().map_or_else(String::new, |why| format!(": {why}"))
}
