//! What a script may use, as the protocol says it.

use serde::{Deserialize, Serialize};

/// The limits of a run; `None` leaves one to the sidecar, whose own default is in the comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Instructions over the whole run (1,000,000).
    pub instruction_budget: Option<u64>,
    /// Live bytes of the script (8,388,608).
    pub heap_limit_bytes: Option<u64>,
    /// Live things of the script (250,000).
    pub allocation_budget: Option<u64>,
    /// Calls within calls (256).
    pub call_depth_limit: Option<u64>,
    /// Host calls that wait at once (128).
    pub max_outstanding_host_calls: Option<u64>,
}

impl Limits {
    /// What every sidecar uses when it is told nothing.
    pub fn of_the_sidecar() -> Self {
        Self {
            instruction_budget: None,
            heap_limit_bytes: None,
            allocation_budget: None,
            call_depth_limit: None,
            max_outstanding_host_calls: None,
        }
    }
}
