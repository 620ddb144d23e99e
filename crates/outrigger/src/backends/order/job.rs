//! From a run to a job: its order, its folder, its box, its terms. What can be said about a request is said before it is accepted.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_abp::conduct::{Afterwards, Job};
use outrigger_abp::govern::{Approver, Choice, Limits, OnDenied};
use outrigger_abp::host::Terms;
use outrigger_abp::protocol::{self, Offer, WorkOrder, WorkspaceMode};
use outrigger_abp::workspace;

use super::House;
use super::conversation::{self, Conversation};
use crate::config;
use crate::run::{Around, Chosen, ready, usual_policy};
use crate::runs::request::ApprovalTerms;
use crate::runs::{DefaultAnswer, NewRun, Receipts, RequestError, RunId, receipt_id};

/// From spawn to hello. A machine on which everything starts at once is slow.
const HELLO_WITHIN: Duration = Duration::from_secs(30);

/// How long "for ever" is where a number is needed: ten years.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// How much longer the control plane waits than the log says: the log decides, and only if it does not the control plane does.
const GRACE: Duration = Duration::from_secs(60);

/// A job, and what the attempt must know besides.
pub(super) struct Made {
    pub(super) job: Job,
    /// The folder that was made for it, if the run names none.
    pub(super) scratch: Option<PathBuf>,
    /// The conversation that it goes on with.
    pub(super) conversation: Option<Conversation>,
    pub(super) window: Window,
}

/// How long people have, and what is taken then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::backends) struct Window {
    /// None is for ever.
    pub(in crate::backends) within: Option<Duration>,
    pub(in crate::backends) default: DefaultAnswer,
}

/// Whether a run can be made a job of. Looks at the folder that it names.
pub(in crate::backends) fn check(new: &NewRun) -> Result<(), RequestError> {
    if new.script.is_some() {
        return Err(RequestError::at(
            "script",
            "this backend takes a `task`; a `script` is for the backend `mustard`",
        ));
    }
    if new.task.as_deref().is_none_or(|task| task.trim().is_empty()) {
        return Err(RequestError::at("task", "there is no task: say what is to be done"));
    }
    let order = new.work_order("check")?;
    if new.workspace.is_some() {
        folder(&order)?;
    }
    if let WorkspaceMode::Other(mode) = &order.workspace.mode {
        let message = format!("`{mode}` is no mode of a workspace; it may be `staged` or `pass_through`");
        return Err(RequestError::at("workspace.mode", message));
    }
    if let Some(usd) = order.config.max_budget_usd
        && !(usd.is_finite() && usd >= 0.0)
    {
        let message = format!("{usd} US dollars is no budget; it is a number from 0 up");
        return Err(RequestError::at("config.max_budget_usd", message));
    }
    Ok(())
}

/// The folder that an order names, as a path that nothing is relative to.
pub(in crate::backends) fn folder(order: &WorkOrder) -> Result<PathBuf, RequestError> {
    let at = |message: String| RequestError::at("workspace.root", message);
    let root = Path::new(&order.workspace.root);
    if !root.is_absolute() {
        // The daemon's own folder is nobody's.
        return Err(at(format!("`{}` is not an absolute path; say which folder", order.workspace.root)));
    }
    let real = root
        .canonicalize()
        .map_err(|error| at(format!("the folder {} cannot be used: {error}", root.display())))?;
    if !real.is_dir() {
        return Err(at(format!("{} is not a folder", root.display())));
    }
    if real.to_str().is_none() {
        return Err(at(format!("the folder {} has a name that is not UTF-8", root.display())));
    }
    Ok(real)
}

/// The job of an attempt, or why there is none.
pub(super) fn make(
    house: &House,
    name: &str,
    backend: &config::Backend,
    run: &RunId,
    number: u32,
    request: &NewRun,
    receipts: Receipts,
) -> Result<Made, String> {
    let id = receipt_id(run, number);
    let mut order = request.work_order(run.as_str()).map_err(|error| error.message)?;
    if request.policy.is_none() {
        order.policy = house.policy.clone().unwrap_or_else(|| usual_policy(backend));
    }
    let conversation = match (backend, &request.thread) {
        (config::Backend::Agent(_), Some(thread)) => Some(Conversation::open(&house.scratch, name, thread)?),
        _ => None,
    };
    if let Some(session) = conversation.as_ref().and_then(Conversation::session) {
        conversation::resume(&mut order, session)?;
    }
    let scratch = match (&request.workspace, &conversation) {
        (Some(_), _) => {
            let real = folder(&order).map_err(|error| error.message)?;
            order.workspace.root = real.to_string_lossy().into_owned();
            None
        }
        (None, Some(conversation)) => {
            order.workspace.root = conversation.work().to_string_lossy().into_owned();
            order.workspace.mode = WorkspaceMode::PassThrough;
            None
        }
        (None, None) => {
            let folder = house.scratch.join(&id);
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
            made.map_err(|error| format!("the folder {} cannot be made: {error}", folder.display()))?;
            order.workspace.root = folder.to_string_lossy().into_owned();
            order.workspace.mode = WorkspaceMode::PassThrough;
            Some(folder)
        }
    };
    let around = Around { sandbox: None, read: Vec::new(), env: &order.config.env, here: house.here.clone() };
    let Chosen { spec, confinement, timeout } =
        ready(name, backend.clone(), around).map_err(|error| format!("{error:#}"))?;
    let window = Window::of(request.approvals.as_ref())?;
    let stage = workspace::StageName::new(&id).map_err(|error| error.to_string())?;
    let job = Job {
        run: protocol::RunId::new(id),
        backend: spec,
        confinement,
        terms: Terms {
            hello_within: HELLO_WITHIN,
            total: timeout,
            offer: Some(Offer::all()),
            ..Terms::usual()
        },
        limits: Limits::none(),
        on_denied: OnDenied::End,
        approver: window.approver(),
        workspace: workspace::Terms {
            stages: house.stages.clone(),
            name: stage,
            repository: workspace::AgentRepository::Make,
            limits: workspace::Limits::usual(),
        },
        receipts: receipts.folder,
        sign: receipts.sign,
        afterwards: Afterwards::Discard,
        order,
    };
    Ok(Made { job, scratch, conversation, window })
}

impl Window {
    /// As the run says; a run that says nothing waits for ever and is denied.
    pub(in crate::backends) fn of(terms: Option<&ApprovalTerms>) -> Result<Self, String> {
        let Some(ApprovalTerms { within, default }) = terms else {
            return Ok(Self { within: None, default: DefaultAnswer::Deny });
        };
        let within = within.as_deref().map(crate::duration::duration).transpose()?;
        Ok(Self { within, default: *default })
    }

    /// How long whoever works waits for an answer. The log has its own deadline, and comes first.
    pub(in crate::backends) fn patience(self) -> Duration {
        self.within.map_or(FOR_EVER, |within| within.saturating_add(GRACE).min(FOR_EVER))
    }

    fn approver(self) -> Approver {
        let within = self.patience();
        let default = match self.default {
            DefaultAnswer::Approve => Choice::Allow,
            DefaultAnswer::Deny => Choice::Deny,
        };
        Approver::Person { within, default }
    }
}
