//! What is to be conducted, and who looks on.

use std::path::PathBuf;

use outrigger_supervise::sandbox::Level;

use super::Receipts;
use crate::govern::{ApprovalRequest, Approver, Extras, Limits, OnDenied, Rules};
use crate::host::{BackendSpec, Terms, Warning};
use crate::protocol::{AgentEvent, Ask, Hello, RunId, WorkOrder};
use crate::receipt::SigningKey;
use crate::workspace::{self, Prepared};

/// One work order and everything around it.
#[derive(Debug)]
pub struct Job {
    /// The run.
    pub run: RunId,
    /// The order. Its root is the folder of the caller, also when a copy is worked in.
    pub order: WorkOrder,
    /// The program.
    pub backend: BackendSpec,
    /// The box it runs in.
    pub confinement: Confinement,
    /// How it is spoken with.
    pub terms: Terms,
    /// What it may spend, beyond what the order says.
    pub limits: Limits,
    /// What follows when it did what it may not do.
    pub on_denied: OnDenied,
    /// Who approves.
    pub approver: Approver,
    /// How its workspace is made.
    pub workspace: workspace::Terms,
    /// Where receipts are kept.
    pub receipts: Receipts,
    /// The key that signs the receipt.
    pub sign: Option<SigningKey>,
    /// What becomes of a copy.
    pub afterwards: Afterwards,
}

/// How the box is chosen.
#[derive(Clone, Debug)]
pub enum Confinement {
    /// As the program's own description says; the policy is only observed.
    AsGiven,
    /// So that the kernel holds as much of the policy as it can.
    ByPolicy {
        /// How strict.
        level: Level,
        /// What the program needs beside the workspace.
        extras: Extras,
    },
}

/// What becomes of a staged copy when the run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Afterwards {
    /// It goes when the run is complete. The patch stays beside the receipt.
    Discard,
    /// It stays.
    Keep,
    /// When the run is complete its changes are applied to the source, and it goes.
    Apply,
}

impl Job {
    /// Where the approvals of this run are written down.
    #[must_use]
    pub fn ledger(&self) -> PathBuf {
        self.receipts.beside(&self.run, "approvals.jsonl")
    }

    pub(super) fn rules_for(&self, hello: &Hello) -> Rules {
        Rules {
            run_id: self.run.clone(),
            subject: hello.backend.id.clone(),
            asks: hello.outrigger.as_ref().map(|powers| powers.asks.clone()).unwrap_or_default(),
            limits: self.limits,
            on_denied: self.on_denied,
            approver: self.approver,
        }
    }
}

/// Looks on. Everything is called in the task that reads, so that a slow audience makes the child wait.
pub trait Audience: Send {
    /// The workspace is there.
    fn prepared(&mut self, workspace: &Prepared) {
        let _ = workspace;
    }

    /// The child has introduced itself.
    fn hello(&mut self, hello: &Hello, pid: Option<u32>) {
        let _ = (hello, pid);
    }

    /// The child reported something. `number` counts from 1, `line` is the message as it came.
    fn event(&mut self, number: u64, event: &AgentEvent<'_>, line: &str);

    /// Somebody has to approve something; the answer goes to the [`Ledger`](crate::govern::Ledger).
    fn approval(&mut self, request: &ApprovalRequest) {
        let _ = request;
    }

    /// The child wants to know something that only a person can say. Whoever takes the question answers it through the
    /// [`Remote`](crate::host::Remote); if nobody does (`false`), the child is told so.
    fn question(&mut self, ask: &Ask<'_>) -> bool {
        let _ = ask;
        false
    }

    /// The child is not as it should be.
    fn warning(&mut self, warning: &Warning) {
        self.remark(&warning.to_string());
    }

    /// Something that somebody should know.
    fn remark(&mut self, text: &str);
}
