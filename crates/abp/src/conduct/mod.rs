//! One work order from its beginning to its receipt: the workspace, the child, the rules and the record, in one place.
//!
//! # Theory of operation
//!
//! [`conduct`] prepares the workspace, starts the child in its box, gives it the order, and lets a
//! [`Governor`] and a [`Recorder`] see every event before the
//! [`Audience`] does. However the run ends, three things hold: the child and everything it started is gone, there is a
//! receipt, and no work is lost. A copy that was worked in stays when the run did not end well; its patch is beside the
//! receipt either way.
//!
//! Approvals are answered through the [`Ledger`], by whoever can write to it: the terminal that
//! started the run, or another process.

mod close;
mod job;
mod recover;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use outrigger_supervise::driver::Supervisor;

pub use close::Concluded;
pub use job::{Afterwards, Audience, Confinement, Job};
pub use recover::recover;

use crate::govern::{BoxPlan, GovernError, Governor, Ledger, LedgerError, RunClock, boxing};
use crate::host::{Command, Failure, Remote, RunControl, Sidecar};
use crate::protocol::{Timestamp, WorkOrder, WorkspaceMode};
use crate::receipt::{self, Recorder};
use crate::workspace::{self, PrepareError, Prepared};

use self::watch::Observer;

/// Why there is not even a receipt.
#[derive(Debug, thiserror::Error)]
pub enum ConductError {
    /// The order cannot be governed.
    #[error(transparent)]
    Govern(#[from] GovernError),
    /// The policy is wrong.
    #[error(transparent)]
    Policy(#[from] outrigger_policy::ProfileError),
    /// The order names a mode that we do not have.
    #[error("the order's workspace.mode is `{0}`; it may be `staged` or `pass_through`")]
    Mode(String),
    /// There is no workspace.
    #[error("the workspace cannot be prepared: {0}")]
    Workspace(#[from] PrepareError),
    /// Approvals cannot be written down.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The order cannot be written down.
    #[error("the order cannot be written to {}: {error}", path.display())]
    Order {
        /// Where to.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The receipt cannot be written. The run was ended for it.
    #[error("the receipt cannot be written: {0}")]
    Receipt(#[from] receipt::RecordError),
    /// It was stopped before anything had begun.
    #[error("stopped before the run had begun")]
    Stopped,
}

/// Does one job. Dropping this kills the child; what was recorded until then is sealed by the next [`recover`].
pub async fn conduct(
    supervisor: &Supervisor,
    job: Job,
    audience: &mut dyn Audience,
    mut control: RunControl,
) -> Result<Concluded, ConductError> {
    // What is wrong with the order is said before anything is copied or started.
    job.order.policy.compile()?;
    let prepared = tokio::select! {
        prepared = prepare(supervisor, &job) => prepared?,
        _ = control.next() => return Err(ConductError::Stopped),
    };
    audience.prepared(&prepared);
    let begun = Timestamp::now();
    let recorder = Recorder::begin(&job.receipts, &job.run)?;
    let mut order = job.order.clone();
    order.workspace.root = prepared.root().to_string_lossy().into_owned();
    write_order(&job, &order)?;

    let plan = confine(&job, &order, prepared.root());
    let mut backend = job.backend.clone();
    if let Some(plan) = &plan {
        backend.sandbox = plan.request.clone();
    }
    let started = tokio::select! {
        started = Sidecar::start(supervisor, &backend, &job.terms) => started.map_err(Unstarted::Failed),
        command = control.next() => Err(Unstarted::Stopped(command)),
    };
    let performance = match started {
        Ok(sidecar) => perform(&job, &order, &prepared, sidecar, recorder, audience, control).await?,
        Err(unstarted) => close::Performance::unstarted(unstarted, recorder, begun, &backend.name),
    };
    close::close(job, order, prepared, plan, performance, audience).await
}

/// The order as it is sent, beside the receipt: its hash is in there, and whoever comes after us if we are killed needs it.
fn write_order(job: &Job, order: &WorkOrder) -> Result<(), ConductError> {
    let path = job.receipts.beside(&job.run, recover::ORDER);
    let mut text = Vec::new();
    order.write(&mut text);
    std::fs::write(&path, text).map_err(|error| ConductError::Order { path, error })
}

/// Why there is no child to speak with.
enum Unstarted {
    Failed(Failure),
    Stopped(Command),
}

async fn prepare(supervisor: &Supervisor, job: &Job) -> Result<Prepared, ConductError> {
    let order = &job.order.workspace;
    let mode = match &order.mode {
        WorkspaceMode::Staged => workspace::Mode::Staged,
        WorkspaceMode::PassThrough => workspace::Mode::InPlace,
        WorkspaceMode::Other(mode) => return Err(ConductError::Mode(mode.clone())),
    };
    let request = workspace::Request {
        root: PathBuf::from(&order.root),
        mode,
        include: order.include.clone(),
        exclude: order.exclude.clone(),
    };
    Ok(workspace::prepare(supervisor, &request, &job.workspace).await?)
}

/// The box that the policy asks for, if the caller wants one that can hold it.
fn confine(job: &Job, order: &WorkOrder, root: &Path) -> Option<BoxPlan> {
    let Confinement::ByPolicy { level, extras } = &job.confinement else { return None };
    let mut plan = boxing::plan(&order.policy, root, extras);
    plan.request.level = *level;
    Some(plan)
}

/// The run itself, with a child that has said hello.
async fn perform(
    job: &Job,
    order: &WorkOrder,
    prepared: &Prepared,
    mut sidecar: Sidecar,
    recorder: Recorder,
    audience: &mut dyn Audience,
    control: RunControl,
) -> Result<close::Performance, ConductError> {
    audience.hello(sidecar.hello(), sidecar.pid());
    // A child that asks may also want a person's word where the policy does not.
    let asks = sidecar.hello().outrigger.is_some() || !order.policy.require_approval_for.is_empty();
    let ledger = if asks { Some(Ledger::open(&job.ledger())?) } else { None };
    let governor = Governor::new(order, prepared.root(), job.rules_for(sidecar.hello()), ledger)?;
    let clock = RunClock::since(Instant::now());
    let mut observer = Observer::new(governor, clock, recorder, audience);
    let hello = sidecar.hello().clone();
    let enforced = sidecar.enforced().cloned();
    let ended = sidecar.run(&job.run, order, &mut observer, control).await;
    let stopped = sidecar.stop(job.terms.ladder).await;
    let watched = observer.finish()?;
    Ok(close::Performance::of_run(hello, enforced, ended, stopped, watched))
}

/// A way to interfere with a run that is being conducted.
pub fn control() -> (Remote, RunControl) {
    RunControl::pair()
}

/// A folder for receipts that several may write to.
pub type Receipts = Arc<receipt::Folder>;
