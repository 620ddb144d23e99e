//! How a run ended, and what was seen of it.

use std::time::Duration;

use super::failure::Failure;
use super::warning::Warnings;
use crate::protocol::{Negotiation, ReceivedReceipt, Timestamp};

/// The end of a run.
#[derive(Clone, Debug)]
pub struct Ended {
    /// How.
    pub how: How,
    /// What the child says it did. A run that was cancelled may have one too.
    pub receipt: Option<Box<ReceivedReceipt<'static>>>,
    /// What was required, and how the child can do it.
    pub negotiation: Negotiation,
    /// What was not as it should be.
    pub warnings: Warnings,
    /// What was seen, which is what a receipt is checked against.
    pub observed: Observed,
}

/// In which way a run ended.
#[derive(Clone, Debug)]
pub enum How {
    /// With a receipt.
    Final,
    /// In every other way. Cancelled runs are here, also those whose child answered with a receipt.
    Failed(Box<Failure>),
}

impl How {
    /// The failure, if it is one.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Final => None,
            Self::Failed(failure) => Some(failure),
        }
    }
}

/// What the control plane saw itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// When the run began.
    pub started_at: Timestamp,
    /// When it had ended.
    pub finished_at: Timestamp,
    /// The time between, by a clock that is never set.
    pub took: Duration,
    /// Events of this run.
    pub events: u64,
    /// Bytes of those events.
    pub event_bytes: u64,
    /// Questions of this run.
    pub asks: u64,
    /// Messages of other runs, dropped.
    pub foreign: u64,
    /// Lines that were no messages, skipped.
    pub noise: u64,
    /// Pings sent.
    pub pings: u64,
    /// Pongs heard.
    pub pongs: u64,
}
